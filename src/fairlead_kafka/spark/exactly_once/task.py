"""A task's side: it writes all rows in a transaction of its own, leaves it open, and returns its
ids to the driver.

Names. Only the driver may end a transaction once its task has ended, and any process that calls
InitProducerId with its transactional id aborts it. So no two processes ever share an id: each
Python worker makes up its own. A name for each task would do too, and brokers would have to
remember them all for a week (`transactional.id.expiration.ms`), so a worker uses an id again, under
two conditions: for a later batch than before, which Spark begins only when the one before is
committed; and when the coordinator says that the last transaction has ended.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import chain

import pyarrow as pa

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    BrokerError,
    ConfigError,
    ItemsFailed,
    ProducerFenced,
    TransactionFailed,
)
from fairlead_kafka.client import Admin
from fairlead_kafka.spark.clients import task_producer
from fairlead_kafka.spark.exactly_once.errors import TIMES, NotCommitted, too_long
from fairlead_kafka.spark.exactly_once.parts import Digest, Part, TaskPrepared, Writing
from fairlead_kafka.spark.exactly_once.settings import Guarantee, settings_for, transaction_timeout_ms
from fairlead_kafka.spark.writing import send_all

_ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})
_DRAWN = re.compile("[0-9a-f]{32}")
"""Random part of a task's transactional id: `uuid.uuid4().hex`."""
NAMES_MAX = 64
"""Streaming queries whose ids a worker remembers; of one that is forgotten it makes up new ones."""
_used: dict[tuple[int, str], dict[str, int]] = {}
"""(This process, prefix of ids) → id → the batch that it was used for last, of the NAMES_MAX names
that were used last. Spark's workers live on from task to task."""


class TaskStep(Enum):
    """Steps of a task that writes exactly once."""

    OPENED = "its transaction is open, and some rows are on their way"
    WRITTEN = "all its rows are acknowledged"
    PREPARED = "its transaction is prepared; the driver has not heard of it"


def prefix_of(guarantee: Guarantee, name: str) -> str:
    """Prefix of the transactional ids of the tasks of `name`.

    Ids of another name's tasks may begin with it too; `is_task_of` tells them apart.
    """
    return f"{guarantee.id_prefix}-{name}-task-"


def is_task_of(guarantee: Guarantee, name: str, transactional_id: str) -> bool:
    """True if a task of `name` made this transactional id: the prefix, and behind it only the
    random part. That has a fixed length and no dash, so no id belongs to two names, not even of `a`
    and `a-task-b`."""
    prefix = prefix_of(guarantee, name)
    return transactional_id.startswith(prefix) and _DRAWN.fullmatch(transactional_id, len(prefix)) is not None


def prepare(
    client: Mapping[str, str],
    guarantee: Guarantee,
    writing: Writing,
    topic: str | None,
    batches: Iterator[pa.RecordBatch],
    reached: Callable[[TaskStep], None] = lambda step: None,
) -> TaskPrepared:
    """Write a task's rows in a transaction that is left open; without rows there is none.

    Raises ConfigError if brokers do not allow so long a transaction, NotCommitted if it failed or
    took too long. A task that fails aborts its transaction.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return TaskPrepared(writing, None)

    def opened() -> Iterator[pa.RecordBatch]:
        yield first
        reached(TaskStep.OPENED)

    transactional_id = _transactional_id(client, guarantee, writing)
    timeout_ms = transaction_timeout_ms(client)
    digest = Digest()
    settings = {**client, "transactional.id": transactional_id, "transaction.timeout.ms": str(timeout_ms)}
    with task_producer(settings) as producer:
        try:
            producer.init_transactions()
            producer.begin_transaction()
            rows = send_all(producer, topic, chain(opened(), batches), digest.add)
            reached(TaskStep.WRITTEN)
            prepared = producer.prepare_transaction()
        except (ProducerFenced, TransactionFailed) as error:
            raise NotCommitted(
                f"{writing}: a task's transaction failed or was open for longer than {timeout_ms} ms. "
                f"{TIMES}. ({error})"
            ) from error
        except BrokerError as error:
            if error.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
                raise ConfigError(too_long(timeout_ms)) from error
            raise
    assert prepared is not None, "rows were sent"
    reached(TaskStep.PREPARED)
    _remember(guarantee, writing, transactional_id)
    return TaskPrepared(writing, Part(prepared, rows, digest.value))


def _transactional_id(client: Mapping[str, str], guarantee: Guarantee, writing: Writing) -> str:
    """A transactional id: one that this process used before and that is free, or a new one.

    No other task of this process uses it meanwhile.
    """
    prefix = prefix_of(guarantee, writing.name)
    used = _used.get((os.getpid(), prefix), {})
    earlier = [each for each, batch in used.items() if batch < writing.batch]
    if earlier:
        with Admin(settings_for("admin", client)) as admin:
            try:
                described = admin.describe_transactions(earlier)
            except ItemsFailed as failed:
                described = failed.results
        for each in earlier:
            if each not in described:
                del used[each]  # forgotten by its coordinator
            elif described[each].state in _ENDED:
                del used[each]
                return each
    return f"{prefix}{uuid.uuid4().hex}"


def _remember(guarantee: Guarantee, writing: Writing, transactional_id: str) -> None:
    """Note that a later batch may use the id again. Nothing is noted of a named batch write: its
    batch is a number of the user's, who may leave one out that was not committed."""
    if guarantee.app_id is not None:
        return
    key = os.getpid(), prefix_of(guarantee, writing.name)
    _used[key] = {**_used.pop(key, {}), transactional_id: writing.batch}
    if len(_used) > NAMES_MAX:
        del _used[next(iter(_used))]
