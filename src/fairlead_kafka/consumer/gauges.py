"""Gauges of a consumer's metrics: present values, read on any thread when metrics are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.consumer.partition import PartitionState
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.core.network import Network


class Gauges:
    """Gauges of a consumer's connections, read from its networks, of which the first has the
    metadata."""

    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks

    def in_flight(self, node_id: int) -> int:
        """Number of requests to a broker that await their answers."""
        return sum(network.in_flight(node_id) for network in self._networks)

    def of_client(self, now_ns: int, nodes: Sequence[int]) -> dict[str, float]:
        """Gauges of all connections; `nodes`: all brokers that were ever asked."""
        age_ns = self._networks[0].metadata.age_ns(now_ns)
        return {
            "connection-count": sum(network.open_connections() for network in self._networks),
            "metadata-age": nan if age_ns is None else age_ns / NS_PER_S,
            "requests-in-flight": sum(map(self.in_flight, nodes)),
            "machine-code": int(MACHINE_CODE),
        }


def of_partitions(
    partitions: Mapping[TopicPartition, PartitionState], positions: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, dict[str, float]]:
    """Gauges of each partition assigned; `positions`: of the next records to return."""
    return {
        of: state.gauges(positions[of].offset if of in positions else NO_OFFSET)
        for of, state in list(partitions.items())
    }
