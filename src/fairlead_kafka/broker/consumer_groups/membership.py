"""Changes that the requests of members make in a group (Kafka's `GroupMetadataManager`).

Each function takes a group, a request and a `View`, and returns entries for the log and the answer
to the member. None of them changes the group: the entries do, once they are appended to the log
(`group.apply_entry`).

A group's epoch is raised when its members or their topics change; then targets of that epoch are
computed, at most once in `group.consumer.assignment.interval.ms` (KIP-1263), with the next
heartbeat of any member; each member then reconciles towards its target at its own pace
(`reconcile`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.patterns import PatternError, compile_pattern, matching
from fairlead_kafka.broker.consumer_groups.assignors import ASSIGNORS, Candidate, Target
from fairlead_kafka.broker.consumer_groups.group import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
)
from fairlead_kafka.broker.consumer_groups.reconcile import Goal, Owned, next_current
from fairlead_kafka.broker.consumer_groups.records import (
    About,
    Current,
    CurrentKey,
    EpochKey,
    EpochRecord,
    GroupsEntry,
    MemberKey,
    PatternKey,
    Resolved,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
)
from fairlead_kafka.broker.consumer_groups.view import View

PATTERNS_AGAIN_MS = 10_000
"""Expressions of a group are resolved no oftener than this (Kafka's
`REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`)."""
COMMITS_FROM_VERSION = 9
"""Version of OffsetCommit from which it has a member's epoch."""
NOT_SENT = -1


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat; a field that is None is not in the request, and stays as it was.
    `visible(topics)` gives those that the member may describe."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_SENT
    topics: frozenset[str] | None = None
    pattern: str | None = None
    assignor: str | None = None
    owned: Owned = None
    visible: Callable[[Iterable[str]], Container[str | None]] = frozenset

    @property
    def full(self) -> bool:
        """Whether the heartbeat has every field: the member wants its whole assignment in the
        answer."""
        sent = self.topics is not None or self.pattern is not None
        return self.member_epoch == 0 or (
            self.rebalance_timeout_ms != NOT_SENT and sent and self.owned is not None
        )


class HeartbeatResult(NamedTuple):
    """Answer to a heartbeat of a consumer group or a share group. `member_epoch` is negative for a
    member that leaves; `assignment` None: as in the answer before."""

    member_id: str
    member_epoch: int
    assignment: Target | None = None


@dataclass(slots=True)
class Step:
    """A change of a member: the entries for the log, and the member after them. `resolve`: the
    group's regular expressions are to be resolved next. `moved`: the partitions that the member has
    or is to give up have changed."""

    member: ConsumerMember
    entries: list[GroupsEntry] = field(default_factory=list)
    resolve: bool = False
    moved: bool = False


def check_heartbeat(request: Heartbeat, version: int, assignors: Sequence[str]) -> None:
    """Check a heartbeat by itself, without its group. BrokerError: INVALID_REQUEST,
    UNSUPPORTED_ASSIGNOR."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVE_EPOCH:
        _not_blank(request.member_id, "MemberId can't be empty.")
    _not_blank(request.group_id, "GroupId can't be empty.")
    _not_blank(request.instance_id, "InstanceId can't be empty.")
    _not_blank(request.rack_id, "RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == NOT_SENT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.topics is None and request.pattern is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in assignors:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )


def _not_blank(text: str | None, wrong: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(wrong)


def _invalid(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, text)


def check_room(group: ConsumerGroup, member_id: str, view: View) -> None:
    """Raise BrokerError GROUP_MAX_SIZE_REACHED if the group is full and `member_id` is not in
    it."""
    if len(group.members) >= view.settings.max_size and member_id not in group.members:
        raise BrokerError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {view.settings.max_size} members.",
        )


def heartbeat(
    group: ConsumerGroup, request: Heartbeat, member_id: str, view: View
) -> tuple[Step, HeartbeatResult]:
    """A heartbeat that joins (epoch 0) or goes on, of the member `member_id`.

    BrokerError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
    UNRELEASED_INSTANCE_ID, FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION.
    """
    check_room(group, request.member_id, view)
    entries: list[GroupsEntry] = []
    if request.member_epoch == 0:
        member = newcomer(group, member_id, request.instance_id, entries, classic=False)
    else:
        member = group.speaker(member_id, request.instance_id)
    _check_epoch(member, request)
    about = _about(member.about, request)
    step = advance(group, member, about, request.owned, view, entries)
    after = step.member.current
    news = request.full or after.assigned != member.current.assigned
    assignment = {topic: frozenset(numbers) for topic, numbers in after.assigned.items()} if news else None
    return step, HeartbeatResult(member_id, after.epoch, assignment)


def _about(before: About, request: Heartbeat) -> About:
    """A member's subscription once its heartbeat is taken: `before`, with the fields that the
    request has."""
    sent_ms = request.rebalance_timeout_ms
    return About(
        before.instance_id if request.instance_id is None else request.instance_id,
        before.rack_id if request.rack_id is None else request.rack_id,
        request.client_id,
        request.client_host,
        before.topics if request.topics is None else request.topics,
        before.pattern if request.pattern is None else request.pattern,
        before.rebalance_timeout_ms if sent_ms == NOT_SENT else sent_ms,
        before.assignor if request.assignor is None else request.assignor,
    )


def newcomer(
    group: ConsumerGroup, member_id: str, instance_id: str | None, entries: list[GroupsEntry], classic: bool
) -> ConsumerMember:
    """The member that joins: one that is there already, a new one, or one that replaces another
    with its instance id, for which `entries` are added. BrokerError UNRELEASED_INSTANCE_ID while
    that other has not left."""
    old = group.static_member(instance_id)
    if old is None:
        return group.members.get(member_id, ConsumerMember(member_id))
    if not classic and not old.classic and old.epoch != LEAVE_STATIC_EPOCH:
        raise BrokerError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
            f"instance id is owned by {old.member_id} member.",
        )
    member = ConsumerMember(member_id, old.about, old.current._replace(epoch=0, previous_epoch=0))
    entries += removal(group.group_id, old.member_id)
    entries += [
        (MemberKey(group.group_id, member_id), member.about),
        (TargetKey(group.group_id, member_id), group.targets.get(old.member_id, {})),
        (CurrentKey(group.group_id, member_id), member.current),
    ]
    return member


def removal(group_id: str, member_id: str) -> list[GroupsEntry]:
    """Entries of the log (tombstones) that remove a member."""
    return [
        (CurrentKey(group_id, member_id), None),
        (TargetKey(group_id, member_id), None),
        (MemberKey(group_id, member_id), None),
    ]


def _check_epoch(member: ConsumerMember, request: Heartbeat) -> None:
    """Raise BrokerError unless the member's epoch is the present one. The epoch before is accepted
    too, as after a lost answer, if the partitions that the member owns fit it."""
    sent, known = request.member_epoch, member.epoch
    if sent in (0, known):
        return
    lost = sent == member.current.previous_epoch and request.owned is not None
    if lost and sent < known and _within(request.owned, member.current):
        return
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {'greater' if sent > known else 'smaller'} member epoch ({sent}) "
        f"than the one known by the group coordinator ({known}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _within(owned: Owned, current: Current) -> bool:
    return all(
        topic in current.assigned and numbers <= set(current.assigned[topic])
        for topic, numbers in (owned or {}).items()
    )


# --- From a member that has changed to entries


def advance(
    group: ConsumerGroup,
    member: ConsumerMember,
    about: About,
    owned: Owned,
    view: View,
    entries: list[GroupsEntry],
) -> Step:
    """Apply a member's new subscription `about`, compute targets if it is time, and let the member
    reconcile.

    BrokerError INVALID_REGULAR_EXPRESSION.
    """
    updated = replace(member, about=about)
    step = Step(updated, entries)
    if about != member.about:
        entries.append((MemberKey(group.group_id, member.member_id), about))
    renamed = about.topics != member.about.topics
    resolved = _pattern_changed(group, member.about.pattern, about.pattern, step, view)
    changed = renamed or about.pattern != member.about.pattern
    bump = renamed or resolved or (changed and updated.classic)
    epoch = _next_epoch(group, updated, bump, view, entries)
    goal_epoch, target = _targets(group, updated, epoch, view, entries)
    if not changed and updated.reconciled(goal_epoch):
        return step
    goal = Goal(
        goal_epoch,
        target,
        view.topic_ids(group.topics_of(about)),
        lambda topic, number: group.free(topic, number, member.member_id),
    )
    current = next_current(updated.current, goal, owned, changed)
    if current != updated.current:
        step.member, step.moved = replace(updated, current=current), True
        entries.append((CurrentKey(group.group_id, member.member_id), current))
    return step


def _after(group: ConsumerGroup, updated: ConsumerMember) -> dict[str, ConsumerMember]:
    """The group's members after `updated` was put among them, or in the place of another with its
    instance id."""
    old = group.static_member(updated.about.instance_id)
    members = dict(group.members)
    if old is not None and old.member_id != updated.member_id:
        del members[old.member_id]
    members[updated.member_id] = updated
    return members


def _next_epoch(
    group: ConsumerGroup, updated: ConsumerMember, bump: bool, view: View, entries: list[GroupsEntry]
) -> int:
    if not bump and group.soft.topics_version == view.topics.version:
        return group.epoch
    group.soft.topics_version = view.topics.version
    members = _after(group, updated).values()
    names = frozenset(name for one in members for name in group.topics_of(one.about))
    metadata_hash = view.metadata_hash(names)
    if not bump and metadata_hash == group.metadata_hash:
        return group.epoch
    entries.append((EpochKey(group.group_id), EpochRecord(group.epoch + 1, metadata_hash)))
    return group.epoch + 1


def _targets(
    group: ConsumerGroup, updated: ConsumerMember, epoch: int, view: View, entries: list[GroupsEntry]
) -> tuple[int, Target]:
    """The epoch of the targets, and the member's target. Targets are computed again if the group's
    epoch is ahead of them and it is time."""
    old = group.static_member(updated.about.instance_id)
    old_id = updated.member_id if old is None else old.member_id
    due = _is_past(group.assigned_ms, view.settings.assignment_interval_ms, view.wall_ms)
    if group.target_epoch >= epoch or not due:
        return group.target_epoch, group.targets.get(old_id, {})
    members = _after(group, updated)
    counts: dict[UUID, int] = {}
    candidates = {}
    for member_id, one in members.items():
        found = (view.topics.find(name) for name in group.topics_of(one.about))
        topics = {topic.topic_id: topic.partitions for topic in found if topic is not None}
        counts |= topics
        before = group.targets.get(old_id if member_id == updated.member_id else member_id, {})
        candidates[member_id] = Candidate(frozenset(topics), before, one.about.instance_id)
    name = group.assignor(view.settings.assignors[0], updated, old_id)
    targets = ASSIGNORS[name](candidates, counts)
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            entries.append((TargetKey(group.group_id, member_id), target))
    entries.append((TargetEpochKey(group.group_id), TargetEpochRecord(epoch, view.wall_ms)))
    return epoch, targets[updated.member_id]


def _is_past(since_ms: int, interval_ms: int, now_ms: int) -> bool:
    """True unless now is within an interval that began at `since_ms` (0: never).

    (A time in the future means that a clock was wrong: it is not waited for.)
    """
    return not since_ms or not 0 <= now_ms - since_ms < interval_ms


# --- Expressions


def _pattern_changed(group: ConsumerGroup, old: str, new: str, step: Step, view: View) -> bool:
    """Apply the change of a member's regular expression to `step`, and whether the group's are to
    be resolved. True if the member is known to read other topics now."""
    known, first = False, False
    if old != new:
        if old and group.readers_of(old) == 1:
            step.entries.append((PatternKey(group.group_id, old), None))
        if new and not group.readers_of(new):
            _check_pattern(new)
            first = True
        else:
            known = new in group.patterns if new else bool(old)
    step.resolve = _patterns_due(group, old, new, first, view)
    return known


def _patterns_due(group: ConsumerGroup, old: str, new: str, first: bool, view: View) -> bool:
    if not first and not group.pattern_names():
        return False
    resolved_ms = group.resolved_ms()
    if group.soft.resolving or not _is_past(resolved_ms, PATTERNS_AGAIN_MS + 1, view.wall_ms):
        return False
    patterns = group.pattern_names()
    if old and group.readers_of(old) == 1:
        patterns.discard(old)
    patterns |= {new} if new else set()
    due = (
        first
        or len(patterns) != len(group.patterns)
        or group.soft.patterns_version < view.topics.names_version
        or view.wall_ms > resolved_ms + view.settings.patterns_refresh_ms
    )
    return due and bool(patterns)


def _check_pattern(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except PatternError as error:
        raise BrokerError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}.",
        ) from None


def resolve_patterns(
    group: ConsumerGroup, visible: Callable[[Iterable[str]], Container[str | None]], view: View
) -> list[GroupsEntry]:
    """Entries of the log with the topics that the group's regular expressions match now, of those
    `visible` to the member that asked. The group's epoch grows if they match others than before."""
    names = list(view.topics.names())
    seen = visible(names)
    entries: list[GroupsEntry] = []
    patterns = dict(group.patterns)
    for pattern in sorted(group.pattern_names()):
        topics = frozenset(name for name in matching(pattern, names) if name in seen)
        patterns[pattern] = Resolved(topics, view.topics.names_version, view.wall_ms)
        entries.append((PatternKey(group.group_id, pattern), patterns[pattern]))
    group.soft.patterns_version = view.topics.names_version
    before = {pattern: one.topics for pattern, one in group.patterns.items()}
    bump = any(one.topics != before.get(pattern, frozenset()) for pattern, one in patterns.items())
    read = {
        name
        for member in group.members.values()
        for name in member.about.topics | patterns.get(member.about.pattern, Resolved()).topics
    }
    metadata_hash = view.metadata_hash(read)
    if entries and (bump or metadata_hash != group.metadata_hash):
        entries.append((EpochKey(group.group_id), EpochRecord(group.epoch + 1, metadata_hash)))
        group.soft.topics_version = view.topics.version
    return entries


# --- Leaving


def leave(group: ConsumerGroup, request: Heartbeat, view: View) -> tuple[list[GroupsEntry], bool]:
    """Answer a heartbeat that leaves, for good or (a static member, epoch -2) for a while. Returns
    the log's entries, and True if the member is removed. BrokerError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID."""
    member = group.speaker(request.member_id, request.instance_id)
    if request.instance_id is None or request.member_epoch == LEAVE_EPOCH:
        return fence(group, [member], view), True
    assigned = {topic: dict.fromkeys(numbers, 0) for topic, numbers in member.current.assigned.items()}
    current = member.current._replace(epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoking={})
    return [(CurrentKey(group.group_id, member.member_id), current)], False


def fence(group: ConsumerGroup, members: Sequence[ConsumerMember], view: View) -> list[GroupsEntry]:
    """Entries of the log that remove members, and bring the group to its next epoch."""
    gone = {member.member_id for member in members}
    entries = [entry for member in members for entry in removal(group.group_id, member.member_id)]
    rest = [one for one in group.members.values() if one.member_id not in gone]
    left = {one.about.pattern for one in members} - {one.about.pattern for one in rest} - {""}
    entries += [(PatternKey(group.group_id, pattern), None) for pattern in sorted(left)]
    names = frozenset(name for one in rest for name in group.topics_of(one.about))
    entries.append((EpochKey(group.group_id), EpochRecord(group.epoch + 1, view.metadata_hash(names))))
    return entries


# --- Offsets


class Committer(NamedTuple):
    """The sender of a commit: a member at an epoch (a generation, for one of the classic protocol).
    With epoch -1 and no member id it does not commit as a member.

    `version` is that of OffsetCommit; None: TxnOffsetCommit.
    """

    member_id: str
    instance_id: str | None
    epoch: int
    version: int | None


def check_commit(group: ConsumerGroup, who: Committer, partitions: Iterable[tuple[UUID, int]]) -> None:
    """Raise BrokerError if a commit is to be refused. It is accepted from a member at its epoch, or
    at an older epoch since which the member has had every partition that it commits (KIP-1251).

    BrokerError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH; ILLEGAL_GENERATION for
    a member of the classic protocol.
    """
    if who.epoch < 0 and not group.members:
        return
    if who.version is None and who == Committer("", None, -1, None):
        return
    member = group.member(who.member_id)
    if who.version is not None and not member.classic and who.version < COMMITS_FROM_VERSION:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
        )
    if who.epoch == member.epoch:
        return
    if who.epoch > member.epoch:
        raise _stale(member, f"epoch {who.epoch} is newer than the member's, {member.epoch}")
    for topic, number in partitions:
        since = member.assigned_since(topic, number)
        if since is None or who.epoch < since:
            raise _stale(member, f"partition {topic}-{number} is not the member's since epoch {who.epoch}")


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raise BrokerError if committed offsets are not to be answered. They are answered to a member
    at its epoch, and to a client that does not ask as a member. BrokerError: UNKNOWN_MEMBER_ID,
    STALE_MEMBER_EPOCH; ILLEGAL_GENERATION for one of the classic protocol."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if epoch != member.epoch:
        raise _stale(member, f"epoch {epoch} is not the member's, {member.epoch}")


def _stale(member: ConsumerMember, why: str) -> BrokerError:
    code = ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH
    return BrokerError(code, f"member {member.member_id}: {why}")
