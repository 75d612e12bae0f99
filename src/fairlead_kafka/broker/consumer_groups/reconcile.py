"""The next step of a member on its way to its target (Kafka's `CurrentAssignmentBuilder`).

A member first revokes partitions that it is not to own any more, and acknowledges that; then it is
assigned partitions that others have revoked. So a partition is owned by one member at most at every
moment. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.consumer_groups.assignors import Target
from fairlead_kafka.broker.consumer_groups.records import Current, Partitions
from fairlead_kafka.broker.consumer_groups.states import MemberState

Owned = Mapping[UUID, frozenset[int]] | None
"""Partitions that a member says it owns, by topic id; None: it says nothing."""


class Goal(NamedTuple):
    """Goal of a member: `epoch` is that of the targets, `topics` are those it subscribes to.

    `free(topic, partition)` is true if no other member has the partition.
    """

    epoch: int
    target: Target
    topics: frozenset[UUID]
    free: Callable[[UUID, int], bool]


def next_current(current: Current, goal: Goal, owned: Owned, subscription_changed: bool) -> Current:
    """Assignment of the member after this heartbeat; `current` itself if nothing is new.

    BrokerError FENCED_MEMBER_EPOCH for a member in a state that this release does not know, unless
    its request says that it owns nothing.
    """
    state = current.state
    if state is MemberState.STABLE:
        if current.epoch != goal.epoch:
            return _toward(current, goal, owned, current.epoch)
        return _without_unsubscribed(current, goal, owned) if subscription_changed else current
    if state is MemberState.UNREVOKED_PARTITIONS and _owns(owned, current.revoking):
        return _without_unsubscribed(current, goal, owned) if subscription_changed else current
    if state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise BrokerError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        return _toward(current, goal, owned, goal.epoch)
    return _toward(current, goal, owned, current.epoch)


def _toward(current: Current, goal: Goal, owned: Owned, epoch: int) -> Current:
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    coming: dict[UUID, dict[int, int]] = {}
    unreleased = False
    for topic in {*goal.target, *current.assigned}:
        target = goal.target.get(topic, frozenset()) if topic in goal.topics else frozenset()
        has = current.assigned.get(topic, {})
        _put(kept, topic, {number: since for number, since in has.items() if number in target})
        _put(revoking, topic, {number: since for number, since in has.items() if number not in target})
        missing = [number for number in target if number not in has]
        free = [number for number in missing if goal.free(topic, number)]
        unreleased = unreleased or len(free) < len(missing)
        _put(coming, topic, dict.fromkeys(free, goal.epoch))
    if revoking and _owns(owned, revoking):
        return Current(epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    for topic, numbers in coming.items():
        kept[topic] = kept.get(topic, {}) | numbers
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return Current(goal.epoch, current.epoch, state, kept, {})


def _without_unsubscribed(current: Current, goal: Goal, owned: Owned) -> Current:
    """The member's assignment without topics that it no longer subscribes to: it gives those up at
    once, before there is a new target."""
    lost = {topic: numbers for topic, numbers in current.assigned.items() if topic not in goal.topics}
    if not lost:
        return current
    kept = {topic: numbers for topic, numbers in current.assigned.items() if topic not in lost}
    revoking: Partitions = {
        topic: {**current.revoking.get(topic, {}), **lost.get(topic, {})}
        for topic in {*current.revoking, *lost}
    }
    if _owns(owned, revoking):
        return Current(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
    return current._replace(previous_epoch=current.epoch, assigned=kept)


def _owns(owned: Owned, partitions: Partitions) -> bool:
    """Whether the member may still own some of them: it says so, or says nothing."""
    if owned is None:
        return True
    return any(not numbers.isdisjoint(partitions.get(topic, {})) for topic, numbers in owned.items())


def _put(into: dict[UUID, dict[int, int]], topic: UUID, numbers: dict[int, int]) -> None:
    if numbers:
        into[topic] = numbers
