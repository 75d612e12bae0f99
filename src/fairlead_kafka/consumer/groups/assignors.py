"""Partition assignors by name, and Kafka's `RangeAssignor` and `RoundRobinAssignor`.

The leader of a group calls the assignor for all members. Ties are broken by instance ids, then
member ids, so that the same members always get the same partitions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError, DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.groups.sticky import assign_cooperatively, assign_sticky
from fairlead_kafka.core.consumer_protocol import NO_GENERATION, Reader, Subscription, encode_partitions

Members = Mapping[str, Subscription]
"""Member id → its subscription."""
Assignments = dict[str, list[TopicPartition]]
"""Member id → its partitions; every member is in it."""


class Assignor(NamedTuple):
    """One way to assign partitions to members.

    `assign(partition counts by topic, members in order)`; a topic without a count does not exist.
    """

    name: str
    assign: Callable[[Mapping[str, int], Members], Assignments]
    cooperative: bool = False
    """Members keep what they read through a rebalance, and give up single partitions only
    (KIP-429)."""
    remembers: bool = False
    """A member's user data list the partitions that it had: an eager member owns none when it
    joins."""

    def user_data(self, had: Iterable[TopicPartition], generation: int) -> bytes | None:
        """User data of a member's subscription; None if there are none."""
        if self.remembers:
            return encode_partitions(had) + generation.to_bytes(
                4, "big", signed=True
            )  # Kafka's STICKY_ASSIGNOR_USER_DATA_V1
        return generation.to_bytes(4, "big", signed=True) if self.cooperative else None

    def understood(self, subscription: Subscription) -> Subscription:
        """A subscription, with the partitions that its user data say the member had.

        Garbled user data are ignored.
        """
        data = subscription.user_data
        if not data or not (self.remembers or self.cooperative):
            return subscription
        reader = Reader(data, f"the user data of {self.name}")
        try:
            if not self.remembers:
                return (
                    subscription
                    if subscription.generation != NO_GENERATION
                    else subscription._replace(generation=reader.int32())
                )
            owned = reader.partitions()
            return subscription._replace(
                owned=owned, generation=reader.int32() if reader.left else NO_GENERATION
            )
        except DecodeError:  # as Kafka's `StickyAssignor`
            return subscription


def assign_range(counts: Mapping[str, int], members: Members) -> Assignments:
    """Assign neighbouring partitions to each member, topic by topic.

    If the partitions of a topic cannot be divided evenly, the first members get one more.
    """
    shares: Assignments = {member: [] for member in members}
    for topic in _topics(counts, members):
        readers = [member for member, subscription in members.items() if topic in subscription.topics]
        each, more = divmod(counts[topic], len(readers))
        start = 0
        for place, member in enumerate(readers):
            stop = start + each + (place < more)
            shares[member] += [TopicPartition(topic, number) for number in range(start, stop)]
            start = stop
    return shares


def assign_round_robin(counts: Mapping[str, int], members: Members) -> Assignments:
    """Assign the partitions of all topics to the members in turn (Kafka's RoundRobinAssignor)."""
    shares: Assignments = {member: [] for member in members}
    next_members = itertools.cycle(members)
    for topic in _topics(counts, members):
        for number in range(counts[topic]):
            member = next(member for member in next_members if topic in members[member].topics)
            shares[member].append(TopicPartition(topic, number))
    return shares


def _topics(counts: Mapping[str, int], members: Members) -> list[str]:
    return sorted(
        {topic for subscription in members.values() for topic in subscription.topics if counts.get(topic)}
    )


_JAVA = "org.apache.kafka.clients.consumer."

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky, remembers=True),
        Assignor("cooperative-sticky", assign_cooperatively, cooperative=True),
    )
}
"""Assignors by the name that goes over the wire, which is Kafka's."""

_CLASSES = {
    f"{_JAVA}RangeAssignor": "range",
    f"{_JAVA}RoundRobinAssignor": "roundrobin",
    f"{_JAVA}StickyAssignor": "sticky",
    f"{_JAVA}CooperativeStickyAssignor": "cooperative-sticky",
}


def assignors_named(names: Sequence[str]) -> list[Assignor]:
    """The assignors of `partition.assignment.strategy`: names, or names of Kafka's classes.

    ConfigError for an unknown name, or one that comes twice.
    """
    found = [ASSIGNORS.get(_CLASSES.get(name, name)) for name in names]
    unknown = [name for name, assignor in zip(names, found, strict=True) if assignor is None]
    if unknown or not names:
        wrong = f"{', '.join(unknown)} is unknown" if unknown else "it is empty"
        raise ConfigError(f"partition.assignment.strategy: {wrong}; there are {', '.join(ASSIGNORS)}")
    known = [assignor for assignor in found if assignor is not None]
    if len({assignor.name for assignor in known}) < len(known):
        raise ConfigError(f"partition.assignment.strategy: {', '.join(names)} names an assignor twice")
    return known
