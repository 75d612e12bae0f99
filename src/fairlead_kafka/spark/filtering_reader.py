"""The batch reader of the planner process to which Spark passes filters (Spark 4.1 and newer)."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import Filter
from pyspark.sql.types import StructType

from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.filters import Wanted
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reader import FairleadReader
from fairlead_kafka.spark.survey import Survey


@errors_first
class FilteringReader(FairleadReader):
    """The batch reader for a Spark that passes filters to it (`planners.filters_pushed_down`).

    Elsewhere Spark refuses a reader that takes filters.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._wanted = Wanted()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take filters that ranges of offsets can meet; returns those that Spark has to apply."""
        return self._wanted.take(filters)

    def _ranges(self, survey: Survey) -> list[OffsetRange]:
        ranges = super()._ranges(survey)
        times_ms = self._wanted.times(one.partition for one in ranges)
        found = survey.consumer.offsets_for_times(times_ms) if times_ms else {}
        late_enough = {
            partition: None if record is None else record.offset for partition, record in found.items()
        }
        return self._wanted.narrow(ranges, late_enough)
