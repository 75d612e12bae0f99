"""Metadata records and their one meaning: `apply` applies a record to an image, both when it is new
and on replay.

A record is a JSON object with a `type`. Topic ids are hexadecimal text; partitions are written as
columns (`packed`).

| type | fields |
|---|---|
| cluster | cluster_id |
| broker | node_id, host, port, rack, alive, epoch, stopping, disk_failed, endpoints |
| topic | topic_id, name, partitions (columns), configs |
| topic_removed | topic_id |
| partitions_added | topic_id, partitions (columns) |
| leaders | topics: list of {topic_id, numbers, and columns} |
| partitions | the same fields as leaders |
| topic_configs | topic_id, configs (null: no longer set) |
| broker_configs | name, configs (null: no longer set) |
| group_configs | group, configs (null: no longer set) |
| producer_ids | next |
| acls | added, removed: lists of the fields of `AclBinding` |
| scram_credential | mechanism, user, credential (null: deleted) |
| client_quotas | entity: list of [type, name or null]; values (null: no longer set) |
| features | levels (feature: level), epoch (missing: one more than before) |
| client_metrics | name, configs (null: no longer set) |
| log_end | offset: number of records of the log that a snapshot stands for |

In a broker's record disk_failed may be missing (false); its endpoints are {listener: [host, port]}.
A leaders record changes leaders or leader epochs. A partitions record changes replicas, those in
sync or those on the move, under the same leader in the same epoch. A credential is [salt,
stored_key, server_key in hexadecimal, iterations].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from fairlead_kafka.base.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.base.config_broker_security import key_of_listener
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller.image import (
    AclsChanged,
    BrokerConfigsChanged,
    BrokerInfo,
    BrokersChanged,
    Change,
    ClientMetricsChanged,
    ClientQuotasChanged,
    ClusterImage,
    GroupConfigsChanged,
    LeadersChanged,
    PartitionImage,
    PartitionsAdded,
    PartitionsChanged,
    ScramCredential,
    ScramCredentialChanged,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.controller.packed import pack, rows, unpack
from fairlead_kafka.broker.quota_table import QuotaEntity

MetadataRecord = dict[str, Any]
ChangedPartition = tuple[TopicImage, int, PartitionImage]
"""A partition (its topic and number), and what it is to become."""


def apply(image: ClusterImage, record: MetadataRecord) -> Change | None:
    """Apply `record` to `image`, and return the change for listeners, or None. KeyError for a
    record that does not fit the image."""
    change = _APPLIERS[record["type"]](image, record)
    image.log_end += 1
    return change


def snapshot_records(image: ClusterImage) -> Iterator[MetadataRecord]:
    """The fewest records whose fold gives `image`."""
    yield {"type": "cluster", "cluster_id": image.cluster_id}
    for node_id in sorted(image.brokers):
        yield broker_record(image.brokers[node_id])
    for topic in image.topics.values():
        yield topic_record(topic)
    for name in sorted(image.broker_configs):
        yield {"type": "broker_configs", "name": name, "configs": dict(image.broker_configs[name])}
    for group_id in sorted(image.group_configs):
        yield {"type": "group_configs", "group": group_id, "configs": dict(image.group_configs[group_id])}
    if image.acls:
        yield acls_record(added=image.acls)
    for (mechanism, user), credential in image.scram_credentials.items():
        yield scram_credential_record(mechanism, user, credential)
    for entity, values in image.client_quotas.items():
        yield client_quotas_record(entity, dict(values))
    if image.features:
        yield {**features_record(image.features), "epoch": image.features_epoch}
    for name, configs in image.client_metrics.items():
        yield client_metrics_record(name, dict(configs))
    yield {"type": "producer_ids", "next": image.next_producer_id}
    yield {"type": "log_end", "offset": image.log_end}


def client_metrics_record(name: str, configs: Mapping[str, str | None]) -> MetadataRecord:
    """The record of new configs of a subscription to clients' metrics."""
    return {"type": "client_metrics", "name": name, "configs": dict(configs)}


def broker_record(broker: BrokerInfo) -> MetadataRecord:
    """The record with the state of a broker."""
    node = broker.node
    return {
        "type": "broker",
        "node_id": node.node_id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "alive": broker.alive,
        "epoch": broker.epoch,
        "stopping": broker.stopping,
        "disk_failed": broker.disk_failed,
        "endpoints": {listener: list(where) for listener, where in broker.endpoints.items()},
    }


def topic_record(topic: TopicImage) -> MetadataRecord:
    """The record with the state of a topic."""
    return {
        "type": "topic",
        "topic_id": topic.topic_id.hex,
        "name": topic.name,
        "partitions": pack(topic.partitions),
        "configs": dict(topic.configs),
    }


def partitions_added_record(topic: TopicImage, partitions: list[PartitionImage]) -> MetadataRecord:
    """The record of partitions that are added to a topic."""
    return {"type": "partitions_added", "topic_id": topic.topic_id.hex, "partitions": pack(partitions)}


def acls_record(added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> MetadataRecord:
    """The record of ACLs that are added and removed."""
    return {
        "type": "acls",
        "added": [list(each) for each in added],
        "removed": [list(each) for each in removed],
    }


def scram_credential_record(mechanism: str, user: str, credential: ScramCredential | None) -> MetadataRecord:
    """The record of a user's SCRAM credential; None: it is deleted."""
    kept = None
    if credential is not None:
        kept = [
            credential.salt.hex(),
            credential.stored_key.hex(),
            credential.server_key.hex(),
            credential.iterations,
        ]
    return {"type": "scram_credential", "mechanism": mechanism, "user": user, "credential": kept}


def client_quotas_record(entity: QuotaEntity, values: Mapping[str, float | None]) -> MetadataRecord:
    """The record of quotas of an entity that are set, or, with None, removed."""
    return {"type": "client_quotas", "entity": [list(part) for part in entity], "values": dict(values)}


def features_record(levels: Mapping[str, int]) -> MetadataRecord:
    """The record of feature levels that change."""
    return {"type": "features", "levels": dict(levels)}


def changed_records(changes: Iterable[ChangedPartition]) -> list[MetadataRecord]:
    """The records of partitions that change: one for those whose leader or leader epoch changes,
    another for the others."""
    reigns: dict[UUID, list[tuple[int, PartitionImage]]] = {}
    others: dict[UUID, list[tuple[int, PartitionImage]]] = {}
    for topic, number, after in changes:
        before = topic.partitions[number]
        same = (before.leader, before.leader_epoch) == (after.leader, after.leader_epoch)
        (others if same else reigns).setdefault(topic.topic_id, []).append((number, after))
    return [
        {
            "type": kind,
            "topics": [_changed_topic(topic_id, changed) for topic_id, changed in by_topic.items()],
        }
        for kind, by_topic in (("leaders", reigns), ("partitions", others))
        if by_topic
    ]


def _changed_topic(topic_id: UUID, changed: list[tuple[int, PartitionImage]]) -> MetadataRecord:
    return {
        "topic_id": topic_id.hex,
        "numbers": [number for number, _ in changed],
        **pack([after for _, after in changed]),
    }


def _topic(image: ClusterImage, record: MetadataRecord) -> TopicImage:
    return image.topics_by_id[UUID(hex=record["topic_id"])]


def _apply_cluster(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.cluster_id = record["cluster_id"]
    return None


def _apply_broker(image: ClusterImage, record: MetadataRecord) -> Change | None:
    node = Node(record["node_id"], record["host"], record["port"], record["rack"])
    disk_failed = record.get("disk_failed", False)
    endpoints = {listener: (host, port) for listener, (host, port) in record.get("endpoints", {}).items()}
    image.brokers[node.node_id] = BrokerInfo(
        node, record["alive"], record["epoch"], record["stopping"], disk_failed, endpoints
    )
    return BrokersChanged(node.node_id, record["alive"])


def _apply_topic(image: ClusterImage, record: MetadataRecord) -> Change | None:
    topic = TopicImage(
        record["name"], UUID(hex=record["topic_id"]), unpack(record["partitions"]), dict(record["configs"])
    )
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
    topic.partitions.extend(unpack(record["partitions"]))
    return PartitionsAdded(topic, first)


def _change_partitions(image: ClusterImage, record: MetadataRecord) -> tuple[tuple[TopicImage, int], ...]:
    changed: list[tuple[TopicImage, int]] = []
    for one in record["topics"]:
        topic = _topic(image, one)
        for number, (shape, leader_epoch, partition_epoch) in zip(one["numbers"], rows(one), strict=True):
            partition = topic.partitions[number]
            partition.replicas, partition.isr, partition.leader, partition.adding, partition.removing = shape
            partition.leader_epoch, partition.partition_epoch = leader_epoch, partition_epoch
            changed.append((topic, number))
    return tuple(changed)


def _apply_leaders(image: ClusterImage, record: MetadataRecord) -> Change | None:
    return LeadersChanged(_change_partitions(image, record))


def _apply_partitions(image: ClusterImage, record: MetadataRecord) -> Change | None:
    return PartitionsChanged(_change_partitions(image, record))


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


def _apply_group_configs(image: ClusterImage, record: MetadataRecord) -> Change | None:
    configs = image.group_configs.setdefault(record["group"], {})
    _merge(configs, record["configs"])
    if not configs:
        del image.group_configs[record["group"]]
    return GroupConfigsChanged(record["group"])


def _apply_broker_configs(image: ClusterImage, record: MetadataRecord) -> Change | None:
    # One listener's own, which an old log may have, is left out: with it no broker could start.
    configs = {key: value for key, value in record["configs"].items() if key_of_listener(key) is None}
    _merge(image.broker_configs.setdefault(record["name"], {}), configs)
    return BrokerConfigsChanged(record["name"])


def _apply_producer_ids(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.next_producer_id = record["next"]
    return None


def _binding(fields: tuple[int, str, int, str, str, int, int]) -> AclBinding:
    kind, name, pattern, principal, host, operation, permission = fields
    return AclBinding(
        AclResourceType(kind),
        name,
        AclPatternType(pattern),
        principal,
        host,
        AclOperation(operation),
        AclPermission(permission),
    )


def _apply_acls(image: ClusterImage, record: MetadataRecord) -> Change | None:
    added, removed = (tuple(_binding(each) for each in record[side]) for side in ("added", "removed"))
    for each in removed:
        image.acls.pop(each, None)
    image.acls.update(dict.fromkeys(added))
    return AclsChanged(added, removed)


def _apply_scram_credential(image: ClusterImage, record: MetadataRecord) -> Change | None:
    mechanism, user, kept = record["mechanism"], record["user"], record["credential"]
    if kept is None:
        image.scram_credentials.pop((mechanism, user), None)
    else:
        salt, stored_key, server_key = (bytes.fromhex(text) for text in kept[:3])
        image.scram_credentials[mechanism, user] = ScramCredential(salt, stored_key, server_key, kept[3])
    return ScramCredentialChanged(mechanism, user)


def _apply_client_quotas(image: ClusterImage, record: MetadataRecord) -> Change | None:
    entity = tuple((kind, name) for kind, name in record["entity"])
    values = image.client_quotas.setdefault(entity, {})
    for key, value in record["values"].items():
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    if not values:
        del image.client_quotas[entity]
    return ClientQuotasChanged(entity)


def _apply_features(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.features.update(record["levels"])
    image.features_epoch = record.get("epoch", image.features_epoch + 1)
    return None


def _apply_client_metrics(image: ClusterImage, record: MetadataRecord) -> Change | None:
    configs = image.client_metrics.setdefault(record["name"], {})
    _merge(configs, record["configs"])
    if not configs:
        del image.client_metrics[record["name"]]
    return ClientMetricsChanged(record["name"])


def _apply_log_end(image: ClusterImage, record: MetadataRecord) -> Change | None:
    image.log_end = record["offset"] - 1  # and this record, which ends a snapshot, is none of its own
    return None


_APPLIERS: dict[str, Callable[[ClusterImage, MetadataRecord], Change | None]] = {
    "cluster": _apply_cluster,
    "broker": _apply_broker,
    "topic": _apply_topic,
    "topic_removed": _apply_topic_removed,
    "partitions_added": _apply_partitions_added,
    "leaders": _apply_leaders,
    "partitions": _apply_partitions,
    "topic_configs": _apply_topic_configs,
    "broker_configs": _apply_broker_configs,
    "group_configs": _apply_group_configs,
    "producer_ids": _apply_producer_ids,
    "acls": _apply_acls,
    "scram_credential": _apply_scram_credential,
    "client_quotas": _apply_client_quotas,
    "features": _apply_features,
    "client_metrics": _apply_client_metrics,
    "log_end": _apply_log_end,
}
