"""Metrics of an admin client: its traffic."""

from __future__ import annotations

from math import nan
from typing import TypedDict

from fairlead_kafka.admin.metric_names import GROUPS
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.meters import combined
from fairlead_kafka.core.metric_table import named
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.traffic_meter import ClientMeter, Kinds, TrafficRecorder
from fairlead_kafka.wire import ApiKey

AdminMetrics = TypedDict(
    "AdminMetrics",
    {
        "admin-client-metrics": dict[str, float],
        "admin-client-node-metrics": dict[str, dict[str, float]],
    },
)
"""Metrics by Kafka's groups: of the client, and of each broker ("node-0")."""

KINDS = Kinds(frozenset(ApiKey))


def read(recorder: TrafficRecorder[ClientMeter], network: Network, now_ns: int) -> AdminMetrics:
    """All metrics, by Kafka's groups and names; on any thread."""
    whole, nodes = GROUPS
    age_ns = network.metadata.age_ns(now_ns)
    gauges = {
        "requests-in-flight": sum(map(network.in_flight, list(recorder.nodes))),
        "connection-count": network.open_connections(),
        "metadata-age": nan if age_ns is None else age_ns / NS_PER_S,
    }
    return {
        "admin-client-metrics": named(whole.rows, combined([recorder.whole.read(now_ns)], gauges)),
        "admin-client-node-metrics": recorder.nodes_named(
            nodes.rows, now_ns, lambda node_id: {"requests-in-flight": network.in_flight(node_id)}
        ),
    }
