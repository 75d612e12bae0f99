"""Checks of group configs that contradict each other."""

from __future__ import annotations

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.consumer.groups.assignors import assignors_named

CONSUMER_PROTOCOL = "consumer"
_REFUSED = {
    "classic": {"group.remote.assignor": "members share among themselves: set partition.assignment.strategy"},
    CONSUMER_PROTOCOL: {
        "partition.assignment.strategy": "brokers assign: group.remote.assignor names which of theirs is to",
        "session.timeout.ms": "brokers have the group's: consumer.session.timeout.ms",
        "heartbeat.interval.ms": "brokers have the group's: consumer.heartbeat.interval.ms",
    },
}
"""Keys that a protocol does not take, as Kafka's `ConsumerConfig` refuses them, each with where to
say it instead."""


def check_group_settings(settings: Settings) -> None:
    """Raise ConfigError for configs of a group that contradict each other, or name an assignor that
    is not there."""
    if settings["group.id"] is None:
        if settings["enable.auto.commit"] and "enable.auto.commit" in settings.given:
            raise ConfigError(
                "enable.auto.commit: true needs a group.id, in whose name offsets are committed"
            )
        return
    protocol = settings["group.protocol"]
    wrong = [
        f"{key}: cannot be set with group.protocol={protocol}, where {instead}"
        for key, instead in _REFUSED[protocol].items()
        if key in settings.given and settings[key] is not None
    ]
    if wrong:
        raise ConfigError("consumer config: " + "; ".join(wrong))
    if protocol == CONSUMER_PROTOCOL:
        return
    assignors_named(settings["partition.assignment.strategy"])
    beat_ms, session_ms = settings["heartbeat.interval.ms"], settings["session.timeout.ms"]
    if beat_ms >= session_ms:
        raise ConfigError(
            f"heartbeat.interval.ms ({beat_ms}) must be less than session.timeout.ms ({session_ms}); a third "
            "of it is usual"
        )
