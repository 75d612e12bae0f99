"""A group coordinator driven by hand: a broker that is all memory, a clock that is moved, members
that note what they are told."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_TOPIC_ID, TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, Controller
from fairlead_kafka.broker.coordinator import (
    CommittedOffset,
    GroupCoordinator,
    JoinOutcome,
    JoinRequest,
    SyncOutcome,
)
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.timers import Repeating, Timer, Timers
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import ControlType, RecordColumns, Slice, control_batch, encode
from tests.support.controllers import make_controller

GROUP = "group"


@dataclass
class MemoryLog:
    """One partition: its batches with their first offsets."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    log_start: int = 0
    high_watermark: int = 0


class Nobody:
    """Whoever would follow a partition, or wait for it."""

    def start_moved(self, partition: Any) -> None:
        pass

    def advanced(self, partition: Any) -> None:
        pass


class MemoryBroker:
    """What a coordinator needs of its broker. While `held` is a list, appended records wait in it
    to be written."""

    def __init__(
        self,
        controller: Controller,
        config: Mapping[str, Any] | None = None,
        logs: dict[int, MemoryLog] | None = None,
    ) -> None:
        self.node_id = 0
        self.folder = "a folder"
        self.now_ns = 0
        self.wall_ms = 1_700_000_000_000
        self.controller = controller
        self.config = dict(config or {})
        self.settings: Mapping[str, Any] = dict(controller.broker_settings(0)) | dict(config or {})
        self.rng = random.Random(3)
        self.timers = Timers()
        self.partitions: dict[int, MemoryLog] = {} if logs is None else logs
        self.held: list[Callable[[], None]] | None = None
        self.append_error = ErrorCode.NONE
        self.logs = self
        self.purgatory = Nobody()
        self.guard = Guard("the rig")
        self.replication = Nobody()
        self.authorizer = None
        self.quotas = SimpleNamespace(enabled=False, limits_mutations=False)

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Any = None) -> Timer:
        return self.timers.call_at(deadline_ns, function)

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> Repeating:
        return Repeating(self, name, wait_ms, function)

    def advance(self, milliseconds: float) -> None:
        """Move both clocks, timer by timer."""
        end_ns = self.now_ns + ms_to_ns(milliseconds)
        while (deadline_ns := self.timers.deadline_ns()) is not None and deadline_ns <= end_ns:
            self._go_to(max(deadline_ns, self.now_ns))
            self.timers.run_due(self.now_ns)
        self._go_to(end_ns)

    def _go_to(self, now_ns: int) -> None:
        self.wall_ms += (now_ns - self.now_ns) // 1_000_000
        self.now_ns = now_ns

    def append_internal(
        self,
        topic: str,
        partition: int,
        columns: RecordColumns,
        done: Callable[[int, int], None],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        assert topic == OFFSETS_TOPIC
        if self.append_error:
            done(self.append_error, -1)
            return
        log = self.partitions.setdefault(partition, MemoryLog())
        base_offset = log.high_watermark
        batch = encode(
            [Slice(columns, 0, columns.count, None)],
            create_time_ms=self.wall_ms,
            base_offset=base_offset,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transactional=producer.producer_id >= 0,
        ).buffer
        log.batches.append((base_offset, bytes(batch)))
        log.high_watermark += columns.count
        if self.held is None:
            done(ErrorCode.NONE, base_offset)
        else:
            self.held.append(lambda: done(ErrorCode.NONE, base_offset))

    def when_log_replicated(self, topic: str, partition: int, done: Callable[[int], None]) -> None:
        done(ErrorCode.NONE)

    def read_internal(
        self, topic: str, partition: int, offset: int, done: Callable[[int, Sequence[Buffer], int], None]
    ) -> None:
        log = self.partitions.setdefault(partition, MemoryLog())
        bounds = [base_offset for base_offset, _ in log.batches] + [log.high_watermark]
        for index, (_, batch) in enumerate(log.batches):
            if bounds[index + 1] > max(offset, log.log_start):
                done(ErrorCode.NONE, [batch], bounds[index + 1])
                return
        done(ErrorCode.NONE, [], offset)

    def log_of(self, topic: str, number: int) -> MemoryLog:
        return self.partitions.setdefault(number, MemoryLog())

    def move_start(self, log: MemoryLog, offset: int) -> None:
        log.log_start = max(log.log_start, offset)


class GroupRig:
    """A coordinator and its broker; every group is at home here."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        logs: dict[int, MemoryLog] | None = None,
        offsets_partitions: int = 5,
        wall_ms: int = 1_700_000_000_000,
    ) -> None:
        self.controller = make_controller(
            brokers=1, config={"offsets.topic.num.partitions": offsets_partitions}
        )
        self.controller.create_topic("orders", 4)
        self.controller.create_topic("payments", 4)
        self.controller.create_offsets_topic()
        self.broker = MemoryBroker(self.controller, config, logs)
        self.broker.wall_ms = wall_ms
        self.coordinator = GroupCoordinator(self.broker)
        self.coordinator.start()

    def restart(self) -> GroupRig:
        """Another coordinator over the same log."""
        self.coordinator.stop()
        return GroupRig(logs=self.broker.partitions, wall_ms=self.broker.wall_ms)

    def again(self) -> GroupRig:
        """Another coordinator over the same log, of the same cluster at the same time."""
        self.coordinator.stop()
        rig = object.__new__(GroupRig)
        rig.controller = self.controller
        rig.broker = MemoryBroker(self.controller, self.broker.config, self.broker.partitions)
        rig.broker.now_ns, rig.broker.wall_ms = self.broker.now_ns, self.broker.wall_ms
        rig.coordinator = GroupCoordinator(rig.broker)
        rig.coordinator.start()
        return rig

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        generation: int = -1,
        member_id: str = "",
        group_id: str = GROUP,
        metadata: str = "",
    ) -> dict[TopicPartition, int]:
        """Commit, and what was answered so far (filled in later if the log holds it)."""
        answered: dict[TopicPartition, int] = {}
        entries = {
            of: CommittedOffset(offset, -1, metadata, self.broker.wall_ms, topic_id=self.topic_id(of.topic))
            for of, offset in offsets.items()
        }
        self.coordinator.offsets.commit(group_id, generation, member_id, None, entries, answered.update)
        return answered

    def topic_id(self, name: str) -> UUID:
        """The topic's id at present; NO_TOPIC_ID if it is not there."""
        image = self.controller.image.topics.get(name)
        return NO_TOPIC_ID if image is None else image.topic_id

    def commit_in_transaction(
        self,
        producer: ProducerIdentity,
        offsets: Mapping[TopicPartition, int],
        generation: int = -1,
        member_id: str = "",
        group_id: str = GROUP,
    ) -> dict[TopicPartition, int]:
        """Commit as part of a transaction, and what was answered."""
        answered: dict[TopicPartition, int] = {}
        entries = {
            of: CommittedOffset(offset, -1, "", self.broker.wall_ms, topic_id=self.topic_id(of.topic))
            for of, offset in offsets.items()
        }
        self.coordinator.offsets.commit_in_transaction(
            group_id, generation, member_id, None, producer, entries, answered.update
        )
        return answered

    def end_transaction(self, producer: ProducerIdentity, committed: bool, group_id: str = GROUP) -> None:
        """The transaction's marker is written to the group's partition."""
        partition = home_partition(group_id, len(self.controller.image.topics[OFFSETS_TOPIC].partitions))
        log = self.broker.partitions.setdefault(partition, MemoryLog())
        kind = ControlType.commit if committed else ControlType.abort
        marker = control_batch(
            kind,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            timestamp_ms=self.broker.wall_ms,
            base_offset=log.high_watermark,
        )
        log.batches.append((log.high_watermark, bytes(marker.buffer)))
        log.high_watermark += 1
        self.coordinator.offsets.transaction_ended(partition, producer.producer_id, committed)

    def fetch(self, group_id: str = GROUP) -> dict[TopicPartition, int]:
        """All committed offsets of a group."""
        return {
            of: one.offset
            for of, one in self.coordinator.offsets.fetch(group_id, None).items()
            if one is not None
        }

    def state(self, group_id: str = GROUP) -> str | None:
        """The group's state by name; None if there is no such group."""
        group = self.coordinator.describe(group_id)
        return None if group is None else group.state.value


def subscription(*topics: str, user_data: bytes = b"") -> bytes:
    """A consumer's join metadata (`ConsumerProtocolSubscription` version 0)."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(user_data)) + user_data


class RigMember:
    """A member's side: its id, and the last answers it got. `joined` and `synced` are None while it
    waits."""

    def __init__(
        self,
        rig: GroupRig,
        topics: Sequence[str] = ("orders",),
        instance_id: str | None = None,
        version: int = 9,
    ) -> None:
        self.rig = rig
        self.member_id = ""
        self.instance_id = instance_id
        self.version = version
        self.protocols = [("range", subscription(*topics))]
        self.protocol_type = "consumer"
        self.session_ms = 10_000
        self.rebalance_ms = 60_000
        self.joined: JoinOutcome | None = None
        self.synced: SyncOutcome | None = None

    @property
    def generation(self) -> int:
        assert self.joined is not None
        return self.joined.generation

    @property
    def waiting(self) -> bool:
        return bool(self.member_id) and self.joined is None

    @property
    def leads(self) -> bool:
        return self.joined is not None and self.joined.leader_id == self.member_id

    def join_once(self) -> int | None:
        """One JoinGroup; the error code at once, or None if it waits."""
        self.joined = None
        request = JoinRequest(
            self.member_id,
            self.instance_id,
            "client",
            "/127.0.0.1",
            self.session_ms,
            self.rebalance_ms,
            self.protocol_type,
            list(self.protocols),
            asks_for_id=self.version >= 4,
            can_skip=self.version >= 9,
        )
        try:
            self.rig.coordinator.join(GROUP, request, self._on_joined)
        except BrokerError as error:
            self.joined = JoinOutcome(error.code, self.member_id)
        return None if self.joined is None else self.joined.error_code

    def join(self) -> RigMember:
        """JoinGroup, taking the id that is given on the way."""
        if self.join_once() == ErrorCode.MEMBER_ID_REQUIRED:
            assert self.joined is not None
            self.member_id = self.joined.member_id
            self.join_once()
        return self

    def _on_joined(self, outcome: JoinOutcome) -> None:
        self.joined = outcome
        if not outcome.error_code:
            self.member_id = outcome.member_id

    def sync(
        self, assignments: Mapping[str, bytes] | None = None, generation: int | None = None
    ) -> int | None:
        """SyncGroup; the error code at once, or None if it waits."""
        self.synced = None
        try:
            self.rig.coordinator.sync(
                GROUP,
                self.generation if generation is None else generation,
                self.member_id,
                self.instance_id,
                (None, None),
                list((assignments or {}).items()),
                lambda outcome: setattr(self, "synced", outcome),
            )
        except BrokerError as error:
            return error.code
        return None if self.synced is None else self.synced.error_code

    def heartbeat(self, generation: int | None = None) -> int:
        """Heartbeat; the error code."""
        try:
            return self.rig.coordinator.heartbeat(
                GROUP, self.generation if generation is None else generation, self.member_id, self.instance_id
            )
        except BrokerError as error:
            return error.code

    def leave(self) -> int:
        """LeaveGroup; the error code."""
        try:
            self.rig.coordinator.leave(GROUP, self.member_id, self.instance_id)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE


def quiesce(*members: RigMember) -> None:
    """All of a group's members join, newcomers first, and get their index among them as
    assignment."""
    for newcomer in [member for member in members if member.joined is None and not member.waiting]:
        newcomer.join()
    for member in members:
        if not member.waiting and member.heartbeat() != ErrorCode.NONE:
            member.join()
    assignments = {member.member_id: str(index).encode() for index, member in enumerate(members)}
    for member in members:
        member.sync(assignments if member.leads else None)
