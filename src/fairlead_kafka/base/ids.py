"""Identifiers that all packages share: nodes, topics, partitions, producers."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.within import PartitionNumber

NO_PARTITION = -1
"""A record without an explicit partition; Kafka's `RecordMetadata.UNKNOWN_PARTITION`."""
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_OFFSET = -1
NO_LEADER = -1
NO_LEADER_EPOCH = -1
NO_TOPIC_ID = UUID(int=0)
"""The id of a topic that has none, or whose id is not known (KIP-516)."""


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: PartitionNumber

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(NamedTuple):
    """One broker as the metadata names it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.node_id})"


SocketAddress = tuple[str | int, int] | tuple[str, int, int, int] | tuple[int, bytes]
"""An address as `socket.connect` takes it, and `getaddrinfo` gives it."""
