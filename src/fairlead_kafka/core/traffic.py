"""Protocol for counting requests and bytes on the connections of a client machine."""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.wire import ApiKey


class Traffic(Protocol):
    """Counts traffic on the connections. A bootstrap server has a negative node id of its own."""

    def wrote(self, node_id: int, size_bytes: int) -> None:
        """Count a request that was written to a broker."""

    def read_bytes(self, node_id: int, size_bytes: int, answers: int) -> None:
        """Count `size_bytes` that were read, and the `answers` that they completed."""

    def connected(self, node_id: int) -> None:
        """Count a connection that was made to a broker."""

    def disconnected(self, node_id: int) -> None:
        """Called when a connection that had been made ended."""

    def served(self, node_id: int, api_key: ApiKey, latency_ns: int) -> None:
        """Called when a request was answered, `latency_ns` after it was written."""
