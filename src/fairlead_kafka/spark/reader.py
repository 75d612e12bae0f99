"""The batch reader: plans on the driver, reads on executors, Arrow all the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.planning import plan_ranges
from fairlead_kafka.spark.reading import TaskRanges, read_task
from fairlead_kafka.spark.survey import Survey
from fairlead_kafka.spark.tasks import plan_tasks
from fairlead_kafka.spark.volume import Volume


@errors_first
class FairleadReader(DataSourceReader):
    """Reads ranges of offsets that are fixed when the read is planned."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Spark's input partitions: the ranges of offsets of each task."""
        options = self._options
        with Survey(options) as survey:
            ranges = survey.attempt(lambda: self._ranges(survey))
            return plan_tasks(ranges, options, Volume(survey.look))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The records of a task as Arrow record batches. Spark asks for None once if there is no
        partition at all."""
        if isinstance(partition, TaskRanges):
            yield from read_task(self._options, self._schema, partition.ranges)

    def _ranges(self, survey: Survey) -> list[OffsetRange]:
        return plan_ranges(survey, self._options)
