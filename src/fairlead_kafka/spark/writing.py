"""Rows of Arrow record batches to records, whatever is promised about them: by topic, column by
column, to `Producer.send_table`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.client import Producer
from fairlead_kafka.client.handles import TableAck

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
    """Submits every batch to `producer`, and waits until all is acknowledged; the number of rows.

    Raises the first delivery error. `seen` is called with what goes to each topic.
    """
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


def rows_by_topic(batch: pa.RecordBatch, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Spark's own batch by topic, its columns as they are; copied only where its rows go to several
    topics."""
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
