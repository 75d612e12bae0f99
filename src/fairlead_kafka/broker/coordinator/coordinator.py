"""The group coordinator of one broker: its groups, their members of the classic protocol,
describing and deleting groups. Its parts serve members of the other protocols, and offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, Change, TopicDeleted
from fairlead_kafka.broker.coordinator.consumer_side import ConsumerSide
from fairlead_kafka.broker.coordinator.group import Group, JoinOutcome, JoinRequest, SyncOutcome
from fairlead_kafka.broker.coordinator.group_records import GroupKey, GroupRecord
from fairlead_kafka.broker.coordinator.offsets import GroupOffsets
from fairlead_kafka.broker.coordinator.rebalance import Rebalancer
from fairlead_kafka.broker.coordinator.shard import Key, Shard, replay
from fairlead_kafka.broker.coordinator.shard_log import (
    ShardLog,
    group_tombstone,
    tombstones,
    when_committed,
)
from fairlead_kafka.broker.coordinator.share_side import ShareSide
from fairlead_kafka.broker.guard import Owner, Task
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.shards import ShardHost, Shards
from fairlead_kafka.broker.share_groups import StatePersister
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.records import RecordColumns


class CoordinatorHost(ShardHost, Protocol):
    """The parts of a broker that the group coordinator uses (`broker.machine.Broker` fits)."""

    wall_ms: int
    settings: Settings
    rng: Rng

    @property
    def share_persister(self) -> StatePersister:
        """The way to share coordinators."""

    def append_internal(
        self,
        topic: str,
        partition: int,
        columns: RecordColumns,
        done: Callable[[int, int], None],
        producer: ProducerIdentity,
    ) -> None:
        """Append records, in the producer's transaction if there is one; done(error_code,
        base_offset)."""


class GroupCoordinator:
    """The coordinator of the groups whose partition of `__consumer_offsets` is led here. Methods
    raise `BrokerError` with the code to answer."""

    def __init__(self, broker: CoordinatorHost) -> None:
        self._broker = broker
        self.shards: Shards[Shard] = Shards(broker, OFFSETS_TOPIC, "group", self)
        self._log = ShardLog(broker, broker.append_internal, self.shards.restart)
        self._rebalancer = Rebalancer(broker, self._persist, self._owner_of)
        self.consumer = ConsumerSide(broker, self.shards, self._log, self._rebalancer, self._owner_of)
        """The groups of the consumer protocol (KIP-848)."""
        self.share = ShareSide(broker, self.shards, self._log, self.consumer.topics, self._owner_of)
        """The share groups (KIP-932)."""
        self.offsets = GroupOffsets(broker, self.shards, self._log, self._rebalancer, self.consumer)
        """Committed offsets of the groups."""
        self._unsubscribe: Callable[[], None] = lambda: None

    # --- Which groups are here

    def start(self) -> None:
        """Begin: read the groups whose partition is led here."""
        self._unsubscribe = self._broker.controller.subscribe(
            self._broker.guard.bind(self._changed, Task("forgetting topics"))
        )
        self.consumer.topics.follow(self._broker.controller.image)
        self.shards.start()
        self.offsets.start()

    def stop(self) -> None:
        """End: requests that wait are answered so that clients look for another coordinator."""
        self._unsubscribe()
        self.offsets.stop()
        self.shards.stop()

    def _changed(self, change: Change) -> None:
        """React to a change of the cluster."""
        self.consumer.topics.changed(change)
        if isinstance(change, TopicDeleted):
            self.offsets.topic_deleted(change.topic)
            self.share.states.topic_deleted(change.topic.topic_id)

    def new_shard(self, partition: int) -> Shard:
        """A new, empty shard for a partition of `__consumer_offsets`."""
        return Shard(partition)

    def replay(self, shard: Shard, batches: bytes, from_offset: int) -> None:
        """Apply batches of the log to the shard in memory, from offset `from_offset` on."""
        replay(shard, batches, from_offset)

    def shard_loaded(self, shard: Shard) -> None:
        """Called when a shard's log was read: groups continue with the members that it has, and
        groups without any state are forgotten."""
        shard.groups = {
            group.group_id: group
            for group in shard.groups.values()
            if group.partitions() or group.record is not None or group.consumer or group.share
        }
        for group in shard.groups.values():
            if group.share is not None:
                self.share.loaded(group.share)
            elif group.consumer is None:
                self._rebalancer.restore(group)
            else:
                self.consumer.members.loaded(group.consumer)
        self.offsets.loaded(shard)

    def shard_dropped(self, shard: Shard) -> None:
        """Called when a shard's groups are coordinated elsewhere: requests that wait are answered
        NOT_COORDINATOR."""
        for group in shard.groups.values():
            self._rebalancer.dissolve(group, ErrorCode.NOT_COORDINATOR)
            self.consumer.members.forget(group.group_id)
            self.share.forget(group.group_id)
            self.share.states.dropped(group.group_id)

    def _owner_of(self, group: Group) -> Owner:
        try:
            return self.shards.owner(self.shards.of(group.group_id))
        except BrokerError:  # it is about to be dropped
            return Task(f"group {group.group_id}")

    def _persist(self, group: Group, record: GroupRecord, done: Callable[[int], None]) -> None:
        """Write a generation of a group; done(error code for clients, 0 if it is written)."""
        try:
            shard = self.shards.of(group.group_id)
        except BrokerError as error:  # it is about to be dropped
            done(error.code)
            return
        self._log.write(
            shard, [(GroupKey(group.group_id), record)], lambda errors: done(max(errors.values()))
        )

    def _member_group(self, group_id: str) -> Group:
        """The group that a member's request is about. BrokerError: INVALID_GROUP_ID,
        UNKNOWN_MEMBER_ID."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group that has members needs a name")
        return self.shards.of(group_id).existing(group_id, ErrorCode.UNKNOWN_MEMBER_ID)

    # --- Membership

    def join(self, group_id: str, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        """Serve a JoinGroup; `reply` is called once the next generation is formed. BrokerError if
        the request is refused at once: an invalid group, session time-out, protocol or member."""
        settings = self._broker.settings
        low_ms, high_ms = settings["group.min.session.timeout.ms"], settings["group.max.session.timeout.ms"]
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group that has members needs a name")
        if not low_ms <= request.session_timeout_ms <= high_ms:
            raise BrokerError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"session.timeout.ms is {request.session_timeout_ms}; allowed are {low_ms} to {high_ms}",
            )
        if not request.protocol_type or not request.protocols:
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                "a member names a protocol type and at least one protocol",
            )
        shard = self.shards.of(group_id)
        if request.member_id and group_id not in shard.groups:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"there is no group {group_id!r} that {request.member_id!r} could be in",
            )
        group = shard.group(group_id, self._broker.wall_ms)
        if group.share is not None:
            raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{group_id} is a share group")
        if group.consumer is not None and self.consumer.takes_join(group.consumer, request, reply):
            return
        try:
            self._rebalancer.join(group, request, reply)
        except BrokerError:
            shard.forget(group)
            raise

    def sync(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        protocol: tuple[str | None, str | None],
        assignments: Sequence[tuple[str, bytes]],
        reply: Callable[[SyncOutcome], None],
    ) -> None:
        """Serve a SyncGroup; `protocol` is (type, name), each None if the request has none; `reply`
        is called once the leader has assigned. BrokerError if the protocol is not the group's, or
        as `Rebalancer.sync`."""
        group = self._member_group(group_id)
        if group.consumer is not None:
            self.consumer.sync(group.consumer, (member_id, instance_id, generation), protocol, reply)
            return
        member = group.member_of(generation, member_id, instance_id)
        if protocol[0] not in (None, group.protocol_type) or protocol[1] not in (None, group.protocol_name):
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group_id} has protocol {group.protocol_type}/{group.protocol_name}",
            )
        self._rebalancer.sync(group, member, assignments, reply)

    def heartbeat(self, group_id: str, generation: int, member_id: str, instance_id: str | None) -> int:
        """Note that a member is alive. Returns the error code to answer."""
        group = self._member_group(group_id)
        if group.consumer is not None:
            return self.consumer.members.heartbeat_classic(group.consumer, member_id, instance_id, generation)
        return self._rebalancer.heartbeat(group, group.member_of(generation, member_id, instance_id))

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> None:
        """Remove one member that a LeaveGroup names."""
        group = self._member_group(group_id)
        if group.consumer is not None:
            self.consumer.members.leave_classic(group.consumer, member_id, instance_id)
        else:
            self._rebalancer.leave(group, member_id, instance_id)

    # --- Looking at groups, and deleting them

    def describe(self, group_id: str) -> Group | None:
        """The group, or None if there is none."""
        return self.shards.of(group_id).groups.get(group_id)

    def groups(self) -> tuple[list[Group], bool]:
        """All groups of this coordinator, by partition, and True if some are still being read."""
        loading = any(not shard.loaded for shard in self.shards)
        return [group for shard in self.shards.loaded() for group in shard.groups.values()], loading

    def delete_group(self, group_id: str, reply: Callable[[int], None]) -> None:
        """Delete a group without members; reply(error code) once its offsets are deleted.
        BrokerError if the group has members or does not exist."""
        shard = self.shards.of(group_id)
        group = shard.existing(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.empty:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")

        def forgotten(error: int) -> None:
            shard.forget(group)
            reply(error)

        def written(by_key: dict[Key, int]) -> None:
            failed = next((error for error in by_key.values() if error), ErrorCode.NONE)
            when_committed(group, lambda error: forgotten(failed or error))

        if group.share is not None:
            self.share.states.delete_group(group.share, forgotten)
            return
        if group.consumer is not None:
            self.consumer.make_classic(group.consumer)
        self._log.write(shard, tombstones(group, group.partitions()) + group_tombstone(group), written)

    def check(self) -> None:
        """Raise CheckFailed unless redundant state of groups agrees, between two steps.

        For tests and the simulator.
        """
        self.shards.check()
        for shard in self.shards.loaded():
            shard.check()
