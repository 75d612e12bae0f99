"""The stock Python clients, unmodified, as admins of an embedded cluster: topics, configs, records,
groups."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.testing import Cluster
from tests.support.stock_clients import (
    FIRST_TEN,
    PARTITIONS,
    PATIENCE_S,
    confluent_read,
    create,
    fill,
    kafka_python_read,
    until,
)

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")
kafka_admin = pytest.importorskip("kafka.admin")
aiokafka = pytest.importorskip("aiokafka")
aiokafka_admin = pytest.importorskip("aiokafka.admin")

_numbers = itertools.count()

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Any:
    return confluent_admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def name() -> str:
    """A name for a topic or group that nobody has used."""
    return f"stock-admin-{next(_numbers)}"


@pytest.fixture
def topic(cluster: Cluster, admin: Any, name: str) -> str:
    """A topic of four partitions with ten records in each."""
    create(admin, name)
    fill(cluster.bootstrap_servers, name)
    return name


def code_of(call: Callable[[], Any]) -> int:
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        call()
    return int(caught.value.args[0].code())


# --- Admin: topics


def test_confluent_creates_describes_grows_and_deletes_topics(admin: Any, name: str) -> None:
    create(admin, name, config={"retention.ms": "1000000"})
    described = admin.describe_topics(confluent_kafka.TopicCollection([name]))[name].result(PATIENCE_S)
    assert [len(partition.replicas) for partition in described.partitions] == [1] * PARTITIONS
    admin.create_partitions([confluent_admin.NewPartitions(name, PARTITIONS + 2)])[name].result(PATIENCE_S)
    assert len(admin.list_topics(name, timeout=PATIENCE_S).topics[name].partitions) == PARTITIONS + 2
    admin.delete_topics([name])[name].result(PATIENCE_S)
    assert name not in admin.list_topics(timeout=PATIENCE_S).topics


def test_confluent_is_told_kafkas_errors(admin: Any, topic: str, name: str) -> None:
    assert code_of(lambda: create(admin, topic)) == ErrorCode.TOPIC_ALREADY_EXISTS
    other = name + "-other"
    assert code_of(lambda: create(admin, other, replication_factor=4)) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert code_of(lambda: create(admin, "no/good")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code_of(lambda: create(admin, other, config={"retention.mss": "1"})) == ErrorCode.INVALID_CONFIG
    assert (
        code_of(lambda: create(admin, other, config={"cleanup.policy": "squeeze"}))
        == ErrorCode.INVALID_CONFIG
    )
    shrunk = [confluent_admin.NewPartitions(topic, 2)]
    assert (
        code_of(lambda: admin.create_partitions(shrunk)[topic].result(PATIENCE_S))
        == ErrorCode.INVALID_PARTITIONS
    )
    assert (
        code_of(lambda: admin.delete_topics([other])[other].result(PATIENCE_S))
        == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_confluent_only_validates_if_asked_to(admin: Any, name: str) -> None:
    create(admin, name, validate_only=True)
    assert name not in admin.list_topics(timeout=PATIENCE_S).topics


def test_confluent_may_place_partitions_itself(admin: Any, name: str) -> None:
    new = confluent_admin.NewTopic(name, num_partitions=2, replica_assignment=[[2], [0]])
    admin.create_topics([new])[name].result(PATIENCE_S)
    partitions = admin.list_topics(name, timeout=PATIENCE_S).topics[name].partitions
    assert [partitions[number].leader for number in range(2)] == [2, 0]


def test_kafka_python_creates_describes_grows_and_deletes_topics(cluster: Cluster, name: str) -> None:
    admin = kafka_admin.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        admin.create_topics([kafka_admin.NewTopic(name, -1, -1, topic_configs={"retention.ms": "5"})])
        admin.create_partitions({name: kafka_admin.NewPartitions(3)})
        assert len(admin.describe_topics([name])[0]["partitions"]) == 3
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([kafka_admin.NewTopic(name, 1, 1)])
        assert len(admin.describe_cluster()["brokers"]) == 3
        admin.delete_topics([name])
        assert name not in admin.list_topics()
    finally:
        admin.close()


def test_aiokafka_creates_grows_and_deletes_topics(cluster: Cluster, name: str) -> None:
    async def administer() -> None:
        admin = aiokafka_admin.AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await admin.start()
        try:
            await admin.create_topics([aiokafka_admin.NewTopic(name, 2, 1)])
            await admin.create_partitions({name: aiokafka_admin.NewPartitions(3)})
            described = await admin.describe_topics([name])
            assert len(described[0]["partitions"]) == 3
            await admin.delete_topics([name])
            assert name not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(administer())


def test_records_are_deleted_before_an_offset(admin: Any, topic: str) -> None:
    asked = [confluent_kafka.TopicPartition(topic, 0, 4), confluent_kafka.TopicPartition(topic, 1, -1)]
    futures = admin.delete_records(asked)
    assert sorted(future.result(PATIENCE_S).low_watermark for future in futures.values()) == [4, 10]
    beyond = confluent_kafka.TopicPartition(topic, 2, 11)
    assert (
        code_of(lambda: admin.delete_records([beyond])[beyond].result(PATIENCE_S))
        == ErrorCode.OFFSET_OUT_OF_RANGE
    )


# --- Admin: configs


def test_confluent_sets_and_deletes_configs_of_topics_and_brokers(admin: Any, topic: str) -> None:
    def value(kind: Any, resource: str, key: str) -> tuple[str, int]:
        asked = confluent_admin.ConfigResource(kind, resource)
        entry = next(iter(admin.describe_configs([asked]).values())).result(PATIENCE_S)[key]
        return entry.value, entry.source

    def alter(kind: Any, resource: str, key: str, operation: Any, to: str | None) -> None:
        entry = confluent_admin.ConfigEntry(key, to, incremental_operation=operation)
        asked = confluent_admin.ConfigResource(kind, resource, incremental_configs=[entry])
        next(iter(admin.incremental_alter_configs([asked]).values())).result(PATIENCE_S)

    of_topic, of_broker = (
        confluent_admin.ConfigResource.Type.TOPIC,
        confluent_admin.ConfigResource.Type.BROKER,
    )
    source, operation = confluent_admin.ConfigSource, confluent_admin.AlterConfigOpType
    assert value(of_topic, topic, "retention.ms") == ("604800000", source.DEFAULT_CONFIG.value)
    alter(of_topic, topic, "retention.ms", operation.SET, "7")
    assert value(of_topic, topic, "retention.ms") == ("7", source.DYNAMIC_TOPIC_CONFIG.value)
    alter(of_topic, topic, "retention.ms", operation.DELETE, None)
    assert value(of_topic, topic, "retention.ms") == ("604800000", source.DEFAULT_CONFIG.value)
    alter(of_broker, "1", "producer.id.expiration.ms", operation.SET, "5000")
    assert value(of_broker, "1", "producer.id.expiration.ms") == ("5000", source.DYNAMIC_BROKER_CONFIG.value)
    assert value(of_broker, "2", "producer.id.expiration.ms") == ("86400000", source.DEFAULT_CONFIG.value)
    assert code_of(lambda: alter(of_topic, topic, "unknown", operation.SET, "7")) == ErrorCode.INVALID_CONFIG
    assert (
        code_of(lambda: alter(of_broker, "1", "num.partitions", operation.SET, "7"))
        == ErrorCode.INVALID_REQUEST
    )


def test_a_topics_new_limit_holds_for_the_next_record(cluster: Cluster, admin: Any, topic: str) -> None:
    entry = confluent_admin.ConfigEntry(
        "max.message.bytes", "200", incremental_operation=confluent_admin.AlterConfigOpType.SET
    )
    resource = confluent_admin.ConfigResource(
        confluent_admin.ConfigResource.Type.TOPIC, topic, incremental_configs=[entry]
    )
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    errors: list[Any] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for size_bytes in (10, 500):
        producer.produce(
            topic, b"x" * size_bytes, on_delivery=lambda error, _: errors.append(error and error.code())
        )
        assert producer.flush(PATIENCE_S) == 0
    assert errors == [None, ErrorCode.MESSAGE_TOO_LARGE]


def test_kafka_python_sets_and_describes_configs(cluster: Cluster, topic: str) -> None:
    admin = kafka_admin.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        of_topic = kafka_admin.ConfigResourceType.TOPIC
        for configs in ({"retention.ms": "5000000"}, {"retention.bytes": "77"}):
            admin.alter_configs([kafka_admin.ConfigResource(of_topic, topic, configs)])
        described = admin.describe_configs(
            [kafka_admin.ConfigResource(of_topic, topic)], config_filter="all"
        )["topic"][topic]
        assert (described["retention.bytes"]["value"], described["retention.ms"]["value"]) == (
            "77",
            "5000000",
        )
    finally:
        admin.close()


def test_aiokafka_replaces_all_configs_at_once(cluster: Cluster, topic: str) -> None:
    async def replace() -> dict[str, str]:
        admin = aiokafka_admin.AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        await admin.start()
        try:
            of_topic = aiokafka_admin.config_resource.ConfigResourceType.TOPIC
            resource = aiokafka_admin.config_resource.ConfigResource
            for configs in ({"retention.ms": "5000000"}, {"retention.bytes": "77"}):
                await admin.alter_configs([resource(of_topic, topic, configs)])
            (response,) = await admin.describe_configs([resource(of_topic, topic)])
            return {row[0]: row[1] for row in response.resources[0][4]}
        finally:
            await admin.close()

    described = asyncio.run(replace())
    assert (described["retention.bytes"], described["retention.ms"]) == ("77", "604800000")


# --- Groups: looking at them


def test_confluent_lists_describes_and_deletes_groups(cluster: Cluster, admin: Any, topic: str) -> None:
    group = f"group-of-{topic}"
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.id": "reader"}
    )
    consumer.subscribe([topic])
    until(lambda: len(consumer.assignment()) == PARTITIONS, lambda: consumer.poll(0.1))
    listed = {one.group_id: one.state.name for one in admin.list_consumer_groups().result(PATIENCE_S).valid}
    assert listed[group] == "STABLE"
    described = admin.describe_consumer_groups([group])[group].result(PATIENCE_S)
    assert [
        (member.client_id, member.host, len(member.assignment.topic_partitions))
        for member in described.members
    ] == [("reader", "/127.0.0.1", PARTITIONS)]
    assert (
        code_of(lambda: admin.delete_consumer_groups([group])[group].result(PATIENCE_S))
        == ErrorCode.NON_EMPTY_GROUP
    )
    consumer.close()
    assert admin.describe_consumer_groups([group])[group].result(PATIENCE_S).state.name == "EMPTY"
    admin.delete_consumer_groups([group])[group].result(PATIENCE_S)
    assert group not in {one.group_id for one in admin.list_consumer_groups().result(PATIENCE_S).valid}


def test_confluent_alters_and_lists_a_groups_offsets(cluster: Cluster, admin: Any, topic: str) -> None:
    group = f"group-of-{topic}"
    wanted = [confluent_kafka.TopicPartition(topic, 0, 7), confluent_kafka.TopicPartition(topic, 3, 9)]
    altered = admin.alter_consumer_group_offsets(
        [confluent_kafka.ConsumerGroupTopicPartitions(group, wanted)]
    )
    altered[group].result(PATIENCE_S)
    listed = admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions(group)])[
        group
    ].result(PATIENCE_S)
    assert sorted((one.partition, one.offset) for one in listed.topic_partitions) == [(0, 7), (3, 9)]
    left = [
        (partition, offset) for partition, offset in FIRST_TEN if offset >= {0: 7, 3: 9}.get(partition, 0)
    ]
    assert confluent_read(cluster.bootstrap_servers, group, topic, len(left)) == left


def test_kafka_python_takes_back_single_offsets(cluster: Cluster, topic: str) -> None:
    group = f"group-of-{topic}"
    kafka_python_read(cluster.bootstrap_servers, group, topic, 40)
    admin = kafka_admin.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        admin.delete_group_offsets(group, [kafka.TopicPartition(topic, 0)])
        offsets = admin.list_group_offsets(group)[group]
        assert sorted(one.partition for one in offsets) == [1, 2, 3]
    finally:
        admin.close()
