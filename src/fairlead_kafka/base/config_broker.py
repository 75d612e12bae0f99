"""The table of broker and topic configs: every key of Kafka's (release 4.3), with Kafka's defaults.

A topic's key falls back on a broker's: `TOPIC_COUNTERPARTS` has the pairs, as Kafka's
`ServerTopicConfigSynonyms` does. Keys without an effect here are kept and listed as well
(`config_kept`), and `no_effect` says why. Keys that Kafka removed are in the table's `unsupported`
(`config_broker_refused`), with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.config import (
    INT_MAX,
    LONG_MAX,
    ConfigKey,
    ConfigTable,
    ConfigType,
    Settings,
    at_least,
    one_of,
)
from fairlead_kafka.base.config_broker_connections import CONNECTION_KEYS
from fairlead_kafka.base.config_broker_groups import CONSUMER_GROUP_KEYS, GROUP_KEYS
from fairlead_kafka.base.config_broker_log import LOG_COUNTERPARTS, LOG_KEYS, LOG_TOPIC_KEYS
from fairlead_kafka.base.config_broker_quotas import QUOTA_KEYS
from fairlead_kafka.base.config_broker_refused import UNSUPPORTED
from fairlead_kafka.base.config_broker_replication import REPLICATION_KEYS
from fairlead_kafka.base.config_broker_reported import REPORTED_KEYS
from fairlead_kafka.base.config_broker_security import BROKER_SECURITY_KEYS, key_of_listener
from fairlead_kafka.base.config_broker_share import SHARE_BROKER_KEYS, SHARE_GROUP_KEYS, SHARE_GROUP_OWN_KEYS
from fairlead_kafka.base.config_client_metrics import CLIENT_METRICS_KEYS
from fairlead_kafka.base.config_kept_groups import GROUPS_KEPT
from fairlead_kafka.base.config_kept_log import LOG_KEPT
from fairlead_kafka.base.config_kept_remote import REMOTE_KEPT
from fairlead_kafka.base.config_kept_security import SECURITY_KEPT
from fairlead_kafka.base.config_kept_server import SERVER_KEPT
from fairlead_kafka.base.config_kept_topics import KEPT_COUNTERPARTS, TOPIC_KEPT
from fairlead_kafka.base.units import GIB, MIB

_T = ConfigType
_BROKER = ("broker",)
_TOPIC = ("topic",)
_BOTH = ("broker", "topic")

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
        "How many minutes records are kept at least, if log.retention.ms is null; null: log.retention.hours "
        "decides.",
        _BROKER,
        at_least(-1),
        nullable=True,
    ),
    ConfigKey(
        "log.retention.hours",
        _T.INT,
        168,
        "How many hours records are kept at least, if log.retention.ms and log.retention.minutes are null; "
        "-1: for ever.",
        _BROKER,
        at_least(-1),
    ),
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
        "log.retention.check.interval.ms",
        _T.LONG,
        300_000,
        "How often a broker looks for records past retention.",
        _BROKER,
        at_least(1),
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
    ConfigKey(
        "num.partitions",
        _T.INT,
        1,
        "Partitions of a topic that is created without a number.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "auto.create.topics.enable",
        _T.BOOLEAN,
        True,
        "Asking for the metadata of a missing topic creates it.",
        _BROKER,
    ),
    ConfigKey("delete.topic.enable", _T.BOOLEAN, True, "Topics may be deleted.", _BROKER),
)

_GROUP_KEYS = (
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        _T.INT,
        0,
        "How long a new group waits for more members before its first assignment (Kafka: 3000; a test should "
        "not wait).",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "group.min.session.timeout.ms",
        _T.INT,
        6_000,
        "Shortest session.timeout.ms a member may ask for.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        _T.INT,
        1_800_000,
        "Longest session.timeout.ms a member may ask for.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey("group.max.size", _T.INT, INT_MAX, "Most members of one group.", _BROKER, at_least(1)),
    ConfigKey(
        "offset.metadata.max.bytes",
        _T.INT,
        4_096,
        "Longest text that may go with a committed offset.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "offsets.topic.num.partitions",
        _T.INT,
        50,
        "Partitions of the topic that keeps committed offsets.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        _T.SHORT,
        3,
        "Replicas of the topic that keeps committed offsets; unless it is set, as many as brokers are alive "
        "when there are fewer.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "offsets.commit.timeout.ms",
        _T.INT,
        5_000,
        "How long a commit may wait for its replicas before it is told to have timed out.",
        _BROKER,
        at_least(1),
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
        "offsets.retention.check.interval.ms",
        _T.LONG,
        600_000,
        "How often offsets past retention are looked for.",
        _BROKER,
        at_least(1),
    ),
)

_TRANSACTION_KEYS = (
    ConfigKey(
        "transaction.state.log.num.partitions",
        _T.INT,
        50,
        "Partitions of the topic that keeps transactions.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.replication.factor",
        _T.SHORT,
        3,
        "Replicas of the topic that keeps transactions; unless it is set, as many as brokers are alive when "
        "there are fewer.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.state.log.min.isr",
        _T.INT,
        2,
        "Replicas in sync that a change of a transaction needs; unless it is set, fewer than the topic has, "
        "where that can be.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.max.timeout.ms",
        _T.INT,
        900_000,
        "Longest transaction.timeout.ms a producer may ask for.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transactional.id.expiration.ms",
        _T.INT,
        604_800_000,
        "How long a transactional id that nobody uses is remembered.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        _T.INT,
        10_000,
        "How often a coordinator looks for transactions that are open too long.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _T.INT,
        3_600_000,
        "How often a coordinator looks for transactional ids to forget.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "transaction.partition.verification.enable",
        _T.BOOLEAN,
        True,
        "A partition asks the coordinator before it takes the first batch of a transaction (KIP-890).",
        _BROKER,
        dynamic=True,
    ),
)

_TOPIC_KEYS = (
    ConfigKey(
        "max.message.bytes",
        _T.INT,
        1_048_588,
        "Largest batch the topic takes.",
        _TOPIC,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "retention.ms",
        _T.LONG,
        604_800_000,
        "How long records are kept at least; -1: for ever.",
        _TOPIC,
        at_least(-1),
        dynamic=True,
    ),
    ConfigKey(
        "retention.bytes",
        _T.LONG,
        -1,
        "Bytes a partition keeps; -1: no bound.",
        _TOPIC,
        at_least(-1),
        dynamic=True,
    ),
    ConfigKey(
        "segment.bytes",
        _T.INT,
        GIB,
        "Size in bytes of a log's files, and the largest batch.",
        _TOPIC,
        at_least(MIB),
        dynamic=True,
    ),
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
)

_MS_PER_MINUTE = 60_000
_MS_PER_HOUR = 3_600_000

TOPIC_COUNTERPARTS: dict[str, tuple[tuple[str, int], ...]] = {
    **LOG_COUNTERPARTS,
    **KEPT_COUNTERPARTS,
    "flush.messages": (("log.flush.interval.messages", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MS_PER_MINUTE),
        ("log.retention.hours", _MS_PER_HOUR),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""Topic key → the broker keys it falls back on, first choice first, each with the factor to the
topic key's unit."""

KEYS = (
    *_LOG_KEYS,
    *LOG_KEYS,
    *_CLUSTER_KEYS,
    *CONNECTION_KEYS,
    *QUOTA_KEYS,
    *BROKER_SECURITY_KEYS,
    *REPLICATION_KEYS,
    *_GROUP_KEYS,
    *CONSUMER_GROUP_KEYS,
    *GROUP_KEYS,
    *SHARE_BROKER_KEYS,
    *SHARE_GROUP_KEYS,
    *SHARE_GROUP_OWN_KEYS,
    *_TRANSACTION_KEYS,
    *_TOPIC_KEYS,
    *LOG_TOPIC_KEYS,
    *REPORTED_KEYS,
    *SERVER_KEPT,
    *LOG_KEPT,
    *SECURITY_KEPT,
    *GROUPS_KEPT,
    *REMOTE_KEPT,
    *TOPIC_KEPT,
    *CLIENT_METRICS_KEYS,
)
"""Every key of brokers, topics and groups; each is there once."""
BROKER_CONFIGS = ConfigTable(KEYS, UNSUPPORTED, narrowed=key_of_listener)


def topic_settings(broker: Mapping[str, object], overrides: Mapping[str, object]) -> Settings:
    """A topic's settings: its own parsed `overrides`, then the broker's counterparts in `broker`
    (settings of scope "broker").

    Every key of scope "topic" has a value; `given` names the overrides.
    """
    values: dict[str, object] = {}
    for key in BROKER_CONFIGS.scope("topic"):
        values[key.name] = overrides[key.name] if key.name in overrides else _from_broker(key, broker)
    return Settings(values, frozenset(overrides))


def _from_broker(key: ConfigKey, broker: Mapping[str, object]) -> object:
    for name, factor in TOPIC_COUNTERPARTS[key.name]:
        value = broker[name]
        if value is not None:
            return value * factor if isinstance(value, int) and factor != 1 and value >= 0 else value
    return key.default


def config_text(value: object) -> str | None:
    """A parsed value as Kafka writes it: lists joined by commas, booleans in lower case; None stays
    None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value).replace("e+", "E").replace("e-", "E-")
    return ",".join(value) if isinstance(value, tuple) else str(value)
