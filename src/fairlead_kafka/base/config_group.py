"""The consumer's configs for groups: Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigKey, ConfigType, at_least, name_on_the_wire, not_empty, one_of
from fairlead_kafka.base.config_share import SHARE_CONSUMER

_T = ConfigType
_CONSUMER = ("consumer",)
_READERS = ("consumer", SHARE_CONSUMER)
GROUP_KEYS = (
    ConfigKey(
        "group.id",
        _T.STRING,
        None,
        "The group that shares the topics subscribed to, and in whose name offsets are committed; null: "
        "none.",
        _READERS,
        name_on_the_wire,
        nullable=True,
    ),
    ConfigKey(
        "group.instance.id",
        _T.STRING,
        None,
        "A name of this member's own: it keeps its partitions over a restart within session.timeout.ms "
        "(KIP-345).",
        _CONSUMER,
        name_on_the_wire,
        nullable=True,
    ),
    ConfigKey(
        "group.protocol",
        _T.STRING,
        "classic",
        "Who assigns partitions: with classic the members, with consumer (KIP-848) the brokers, and members "
        "that keep what they have read on meanwhile.",
        _CONSUMER,
        one_of("classic", "consumer"),
        lower=True,
    ),
    ConfigKey(
        "group.remote.assignor",
        _T.STRING,
        None,
        "With group.protocol=consumer, the assignor of the brokers' that is to share: uniform or range, or "
        "one of their own; null: as the brokers are configured.",
        _CONSUMER,
        name_on_the_wire,
        nullable=True,
    ),
    ConfigKey(
        "partition.assignment.strategy",
        _T.LIST,
        ("range", "cooperative-sticky"),
        "How a group of group.protocol=classic shares, in order of preference: range, roundrobin, sticky, "
        "cooperative-sticky, or "
        "Kafka's class names. Partitions "
        "are kept through a rebalance only if all of them are cooperative.",
        _CONSUMER,
        not_empty,
    ),
    ConfigKey(
        "session.timeout.ms",
        _T.INT,
        45_000,
        "A member that is not heard of for this long loses its partitions (group.protocol=classic).",
        _CONSUMER,
        at_least(1),
    ),
    ConfigKey(
        "heartbeat.interval.ms",
        _T.INT,
        3_000,
        "How often a member tells that it lives (group.protocol=classic).",
        _CONSUMER,
        at_least(1),
    ),
    ConfigKey(
        "max.poll.interval.ms",
        _T.INT,
        300_000,
        "A member that does not poll for this long leaves its group; also how long a rebalance waits for it.",
        _READERS,
        at_least(1),
    ),
    ConfigKey(
        "enable.auto.commit",
        _T.BOOLEAN,
        True,
        "With a group, commit what earlier polls gave, in the background.",
        _CONSUMER,
    ),
    ConfigKey(
        "auto.commit.interval.ms",
        _T.INT,
        5_000,
        "How often enable.auto.commit commits.",
        _CONSUMER,
        at_least(0),
    ),
)
