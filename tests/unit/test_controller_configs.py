"""Configs of a running cluster: where values come from, what may be set, and what is said about
what may not."""

from __future__ import annotations

from contextlib import suppress

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import ConfigType
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import (
    OFFSETS_TOPIC,
    AlterBrokerConfigs,
    AlterOperation,
    AlterTopicConfigs,
    ConfigAlteration,
    ConfigSource,
    Controller,
    Decision,
    DescribedConfig,
    changeable_configs,
    replacing,
)
from fairlead_kafka.broker.controller.log import encode_decision
from fairlead_kafka.broker.listeners import listeners_of
from tests.support.controllers import make_controller

SET, DELETE, APPEND, SUBTRACT = AlterOperation


def described(configs: list[DescribedConfig], key: str) -> DescribedConfig:
    return next(config for config in configs if config.key.name == key)


def refused(controller: Controller, alterations: list[ConfigAlteration], topic: str = "a") -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        controller.alter_topic_configs(topic, alterations)
    return caught.value


def test_a_topics_value_comes_from_the_nearest_place_and_all_places_are_told() -> None:
    controller = make_controller(config={"message.max.bytes": 100})
    controller.create_topic("a", configs={"max.message.bytes": "10"})
    controller.alter_broker_configs("", [ConfigAlteration("message.max.bytes", SET, "50")])
    controller.alter_broker_configs("1", [ConfigAlteration("message.max.bytes", SET, "20")])
    config = described(controller.describe_topic_configs("a", 1), "max.message.bytes")
    assert (config.value, config.source) == ("10", ConfigSource.TOPIC)
    assert [(one.key, one.value, one.source) for one in config.synonyms] == [
        ("max.message.bytes", "10", ConfigSource.TOPIC),
        ("message.max.bytes", "20", ConfigSource.DYNAMIC_BROKER),
        ("message.max.bytes", "50", ConfigSource.DYNAMIC_CLUSTER),
        ("message.max.bytes", "100", ConfigSource.STATIC_BROKER),
        ("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    ]
    controller.alter_topic_configs("a", [ConfigAlteration("max.message.bytes", DELETE)])
    assert [controller.topic_settings("a", node_id)["max.message.bytes"] for node_id in (0, 1)] == [50, 20]
    assert described(controller.describe_topic_configs("a", 1), "max.message.bytes").value == "20"


def test_an_inherited_value_is_told_in_the_topics_unit() -> None:
    controller = make_controller(config={"log.retention.hours": 1})
    controller.create_topic("a")
    config = described(controller.describe_topic_configs("a", 0), "retention.ms")
    assert (config.value, config.source) == ("3600000", ConfigSource.STATIC_BROKER)
    assert [(one.key, one.value) for one in config.synonyms] == [
        ("log.retention.hours", "1"),
        ("log.retention.hours", "168"),
    ]


def test_a_broker_tells_what_can_be_changed_while_it_runs() -> None:
    controller = make_controller()
    configs = controller.describe_broker_configs("1")
    assert described(configs, "num.partitions").read_only
    assert not described(configs, "message.max.bytes").read_only
    assert controller.describe_broker_configs("") == []
    controller.alter_broker_configs("", [ConfigAlteration("message.max.bytes", SET, "50")])
    assert [config.key.name for config in controller.describe_broker_configs("")] == ["message.max.bytes"]
    assert controller.broker_settings(2)["message.max.bytes"] == 50


@pytest.mark.parametrize("name", ["7", "x", "-1", "²"])
def test_an_unknown_broker_has_no_configs(name: str) -> None:
    with pytest.raises(BrokerError) as caught:
        make_controller().describe_broker_configs(name)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_unknown_configs_of_a_new_topic_are_refused_with_the_nearest_name() -> None:
    with pytest.raises(BrokerError, match=r"did you mean retention\.ms\?") as caught:
        make_controller().create_topic("a", configs={"retention.mss": "1"})
    assert caught.value.code == ErrorCode.INVALID_CONFIG


def test_a_config_without_a_value_is_refused() -> None:
    with pytest.raises(BrokerError, match=r"a value is needed for retention\.ms") as caught:
        make_controller().create_topic("a", configs={"retention.ms": None})
    assert caught.value.code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("alterations", "code"),
    [
        ([ConfigAlteration("retention.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        ([ConfigAlteration("nonsense", SET, "x")], ErrorCode.INVALID_CONFIG),
        ([ConfigAlteration("nonsense", DELETE)], ErrorCode.INVALID_CONFIG),
        ([ConfigAlteration("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([ConfigAlteration("cleanup.policy", APPEND, "squash")], ErrorCode.INVALID_CONFIG),
        ([ConfigAlteration("retention.ms", SET)], ErrorCode.INVALID_REQUEST),
        (
            [ConfigAlteration("retention.ms", SET, "1"), ConfigAlteration("retention.ms", DELETE)],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_impossible_alterations_change_nothing(alterations: list[ConfigAlteration], code: int) -> None:
    controller = make_controller()
    controller.create_topic("a", configs={"segment.bytes": "2000000"})
    assert refused(controller, [ConfigAlteration("flush.messages", SET, "1"), *alterations]).code == code
    assert controller.image.topics["a"].configs == {"segment.bytes": "2000000"}


def test_lists_grow_and_shrink_item_by_item() -> None:
    controller = make_controller()
    controller.create_topic("a")
    controller.alter_topic_configs("a", [ConfigAlteration("cleanup.policy", APPEND, "delete")])
    assert controller.image.topics["a"].configs == {"cleanup.policy": "delete"}
    controller.alter_topic_configs("a", [ConfigAlteration("cleanup.policy", SUBTRACT, "delete")])
    assert controller.topic_settings("a")["cleanup.policy"] == ()


def test_validate_only_checks_and_changes_nothing() -> None:
    controller = make_controller()
    controller.create_topic("a")
    controller.alter_topic_configs("a", [ConfigAlteration("retention.ms", SET, "1")], validate_only=True)
    assert controller.image.topics["a"].configs == {}


def test_broker_configs_that_are_not_dynamic_are_refused() -> None:
    controller = make_controller()
    with pytest.raises(BrokerError, match=r"update these configs dynamically: \[num\.partitions\]") as caught:
        controller.alter_broker_configs("", [ConfigAlteration("num.partitions", SET, "3")])
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_brokers_value_is_followed_by_what_would_count_without_it() -> None:
    controller = make_controller(config={"log.retention.hours": 1})
    controller.alter_broker_configs("1", [ConfigAlteration("log.retention.ms", SET, "50")])
    config = described(controller.describe_broker_configs("1"), "log.retention.ms")
    assert [(one.key, one.value) for one in config.synonyms if one.value is not None] == [
        ("log.retention.ms", "50"),
        ("log.retention.hours", "1"),
        ("log.retention.hours", "168"),
    ]


def test_what_is_one_brokers_cannot_be_set_for_all() -> None:
    controller = make_controller()
    change = [ConfigAlteration("ssl.trustmanager.algorithm", SET, "x")]
    with pytest.raises(BrokerError, match=r"at default cluster level, broker id must be specified") as caught:
        controller.alter_broker_configs("", change)
    assert caught.value.code == ErrorCode.INVALID_REQUEST
    controller.alter_broker_configs("1", change)
    assert controller.broker_settings(1)["ssl.trustmanager.algorithm"] == "x"


def test_configs_of_no_effect_are_kept_listed_and_checked() -> None:
    controller = make_controller()
    controller.create_topic("a", configs={"segment.ms": "5"})
    assert described(controller.describe_topic_configs("a", 0), "segment.ms").source is ConfigSource.TOPIC
    controller.alter_broker_configs("", [ConfigAlteration("log.roll.ms", SET, "7")])
    controller.alter_topic_configs("a", [ConfigAlteration("segment.ms", DELETE)])
    config = described(controller.describe_topic_configs("a", 0), "segment.ms")
    assert (config.value, config.source) == ("7", ConfigSource.DYNAMIC_CLUSTER)
    error = refused(controller, [ConfigAlteration("segment.ms", SET, "0")])
    assert str(error).endswith("Invalid value 0 for configuration segment.ms: must be at least 1")


def test_two_settings_of_a_topic_that_cannot_go_together_are_refused() -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    with pytest.raises(
        BrokerError, match=r"min\.compaction\.lag\.ms \(10\) > max\.compaction\.lag\.ms \(5\)"
    ):
        make_controller().create_topic("a", configs=dict(lags))


def test_who_a_broker_is_and_where_it_listens_is_told() -> None:
    told = {config.key.name: config for config in make_controller().describe_broker_configs("1")}
    assert (told["node.id"].value, told["node.id"].source) == ("1", ConfigSource.STATIC_BROKER)
    assert told["node.id"].read_only
    assert (told["listeners"].value or "").startswith("PLAINTEXT://")


def test_internal_configs_are_listed_where_they_are_set() -> None:
    controller = make_controller()
    throttle = "leader.replication.throttled.rate"
    assert throttle not in {config.key.name for config in controller.describe_broker_configs("1")}
    controller.alter_broker_configs("1", [ConfigAlteration(throttle, SET, "1000")])
    assert described(controller.describe_broker_configs("1"), throttle).value == "1000"
    controller.create_topic("a", configs={"internal.segment.bytes": "9"})
    controller.create_topic("b")
    listed = [
        {config.key.name for config in controller.describe_topic_configs(name, 0)} for name in ("a", "b")
    ]
    assert ["internal.segment.bytes" in names for names in listed] == [True, False]


def test_replacing_all_configs_drops_those_not_named() -> None:
    controller = make_controller()
    topic = controller.create_topic("a", configs={"retention.ms": "1", "segment.bytes": "2000000"})
    controller.alter_topic_configs("a", replacing(topic.configs, {"retention.ms": "2"}))
    assert topic.configs == {"retention.ms": "2"}


def test_committed_offsets_cannot_be_made_to_fall_to_retention() -> None:
    controller = make_controller()
    topic = controller.create_offsets_topic()
    before = dict(topic.configs)
    for key, value in (("cleanup.policy", "delete"), ("retention.ms", "1"), ("retention.bytes", "1")):
        assert (
            refused(controller, [ConfigAlteration(key, SET, value)], OFFSETS_TOPIC).code
            == ErrorCode.INVALID_CONFIG
        )
    controller.alter_topic_configs(
        OFFSETS_TOPIC, replacing(changeable_configs(topic), {"segment.bytes": "2000000"})
    )
    assert topic.configs == before | {"segment.bytes": "2000000"}


LISTS = sorted(key.name for key in BROKER_CONFIGS.keys.values() if key.type is ConfigType.LIST)


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT], ids=["append", "subtract"])
@pytest.mark.parametrize("key", LISTS)
def test_a_list_of_any_scope_is_altered_or_refused(key: str, operation: AlterOperation) -> None:
    controller = make_controller()
    controller.create_topic("a")
    alterations = [ConfigAlteration(key, operation, "x")]
    decisions: list[Decision[None]] = [
        AlterTopicConfigs("a", alterations, True),
        *(AlterBrokerConfigs(name, alterations, True) for name in ("0", "")),
    ]
    for decision in decisions:
        with suppress(BrokerError):
            controller.decided(decision)


@pytest.mark.parametrize("name", ["", "1"])
@pytest.mark.parametrize(
    "key", ["listener.name.nosuch.connections.max.reauth.ms", "listener.name.plaintext.ssl.keystore.type"]
)
def test_what_is_one_listeners_alone_is_not_changed_while_a_broker_runs(name: str, key: str) -> None:
    controller = make_controller()
    value = "5" if key.endswith("ms") else "PEM"
    with pytest.raises(BrokerError, match=r"update these configs dynamically: \[listener\.name\.") as caught:
        controller.alter_broker_configs(name, [ConfigAlteration(key, SET, value)])
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_log_with_what_is_one_listeners_alone_can_still_be_opened() -> None:
    controller = make_controller()
    key = "listener.name.nosuch.connections.max.reauth.ms"
    configs = {key: "5", "message.max.bytes": "2000000"}
    controller.replay(encode_decision([{"type": "broker_configs", "name": "1", "configs": configs}]))
    settings = controller.broker_settings(1)
    assert key not in list(settings)
    assert settings["message.max.bytes"] == 2_000_000
    assert listeners_of(settings, 1)
