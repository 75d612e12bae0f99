"""The group coordinator of one broker: which groups are here, and every group request's first and
last word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_TOPIC_ID, TopicPartition
from fairlead_kafka.broker.consumer_groups import COMMITS_FROM_VERSION, Committer
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, Change, TopicDeleted, TopicImage
from fairlead_kafka.broker.coordinator.consumer_side import ConsumerSide, not_consumer
from fairlead_kafka.broker.coordinator.group import (
    CONSUMER_PROTOCOL,
    CommittedOffset,
    Group,
    JoinOutcome,
    JoinRequest,
    Member,
    SyncOutcome,
)
from fairlead_kafka.broker.coordinator.group_records import GroupKey, GroupRecord
from fairlead_kafka.broker.coordinator.offset_records import OffsetKey
from fairlead_kafka.broker.coordinator.rebalance import Rebalancer
from fairlead_kafka.broker.coordinator.shard import Entry, Key, Shard, apply_end, replay
from fairlead_kafka.broker.coordinator.shard_log import (
    ShardLog,
    expired,
    group_tombstone,
    tombstones,
    tombstones_of_gone,
    when_committed,
)
from fairlead_kafka.broker.coordinator.share_side import ShareSide
from fairlead_kafka.broker.coordinator.states import COMMIT_ERRORS, GroupState
from fairlead_kafka.broker.guard import Owner, Task
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.shards import ShardHost, Shards
from fairlead_kafka.broker.share_groups import StatePersister
from fairlead_kafka.broker.timers import Repeating
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.records import RecordColumns

_MS_PER_MINUTE = 60_000
_ANY_GENERATION = -1
"""The generation of a commit that is not a member's (an assigned consumer, an admin)."""


class CoordinatorHost(ShardHost, Protocol):
    """The part of the broker that the coordinator needs (`broker.machine.Broker` fits)."""

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
    """Groups whose partition of `__consumer_offsets` is led here. Methods raise `BrokerError` with
    what the client is told."""

    def __init__(self, broker: CoordinatorHost) -> None:
        self._broker = broker
        self.shards: Shards[Shard] = Shards(broker, OFFSETS_TOPIC, "group", self)
        self._log = ShardLog(broker, broker.append_internal, self.shards.restart)
        self._rebalancer = Rebalancer(broker, self._persist, self._owner_of)
        self.consumer = ConsumerSide(broker, self.shards, self._log, self._rebalancer, self._owner_of)
        """The groups of the consumer protocol (KIP-848)."""
        self.share = ShareSide(broker, self.shards, self._log, self.consumer.topics, self._owner_of)
        """The share groups (KIP-932)."""
        self._retention: Repeating | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    # --- Which groups are here

    def start(self) -> None:
        """Begin: read the groups that are at home here."""
        self._unsubscribe = self._broker.controller.subscribe(
            self._broker.guard.bind(self._changed, Task("forgetting topics"))
        )
        self.consumer.topics.follow(self._broker.controller.image)
        self.shards.start()
        self._retention = self._broker.repeat("retention of offsets", self._retention_wait_ms, self._expire)

    def stop(self) -> None:
        """End: clients that wait are told to look for another coordinator."""
        self._unsubscribe()
        if self._retention is not None:
            self._retention.cancel()
        self.shards.stop()

    def _changed(self, change: Change) -> None:
        """Take in a change of the cluster. Offsets of a deleted topic are deleted in a later step:
        the controller may call within another broker's step, and files are for one of our own."""
        self.consumer.topics.changed(change)
        if isinstance(change, TopicDeleted):
            for shard in self.shards:
                self._forget_topic_later(shard, change.topic)
            self.share.states.topic_deleted(change.topic.topic_id)

    def _forget_topic_later(self, shard: Shard, topic: TopicImage) -> None:
        def gone(name: str, committed: CommittedOffset) -> bool:
            return name == topic.name and committed.topic_id in (topic.topic_id, NO_TOPIC_ID)

        self._broker.call_at(
            self._broker.now_ns, lambda: self._forget_offsets(shard, gone), self.shards.owner(shard)
        )

    def new_shard(self, partition: int) -> Shard:
        """A new, empty shard for a partition of `__consumer_offsets`."""
        return Shard(partition)

    def replay(self, shard: Shard, batches: bytes, from_offset: int) -> None:
        """Take batches of the log into memory."""
        replay(shard, batches, from_offset)

    def shard_loaded(self, shard: Shard) -> None:
        """Called when a shard's log was read: groups go on with the members that it has, and those
        of which nothing is left are forgotten."""
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
        self._forget_offsets(shard, self._gone)

    def shard_dropped(self, shard: Shard) -> None:
        """Called when a shard's groups leave this broker: clients that wait are answered
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
        """Write a generation of a group at home here; done(error code for a client, 0 if it
        stands)."""
        try:
            shard = self.shards.of(group.group_id)
        except BrokerError as error:  # it is about to be dropped
            done(error.code)
            return
        self._log.write(
            shard, [(GroupKey(group.group_id), record)], lambda errors: done(max(errors.values()))
        )

    def _member_group(self, group_id: str) -> Group:
        """The group that a member speaks of. BrokerError: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group that has members needs a name")
        return self._existing(group_id, ErrorCode.UNKNOWN_MEMBER_ID)[1]

    def _existing(self, group_id: str, missing: int) -> tuple[Shard, Group]:
        shard = self.shards.of(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            raise BrokerError(missing, f"there is no group {group_id!r}")
        return shard, group

    # --- Membership

    def join(self, group_id: str, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        """Serve a JoinGroup; `reply` is called once the next generation stands."""
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
            self._forget(shard, group)
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
        """Serve a SyncGroup; `protocol` is (type, name), either None if the client does not say;
        `reply` is called once the leader has assigned."""
        group = self._member_group(group_id)
        if group.consumer is not None:
            self.consumer.sync(group.consumer, (member_id, instance_id, generation), protocol, reply)
            return
        member = self._member(group, generation, member_id, instance_id)
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
        return self._rebalancer.heartbeat(group, self._member(group, generation, member_id, instance_id))

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> None:
        """Remove one member that a LeaveGroup names."""
        group = self._member_group(group_id)
        if group.consumer is not None:
            self.consumer.members.leave_classic(group.consumer, member_id, instance_id)
        else:
            self._rebalancer.leave(group, member_id, instance_id)

    def _member(self, group: Group, generation: int, member_id: str, instance_id: str | None) -> Member:
        member = group.check_member(member_id, instance_id)
        if generation != group.generation:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {group.group_id} is at generation {group.generation}, the member at {generation}",
            )
        return member

    # --- Offsets

    def commit(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
        version: int = COMMITS_FROM_VERSION,
    ) -> None:
        """Serve an OffsetCommit; reply(partition → error code) once the offsets are written.
        Generation -1: not as a member; of a member of the consumer protocol it is its epoch."""
        shard, group = self._group_to_commit(group_id, generation)
        if group.consumer is not None:
            who = Committer(member_id, instance_id, generation, version)
            self.consumer.check_commit(group.consumer, who, list(offsets))
        else:
            self._check_committer(group, generation, member_id, instance_id)
        self._commit(shard, group, offsets, reply, NO_PRODUCER)

    def commit_in_transaction(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        instance_id: str | None,
        producer: ProducerIdentity,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Serve a TxnOffsetCommit; reply(partition → error code) once the offsets are written. They
        count when the transaction is committed. A producer that does not say for which member it
        speaks (before KIP-447) is fenced by its epoch alone."""
        shard, group = self._group_to_commit(group_id, generation)
        if group.consumer is not None:
            who = Committer(member_id, instance_id, generation, None)
            self.consumer.check_commit(group.consumer, who, list(offsets))
        elif generation >= 0 or member_id or instance_id is not None:
            self._member(group, generation, member_id, instance_id)
        self._commit(shard, group, offsets, reply, producer)

    def transaction_ended(self, partition: int, producer_id: int, committed: bool) -> None:
        """Called when the marker of a producer's transaction was written to a partition of offsets
        led here."""
        shard = self.shards.led(partition)
        if shard is None or not shard.loaded:
            return  # reading the log comes by the marker
        apply_end(shard, producer_id, committed)

    def _group_to_commit(self, group_id: str, generation: int) -> tuple[Shard, Group]:
        shard = self.shards.of(group_id)
        if group_id not in shard.groups and generation >= 0:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION, f"there is no group {group_id!r} with a generation {generation}"
            )
        group = shard.group(group_id, self._broker.wall_ms)
        if group.share is not None:
            raise not_consumer(group_id)
        return shard, group

    def _commit(
        self,
        shard: Shard,
        group: Group,
        offsets: Mapping[TopicPartition, CommittedOffset],
        reply: Callable[[dict[TopicPartition, int]], None],
        producer: ProducerIdentity,
    ) -> None:
        limit_bytes = self._broker.settings["offset.metadata.max.bytes"]
        errors = {
            of: ErrorCode.OFFSET_METADATA_TOO_LARGE
            for of, one in offsets.items()
            if len(one.metadata.encode()) > limit_bytes
        }
        entries: list[Entry] = [
            (OffsetKey(group.group_id, of), one) for of, one in offsets.items() if of not in errors
        ]

        def written(by_key: dict[Key, int]) -> None:
            reply(errors | _by_partition(by_key))

        self._log.write(shard, entries, written, producer)

    @hook("groups: may this member commit")
    def _check_committer(
        self, group: Group, generation: int, member_id: str, instance_id: str | None
    ) -> None:
        if generation == _ANY_GENERATION and group.state is GroupState.EMPTY:
            return
        member = self._member(group, generation, member_id, instance_id)
        error = COMMIT_ERRORS[group.state]
        if error:
            raise BrokerError(error, f"group {group.group_id} is {group.state.value}")
        self._rebalancer.touch(group, member)

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Committed offsets of a group by partition, None where there is none; `partitions` None:
        all that there are. A deleted topic's are none of a new one with its name."""
        group = self.shards.of(group_id).groups.get(group_id)
        offsets = group.offsets if group is not None else {}
        found = {of: offsets.get(of) for of in (offsets if partitions is None else partitions)}
        gone = [of for of, one in found.items() if one is not None and self._gone(of.topic, one)]
        if partitions is None:
            return {of: one for of, one in found.items() if of not in gone}
        return found | dict.fromkeys(gone)

    def unstable(self, group_id: str) -> frozenset[TopicPartition]:
        """Partitions of which an open transaction commits an offset: readers who require stable
        ones come again (KIP-447)."""
        group = self.shards.of(group_id).groups.get(group_id)
        return frozenset(
            of for offsets in (group.transactional.values() if group is not None else ()) for of in offsets
        )

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        """Serve an OffsetDelete; reply(partition → error code). While the group has members, only
        offsets of topics that none of them reads are deleted."""
        shard, group = self._existing(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if group.share is not None:
            raise not_consumer(group_id)
        if not group.empty and group.listed_protocol_type != CONSUMER_PROTOCOL:
            raise BrokerError(
                ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members, and does not say what they read"
            )
        errors = {
            of: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.subscribes(of.topic) else ErrorCode.NONE
            for of in partitions
        }

        def written(by_key: dict[Key, int]) -> None:
            reply(errors | _by_partition(by_key))

        self._log.write(shard, tombstones(group, [of for of, error in errors.items() if not error]), written)

    # --- Looking at groups, and deleting them

    def describe(self, group_id: str) -> Group | None:
        """The group, or None if there is none."""
        return self.shards.of(group_id).groups.get(group_id)

    def groups(self) -> tuple[list[Group], bool]:
        """All groups here, by partition, and whether some are still being read."""
        loading = any(not shard.loaded for shard in self.shards)
        return [group for shard in self.shards.loaded() for group in shard.groups.values()], loading

    def delete_group(self, group_id: str, reply: Callable[[int], None]) -> None:
        """Delete a group without members; reply(error code) once its offsets are gone."""
        shard, group = self._existing(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.empty:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} has members")
        if group.share is not None:
            self.share.states.delete_group(
                group.share, lambda error: self._deleted(shard, group, error, reply)
            )
            return
        if group.consumer is not None:
            self.consumer.make_classic(group.consumer)

        def written(by_key: dict[Key, int]) -> None:
            failed = next((error for error in by_key.values() if error), ErrorCode.NONE)
            when_committed(group, lambda error: forgotten(failed or error))

        def forgotten(error: int) -> None:
            self._forget(shard, group)
            reply(error)

        self._log.write(shard, tombstones(group, group.partitions()) + group_tombstone(group), written)

    def _deleted(self, shard: Shard, group: Group, error: int, reply: Callable[[int], None]) -> None:
        self._forget(shard, group)
        reply(error)

    def _forget(self, shard: Shard, group: Group) -> None:
        if group.forgettable() and shard.groups.get(group.group_id) is group:
            del shard.groups[group.group_id]
            group.state = GroupState.DEAD

    def _gone(self, topic: str, committed: CommittedOffset) -> bool:
        """Whether the topic that an offset was committed for is not there any more."""
        image = self._broker.controller.image.topics.get(topic)
        return image is None or committed.topic_id not in (image.topic_id, NO_TOPIC_ID)

    def _forget_offsets(self, shard: Shard, gone: Callable[[str, CommittedOffset], bool]) -> None:
        """Delete offsets of topics that are gone, or a new topic of the same name would be read
        from the old one's position."""
        if self.shards.holds(shard) and shard.loaded:
            self._log.write(shard, tombstones_of_gone(shard, gone), lambda _errors: None)

    def check(self) -> None:
        """Check that what is kept twice of groups agrees, between two steps; CheckFailed if not.

        For tests and the simulator.
        """
        self.shards.check()
        for shard in self.shards.loaded():
            shard.check()

    # --- Retention

    def _retention_wait_ms(self) -> float:
        return float(self._broker.settings["offsets.retention.check.interval.ms"])

    def _expire(self) -> None:
        """Take back what is past retention, and forget groups of which nothing is left."""
        for shard in self.shards.loaded():
            self._broker.guard.call(self.shards.owner(shard), self._expire_in, shard)

    def _expire_in(self, shard: Shard) -> None:
        retention_ms = self._broker.settings["offsets.retention.minutes"] * _MS_PER_MINUTE
        groups = list(shard.groups.values())
        entries = [entry for group in groups for entry in self._past(group, retention_ms)]
        entries = [
            entry for entry in entries if entry[0] not in shard.in_flight
        ]  # a commit under way is news of it

        def written(_errors: dict[Key, int]) -> None:
            for group in groups:
                when_committed(group, lambda _error, group=group: self._forget(shard, group))  # type: ignore[misc]

        self._log.write(shard, entries, written)

    def _past(self, group: Group, retention_ms: int) -> list[Entry]:
        """Tombstones for a group: of offsets past retention, and with the last one, if it has no
        members, of the group itself."""
        past = tombstones(group, expired(group, self._broker.wall_ms, retention_ms))
        nothing_left = len(past) == len(group.partitions()) and not group.pending_writes and not group.pending
        if nothing_left and group.consumer is not None and group.empty:
            with suppress(BrokerError):  # the log takes nothing just now: the next time round
                self.consumer.make_classic(group.consumer)
        return past + (group_tombstone(group) if nothing_left and group.state is GroupState.EMPTY else [])


def _by_partition(errors: Mapping[Key, int]) -> dict[TopicPartition, int]:
    return {key.partition: error for key, error in errors.items() if isinstance(key, OffsetKey)}
