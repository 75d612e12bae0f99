"""Topics page by page, what has configs, subscriptions to clients' metrics, the quorum, log
directories and delegation tokens, through the wire's bytes."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import call, versions
from tests.support.controllers import make_controller
from tests.support.group_rig import GroupRig

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, _APPEND, _SUBTRACT = AlterOperation


def rig_with(**partitions: int) -> GroupRig:
    rig = GroupRig()
    for name, count in partitions.items():
        rig.controller.create_topic(name, count)
    return rig


def page(rig: GroupRig, *names: str, limit: int = 100, cursor: tuple[str, int] | None = None) -> Message:
    where = None if cursor is None else Message(topic_name=cursor[0], partition_index=cursor[1])
    topics = [Message(name=name) for name in names]
    return call(
        rig,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=topics,
        response_partition_limit=limit,
        cursor=where,
    )


def test_all_topics_are_read_page_by_page_each_partition_once() -> None:
    rig = rig_with(alpha=3, beta=1, gamma=4)
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(20):
        answer = page(rig, limit=2, cursor=cursor)
        told = [(topic.name, one.partition_index) for topic in answer.topics for one in topic.partitions]
        assert len(told) <= 2
        seen += told
        if answer.next_cursor is None:
            break
        cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
    images = rig.controller.image.topics
    assert seen == [
        (name, number) for name in sorted(images) for number in range(len(images[name].partitions))
    ]


def test_an_answer_is_no_longer_than_the_cluster_allows() -> None:
    rig = rig_with(alpha=3)
    rig.broker.settings = {**rig.broker.settings, "max.request.partition.size.limit": 1}
    answer = page(rig, "alpha", limit=2000)
    assert [one.partition_index for one in answer.topics[0].partitions] == [0]
    assert (answer.next_cursor.topic_name, answer.next_cursor.partition_index) == ("alpha", 1)


def test_a_page_tells_leader_replicas_and_who_is_in_sync() -> None:
    rig = rig_with(alpha=1)
    (topic,) = page(rig, "alpha").topics
    (one,) = topic.partitions
    image = rig.controller.image.topics["alpha"]
    assert (topic.topic_id, topic.is_internal) == (image.topic_id, False)
    assert (one.leader_id, one.replica_nodes, one.isr_nodes) == (0, [0], [0])
    assert (one.eligible_leader_replicas, one.offline_replicas) == ([], [])


@pytest.mark.parametrize("cursor", [("alpha", -1), ("beta", 0)])
def test_a_cursor_that_cannot_be_is_refused(cursor: tuple[str, int]) -> None:
    (topic,) = page(rig_with(alpha=3, beta=1), "alpha", cursor=cursor).topics
    assert topic.error_code == ErrorCode.INVALID_REQUEST


def listed(rig: GroupRig, *kinds: int, version: int = 1) -> list[tuple[int, str]] | int:
    answer = call(rig, ApiKey.LIST_CONFIG_RESOURCES, version, resource_types=list(kinds))
    rows = [(row.resource_type, row.resource_name) for row in answer.config_resources]
    return answer.error_code or rows


def subscribe(rig: GroupRig, name: str, **configs: str) -> None:
    changes = [ConfigAlteration(key.replace("_", "."), SET, value) for key, value in configs.items()]
    rig.controller.alter_client_metrics(name, changes)


def test_what_has_configs_is_listed_by_type() -> None:
    rig = rig_with(alpha=1)
    subscribe(rig, "all", metrics="*")
    assert listed(rig, version=0) == [(METRICS, "all")]
    assert listed(rig, METRICS, BROKER) == [(METRICS, "all"), (BROKER, "0")]
    assert (TOPIC, "alpha") in (listed(rig) or [])  # type: ignore[operator]
    assert listed(rig, GROUP) == []
    assert listed(rig, 3) == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", versions(ApiKey.INCREMENTAL_ALTER_CONFIGS))
def test_a_subscription_is_there_as_long_as_it_has_configs(version: int) -> None:
    rig = GroupRig()

    def alter(key: str, operation: int, value: str | None) -> int:
        change = Message(name=key, config_operation=operation, value=value)
        resources = [Message(resource_type=METRICS, resource_name="mine", configs=[change])]
        answer = call(
            rig, ApiKey.INCREMENTAL_ALTER_CONFIGS, version, resources=resources, validate_only=False
        )
        code: int = answer.responses[0].error_code
        return code

    assert alter("interval.ms", SET, "5000") == ErrorCode.NONE
    assert listed(rig, METRICS) == [(METRICS, "mine")]
    asked = [Message(resource_type=METRICS, resource_name="mine", configuration_keys=None)]
    (described,) = call(rig, ApiKey.DESCRIBE_CONFIGS, 4, resources=asked).results
    told = {row.name: (row.value, row.config_source) for row in described.configs}
    assert told == {"interval.ms": ("5000", 7), "match": ("", 5), "metrics": ("", 5)}
    assert alter("interval.ms", SET, "99") == ErrorCode.INVALID_REQUEST
    assert alter("interval.ms", DELETE, None) == ErrorCode.NONE
    assert listed(rig, METRICS) == []


def test_a_subscription_is_replaced_as_a_whole_by_the_older_request() -> None:
    rig = GroupRig()
    subscribe(rig, "mine", metrics="*", interval_ms="1000")
    row = Message(name="metrics", value="a.,b.")
    resources = [Message(resource_type=METRICS, resource_name="mine", configs=[row])]
    call(rig, ApiKey.ALTER_CONFIGS, 2, resources=resources, validate_only=False)
    assert rig.controller.image.client_metrics == {"mine": {"metrics": "a.,b."}}


@pytest.mark.parametrize("match", ["clients=a", "client_id", "client_id=[", "client_id=a=b", "client_id="])
def test_patterns_that_are_none_are_refused(match: str) -> None:
    with pytest.raises(BrokerError, match="Illegal client matching pattern"):
        make_controller().alter_client_metrics("mine", [ConfigAlteration("match", SET, match)])


def test_a_subscription_needs_a_name() -> None:
    with pytest.raises(BrokerError, match="Subscription name can't be empty"):
        make_controller().alter_client_metrics("", [ConfigAlteration("metrics", SET, "*")])


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_QUORUM))
def test_the_quorum_is_one_voter_with_all_records(version: int) -> None:
    rig = rig_with(alpha=1)
    before = rig.controller.image.log_end
    rig.controller.create_topic("beta", 1)
    logs = [
        Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=n) for n in (0, 1)]),
        Message(topic_name="alpha", partitions=[Message(partition_index=0)]),
    ]
    answer = call(rig, ApiKey.DESCRIBE_QUORUM, version, topics=logs)
    log, beyond = answer.topics[0].partitions
    assert (log.error_code, log.leader_id) == (ErrorCode.NONE, 0)
    assert log.high_watermark > before
    assert [(one.replica_id, one.log_end_offset) for one in log.current_voters] == [(0, log.high_watermark)]
    assert beyond.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.topics[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if version >= 2:
        assert [node.node_id for node in answer.nodes] == [0]


def test_the_end_of_the_metadata_log_survives_its_folding() -> None:
    controller = make_controller()
    for number in range(5):
        controller.create_topic(f"topic-{number}")
    snapshot, again = controller.journal.snapshot(), make_controller()
    again.journal.replay(snapshot)
    assert again.image.log_end == controller.image.log_end > 5


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_REPLICA_LOG_DIRS))
def test_replicas_are_where_they_are(version: int) -> None:
    rig = rig_with(alpha=1)
    folder = rig.broker.folder
    wanted = [("/nowhere", "alpha", 0), (folder, "alpha", 1), (folder, "alpha", 0)]

    def moved(path: str, name: str, number: int) -> int:
        dirs = [Message(path=path, topics=[Message(name=name, partitions=[number])])]
        answer = call(rig, ApiKey.ALTER_REPLICA_LOG_DIRS, version, dirs=dirs)
        code: int = answer.results[0].partitions[0].error_code
        return code

    assert [moved(*one) for one in wanted] == [
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]


TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN: {
        "renewers": [],
        "max_lifetime_ms": -1,
        "owner_principal_type": None,
        "owner_principal_name": None,
    },
    ApiKey.RENEW_DELEGATION_TOKEN: {"hmac": b"x", "renew_period_ms": -1},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {"hmac": b"x", "expiry_time_period_ms": -1},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {"owners": None},
}


@pytest.mark.parametrize(
    ("api_key", "version"), [(api_key, version) for api_key in TOKENS for version in versions(api_key)]
)
def test_there_are_no_tokens(api_key: ApiKey, version: int) -> None:
    answer = call(GroupRig(), api_key, version, **TOKENS[api_key])
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # nobody has logged in
