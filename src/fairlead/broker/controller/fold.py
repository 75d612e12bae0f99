"""Metadata records and their one meaning: `apply` writes a record into an image, live and on replay alike.

A record is a JSON object with a `type`. Partitions are written as lists to keep a log of many short:
`[replicas, isr, leader, leader_epoch]`. Topic ids are hexadecimal text.

| type | fields |
|---|---|
| cluster | cluster_id |
| broker | node_id, host, port, rack, alive |
| topic | topic_id, name, partitions, configs |
| topic_removed | topic_id |
| partitions_added | topic_id, partitions |
| leaders | changes: list of [topic_id, partition, isr, leader, leader_epoch] |
| topic_configs | topic_id, configs (null: no longer set) |
| broker_configs | name, configs (null: no longer set) |
| producer_ids | next |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from fairlead.base.ids import Node
from fairlead.broker.controller.image import (
    BrokerConfigsChanged,
    BrokerInfo,
    BrokersChanged,
    Change,
    ClusterImage,
    LeadersChanged,
    PartitionImage,
    PartitionsAdded,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)

MetadataRecord = dict[str, Any]


def apply(image: ClusterImage, record: MetadataRecord) -> Change | None:
    """Write `record` into `image`; what listeners are to hear of it, if anything. KeyError for a record that cannot be."""
    return _APPLIERS[record["type"]](image, record)


def snapshot_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    """The fewest records whose fold gives `image`."""
    yield {"type": "cluster", "cluster_id": image.cluster_id}
    for node_id in sorted(image.brokers):
        broker = image.brokers[node_id]
        yield broker_record(broker.node, broker.alive)
    for topic in image.topics.values():
        yield topic_record(topic)
    for name in sorted(image.broker_configs):
        yield {"type": "broker_configs", "name": name, "configs": dict(image.broker_configs[name])}
    yield {"type": "producer_ids", "next": image.next_producer_id}


def broker_record(node: Node, alive: bool) -> MetadataRecord:
    """The record of a broker that starts or stops."""
    return {"type": "broker", "node_id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack, "alive": alive}


def topic_record(topic: TopicImage) -> MetadataRecord:
    """The record of a topic as it is."""
    return {
        "type": "topic",
        "topic_id": topic.topic_id.hex,
        "name": topic.name,
        "partitions": partition_lists(topic.partitions),
        "configs": dict(topic.configs),
    }


def partition_lists(partitions: list[PartitionImage]) -> list[list[Any]]:
    """Partitions in the form that records hold."""
    return [[list(one.replicas), list(one.isr), one.leader, one.leader_epoch] for one in partitions]


def _partition_images(lists: list[list[Any]]) -> list[PartitionImage]:
    return [PartitionImage(tuple(replicas), tuple(isr), leader, epoch) for replicas, isr, leader, epoch in lists]


def _topic(image: ClusterImage, record: MetadataRecord) -> TopicImage:
    return image.topics_by_id[UUID(hex=record["topic_id"])]


def _apply_cluster(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.cluster_id = record["cluster_id"]
    return None


def _apply_broker(image: ClusterImage, record: MetadataRecord) -> Change | None:
    node = Node(record["node_id"], record["host"], record["port"], record["rack"])
    image.brokers[node.node_id] = BrokerInfo(node, record["alive"])
    return BrokersChanged(node.node_id, record["alive"])


def _apply_topic(image: ClusterImage, record: MetadataRecord) -> Change | None:
    topic = TopicImage(record["name"], UUID(hex=record["topic_id"]), _partition_images(record["partitions"]), dict(record["configs"]))
    image.topics[topic.name] = topic
    image.topics_by_id[topic.topic_id] = topic
    return TopicCreated(topic)


def _apply_topic_removed(image: ClusterImage, record: MetadataRecord) -> Change | None:
    topic = image.topics_by_id.pop(UUID(hex=record["topic_id"]))
    del image.topics[topic.name]
    return TopicDeleted(topic)


def _apply_partitions_added(image: ClusterImage, record: MetadataRecord) -> Change | None:
    topic = _topic(image, record)
    first = len(topic.partitions)
    topic.partitions.extend(_partition_images(record["partitions"]))
    return PartitionsAdded(topic, first)


def _apply_leaders(image: ClusterImage, record: MetadataRecord) -> Change | None:
    changed = []
    for topic_id, number, isr, leader, leader_epoch in record["changes"]:
        topic = image.topics_by_id[UUID(hex=topic_id)]
        partition = topic.partitions[number]
        partition.isr, partition.leader, partition.leader_epoch = tuple(isr), leader, leader_epoch
        changed.append((topic, number))
    return LeadersChanged(tuple(changed))


def _merge(target: dict[str, str], configs: dict[str, str | None]) -> None:
    for key, value in configs.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _apply_topic_configs(image: ClusterImage, record: MetadataRecord) -> Change | None:
    topic = _topic(image, record)
    _merge(topic.configs, record["configs"])
    return TopicConfigsChanged(topic)


def _apply_broker_configs(image: ClusterImage, record: MetadataRecord) -> Change | None:
    _merge(image.broker_configs.setdefault(record["name"], {}), record["configs"])
    return BrokerConfigsChanged(record["name"])


def _apply_producer_ids(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.next_producer_id = record["next"]
    return None


_APPLIERS: dict[str, Callable[[ClusterImage, MetadataRecord], Change | None]] = {
    "cluster": _apply_cluster,
    "broker": _apply_broker,
    "topic": _apply_topic,
    "topic_removed": _apply_topic_removed,
    "partitions_added": _apply_partitions_added,
    "leaders": _apply_leaders,
    "topic_configs": _apply_topic_configs,
    "broker_configs": _apply_broker_configs,
    "producer_ids": _apply_producer_ids,
}
