"""A share group on a `FakeCluster` in virtual time: who has which record, for how long, and how
often it was delivered. It believes nobody: what is acknowledged without a lock is refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.wire import ApiKey, Message, Request
from tests.support.fake_admin_answers import FakeLog
from tests.support.fake_fetch_broker import FakeCluster, coordinator_answer

GROUP = "share"
INTERVAL_MS = 200
AVAILABLE, ACQUIRED, DONE = "available", "acquired", "done"
ENDS = {0: "gap", 1: "accept", 2: "release", 3: "reject", 4: "renew"}
_VERSIONS = {
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
}


@dataclass
class Lock:
    """State of one record."""

    state: str = AVAILABLE
    member: str = ""
    until_ns: int = 0
    count: int = 0


class Happened(NamedTuple):
    """One thing that happened to a record; `count`: its delivery count then."""

    what: str
    partition: TopicPartition
    offset: int
    count: int


class FakeShareGroup:
    """Group `GROUP`. Codes to refuse with are put into `cluster.errors[api, GROUP or partition]`,
    those of acknowledgements that come with a fetch into `cluster.errors["acks", partition]`."""

    def __init__(self, cluster: FakeCluster, lock_ms: int = 30_000) -> None:
        self.cluster = cluster
        self.lock_ms = lock_ms
        self.node_id = 1
        self.epoch = 1
        self.members: dict[str, int] = {}
        self.topics: dict[str, list[str]] = {}
        self.locks: dict[TopicPartition, dict[int, Lock]] = {}
        self.sessions: dict[tuple[int, str], tuple[int, set[TopicPartition]]] = {}
        """(node, member) → epoch of its last request, and its partitions."""
        self.history: list[Happened] = []
        self._heard: dict[int, tuple[Request, int, Message | None]] = {}
        cluster.versions.update(_VERSIONS)
        for node in cluster.nodes:
            node.serve(ApiKey.FIND_COORDINATOR, self._find)
            node.serve(ApiKey.SHARE_GROUP_HEARTBEAT, partial(self._heartbeat, node.node_id))
            node.serve(ApiKey.SHARE_FETCH, partial(self._fetch, node.node_id))
            node.serve(ApiKey.SHARE_ACKNOWLEDGE, partial(self._acknowledge, node.node_id))

    # What tests look at

    def state(self, partition: TopicPartition) -> str:
        """A letter for each record: a(vailable), (ac)q(uired), d(one)."""
        letters = {AVAILABLE: "a", ACQUIRED: "q", DONE: "d"}
        return "".join(letters[lock.state] for _, lock in sorted(self._locks(partition).items()))

    def happened(self, *whats: str) -> list[tuple[int, int]]:
        """(offset, delivery count) of what happened, in order."""
        return [(each.offset, each.count) for each in self.history if each.what in whats]

    def hang_up(self, node_id: int) -> None:
        """Close a broker's connections; with them its sessions end."""
        for node, member in [key for key in self.sessions if key[0] == node_id]:
            self._end(node, member)
        self.cluster.nodes[node_id - 1].hang_up()

    def move(self, partition: TopicPartition, leader: int) -> None:
        """Give a partition another leader, which knows who is done, and frees all locks."""
        if self.cluster.log(*partition).leader == leader:
            return
        for offset, lock in self._locks(partition).items():
            if lock.state == ACQUIRED:
                self._free(partition, offset, lock, "freed")
        self.cluster.move(partition.topic, partition.partition, leader)

    # The coordinator

    def _find(self, request: Request) -> Message:
        return coordinator_answer(GROUP, self.node_id)

    def _heartbeat(self, node_id: int, request: Request) -> Message:
        message = request.message
        code = self.cluster.error(ApiKey.SHARE_GROUP_HEARTBEAT, GROUP)
        member = message.member_id
        if node_id != self.node_id:
            code = ErrorCode.NOT_COORDINATOR
        elif not code and message.member_epoch > 0 and message.member_epoch != self.members.get(member):
            code = ErrorCode.FENCED_MEMBER_EPOCH
        assignment = None
        epoch = message.member_epoch
        if not code and epoch < 0:
            self.members.pop(member, None)
        elif not code:
            if message.subscribed_topic_names is not None:
                self.topics[member] = list(message.subscribed_topic_names)
                self.epoch += 1
                topics = {
                    name: self.cluster.topics[name]
                    for name in self.topics[member]
                    if name in self.cluster.topics
                }
                rows = [
                    Message(topic_id=topic.topic_id, partitions=list(range(len(topic.logs))))
                    for topic in topics.values()
                ]
                assignment = Message(topic_partitions=rows)
            epoch = self.members[member] = self.epoch if assignment is not None else epoch
        return Message(
            throttle_time_ms=0,
            error_code=code,
            error_message="says the broker" if code else None,
            member_id=member,
            member_epoch=0 if code else epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment,
        )

    # The brokers

    def _now_ns(self) -> int:
        return self.cluster.host.now_ns()

    def _locks(self, partition: TopicPartition) -> dict[int, Lock]:
        """The records of a partition, after locks that are over have ended."""
        log = self.cluster.log(*partition)
        locks = self.locks.setdefault(partition, {})
        for offset in range(len(locks), log.end):
            locks[offset] = Lock()
        for offset, lock in locks.items():
            if lock.state == ACQUIRED and lock.until_ns <= self._now_ns():
                self._free(partition, offset, lock, "expired")
        return locks

    def _free(self, partition: TopicPartition, offset: int, lock: Lock, why: str) -> None:
        self.history.append(Happened(why, partition, offset, lock.count))
        lock.state, lock.member = AVAILABLE, ""

    def _end(self, node_id: int, member: str) -> None:
        """End a session: all that it has locked is free."""
        self.sessions.pop((node_id, member), None)
        for partition in list(self.locks):
            if self.cluster.log(*partition).leader == node_id:
                for offset, lock in self._locks(partition).items():
                    if lock.state == ACQUIRED and lock.member == member:
                        self._free(partition, offset, lock, "freed")

    def _session(self, node_id: int, request: Request) -> int:
        """The error code of a request's epoch; note the next one."""
        message = request.message
        key, epoch = (node_id, message.member_id), message.share_session_epoch
        injected = self.cluster.error(ApiKey(request.api_key), GROUP)
        if injected:
            return injected
        if epoch == 0 and request.api_key == ApiKey.SHARE_FETCH:
            assert not any(
                row.acknowledgement_batches for topic in message.topics for row in topic.partitions
            )
            self.sessions[key] = (0, set())
            return 0
        if key not in self.sessions:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        last, partitions = self.sessions[key]
        if epoch not in (-1, last + 1):
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        self.sessions[key] = (last + 1, partitions)
        return 0

    def _name(self, topic_id: object) -> str:
        return next(name for name, topic in self.cluster.topics.items() if topic.topic_id == topic_id)

    def _settle(self, node_id: int, partition: TopicPartition, member: str, batches: list[Message]) -> int:
        """Do as the acknowledgements of one partition say, all or none; the error code."""
        code = self.cluster.error("acks", partition)  # type: ignore[arg-type]
        if code:
            return code
        if self.cluster.log(*partition).leader != node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        locks = self._locks(partition)
        rows: list[tuple[int, int]] = []
        for batch in batches:
            offsets = range(batch.first_offset, batch.last_offset + 1)
            types = batch.acknowledge_types * (len(offsets) if len(batch.acknowledge_types) == 1 else 1)
            rows += zip(offsets, types, strict=True)
        assert len({offset for offset, _ in rows}) == len(rows), f"{partition}: {rows} has an offset twice"
        if any(locks[offset].state != ACQUIRED or locks[offset].member != member for offset, _ in rows):
            return ErrorCode.INVALID_RECORD_STATE
        for offset, kind in rows:
            lock = locks[offset]
            self.history.append(Happened(ENDS[kind], partition, offset, lock.count))
            if kind == 4:
                lock.until_ns = self._now_ns() + ms_to_ns(self.lock_ms)
            else:
                lock.state, lock.member = (AVAILABLE if kind == 2 else DONE), ""
        return 0

    def _acknowledge(self, node_id: int, request: Request) -> Message:
        message = request.message
        code = self._session(node_id, request)
        topics = []
        for topic in message.topics if not code else ():
            rows = []
            for row in topic.partitions:
                partition = TopicPartition(self._name(topic.topic_id), row.partition_index)
                renews = any(4 in batch.acknowledge_types for batch in row.acknowledgement_batches)
                assert not renews or message.is_renew_ack
                error = self._settle(node_id, partition, message.member_id, row.acknowledgement_batches)
                rows.append(_row(row.partition_index, error, self.cluster.log(*partition)))
            topics.append(Message(topic_id=topic.topic_id, partitions=rows))
        if not code and message.share_session_epoch == -1:
            self._end(node_id, message.member_id)
        return Message(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            acquisition_lock_timeout_ms=self.lock_ms,
            responses=topics,
            node_endpoints=[],
        )

    def _fetch(self, node_id: int, request: Request) -> Message | None:
        """The answer to a ShareFetch; None while it waits for records."""
        _, since_ns, answer = self._heard.get(id(request), (request, self._now_ns(), None))
        if answer is None:
            answer = self._first_look(node_id, request)
            self._heard[id(request)] = (request, since_ns, answer)
        if answer.error_code:
            return self._heard.pop(id(request))[2]
        self._fill(node_id, request, answer)
        found = any(row.records or row.error_code for topic in answer.responses for row in topic.partitions)
        if not found and self._now_ns() < since_ns + ms_to_ns(request.message.max_wait_ms):
            return None
        return self._heard.pop(id(request))[2]

    def _first_look(self, node_id: int, request: Request) -> Message:
        """Session and acknowledgements of a fetch."""
        message = request.message
        code = self._session(node_id, request)
        answer = Message(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            acquisition_lock_timeout_ms=self.lock_ms,
            responses=[],
            node_endpoints=[],
        )
        if code:
            return answer
        _, partitions = self.sessions[node_id, message.member_id]
        for topic in message.topics:
            for row in topic.partitions:
                partition = TopicPartition(self._name(topic.topic_id), row.partition_index)
                partitions.add(partition)
                if row.acknowledgement_batches:
                    error = self._settle(node_id, partition, message.member_id, row.acknowledgement_batches)
                    self._row_of(answer, partition).acknowledge_error_code = error
        for topic in message.forgotten_topics_data:
            for number in topic.partitions:
                partitions.discard(TopicPartition(self._name(topic.topic_id), number))
        return answer

    def _row_of(self, answer: Message, partition: TopicPartition) -> Message:
        """The row of a partition in an answer, made if it is not there."""
        topic_id = self.cluster.topics[partition.topic].topic_id
        for topic in answer.responses:
            for row in topic.partitions:
                if (topic.topic_id, row.partition_index) == (topic_id, partition.partition):
                    return row  # type: ignore[no-any-return]
        row = _fetched_row(partition.partition, self.cluster.log(*partition))
        answer.responses.append(Message(topic_id=topic_id, partitions=[row]))
        return row

    def _fill(self, node_id: int, request: Request, answer: Message) -> None:
        """Acquire records for the member, whole batches, until there are `max_records`."""
        message = request.message
        _, partitions = self.sessions.get((node_id, message.member_id), (0, set()))
        room = message.max_records
        for partition in sorted(partitions):
            log = self.cluster.log(*partition)
            code = self.cluster.error(ApiKey.SHARE_FETCH, partition)
            if log.leader != node_id:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if code:
                self._row_of(answer, partition).error_code = code
                continue
            locks = self._locks(partition)
            data, acquired = b"", []
            for first, last, batch in log.batches:
                mine = [offset for offset in range(first, last + 1) if locks[offset].state == AVAILABLE]
                if message.share_acquire_mode == 1:
                    mine = mine[:room]
                if not mine or room <= 0:
                    continue
                data += batch
                room -= len(mine)
                for offset in mine:
                    lock = locks[offset]
                    lock.state, lock.member, lock.count = ACQUIRED, message.member_id, lock.count + 1
                    lock.until_ns = self._now_ns() + ms_to_ns(self.lock_ms)
                    self.history.append(Happened("acquired", partition, offset, lock.count))
                    acquired.append(
                        Message(first_offset=offset, last_offset=offset, delivery_count=lock.count)
                    )
            if data:
                row = self._row_of(answer, partition)
                row.records, row.acquired_records = data, acquired


def _row(number: int, code: int, log: FakeLog) -> Message:
    """The row of a partition in the answer to acknowledgements."""
    leader = Message(leader_id=log.leader, leader_epoch=log.epoch)
    return Message(partition_index=number, error_code=code, error_message=None, current_leader=leader)


def _fetched_row(number: int, log: FakeLog) -> Message:
    """The row of a partition in the answer to a fetch, without records."""
    row = _row(number, 0, log)
    row.acknowledge_error_code, row.acknowledge_error_message = 0, None
    row.records, row.acquired_records = b"", []
    return row
