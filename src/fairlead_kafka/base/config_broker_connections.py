"""Configs of a broker about its connections and the sizes of requests and answers: Kafka's keys."""

from __future__ import annotations

import ipaddress

from fairlead_kafka.base.config import INT_MAX, ConfigKey, ConfigType, at_least, validates
from fairlead_kafka.base.units import MIB

_T = ConfigType
_BROKER = ("broker",)


@validates(tuple)
def _overrides(value: tuple[str, ...]) -> str | None:
    """ADDRESS:NUMBER, and commas between

    A validator: it says what is wrong with a value, or None. Its first line, above, is what the
    documentation says is allowed.
    """
    for entry in value:
        address, _colon, number = entry.rpartition(":")
        try:
            ipaddress.ip_address(address.strip("[]"))
        except ValueError:
            return f"{address!r} is no address (names are not looked up)"
        if not number.isdecimal():
            return f"{number!r} is no number of connections"
    return None


CONNECTION_KEYS = (
    ConfigKey(
        "socket.request.max.bytes",
        _T.INT,
        104_857_600,
        "Largest request; a longer one ends its connection.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "queued.max.request.bytes",
        _T.LONG,
        256 * MIB,
        "What requests may take together that were read and not answered, before no more are read; -1: no "
        "bound (as Kafka's default).",
        _BROKER,
        at_least(-1),
    ),
    ConfigKey(
        "fetch.max.bytes",
        _T.INT,
        55 * MIB,
        "Most that one Fetch is answered, whatever it asks for.",
        _BROKER,
        at_least(1024),
    ),
    ConfigKey(
        "max.request.partition.size.limit",
        _T.INT,
        2_000,
        "Most partitions of one answer to DescribeTopicPartitions.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "connections.max.idle.ms",
        _T.LONG,
        600_000,
        "Connections on which nothing happens for so long are closed, unless a request waits for its answer; "
        "-1: never.",
        _BROKER,
        at_least(-1),
    ),
    ConfigKey(
        "max.connections",
        _T.INT,
        INT_MAX,
        "Connections to one broker; with so many, new ones wait until others end, but for brokers' at a "
        "listener of their own.",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "max.connections.per.ip",
        _T.INT,
        INT_MAX,
        "Connections from one address to one broker; more are closed at once.",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "max.connections.per.ip.overrides",
        _T.LIST,
        (),
        "The same for single addresses: `127.0.0.1:200,::1:100`.",
        _BROKER,
        _overrides,
        dynamic=True,
        kafka_type=_T.STRING,
    ),
)
