"""Broker and topic configs: Kafka's defaults, what a topic inherits, and what is refused with a
reason."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.config_broker import (
    BROKER_CONFIGS,
    KEYS,
    TOPIC_COUNTERPARTS,
    config_text,
    topic_settings,
)
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
        ("topic", {"cleanup.policy": "compact,squash"}, "cleanup.policy: must be compact, delete, both"),
        ("topic", {"compression.type": "none"}, "must be one of producer, uncompressed, gzip"),
        ("topic", {"retention.mss": "1"}, "did you mean retention.ms?"),
        ("topic", {"log.retention.ms": "1"}, "belongs to broker"),
        ("topic", {"compression.gzip.level": "0"}, "must be 1 to 9, or -1"),
        ("topic", {"remote.storage.enable": "true"}, "must be false: there is no tiered storage"),
        ("broker", {"log.cleaner.threads": "-1"}, "must be at least 0"),
        ("broker", {"node.id": "7"}, "node.id: not supported (the cluster's launcher decides it)"),
        ("broker", {"create.topic.policy.class.name": "a.B"}, "cannot be set: plug-in classes are Java's"),
        ("broker", {"delegation.token.secret.key": "hush"}, "cannot be set: there are no delegation tokens"),
        ("broker", {"cordoned.log.dirs": "*"}, "must be empty: a broker has one log directory"),
        ("broker", {"process.roles": "zookeeper"}, "must be of broker, controller; zookeeper is none"),
        ("broker", {"offsets.topic.replication.factor": "40000"}, "expected a whole number (short)"),
        ("broker", {"sasl.oauthbearer.assertion.algorithm": "x"}, "must be one of ES256, RS256"),
        ("broker", {"retention.ms": "1"}, "belongs to topic"),
        ("broker", {"max.partitions": "-5"}, "max.partitions: must be at least 0"),
        ("broker", {"default.replication.factor": "0"}, "must be at least 1"),
        (
            "topic",
            {"leader.replication.throttled.replicas": "0:1,x"},
            "must be * or PARTITION:BROKER each; 'x' is not",
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
        assert key.fixed or key.parse(config_text(key.default)) == key.default


def test_no_key_is_in_two_tables() -> None:
    assert len(BROKER_CONFIGS.keys) == len(KEYS)


def test_what_older_tools_and_plans_pass_on_is_taken() -> None:
    topic = {
        "segment.ms": "3600000",
        "segment.jitter.ms": "0",
        "segment.index.bytes": "1048576",
        "index.interval.bytes": "4096",
        "preallocate": "true",
        "file.delete.delay.ms": "1000",
        "leader.replication.throttled.replicas": "*",
        "follower.replication.throttled.replicas": "0:1,1:2",
        "internal.segment.bytes": "5",
        "local.retention.ms": "1000",
    }
    settings = topic_settings(BROKER_CONFIGS.parse("broker", {}), BROKER_CONFIGS.parse("topic", topic))
    assert settings["segment.ms"] == 3_600_000
    assert settings["follower.replication.throttled.replicas"] == ("0:1", "1:2")
    broker = {"process.roles": "broker", "num.io.threads": "3", "group.consumer.migration.policy": "upgrade"}
    assert BROKER_CONFIGS.parse("broker", broker)["num.io.threads"] == 3


def test_no_cleanup_at_all_is_a_policy() -> None:
    assert BROKER_CONFIGS.parse("topic", {"cleanup.policy": ""})["cleanup.policy"] == ()


@pytest.mark.parametrize("digits", [12, 13, 320])
def test_a_share_group_begins_no_longer_ago_than_a_number_of_milliseconds_says(digits: int) -> None:
    given = {"share.auto.offset.reset": f"by_duration:P{'9' * digits}D"}
    if digits <= 12:
        assert BROKER_CONFIGS.parse("group", given)
        return
    with pytest.raises(ConfigError, match="must be earliest, latest, or by_duration"):
        BROKER_CONFIGS.parse("group", given)
