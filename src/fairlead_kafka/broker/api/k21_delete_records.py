"""DeleteRecords (21): the records of a partition before an offset are gone; -1 means all that can
be read now.

Versions 0-2, served by the partition's leader. Refused: offsets beyond the high watermark
(OFFSET_OUT_OF_RANGE), internal topics (INVALID_TOPIC_EXCEPTION), topics that are only compacted
(POLICY_VIOLATION). The answer waits until every replica whose broker is alive has deleted them as
well, for `timeout_ms` at most: REQUEST_TIMED_OUT says that the records are gone for readers, and
that some replica still has them. `low_watermark` is the least start of those logs (Kafka's
`DelayedDeleteRecords`). Needs DELETE on each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there
or not).
"""

from __future__ import annotations

from collections.abc import Container

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.api.common import PendingParts
from fairlead_kafka.broker.api.rights import permitted
from fairlead_kafka.broker.controller import INTERNAL_TOPICS
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.replication import Led, Replicated
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteRecordsRequest, DeleteRecordsResponse

_Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
_Row = DeleteRecordsResponse.DeleteRecordsPartitionResult

_TO_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1


@serves(ApiKey.DELETE_RECORDS, versions=(0, 2))
def delete_records(
    broker: Services, request: Request[DeleteRecordsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteRecords: raise the log start of each partition, and answer once its replicas have
    followed."""
    names = (topic.name for topic in request.message.topics)
    deletion = _Deletion(broker, permitted(session, AclOperation.DELETE, AclResourceType.TOPIC, names), reply)
    topics = [
        _Topic(
            name=topic.name,
            partitions=[
                deletion.delete(topic.name, one.partition_index, one.offset) for one in topic.partitions
            ],
        )
        for topic in request.message.topics
    ]
    deletion.await_replicas(topics, request.message.timeout_ms)


class _Deletion:
    """One DeleteRecords request until its answer."""

    def __init__(self, broker: Services, deletable: Container[str | None], reply: Reply) -> None:
        self._broker = broker
        self._deletable = deletable
        self._reply = reply
        self._topics: list[_Topic] = []
        self._begun: list[tuple[Led, int, _Row]] = []
        self._waiting: list[tuple[Led, int, Replicated]] = []
        self._deadline: int | None = None

    def delete(self, topic: str, number: int, offset: int) -> _Row:
        """Delete the records before `offset` in a partition led here; returns its row of the
        answer."""
        row = _Row(partition_index=number, low_watermark=_NO_LOW_WATERMARK, error_code=ErrorCode.NONE)
        found = self._refusal(topic, number, offset)
        if isinstance(found, int):
            row.error_code = found
            return row
        partition, broker = found, self._broker
        start = partition.high_watermark if offset == _TO_HIGH_WATERMARK else offset
        if start > partition.log_start:
            broker.logs.move_start(partition, start)
            broker.purgatory.advanced(partition)
            broker.replication.start_moved(partition)
        self._begun.append((broker.replication.leading(partition), start, row))
        return row

    def _refusal(self, topic: str, number: int, offset: int) -> Partition | int:
        """The partition to delete in, or the error code for which nothing is deleted there."""
        broker = self._broker
        if topic not in self._deletable:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partition = (
            ErrorCode.INVALID_TOPIC_EXCEPTION if topic in INTERNAL_TOPICS else broker.log_of(topic, number)
        )
        if isinstance(partition, int):
            return partition
        if "delete" not in broker.controller.topic_settings(topic, broker.node_id)["cleanup.policy"]:
            return ErrorCode.POLICY_VIOLATION
        within = offset == _TO_HIGH_WATERMARK or 0 <= offset <= partition.high_watermark
        return partition if within else ErrorCode.OFFSET_OUT_OF_RANGE

    def await_replicas(self, topics: list[_Topic], timeout_ms: int) -> None:
        """Answer with the rows `topics` when all replicas have the new log start, or `timeout_ms`
        have passed."""
        broker = self._broker
        self._topics = topics
        parts_pending = PendingParts(self._answer)
        for led, start, row in self._begun:
            row.error_code = ErrorCode.REQUEST_TIMED_OUT  # what it is unless they follow in time
            parts_pending.begin()

            def followed(code: int, row: _Row = row) -> None:
                row.error_code = code
                parts_pending.done()

            reported = broker.guard.bind(followed)
            self._waiting.append((led, start, reported))
            broker.replication.when_deleted(led, start, reported)
        if any(row.error_code == ErrorCode.REQUEST_TIMED_OUT for _led, _start, row in self._begun):
            self._deadline = broker.deadlines.add(broker.now_ns + ms_to_ns(max(0, timeout_ms)), self._answer)
        parts_pending.done()

    def _answer(self) -> None:
        broker = self._broker
        if self._deadline is not None:
            broker.deadlines.cancel(self._deadline)
        waiting, self._waiting = self._waiting, []  # what waits holds this request
        for led, start, reported in waiting:
            led.deleting.forget(start, reported)
        for led, _start, row in self._begun:
            if broker.replication.holds(led):
                row.low_watermark = broker.replication.low_watermark(led)
        self._reply(DeleteRecordsResponse(throttle_time_ms=0, topics=self._topics))
