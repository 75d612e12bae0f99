"""Configs of a broker's log and of the topics in it: compaction, compression, timestamps, and when
the disk is synced."""

from __future__ import annotations

from fairlead_kafka.base.config import (
    INT_MAX,
    LONG_MAX,
    ConfigKey,
    ConfigType,
    Validator,
    at_least,
    between,
    one_of,
    validates,
)
from fairlead_kafka.base.units import MIB

_T = ConfigType
_BROKER = ("broker",)
_TOPIC = ("topic",)
_BOTH = ("broker", "topic")

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_POLICIES = ("compact", "delete")


@validates(tuple)
def _policies(given: tuple[str, ...]) -> str | None:
    """compact, delete, both, or none (KIP-1161)

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    if all(policy in _POLICIES for policy in given):
        return None
    return "must be compact, delete, both, or none"


@validates(int)
def _gzip_level(level: int) -> str | None:
    """1 to 9, or -1

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    return None if level == -1 or 1 <= level <= 9 else "must be 1 to 9, or -1"


def _pair(
    topic: str, broker: str, kind: ConfigType, default: object, doc: str, check: Validator
) -> tuple[ConfigKey, ConfigKey]:
    """Two keys of the same kind: the broker's, which holds for topics without their own, and the
    topic's."""
    return (
        ConfigKey(broker, kind, default, f"{doc} For topics without {topic}.", _BROKER, check, dynamic=True),
        ConfigKey(topic, kind, default, doc, _TOPIC, check, dynamic=True),
    )


LOG_TOPIC_KEYS = (
    *_pair(
        "cleanup.policy",
        "log.cleanup.policy",
        _T.LIST,
        ("delete",),
        "What happens to old records: delete them past retention, or compact: of each key the newest stays.",
        _policies,
    ),
    *_pair(
        "min.cleanable.dirty.ratio",
        "log.cleaner.min.cleanable.ratio",
        _T.DOUBLE,
        0.5,
        "The share of a partition's bytes that must be new since it was compacted last, for it to be "
        "compacted again.",
        between(0, 1),
    ),
    *_pair(
        "delete.retention.ms",
        "log.cleaner.delete.retention.ms",
        _T.LONG,
        _DAY_MS,
        "How long a record without a value (a tombstone) is kept after compaction has come to it, so that "
        "readers see it.",
        at_least(0),
    ),
    *_pair(
        "min.compaction.lag.ms",
        "log.cleaner.min.compaction.lag.ms",
        _T.LONG,
        0,
        "How old a record is at least before it is compacted away.",
        at_least(0),
    ),
    *_pair(
        "max.compaction.lag.ms",
        "log.cleaner.max.compaction.lag.ms",
        _T.LONG,
        LONG_MAX,
        "How old a record may be before its partition is compacted whatever the share of new bytes.",
        at_least(1),
    ),
    *_pair(
        "message.timestamp.before.max.ms",
        "log.message.timestamp.before.max.ms",
        _T.LONG,
        LONG_MAX,
        "How far a record's timestamp may lie before the broker's time; more is INVALID_TIMESTAMP.",
        at_least(0),
    ),
    *_pair(
        "message.timestamp.after.max.ms",
        "log.message.timestamp.after.max.ms",
        _T.LONG,
        _HOUR_MS,
        "How far a record's timestamp may lie after the broker's time; more is INVALID_TIMESTAMP.",
        at_least(0),
    ),
    ConfigKey(
        "log.flush.interval.ms",
        _T.LONG,
        None,
        "How long a written record may wait for the disk to be synced; null: log.flush.scheduler.interval.ms "
        "decides.",
        _BROKER,
        at_least(0),
        nullable=True,
        dynamic=True,
    ),
    ConfigKey(
        "log.flush.scheduler.interval.ms",
        _T.LONG,
        LONG_MAX,
        "How long a written record may wait for the disk to be synced, where log.flush.interval.ms does not "
        "say.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "flush.ms",
        _T.LONG,
        LONG_MAX,
        "How long a written record may wait for the disk to be synced.",
        _TOPIC,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "compression.type",
        _T.STRING,
        "producer",
        "How batches are compressed in the log; producer: as they came. Others are recompressed.",
        _BOTH,
        one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        dynamic=True,
    ),
    ConfigKey(
        "compression.gzip.level",
        _T.INT,
        -1,
        "gzip's level, 1 to 9; -1: its default.",
        _BOTH,
        _gzip_level,
        dynamic=True,
    ),
    ConfigKey(
        "compression.lz4.level", _T.INT, 9, "lz4's level, 1 to 17.", _BOTH, between(1, 17), dynamic=True
    ),
    ConfigKey(
        "compression.zstd.level", _T.INT, 3, "zstd's level.", _BOTH, between(-131_072, 22), dynamic=True
    ),
)

LOG_KEYS = (
    ConfigKey(
        "log.cleaner.enable", _T.BOOLEAN, True, "Compact topics whose cleanup.policy says so.", _BROKER
    ),
    ConfigKey(
        "log.cleaner.backoff.ms",
        _T.LONG,
        15_000,
        "How often partitions to compact are looked for.",
        _BROKER,
        at_least(1),
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        _T.LONG,
        128 * MIB,
        "Bytes of keys held at a time by compaction, about; a partition with more is compacted in several "
        "passes.",
        _BROKER,
        between(MIB, INT_MAX),
        dynamic=True,
    ),
    ConfigKey(
        "log.flush.offset.checkpoint.interval.ms",
        _T.INT,
        60_000,
        "How often a broker notes what it knows of its log, so that a start need not read what was written "
        "before.",
        _BROKER,
        at_least(0),
    ),
)

LOG_COUNTERPARTS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
}
"""Topic key → broker keys, for `config_broker.TOPIC_COUNTERPARTS`."""
