"""The assignor of share groups (Kafka's `SimpleAssignor`).

Several members may have the same partition. If there are more members than partitions, each member
has one, and the numbers of members of two partitions differ by at most one; if there are fewer, no
partition is assigned to two. A member keeps its partitions as far as that allows. If subscriptions
differ, each topic is assigned by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from fairlead_kafka.broker.consumer_groups import Target

_Place = tuple[UUID, int]


def assign(
    subscriptions: Mapping[str, frozenset[UUID]],
    partitions: Mapping[UUID, frozenset[int]],
    before: Mapping[str, Target],
) -> dict[str, Target]:
    """Targets of all members of a share group; `subscriptions`: {member: topics that it reads},
    `partitions`: those that may be assigned, `before`: the targets so far."""
    had: dict[str, set[_Place]] = {
        member: {(topic, number) for topic, numbers in before.get(member, {}).items() for number in numbers}
        for member in subscriptions
    }
    has: dict[str, set[_Place]] = {member: set() for member in subscriptions}
    alike = len(set(subscriptions.values())) == 1
    pools = [frozenset(partitions)] if alike else [frozenset({topic}) for topic in sorted(partitions)]
    for topics in pools:
        readers = [member for member, read in subscriptions.items() if read & topics]
        wanted = topics & subscriptions[readers[0]] if readers else frozenset()
        places = sorted((topic, number) for topic in wanted for number in partitions[topic])
        if places:
            _share(places, readers, had, has)
    return {member: _target(places) for member, places in has.items()}


def _share(
    places: Sequence[_Place],
    members: Sequence[str],
    had: Mapping[str, set[_Place]],
    has: dict[str, set[_Place]],
) -> None:
    """Divide the partitions `places` among `members`, which keep those that they `had`; the result
    is added to `has`."""
    sharing = -(-len(members) // len(places))
    total = sharing * len(places)
    # Each has its part of the total, rounded so that all of them together have all of it.
    counts = {
        member: -(-total * (index + 1) // len(members)) - -(-total * index // len(members))
        for index, member in enumerate(members)
    }
    holders: Counter[_Place] = Counter()
    mine: dict[str, set[_Place]] = {member: set() for member in members}
    for member in members:
        for place in places:
            if place in had[member] and len(mine[member]) < counts[member] and holders[place] < sharing:
                mine[member].add(place)
                holders[place] += 1
    for member in members:
        free = sorted(
            (place for place in places if place not in mine[member]), key=lambda place: holders[place]
        )
        for place in free[: counts[member] - len(mine[member])]:
            mine[member].add(place)
            holders[place] += 1
        has[member] |= mine[member]


def _target(places: set[_Place]) -> Target:
    topics = {topic for topic, _number in places}
    return {topic: frozenset(number for of, number in places if of == topic) for topic in sorted(topics)}
