"""Fetch (1): record batches from an offset on, at once or when enough of them are there.

Versions 4-18, consumers and debugging clients alike. Topics by name up to 12, by id from 13 on. At
least one whole batch is given even above max_bytes (KIP-74), which is capped by the broker's
`fetch.max.bytes`, and by the memory that readers who do not read leave it. Fetch sessions (KIP-227,
from 7 on) are in `broker.fetch_sessions`: a session's fetch names, and is answered, only what
changed. With isolation level 1 (read_committed) nothing beyond the last stable offset is given, and
the aborted transactions among what is given are listed, by first offset. A damaged batch is never
given: batches before it are, and a fetch at the damaged batch gets CORRUPT_MESSAGE for that
partition alone (KAFKA_STORAGE_ERROR, if the file cannot be read).

A consumer above its consumer_byte_rate or request_percentage gets an answer without partitions that
says for how long to wait. No answer is larger than it could be given after the longest wait, but
for a single batch; one that is larger is never given, as in Kafka.

From 11 on a consumer may read from any replica, up to the high watermark that it knows (KIP-392).
If `replica.selector.class` is Kafka's `RackAwareReplicaSelector` and the consumer names its rack, a
leader elsewhere sends it to the replica in sync there that has most. Fetches of followers in
Kafka's protocol (replica id >= 0) are refused with NOT_LEADER_OR_FOLLOWER per partition: our
brokers follow each other on streams of their own (`replication`).

Needs READ on each topic, and of a follower CLUSTER_ACTION on the cluster:
TOPIC_AUTHORIZATION_FAILED for each partition, whether it is there or not; an id that is not there
is UNKNOWN_TOPIC_ID. The rights are checked again for each answer, so a session whose right is
revoked gets an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.fetch_sessions import FINAL_EPOCH, FULL_EPOCH, NO_SESSION, FetchSession, Wanted
from fairlead_kafka.broker.log import Location, Partition, ReadBatch, readable
from fairlead_kafka.broker.read_replica import THIS_ONE, preferred_replica
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import FetchRequest, FetchResponse

_Topic = FetchResponse.FetchableTopicResponse
_Row = FetchResponse.PartitionData
_Leader = FetchResponse.LeaderIdAndEpoch
_Endpoint = FetchResponse.NodeEndpoint

_NAMES_UNTIL_VERSION = 12
_ANY_REPLICA_FROM_VERSION = 11
_MANY = 8
_SMALL_BATCH_BYTES = 4096
_CONSUMER = -1
_READ_COMMITTED = 1
_DEBUGGER = -2


class _Planned(NamedTuple):
    """The answer planned for one partition."""

    want: Wanted
    row: _Row
    partition: Partition | None
    new: bool
    """The row has records, or says something other than watermarks."""
    exhausted: bool
    """There is nothing more to read for now."""


_REFUSED_EARLY = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""Errors that Kafka answers before it looks at any log: the list of aborted transactions is then
empty, and not null."""


@dataclass(slots=True)
class _Plan:
    """The answer to a Fetch as it would be now: rows without records, and where in the log the
    records lie."""

    rows: list[_Planned]
    locations: list[Location]
    counts: list[tuple[_Row, int]]
    """(row, how many of the locations are its own), in order."""
    size_bytes: int
    final: bool
    """There is an error, a diverging epoch or another replica to go to, which is answered without
    waiting."""
    leaders: list[int]
    """Node ids of the leaders that rows name."""


@serves(ApiKey.FETCH, versions=(4, 18))
def fetch(broker: Services, request: Request[FetchRequest], session: Requester, reply: Reply) -> None:
    """Serve Fetch: answer now if there is enough to read, an error, or no time to wait; else once
    there is."""
    message = request.message
    try:
        wanted = broker.fetch_sessions.of(message, by_id=request.version > _NAMES_UNTIL_VERSION)
    except BrokerError as error:
        reply(FetchResponse(throttle_time_ms=0, error_code=error.code, session_id=NO_SESSION, responses=[]))
        return
    waiting = _Fetch(broker, request, wanted, session, reply)
    plan = waiting.plan()
    if message.max_wait_ms <= 0 or not wanted.wants or plan.final or plan.size_bytes >= waiting.min_bytes:
        waiting.answer(plan)
    else:
        waiting.park(plan)


class _Fetch:
    """One Fetch request, perhaps waiting in the purgatory."""

    def __init__(
        self,
        broker: Services,
        request: Request[FetchRequest],
        wanted: FetchSession,
        session: Requester,
        reply: Reply,
    ) -> None:
        self._broker = broker
        self._message = request.message
        self._wanted = wanted
        self._session = session
        self._reply = reply
        self._full = request.message.session_epoch in (FULL_EPOCH, FINAL_EPOCH)
        self._any_replica = request.version >= _ANY_REPLICA_FROM_VERSION
        self._committed = request.message.isolation_level == _READ_COMMITTED
        self._available: dict[Wanted, int] = {}
        self._counted_bytes = 0
        self._most_bytes: int = min(request.message.max_bytes, broker.settings["fetch.max.bytes"])
        self._toll = session.toll
        granted_bytes = None if self._toll is None else broker.quotas.fetch_max_bytes(self._toll)
        if granted_bytes is not None:
            self._most_bytes = min(self._most_bytes, granted_bytes)
        self.min_bytes: int = (
            request.message.min_bytes
            if granted_bytes is None
            else min(request.message.min_bytes, granted_bytes)
        )
        """Bytes of batches that are enough to be answered at once."""
        self.owner = broker.guard.owner
        """The request."""

    # --- What would be answered now

    def plan(self) -> _Plan:
        """Choose batches for every partition that may have new records, in order, within the
        request's limits."""
        plan = _Plan([], [], [], 0, False, [])
        room_bytes = min(self._most_bytes, self._broker.clients.answer_room_bytes)
        for want in list(self._wanted.wants.values() if self._full else self._wanted.ready):
            plan.rows.append(self._plan_partition(plan, want, room_bytes - plan.size_bytes))
        return plan

    def _plan_partition(self, plan: _Plan, want: Wanted, room_bytes: int) -> _Planned:
        data = want.data
        topic = self._topic(want)
        partition = self._find(want, topic)
        if isinstance(partition, int):
            refused = self._refuse(plan, want, None, partition)
            if partition in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                leader, epoch = self._broker.partitions.leader_hint(topic, data.partition)
                refused.row.current_leader = _Leader(leader_id=leader, leader_epoch=epoch)
                plan.leaders.append(leader)
            return refused
        if self._wanted.session_id != NO_SESSION:
            self._wanted.watch(want, partition)
        offset = data.fetch_offset
        if offset < partition.log_start or (offset > partition.log_end and data.last_fetched_epoch < 0):
            # As Kafka's `KafkaApis`: unknown watermarks with OFFSET_OUT_OF_RANGE, so that nobody
            # trusts them. A reader that names the epoch of what it read is told instead where a log
            # that ends before has parted from that (`Partition.readRecords`).
            return self._refuse(plan, want, partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        row = _row(data.partition, ErrorCode.NONE, partition.high_watermark, partition.log_start)
        row.last_stable_offset = partition.last_stable_offset
        if self._committed:
            row.aborted_transactions = []
        if data.last_fetched_epoch >= 0:
            epoch = self._broker.partitions.leader_epoch(partition)
            known_epoch, end_offset = partition.epochs.end_offset(
                data.last_fetched_epoch, epoch, partition.log_end
            )
            if (
                known_epoch < 0
            ):  # it is older or newer than all that is known here: see `ReplicaManager.readFromLog`
                return self._refuse(plan, want, partition, ErrorCode.OFFSET_OUT_OF_RANGE)
            if known_epoch < data.last_fetched_epoch or end_offset < offset:
                row.diverging_epoch = FetchResponse.EpochEndOffset(epoch=known_epoch, end_offset=end_offset)
                plan.final = True
                return _Planned(want, row, partition, True, False)
        if self._any_replica:
            row.preferred_read_replica = preferred_replica(
                self._broker, partition, self._message.rack_id, offset
            )
        if row.preferred_read_replica != THIS_ONE:
            plan.final = True
            return _Planned(want, row, partition, True, False)
        return self._choose(plan, _Planned(want, row, partition, False, True), partition, room_bytes)

    def _choose(self, plan: _Plan, planned: _Planned, partition: Partition, room_bytes: int) -> _Planned:
        """The partition's part of the plan, with batches from the fetch offset on, as many as fit
        into `room_bytes`; the first batch of an answer in any case."""
        data, limit = planned.want.data, self._limit(partition)
        if data.fetch_offset >= limit:
            return planned
        if room_bytes <= 0 and plan.locations:
            return planned._replace(exhausted=False)
        limit_bytes = min(room_bytes, data.partition_max_bytes)
        chosen = partition.select(data.fetch_offset, limit, limit_bytes, at_least_one=not plan.locations)
        if chosen:
            if self._committed:
                planned.row.aborted_transactions = _aborted(partition, data.fetch_offset, len(chosen))
            plan.counts.append((planned.row, len(chosen)))
            plan.locations.extend(chosen)
            plan.size_bytes += sum(location.size_bytes for location in chosen)
        return planned._replace(new=bool(chosen), exhausted=False)

    def _refuse(self, plan: _Plan, want: Wanted, partition: Partition | None, code: int) -> _Planned:
        """The part of the plan for a partition that cannot be read; the answer is then sent without
        waiting."""
        plan.final = True
        row = _row(want.data.partition, code, -1, -1)
        if code in _REFUSED_EARLY:
            row.aborted_transactions = []  # as Kafka's `FetchResponse.partitionResponse`
        return _Planned(want, row, partition, True, False)

    def _limit(self, partition: Partition) -> int:
        """The offset at which reading ends: the high watermark, or for read_committed the last
        stable offset."""
        return partition.last_stable_offset if self._committed else partition.high_watermark

    def _topic(self, want: Wanted) -> TopicImage | None:
        image = self._broker.controller.image
        asked = want.topic
        return image.topics_by_id.get(asked) if isinstance(asked, UUID) else image.topics.get(asked)

    def _find(self, want: Wanted, topic: TopicImage | None) -> Partition | int:
        if topic is None and self._wanted.by_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if self._session.authorizer is not None and not self._may_read(want, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._follows():
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        data = want.data
        found = self._broker.partitions.find(topic, data.partition, data.current_leader_epoch)
        if found == ErrorCode.NOT_LEADER_OR_FOLLOWER and self._any_replica:
            found = self._broker.partitions.find_followed(topic, data.partition)
        return found

    def _follows(self) -> bool:
        """True if the request says that it comes from a follower."""
        return (
            self._message.replica_id not in (_CONSUMER, _DEBUGGER)
            or self._message.replica_state.replica_id != _CONSUMER
        )

    def _may_read(self, want: Wanted, topic: TopicImage | None) -> bool:
        if self._follows():
            return may_cluster(self._session, AclOperation.CLUSTER_ACTION)
        name = str(want.topic) if topic is None else topic.name
        return self._session.may(AclOperation.READ, AclResourceType.TOPIC, name)

    # --- Answering

    def answer(self, plan: _Plan) -> None:
        """Read the planned batches and reply."""
        wait_ms = 0 if self._toll is None else self._broker.quotas.fetch_wait_ms(self._toll, plan.size_bytes)
        if wait_ms:
            self._put_off(wait_ms)
            return
        answered = self._wanted.answered
        said = [one for one in plan.rows if answered(one.want, one.row, one.new, one.exhausted) or self._full]

        def read(found: list[ReadBatch]) -> None:
            position = 0
            for row, count in plan.counts:
                batches, error = readable(found[position : position + count])
                position += count
                row.__dict__["records"] = _joined(batches)  # or a list, which no reader gets
                if not batches:  # else the next fetch begins with what could not be read
                    row.error_code = error
            self._send(said, plan.leaders)

        self._broker.logs.read(plan.locations, read)

    def _put_off(self, wait_ms: int) -> None:
        """Reply with no records, and with the milliseconds that the client must wait (KIP-219). No
        fetch session is begun; an incremental one stays as it was before the request."""
        session_id = self._wanted.session_id
        if self._message.session_epoch == FULL_EPOCH and session_id != NO_SESSION:
            self._broker.fetch_sessions.end(session_id)
            session_id = NO_SESSION
        self._reply(
            FetchResponse(
                throttle_time_ms=wait_ms, error_code=ErrorCode.NONE, session_id=session_id, responses=[]
            )
        )

    def _send(self, said: list[_Planned], leaders: list[int]) -> None:
        by_topic: dict[str | UUID, list[_Row]] = {}
        for planned in said:
            by_topic.setdefault(planned.want.topic, []).append(planned.row)
        responses = [
            _Topic(topic_id=topic, partitions=rows)
            if isinstance(topic, UUID)
            else _Topic(topic=topic, partitions=rows)
            for topic, rows in by_topic.items()
        ]
        answer = FetchResponse(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            session_id=self._wanted.session_id,
            responses=responses,
        )
        if leaders:
            answer.node_endpoints = [
                _Endpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
                for node in self._broker.partitions.endpoints(leaders, self._session.listener)
            ]
        self._reply(answer)

    # --- Waiting

    def park(self, plan: _Plan) -> None:
        """Wait in the purgatory until there are min_bytes, or max_wait_ms have passed."""
        broker, wanted = self._broker, self._wanted
        if wanted.waiting is not None:
            wanted.waiting.complete()
        wanted.waiting = self
        self._timer = broker.call_at(broker.now_ns + ms_to_ns(self._message.max_wait_ms), self.complete)
        self._session.on_close(self._leave)
        for planned in plan.rows:
            if planned.partition is not None:
                wanted.watch(planned.want, planned.partition)
                self._count(planned.partition, planned.want)

    def advanced(self, partition: Partition, want: Wanted) -> None:
        """Called when more of a partition can be read: answer if there is enough now."""
        self._count(partition, want)
        if self._counted_bytes >= self.min_bytes:
            self.complete()

    def _count(self, partition: Partition, want: Wanted) -> None:
        data = want.data
        available_bytes = partition.available_bytes(data.fetch_offset, self._limit(partition), self.min_bytes)
        available_bytes = min(data.partition_max_bytes, available_bytes)
        self._counted_bytes += available_bytes - self._available.get(want, 0)
        self._available[want] = available_bytes

    def complete(self) -> None:
        """Answer with the records that there are: the time to wait is over."""
        self._leave()
        self.answer(self.plan())

    def _leave(self) -> None:
        self._timer.cancel()
        self._session.forget_on_close(self._leave)
        if self._wanted.waiting is self:
            self._wanted.waiting = None
        if self._wanted.session_id == NO_SESSION:
            self._wanted.end()


def _joined(batches: list[Buffer]) -> Buffer | list[Buffer]:
    """Many small batches as one buffer: copying them costs less than sending each on its own."""
    if len(batches) > _MANY and sum(map(len, batches)) < len(batches) * _SMALL_BATCH_BYTES:
        return b"".join(batches)
    return batches


def _aborted(partition: Partition, offset: int, batch_count: int) -> list[FetchResponse.AbortedTransaction]:
    """The aborted transactions in `batch_count` batches from `offset` on."""
    index = partition.index
    stop = index.last_offset(index.first_reaching(offset) + batch_count - 1) + 1
    return [
        FetchResponse.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in partition.aborted(offset, stop)
    ]


def _row(number: int, error_code: int, high_watermark: int, log_start: int) -> _Row:
    return _Row(
        partition_index=number,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=log_start,
        aborted_transactions=None,
        preferred_read_replica=THIS_ONE,
        records=b"",
    )
