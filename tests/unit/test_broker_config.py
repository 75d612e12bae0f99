"""Broker and topic configs: Kafka's defaults, what a topic inherits, and what is refused with a
reason."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS, TOPIC_COUNTERPARTS, config_text, topic_settings
from fairlead_kafka.base.errors import ConfigError

DAY_MS = 86_400_000


def test_defaults_are_kafkas() -> None:
    broker = BROKER_CONFIGS.parse("broker", {})
    expected = {
        "message.max.bytes": 1_048_588,
        "num.partitions": 1,
        "auto.create.topics.enable": True,
        "log.retention.hours": 168,
        "log.segment.bytes": 1_073_741_824,
        "group.min.session.timeout.ms": 6_000,
        "group.max.session.timeout.ms": 1_800_000,
        "offsets.topic.num.partitions": 50,
        "offsets.retention.minutes": 10_080,
        "producer.id.expiration.ms": 86_400_000,
        "socket.request.max.bytes": 104_857_600,
    }
    assert {key: broker[key] for key in expected} == expected


def test_a_group_does_not_wait_for_more_members_unless_told_to() -> None:
    assert BROKER_CONFIGS.parse("broker", {})["group.initial.rebalance.delay.ms"] == 0


def test_every_topic_key_has_a_broker_counterpart_of_its_type_and_default() -> None:
    broker = BROKER_CONFIGS.parse("broker", {})
    inherited = topic_settings(broker, {})
    for key in BROKER_CONFIGS.scope("topic"):
        for name, _ in TOPIC_COUNTERPARTS[key.name]:
            assert "broker" in BROKER_CONFIGS.keys[name].scopes
        assert inherited[key.name] == key.default


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 7 * DAY_MS),
        ({"log.retention.hours": 24}, DAY_MS),
        ({"log.retention.hours": 24, "log.retention.minutes": 2}, 120_000),
        ({"log.retention.hours": 24, "log.retention.minutes": 2, "log.retention.ms": 3}, 3),
        ({"log.retention.hours": -1}, -1),
        ({"log.retention.minutes": -1}, -1),
    ],
)
def test_retention_is_taken_from_the_finest_key_that_is_set(given: dict[str, int], retention_ms: int) -> None:
    assert topic_settings(BROKER_CONFIGS.parse("broker", given), {})["retention.ms"] == retention_ms


def test_a_topics_own_configs_come_before_its_brokers() -> None:
    broker = BROKER_CONFIGS.parse(
        "broker", {"log.message.timestamp.type": "LogAppendTime", "message.max.bytes": 5}
    )
    settings = topic_settings(broker, {"max.message.bytes": 7})
    assert settings["max.message.bytes"] == 7
    assert settings["message.timestamp.type"] == "LogAppendTime"
    assert settings.given == {"max.message.bytes"}


@pytest.mark.parametrize(
    ("scope", "given", "said"),
    [
        ("topic", {"cleanup.policy": "compact,squash"}, "cleanup.policy: must be compact, delete, or both"),
        ("topic", {"compression.type": "none"}, "must be one of producer, uncompressed, gzip"),
        ("topic", {"retention.mss": "1"}, "did you mean retention.ms?"),
        ("topic", {"log.retention.ms": "1"}, "belongs to broker"),
        ("broker", {"log.cleaner.threads": "1"}, "not supported (compaction works in bounded steps"),
        ("broker", {"transaction.two.phase.commit.enable": "true"}, "not supported (two-phase commit"),
        ("broker", {"retention.ms": "1"}, "belongs to topic"),
        ("broker", {"max.partitions": "-5"}, "max.partitions: must be at least 0"),
        ("broker", {"default.replication.factor": "0"}, "must be at least 1"),
        (
            "topic",
            {"leader.replication.throttled.replicas": "*"},
            "not supported (replication is not throttled",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_the_reason(scope: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BROKER_CONFIGS.parse(scope, given)
    assert said in str(caught.value)


def test_no_key_is_both_supported_and_unsupported() -> None:
    for known in BROKER_CONFIGS.unsupported:
        assert not [
            key
            for key in BROKER_CONFIGS.keys
            if key == known or (known.endswith(".") and key.startswith(known))
        ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, None), (True, "true"), (("a", "b"), "a,b"), (-1, "-1"), ("x", "x")]
)
def test_values_are_written_as_kafka_writes_them(value: object, text: str | None) -> None:
    assert config_text(value) == text


def test_every_default_survives_being_written_and_read() -> None:
    for key in BROKER_CONFIGS.keys.values():
        assert key.parse(config_text(key.default)) == key.default
