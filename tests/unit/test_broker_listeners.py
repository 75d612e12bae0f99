"""Listeners of a broker: what the configs say, and what clients of each are told."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.broker.listeners import between_brokers, listeners_of, mechanism_between_brokers
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import Driver

TWO = {
    "listeners": "INSIDE://127.0.0.1:9092,OUTSIDE://0.0.0.0:19092",
    "advertised.listeners": "OUTSIDE://kafka.example:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN",
}


def settings(**config: Any) -> Any:
    return BROKER_CONFIGS.parse("broker", {key.replace("__", "."): value for key, value in config.items()})


def test_without_the_config_there_is_one_listener_in_plaintext() -> None:
    (one,) = listeners_of(settings(), host="10.0.0.1", port=9092)
    assert (one.number, one.name, one.protocol, one.host, one.port) == (
        1,
        "PLAINTEXT",
        "PLAINTEXT",
        "10.0.0.1",
        9092,
    )


def test_each_broker_has_ports_of_its_own() -> None:
    inside, outside = listeners_of(BROKER_CONFIGS.parse("broker", TWO), node_id=2)
    assert (inside.port, outside.port) == (9094, 19094)
    assert (outside.host, outside.advertised_host, outside.advertised_port) == ("0.0.0.0", "kafka.example", 0)
    assert outside.secured
    assert outside.logs_in
    assert not inside.secured


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "an address they can reach"),
        ({"listeners": "PLAINTEXT://h:9092,PLAINTEXT://h:9093"}, "named twice"),
        ({"listeners": "PLAINTEXT://h:9092,SSL://h:9092"}, "two listeners cannot have port 9092"),
        ({"listeners": "h:9092"}, "is not NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://h:99999"}, "is not NAME://HOST:PORT"),
        ({"listeners": "OURS://h:1"}, "gives OURS no protocol"),
        ({"listeners": ","}, "at least one"),
        ({"listeners": "PLAINTEXT://h:1", "advertised.listeners": "SSL://h:1"}, "there is no listener SSL"),
        ({"listener.security.protocol.map": "OURS:TLS"}, "is not NAME:PROTOCOL"),
        (
            {"listener.name.ours.ssl.client.auth": "none"},
            "there is no such listener; `listeners` has PLAINTEXT",
        ),
    ],
)
def test_what_cannot_be_is_refused(config: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        listeners_of(BROKER_CONFIGS.parse("broker", config))


def test_the_last_broker_needs_a_port_too() -> None:
    with pytest.raises(ConfigError, match="above port 65535"):
        listeners_of(BROKER_CONFIGS.parse("broker", {"listeners": "PLAINTEXT://h:65535"}), node_id=1)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"inter.broker.listener.name": "SSL"}, "there is no listener SSL"),
        ({"security.inter.broker.protocol": "SSL"}, "no listener has SSL"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "say the same",
        ),
    ],
)
def test_brokers_need_a_listener_that_is_there(config: dict[str, str], says: str) -> None:
    parsed = BROKER_CONFIGS.parse("broker", config)
    with pytest.raises(ConfigError, match=says):
        between_brokers(parsed, listeners_of(parsed))


def test_brokers_need_a_mechanism_where_they_have_to_log_in() -> None:
    for config, says in (
        ({}, "no mechanism"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "SCRAM-SHA-512 is not in"),
    ):
        given = {
            "listeners": "SASL_PLAINTEXT://h:1",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            **config,
        }
        parsed = BROKER_CONFIGS.parse("broker", given)
        with pytest.raises(ConfigError, match=says):
            mechanism_between_brokers(parsed, between_brokers(parsed, listeners_of(parsed)))


def test_clients_are_told_the_addresses_of_their_own_listener() -> None:
    driver = Driver(TWO)
    node = driver.controller.image.brokers[0].node
    assert (node.host, node.port) == ("127.0.0.1", 9092)
    told = (
        driver.connect(listener=1)
        .ask(ApiKey.METADATA, 12, topics=None, allow_auto_topic_creation=True)
        .brokers
    )
    assert [(one.host, one.port) for one in told] == [("127.0.0.1", 9092)]
    assert driver.controller.image.brokers[0].endpoint("OUTSIDE")[1:3] == ("kafka.example", 19092)


def test_values_of_one_listener_are_taken_and_those_of_none_are_not() -> None:
    parsed = BROKER_CONFIGS.parse("broker", {"listener.name.outside.ssl.client.auth": "required"})
    assert parsed["listener.name.outside.ssl.client.auth"] == "required"
    with pytest.raises(ConfigError, match=r"listener\.name\.outside\.ssl\.client\.auth: .*must be one of"):
        BROKER_CONFIGS.parse("broker", {"listener.name.outside.ssl.client.auth": "perhaps"})
    with pytest.raises(ConfigError, match="unknown"):
        BROKER_CONFIGS.parse("broker", {"listener.name.outside.num.partitions": "3"})
