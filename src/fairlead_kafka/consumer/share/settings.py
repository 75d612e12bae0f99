"""Settings of share consumers: the configs of consumers that they refuse, with reasons."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.config_share import SHARE_CONSUMER
from fairlead_kafka.base.errors import ConfigError

_OF_THE_GROUP = "it is the group's: set its config {} by Admin.alter_configs"
_NO_ASSIGNMENT = "brokers assign partitions, and several members may read one"
_BYTES = "its keys and values are bytes; deserialize after polling, and release or reject what does not parse"
REFUSED: dict[str, str] = {
    "auto.offset.reset": _OF_THE_GROUP.format("share.auto.offset.reset"),
    "isolation.level": _OF_THE_GROUP.format("share.isolation.level"),
    "heartbeat.interval.ms": _OF_THE_GROUP.format("share.heartbeat.interval.ms"),
    "session.timeout.ms": _OF_THE_GROUP.format("share.session.timeout.ms"),
    "enable.auto.commit": "there are no offsets to commit: see share.acknowledgement.mode",
    "auto.commit.interval.ms": "there are no offsets to commit: see share.acknowledgement.mode",
    "group.instance.id": "share groups have no static members",
    "group.protocol": "a share group has its own",
    "group.remote.assignor": _NO_ASSIGNMENT,
    "partition.assignment.strategy": _NO_ASSIGNMENT,
    "key.deserializer": _BYTES,
    "value.deserializer": _BYTES,
    "interceptor.classes": "an interceptor might leave out records that have to be acknowledged",
}
"""Keys of consumers that Kafka's `ShareConsumerConfig` refuses, and some that mean nothing here."""


def share_settings(config: Mapping[str, object]) -> Settings:
    """Parse the configs of a share consumer. ConfigError names all that is wrong with them."""
    names = {name: CLIENT_CONFIGS.aliases.get(name, name) for name in config}
    wrong = [
        f"{name}: cannot be set for a share consumer: {REFUSED[own]}"
        for name, own in names.items()
        if own in REFUSED
    ]
    if "group.id" not in names.values() or config.get("group.id") in (None, ""):
        wrong.append("group.id: required, and not given: the share group to join")
    prefix = f"{SHARE_CONSUMER} config: "
    try:
        settings = CLIENT_CONFIGS.parse(
            SHARE_CONSUMER, {name: value for name, value in config.items() if names[name] not in REFUSED}
        )
    except ConfigError as error:
        wrong.append(str(error).removeprefix(prefix))
    if wrong:
        raise ConfigError(prefix + "; ".join(wrong))
    return settings
