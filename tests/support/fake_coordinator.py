"""A coordinator of KIP-848 that assigns to its one member what a test tells it to, on a
`FakeCluster` in virtual time."""

from __future__ import annotations

from functools import partial

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.groups.heartbeats import SOON_ANSWERS, beat_delay_ms
from fairlead_kafka.wire import ApiKey, Message, Request
from tests.support.fake_fetch_broker import FakeCluster, coordinator_answer

GROUP = "g"
INTERVAL_MS = 500
SETTLED_MS = beat_delay_ms(INTERVAL_MS, 0) * (SOON_ANSWERS + 1)
"""So long after a change a member is back to one heartbeat in an interval."""
_IDS_FROM_VERSION = 10
"""Of OffsetCommit and of OffsetFetch."""
_VERSIONS = {
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
}


class FakeCoordinator:
    """Group `GROUP`: its member's epoch, what it is to read, what it says it owns, its offsets.

    Codes to refuse with are put into `cluster.errors[api, GROUP]`.
    """

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.node_id = 1
        self.epoch = 1
        self.member: int | None = None
        """Epoch that the member was told; None: there is none."""
        self.target: dict[str, list[int]] = {}
        self.owned: list[TopicPartition] | None = None
        """What the member said last that it owns."""
        self.committed: dict[TopicPartition, int] = {}
        self._told = False
        cluster.versions.update(_VERSIONS)
        for node in cluster.nodes:
            node.serve(ApiKey.FIND_COORDINATOR, self._find)
            node.serve(ApiKey.CONSUMER_GROUP_HEARTBEAT, partial(self._heartbeat, node.node_id))
            node.serve(ApiKey.OFFSET_COMMIT, self._commit)
            node.serve(ApiKey.OFFSET_FETCH, self._fetch)

    def assign(self, **target: list[int]) -> None:
        """Tell the member in its next heartbeat to read these partitions, in a new epoch."""
        self.epoch += 1
        self.target, self._told = target, False

    def beats(self) -> list[Message]:
        """The heartbeats so far."""
        return [request.message for request in self.cluster.asked(ApiKey.CONSUMER_GROUP_HEARTBEAT)]

    def fail(self, api_key: ApiKey, *codes: int) -> None:
        """Refuse the next requests of this kind."""
        self.cluster.errors[api_key, GROUP] += codes

    def _find(self, request: Request) -> Message:
        return coordinator_answer(GROUP, self.node_id)

    def _heartbeat(self, node_id: int, request: Request) -> Message:
        message = request.message
        code = self.cluster.error(ApiKey.CONSUMER_GROUP_HEARTBEAT, GROUP)
        if node_id != self.node_id:
            code = ErrorCode.NOT_COORDINATOR
        elif not code and message.member_epoch > 0 and message.member_epoch != self.member:
            code = ErrorCode.FENCED_MEMBER_EPOCH
        if code:
            return self._beaten(message, code, 0, None)
        if message.member_epoch < 0:
            self.member = None
            return self._beaten(message, 0, message.member_epoch, None)
        self.member = self.epoch
        if message.topic_partitions is not None:
            self.owned = self._named(message.topic_partitions)
        whole = message.member_epoch == 0 or message.rebalance_timeout_ms != -1
        assignment = None
        if whole or not self._told:
            topics = self.cluster.topics
            rows = [
                Message(topic_id=topics[name].topic_id, partitions=numbers)
                for name, numbers in self.target.items()
            ]
            assignment = Message(topic_partitions=rows)
        self._told = True
        return self._beaten(message, 0, self.epoch, assignment)

    def _beaten(self, message: Message, code: int, epoch: int, assignment: Message | None) -> Message:
        return Message(
            throttle_time_ms=0,
            error_code=code,
            error_message="says the broker" if code else None,
            member_id=message.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment,
        )

    def _named(self, rows: list[Message]) -> list[TopicPartition]:
        names = {topic.topic_id: name for name, topic in self.cluster.topics.items()}
        return sorted(
            TopicPartition(names[row.topic_id], number) for row in rows for number in row.partitions
        )

    def _name(self, request: Request, topic: Message) -> str:
        """The name of a topic that is committed or asked for; empty for an id that is not there."""
        if request.version < _IDS_FROM_VERSION:
            return topic.name
        names = {known.topic_id: name for name, known in self.cluster.topics.items()}
        return names.get(topic.topic_id, "")

    def _problem(self, api_key: ApiKey, epoch: int) -> int:
        code = self.cluster.error(api_key, GROUP)
        stale = self.member is not None and epoch >= 0 and epoch != self.member
        return code or (ErrorCode.STALE_MEMBER_EPOCH if stale else 0)

    def _commit(self, request: Request) -> Message:
        message = request.message
        code = self._problem(ApiKey.OFFSET_COMMIT, message.generation_id_or_member_epoch)
        topics = []
        for topic in message.topics:
            name = self._name(request, topic)
            error = code or (0 if name else ErrorCode.UNKNOWN_TOPIC_ID)
            rows = [
                Message(partition_index=row.partition_index, error_code=error) for row in topic.partitions
            ]
            topics.append(Message(name=topic.name, topic_id=topic.topic_id, partitions=rows))
            for row in topic.partitions if not error else ():
                self.committed[TopicPartition(name, row.partition_index)] = row.committed_offset
        return Message(throttle_time_ms=0, topics=topics)

    def _fetch(self, request: Request) -> Message:
        groups = []
        for group in request.message.groups:
            code = self._problem(ApiKey.OFFSET_FETCH, group.member_epoch)
            topics = []
            for topic in group.topics if not code else ():
                name = self._name(request, topic)
                rows = [
                    Message(
                        partition_index=number,
                        committed_offset=self.committed.get(TopicPartition(name, number), -1),
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=0 if name else ErrorCode.UNKNOWN_TOPIC_ID,
                    )
                    for number in topic.partition_indexes
                ]
                topics.append(Message(name=topic.name, topic_id=topic.topic_id, partitions=rows))
            groups.append(Message(group_id=group.group_id, topics=topics, error_code=code))
        return Message(throttle_time_ms=0, groups=groups)
