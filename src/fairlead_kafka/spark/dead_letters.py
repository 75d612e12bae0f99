"""Dead letters: records that do not parse, and rows that cannot be written, are sent to a topic of
their own.

A dead letter has the key and value unchanged, and headers with Kafka Connect's names
(`org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter`): its source, the failed
operation, and the error. A row that cannot be written has no bytes: its letter has the row's value
as JSON, or none if even that is not possible. A letter that its topic refuses fails the task, as in
Kafka Connect: it would be a record that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import RecordTooLarge
from fairlead_kafka.base.units import MIB
from fairlead_kafka.client import Producer
from fairlead_kafka.formats.building import Reasons
from fairlead_kafka.spark.clients import task_producer
from fairlead_kafka.spark.exactly_once.settings import settings_for
from fairlead_kafka.spark.options import ReadOptions

_PREFIX = "__connect.errors."
_PLACE = ("topic", "partition", "offset")
_STAGES = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Letters = Callable[[pa.RecordBatch, Mapping[str, Reasons]], None]
LETTER_SETTINGS: Mapping[str, str] = {"max.request.size": str(64 * MIB), "buffer.memory": str(64 * MIB)}
"""A letter is as large as its record, and a read has no setting for it. Brokers close a connection
on a request beyond socket.request.max.bytes, 100 MiB."""


@contextmanager
def dead_letters(options: ReadOptions) -> Iterator[Letters | None]:
    """A function that writes the rows that do not parse to the topic of `deadLetterTopic`, and
    returns once they are acknowledged; None without such a topic.

    The producer is made for the first letter. A task that Spark repeats writes its letters again.
    """
    topic = options.layout.dead_letter_topic
    if topic is None:
        yield None
        return
    with ExitStack() as open_:
        producers: list[Producer] = []

        def write(batch: pa.RecordBatch, reasons: Mapping[str, Reasons]) -> None:
            if not producers:
                settings = {**settings_for("producer", options.client), **LETTER_SETTINGS}
                producers.append(open_.enter_context(task_producer(settings)))
            letters = letters_of(batch, reasons)
            try:
                producers[0].send_table(topic, letters).result()
            except RecordTooLarge as error:
                raise _too_large(topic, letters) from error

        yield write


def letters_of(batch: pa.RecordBatch, reasons: Mapping[str, Reasons]) -> pa.RecordBatch:
    """Letters for the rows that `reasons` have, as `send_table` takes them. A letter has the row's
    key and value; its headers say why, and have topic, partition and offset, if the batch has these
    columns."""
    rows = sorted({row for found in reasons.values() for row in found})
    chosen = batch.take(pa.array(rows, pa.int64()))
    names = chosen.schema.names
    where = [name for name in _PLACE if name in names]
    headers = []
    for row, place in zip(rows, chosen.select(where).to_pylist(), strict=True):
        pairs = [(_PREFIX + name, str(place[name]).encode()) for name in where]
        failed = [field for field in ("key", "value") if row in reasons.get(field, {})]
        message = "; ".join(f"{field}: {reasons[field][row]}" for field in failed)
        pairs += [
            (_PREFIX + "stage", _STAGES[failed[0]].encode()),
            (_PREFIX + "exception.message", message.encode()),
        ]
        headers.append([{"key": name, "value": value} for name, value in pairs])
    columns = {name: chosen[name].cast(pa.binary()) for name in ("key", "value") if name in names}
    return pa.RecordBatch.from_pydict({**columns, "headers": pa.array(headers, HEADERS)})


def _too_large(topic: str, letters: pa.RecordBatch) -> RecordTooLarge:
    """The error for letters of which one, the largest, is too large for its topic."""
    sizes = [0] * letters.num_rows
    for column in ("key", "value"):
        if column in letters.schema.names:
            more = pc.fill_null(pc.binary_length(letters[column]), 0).to_pylist()
            sizes = [size + added for size, added in zip(sizes, more, strict=True)]
    row = max(range(len(sizes)), key=sizes.__getitem__)
    headers = {one["key"]: one["value"].decode() for one in letters["headers"][row].as_py()}
    where = " ".join(f"{name} {headers[_PREFIX + name]}" for name in _PLACE if _PREFIX + name in headers)
    return RecordTooLarge(
        f"deadLetterTopic: the letter for the record of {where}, with {sizes[row]} bytes, is too large for "
        f"the topic {topic}: raise max.message.bytes of that topic (64 MiB are the most for a letter), "
        "or leave deadLetterTopic out: then such records are in the column rescued"
    )


def fine_rows(count: int, reasons: Mapping[str, Reasons]) -> pa.Array:
    """A mask of `count` rows: true for those that `reasons` do not have."""
    fine = np.ones(count, np.bool_)
    fine[sorted({row for found in reasons.values() for row in found})] = False
    return pa.array(fine)
