"""The batch writer: Arrow record batches of a task, column by column, to `Producer.send_table`; at least once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from fairlead.base.errors import InvalidRecord
from fairlead.client import Producer
from fairlead.spark.options import WriteOptions

TABLES_UNDER_WAY_MAX = 64
"""Tables whose acknowledgements are not looked at yet; buffer.memory bounds their bytes, this bounds their handles."""
SENT_COLUMNS = ("key", "value", "headers", "partition")


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task wrote, every record acknowledged."""

    records: int


class FairleadWriter(DataSourceArrowWriter):
    """Writes rows to Kafka. A task that fails is retried by Spark and writes its rows again: at least once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Sends every batch and waits until all is acknowledged; raises the first delivery error, which fails the task."""
        records = 0
        under_way: deque[Any] = deque()
        with Producer(self._options.client) as producer:
            for batch in iterator:
                for topic, rows in self._by_topic(batch):
                    records += rows.num_rows
                    under_way.append(producer.send_table(topic, rows))
                    if len(under_way) > TABLES_UNDER_WAY_MAX:
                        under_way.popleft().result()
            producer.flush()
            for sent in under_way:
                sent.result()
        return TaskWritten(records)

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Spark's own batch, its columns as they are; copied only where its rows go to several topics."""
        rows = batch.select([name for name in SENT_COLUMNS if name in batch.schema.names])
        if self._options.topic is not None:
            yield self._options.topic, rows
            return
        topics = batch["topic"]
        if topics.null_count:
            raise InvalidRecord(
                f"{topics.null_count} rows of a batch have a null topic; set the option topic, or give every row one in the column topic"
            )
        names = pc.unique(topics).to_pylist()
        for name in names:
            yield name, rows if len(names) == 1 else rows.filter(pc.equal(topics, name))
