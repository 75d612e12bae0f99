"""Fetching ahead of polls: one request under way per node, as far as its budget has room.

A request always asks for all fetchable partitions of its node. So no partition waits for the end of
another's long poll, and one budget per node (`fetch.max.bytes` of data that no poll has returned
yet) bounds memory. In a fetch session a request names only what changed (`fetch_session`). A
partition that gave data goes to the end of the line, as in Kafka's
`SubscriptionState.movePartitionToEnd`, so a broker that fills its answer from the front serves
everyone in turn.

Partitions are read at their leader, or at the replica that the leader prefers for `client.rack`
(KIP-392): for `metadata.max.age.ms`, and only as long as that one answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import DecodeError, UnsupportedVersion
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import (
    NO_LEADER,
    NO_LEADER_EPOCH,
    NO_OFFSET,
    NO_TOPIC_ID,
    Node,
    TopicPartition,
)
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.fetch_session import NO_SESSION, SESSION_ERRORS, Asked, FetchSession
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.consumer.partition import Chunk, PartitionState, Phase, end_of_batches
from fairlead_kafka.consumer.waiting import Waiting
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import OnDone
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.partition_offsets import ISOLATION_LEVELS, READ_COMMITTED
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import FetchRequest, FetchResponse

LAST_VERSION_WITH_NAMES = 12
"""From version 13 on, Fetch names topics by id alone (KIP-516)."""
Named = TypeVar("Named", FetchRequest.FetchTopic, FetchRequest.ForgottenTopic)
_REPORTED = frozenset({ErrorCode.CORRUPT_MESSAGE})
"""Codes that the table calls retriable, but the same bytes would be read again: the application has
to know."""


class Fetcher:
    """Sends fetch requests and collects chunks. Part of the consumer machine; all calls come from
    within its step."""

    def __init__(
        self,
        settings: Settings,
        network: Network,
        rng: Rng,
        recorder: Recorder,
        out_of_range: Callable[[PartitionState], None],
        truncated: Callable[[PartitionState, int, int], None],
    ) -> None:
        self._network = network
        self._isolation_level = ISOLATION_LEVELS[settings["isolation.level"]]
        self._recorder = recorder
        self._rng = rng
        self._out_of_range = out_of_range
        self._truncated = truncated
        self._max_wait_ms = settings["fetch.max.wait.ms"]
        self._min_bytes = settings["fetch.min.bytes"]
        self._max_bytes = settings["fetch.max.bytes"]
        self._partition_max_bytes = settings["max.partition.fetch.bytes"]
        self._timeout_ms = settings["request.timeout.ms"] + self._max_wait_ms
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        self._line: dict[TopicPartition, PartitionState] = {}
        self._by_node: dict[int, dict[TopicPartition, PartitionState]] = {}
        self._grouped_version: int | None = None
        self._resting: dict[TopicPartition, PartitionState] = {}
        self._rack = settings["client.rack"]
        self._replica_age_ns = ms_to_ns(settings["metadata.max.age.ms"])
        self._redirected: dict[TopicPartition, PartitionState] = {}
        """Partitions that are read at another replica than the leader."""
        self._sessions: dict[int, FetchSession] = {}
        self._under_way: set[int] = set()
        self.waiting = Waiting(self._partition_max_bytes)
        self.now_ns = 0
        """The time of this step; its owner sets it first."""

    def set_partitions(self, partitions: dict[TopicPartition, PartitionState]) -> None:
        """Fetch from exactly these partitions; chunks of others, and of older generations, are
        dropped."""
        self._line = {
            partition: state for partition, state in self._line.items() if partitions.get(partition) is state
        }
        self._line.update(partitions)
        self._grouped_version = None
        self.drop_stale()

    def drop_stale(self) -> None:
        """Drop chunks that a seek or a new assignment made obsolete."""
        self.waiting.keep(self._current)

    def open_sessions(self) -> dict[int, int]:
        """Return {node id: id of the session that it keeps for this consumer}."""
        return {
            node_id: session.open_id
            for node_id, session in self._sessions.items()
            if session.open_id != NO_SESSION
        }

    def advance(self) -> None:
        """Send the fetch requests that can be sent: to brokers that are ready, for partitions with
        room."""
        metadata = self._network.metadata
        for partition in [
            partition for partition, state in self._resting.items() if state.retry_at_ns <= self.now_ns
        ]:
            del self._resting[partition]
        for state in list(self._redirected.values()):
            if not self._stays_at_replica(state):
                self._to_leader(state)
            elif not self._reachable(state.read_replica):
                self._from_replica(state)
        if self._grouped_version != metadata.version:
            self._grouped_version = metadata.version
            self._by_node = {}
            for state in self._line.values():
                state.asked = None
            for partition, node_id in self._nodes_of(self._line).items():
                self._by_node.setdefault(node_id, {})[partition] = self._line[partition]
        for node_id, line in self._by_node.items():
            if node_id in self._under_way or not self._room_bytes(node_id):
                continue
            states = [state for state in line.values() if state.fetchable(self.now_ns)]
            if states and self._network.ready(node_id):
                self._send(node_id, states)
            elif states:
                self._network.connect(node_id)

    def deadline_ns(self) -> int | None:
        """Monotonic time at which the first back-off ends, ns; None: none."""
        return min((state.retry_at_ns for state in self._resting.values()), default=None)

    def back_off(self, state: PartitionState) -> None:
        """Fetch nothing of a partition until its back-off ends, which grows with each failure in a
        row."""
        state.retry_at_ns = self.now_ns + self._backoff.wait_ns(state.failures, self._rng)
        state.failures += 1
        self._resting[state.partition] = state

    def check(self, partitions: dict[TopicPartition, PartitionState]) -> None:
        """Raise CheckFailed unless the chunks kept and the nodes asked are those of the
        `partitions` assigned. Call it between two steps."""
        same("partitions in line", self._line, partitions)
        self.waiting.check(partitions)
        for partition, state in partitions.items():
            if state.retry_at_ns > self.now_ns:
                holds(f"{partition} rests for ever", self._resting.get(partition) is state)
            at_leader = state.read_replica == NO_LEADER
            holds(
                f"{partition} is read at node {state.read_replica} for ever",
                at_leader or self._redirected.get(partition) is state,
            )
            holds(
                f"{partition} is fetched without a position",
                state.phase is not Phase.FETCHING or state.position >= 0,
            )
        if self._grouped_version == self._network.metadata.version:
            grouped = {partition: node_id for node_id, line in self._by_node.items() for partition in line}
            same("partitions by node", grouped, self._nodes_of(partitions))
        for node_id in self._under_way:
            holds(
                f"a fetch is under way to node {node_id}, which has no request",
                self._network.in_flight(node_id) > 0,
            )
        for session in self._sessions.values():
            session.check()

    def _nodes_of(self, partitions: dict[TopicPartition, PartitionState]) -> dict[TopicPartition, int]:
        """Id of the node at which each partition is read, leader or replica; a partition without
        one is left out."""
        leader = self._network.metadata.leader
        found = {
            of: leader(*of) if state.read_replica == NO_LEADER else state.read_replica
            for of, state in partitions.items()
        }
        return {partition: node_id for partition, node_id in found.items() if node_id != NO_LEADER}

    def _current(self, chunk: Chunk) -> bool:
        state = self._line.get(chunk.partition)
        return state is not None and state.generation == chunk.generation

    def _room_bytes(self, node_id: int) -> int:
        """Bytes that the next request to a node may ask for; 0 until a quarter of the budget is
        free, so that requests stay large."""
        room = self._max_bytes - self.waiting.of_node(node_id)
        return room if room >= max(1, self._max_bytes // 4) else 0

    def _stays_at_replica(self, state: PartitionState) -> bool:
        partition, replica = state.partition, state.read_replica
        known = self._line.get(partition) is state and self._network.metadata.leader(*partition) not in (
            NO_LEADER,
            replica,
        )
        return known and self.now_ns < state.replica_until_ns

    def _reachable(self, node_id: int) -> bool:
        return node_id in self._network.metadata.nodes and not self._network.blocked(node_id)

    def _from_replica(self, state: PartitionState) -> None:
        """Read a partition at its leader again after a back-off, since its replica cannot be read:
        the leader may name the same one once more."""
        self._to_leader(state)
        self.back_off(state)
        self._network.metadata.request_update()

    def _to_leader(self, state: PartitionState) -> None:
        """Read a partition at its leader again."""
        self._redirected.pop(state.partition, None)
        state.read_replica = NO_LEADER
        self._grouped_version = None

    def _send(self, node_id: int, states: list[PartitionState]) -> None:
        metadata = self._network.metadata
        try:
            version = self._network.version(node_id, ApiKey.FETCH)
        except UnsupportedVersion as error:
            for state in states:
                state.fail(error)
            return
        ids: dict[str, UUID] = {}
        for state in states:
            name = state.partition.topic
            if name not in ids:
                topic = metadata.topic(name)
                ids[name] = NO_TOPIC_ID if topic is None else topic.topic_id
        if NO_TOPIC_ID in ids.values():
            version = min(version, LAST_VERSION_WITH_NAMES)
        wanted = {state.partition: self._asked(state, ids[state.partition.topic]) for state in states}
        request = self._sessions.setdefault(node_id, FetchSession()).begin(
            wanted, version > LAST_VERSION_WITH_NAMES
        )
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for partition in request.named:
            row = _of_topic(FetchRequest.FetchTopic, topics, partition.topic, ids[partition.topic])
            row.partitions.append(self._ask(partition.partition, wanted[partition]))
        forgotten: dict[str, FetchRequest.ForgottenTopic] = {}
        for partition, topic_id in request.forgotten:
            gone = _of_topic(FetchRequest.ForgottenTopic, forgotten, partition.topic, topic_id)
            gone.partitions.append(partition.partition)
        message = FetchRequest(
            replica_id=-1,
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._room_bytes(node_id),
            isolation_level=self._isolation_level,
            session_id=request.session_id,
            session_epoch=request.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
            rack_id=self._rack,
        )
        self._under_way.add(node_id)
        names = {topic_id: name for name, topic_id in ids.items()}
        done = self._on_answer(node_id, names)
        self._network.send(node_id, ApiKey.FETCH, message, done, timeout_ms=self._timeout_ms, version=version)

    def _asked(self, state: PartitionState, topic_id: UUID) -> Asked:
        """Fetch parameters of a partition.

        If nothing changed it is the object of the last request, as for most partitions.
        """
        asked = state.asked
        if asked is None or (asked.position, asked.generation, asked.last_epoch) != (
            state.position,
            state.generation,
            state.last_epoch,
        ):
            epoch = self._network.metadata.leader_epoch(*state.partition)
            asked = state.asked = Asked(topic_id, epoch, state.position, state.generation, state.last_epoch)
        return asked

    def _ask(self, number: int, asked: Asked) -> FetchRequest.FetchPartition:
        return FetchRequest.FetchPartition(
            partition=number,
            current_leader_epoch=asked.leader_epoch,
            fetch_offset=asked.position,
            last_fetched_epoch=asked.last_epoch,
            log_start_offset=-1,
            partition_max_bytes=self._partition_max_bytes,
        )

    def _on_answer(self, node_id: int, names: dict[UUID, str]) -> OnDone[FetchResponse]:
        session = self._sessions[node_id]

        def on_answer(response: FetchResponse | None, error: Exception | None) -> None:
            self._under_way.remove(node_id)
            if response is not None:
                self._recorder.fetched(_sizes(response, names), response.throttle_time_ms)
            if error is None and response is not None and not response.error_code:
                self._read(node_id, session, names, response)
                session.answered(response.session_id)
                return
            code = ErrorCode.NONE if response is None else response.error_code
            mended = code in SESSION_ERRORS and session.incremental
            session.failed(code)
            if not mended:
                self._give_up(session, node_id, error)

        return on_answer

    def _give_up(self, session: FetchSession, node_id: int, error: Exception | None) -> None:
        """Back off, or fail for good, the partitions of a fetch request that failed with
        `error`."""
        lasting = error if isinstance(error, (UnsupportedVersion, DecodeError)) else None
        if lasting is None:
            self._network.metadata.request_update()
        for partition, asked in session.asked.items():
            state = self._line.get(partition)
            if state is None or state.generation != asked.generation:
                continue
            if state.read_replica == node_id:
                self._from_replica(state)
            elif lasting is not None:
                state.fail(lasting)
            else:
                self.back_off(state)

    def _read(
        self, node_id: int, session: FetchSession, names: dict[UUID, str], response: FetchResponse
    ) -> None:
        if response.node_endpoints:  # KIP-951: the addresses of the leaders that this answer names
            self._network.metadata.saw_nodes(
                Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints
            )
        filled = sum(1 for topic in response.responses for part in topic.partitions if part.records)
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for part in topic.partitions:
                partition = TopicPartition(name, part.partition_index)
                state, asked = self._line.get(partition), session.asked.get(partition)
                if (
                    state is not None
                    and state.phase is Phase.FETCHING  # not if the answer has it twice, first as an error
                    and asked is not None
                    and asked[2:4] == (state.position, state.generation)
                    and not self._another_topic(state, asked.topic_id, part.error_code)
                ):
                    self._read_partition(node_id, state, part, alone=filled == 1)

    @hook("consumer: a topic that was made again")
    def _another_topic(self, state: PartitionState, topic_id: UUID, code: int) -> bool:
        """True if the topic was deleted and made again since the last answer; it is then read from
        its beginning. False after an error by which a broker may just not know the topic."""
        if topic_id == NO_TOPIC_ID or code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE):
            return False
        known, state.topic_id = state.topic_id, topic_id
        if known in (NO_TOPIC_ID, topic_id) or not state.position:
            return False
        self._truncated(state, NO_LEADER_EPOCH, 0)
        return True

    def _read_partition(
        self, node_id: int, state: PartitionState, part: FetchResponse.PartitionData, *, alone: bool
    ) -> None:
        if part.error_code:
            if state.read_replica == node_id:
                self._from_replica(state)
            else:
                self._read_error(state, part)
            return
        state.failures = 0
        if part.preferred_read_replica not in (NO_LEADER, node_id):
            state.read_replica, state.replica_until_ns = (
                part.preferred_read_replica,
                self.now_ns + self._replica_age_ns,
            )
            self._redirected[state.partition] = state
            self._grouped_version = None
            return
        diverging = part.diverging_epoch
        if diverging is not None and diverging.end_offset != NO_OFFSET:
            self._truncated(state, diverging.epoch, diverging.end_offset)
            return
        committed = self._isolation_level == READ_COMMITTED
        state.readable_end = (
            part.last_stable_offset
            if committed and part.last_stable_offset != NO_OFFSET
            else part.high_watermark
        )
        state.log_start = part.log_start_offset
        if not part.records or state.paused:
            return
        data = memoryview(part.records)
        next_offset, epoch, whole_bytes = end_of_batches(data, state.position)
        if next_offset == state.position:
            # A batch cut short: the partition keeps its place in line, and who comes first in an
            # answer gets a whole batch (KIP-74).
            if alone:
                what = (
                    f"fetching {state.partition} at offset {state.position}: {len(data)} bytes came that "
                    "hold no whole record batch"
                )
                state.fail(DecodeError(what, 0))
            self.back_off(state)
            return
        data = data[:whole_bytes]
        aborted = (
            tuple((each.producer_id, each.first_offset) for each in part.aborted_transactions or ())
            if committed
            else ()
        )
        chunk = Chunk(
            state.partition,
            state.generation,
            state.position,
            state.end,
            next_offset,
            data,
            node_id,
            aborted,
            state.last_epoch,
            state.readable_end,
            state.log_start,
        )
        self.waiting.add(chunk)
        state.position, state.last_epoch = next_offset, epoch
        for line in (self._line, self._by_node.get(node_id, {})):
            if line.pop(state.partition, None) is not None:
                line[state.partition] = state

    def _read_error(self, state: PartitionState, part: FetchResponse.PartitionData) -> None:
        code = part.error_code
        metadata = self._network.metadata
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(state)
        elif policy(code).retriable and code not in _REPORTED:
            hint = part.current_leader
            if policy(code).refreshes_metadata:
                metadata.request_update()
            if hint is not None and hint.leader_id >= 0:  # KIP-951
                before = metadata.leader_epoch(*state.partition)
                metadata.saw_leader(*state.partition, hint.leader_id, hint.leader_epoch)
                if metadata.leader_epoch(*state.partition) > before:
                    return  # no need to wait: the new leader is known
            self.back_off(state)
        else:
            state.fail(broker_error(code, f"fetching {state.partition} at offset {state.position}", "Read"))


def _sizes(response: FetchResponse, names: dict[UUID, str]) -> dict[str, int]:
    """Bytes of records in an answer, by topic."""
    sizes: dict[str, int] = {}
    for topic in response.responses:
        size_bytes = sum(len(part.records) for part in topic.partitions if part.records)
        if size_bytes:
            sizes[topic.topic or names.get(topic.topic_id, "")] = size_bytes
    return sizes


def _of_topic(made: type[Named], topics: dict[str, Named], name: str, topic_id: UUID) -> Named:
    """The row of a topic in `topics`; a new one, made by `made`, if there is none yet."""
    row = topics.get(name)
    if row is None:
        row = topics[name] = made(topic=name, topic_id=topic_id, partitions=[])
    return row
