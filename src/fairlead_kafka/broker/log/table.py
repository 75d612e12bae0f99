"""The partitions of one log that were written to or looked up, by topic and number.

There are two levels, so that a loop over all partitions of a topic looks the topic up once; a large
topic that was never written to takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from uuid import UUID

from fairlead_kafka.base.checks import same
from fairlead_kafka.broker.log.partition import Partition

_NOTHING: Mapping[int, Partition] = MappingProxyType({})


class PartitionTable:
    """Partitions by topic id and number."""

    __slots__ = ("_topics",)

    def __init__(self) -> None:
        self._topics: dict[UUID, dict[int, Partition]] = {}

    def __iter__(self) -> Iterator[Partition]:
        """Every partition of every topic."""
        for partitions in self._topics.values():
            yield from partitions.values()

    def of_topic(self, topic_id: UUID) -> Mapping[int, Partition]:
        """Partitions of one topic, by number; valid until a partition is entered."""
        return self._topics.get(topic_id, _NOTHING)

    def get(self, topic_id: UUID, number: int) -> Partition | None:
        """The partition of this topic and number; None if it is not in the table."""
        partitions = self._topics.get(topic_id)
        return None if partitions is None else partitions.get(number)

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is in the table; False once its topic is gone."""
        return self.get(partition.topic_id, partition.partition) is partition

    def enter(self, partition: Partition) -> None:
        """Put a partition into the table."""
        self._topics.setdefault(partition.topic_id, {})[partition.partition] = partition

    def forget_topic(self, topic_id: UUID) -> list[Partition]:
        """Take a topic's partitions out of the table. Returns them."""
        return list(self._topics.pop(topic_id, _NOTHING).values())

    def check(self) -> None:
        """Raise CheckFailed unless each partition is entered under its own topic id and number."""
        for topic_id, partitions in self._topics.items():
            for number, partition in partitions.items():
                same(
                    f"{partition} is entered as",
                    (topic_id, number),
                    (partition.topic_id, partition.partition),
                )
                same(f"{partition}: bytes of its topic's id", partition.topic_id_bytes, topic_id.bytes)
