"""Makes a cluster's brokers and their transports, in a thread or in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.broker import Broker
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.listeners import (
    Listener,
    between_brokers,
    listener_settings,
    listeners_of,
    mechanism_between_brokers,
)
from fairlead_kafka.runtime import system_rng

if TYPE_CHECKING:
    from fairlead_kafka.security.server_transport import ServerTransport


def make_broker(node_id: int, view: ClusterView, folder: str, host: str, ports: Mapping[str, int]) -> Broker:
    """A broker that listens on `ports` (by listener) where its config has port 0."""
    broker = Broker(node_id, view, folder, system_rng(), host)
    broker.take_ports(ports)
    return broker


def broker_transport(broker: Broker, view: ClusterView) -> ServerTransport | None:
    """The transport for a broker's host; None if all listeners are PLAINTEXT.

    ConfigError for settings that cannot work.
    """
    listeners = {each.number: (each.name, each.protocol) for each in broker.listeners}
    if all(protocol == "PLAINTEXT" for _name, protocol in listeners.values()):
        return None
    from fairlead_kafka.security.server_transport import ServerTransport

    credentials = view.image.scram_credentials
    settings = view.broker_settings(broker.node_id)
    return ServerTransport(
        settings,
        listeners,
        lambda mechanism, user: credentials.get((mechanism, user)),
        settings_between_brokers(settings),
    )


def check_listeners(settings: Settings, brokers: int, host: str, port: int) -> tuple[Listener, ...]:
    """Check the listeners of all brokers; returns the first broker's.

    ConfigError if they cannot work.
    """
    for node_id in {0, brokers - 1}:
        listeners = listeners_of(settings, node_id, host, port and port + node_id)
        mechanism_between_brokers(settings, between_brokers(settings, listeners))
    return listeners_of(settings, 0, host, port)


def settings_between_brokers(settings: Settings) -> Settings | None:
    """Client settings with which brokers connect to each other; None: they connect in plaintext."""
    listener = between_brokers(settings, listeners_of(settings))
    if listener.protocol == "PLAINTEXT":
        return None
    mechanism = mechanism_between_brokers(settings, listener)
    config: dict[str, object] = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": listener.protocol}
    if mechanism is not None:
        config["sasl.mechanism"] = mechanism
        own = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
        config["sasl.jaas.config"] = (
            settings[own]
            if own in settings
            else listener_settings(settings, listener.name)["sasl.jaas.config"]
        )
    known = {key.name for key in CLIENT_CONFIGS.scope("admin")}
    for key in known:
        if key.startswith("ssl.") and key in settings:
            config[key] = listener_settings(settings, listener.name)[key]
    return CLIENT_CONFIGS.parse("admin", config)
