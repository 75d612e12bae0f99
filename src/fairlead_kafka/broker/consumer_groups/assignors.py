"""The assignors of the coordinator: functions that assign partitions to a group's members
(KIP-848).

Pure functions from members and partition counts to a target for each member (`Target`), by the
names that `group.consumer.assignors` and members give. Equal input gives equal output, whatever the
order of the members.

`uniform` (Kafka's `UniformAssignor`): as many partitions for each member as for any other, as far
as subscriptions allow, and of the present target as much as possible stays where it is. `range`
(Kafka's `RangeAssignor`): of each topic a run of partitions for each member, in the order of
instance ids, then member ids, so that topics with equal partition counts are shared alike; nothing
is sticky about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

Target = Mapping[UUID, frozenset[int]]
"""Topic id → partitions; no topic without a partition."""

_ROUNDS_MAX = 16
"""Rounds over all topics in which `uniform` looks for a better balance; each ends earlier where
nothing was moved (Kafka's `UniformHeterogeneousAssignmentBuilder.MAX_ITERATION_COUNT`)."""


class Candidate(NamedTuple):
    """One member as assignors see it: the existing topics that it subscribes to, and its present
    target."""

    topics: frozenset[UUID]
    target: Target
    instance_id: str | None = None


Assignor = Callable[[Mapping[str, Candidate], Mapping[UUID, int]], dict[str, Target]]
"""assign(candidates by member id, partition count by topic id) gives each member's new target."""


def assign_uniform(members: Mapping[str, Candidate], counts: Mapping[UUID, int]) -> dict[str, Target]:
    """Targets that differ by one partition at most between members with equal subscriptions."""
    if not members:
        return {}
    subscriptions = {one.topics for one in members.values()}
    if len(subscriptions) == 1:
        return _share_equally(members, counts, next(iter(subscriptions)))
    return _Shares(members, counts).share()


def _share_equally(
    members: Mapping[str, Candidate], counts: Mapping[UUID, int], topics: frozenset[UUID]
) -> dict[str, Target]:
    """Targets of members that all subscribe to the same topics: equal quotas, the larger ones for
    the members that have most now."""
    held = {member_id: _valid(one, counts) for member_id, one in members.items()}
    taken: set[tuple[UUID, int]] = set()
    quota, extra = divmod(sum(counts[topic] for topic in topics), len(members))
    kept: dict[str, list[tuple[UUID, int]]] = {}
    limits: dict[str, int] = {}
    for number, member_id in enumerate(sorted(held, key=lambda one: (-len(held[one]), one))):
        limits[member_id] = quota + (number < extra)
        mine = [each for each in held[member_id] if each not in taken][: limits[member_id]]
        kept[member_id] = mine
        taken.update(mine)
    free = (
        (topic, number)
        for topic in sorted(topics)
        for number in range(counts[topic])
        if (topic, number) not in taken
    )
    for member_id in sorted(kept):
        kept[member_id] += [next(free) for _ in range(limits[member_id] - len(kept[member_id]))]
    return {member_id: _target(kept[member_id]) for member_id in members}


def _valid(member: Candidate, counts: Mapping[UUID, int]) -> list[tuple[UUID, int]]:
    """The part of a target that a member may keep: partitions that exist, of topics that it still
    subscribes to."""
    return [
        (topic, number)
        for topic in sorted(member.target)
        if topic in member.topics
        for number in sorted(member.target[topic])
        if number < counts[topic]
    ]


class _Shares:
    """Divides partitions among members with different subscriptions: members keep theirs, free
    partitions go to those with least, then partitions move from members with most."""

    def __init__(self, members: Mapping[str, Candidate], counts: Mapping[UUID, int]) -> None:
        self._members = members
        self._counts = counts
        self._readers: dict[UUID, list[str]] = {}
        for member_id in sorted(members):
            for topic in members[member_id].topics:
                self._readers.setdefault(topic, []).append(member_id)
        self._owner: dict[tuple[UUID, int], str] = {}
        self._load = dict.fromkeys(members, 0)

    def share(self) -> dict[str, Target]:
        """The targets of all members, by member id."""
        for member_id in sorted(self._members):
            for each in _valid(self._members[member_id], self._counts):
                if each not in self._owner:
                    self._give(each, member_id)
        order = sorted(self._readers, key=self._weight)
        for topic in order:
            for number in range(self._counts[topic]):
                if (topic, number) not in self._owner:
                    self._give((topic, number), self._least(topic))
        for _ in range(_ROUNDS_MAX):
            if not sum(self._balance(topic) for topic in order):
                break
        owned: dict[str, list[tuple[UUID, int]]] = {member_id: [] for member_id in self._members}
        for each, member_id in self._owner.items():
            owned[member_id].append(each)
        return {member_id: _target(mine) for member_id, mine in owned.items()}

    def _weight(self, topic: UUID) -> tuple[float, int, UUID]:
        """Sort key of a topic. Topics with most partitions for each reader come first: there is
        least choice for them."""
        readers = len(self._readers[topic])
        return -self._counts[topic] / readers, readers, topic

    def _least(self, topic: UUID) -> str:
        return min(self._readers[topic], key=lambda one: (self._load[one], one))

    def _give(self, each: tuple[UUID, int], member_id: str) -> None:
        before = self._owner.get(each)
        if before is not None:
            self._load[before] -= 1
        self._owner[each] = member_id
        self._load[member_id] += 1

    def _balance(self, topic: UUID) -> int:
        """Move partitions of a topic from its most to its least loaded readers; returns how many
        were moved."""
        moved = 0
        owned: dict[str, list[int]] = {}
        for number in range(self._counts[topic]):
            owned.setdefault(self._owner[topic, number], []).append(number)
        while owned:
            most = max(owned, key=lambda one: (self._load[one], one))
            least = self._least(topic)
            if self._load[most] - self._load[least] <= 1:
                break
            self._give((topic, owned[most].pop()), least)
            if not owned[most]:
                del owned[most]
            moved += 1
        return moved


def assign_range(members: Mapping[str, Candidate], counts: Mapping[UUID, int]) -> dict[str, Target]:
    """Targets as runs of partitions: the first members of each topic get one more if they cannot be
    divided evenly."""
    order = sorted(members, key=lambda one: _place(one, members[one].instance_id))
    readers: dict[UUID, list[str]] = {}
    for member_id in order:
        for topic in members[member_id].topics:
            readers.setdefault(topic, []).append(member_id)
    targets: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    for topic, mine in readers.items():
        quota, extra = divmod(counts[topic], len(mine))
        start = 0
        for number, member_id in enumerate(mine):
            stop = start + quota + (number < extra)
            if stop > start:
                targets[member_id][topic] = frozenset(range(start, stop))
            start = stop
    return dict(targets)


def _place(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return instance_id is None, member_id if instance_id is None else instance_id


def _target(partitions: Iterable[tuple[UUID, int]]) -> Target:
    by_topic: dict[UUID, set[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in by_topic.items()}


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
"""Name → assignor; the names that members and `group.consumer.assignors` give."""
