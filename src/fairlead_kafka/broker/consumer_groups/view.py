"""The parts of the cluster's metadata and a broker's settings that consumer groups read."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

_HASH_BYTES = 8


class TopicView(NamedTuple):
    """A topic as groups see it; `racks` are those of each partition's replicas, where they are
    known."""

    topic_id: UUID
    name: str
    racks: Sequence[Sequence[str]]

    @property
    def partitions(self) -> int:
        """The number of partitions of the topic."""
        return len(self.racks)


class Topics(Protocol):
    """The topics of the cluster. `version` grows with every change that matters to groups,
    `names_version` with every new topic."""

    version: int
    names_version: int

    def find(self, name: str) -> TopicView | None:
        """The topic of this name; None if there is none."""

    def by_id(self, topic_id: UUID) -> TopicView | None:
        """The topic of this id; None if there is none."""

    def names(self) -> Iterable[str]:
        """The names of all topics."""


class GroupSettings(NamedTuple):
    """Settings of one group: its own configs (KIP-1240 and before), or else the broker's."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int
    max_size: int
    assignors: tuple[str, ...]
    patterns_refresh_ms: int


class View(NamedTuple):
    """All that a decision about a group depends on, besides the group and the request."""

    topics: Topics
    settings: GroupSettings
    wall_ms: int

    def topic_ids(self, names: Iterable[str]) -> frozenset[UUID]:
        """Ids of those of the named topics that exist."""
        found = (self.topics.find(name) for name in names)
        return frozenset(topic.topic_id for topic in found if topic is not None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        """A hash of those of the named topics that exist; see the function `metadata_hash`."""
        return metadata_hash(self.topics, names)


def metadata_hash(topics: Topics, names: Iterable[str]) -> int:
    """A hash of those of the named topics that exist: of ids, names, partitions and their racks
    (KIP-1101).

    0 for no topics. Kafka's own hash (XXH3) of the same has another value: a broker that took over
    such a group would rebalance it once.
    """
    hashed = hashlib.blake2b(digest_size=_HASH_BYTES)
    nothing = True
    for name in sorted(names):
        topic = topics.find(name)
        if topic is None:
            continue
        nothing = False
        racks = [sorted(racks) for racks in topic.racks]
        hashed.update(repr((topic.topic_id.hex, topic.name, racks)).encode())
    return 0 if nothing else int(struct.unpack(">q", hashed.digest())[0])
