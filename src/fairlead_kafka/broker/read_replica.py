"""The preferred read replica of a consumer: one in its own rack (KIP-392, Kafka's
`RackAwareReplicaSelector`)."""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.config import Settings
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.replication import Replication

SELECTOR = "replica.selector.class"
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
THIS_ONE = -1


class SelectorHost(Protocol):
    """The parts of a broker that the choice of a replica uses."""

    node_id: int
    settings: Settings
    controller: ClusterView
    replication: Replication


def preferred_replica(broker: SelectorHost, partition: Partition, rack: str, offset: int) -> int:
    """The broker to fetch from `offset` at, for a consumer in `rack`; THIS_ONE: no other is better.

    Called at a leader whose config `replica.selector.class` allows other replicas. A follower must
    be in sync, alive and in the consumer's rack, and must have the records up to `offset`; the one
    with most records is chosen. A leader in that rack is always chosen.
    """
    led = broker.replication.led(partition)
    if not rack or led is None or broker.settings[SELECTOR] != RACK_AWARE:
        return THIS_ONE
    image = broker.controller.image
    rack_of = {info.node.node_id: info.node.rack for info in image.alive()}
    if rack_of.get(broker.node_id) == rack:
        return THIS_ONE
    able = [
        (follower.end, -node_id)
        for node_id, follower in led.followers.items()
        if node_id in led.image.isr and rack_of.get(node_id) == rack and follower.end >= offset
    ]
    return -max(able)[1] if able else THIS_ONE
