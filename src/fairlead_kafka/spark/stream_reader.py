"""The stream reader: Spark's API to `stream_planning`.

One object lives beside the driver and plans; copies of it read on executors.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed, TimedOut
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.offsets import OffsetsByPartition, from_offsets_json, offsets_json
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reading import TaskRanges, read_task
from fairlead_kafka.spark.stream_planning import StreamPlanner
from fairlead_kafka.spark.survey import Survey
from fairlead_kafka.spark.tasks import plan_tasks
from fairlead_kafka.spark.volume import Volume

LOGGER = logging.getLogger("fairlead_kafka.spark")
OffsetsJson = dict[str, dict[str, int]]


@errors_first
class FairleadStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches of Kafka topics, with the offsets of Spark's own Kafka connector: `{"topic":
    {"0": 23}}`, the next one to read."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._survey = Survey(options)
        self._volume = Volume(self._survey.look)
        self._planner = StreamPlanner(options, self._survey, self._volume)
        self._committed: OffsetsByPartition = {}

    def initialOffset(self) -> OffsetsJson:  # noqa: N802
        """Offsets at which a new query begins.

        `{}` if they depend on when it is asked, and then the first micro-batch is empty.
        """
        return offsets_json(self._planner.begin())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One of the limits that are set: Spark knows no two at once. It is a sign that this is no
        `Trigger.Once`, which has no limits."""
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        return ReadAllAvailable() if options.min_offsets is None else ReadMinRows(options.min_offsets)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802
        """The end of the next micro-batch, within all the limits that are set. What lies before
        `start` is processed."""
        begins = from_offsets_json(start)
        self._commit(begins)
        return offsets_json(self._planner.advance(begins, everything=isinstance(limit, ReadAllAvailable)))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is there now, within the limits, and then end."""
        self._planner.until_now()

    def reportLatestOffset(self) -> OffsetsJson | None:  # noqa: N802
        """How far the logs reached when the last micro-batch was planned: for the query's progress."""
        return None if self._planner.seen is None else offsets_json(self._planner.seen.ends)

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Spark's input partitions: the ranges of offsets of each task of a micro-batch."""
        ranges = self._planner.ranges(from_offsets_json(start), from_offsets_json(end))
        return plan_tasks(ranges, self._options, self._volume)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a task as Arrow record batches; on an executor."""
        if isinstance(partition, TaskRanges):
            yield from read_task(self._options, self._schema, partition.ranges)

    def commit(self, end: OffsetsJson) -> None:
        """Called when Spark has processed all before `end`: commits it to the group, if asked for."""
        self._commit(from_offsets_json(end))

    def stop(self) -> None:
        """Close the connections. Spark may end the process instead."""
        self._survey.close()

    def _commit(self, offsets: OffsetsByPartition) -> None:
        """Commits offsets to the group, if asked for. BrokerError if the group does not take them.

        Where it fails for a while the next micro-batch does it, for the checkpoint alone counts.
        """
        if not self._options.commit_offsets or offsets == self._committed or not offsets:
            return
        try:
            self._survey.consumer.commit(offsets)
        except (BrokerError, ConnectionFailed, TimedOut) as error:
            if isinstance(error, BrokerError) and (
                error.code == ErrorCode.UNKNOWN_MEMBER_ID or not error.retriable
            ):
                group = self._options.client["group.id"]
                why = (
                    "it has members of its own, so choose another"
                    if error.code == ErrorCode.UNKNOWN_MEMBER_ID
                    else str(error)
                )
                raise BrokerError(
                    error.code, f"commitOffsets: group {group} did not take them; {why}"
                ) from error
            LOGGER.warning("offsets were not committed, which the next micro-batch will: %s", error)
        else:
            self._committed = offsets
