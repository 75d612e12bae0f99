"""The writers that write at least once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from fairlead_kafka.spark.clients import task_producer
from fairlead_kafka.spark.compatibility import StreamArrowWriter
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.options import WriteOptions
from fairlead_kafka.spark.writing import encoded_rows, send_all


@dataclass
class TaskWritten(WriterCommitMessage):
    """Number of records that a task wrote, all of them acknowledged."""

    records: int


@errors_first
class FairleadWriter(DataSourceArrowWriter):
    """Writes rows to Kafka. A task that fails is retried by Spark and writes its rows again: at
    least once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Send every batch and wait until all is acknowledged; raises the first delivery error,
        which fails the task."""
        return write_at_least_once(self._options, iterator)


@errors_first
class FairleadStreamWriter(StreamArrowWriter):
    """Writes the rows of micro-batches to Kafka. A task or a batch that Spark repeats is written
    again: at least once."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """Send every batch and wait until all is acknowledged; raises the first delivery error,
        which fails the task."""
        return write_at_least_once(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Do nothing: a task ends only when its rows are acknowledged."""

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Do nothing: rows that were written stay, and Spark writes the batch again."""


def write_at_least_once(options: WriteOptions, batches: Iterator[pa.RecordBatch]) -> TaskWritten:
    """Send every batch with a producer of its own and wait until all is acknowledged; raises the
    first delivery error."""
    with task_producer(options.client) as producer:
        return TaskWritten(send_all(producer, *encoded_rows(options.formats, options.topic, batches)))
