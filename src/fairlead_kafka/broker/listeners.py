"""Listeners of a broker: address, security protocol, and advertised address. `listeners` and its
relatives are read as Kafka reads them.

All brokers of a cluster share one config, so a port that is given is the first broker's and the
others' follow it: of `EXTERNAL://0.0.0.0:9092` broker 2 has 9094.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_security import PROTOCOLS
from fairlead_kafka.base.errors import ConfigError

DEFAULT_LISTENER = "PLAINTEXT"
"""The name of the only listener of a broker that was given none."""
PORT_MAX = 65_535
OWN_PREFIX = "listener.name."
"""Before a listener's name, in small letters, and the key that it has a value of its own for."""
_ANY_HOST = ("", "0.0.0.0", "::")


class Listener(NamedTuple):
    """One listener of one broker. `port` 0: any free one. `advertised_port` 0: the port that it
    listens on."""

    number: int
    """Number by which the machine and its host know the listener."""
    name: str
    protocol: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int

    @property
    def secured(self) -> bool:
        """True if connections to this listener use TLS."""
        return self.protocol.endswith("SSL")

    @property
    def logs_in(self) -> bool:
        """True if clients of this listener have to log in."""
        return self.protocol.startswith("SASL")


def listeners_of(
    settings: Settings, node_id: int = 0, host: str = "127.0.0.1", port: int = 0
) -> tuple[Listener, ...]:
    """The listeners of a broker, the first one first; without the config `listeners` one in
    plaintext at `host`:`port`.

    ConfigError, which names the key, for invalid configs.
    """
    protocols = _protocols(settings["listener.security.protocol.map"])
    advertised = {
        name: (where, number)
        for name, where, number in _parsed("advertised.listeners", settings["advertised.listeners"] or ())
    }
    if settings["listeners"] is None:
        named = [(DEFAULT_LISTENER, host, port)]
    else:
        named = [
            (name, where, number and number + node_id)
            for name, where, number in _parsed("listeners", settings["listeners"])
        ]
    stray = [
        key
        for key in settings
        if key.startswith(OWN_PREFIX) and key.split(".")[2].upper() not in {each[0] for each in named}
    ]
    if stray:
        raise ConfigError(
            f"{stray[0]}: there is no such listener; `listeners` has {', '.join(each[0] for each in named)}"
        )
    if not named:
        raise ConfigError("listeners: at least one is needed, such as PLAINTEXT://127.0.0.1:9092")
    unknown = sorted(set(advertised) - {name for name, _host, _port in named})
    if unknown:
        raise ConfigError(
            f"advertised.listeners: there is no listener {unknown[0]}; `listeners` has "
            f"{', '.join(each[0] for each in named)}"
        )
    found: list[Listener] = []
    for number, (name, where, own_port) in enumerate(named, start=1):
        if name not in protocols:
            raise ConfigError(
                f"listener.security.protocol.map: gives {name} no protocol; add {name}:SASL_SSL, or another "
                f"of {PROTOCOLS}"
            )
        advertised_host, advertised_port = advertised.get(name, (where, 0))
        if advertised_host in _ANY_HOST:
            raise ConfigError(
                f"advertised.listeners: clients of {name} are told to connect to it, so it must be an "
                "address they can reach, "
                f"got {advertised_host!r}; add {name}://HOST:0"
            )
        if max(own_port, advertised_port and advertised_port + node_id) > PORT_MAX:
            raise ConfigError(f"listeners: {name}: broker {node_id} would listen above port {PORT_MAX}")
        found.append(
            Listener(
                number,
                name,
                protocols[name],
                where,
                own_port,
                advertised_host,
                advertised_port and advertised_port + node_id,
            )
        )
    return tuple(found)


def between_brokers(settings: Settings, listeners: Sequence[Listener]) -> Listener:
    """The listener by which brokers reach each other. ConfigError if the configs name one that does
    not exist."""
    name, protocol = settings["inter.broker.listener.name"], settings["security.inter.broker.protocol"]
    if name is not None:
        if "security.inter.broker.protocol" in settings.given:
            raise ConfigError(
                "inter.broker.listener.name and security.inter.broker.protocol say the same; leave one of "
                "them out"
            )
        found = [each for each in listeners if each.name == name]
        if not found:
            raise ConfigError(f"inter.broker.listener.name: there is no listener {name}")
        return found[0]
    found = [each for each in listeners if each.protocol == protocol]
    if not found and "security.inter.broker.protocol" in settings.given:
        raise ConfigError(f"security.inter.broker.protocol: no listener has {protocol}")
    return (found or listeners)[0]


def mechanism_between_brokers(settings: Settings, listener: Listener) -> str | None:
    """The SASL mechanism by which brokers log in at `listener`; None: they do not log in.
    ConfigError if the configs name none that is enabled."""
    if not listener.logs_in:
        return None
    named = settings["sasl.mechanism.inter.broker.protocol"]
    enabled = listener_settings(settings, listener.name)["sasl.enabled.mechanisms"]
    if not enabled:
        raise ConfigError(
            f"sasl.enabled.mechanisms: listener {listener.name} has log-ins and no mechanism; name PLAIN, or "
            "SCRAM-SHA-512"
        )
    if named is not None and named not in enabled:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol: {named} is not in sasl.enabled.mechanisms of listener "
            f"{listener.name}"
        )
    return named or enabled[0]


def listener_settings(settings: Settings, listener: str) -> Settings:
    """Settings as they are for one listener: its own values, else those for all."""
    prefix = f"{OWN_PREFIX}{listener.lower()}."
    own = {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
    return Settings({**settings.values_by_key, **own}, settings.given) if own else settings


def _protocols(entries: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries:
        name, colon, protocol = entry.partition(":")
        if not colon or protocol.upper() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with a protocol of "
                f"{', '.join(PROTOCOLS)}"
            )
        found[name.upper()] = protocol.upper()
    return found


def _parsed(key: str, entries: Sequence[str]) -> list[tuple[str, str, int]]:
    """Name, host and port of each entry. ConfigError if one is not NAME://HOST:PORT, or a name or
    port is used twice."""
    found: dict[str, tuple[str, str, int]] = {}
    ports: set[int] = set()
    for entry in entries:
        name, colon, where = entry.partition("://")
        host, port_colon, port = where.rpartition(":")
        name = name.upper()
        if not (
            name and colon and port_colon and port.isascii() and port.isdigit() and int(port) <= PORT_MAX
        ):
            raise ConfigError(f"{key}: {entry!r} is not NAME://HOST:PORT")
        if name in found:
            raise ConfigError(f"{key}: {name} is named twice")
        if key == "listeners" and int(port) and int(port) in ports:
            raise ConfigError(f"{key}: two listeners cannot have port {port}")
        ports.add(int(port))
        found[name] = (name, host.strip("[]"), int(port))
    return list(found.values())
