"""What brokers ask each other needs CLUSTER_ACTION, like Kafka's requests between brokers: of a
super user, or of whoever was given it."""

from __future__ import annotations

import logging

import pytest

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.virtual_cluster import VirtualCluster


def given(operation: AclOperation, kind: AclResourceType, name: str) -> AclBinding:
    return AclBinding(
        kind, name, AclPatternType.LITERAL, "User:ANONYMOUS", "*", operation, AclPermission.ALLOW
    )


CLUSTER_ACTION = given(AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME)
ALL_TOPICS = given(AclOperation.ALL, AclResourceType.TOPIC, "*")
ALL_TRANSACTIONS = given(AclOperation.ALL, AclResourceType.TRANSACTIONAL_ID, "*")


def three() -> VirtualCluster:
    """Brokers that nobody has made super users."""
    config = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
    }
    cluster = VirtualCluster(config=config)
    cluster.controller.create_acls([ALL_TOPICS, ALL_TRANSACTIONS])
    return cluster


def test_followers_follow_once_brokers_have_the_right(caplog: pytest.LogCaptureFixture) -> None:
    cluster = three()
    cluster.controller.create_topic("events", assignments={0: [0, 1]})
    with caplog.at_level(logging.WARNING, "fairlead_kafka.broker"):
        asked = cluster.send(0, ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"x"])}))
        cluster.host.advance(5_000)
    assert asked.answer is not None
    assert asked.answer.responses[0].partition_responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert any(
        "User:ANONYMOUS has no right to CLUSTER_ACTION on the cluster" in message
        for message in caplog.messages
    )
    cluster.controller.create_acls([CLUSTER_ACTION])
    cluster.host.advance(5_000)
    assert cluster.values(TopicPartition("events", 0)) == [b"x"]
    cluster.close()


def test_a_transaction_is_verified_once_brokers_have_the_right() -> None:
    cluster = three()
    cluster.controller.create_transactions_topic()
    home = cluster.coordinator("t")
    elsewhere = next(node_id for node_id in cluster.brokers if node_id != home)
    cluster.controller.create_topic("events", assignments={0: [elsewhere]})
    cluster.host.advance(1_000)
    fields = {
        "transactional_id": "t",
        "transaction_timeout_ms": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    producer = cluster.ask(home, ApiKey.INIT_PRODUCER_ID, 4, **fields)
    who = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    added = {f"v3_and_below_{name}": value for name, value in {"transactional_id": "t", **who}.items()}
    topics = [Message(name="events", partitions=[0])]
    cluster.ask(home, ApiKey.ADD_PARTITIONS_TO_TXN, 3, v3_and_below_topics=topics, **added)
    written = batch([b"x"], base_sequence=0, transactional=True, **who)
    request = produce_fields({("events", 0): written}) | {"transactional_id": "t"}

    def code() -> int:
        answer = cluster.ask(elsewhere, ApiKey.PRODUCE, 9, **request)
        return int(answer.responses[0].partition_responses[0].error_code)

    assert code() == ErrorCode.INVALID_TXN_STATE
    cluster.controller.create_acls([CLUSTER_ACTION])
    assert code() == ErrorCode.NONE
    cluster.close()
