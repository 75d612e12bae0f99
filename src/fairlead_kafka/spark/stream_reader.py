"""The stream reader for Spark 4.2 and newer, which pass the start of a micro-batch and limits."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.micro_batches import MicroBatchReader, OffsetsJson
from fairlead_kafka.spark.offsets import from_offsets_json, offsets_json


@errors_first
class FairleadStreamReader(MicroBatchReader, SupportsTriggerAvailableNow):
    """Micro-batches of Kafka topics, with the offsets of Spark's own Kafka connector: `{"topic":
    {"0": 23}}`, the next one to read."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One of the limits that are set, for Spark takes no two. Spark passes it back to
        `latestOffset`, except with `Trigger.Once`, which has no limits."""
        options = self.options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadAllAvailable() if options.min_offsets is None else ReadMinRows(options.min_offsets)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802
        """The end of the next micro-batch, within all the limits that are set. All records before
        `start` are processed."""
        begins = from_offsets_json(start)
        self.commit_offsets(begins)
        return offsets_json(self.planner.advance(begins, everything=isinstance(limit, ReadAllAvailable)))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Called for `Trigger.AvailableNow`: micro-batches read the records that are there now,
        within the limits, and then the query ends."""
        self.planner.until_now()

    def reportLatestOffset(self) -> OffsetsJson | None:  # noqa: N802
        """How far the logs reached when the last micro-batch was planned: for the query's
        progress."""
        return None if self.planner.seen is None else offsets_json(self.planner.seen.ends)
