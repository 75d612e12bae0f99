"""Configs that brokers report and that cannot be set: a broker's id, roles and directories. Kafka's
keys (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import ConfigKey, ConfigType

_T = ConfigType
_PLACE = "the cluster's launcher decides it"


def _reported(name: str, kind: ConfigType, doc: str, reason: str = _PLACE) -> ConfigKey:
    return ConfigKey(name, kind, None, doc, ("broker",), nullable=True, fixed=reason)


REPORTED_KEYS = (
    _reported("node.id", _T.INT, "The broker's number."),
    _reported("broker.id", _T.INT, "The broker's number, by its older name."),
    _reported(
        "broker.rack",
        _T.STRING,
        "The rack that the broker is in.",
        "brokers are told their racks one by one: Cluster(racks=...), or fairlead up --racks",
    ),
    _reported("log.dir", _T.LIST, "The folder of the broker's log."),
    _reported("log.dirs", _T.LIST, "The folder of the broker's log; a broker has one."),
)
