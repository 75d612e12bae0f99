"""Groups of the consumer protocol (KIP-848) of a coordinator: the shards they live in, and how a
group changes from one protocol to the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_TOPIC_ID, TopicPartition
from fairlead_kafka.broker.consumer_groups import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ClassicJoin,
    Committer,
    ConsumerGroup,
    ConsumerGroups,
    ConsumerMember,
    GroupsEntry,
    GroupSettings,
    GroupsHost,
    Heartbeat,
    HeartbeatResult,
    View,
    check_commit,
    check_fetch,
    check_heartbeat,
    protocol_of,
)
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.coordinator.cluster_topics import ClusterTopics
from fairlead_kafka.broker.coordinator.group import (
    CONSUMER_PROTOCOL,
    Group,
    JoinOutcome,
    JoinRequest,
    SyncOutcome,
)
from fairlead_kafka.broker.coordinator.group_records import GroupKey
from fairlead_kafka.broker.coordinator.migration import (
    DOWNGRADES,
    check_upgrade,
    downgraded,
    may_downgrade,
    upgraded,
)
from fairlead_kafka.broker.coordinator.rebalance import Rebalancer
from fairlead_kafka.broker.coordinator.shard import Entry, Shard
from fairlead_kafka.broker.coordinator.shard_log import ShardLog, when_committed
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.shards import Shards


class ConsumerSideHost(GroupsHost, Protocol):
    """The parts of a broker that consumer groups use."""

    wall_ms: int
    settings: Settings

    @property
    def controller(self) -> ClusterView:
        """The cluster's image, and the way to change it."""


class ConsumerSide:
    """The consumer groups of one coordinator; implements `consumer_groups.GroupsHome`."""

    def __init__(
        self,
        broker: ConsumerSideHost,
        shards: Shards[Shard],
        log: ShardLog,
        rebalancer: Rebalancer,
        owner_of: Callable[[Group], Owner],
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._log = log
        self._rebalancer = rebalancer
        self._owner_of = owner_of
        self.topics = ClusterTopics()
        self.members = ConsumerGroups(broker, self)

    # --- What members of the consumer protocol ask

    def heartbeat(
        self, request: Heartbeat, version: int, reply: Callable[[int, HeartbeatResult], None]
    ) -> None:
        """Serve a ConsumerGroupHeartbeat; reply(error code, answer) once the records that the
        answer depends on are written."""
        settings = self._broker.settings
        check_heartbeat(request, version, settings["group.consumer.assignors"])
        shard = self._shards.of(request.group_id)
        group = shard.groups.get(request.group_id)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self.members.leave(self.existing(request.group_id), request, reply)
        elif request.member_epoch != 0 or (group is not None and group.consumer is not None):
            self.members.heartbeat(self.existing(request.group_id), request, reply)
        elif group is not None and group.share is not None:
            raise not_consumer(request.group_id)
        elif group is None or group.empty:
            self._begin(shard, group, request, reply)
        else:
            self._upgrade(group, request, reply)

    def existing(self, group_id: str) -> ConsumerGroup:
        """The consumer group of this id. BrokerError GROUP_ID_NOT_FOUND if there is none, or a
        classic group."""
        group = self._shards.of(group_id).groups.get(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if group.consumer is None:
            raise not_consumer(group_id)
        return group.consumer

    def _begin(
        self,
        shard: Shard,
        group: Group | None,
        request: Heartbeat,
        reply: Callable[[int, HeartbeatResult], None],
    ) -> None:
        """Serve the first heartbeat to a group that does not exist, or that is classic and
        empty."""
        made = shard.group(request.group_id, self._broker.wall_ms)
        first: list[Entry] = []
        if made.record is not None or made.pending_writes:
            first = [(GroupKey(made.group_id), None)]
        try:
            self._convert(made, ConsumerGroup(made.group_id), first, request, reply)
        except BrokerError:
            if group is None and made.forgettable():
                del shard.groups[made.group_id]
            raise

    def _upgrade(
        self, group: Group, request: Heartbeat, reply: Callable[[int, HeartbeatResult], None]
    ) -> None:
        """Turn a classic group, which a member of the consumer protocol joins, into a consumer
        group (KIP-848)."""
        settings = self._broker.settings
        check_upgrade(group, settings["group.consumer.migration.policy"], settings["group.consumer.max.size"])
        new = upgraded(group, self.view(group.group_id))
        first: list[Entry] = [(GroupKey(group.group_id), None), *new.everything()]
        self._convert(group, new, first, request, reply)

    def _convert(
        self,
        group: Group,
        new: ConsumerGroup,
        first: Sequence[Entry],
        request: Heartbeat,
        reply: Callable[[int, HeartbeatResult], None],
    ) -> None:
        """Write the records that turn `group` into the consumer group `new`, and those of its
        newest member's heartbeat, as one batch."""

        def commit(entries: Sequence[GroupsEntry], written: Callable[[int], None]) -> None:
            self.write_group(group.group_id, [*first, *entries], written)
            self._rebalancer.retire(group, ErrorCode.REBALANCE_IN_PROGRESS)
            if group.consumer is not None:
                self.members.loaded(group.consumer)

        self.members.begin(new, request, reply, commit)

    # --- What members of the classic protocol ask

    def _check_mixed(self, group: ConsumerGroup) -> None:
        if self._broker.settings["group.consumer.migration.policy"].lower() == "disabled":
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {group.group_id} with the classic protocol because the "
                "group migration is disabled.",
            )

    def _join(self, group: ConsumerGroup, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        known = bool(request.member_id)
        join = ClassicJoin(
            request.member_id or self.members.new_id(),
            request.instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocol_type,
            tuple(request.protocols),
            known,
        )
        if not known and request.asks_for_id and request.instance_id is None:
            reply(JoinOutcome(ErrorCode.MEMBER_ID_REQUIRED, join.member_id))
            return

        def joined(error: int, member: ConsumerMember) -> None:
            if error:
                reply(JoinOutcome(error, member.member_id))
            else:
                name = protocol_of(member)[0]
                reply(JoinOutcome(error, member.member_id, member.epoch, CONSUMER_PROTOCOL, name))

        self.members.join_classic(group, join, joined)

    def sync(
        self,
        group: ConsumerGroup,
        who: tuple[str, str | None, int],
        protocol: tuple[str | None, str | None],
        reply: Callable[[SyncOutcome], None],
    ) -> None:
        """Serve a SyncGroup of a classic member; `who` is (member id, instance id, generation),
        `protocol` (type, name)."""
        self.members.sync_classic(
            group, who, protocol, lambda error, assignment: reply(SyncOutcome(error, *protocol, assignment))
        )

    def make_classic(self, group: ConsumerGroup) -> None:
        """Turn an empty consumer group into a classic one, which keeps its committed offsets."""
        self.write_group(group.group_id, list(group.tombstones()), lambda _error: None)
        self.members.forget(group.group_id)

    def takes_join(
        self, group: ConsumerGroup, request: JoinRequest, reply: Callable[[JoinOutcome], None]
    ) -> bool:
        """Serve a JoinGroup to a consumer group. False: the group is a classic one by now, and the
        request is one to that."""
        if not group.members:
            self.make_classic(group)
            return False
        try:
            self._check_mixed(group)
            if self._replaces_last(group, request):
                return False
            self._join(group, request, reply)
        except BrokerError as error:
            reply(JoinOutcome(error.code, ""))
        return True

    def downgrades(self, group: ConsumerGroup, gone: Sequence[ConsumerMember]) -> bool:
        """Make a classic group of one whose last members of the consumer protocol are going; True
        if that was done."""
        settings = self._broker.settings
        policy, max_size = settings["group.consumer.migration.policy"], settings["group.max.size"]
        if not may_downgrade(group, gone, policy, max_size):
            return False
        home = self._shards.of(group.group_id).groups[group.group_id]
        scratch = downgraded(group, gone, self.view(group.group_id))
        assignments = {member.member_id: member.assignment for member in scratch.members.values()}
        record = scratch.generation_record(assignments, self._broker.wall_ms)
        entries = [*group.tombstones(), (GroupKey(group.group_id), record)]
        self.write_group(group.group_id, entries, lambda _error: None)
        self.members.forget(group.group_id)
        self._rebalancer.adopt(home, scratch)
        return True

    def _replaces_last(self, group: ConsumerGroup, request: JoinRequest) -> bool:
        """True if a static member of the classic protocol replaces the last one of the consumer
        protocol. If that is allowed, the group is turned into a classic one."""
        old = group.static_member(request.instance_id)
        if request.member_id or old is None or old.classic:
            return False
        if self.downgrades(group, [old]):
            return True
        policy = self._broker.settings["group.consumer.migration.policy"]
        if len(group.members) > 1 or policy.lower() not in DOWNGRADES:
            return False
        self.make_classic(group)
        return True

    # --- Offsets

    @hook("consumer groups: may this member commit")
    def check_commit(self, group: ConsumerGroup, who: Committer, offsets: Sequence[TopicPartition]) -> None:
        """Raise BrokerError if a commit is to be refused; see `consumer_groups.check_commit`. In a
        transaction a stale epoch is an ILLEGAL_GENERATION, which all its clients know."""
        try:
            check_commit(group, who, [self._place(of) for of in offsets])
        except BrokerError as error:
            if who.version is None and error.code == ErrorCode.STALE_MEMBER_EPOCH:
                raise BrokerError(ErrorCode.ILLEGAL_GENERATION, str(error)) from None
            raise

    def _place(self, of: TopicPartition) -> tuple[UUID, int]:
        topic = self.topics.find(of.topic)
        return NO_TOPIC_ID if topic is None else topic.topic_id, of.partition

    def check_reader(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise BrokerError if a member may not be answered committed offsets; see
        `consumer_groups.check_fetch`. Members of classic groups may read all."""
        group = self._shards.of(group_id).groups.get(group_id)
        if group is not None and group.consumer is not None:
            check_fetch(group.consumer, member_id, epoch)

    # --- For `consumer_groups`

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group of this id, if it is a consumer group and this broker coordinates it; else
        None."""
        try:
            group = self._shards.of(group_id).groups.get(group_id)
        except BrokerError:
            return None
        return None if group is None else group.consumer

    def view(self, group_id: str) -> View:
        """The metadata and settings that a decision about a group depends on."""
        settings = self._broker.settings
        own = self._broker.controller.group_settings(group_id)
        return View(
            self.topics,
            GroupSettings(
                own["consumer.session.timeout.ms"],
                own["consumer.heartbeat.interval.ms"],
                own["consumer.assignment.interval.ms"],
                settings["group.consumer.max.size"],
                settings["group.consumer.assignors"],
                settings["group.consumer.regex.refresh.interval.ms"],
            ),
            self._broker.wall_ms,
        )

    def owner_of_group(self, group_id: str) -> Owner:
        """Owner (`guard`) of work for a group."""
        return self._owner_of(Group(group_id))

    def write_group(
        self, group_id: str, entries: Sequence[Entry | GroupsEntry], written: Callable[[int], None]
    ) -> None:
        """Write entries of a group as one batch; `written` is called once they are. BrokerError if
        they cannot be written."""
        shard = self._shards.of(group_id)
        group = shard.group(group_id, self._broker.wall_ms)
        self._log.write_at_once(shard, group, entries, written)

    def when_committed(self, group_id: str, committed: Callable[[int], None]) -> None:
        """Call `committed` once all that was written of the group is committed."""
        group = self._shards.of(group_id).groups.get(group_id)
        if group is None:
            committed(ErrorCode.NONE)
        else:
            when_committed(group, committed)


def not_consumer(group_id: str) -> BrokerError:
    """The error for a request about a consumer group that is of another kind, in Kafka's words."""
    return BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
