"""Metrics of a cluster, counted in its metadata when they are read.

Kafka's brokers report the same values as JMX beans; the meaning of each metric names its bean.
"""

from __future__ import annotations

from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller.image import ClusterImage, PartitionImage
from fairlead_kafka.core.meters import Reading
from fairlead_kafka.core.metric_table import Group, entered, gauge, named

CONTROLLER, BROKER = GROUPS = entered(
    Group(
        "cluster-metrics",
        "The cluster as its controller sees it.",
        "kafka_cluster",
        (
            gauge("active-broker-count", "brokers", "Brokers that run (`ActiveBrokerCount`).", ours=True),
            gauge("fenced-broker-count", "brokers", "Brokers that do not (`FencedBrokerCount`).", ours=True),
            gauge("topic-count", "topics", "Topics, internal ones too (`GlobalTopicCount`).", ours=True),
            gauge("partition-count", "partitions", "Their partitions (`GlobalPartitionCount`).", ours=True),
            gauge(
                "offline-partition-count",
                "partitions",
                "Partitions without a leader (`OfflinePartitionsCount`).",
                ours=True,
            ),
            gauge(
                "under-replicated-partitions",
                "partitions",
                "Partitions of which a replica is not in sync (`UnderReplicatedPartitions`).",
                ours=True,
            ),
        ),
    ),
    Group(
        "cluster-node-metrics",
        "One dictionary for each broker, `node-0`.",
        "kafka_cluster_node",
        (
            gauge("replica-count", "replicas", "Replicas on this broker (`PartitionCount`).", ours=True),
            gauge("leader-count", "partitions", "Partitions that it leads (`LeaderCount`).", ours=True),
        ),
        ("node",),
    ),
)
"""The groups that `Cluster.metrics()` has."""


def read(image: ClusterImage) -> dict[str, dict[str, float] | dict[str, dict[str, float]]]:
    """All metrics of a cluster, by group; may be called on any thread. Changes during the call may
    be counted or not."""
    brokers, topics = list(image.brokers.values()), list(image.topics.values())
    partitions: list[PartitionImage] = [each for topic in topics for each in list(topic.partitions)]
    whole: dict[str, float] = {
        "active-broker-count": sum(broker.alive for broker in brokers),
        "fenced-broker-count": sum(broker.fenced for broker in brokers),
        "topic-count": len(topics),
        "partition-count": len(partitions),
        "offline-partition-count": sum(each.leader == NO_LEADER for each in partitions),
        "under-replicated-partitions": sum(len(each.isr) < len(each.replicas) for each in partitions),
    }
    nodes: dict[str, dict[str, float]] = {}
    for broker in brokers:
        node_id = broker.node.node_id
        counts: dict[str, float] = {
            "replica-count": sum(node_id in each.replicas for each in partitions),
            "leader-count": sum(each.leader == node_id for each in partitions),
        }
        nodes[f"node-{node_id}"] = named(BROKER.rows, Reading({}, {}, {}, {}, counts))
    return {
        CONTROLLER.name: named(CONTROLLER.rows, Reading({}, {}, {}, {}, whole)),
        BROKER.name: nodes,
    }
