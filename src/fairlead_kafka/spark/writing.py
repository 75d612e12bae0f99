"""Sends rows of Arrow record batches by `Producer.send_table`, by topic and column by column; used
by at-least-once and exactly-once writers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.client import Producer
from fairlead_kafka.client.handles import TableAck
from fairlead_kafka.formats.building import Reasons
from fairlead_kafka.formats.context import MessageField, SerializationContext
from fairlead_kafka.formats.json_writing import json_texts
from fairlead_kafka.spark.dead_letters import fine_rows, letters_of
from fairlead_kafka.spark.formats.writing import Encode, WriteFormats, encoder_of

TABLES_UNDER_WAY_MAX = 64
"""Tables whose acknowledgements are not looked at yet; buffer.memory bounds their bytes, this
bounds their handles."""
SENT_COLUMNS = ("key", "value", "headers", "partition")


def send_all(
    producer: Producer,
    topic: str | None,
    batches: Iterator[pa.RecordBatch],
    seen: Callable[[str, pa.RecordBatch], None] | None = None,
) -> int:
    """Submit every batch to `producer`, and wait until all is acknowledged. Returns the number of
    rows. Raises the first delivery error. `seen(topic, rows)` is called with the rows for each
    topic."""
    records = 0
    under_way: deque[TableAck] = deque()
    for batch in batches:
        for name, rows in rows_by_topic(batch, topic):
            records += rows.num_rows
            if seen is not None:
                seen(name, rows)
            under_way.append(producer.send_table(name, rows))
            if len(under_way) > TABLES_UNDER_WAY_MAX:
                under_way.popleft().result()
    producer.flush()
    for sent in under_way:
        sent.result()
    return records


def encoded_rows(
    formats: WriteFormats, topic: str | None, batches: Iterator[pa.RecordBatch]
) -> tuple[str | None, Iterator[pa.RecordBatch]]:
    """Topic and batches for `send_all`: keys and values are in their formats, and dead letters are
    among the rows.

    InvalidRecord for a row that cannot be written, if there is no topic for dead letters.
    """
    encoders = {one.field: encoder_of(one) for one in formats.encoded}
    if not encoders:
        return topic, batches
    return None, (made for batch in batches for made in _encoded(formats, topic, encoders, batch))


def _encoded(
    formats: WriteFormats, topic: str | None, encoders: Mapping[str, Encode | None], batch: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    for name, rows in rows_by_topic(batch, topic):
        reasons: dict[str, Reasons] = {}
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for field, encode in encoders.items():
            if encode is not None and field in columns:
                context = SerializationContext(name, MessageField(field))
                columns[field], reasons[field] = encode(rows[field], context)
        made = pa.RecordBatch.from_pydict(columns)
        if any(reasons.values()):
            if formats.dead_letter_topic is None:
                field, found = next((field, found) for field, found in reasons.items() if found)
                row, why = min(found.items())
                raise InvalidRecord(
                    f"{field}Format: {len(found)} rows of a batch for topic {name} cannot be "
                    f"written, the first is "
                    f"row {row}: {why}; set deadLetterTopic to keep such rows in a topic"
                )
            yield _addressed(_letters(formats, name, rows, made, reasons), formats.dead_letter_topic)
            made = made.filter(fine_rows(rows.num_rows, reasons))
        yield _addressed(made, name)


def _letters(
    formats: WriteFormats,
    topic: str,
    rows: pa.RecordBatch,
    made: pa.RecordBatch,
    reasons: Mapping[str, Reasons],
) -> pa.RecordBatch:
    """Dead letters for rows that could not be written: a key or value that could be written is its
    bytes, one that could not is JSON."""
    columns: dict[str, pa.Array] = {"topic": pa.repeat(pa.scalar(topic), rows.num_rows)}
    for field in ("key", "value"):
        if reasons.get(field):
            columns[field] = pc.coalesce(made[field], _as_json(rows[field]))
        elif field in made.schema.names:
            columns[field] = made[field]
    return letters_of(pa.RecordBatch.from_pydict(columns), reasons)


def _as_json(column: pa.Array) -> pa.Array:
    try:
        return json_texts(column)[0]
    except TypeError:
        return pa.nulls(len(column), pa.binary())


def _addressed(rows: pa.RecordBatch, topic: str) -> pa.RecordBatch:
    return rows.append_column("topic", pa.repeat(pa.scalar(topic), rows.num_rows))


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of Spark's batch for each topic, with the columns as they are. Copied only if the
    rows go to several topics. InvalidRecord if a row has no topic."""
    rows = batch.select([name for name in SENT_COLUMNS if name in batch.schema.names])
    if topic is not None:
        yield topic, rows
        return
    topics = batch["topic"]
    if topics.null_count:
        raise InvalidRecord(
            f"{topics.null_count} rows of a batch have a null topic; set the option topic, or give every row "
            "one in the column topic"
        )
    names = pc.unique(topics).to_pylist()
    for name in names:
        yield name, rows if len(names) == 1 else rows.filter(pc.equal(topics, name))
