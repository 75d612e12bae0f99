"""The admin APIs in every version, through the wire's bytes: what is created and altered, and what
is said about what is not."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import call, versions
from tests.support.group_rig import GroupRig

NO_ID = UUID(int=0)
TOPIC, BROKER, LOGGER = 2, 4, 8


def new_topic(name: str, partitions: int = 1, replication_factor: int = 1, **more: object) -> Message:
    fields = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "assignments": [],
        "configs": [],
    }
    return Message(**(fields | more))


def create(rig: GroupRig, *topics: Message, version: int = 7, validate_only: bool = False) -> list[Message]:
    return call(
        rig, ApiKey.CREATE_TOPICS, version, topics=list(topics), timeout_ms=1000, validate_only=validate_only
    ).topics


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_topics_are_created_one_by_one(version: int) -> None:
    rig = GroupRig()
    config = Message(name="retention.ms", value="5")
    created, failed = create(rig, new_topic("new", 3, configs=[config]), new_topic("orders"), version=version)
    assert (created.error_code, failed.error_code) == (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert failed.error_message == "Topic 'orders' already exists."
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        told = {row.name: (row.value, row.config_source) for row in created.configs}
        assert told["retention.ms"] == ("5", 1)
        assert told["retention.bytes"] == ("-1", 5)
    if version >= 7:
        assert created.topic_id == rig.controller.image.topics["new"].topic_id


def test_a_name_that_comes_twice_is_refused_and_others_are_created() -> None:
    rig = GroupRig()
    rows = create(rig, new_topic("twice"), new_topic("once"), new_topic("twice"))
    assert {row.name: row.error_code for row in rows} == {
        "once": ErrorCode.NONE,
        "twice": ErrorCode.INVALID_REQUEST,
    }
    assert len(rows) == 2
    assert "twice" not in rig.controller.image.topics


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_defaults_can_be_asked_for(version: int) -> None:
    (row,) = create(GroupRig(), new_topic("new", -1, -1), version=version)
    assert row.error_code == ErrorCode.NONE


def test_validating_gives_no_id_and_creates_nothing() -> None:
    rig = GroupRig()
    (row,) = create(rig, new_topic("new", 5), validate_only=True)
    assert (row.error_code, row.num_partitions, row.topic_id) == (ErrorCode.NONE, 5, NO_ID)
    assert "new" not in rig.controller.image.topics


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (
            new_topic("n", -1, -1, assignments=[Message(partition_index=0, broker_ids=[0])] * 2),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (new_topic("n", configs=[Message(name="retention.ms", value="1")] * 2), ErrorCode.INVALID_REQUEST),
        (new_topic("n", configs=[Message(name="retention.ms", value=None)]), ErrorCode.INVALID_CONFIG),
        (new_topic("n", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic("__consumer_offsets"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_requests_that_contradict_themselves_are_refused(asked: Message, code: int) -> None:
    (row,) = create(GroupRig(), asked)
    assert row.error_code == code


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_TOPICS))
def test_topics_are_deleted_by_name(version: int) -> None:
    rig = GroupRig()
    names = ["orders", "missing"]
    topics = (
        {"topics": [Message(name=name, topic_id=NO_ID) for name in names]}
        if version >= 6
        else {"topic_names": names}
    )
    rows = call(rig, ApiKey.DELETE_TOPICS, version, timeout_ms=1000, **topics).responses
    assert [(row.name, row.error_code) for row in rows] == [
        ("orders", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert "orders" not in rig.controller.image.topics


def test_topics_are_deleted_by_id_and_named_in_the_answer() -> None:
    rig = GroupRig()
    topic_id = rig.controller.image.topics["orders"].topic_id
    asked = [
        (None, topic_id),
        (None, UUID(int=9)),
        ("payments", topic_id),
        (None, NO_ID),
        ("twice", NO_ID),
        ("twice", NO_ID),
    ]
    topics = [Message(name=name, topic_id=one) for name, one in asked]
    rows = call(rig, ApiKey.DELETE_TOPICS, 6, topics=topics, timeout_ms=1000).responses
    assert (rows[0].name, rows[0].error_code) == ("orders", ErrorCode.NONE)
    assert [row.error_code for row in rows[1:]] == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        *[ErrorCode.INVALID_REQUEST] * 3,
    ]


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_PARTITIONS))
def test_topics_grow(version: int) -> None:
    rig = GroupRig()
    topics = [
        Message(name="orders", count=6, assignments=[Message(broker_ids=[0])] * 2),
        Message(name="payments", count=1, assignments=None),
        Message(name="missing", count=6, assignments=None),
    ]
    rows = call(
        rig, ApiKey.CREATE_PARTITIONS, version, topics=topics, timeout_ms=1000, validate_only=False
    ).results
    assert [row.error_code for row in rows] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert len(rig.controller.image.topics["orders"].partitions) == 6


def resource(kind: int, name: str, keys: list[str] | None = None) -> Message:
    return Message(resource_type=kind, resource_name=name, configuration_keys=keys)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CONFIGS))
def test_every_config_of_the_table_is_described(version: int) -> None:
    rig = GroupRig()
    resources = [
        resource(TOPIC, "orders"),
        resource(BROKER, "0"),
        resource(TOPIC, "orders", ["retention.ms"]),
    ]
    topic, broker, one = call(
        rig,
        ApiKey.DESCRIBE_CONFIGS,
        version,
        resources=resources,
        include_synonyms=True,
        include_documentation=True,
    ).results
    for scope, described in (("topic", topic), ("broker", broker)):
        listed = [key.name for key in BROKER_CONFIGS.scope(scope) if not key.unlisted]
        assert [row.name for row in described.configs] == listed
    (row,) = one.configs
    assert (row.name, row.value, row.config_source, row.is_sensitive) == (
        "retention.ms",
        "604800000",
        5,
        False,
    )
    assert [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms] == [
        ("log.retention.hours", "168", 5)
    ]
    if version >= 3:
        assert row.config_type == 5
        assert row.documentation


def test_synonyms_and_documentation_come_only_if_asked_for() -> None:
    (result,) = call(
        GroupRig(),
        ApiKey.DESCRIBE_CONFIGS,
        4,
        resources=[resource(TOPIC, "orders")],
        include_synonyms=False,
        include_documentation=False,
    ).results
    assert not any(row.synonyms or row.documentation for row in result.configs)


def test_what_has_no_configs_is_refused() -> None:
    resources = [resource(LOGGER, "0"), resource(TOPIC, "missing"), resource(BROKER, "7")]
    rows = call(GroupRig(), ApiKey.DESCRIBE_CONFIGS, 4, resources=resources).results
    assert [row.error_code for row in rows] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]


@pytest.mark.parametrize("version", versions(ApiKey.INCREMENTAL_ALTER_CONFIGS))
def test_configs_are_altered_key_by_key(version: int) -> None:
    rig = GroupRig()

    def alter(
        kind: int, name: str, key: str, operation: int, value: str | None, validate_only: bool = False
    ) -> int:
        configs = [Message(name=key, config_operation=operation, value=value)]
        resources = [Message(resource_type=kind, resource_name=name, configs=configs)]
        (row,) = call(
            rig, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=resources, validate_only=validate_only
        ).responses
        return int(row.error_code)

    configs = rig.controller.image.topics["orders"].configs
    assert alter(TOPIC, "orders", "retention.ms", 0, "5", validate_only=True) == ErrorCode.NONE
    assert configs == {}
    assert alter(TOPIC, "orders", "retention.ms", 0, "5") == ErrorCode.NONE
    assert configs == {"retention.ms": "5"}
    assert alter(TOPIC, "orders", "retention.ms", 1, None) == ErrorCode.NONE
    assert configs == {}
    assert alter(TOPIC, "orders", "retention.ms", 9, "5") == ErrorCode.INVALID_REQUEST
    assert alter(LOGGER, "0", "x", 0, "5") == ErrorCode.INVALID_REQUEST
    assert alter(BROKER, "", "message.max.bytes", 0, "9") == ErrorCode.NONE
    assert rig.controller.topic_settings("orders")["max.message.bytes"] == 9


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_CONFIGS))
def test_configs_are_replaced_as_a_whole(version: int) -> None:
    rig = GroupRig()
    rig.controller.create_topic("new", configs={"retention.ms": "5"})

    def alter(*configs: Message) -> int:
        resources = [Message(resource_type=TOPIC, resource_name="new", configs=list(configs))]
        (row,) = call(rig, ApiKey.ALTER_CONFIGS, version, resources=resources, validate_only=False).responses
        return int(row.error_code)

    assert alter(Message(name="segment.bytes", value="2000000")) == ErrorCode.NONE
    assert rig.controller.image.topics["new"].configs == {"segment.bytes": "2000000"}
    assert alter(*[Message(name="segment.bytes", value="2000000")] * 2) == ErrorCode.INVALID_REQUEST
    assert alter() == ErrorCode.NONE
    assert rig.controller.image.topics["new"].configs == {}


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CLUSTER))
def test_the_cluster_is_described(version: int) -> None:
    rig = GroupRig()
    answer = call(rig, ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True)
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (
        ErrorCode.NONE,
        rig.controller.image.cluster_id,
        0,
    )
    assert [(broker.broker_id, broker.port) for broker in answer.brokers] == [(0, 9092)]
    rig.controller.broker_stopped(0)
    assert call(rig, ApiKey.DESCRIBE_CLUSTER, version).brokers == []


def test_brokers_that_are_down_are_told_if_asked_for_and_there_is_no_quorum_to_describe() -> None:
    rig = GroupRig()
    rig.controller.broker_stopped(0)
    answer = call(rig, ApiKey.DESCRIBE_CLUSTER, 2, include_fenced_brokers=True)
    assert [(broker.broker_id, broker.is_fenced) for broker in answer.brokers] == [(0, True)]
    assert (
        call(rig, ApiKey.DESCRIBE_CLUSTER, 2, endpoint_type=2).error_code
        == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    )
