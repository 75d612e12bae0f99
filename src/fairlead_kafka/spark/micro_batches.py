"""The base class of the stream readers for all versions of Spark: it implements Spark's API by
`stream_planning`.

One object plans in a process beside the driver; copies of it read on executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed, TimedOut
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.offsets import OffsetsByPartition, from_offsets_json, offsets_json
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reading import TaskRanges, read_task
from fairlead_kafka.spark.stream_planning import StreamPlanner
from fairlead_kafka.spark.survey import Survey
from fairlead_kafka.spark.tasks import plan_tasks
from fairlead_kafka.spark.volume import Volume

LOGGER = GuardedLogger("fairlead_kafka.spark")
OffsetsJson = dict[str, dict[str, int]]


@errors_first
class MicroBatchReader(DataSourceStreamReader):
    """Base of the readers of micro-batches of Kafka topics. Subclasses say where the next one
    ends."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self._schema = schema
        self.survey = Survey(options)
        self._volume = Volume(self.survey.look)
        self.planner = StreamPlanner(options, self.survey, self._volume)
        self._committed: OffsetsByPartition = {}

    def initialOffset(self) -> OffsetsJson:  # noqa: N802
        """Offsets at which a new query begins.

        `{}` if they depend on when this is called; the first micro-batch is empty then.
        """
        return offsets_json(self.planner.begin())

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Spark's input partitions: the ranges of offsets of each task of a micro-batch."""
        ranges = self.planner.ranges(from_offsets_json(start), from_offsets_json(end))
        return plan_tasks(ranges, self.options, self._volume)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of a task as Arrow record batches; called on an executor."""
        if isinstance(partition, TaskRanges):
            yield from read_task(self.options, self._schema, partition.ranges)

    def commit(self, end: OffsetsJson) -> None:
        """Called when Spark has processed all records before `end`: commits these offsets to the
        group, if `commitOffsets` asks for it."""
        self.commit_offsets(from_offsets_json(end))

    def stop(self) -> None:
        """Close the connections. Spark may end the process instead."""
        self.survey.close()

    def commit_offsets(self, offsets: OffsetsByPartition) -> None:
        """Commit offsets to the group, if `commitOffsets` asks for it. BrokerError if the group
        refuses them. A failure that may pass is logged: the next micro-batch commits again, and
        Spark's checkpoint alone counts."""
        if not self.options.commit_offsets or offsets == self._committed or not offsets:
            return
        try:
            self.survey.consumer.commit(offsets)
        except (BrokerError, ConnectionFailed, TimedOut) as error:
            if isinstance(error, BrokerError) and (
                error.code == ErrorCode.UNKNOWN_MEMBER_ID or not error.retriable
            ):
                group = self.options.client["group.id"]
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
