"""Configs of share groups (KIP-932): a broker's, and those of single groups; Kafka's keys and
defaults (release 4.3)."""

from __future__ import annotations

import re

from fairlead_kafka.base.config import ConfigKey, ConfigType, Validator, at_least, between, one_of_any_case
from fairlead_kafka.base.config_kept import kept

_T = ConfigType
_GROUP = ("group",)
_DURATION = re.compile(
    r"by_duration:P(?!$)(\d{1,12}D)?(T(?=\d)(\d{1,12}H)?(\d{1,12}M)?(\d{1,12}(\.\d{1,9})?S)?)?",
    re.IGNORECASE,
)
"""A duration with numbers of at most twelve digits, so that its milliseconds are a number, too."""


def _offset_reset(value: object) -> str | None:
    """earliest, latest, or by_duration: and a duration (ISO 8601, PnDTnHnMn.nS)

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    text = str(value)
    if text.lower() in ("earliest", "latest") or _DURATION.fullmatch(text):
        return None
    return "must be earliest, latest, or by_duration: and a duration, such as by_duration:PT1H"


SHARE_BROKER_KEYS = (
    kept(
        "group.share.assignment.interval.ms",
        _T.INT,
        1_000,
        "How long a share group keeps an assignment at least.",
        at_least(0),
        dynamic="cluster-wide",
    ),
    kept("group.share.assignors", _T.LIST, ("simple",), "Assignors of share groups."),
    kept(
        "group.share.delivery.count.limit",
        _T.INT,
        5,
        "How often a record is delivered at most.",
        between(2, 10),
    ),
    kept(
        "group.share.heartbeat.interval.ms",
        _T.INT,
        5_000,
        "How often members are told to send heartbeats.",
        at_least(1),
    ),
    kept(
        "group.share.initialize.retry.interval.ms",
        _T.INT,
        30_000,
        "How often the state of new partitions is tried to be set up.",
        at_least(1),
        unlisted=True,
    ),
    kept(
        "group.share.max.assignment.interval.ms",
        _T.INT,
        15_000,
        "Greatest share.assignment.interval.ms of a group.",
        at_least(0),
    ),
    kept(
        "group.share.max.delivery.count.limit",
        _T.INT,
        10,
        "Greatest share.delivery.count.limit of a group.",
        between(5, 25),
    ),
    kept(
        "group.share.max.heartbeat.interval.ms",
        _T.INT,
        15_000,
        "Greatest share.heartbeat.interval.ms of a group.",
        at_least(1),
    ),
    kept(
        "group.share.max.partition.max.record.locks",
        _T.INT,
        4_000,
        "Greatest share.partition.max.record.locks of a group.",
        between(2_000, 10_000),
    ),
    kept(
        "group.share.max.record.lock.duration.ms",
        _T.INT,
        60_000,
        "Greatest share.record.lock.duration.ms of a group.",
        between(30_000, 3_600_000),
    ),
    kept(
        "group.share.max.session.timeout.ms",
        _T.INT,
        60_000,
        "Greatest share.session.timeout.ms of a group.",
        at_least(1),
    ),
    kept(
        "group.share.max.share.sessions",
        _T.INT,
        2_000,
        "Share sessions of a broker at most.",
        at_least(1),
    ),
    kept("group.share.max.size", _T.INT, 200, "Most members of a share group.", between(1, 1_000)),
    kept(
        "group.share.min.assignment.interval.ms",
        _T.INT,
        0,
        "Least share.assignment.interval.ms of a group.",
        at_least(0),
    ),
    kept(
        "group.share.min.delivery.count.limit",
        _T.INT,
        2,
        "Least share.delivery.count.limit of a group.",
        between(2, 5),
    ),
    kept(
        "group.share.min.heartbeat.interval.ms",
        _T.INT,
        5_000,
        "Least share.heartbeat.interval.ms of a group.",
        at_least(1),
    ),
    kept(
        "group.share.min.partition.max.record.locks",
        _T.INT,
        100,
        "Least share.partition.max.record.locks of a group.",
        between(100, 2_000),
    ),
    kept(
        "group.share.min.record.lock.duration.ms",
        _T.INT,
        15_000,
        "Least share.record.lock.duration.ms of a group.",
        between(1_000, 30_000),
    ),
    kept(
        "group.share.min.session.timeout.ms",
        _T.INT,
        45_000,
        "Least share.session.timeout.ms of a group.",
        at_least(1),
    ),
    kept(
        "group.share.partition.max.record.locks",
        _T.INT,
        2_000,
        "Records of a partition that are locked at a time at most.",
        between(100, 10_000),
    ),
    kept(
        "group.share.record.lock.duration.ms",
        _T.INT,
        30_000,
        "How long a record is locked for who fetched it.",
        between(1_000, 3_600_000),
    ),
    kept(
        "group.share.session.timeout.ms",
        _T.INT,
        45_000,
        "How long a member may be silent before it is out.",
        at_least(1),
    ),
    kept(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        _T.INT,
        300_000,
        "How often a snapshot is made of a partition that nobody reads.",
        at_least(1),
        unlisted=True,
    ),
    kept(
        "share.coordinator.snapshot.update.records.per.snapshot",
        _T.INT,
        500,
        "Changes after which a snapshot is made.",
        between(0, 500),
    ),
    kept(
        "share.coordinator.state.topic.min.isr",
        _T.SHORT,
        2,
        "Replicas in sync that a change of its state needs.",
        at_least(1),
    ),
    kept(
        "share.coordinator.state.topic.num.partitions",
        _T.INT,
        50,
        "Partitions of its topic.",
        at_least(1),
    ),
    kept(
        "share.coordinator.state.topic.prune.interval.ms",
        _T.INT,
        300_000,
        "How often what is no longer needed of its topic is deleted.",
        at_least(1),
        unlisted=True,
    ),
    kept(
        "share.coordinator.state.topic.replication.factor",
        _T.SHORT,
        3,
        "Replicas of its topic.",
        at_least(1),
    ),
    kept(
        "share.coordinator.write.timeout.ms",
        _T.INT,
        5_000,
        "How long it may take to write a change.",
        at_least(1),
    ),
)
"""Configs of a broker about share groups."""


def _of_group(name: str, default: int, doc: str, check: Validator) -> ConfigKey:
    return ConfigKey(name, _T.INT, default, doc, _GROUP, check, dynamic=True)


SHARE_GROUP_KEYS = (
    _of_group(
        "share.session.timeout.ms",
        45_000,
        "How long a member of this share group may be silent before it is out.",
        at_least(1),
    ),
    _of_group(
        "share.heartbeat.interval.ms",
        5_000,
        "How often members of this share group are told to send heartbeats.",
        at_least(1),
    ),
    _of_group(
        "share.record.lock.duration.ms",
        30_000,
        "How long a record is locked for the member of this share group that acquired it.",
        at_least(1_000),
    ),
    _of_group(
        "share.delivery.count.limit",
        5,
        "How often a record is delivered to this share group at most.",
        at_least(2),
    ),
    _of_group(
        "share.partition.max.record.locks",
        2_000,
        "How many records of a partition may be in flight in this share group.",
        at_least(100),
    ),
    _of_group(
        "share.assignment.interval.ms",
        1_000,
        "How long this share group keeps a target at least, before another is computed.",
        at_least(0),
    ),
)
"""Keys of single share groups that the broker has as well."""

SHARE_GROUP_OWN_KEYS = (
    ConfigKey(
        "share.auto.offset.reset",
        _T.STRING,
        "latest",
        "Where this share group begins in a partition that is new to it.",
        _GROUP,
        _offset_reset,
        dynamic=True,
    ),
    ConfigKey(
        "share.isolation.level",
        _T.STRING,
        "read_uncommitted",
        "Whether this share group gets records of transactions before, and unless, they are committed.",
        _GROUP,
        one_of_any_case("read_committed", "read_uncommitted"),
        dynamic=True,
    ),
    ConfigKey(
        "share.renew.acknowledge.enable",
        _T.BOOLEAN,
        True,
        "Whether members of this share group may renew the locks of records (KIP-1222).",
        _GROUP,
        dynamic=True,
    ),
)
"""Keys of single share groups that no broker has."""
