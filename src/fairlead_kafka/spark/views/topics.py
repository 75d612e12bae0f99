"""The view `topics`: a row per partition, with its replicas, their bytes, and the configs of its
topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from fairlead_kafka.admin import ConfigResource, TopicDescription
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import NO_LEADER, TopicPartition
from fairlead_kafka.client import Admin
from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST, OffsetAndTimestamp
from fairlead_kafka.spark.views.asking import AskingReader

CONFIGS = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
)
"""Configs that are shown for every topic; others where somebody has set them."""
TOPICS_SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("is_internal", BooleanType()),
        StructField("leader", IntegerType()),
        StructField("replicas", ArrayType(IntegerType())),
        StructField("in_sync_replicas", ArrayType(IntegerType())),
        StructField("start_offset", LongType()),
        StructField("end_offset", LongType()),
        StructField("size_bytes", LongType()),
        StructField("configs", MapType(StringType(), StringType())),
    ]
)
"""`leader` and offsets are null while there is no leader. `size_bytes`: of the leader's log, as it
lies on disk."""


class TopicsReader(AskingReader):
    """Reads the view `topics`: asks for metadata, offsets, configs, and each broker for the sizes
    of its logs (KIP-113)."""

    schema = TOPICS_SCHEMA

    def rows(self, admin: Admin) -> Iterator[Mapping[str, object]]:
        """The rows by topic and partition; internal topics only if they are named. ItemsFailed
        names topics that do not exist."""
        topics = self._options.topics
        names = sorted(filter(self.wants, admin.list_topics())) if topics is None else sorted(set(topics))
        described = admin.describe_topics(names) if names else {}
        led = {
            TopicPartition(name, one.partition): one.leader
            for name, topic in described.items()
            for one in topic.partitions
            if one.leader != NO_LEADER
        }
        starts, ends = (_offsets(admin, led, target) for target in (EARLIEST, LATEST))
        sizes, configs = _sizes(admin, led), _configs(admin, names)
        for name in names:
            yield from _topic_rows(described[name], starts, ends, sizes, configs[name])


def _topic_rows(
    topic: TopicDescription,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    sizes: Mapping[TopicPartition, int],
    configs: Mapping[str, str | None],
) -> Iterator[Mapping[str, object]]:
    for one in topic.partitions:
        of = TopicPartition(topic.name, one.partition)
        yield {
            "topic": topic.name,
            "partition": one.partition,
            "is_internal": topic.is_internal,
            "leader": None if one.leader == NO_LEADER else one.leader,
            "replicas": list(one.replicas),
            "in_sync_replicas": list(one.isr),
            "start_offset": starts.get(of),
            "end_offset": ends.get(of),
            "size_bytes": sizes.get(of),
            "configs": list(configs.items()),
        }


def _offsets(admin: Admin, led: Mapping[TopicPartition, int], target: int) -> dict[TopicPartition, int]:
    """Offsets of the partitions whose leader answers; `target` is earliest or latest."""
    found: Mapping[TopicPartition, OffsetAndTimestamp | None] = {}
    try:
        found = admin.list_offsets(dict.fromkeys(led, target)) if led else {}
    except ItemsFailed as error:
        found = error.results
    return {of: one.offset for of, one in found.items() if one is not None}


def _sizes(admin: Admin, led: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    described = admin.describe_log_dirs(sorted(set(led.values())), led) if led else {}
    return {
        of: replica.size_bytes
        for node_id, directories in described.items()
        for directory in directories.values()
        for of, replica in directory.replicas.items()
        if led.get(of) == node_id and not replica.is_future
    }


def _configs(admin: Admin, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    resources = [ConfigResource.topic(name) for name in names]
    described = admin.describe_configs(resources) if resources else {}
    return {
        resource.name: {
            name: entry.value
            for name, entry in sorted(entries.items())
            if name in CONFIGS or not entry.is_default
        }
        for resource, entries in described.items()
    }
