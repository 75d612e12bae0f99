"""A share group in memory: the fold of its records (`apply_share_entry`), and questions about
it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.consumer_groups import Target
from fairlead_kafka.broker.share_groups.group_records import (
    ShareAbout,
    ShareCurrent,
    ShareCurrentKey,
    ShareEpoch,
    ShareEpochKey,
    ShareGroupEntry,
    ShareGroupKey,
    ShareGroupValue,
    ShareMemberKey,
    ShareTargetEpoch,
    ShareTargetEpochKey,
    ShareTargetKey,
    StatePartitions,
    StatePartitionsKey,
    TopicState,
)

SHARE_TYPE = "share"
"""Group type, and protocol type, of share groups."""
LEAVE_EPOCH = -1
"""Member epoch of a heartbeat that leaves."""
FIRST_EPOCH = 1
"""Epoch of a group that has no record yet (Kafka's `ModernGroup`), where none was deleted
before."""
ASSIGNOR = "simple"
"""Name of the one assignor there is."""
EMPTY, STABLE = "Empty", "Stable"

_NOTHING_SAID, _NOTHING_HAD, _NO_STATES = ShareAbout(), ShareCurrent(), StatePartitions()


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member of a share group: its subscription (`about`), and its present assignment
    (`current`)."""

    member_id: str
    about: ShareAbout = _NOTHING_SAID
    current: ShareCurrent = _NOTHING_HAD


@dataclass(slots=True)
class ShareGroup:
    """One group; `members` in the order in which the log had them first."""

    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    target_epoch: int = 0
    assigned_ms: int = 0
    """When the targets were computed, ms; 0: never."""
    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    states: StatePartitions = _NO_STATES
    topics_version: int = -1
    """Version of the cluster's topics that the metadata hash was last computed of; not in the
    records."""
    begun_ms: dict[UUID, int] = field(default_factory=dict)
    """When the state of a topic's partitions was last asked to be begun; not in the records."""
    asked: Counter[tuple[UUID, int]] = field(default_factory=Counter)
    """Partitions with questions to the share coordinator under way that begin or forget their
    state, and how many; not in the records."""

    @property
    def state_name(self) -> str:
        """The group's state, as ListGroups answers it."""
        return STABLE if self.members else EMPTY

    def member(self, member_id: str) -> ShareMember:
        """The member of this id. BrokerError: UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def topics(self, instead: ShareMember | None = None) -> set[str]:
        """The names of the topics that members subscribe to; `instead` replaces the member with its
        id."""
        members = dict(self.members)
        if instead is not None:
            members[instead.member_id] = instead
        return {name for member in members.values() for name in member.about.topics}

    def subscribes(self, topic: str) -> bool:
        """Whether a member reads `topic`."""
        return any(topic in member.about.topics for member in self.members.values())

    def assigned(self) -> dict[UUID, set[int]]:
        """The partitions in any member's target."""
        union: dict[UUID, set[int]] = {}
        for target in self.targets.values():
            for topic, numbers in target.items():
                union.setdefault(topic, set()).update(numbers)
        return union

    def tombstones(self) -> Iterator[ShareGroupEntry]:
        """Tombstones of all records that the log has of the group."""
        for member_id in self.members:
            yield from self.tombstones_of(member_id)
        yield ShareTargetEpochKey(self.group_id), None
        yield StatePartitionsKey(self.group_id), None
        yield ShareEpochKey(self.group_id), None

    def tombstones_of(self, member_id: str) -> Iterator[ShareGroupEntry]:
        """Tombstones of all records that the log has of a member."""
        yield ShareCurrentKey(self.group_id, member_id), None
        yield ShareTargetKey(self.group_id, member_id), None
        yield ShareMemberKey(self.group_id, member_id), None

    def check(self) -> None:
        """Raise CheckFailed unless members and targets fit each other."""
        what = f"share group {self.group_id!r}"
        same(f"{what}: ids", list(self.members), [one.member_id for one in self.members.values()])
        strangers = set(self.targets) - set(self.members)
        holds(f"{what}: targets of {strangers}, who are no members", not strangers)
        holds(f"{what}: targets of epoch {self.target_epoch}", self.target_epoch <= self.epoch)
        for topic, number in self.states.altering:
            known = self.states.initializing.get(topic)
            holds(f"{what}: {topic}-{number} is altered", known is not None and number in known.partitions)


def apply_share_entry(group: ShareGroup, key: ShareGroupKey, value: ShareGroupValue | None) -> None:
    """Take a record into a group. Records come in the log's order, live and on replay."""
    match key, value:
        case ShareEpochKey(), ShareEpoch(epoch, metadata_hash):
            group.epoch, group.metadata_hash = epoch, metadata_hash
        case ShareEpochKey(), None:
            group.epoch, group.metadata_hash = FIRST_EPOCH, 0
        case ShareMemberKey(_, member_id), ShareAbout():
            group.members[member_id] = replace(_known(group, member_id), about=value)
        case ShareMemberKey(_, member_id), None:
            group.members.pop(member_id, None)
        case ShareTargetEpochKey(), ShareTargetEpoch(epoch, assigned_ms):
            group.target_epoch, group.assigned_ms = epoch, assigned_ms
        case ShareTargetEpochKey(), None:
            group.target_epoch, group.assigned_ms = 0, 0
        case ShareTargetKey(_, member_id), None:
            group.targets.pop(member_id, None)
        case ShareCurrentKey(_, member_id), ShareCurrent():
            group.members[member_id] = replace(_known(group, member_id), current=value)
        case ShareCurrentKey(_, member_id), None:
            if member_id in group.members:
                group.members[member_id] = replace(group.members[member_id], current=_NOTHING_HAD)
        case StatePartitionsKey(), StatePartitions():
            group.states = value
        case StatePartitionsKey(), None:
            group.states = _NO_STATES
        case ShareTargetKey(_, member_id), _:
            assert isinstance(value, Mapping)
            group.targets[member_id] = value
        case _:
            raise AssertionError(f"{key} with {value}")


def _known(group: ShareGroup, member_id: str) -> ShareMember:
    return group.members.get(member_id, ShareMember(member_id))


def merged(topics: Mapping[UUID, TopicState], more: Mapping[UUID, TopicState]) -> dict[UUID, TopicState]:
    """{topic id: its partitions in `topics` or `more`}."""
    found = dict(topics)
    for topic, state in more.items():
        before = found.get(topic)
        numbers = state.partitions if before is None else state.partitions | before.partitions
        found[topic] = TopicState(state.name, numbers)
    return found


def without(topics: Mapping[UUID, TopicState], gone: Mapping[UUID, Iterable[int]]) -> dict[UUID, TopicState]:
    """{topic id: its partitions in `topics` and not in `gone`}."""
    found: dict[UUID, TopicState] = {}
    for topic, state in topics.items():
        numbers = state.partitions - frozenset(gone.get(topic, ()))
        if numbers:
            found[topic] = TopicState(state.name, numbers)
    return found
