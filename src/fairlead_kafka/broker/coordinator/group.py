"""A group and its members: data, and questions about them. Nothing here waits, answers or
writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import NO_TOPIC_ID, TopicPartition
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.broker.consumer_groups import ConsumerGroup
from fairlead_kafka.broker.coordinator.group_records import GroupRecord, MemberRecord
from fairlead_kafka.broker.coordinator.states import TRANSITIONS, GroupState
from fairlead_kafka.broker.fields import Reader
from fairlead_kafka.broker.share_groups import SHARE_TYPE, ShareGroup
from fairlead_kafka.broker.timers import Timer

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers: their metadata says which topics they subscribe to."""


def member_id_of(name: str, unique: str) -> str:
    """A member id: the client's or instance's name, cut so that a record can hold the id, and
    `unique`."""
    room_bytes = STRING_MAX_BYTES - len(unique) - 1
    return f"{name.encode()[:room_bytes].decode(errors='ignore')}-{unique}"


@dataclass(slots=True)
class JoinRequest:
    """A JoinGroup. `asks_for_id`: the client knows MEMBER_ID_REQUIRED (v4); `can_skip`: it knows
    skip_assignment (v9)."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: list[tuple[str, bytes]]
    asks_for_id: bool
    can_skip: bool


@dataclass(slots=True)
class JoinOutcome:
    """Outcome of a JoinGroup. `members` (id, instance id, metadata) is for the leader, who
    assigns."""

    error_code: int
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: list[tuple[str, str | None, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class SyncOutcome:
    """Outcome of a SyncGroup: the member's assignment, or an error."""

    error_code: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class Member:
    """One member of a classic group. `protocols` are in its order of preference; `join_reply` and
    `sync_reply` are set while it waits for an answer."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: list[tuple[str, bytes]]
    assignment: bytes = b""
    join_reply: Callable[[JoinOutcome], None] | None = None
    sync_reply: Callable[[SyncOutcome], None] | None = None
    synced: bool = False
    """The member has asked for its assignment in this generation."""
    new: bool = True
    """The member has not been answered a join yet, so it sends no heartbeats."""
    deadline_ns: int = 0
    """Monotonic time when the session expires unless a request of the member comes, ns."""
    timer: Timer | None = None

    def update(self, request: JoinRequest) -> None:
        """Set the member's subscription and time-outs by its JoinGroup."""
        self.client_id, self.client_host = request.client_id, request.client_host
        self.session_timeout_ms, self.rebalance_timeout_ms = (
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
        )
        self.protocols = request.protocols

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for a protocol; empty if it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that a consumer subscribes to; None if the member's metadata are not a
        consumer's."""
        topics: set[str] = set()
        for _, metadata in self.protocols:
            found = topics_of_subscription(metadata)
            if found is None:
                return None
            topics.update(found)
        return frozenset(topics)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed position. `position` is the record's offset in the partition of
    `__consumer_offsets`, `topic_id` the topic's at that time (NO_TOPIC_ID: written by a release
    that kept no ids)."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    position: int = -1
    topic_id: UUID = NO_TOPIC_ID


@dataclass(slots=True, eq=False)
class GroupWrite:
    """Entries of a consumer group under way to the log; each of `after` is called with the error
    code, once."""

    after: list[Callable[[int], None]]
    late: bool = False
    """True if the write took longer than `offsets.commit.timeout.ms`, and the waiting requests were
    answered with that error."""


@dataclass(slots=True)
class Group:
    """One group with its committed offsets; `members` in order of joining, `static` maps instance
    id to member id. With `consumer` it is a consumer group (KIP-848), which has the members; of
    this object then only the offsets are used."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    protocol_type: str | None = None
    protocol_name: str | None = None
    generation: int = 0
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static: dict[str, str] = field(default_factory=dict)
    pending: dict[str, Timer] = field(default_factory=dict)
    """Ids given out with MEMBER_ID_REQUIRED, whose owners have not come back yet."""
    rebalance_timer: Timer | None = None
    delayed: bool = False
    """The group was empty, and waits `group.initial.rebalance.delay.ms` for more members even if
    all that it has have joined."""
    grew: bool = False
    """A member was added since that wait began: it waits once more."""
    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    transactional: dict[int, dict[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    """Producer id → what its open transaction commits: counts once it is committed, and is dropped
    if it is aborted."""
    record: GroupRecord | None = None
    """The generation that the log has; None: the log knows offsets of the group at most."""
    record_position: int = -1
    """The offset of that record in the partition of `__consumer_offsets`."""
    persisting: int = -1
    """The generation whose assignment is under way to the log."""
    pending_writes: int = 0
    """Commits and deletions under way to the log: the group must not be forgotten before they are
    done."""
    consumer: ConsumerGroup | None = None
    """The group of the consumer protocol; None: this is a classic group."""
    share: ShareGroup | None = None
    """The share group (KIP-932); None: this is another kind of group."""
    writes: deque[GroupWrite] = field(default_factory=deque)
    """Entries of the consumer or share group under way to the log, in order."""
    quiet_since_ms: int = 0
    """Time when the group lost its last member: retention of offsets counts from here, or from
    their commit if that was later."""

    @property
    def type_name(self) -> str:
        """The group's type, as ListGroups answers it."""
        if self.share is not None:
            return SHARE_TYPE
        return "classic" if self.consumer is None else "consumer"

    @property
    def state_name(self) -> str:
        """The group's state, as ListGroups answers it."""
        if self.share is not None:
            return self.share.state_name
        return self.state.value if self.consumer is None else self.consumer.state.value

    @property
    def listed_protocol_type(self) -> str:
        """The group's protocol type, as ListGroups answers it."""
        if self.share is not None:
            return SHARE_TYPE
        return (self.protocol_type or "") if self.consumer is None else CONSUMER_PROTOCOL

    @property
    def empty(self) -> bool:
        """Whether the group has no members, by its state."""
        if self.share is not None:
            return not self.share.members
        return self.state is GroupState.EMPTY if self.consumer is None else not self.consumer.members

    def enter(self, state: GroupState) -> None:
        """Change the state; AssertionError for a change that the table does not have."""
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"group {self.group_id}: {self.state.value} cannot become {state.value}")
        self.state = state

    def add(self, member: Member) -> None:
        """Add a member; the first one leads and decides the protocol type."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def replace(self, old_id: str, member: Member) -> None:
        """Replace the member `old_id` by `member`, which has the same instance id, and becomes
        leader if the old one was."""
        self.members = {
            (member.member_id if key == old_id else key): (member if key == old_id else one)
            for key, one in self.members.items()
        }
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        if self.leader_id == old_id:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member; another one leads if it did."""
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        if member.timer is not None:
            member.timer.cancel()
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        return member

    def candidate_protocols(self, without: str = "") -> set[str]:
        """The protocols that all members, except `without`, offer."""
        offers = [
            {name for name, _ in member.protocols}
            for member in self.members.values()
            if member.member_id != without
        ]
        return set.intersection(*offers) if offers else set()

    def accepts(self, member_id: str, protocol_type: str, protocols: Iterable[tuple[str, bytes]]) -> bool:
        """True if a member with these protocols can be in the group: it shares type and a protocol
        with all others."""
        names = {name for name, _ in protocols}
        others = [other for other in self.members if other != member_id]
        if not others:
            return bool(names)
        return protocol_type == self.protocol_type and bool(names & self.candidate_protocols(member_id))

    def elected_protocol(self) -> str:
        """The protocol that most members prefer among those all offer; of equals, the one voted for
        first."""
        candidates = self.candidate_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            favourite = next(name for name, _ in member.protocols if name in candidates)
            votes[favourite] = votes.get(favourite, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def check_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member that a request is from. BrokerError: FENCED_INSTANCE_ID if another took its
        instance id, UNKNOWN_MEMBER_ID."""
        if instance_id is not None:
            owner = self.static.get(instance_id)
            if owner is None:
                raise BrokerError(
                    ErrorCode.UNKNOWN_MEMBER_ID,
                    f"group {self.group_id}: no member has the instance id {instance_id!r}",
                )
            if owner != member_id:
                raise BrokerError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"group {self.group_id}: {instance_id!r} is now another member's",
                )
        member = self.members.get(member_id)
        if member is None:
            raise BrokerError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self.group_id}: no member {member_id!r}")
        return member

    def member_of(self, generation: int, member_id: str, instance_id: str | None) -> Member:
        """The member that a request of this generation is from. BrokerError: ILLEGAL_GENERATION,
        and what `check_member` raises."""
        member = self.check_member(member_id, instance_id)
        if generation != self.generation:
            raise BrokerError(
                ErrorCode.ILLEGAL_GENERATION,
                f"group {self.group_id} is at generation {self.generation}, the member at {generation}",
            )
        return member

    def rebalance_timeout_ms(self) -> int:
        """Milliseconds that a rebalance waits for members: the longest time-out of any of them."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def reading(self) -> Callable[[str], bool]:
        """A function that says of a topic whether a member may be reading it: it says so, or it
        does not say what it reads. What members say is looked at once, for all topics."""
        if self.consumer is not None:
            return self.consumer.topics().__contains__
        if self.protocol_type != CONSUMER_PROTOCOL:
            return lambda _topic: False
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = member.subscribed_topics()
            if subscribed is None:
                return lambda _topic: True
            topics.update(subscribed)
        return topics.__contains__

    def check(self) -> None:
        """Raise CheckFailed unless indexes and counters fit the members."""
        what = f"group {self.group_id!r} ({self.state.value})"
        if self.consumer is not None:
            holds(f"{what}: members of both protocols", not self.members and self.record is None)
            self.consumer.check()
        if self.share is not None:
            holds(f"{what}: share group, and more", not self.members and self.consumer is None)
            self.share.check()
        same(
            f"{what}: ids of members",
            list(self.members),
            [member.member_id for member in self.members.values()],
        )
        static = {
            one.instance_id: one.member_id for one in self.members.values() if one.instance_id is not None
        }
        same(f"{what}: static members", self.static, static)
        holds(
            f"{what}: led by {self.leader_id!r}, who is no member",
            self.leader_id in self.members or self.leader_id is None,
        )
        holds(
            f"{what}: {len(self.members)} members",
            not self.members or self.state not in (GroupState.EMPTY, GroupState.DEAD),
        )
        balanced = self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
        holds(
            f"{what}: without a leader or a protocol",
            not balanced or (self.leader_id is not None and self.protocol_name is not None),
        )
        timed = self.rebalance_timer is not None and self.rebalance_timer.pending
        holds(
            f"{what}: nothing ends its rebalance", timed or self.state is not GroupState.PREPARING_REBALANCE
        )
        holds(
            f"{what}: an id was given out without a timer",
            all(timer.pending for timer in self.pending.values()),
        )
        for member in self.members.values():
            watched = (
                member.timer is not None
                and member.timer.pending
                and member.timer.deadline_ns <= member.deadline_ns
            )
            holds(f"{what}: nobody watches over member {member.member_id!r}", watched)
            holds(
                f"{what}: {member.member_id!r} waits for a join that is over",
                member.join_reply is None or not balanced,
            )
            waits = member.sync_reply is not None
            holds(
                f"{what}: {member.member_id!r} waits for no sync",
                not waits or self.state is GroupState.COMPLETING_REBALANCE,
            )

    def forgettable(self) -> bool:
        """True if the group may be forgotten: nothing would be lost with it."""
        idle = self.state in (GroupState.EMPTY, GroupState.DEAD) and not self.members and not self.pending
        return (
            idle
            and self.record is None
            and self.consumer is None
            and self.share is None
            and not self.offsets
            and not self.transactional
            and not self.pending_writes
        )

    def generation_record(self, assignments: Mapping[str, bytes], since_ms: int) -> GroupRecord:
        """The record of the group's present generation, with each member's assignment, for the
        log."""
        protocol = self.protocol_name
        members = [
            MemberRecord(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.metadata(protocol or ""),
                assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        ]
        return GroupRecord(
            self.protocol_type or "", self.generation, protocol, self.leader_id, since_ms, tuple(members)
        )

    def restore(self) -> None:
        """Restore a group that was just read from its record: stable with its members, or empty."""
        record = self.record
        if record is None:
            return
        self.protocol_type = record.protocol_type or None
        self.generation, self.protocol_name = record.generation, record.protocol_name
        self.quiet_since_ms = max(record.since_ms, 0)
        for one in record.members:
            protocols = [(record.protocol_name or "", one.metadata)]
            self.add(
                Member(
                    one.member_id,
                    one.instance_id,
                    one.client_id,
                    one.client_host,
                    one.session_timeout_ms,
                    one.rebalance_timeout_ms,
                    protocols,
                    one.assignment,
                    synced=True,
                    new=False,
                )
            )
        if record.leader_id in self.members:
            self.leader_id = record.leader_id
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY

    def partitions(self) -> list[TopicPartition]:
        """Every partition with an offset, one in a transaction included."""
        return list(
            dict.fromkeys([*self.offsets, *(of for offsets in self.transactional.values() for of in offsets)])
        )

    def offsets_of(self, of: TopicPartition) -> list[CommittedOffset]:
        """The offsets of one partition: the committed one, and those in open transactions."""
        kept = [self.offsets, *self.transactional.values()]
        return [offsets[of] for offsets in kept if of in offsets]

    def unstable(self, of: TopicPartition) -> bool:
        """True if an open transaction commits an offset of this partition."""
        return any(of in offsets for offsets in self.transactional.values())


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """The topics in a consumer's join metadata (`ConsumerProtocolSubscription`: int16 version,
    array of strings, ...); None if garbled."""
    reader = Reader(metadata, "a subscription")
    try:
        reader.number(">h")
        return reader.texts()
    except DecodeError:
        return None
