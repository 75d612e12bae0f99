"""Changes of a share group by a heartbeat, or because there was none: functions from the group, the
request and the cluster to the entries to be written and the answer. Nothing here waits or writes
(KIP-932).

A member's heartbeat has its subscription, and the answer its partitions. No member has to revoke a
partition first: a partition may be assigned to many. Partitions come into targets once the share
coordinator has their state.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.consumer_groups import HeartbeatResult, Target, Topics, metadata_hash
from fairlead_kafka.broker.share_groups.assignor import assign
from fairlead_kafka.broker.share_groups.group import (
    LEAVE_EPOCH,
    ShareGroup,
    ShareMember,
    merged,
    without,
)
from fairlead_kafka.broker.share_groups.group_records import (
    Alterations,
    ShareAbout,
    ShareCurrent,
    ShareCurrentKey,
    ShareEpoch,
    ShareEpochKey,
    ShareGroupEntry,
    ShareMemberKey,
    ShareTargetEpoch,
    ShareTargetEpochKey,
    ShareTargetKey,
    StatePartitions,
    StatePartitionsKey,
    TopicState,
)

_NONE_ALTERED: Alterations = {}


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat; `topics` None: the same as before."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    topics: frozenset[str] | None = None


class ShareView(NamedTuple):
    """The metadata and settings that a decision about a share group depends on, besides the group
    and the request."""

    topics: Topics
    assignment_interval_ms: int
    max_size: int
    initialize_retry_ms: int
    wall_ms: int


@dataclass(slots=True)
class ShareStep:
    """The changes that a heartbeat causes: entries for the log. `epoch`: the group's after them;
    `begin`: the partitions whose state is to be begun at the share coordinator."""

    epoch: int
    entries: list[ShareGroupEntry] = field(default_factory=list)
    begin: Mapping[UUID, TopicState] = field(default_factory=dict)


def check_share_heartbeat(request: ShareHeartbeat) -> None:
    """Raise BrokerError INVALID_REQUEST for a heartbeat that lacks a field."""
    words = None
    if not request.member_id.strip():
        words = "MemberId can't be empty."
    elif not request.group_id.strip():
        words = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        words = "RackId can't be empty."
    elif request.member_epoch == 0 and not request.topics:
        words = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEAVE_EPOCH:
        words = "MemberEpoch is invalid."
    if words is not None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, words)


def share_heartbeat(
    group: ShareGroup, request: ShareHeartbeat, view: ShareView
) -> tuple[ShareStep, HeartbeatResult]:
    """The changes that a heartbeat causes, of a member that joins (epoch 0) or stays, and its
    answer. BrokerError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""
    before = _speaker(group, request, view)
    member = _described(before, request)
    subscribed = member.about.topics != before.about.topics
    epoch = _next_epoch(group, member, view, subscribed)
    step = ShareStep(epoch)
    if member.about != before.about or before.member_id not in group.members:
        step.entries.append((ShareMemberKey(group.group_id, member.member_id), member.about))
    names = group.topics(member)
    if epoch != group.epoch:
        found = metadata_hash(view.topics, names)
        step.entries.append((ShareEpochKey(group.group_id), ShareEpoch(epoch, found)))
    group.topics_version = view.topics.version
    target_epoch, target = _target(group, member, epoch, view, step)
    had = before.current
    if subscribed or had.epoch != target_epoch:
        ids = _ids(view.topics, member.about.topics)
        assigned = {topic: numbers for topic, numbers in target.items() if topic in ids}
        current = ShareCurrent(target_epoch, had.epoch, assigned)
        if current != had:
            step.entries.append((ShareCurrentKey(group.group_id, member.member_id), current))
        member = ShareMember(member.member_id, member.about, current)
    changed = (
        request.member_epoch == 0 or request.topics is not None or member.current.assigned != had.assigned
    )
    answer = HeartbeatResult(
        member.member_id, member.current.epoch, member.current.assigned if changed else None
    )
    step.begin = to_begin(group, names, view)
    if step.begin:
        states = group.states._replace(initializing=merged(group.states.initializing, step.begin))
        deleting = {topic: name for topic, name in states.deleting.items() if topic not in step.begin}
        step.entries.append((StatePartitionsKey(group.group_id), states._replace(deleting=deleting)))
    return step, answer


def _speaker(group: ShareGroup, request: ShareHeartbeat, view: ShareView) -> ShareMember:
    """The member that a request is from. BrokerError: GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
    FENCED_MEMBER_EPOCH."""
    received = request.member_epoch
    known = group.members.get(request.member_id)
    if received == 0:
        if known is None and len(group.members) >= view.max_size:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {view.max_size} members.",
            )
        return known or ShareMember(request.member_id)
    member = group.member(request.member_id)
    epoch, previous = member.current.epoch, member.current.previous_epoch
    if received > epoch:
        raise BrokerError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({received}) than the one known by the "
            f"group coordinator ({epoch}). The member must abandon all its partitions and rejoin.",
        )
    if received < epoch and received != previous:
        raise BrokerError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({received}) than the one known by the "
            f"group coordinator ({epoch}), and it does not match the previous member epoch ({previous}). "
            "The member must abandon all its partitions and rejoin.",
        )
    return member


def _described(member: ShareMember, request: ShareHeartbeat) -> ShareMember:
    about = ShareAbout(
        member.about.rack_id if request.rack_id is None else request.rack_id,
        request.client_id,
        request.client_host,
        member.about.topics if request.topics is None else request.topics,
    )
    return ShareMember(member.member_id, about, member.current)


def _next_epoch(group: ShareGroup, member: ShareMember, view: ShareView, subscribed: bool) -> int:
    """The group's epoch from now on: the next one if members or topics changed, or if partitions
    with a state are in no target."""
    changed = subscribed or (group.target_epoch >= group.epoch and _pending(group, view))
    if not changed and group.topics_version != view.topics.version:
        changed = metadata_hash(view.topics, group.topics(member)) != group.metadata_hash
    return group.epoch + 1 if changed else group.epoch


def _pending(group: ShareGroup, view: ShareView) -> bool:
    """Whether partitions that could be assigned are not, or not all that are assigned could be."""
    if not group.members:
        return False
    assigned = group.assigned()
    wanted = assignable(group, _ids(view.topics, group.topics()))
    return any(frozenset(assigned.get(topic, ())) != numbers for topic, numbers in wanted.items())


def assignable(group: ShareGroup, topics: Container[UUID]) -> dict[UUID, frozenset[int]]:
    """Partitions of `topics` whose state the share coordinator has, and is not about to begin
    again: acknowledgements meanwhile would be undone."""
    states = {topic: one for topic, one in group.states.initialized.items() if topic in topics}
    return {topic: one.partitions for topic, one in without(states, _asked(group)).items()}


def _ids(topics: Topics, names: Iterable[str]) -> frozenset[UUID]:
    found = (topics.find(name) for name in names)
    return frozenset(topic.topic_id for topic in found if topic is not None)


def _target(
    group: ShareGroup, member: ShareMember, epoch: int, view: ShareView, step: ShareStep
) -> tuple[int, Target]:
    """The epoch of the targets and this member's; targets are computed again if they are of an
    older epoch than `epoch` and `share.assignment.interval.ms` have passed."""
    waits = _lately(group.assigned_ms, view.assignment_interval_ms, view.wall_ms)
    if group.target_epoch >= epoch or waits:
        return group.target_epoch, group.targets.get(member.member_id, {})
    members = {**group.members, member.member_id: member}
    reads = {member_id: _ids(view.topics, one.about.topics) for member_id, one in members.items()}
    all_topics = frozenset(topic for topics in reads.values() for topic in topics)
    targets = assign(reads, assignable(group, all_topics), group.targets)
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            step.entries.append((ShareTargetKey(group.group_id, member_id), target))
    step.entries.append((ShareTargetEpochKey(group.group_id), ShareTargetEpoch(epoch, view.wall_ms)))
    return epoch, targets[member.member_id]


def _lately(since_ms: int, interval_ms: int, now_ms: int) -> bool:
    """True within an interval that began at `since_ms` (0: never).

    (A time in the future means that a clock was wrong: it is not waited for.)
    """
    return bool(since_ms) and 0 <= now_ms - since_ms < interval_ms


def to_begin(group: ShareGroup, names: Iterable[str], view: ShareView) -> dict[UUID, TopicState]:
    """Partitions that members read whose state neither exists nor was asked for a short time
    ago."""
    found: dict[UUID, TopicState] = {}
    in_question = _asked(group)
    for name in sorted(names):
        topic = view.topics.find(name)
        if topic is None:
            continue
        known = group.states.initialized.get(topic.topic_id)
        numbers = frozenset(range(topic.partitions)) - (known.partitions if known else frozenset())
        asked = group.states.initializing.get(topic.topic_id)
        lately = _lately(group.begun_ms.get(topic.topic_id, 0), view.initialize_retry_ms, view.wall_ms)
        if asked is not None and lately:
            numbers -= asked.partitions
        # One question at a time: one that is late would begin the state again, when it is in use.
        numbers -= in_question.get(topic.topic_id, frozenset())
        if numbers:
            found[topic.topic_id] = TopicState(name, numbers)
    return found


def note_begun(group: ShareGroup, topics: Iterable[UUID], view: ShareView) -> None:
    """Note that the state of these topics' partitions is asked to be begun now, and forget when it
    was of others too long ago to matter."""
    group.begun_ms = {
        topic: since_ms
        for topic, since_ms in group.begun_ms.items()
        if _lately(since_ms, view.initialize_retry_ms, view.wall_ms)
    } | dict.fromkeys(topics, view.wall_ms)


def _asked(group: ShareGroup) -> dict[UUID, set[int]]:
    """Partitions about which requests to the share coordinator are under way."""
    found: dict[UUID, set[int]] = {}
    for topic, number in group.asked:
        found.setdefault(topic, set()).add(number)
    return found


def begun(
    group: ShareGroup, states: Mapping[UUID, TopicState], completed: Alterations = _NONE_ALTERED
) -> list[ShareGroupEntry]:
    """Entries of the log by which the share coordinator has the state of these partitions, and the
    alterations in `completed` are carried out. Partitions that were altered once more meanwhile are
    still to be begun."""
    before = group.states
    altering = {place: one for place, one in before.altering.items() if completed.get(place) != one}
    there = {
        topic: {number for number in state.partitions if (topic, number) not in altering}
        for topic, state in states.items()
    }
    value = StatePartitions(
        without(before.initializing, there), merged(before.initialized, states), before.deleting, altering
    )
    return [(StatePartitionsKey(group.group_id), value)]


def deleting(group: ShareGroup, places: Mapping[UUID, TopicState]) -> list[ShareGroupEntry]:
    """Entries of the log by which the share coordinator is to delete the state of these partitions;
    none without partitions."""
    if not places:
        return []
    gone = {topic: state.partitions for topic, state in places.items()}
    value = StatePartitions(
        without(group.states.initializing, gone),
        without(group.states.initialized, gone),
        {**group.states.deleting, **{topic: state.name for topic, state in places.items()}},
        {at: one for at, one in group.states.altering.items() if at[1] not in gone.get(at[0], ())},
    )
    return [(StatePartitionsKey(group.group_id), value)]


def share_leave(group: ShareGroup, member_id: str, view: ShareView) -> list[ShareGroupEntry]:
    """Entries of the log that remove a member that has left, or whose session has expired.
    BrokerError: UNKNOWN_MEMBER_ID."""
    group.member(member_id)
    rest = {name for one in group.members.values() if one.member_id != member_id for name in one.about.topics}
    epoch = ShareEpoch(group.epoch + 1, metadata_hash(view.topics, rest))
    return [*group.tombstones_of(member_id), (ShareEpochKey(group.group_id), epoch)]


def forgotten(group: ShareGroup, topics: Iterable[UUID]) -> list[ShareGroupEntry]:
    """Entries of the log that remove topics which were deleted, or whose state was; none if the
    group has none of them."""
    gone = set(topics)
    states = group.states
    if not gone & {*states.initializing, *states.initialized, *states.deleting}:
        return []
    value = StatePartitions(
        {topic: one for topic, one in states.initializing.items() if topic not in gone},
        {topic: one for topic, one in states.initialized.items() if topic not in gone},
        {topic: name for topic, name in states.deleting.items() if topic not in gone},
        {place: one for place, one in states.altering.items() if place[0] not in gone},
    )
    return [(StatePartitionsKey(group.group_id), value)]
