"""Configs of groups of the consumer protocol (KIP-848): a broker's, and those of single groups,
which take precedence; Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.config import (
    INT_MAX,
    ConfigKey,
    ConfigType,
    Validator,
    all_of,
    at_least,
    one_of_any_case,
    validates,
)
from fairlead_kafka.base.config_broker_share import SHARE_GROUP_KEYS

_T = ConfigType
_BROKER = ("broker",)
_GROUP = ("group",)


@validates(tuple)
def _assignors(items: tuple[str, ...]) -> str | None:
    """one or both of uniform, range

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    wrong = [item for item in items if item not in ("uniform", "range")]
    if wrong:
        return f"must be of uniform, range; {wrong[0]} is none of them (there is no Java to load it)"
    return None if items else "must name one at least"


def _ms(name: str, default: int, doc: str, low: int = 1) -> ConfigKey:
    return ConfigKey(name, _T.INT, default, doc, _BROKER, at_least(low))


def _of_group(name: str, default: int, doc: str, check: Validator) -> ConfigKey:
    return ConfigKey(name, _T.INT, default, doc, _GROUP, check, dynamic=True)


CONSUMER_GROUP_KEYS = (
    ConfigKey(
        "group.coordinator.rebalance.protocols",
        _T.LIST,
        ("classic", "consumer", "streams"),
        "Protocols that the coordinator speaks; without consumer, members of that protocol are refused. The "
        "others change nothing: classic is always spoken, share groups are by the feature share.version, and "
        "streams groups are not part of this release.",
        _BROKER,
        all_of("consumer", "classic", "share", "streams"),
    ),
    _ms("group.consumer.session.timeout.ms", 45_000, "How long a member may be silent before it is fenced."),
    _ms("group.consumer.min.session.timeout.ms", 45_000, "Least consumer.session.timeout.ms of a group."),
    _ms("group.consumer.max.session.timeout.ms", 60_000, "Greatest consumer.session.timeout.ms of a group."),
    _ms("group.consumer.heartbeat.interval.ms", 5_000, "How often members are told to send heartbeats."),
    _ms("group.consumer.min.heartbeat.interval.ms", 5_000, "Least consumer.heartbeat.interval.ms."),
    _ms(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "Greatest consumer.heartbeat.interval.ms.",
    ),
    ConfigKey(
        "group.consumer.assignment.interval.ms",
        _T.INT,
        0,
        "How long a group keeps a target at least, before another is computed (KIP-1263; Kafka: 1000; a test "
        "should not wait).",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
    _ms(
        "group.consumer.min.assignment.interval.ms", 0, "Least consumer.assignment.interval.ms of a group.", 0
    ),
    _ms(
        "group.consumer.max.assignment.interval.ms",
        15_000,
        "Greatest consumer.assignment.interval.ms of a group.",
        0,
    ),
    ConfigKey("group.consumer.max.size", _T.INT, INT_MAX, "Most members of a group.", _BROKER, at_least(1)),
    ConfigKey(
        "group.consumer.assignors",
        _T.LIST,
        ("uniform", "range"),
        "Assignors of the coordinator that members may name; the first is taken where none does.",
        _BROKER,
        _assignors,
    ),
    ConfigKey(
        "group.consumer.migration.policy",
        _T.STRING,
        "bidirectional",
        "Whether a group changes between the classic protocol and the consumer protocol while it is in use: "
        "upgrade, when a member of the consumer protocol joins; downgrade, when the last one leaves.",
        _BROKER,
        one_of_any_case("disabled", "downgrade", "upgrade", "bidirectional"),
    ),
    ConfigKey(
        "group.consumer.regex.refresh.interval.ms",
        _T.INT,
        600_000,
        "How often expressions of subscriptions are resolved again, though no topic is new.",
        _BROKER,
        at_least(10_000),
        unlisted=True,
    ),
)
"""Configs of a broker about groups of the consumer protocol."""

GROUP_KEYS = (
    _of_group(
        "consumer.session.timeout.ms",
        45_000,
        "How long a member of this group may be silent before it is fenced.",
        at_least(1),
    ),
    _of_group(
        "consumer.heartbeat.interval.ms",
        5_000,
        "How often members of this group are told to send heartbeats.",
        at_least(1),
    ),
    _of_group(
        "consumer.assignment.interval.ms",
        0,
        "How long this group keeps a target at least, before another is computed.",
        at_least(0),
    ),
)
"""Keys of single groups (resource type GROUP)."""

GROUP_COUNTERPARTS: Mapping[str, str] = {
    key.name: f"group.{key.name}" for key in (*GROUP_KEYS, *SHARE_GROUP_KEYS)
}
"""Group's key → the broker's, which stands where the group has none of its own."""


def group_bounds(key: str) -> tuple[str, str]:
    """Names of the two broker configs that are the least and the greatest allowed value of a
    group's config `key`."""
    protocol, _, rest = key.partition(".")
    return f"group.{protocol}.min.{rest}", f"group.{protocol}.max.{rest}"
