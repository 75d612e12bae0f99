"""Catching up of a broker that was disconnected: its image is replaced by the controller's, and its
listeners are informed of the changes in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TypeVar

from fairlead_kafka.broker.controller import (
    AclsChanged,
    BrokerConfigsChanged,
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
    ScramCredentialChanged,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)

Key = TypeVar("Key")
Value = TypeVar("Value")


def catch_up(image: ClusterImage, now: ClusterImage) -> list[Change]:
    """Make `image` equal to `now`, and return the changes for listeners. Topics and brokers in both
    keep their objects, for other parts hold them. Topics that are gone come first: what else has
    changed may concern all topics that a listener knows, and it looks them up in the image."""
    gone = list(_gone_topics(image, now))
    configs_changed = _differing(image.broker_configs, now.broker_configs)
    groups_changed = _differing(image.group_configs, now.group_configs)
    brokers_changed = _differing(image.brokers, now.brokers)
    image.cluster_id, image.next_producer_id = now.cluster_id, now.next_producer_id
    image.features, image.features_epoch = now.features, now.features_epoch
    image.log_end = now.log_end
    metrics_changed = _differing(image.client_metrics, now.client_metrics)
    image.client_metrics = now.client_metrics
    image.brokers = now.brokers
    image.broker_configs.clear()
    image.broker_configs.update(now.broker_configs)
    image.group_configs = now.group_configs
    return [
        *gone,
        *_rights(image, now),
        *(BrokerConfigsChanged(name) for name in configs_changed),
        *(ClientMetricsChanged(name) for name in metrics_changed),
        *(GroupConfigsChanged(group_id) for group_id in groups_changed),
        *(BrokersChanged(node_id, image.is_alive(node_id)) for node_id in brokers_changed),
        *_topics(image, now),
    ]


def _rights(image: ClusterImage, now: ClusterImage) -> list[Change]:
    """Copy ACLs, SCRAM credentials and client quotas to `image`, and return the changes."""
    added = tuple(each for each in now.acls if each not in image.acls)
    removed = tuple(each for each in image.acls if each not in now.acls)
    changes: list[Change] = [AclsChanged(added, removed)] if added or removed else []
    changes += [
        ScramCredentialChanged(*key) for key in _differing(image.scram_credentials, now.scram_credentials)
    ]
    changes += [ClientQuotasChanged(entity) for entity in _differing(image.client_quotas, now.client_quotas)]
    _become(image.acls, now.acls)
    _become(image.scram_credentials, now.scram_credentials)
    _become(image.client_quotas, now.client_quotas)
    return changes


def _become(old: dict[Key, Value], new: Mapping[Key, Value]) -> None:
    """Replace the content of the dictionary `old`, which other parts hold, by that of `new`."""
    old.clear()
    old.update(new)


def _differing(before: Mapping[Key, object], after: Mapping[Key, object]) -> list[Key]:
    return [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]


def _gone_topics(image: ClusterImage, now: ClusterImage) -> Iterator[Change]:
    for known in list(image.topics.values()):
        if known.topic_id not in now.topics_by_id:
            del image.topics[known.name], image.topics_by_id[known.topic_id]
            yield TopicDeleted(known)


def _topics(image: ClusterImage, now: ClusterImage) -> Iterator[Change]:
    leaders: list[tuple[TopicImage, int]] = []
    others: list[tuple[TopicImage, int]] = []
    for fresh in now.topics.values():
        topic = image.topics_by_id.get(fresh.topic_id)
        if topic is None:
            image.topics[fresh.name] = image.topics_by_id[fresh.topic_id] = fresh
            yield TopicCreated(fresh)
            continue
        for number, (before, after) in enumerate(zip(topic.partitions, fresh.partitions, strict=False)):
            if before != after:
                same = (before.leader, before.leader_epoch) == (after.leader, after.leader_epoch)
                (others if same else leaders).append((topic, number))
                for field in fields(PartitionImage):
                    setattr(before, field.name, getattr(after, field.name))
        first = len(topic.partitions)
        if len(fresh.partitions) > first:
            topic.partitions += fresh.partitions[first:]
            yield PartitionsAdded(topic, first)
        if topic.configs != fresh.configs:
            topic.configs = fresh.configs
            yield TopicConfigsChanged(topic)
    if leaders:
        yield LeadersChanged(tuple(leaders))
    if others:
        yield PartitionsChanged(tuple(others))
