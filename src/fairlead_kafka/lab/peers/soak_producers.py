"""The clients of a soak that produce: `send`, `send_table`, tables with keys that are compacted,
and transactions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Queue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import FairleadError, TimedOut, TransactionFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, Producer
from fairlead_kafka.client.delivery import RecordMetadata
from fairlead_kafka.client.handles import TableAck
from fairlead_kafka.lab.peers.soak import (
    ABORT_EVERY,
    COMPACTED,
    KEYED,
    KEYS,
    TOMBSTONE_EVERY,
    TRANSACTION_RECORDS,
    TRANSACTIONAL,
    UNKEYED,
    Errand,
    Ledger,
    values_of,
)
from fairlead_kafka.lab.soak_figures import Int64

TABLES_UNDER_WAY = 32
"""Submitted tables without a result at most; then the next one waits."""
PERIOD_S = 0.005
TABLE_PERIOD_S = 0.05
OFFSETS_EVERY = 3
"""Transactions per one that commits an offset too, by number."""
OFFSETS_GROUP = "soak-transactional"


def unkeyed(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Send record by record, with a callback for each."""
    padding = bytes(values_of(np.zeros(1, np.int64), errand.value_bytes)[0].as_py())[8:]
    with Producer(errand.config) as producer:
        for numbers in errand.due(stopping, PERIOD_S):
            for number in numbers:
                producer.send(
                    UNKEYED, number.to_bytes(8, "little") + padding, on_delivery=_callback(ledger, number)
                )


def _callback(ledger: Ledger, number: int) -> Callable[[RecordMetadata | None, Exception | None], None]:
    begun_s = time.monotonic()

    def completed(metadata: RecordMetadata | None, error: Exception | None) -> None:
        if metadata is None:
            ledger.failed(error)
        else:
            ledger.completed(
                f"{UNKEYED}-{metadata.partition}", np.array([number]), (time.monotonic() - begun_s) * 1000
            )

    return completed


def keyed(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Send tables with keys."""
    _tables(
        errand,
        ledger,
        stopping,
        KEYED,
        lambda numbers: values_of(numbers, errand.value_bytes),
        lambda numbers: None,
    )


def compacted(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Send tables with keys and, here and there, no value.

    Reports the newest acknowledged number of each key, -1 for no value.
    """
    newest: dict[int, int] = {}

    def values(numbers: Int64) -> pa.Array:
        return pc.if_else(
            pa.array(numbers % TOMBSTONE_EVERY == 0), None, values_of(numbers, errand.value_bytes)
        )

    def acknowledged(numbers: Int64) -> None:
        for number in numbers.tolist():
            newest[number % KEYS] = number

    _tables(errand, ledger, stopping, COMPACTED, values, acknowledged)
    ledger.last_figures["newest"] = {
        str(key): -1 if number % TOMBSTONE_EVERY == 0 else number for key, number in newest.items()
    }


def _tables(
    errand: Errand,
    ledger: Ledger,
    stopping: threading.Event,
    topic: str,
    values: Callable[[Int64], pa.Array],
    acknowledged: Callable[[Int64], None],
) -> None:
    under_way: Queue[tuple[TableAck, Int64, float] | None] = Queue(TABLES_UNDER_WAY)

    def complete() -> None:
        while (one := under_way.get()) is not None:
            handle, numbers, begun_s = one
            results = handle.result(raise_on_error=False)
            latency_ms = (time.monotonic() - begun_s) * 1000
            sound = results["error"].is_null().to_numpy()
            if not sound.all():
                ledger.failed(results["error"].drop_null()[0], int((~sound).sum()))
            partitions = results["partition"].to_numpy()
            for partition in np.unique(partitions[sound]).tolist():
                ledger.completed(
                    f"{topic}-{partition}", numbers[sound & (partitions == partition)], latency_ms
                )
            acknowledged(numbers[sound])

    completing = threading.Thread(target=complete, name="soak-complete")
    with Producer(errand.config) as producer:
        completing.start()
        try:
            for due in errand.due(stopping, TABLE_PERIOD_S):
                numbers = np.arange(due.start, due.stop)
                keys = pc.cast(pc.cast(pa.array(numbers % KEYS), "string"), "binary")
                table = pa.table({"key": keys, "value": values(numbers)})
                under_way.put((producer.send_table(topic, table), numbers, time.monotonic()))
        finally:
            under_way.put(None)
            completing.join()


def transactional(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Send one transaction after the other, some of them aborted; at the end check the offsets that
    were committed with them.
    """
    padding = b"." * (errand.value_bytes - 8)
    config = {**errand.config, "transactional.id": "soak-transactional"}
    offset = 0
    with Producer(config) as producer:
        producer.init_transactions()
        for numbers in errand.due(stopping, PERIOD_S, TRANSACTION_RECORDS):
            for number in numbers:
                if stopping.is_set():
                    break  # however many became due while it was held up
                if _transaction(producer, number, padding, ledger) and number % OFFSETS_EVERY == 0:
                    offset = number + 1
    with Admin(errand.config) as admin:  # stable: the markers come after the commit's answer
        offsets = admin.list_group_offsets([OFFSETS_GROUP], require_stable=True)[OFFSETS_GROUP]
    found = offsets.get(TopicPartition(UNKEYED, 0))
    if offset:
        ledger.count("offsets_checked")
        ledger.count("offsets_wrong", found is None or found.offset != offset)


def _transaction(producer: Producer, number: int, padding: bytes, ledger: Ledger) -> bool:
    """Run one transaction. True if it was committed."""
    begun_s, aborted = time.monotonic(), number % ABORT_EVERY == 0
    records = range(number * TRANSACTION_RECORDS, (number + 1) * TRANSACTION_RECORDS)
    try:
        producer.begin_transaction()
        acks = [
            producer.send(TRANSACTIONAL, each.to_bytes(8, "little") + padding, key=b"%d" % (each % KEYS))
            for each in records
        ]
        if number % OFFSETS_EVERY == 0:
            producer.send_offsets_to_transaction({TopicPartition(UNKEYED, 0): number + 1}, OFFSETS_GROUP)
        _ended(producer.abort_transaction if aborted else producer.commit_transaction)
    except TransactionFailed as error:
        ledger.count("aborted_by_faults")
        ledger.first_error = ledger.first_error or f"{error}: {error.__cause__}"
        _ended(producer.abort_transaction)
        return False
    if aborted:
        ledger.count("aborted")
        return False
    ledger.count("committed")
    latency_ms = (time.monotonic() - begun_s) * 1000
    for each, ack in zip(records, acks, strict=True):
        ledger.completed(f"{TRANSACTIONAL}-{ack.result().partition}", np.array([each]), latency_ms)
    return True


def _ended(end: Callable[[], None]) -> None:
    """Call `end`, a commit or an abort, again until it does not time out."""
    while True:
        try:
            end()
        except TimedOut:
            continue
        except FairleadError:
            raise
        return
