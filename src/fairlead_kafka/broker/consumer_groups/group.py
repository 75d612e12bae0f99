"""A consumer group in memory: the fold of its records (`apply_entry`), and questions about it.

Nothing here waits, answers or writes. A group consists only of the contents of its records; timers
of members and the last view of the cluster's topics are kept beside it (`Soft`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.consumer_groups.assignors import Target
from fairlead_kafka.broker.consumer_groups.records import (
    About,
    Current,
    CurrentKey,
    EpochKey,
    EpochRecord,
    GroupsEntry,
    GroupsKey,
    GroupsValue,
    MemberKey,
    Partitions,
    PatternKey,
    Resolved,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
)
from fairlead_kafka.broker.consumer_groups.states import ConsumerGroupState, MemberState

LEAVE_EPOCH = -1
"""Member epoch of a heartbeat that leaves."""
LEAVE_STATIC_EPOCH = -2
"""Member epoch of a static member that leaves for a while."""
FIRST_EPOCH = 1
"""Epoch of a group that is new (Kafka's `ModernGroup`)."""


_NOTHING_SAID, _NOTHING_HAD = About(), Current()


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member of a consumer group: its subscription (`about`), and its present assignment
    (`current`)."""

    member_id: str
    about: About = _NOTHING_SAID
    current: Current = _NOTHING_HAD

    @property
    def classic(self) -> bool:
        """Whether the member speaks the classic protocol."""
        return self.about.classic is not None

    @property
    def epoch(self) -> int:
        """The epoch that the member's next request is expected to have."""
        return self.current.epoch

    def reconciled(self, epoch: int) -> bool:
        """Whether the member has all of its target of `epoch`."""
        return self.current.state is MemberState.STABLE and self.current.epoch == epoch

    def assigned_since(self, topic: UUID, partition: int) -> int | None:
        """The epoch at which the member got a partition; None if it does not have the partition."""
        for partitions in (self.current.assigned, self.current.revoking):
            epoch = partitions.get(topic, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(slots=True)
class Soft:
    """State of a group that is not written to the log; the group's next coordinator computes it
    again."""

    topics_version: int = -1
    """Version of the cluster's topics that the metadata hash was last computed of."""
    patterns_version: int = -1
    """Version of the cluster's topics that expressions were last resolved by."""
    resolving: bool = False
    """Expressions are about to be resolved."""


@dataclass  # not slots=True: that would make a class which its hook does not know
class ConsumerGroup:
    """One consumer group (KIP-848), as its coordinator knows it; `members` are in the order in
    which they joined."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = 0
    assigned_ms: int = 0
    """When the targets were computed, ms; 0: never."""
    recorded: bool = False
    """The log has a record of this group."""
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    patterns: dict[str, Resolved] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    """Instance id → member id."""
    owners: dict[tuple[UUID, int], str] = field(default_factory=dict)
    """Partition → the member that has it, or has not yet given it up."""
    soft: Soft = field(default_factory=Soft)

    # --- Questions

    @property
    def state(self) -> ConsumerGroupState:
        """The group's state, derived from its epochs and members."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.reconciled(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def member(self, member_id: str) -> ConsumerMember:
        """The member of this id. BrokerError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member of an instance id; None if there is none."""
        member_id = None if instance_id is None else self.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def speaker(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member that a request is from. BrokerError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID
        if another took its instance id."""
        if instance_id is None:
            return self.member(member_id)
        member = self.static_member(instance_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise BrokerError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member "
                f"{member.member_id}.",
            )
        return member

    def assignor(self, fallback: str, instead: ConsumerMember | None = None, old_id: str = "") -> str:
        """The assignor that most members name, `fallback` if none does; `instead` is the choice of
        the member that replaces `old_id`."""
        members = [one for one in self.members.values() if one.member_id != old_id]
        named = [one.about.assignor for one in ([*members, instead] if instead else members)]
        counts = Counter(name for name in named if name is not None)
        return max(sorted(counts), key=lambda name: counts[name]) if counts else fallback

    def topics_of(self, about: About) -> frozenset[str]:
        """The names of topics that a member reads, with those that its regular expression
        matches."""
        resolved = self.patterns.get(about.pattern) if about.pattern else None
        return about.topics if resolved is None else about.topics | resolved.topics

    def topics(self) -> set[str]:
        """All topics that members read."""
        return set().union(*(self.topics_of(member.about) for member in self.members.values()))

    def readers_of(self, pattern: str) -> int:
        """Number of members that subscribe by this regular expression."""
        return sum(member.about.pattern == pattern for member in self.members.values())

    def pattern_names(self) -> set[str]:
        """The regular expressions of all members."""
        return {member.about.pattern for member in self.members.values() if member.about.pattern}

    def resolved_ms(self) -> int:
        """When the regular expressions were last resolved, ms since 1970; 0: never."""
        return max((one.resolved_ms for one in self.patterns.values()), default=0)

    @hook("consumer groups: nobody else has a partition")
    def free(self, topic: UUID, number: int, member_id: str) -> bool:
        """Whether nobody but this member has a partition, or has yet to give it up."""
        return self.owners.get((topic, number), member_id) == member_id

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether part of the member's target is still with others."""
        return member.current.state is MemberState.UNRELEASED_PARTITIONS and any(
            not self.free(topic, number, member.member_id)
            for topic, numbers in self.targets.get(member.member_id, {}).items()
            for number in numbers
        )

    # --- Entries

    def tombstones(self, renamed: Mapping[str, str] | None = None) -> Iterator[GroupsEntry]:
        """Tombstones for all records that the log has of the group; `renamed`: member id → the id
        that its records have by now."""
        ids = [(renamed or {}).get(member_id, member_id) for member_id in self.members]
        yield from ((CurrentKey(self.group_id, member_id), None) for member_id in ids)
        yield from ((TargetKey(self.group_id, member_id), None) for member_id in ids)
        yield TargetEpochKey(self.group_id), None
        yield from ((MemberKey(self.group_id, member_id), None) for member_id in ids)
        yield from ((PatternKey(self.group_id, pattern), None) for pattern in self.patterns)
        yield EpochKey(self.group_id), None

    def everything(self) -> Iterator[GroupsEntry]:
        """Entries of the log that have the whole state of the group."""
        for member_id, member in self.members.items():
            yield MemberKey(self.group_id, member_id), member.about
        yield EpochKey(self.group_id), EpochRecord(self.epoch, self.metadata_hash)
        for member_id in self.members:
            yield TargetKey(self.group_id, member_id), self.targets.get(member_id, {})
        yield TargetEpochKey(self.group_id), TargetEpochRecord(self.target_epoch, self.assigned_ms)
        for member_id, member in self.members.items():
            yield CurrentKey(self.group_id, member_id), member.current

    # --- Fold

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace it by its new state."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        if member.about.instance_id is not None:
            self.static[member.about.instance_id] = member.member_id
        for each in _held(member):
            self.owners[each] = member.member_id

    def drop(self, member_id: str) -> None:
        """Remove a member, with its partitions and its instance id."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        instance_id = member.about.instance_id
        if instance_id is not None and self.static.get(instance_id) == member_id:
            del self.static[instance_id]

    def _release(self, member: ConsumerMember) -> None:
        for each in _held(member):
            if self.owners.get(each) == member.member_id:
                del self.owners[each]

    def check(self) -> None:
        """Raise CheckFailed unless the indexes fit the members."""
        what = f"consumer group {self.group_id!r} ({self.state.value})"
        same(f"{what}: ids", list(self.members), [one.member_id for one in self.members.values()])
        named = ((one.about.instance_id, one.member_id) for one in self.members.values())
        same(f"{what}: static members", self.static, {key: value for key, value in named if key is not None})
        owners: dict[tuple[UUID, int], str] = {}
        for member in self.members.values():
            for each in _held(member):
                holds(f"{what}: {each} is with {owners.get(each)} and {member.member_id}", each not in owners)
                owners[each] = member.member_id
        same(f"{what}: owners", self.owners, owners)
        strangers = set(self.targets) - set(self.members)
        holds(f"{what}: targets of {strangers}, who are no members", not strangers)
        holds(
            f"{what}: targets of epoch {self.target_epoch} before {self.epoch}",
            self.target_epoch <= self.epoch,
        )


def _held(member: ConsumerMember) -> Iterable[tuple[UUID, int]]:
    for partitions in (member.current.assigned, member.current.revoking):
        for topic, numbers in partitions.items():
            for number in numbers:
                yield topic, number


def apply_entry(group: ConsumerGroup, key: GroupsKey, value: GroupsValue | None) -> None:
    """Apply a record of the log to a group. Records come in the log's order, live and on replay."""
    match key, value:
        case EpochKey(), EpochRecord(epoch, metadata_hash):
            group.epoch, group.metadata_hash, group.recorded = epoch, metadata_hash, True
        case EpochKey(), None:
            group.epoch, group.metadata_hash, group.recorded = FIRST_EPOCH, 0, False
        case MemberKey(_, member_id), About():
            group.recorded = True
            group.put(replace(group.members.get(member_id, ConsumerMember(member_id)), about=value))
        case MemberKey(_, member_id), None:
            group.drop(member_id)
        case TargetEpochKey(), TargetEpochRecord(epoch, assigned_ms):
            group.target_epoch, group.assigned_ms = epoch, assigned_ms
        case TargetEpochKey(), None:
            group.target_epoch, group.assigned_ms = 0, 0
        case TargetKey(_, member_id), None:
            group.targets.pop(member_id, None)
        case CurrentKey(_, member_id), Current():
            group.put(replace(group.members.get(member_id, ConsumerMember(member_id)), current=value))
        case CurrentKey(_, member_id), None:
            if member_id in group.members:
                group.put(replace(group.members[member_id], current=Current(LEAVE_EPOCH, LEAVE_EPOCH)))
        case PatternKey(_, pattern), Resolved():
            group.patterns[pattern] = value
        case PatternKey(_, pattern), None:
            group.patterns.pop(pattern, None)
        case TargetKey(_, member_id), _:
            assert isinstance(value, Mapping)
            group.targets[member_id] = value
        case _:
            raise AssertionError(f"{key} with {value}")


def held_partitions(partitions: Partitions) -> dict[UUID, list[int]]:
    """Partitions by topic, without their epochs, in order."""
    return {topic: sorted(numbers) for topic, numbers in sorted(partitions.items())}
