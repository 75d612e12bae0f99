"""The stream reader for Spark 4.0 and 4.1, which ask for the end of the next micro-batch without
passing its start.

The start is known all the same: Spark asks again only when the last micro-batch is done, and a
query that is restarted begins with a plan of no rows at the offsets that its checkpoint ends with
(`PythonMicroBatchStream.setLatestSeenOffset`). The trigger cannot be known: `Trigger.Once`, and
`Trigger.AvailableNow`, which these versions carry out as one micro-batch, call the reader as any
other does. So each micro-batch has all records, and limits are refused (`versions`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.micro_batches import MicroBatchReader, OffsetsJson
from fairlead_kafka.spark.offsets import OffsetsByPartition, from_offsets_json, offsets_json
from fairlead_kafka.spark.options import ReadOptions


@errors_first
class UnlimitedStreamReader(MicroBatchReader):
    """Micro-batches of Kafka topics without limits, for Spark before 4.2: each has all records that
    are there."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._position: OffsetsByPartition | None = None
        """The end of the last micro-batch; None: a new query, which has had none."""

    def latestOffset(self) -> OffsetsJson:  # type: ignore[override]  # noqa: N802
        """The end of the next micro-batch. All records before its beginning are processed."""
        begins = self.planner.begin() if self._position is None else self._position
        self.commit_offsets(begins)
        self._position = self.planner.advance(begins, everything=True)
        return offsets_json(self._position)

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Spark's input partitions: the ranges of offsets of each task of a micro-batch."""
        self._position = from_offsets_json(end)
        return super().partitions(start, end)
