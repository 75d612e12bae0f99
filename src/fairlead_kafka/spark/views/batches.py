"""The view `batches`: a row per record batch of the ranges that a read of records would read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fairlead_kafka.client import Consumer
from fairlead_kafka.spark.clients import task_consumer
from fairlead_kafka.spark.compatibility import arrow_schema
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reader import FairleadReader
from fairlead_kafka.spark.reading import TaskRanges, surviving
from fairlead_kafka.spark.schema import conform

_COLUMNS: dict[str, DataType] = {
    "topic": StringType(),
    "partition": IntegerType(),
    "base_offset": LongType(),
    "last_offset": LongType(),
    "records": IntegerType(),
    "size_bytes": LongType(),
    "uncompressed_bytes": LongType(),
    "ratio": DoubleType(),
    "codec": StringType(),
    "base_timestamp": TimestampType(),
    "max_timestamp": TimestampType(),
    "timestamp_type": IntegerType(),
    "leader_epoch": IntegerType(),
    "producer_id": LongType(),
    "producer_epoch": IntegerType(),
    "base_sequence": IntegerType(),
    "is_transactional": BooleanType(),
    "is_control": BooleanType(),
}
BATCHES_SCHEMA = StructType([StructField(name, kind) for name, kind in _COLUMNS.items()])
"""Columns of `Consumer.read_batches`, and `ratio`: bytes of the batch by bytes it would take
without its codec, as in Kafka's `compression-rate-avg` (1.0: nothing gained)."""


@errors_first
class BatchesReader(FairleadReader):
    """Reads the headers of record batches; planned as a read of records is."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options, BATCHES_SCHEMA)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The batches of a task's ranges. Spark asks for None once if there is no partition at
        all."""
        if not isinstance(partition, TaskRanges):
            return
        options = self._options
        schema = arrow_schema(BATCHES_SCHEMA)
        with task_consumer(options.client) as consumer:
            for one in partition.ranges:
                for table in surviving(consumer, options, one, partial(_batches, consumer, options)):
                    yield from conform(_with_ratio(table), schema)


def _batches(consumer: Consumer, options: ReadOptions, wanted: OffsetRange) -> Iterator[pa.Table]:
    timeout_s = options.poll_timeout_ms / 1000
    return consumer.read_batches(wanted.partition, wanted.start, wanted.end, timeout_s, options.measure_ratio)


def _with_ratio(table: pa.Table) -> pa.Table:
    size_bytes, uncompressed = (
        pc.cast(table[name], pa.float64()) for name in ("size_bytes", "uncompressed_bytes")
    )
    return table.append_column("ratio", pc.divide(size_bytes, uncompressed))
