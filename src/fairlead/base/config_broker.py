"""The table of broker and topic configs: Kafka's keys and Kafka's defaults (release 4.3), as far as the embedded cluster has them.

A topic's key falls back on a broker's: `TOPIC_COUNTERPARTS` says on which, as Kafka's `ServerTopicConfigSynonyms` does. What Kafka
has and this release has not is in the table's `unsupported`, with the reason; nothing is accepted and then ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.base.config import INT_MAX, LONG_MAX, ConfigKey, ConfigTable, ConfigType, Settings, at_least, one_of
from fairlead.base.units import GIB, MIB

_T = ConfigType
_BROKER = ("broker",)
_TOPIC = ("topic",)
_BOTH = ("broker", "topic")

_NO_COMPACTION = "logs are not compacted in this release: delete is the only policy"
_NO_RECOMPRESSION = "batches are kept as their producer compressed them, so producer is the only value"

_REPLICATION = "partitions have one replica in this release"


def _only(value: Any, reason: str) -> Any:
    def check(given: Any) -> str | None:
        return None if given == value else f"{reason}"

    check.__doc__ = ",".join(value) if isinstance(value, tuple) else str(value)
    return check


_LOG_KEYS = (
    ConfigKey(
        "message.max.bytes",
        _T.INT,
        1_048_588,
        "Largest batch a partition takes, for topics without max.message.bytes.",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "log.retention.ms",
        _T.LONG,
        None,
        "How long records are kept at least; -1: for ever; null: log.retention.minutes decides.",
        _BROKER,
        at_least(-1),
        nullable=True,
        dynamic=True,
    ),
    ConfigKey(
        "log.retention.minutes",
        _T.INT,
        None,
        "Likewise in minutes; null: log.retention.hours decides.",
        _BROKER,
        at_least(-1),
        nullable=True,
    ),
    ConfigKey("log.retention.hours", _T.INT, 168, "Likewise in hours; -1: for ever.", _BROKER, at_least(-1)),
    ConfigKey(
        "log.retention.bytes",
        _T.LONG,
        -1,
        "Bytes a partition keeps; the oldest go first; -1: no bound.",
        _BROKER,
        at_least(-1),
        dynamic=True,
    ),
    ConfigKey(
        "log.retention.check.interval.ms", _T.LONG, 300_000, "How often a broker looks for records past retention.", _BROKER, at_least(1)
    ),
    ConfigKey(
        "log.segment.bytes",
        _T.INT,
        GIB,
        "Size in bytes at which a log goes on in a new file; also the largest batch.",
        _BROKER,
        at_least(MIB),
        dynamic=True,
    ),
    ConfigKey(
        "log.flush.interval.messages",
        _T.LONG,
        LONG_MAX,
        "Records written to a partition after which the disk is synced before the producer is answered.",
        _BROKER,
        at_least(1),
        dynamic=True,
    ),
    ConfigKey(
        "log.message.timestamp.type",
        _T.STRING,
        "CreateTime",
        "Whose time a record carries: its producer's (CreateTime) or the broker's (LogAppendTime).",
        _BROKER,
        one_of("CreateTime", "LogAppendTime"),
        dynamic=True,
    ),
    ConfigKey(
        "log.cleanup.policy",
        _T.LIST,
        ("delete",),
        "What happens to records past retention; only delete.",
        _BROKER,
        _only(("delete",), _NO_COMPACTION),
        dynamic=True,
    ),
    ConfigKey(
        "compression.type",
        _T.STRING,
        "producer",
        "How batches are compressed in the log; only producer: as they came.",
        _BOTH,
        _only("producer", _NO_RECOMPRESSION),
        dynamic=True,
    ),
    ConfigKey(
        "min.insync.replicas",
        _T.INT,
        1,
        "Replicas in sync that a write with acks=all needs; never more than the partition has.",
        _BOTH,
        at_least(1),
        dynamic=True,
    ),
    ConfigKey(
        "producer.id.expiration.ms",
        _T.INT,
        86_400_000,
        "How long a partition remembers an idempotent producer that writes nothing.",
        _BROKER,
        at_least(1),
        dynamic=True,
    ),
)

_CLUSTER_KEYS = (
    ConfigKey("num.partitions", _T.INT, 1, "Partitions of a topic that is created without a number.", _BROKER, at_least(1)),
    ConfigKey(
        "default.replication.factor",
        _T.INT,
        1,
        "Replicas of a topic that is created without a number; only 1 in this release.",
        _BROKER,
        _only(1, _REPLICATION),
    ),
    ConfigKey("auto.create.topics.enable", _T.BOOLEAN, True, "Asking for the metadata of a missing topic creates it.", _BROKER),
    ConfigKey("delete.topic.enable", _T.BOOLEAN, True, "Topics may be deleted.", _BROKER),
    ConfigKey("socket.request.max.bytes", _T.INT, 104_857_600, "Largest request; a longer one ends its connection.", _BROKER, at_least(1)),
)

_GROUP_KEYS = (
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        _T.INT,
        0,
        "How long a new group waits for more members before its first assignment (Kafka: 3000; a test should not wait).",
        _BROKER,
        at_least(0),
    ),
    ConfigKey("group.min.session.timeout.ms", _T.INT, 6_000, "Shortest session.timeout.ms a member may ask for.", _BROKER, at_least(0)),
    ConfigKey("group.max.session.timeout.ms", _T.INT, 1_800_000, "Longest session.timeout.ms a member may ask for.", _BROKER, at_least(0)),
    ConfigKey("group.max.size", _T.INT, INT_MAX, "Most members of one group.", _BROKER, at_least(1)),
    ConfigKey("offset.metadata.max.bytes", _T.INT, 4_096, "Longest text that may go with a committed offset.", _BROKER, at_least(0)),
    ConfigKey("offsets.topic.num.partitions", _T.INT, 50, "Partitions of the topic that keeps committed offsets.", _BROKER, at_least(1)),
    ConfigKey(
        "offsets.topic.replication.factor",
        _T.INT,
        1,
        "Replicas of the topic that keeps committed offsets (Kafka: 3); only 1 in this release.",
        _BROKER,
        _only(1, _REPLICATION),
    ),
    ConfigKey(
        "offsets.retention.minutes",
        _T.INT,
        10_080,
        "How long the offsets of a group without members are kept.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "offsets.retention.check.interval.ms", _T.LONG, 600_000, "How often offsets past retention are looked for.", _BROKER, at_least(1)
    ),
)

_TOPIC_KEYS = (
    ConfigKey("max.message.bytes", _T.INT, 1_048_588, "Largest batch the topic takes.", _TOPIC, at_least(0), dynamic=True),
    ConfigKey(
        "retention.ms", _T.LONG, 604_800_000, "How long records are kept at least; -1: for ever.", _TOPIC, at_least(-1), dynamic=True
    ),
    ConfigKey("retention.bytes", _T.LONG, -1, "Bytes a partition keeps; -1: no bound.", _TOPIC, at_least(-1), dynamic=True),
    ConfigKey("segment.bytes", _T.INT, GIB, "Size in bytes of a log's files, and the largest batch.", _TOPIC, at_least(MIB), dynamic=True),
    ConfigKey(
        "flush.messages",
        _T.LONG,
        LONG_MAX,
        "Records written to a partition after which the disk is synced before the producer is answered.",
        _TOPIC,
        at_least(1),
        dynamic=True,
    ),
    ConfigKey(
        "message.timestamp.type",
        _T.STRING,
        "CreateTime",
        "Whose time a record carries: its producer's (CreateTime) or the broker's (LogAppendTime).",
        _TOPIC,
        one_of("CreateTime", "LogAppendTime"),
        dynamic=True,
    ),
    ConfigKey(
        "cleanup.policy",
        _T.LIST,
        ("delete",),
        "What happens to records past retention; only delete.",
        _TOPIC,
        _only(("delete",), _NO_COMPACTION),
        dynamic=True,
    ),
)

_MS_PER_MINUTE = 60_000
_MS_PER_HOUR = 3_600_000

TOPIC_COUNTERPARTS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.type": (("compression.type", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", _MS_PER_MINUTE), ("log.retention.hours", _MS_PER_HOUR)),
    "segment.bytes": (("log.segment.bytes", 1),),
}
"""Topic key → the broker keys it falls back on, first choice first, each with the factor to the topic key's unit."""

_COMPACTION = "logs are not compacted in this release"
_PLACE = "the cluster's launcher decides it"
_SECURITY = "only PLAINTEXT connections so far"
_TRANSACTIONS = "transactions are not part of this release"
_TIERED = "there is no tiered storage"
_SHARED_LOG = "a broker keeps one log for all its partitions"
_QUORUM = "there is one controller, not a quorum"
_THREADS = "a broker is one machine on one thread"
_MIRROR_OF_JVM = "plug-in classes are Java's"

UNSUPPORTED = {
    "advertised.listeners": _PLACE,
    "listeners": _PLACE,
    "broker.id": _PLACE,
    "broker.rack": _REPLICATION,
    "node.id": _PLACE,
    "log.dir": _PLACE,
    "log.dirs": _PLACE,
    "process.roles": _QUORUM,
    "controller.": _QUORUM,
    "metadata.log.": _QUORUM,
    "zookeeper.": "there is no ZooKeeper",
    "num.network.threads": _THREADS,
    "num.io.threads": _THREADS,
    "num.recovery.threads.per.data.dir": _THREADS,
    "background.threads": _THREADS,
    "queued.max.requests": _THREADS,
    "max.partitions": "partition limits (KIP-578) are not part of this release",
    "max.broker.partitions": "partition limits (KIP-578) are not part of this release",
    "replica.": _REPLICATION,
    "num.replica.fetchers": _REPLICATION,
    "auto.leader.rebalance.enable": _REPLICATION,
    "leader.imbalance.": _REPLICATION,
    "leader.replication.throttled.replicas": _REPLICATION,
    "follower.replication.throttled.replicas": _REPLICATION,
    "unclean.leader.election.enable": _REPLICATION,
    "transaction.": _TRANSACTIONS,
    "transactional.id.expiration.ms": _TRANSACTIONS,
    "sasl.": _SECURITY,
    "ssl.": _SECURITY,
    "security.": _SECURITY,
    "inter.broker.listener.name": _SECURITY,
    "authorizer.class.name": _SECURITY,
    "super.users": _SECURITY,
    "quota.": "there are no quotas in this release",
    "client.quota.callback.class": _MIRROR_OF_JVM,
    "create.topic.policy.class.name": _MIRROR_OF_JVM,
    "alter.config.policy.class.name": _MIRROR_OF_JVM,
    "metric.reporters": _MIRROR_OF_JVM,
    "log.cleaner.": _COMPACTION,
    "delete.retention.ms": _COMPACTION,
    "min.cleanable.dirty.ratio": _COMPACTION,
    "min.compaction.lag.ms": _COMPACTION,
    "max.compaction.lag.ms": _COMPACTION,
    "segment.ms": "files are cut by size alone in this release; retention does not wait for it",
    "segment.jitter.ms": "files are cut by size alone in this release",
    "log.roll.": "files are cut by size alone in this release; retention does not wait for it",
    "segment.index.bytes": _SHARED_LOG,
    "index.interval.bytes": _SHARED_LOG,
    "log.index.": _SHARED_LOG,
    "preallocate": _SHARED_LOG,
    "log.preallocate": _SHARED_LOG,
    "file.delete.delay.ms": _SHARED_LOG,
    "log.segment.delete.delay.ms": _SHARED_LOG,
    "flush.ms": "the disk is synced by count of records, not by time; use flush.messages",
    "log.flush.interval.ms": "the disk is synced by count of records, not by time; use log.flush.interval.messages",
    "log.flush.scheduler.interval.ms": "the disk is synced by count of records, not by time",
    "message.timestamp.before.max.ms": "timestamps are not bounded in this release",
    "message.timestamp.after.max.ms": "timestamps are not bounded in this release",
    "message.timestamp.difference.max.ms": "timestamps are not bounded in this release",
    "log.message.timestamp.before.max.ms": "timestamps are not bounded in this release",
    "log.message.timestamp.after.max.ms": "timestamps are not bounded in this release",
    "message.format.version": "record batch version 2 is the only format",
    "log.message.format.version": "record batch version 2 is the only format",
    "message.downconversion.enable": "record batch version 2 is the only format",
    "compression.gzip.level": _NO_RECOMPRESSION,
    "compression.lz4.level": _NO_RECOMPRESSION,
    "compression.zstd.level": _NO_RECOMPRESSION,
    "remote.": _TIERED,
    "local.retention.": _TIERED,
    "group.consumer.": "the consumer rebalance protocol (KIP-848) is not part of this release; groups use the classic one",
    "group.coordinator.": "the consumer rebalance protocol (KIP-848) is not part of this release; groups use the classic one",
    "group.share.": "share groups are not part of this release",
    "offsets.topic.compression.codec": "committed offsets are stored uncompressed",
    "offsets.topic.segment.bytes": _SHARED_LOG,
    "offsets.load.buffer.size": _SHARED_LOG,
    "connections.max.idle.ms": "idle connections stay open",
    "max.connections": "connections are not counted",
    "max.connections.per.ip": "connections are not counted",
    "max.incremental.fetch.session.cache.slots": "there are no fetch sessions in this release: every fetch is complete",
    "fetch.max.bytes": "the consumer's bound alone counts",
    "socket.send.buffer.bytes": "the operating system's default is used",
    "socket.receive.buffer.bytes": "the operating system's default is used",
}

BROKER_CONFIGS = ConfigTable((*_LOG_KEYS, *_CLUSTER_KEYS, *_GROUP_KEYS, *_TOPIC_KEYS), UNSUPPORTED)


def topic_settings(broker: Mapping[str, Any], overrides: Mapping[str, Any]) -> Settings:
    """A topic's settings: its own parsed `overrides`, then the broker's counterparts in `broker` (settings of scope "broker").

    Every key of scope "topic" has a value; `given` names the overrides.
    """
    values: dict[str, Any] = {}
    for key in BROKER_CONFIGS.scope("topic"):
        values[key.name] = overrides[key.name] if key.name in overrides else _from_broker(key, broker)
    return Settings(values, frozenset(overrides))


def _from_broker(key: ConfigKey, broker: Mapping[str, Any]) -> Any:
    for name, factor in TOPIC_COUNTERPARTS[key.name]:
        value = broker[name]
        if value is not None:
            return value * factor if factor != 1 and value >= 0 else value
    return key.default


def config_text(value: Any) -> str | None:
    """A parsed value as Kafka writes it: lists joined by commas, booleans in lower case; None stays None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)
