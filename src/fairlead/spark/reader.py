"""The batch reader: plans on the driver, reads one range per task on an executor, Arrow all the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.client import Consumer
from fairlead.spark.offsets import OffsetRange
from fairlead.spark.options import ReadOptions
from fairlead.spark.planning import DataLoss, plan_read
from fairlead.spark.schema import arrow_columns, conform

FETCH_SETTINGS = {"max.partition.fetch.bytes": str(8 * 1024 * 1024)}
"""A task reads one partition, so it may fetch more of it at once than a consumer of many; what the job sets goes over it."""


@dataclass
class RangePartition(InputPartition):
    """One task's share, pickled to its executor."""

    range: OffsetRange


class FairleadReader(DataSourceReader):
    """Reads ranges of offsets that are fixed when the read is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """One partition per range of offsets."""
        return [RangePartition(one) for one in plan_read(self._options)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The records of a range as Arrow record batches. Spark asks for None once if there is no partition at all."""
        if not isinstance(partition, RangePartition):
            return
        schema = to_arrow_schema(self._schema, timezone="UTC")
        columns = arrow_columns(self._options.include_headers)
        settings = {**FETCH_SETTINGS, **self._options.client}
        with Consumer(settings) as consumer:
            for table in self._tables(consumer, partition.range, columns):
                yield from conform(table, schema)

    def _tables(self, consumer: Consumer, wanted: OffsetRange, columns: list[str]) -> Iterator[pa.Table]:
        timeout_s = self._options.poll_timeout_ms / 1000
        while True:
            try:
                yield from consumer.read_range(wanted.partition, wanted.start, wanted.end, columns=columns, timeout_s=timeout_s)
                return
            except BrokerError as error:
                if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                earliest = consumer.beginning_offsets([wanted.partition])[wanted.partition]
                if self._options.fail_on_data_loss:
                    raise DataLoss(
                        f"{wanted.partition}: planned offsets {wanted.start} to {wanted.end - 1}, and the log now starts at {earliest}; "
                        "set failOnDataLoss=false to read what is left"
                    ) from error
                if earliest >= wanted.end or earliest <= wanted.start:
                    return
                wanted = replace(wanted, start=earliest)
