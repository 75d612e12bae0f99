"""The config table: parsing, and errors that say everything that is wrong and the nearest right
name."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.config import ConfigKey, ConfigTable, ConfigType, at_least, one_of
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_defaults_are_kafkas() -> None:
    settings = CLIENT_CONFIGS.parse("producer", SERVERS)
    expected = {
        "acks": "all",
        "batch.size": 16_384,
        "linger.ms": 5,
        "buffer.memory": 33_554_432,
        "max.request.size": 1_048_576,
    }
    assert {key: settings[key] for key in expected} == expected
    assert settings["bootstrap.servers"] == ("localhost:9092",)
    assert settings["partitioner.class"] is None


def test_text_and_typed_values_parse_alike() -> None:
    typed = CLIENT_CONFIGS.parse("producer", {**SERVERS, "linger.ms": 7, "enable.idempotence": False})
    text = CLIENT_CONFIGS.parse("producer", {**SERVERS, "linger.ms": " 7 ", "enable.idempotence": "False"})
    assert dict(typed) == dict(text)


def test_lists_come_as_text_or_as_lists() -> None:
    assert CLIENT_CONFIGS.parse("admin", {"bootstrap.servers": "a:1, b:2"})["bootstrap.servers"] == (
        "a:1",
        "b:2",
    )
    assert CLIENT_CONFIGS.parse("admin", {"bootstrap.servers": ["a:1", "b:2"]})["bootstrap.servers"] == (
        "a:1",
        "b:2",
    )


def test_given_keys_are_known_apart_from_defaults() -> None:
    assert CLIENT_CONFIGS.parse("producer", {**SERVERS, "acks": "1"}).given == {"bootstrap.servers", "acks"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"linger_ms": 1}, "linger_ms: unknown; did you mean linger.ms?"),
        ({"batchsize": 1}, "did you mean batch.size?"),
        ({"batch.size": "big"}, "batch.size: expected a whole number (int), got 'big'"),
        ({"batch.size": True}, "batch.size: expected a whole number (int)"),
        ({"batch.size": 2**31}, "batch.size: expected a whole number (int)"),
        ({"linger.ms": -1}, "linger.ms: must be at least 0, got -1"),
        ({"compression.type": "brotli"}, "compression.type: must be one of none, gzip, snappy, lz4, zstd"),
        ({"enable.idempotence": "yes"}, "enable.idempotence: expected true or false (boolean)"),
        ({"fetch.min.bytes": 1}, "fetch.min.bytes: belongs to consumer and share consumer, not to producer"),
        ({"sasl.mechanism": "PLIAN"}, "sasl.mechanism: must be one of PLAIN, SCRAM-SHA-256"),
        ({"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class: not supported (TLS is Python's ssl"),
        ({"stats_cb": print}, "stats_cb: not supported (statistics of librdkafka's shape are not made"),
        ({"error_cb": print}, "error_cb: not supported (errors are raised by the calls that meet them"),
        (
            {"sasl.mechanisms": "PLAIN", "sasl.mechanism": "PLAIN"},
            "sasl.mechanism: sasl.mechanisms says the same and was given too",
        ),
        ({"acks": None}, "acks: a value is needed"),
        ({"qqqq": 1}, "qqqq: unknown; `docs/reference/configuration.md` lists them all"),
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(given: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        CLIENT_CONFIGS.parse("producer", {**SERVERS, **given})
    assert said in str(raised.value)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        CLIENT_CONFIGS.parse("producer", {"linger.ms": "x", "ack": 1})
    assert all(
        key in str(raised.value) for key in ("bootstrap.servers: required", "linger.ms", "did you mean acks?")
    )


def test_a_nullable_key_takes_none_and_nothing() -> None:
    table = ConfigTable([ConfigKey("a", ConfigType.STRING, "x", "", ("s",), nullable=True)])
    assert table.parse("s", {"a": None})["a"] is None
    assert table.parse("s", {"a": ""})["a"] is None


def test_validators_describe_what_they_allow() -> None:
    assert ConfigKey("a", ConfigType.INT, 1, "", ("s",), at_least(3)).allowed() == "at least 3"
    assert ConfigKey("a", ConfigType.STRING, "b", "", ("s",), one_of("b", "c")).allowed() == "b, c"
