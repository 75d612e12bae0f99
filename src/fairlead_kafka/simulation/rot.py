"""Bit rot in the middle of old files, and the batches that become unreadable by that: only these
may be, on these brokers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from fairlead_kafka.broker.log.checkpoint import Checkpoint, Place
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.recovery import CHECKPOINT_NAMES
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.real_cluster import RealBroker, RealCluster

RECORDS_AT = 61
"""Byte where a batch's records begin; a wrong byte before it may make another batch."""


class Rotten(NamedTuple):
    """A batch that one broker cannot read any more."""

    node_id: int
    topic: str
    partition: int
    base_offset: int
    last_offset: int
    location: Location
    """Its place on this broker's disk."""


class Rot:
    """Damages batches of `topics` that lie before a recovery checkpoint: a broker's start does not
    read them."""

    def __init__(self, host: VirtualHost, cluster: RealCluster, topics: tuple[str, ...], rng: Random) -> None:
        self._host = host
        self._cluster = cluster
        self._topics = topics
        self._rng = rng
        self.found: list[Rotten] = []

    def begin(self, broker: RealBroker) -> Rotten | None:
        """Flip one bit of one batch on the disk of a broker that is down; None if no batch is old
        enough.
        """
        candidates = list(self._old(broker))
        if not candidates:
            return None
        rotten, location = self._rng.choice(candidates)
        content = self._host.files[self._path(broker, location.file)]
        content[location.position + RECORDS_AT + self._rng.randrange(location.size_bytes - RECORDS_AT)] ^= 1
        self.found.append(rotten)
        return rotten

    def in_place(self, place: tuple[str, int]) -> list[Rotten]:
        """The batches of a partition that some broker cannot read, by offset."""
        return sorted(
            {one for one in self.found if (one.topic, one.partition) == place},
            key=lambda one: one.base_offset,
        )

    def met(self, place: tuple[str, int], position: int) -> bool:
        """True if the partition's leader comes to a damaged batch first when it is asked for
        `position`.

        That may lie before the batch: compaction removes what was between, and a reader that stands
        there is given the next batch that is left. Damage on another replica does not count, nor
        does a damaged batch that compaction or truncation has replaced.
        """
        topic, partition = place
        image = self._cluster.controller.image.topics[topic]
        leader = image.partitions[partition].leader
        log = self._cluster.brokers[leader].machine.logs.known(image.topic_id, partition)
        assert log is not None
        number = log.index.first_reaching(position)
        if number == len(log.index):
            return False
        first = log.index.location(number)
        return any((one.node_id, one.location) == (leader, first) for one in self.in_place(place))

    def places(self) -> set[tuple[str, int]]:
        """Partitions that some broker cannot read in full, so that a follower cannot fetch the rest
        from it."""
        return {(one.topic, one.partition) for one in self.found}

    def _old(self, broker: RealBroker) -> Iterator[tuple[Rotten, Location]]:
        place = self._checkpoint(broker)
        if place is None:
            return
        for topic in self._topics:
            image = self._cluster.controller.image.topics[topic]
            for partition in range(len(image.partitions)):
                log = broker.machine.logs.known(image.topic_id, partition)
                for number in range(0 if log is None else len(log.index) - 1):
                    assert log is not None
                    location, index = log.index.location(number), log.index
                    if (location.file, location.position + location.size_bytes) <= (
                        place.file,
                        place.position,
                    ):
                        yield (
                            Rotten(
                                broker.node_id,
                                topic,
                                partition,
                                index.base_offset(number),
                                index.last_offset(number),
                                location,
                            ),
                            location,
                        )

    def _checkpoint(self, broker: RealBroker) -> Place | None:
        paths = [f"{broker.folder}/log/{name}" for name in CHECKPOINT_NAMES]
        places = [
            Checkpoint(bytes(self._host.files[path])).place for path in paths if path in self._host.files
        ]
        return min(
            places, key=lambda place: place.sequence, default=None
        )  # whichever is used, it saw what the older one saw

    def _path(self, broker: RealBroker, file: int) -> str:
        return f"{broker.folder}/log/{file:012d}.log"
