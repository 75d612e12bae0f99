"""The table of an admin client's metrics: Kafka's names and meanings.

Source: Kafka's `Selector`, under the prefix of `KafkaAdminClient`.
"""

from __future__ import annotations

from fairlead_kafka.core.metric_table import CONNECTIONS, Group, entered, network

_NETWORK = network("a request")

GROUPS = entered(
    Group(
        "admin-client-metrics",
        "The admin client as a whole.",
        "kafka_admin_client",
        (*_NETWORK, *CONNECTIONS),
    ),
    Group(
        "admin-client-node-metrics",
        "One dictionary for each broker, `node-0`; bootstrap servers have negative numbers, as in Kafka.",
        "kafka_admin_client_node",
        _NETWORK,
        ("node",),
    ),
)
"""The groups that `Admin.metrics()` has."""
