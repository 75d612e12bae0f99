"""Rights on our cluster, given by Kafka's own tool to users who log in; brokers in threads and in
processes hear of them alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka import Admin, BrokerError, Cluster, Consumer, NewTopic, Producer
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from tests.support.java_tools import JavaTools
from tests.support.waiting import PATIENCE_S, until


@pytest.fixture(params=[False, True], ids=["threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    config = {"authorizer.class.name": STANDARD_AUTHORIZER, "default.replication.factor": 2}
    with Cluster(2, security="sasl_plaintext", config=config, processes=request.param) as cluster:
        with Admin(cluster.client_settings("admin")) as admin:
            admin.create_topics([NewTopic("open", partitions=2), NewTopic("secret", partitions=2)])
        yield cluster


def produced(cluster: Cluster, topic: str) -> int:
    """What alice is told: 0, or an error's code. Acknowledged by both replicas, whose brokers ask
    each other as admin."""
    with Producer({**cluster.client_settings("alice"), "acks": "all"}) as producer:
        try:
            producer.send(topic, b"x").result(PATIENCE_S)
        except BrokerError as error:
            return error.code
    return 0


def test_rights_are_given_told_and_taken_by_kafkas_own_tool(cluster: Cluster, tools: JavaTools) -> None:
    common = (
        "--bootstrap-server",
        cluster.bootstrap_servers,
        "--command-config",
        str(cluster.settings_file("admin")),
    )
    assert (
        produced(cluster, "open") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )  # no producer id for who may write nowhere
    tools.run("acls", *common, "--add", "--allow-principal", "User:alice", "--producer", "--topic", "open")
    tools.run("acls", *common, "--add", "--allow-principal", "User:alice", "--consumer", "--topic", "op",
    "--group", "readers",
              "--resource-pattern-type", "prefixed")  # fmt: skip
    until(lambda: produced(cluster, "open") == 0)
    assert produced(cluster, "secret") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    listed = tools.run("acls", *common, "--list", "--principal", "User:alice")
    assert "resourceType=TOPIC, name=open, patternType=LITERAL" in listed
    assert "resourceType=GROUP, name=readers, patternType=PREFIXED" in listed
    settings = {**cluster.client_settings("alice"), "auto.offset.reset": "earliest", "group.id": "readers-1"}
    with Consumer(settings) as consumer:
        consumer.subscribe(["open"])
        assert len(consumer.poll(PATIENCE_S)) >= 1
    with Admin(cluster.client_settings("alice")) as admin:
        assert sorted(admin.list_topics()) == ["open"]
    tools.run(
        "acls",
        *common,
        "--remove",
        "--allow-principal",
        "User:alice",
        "--producer",
        "--topic",
        "open",
        "--force",
    )
    until(lambda: produced(cluster, "open") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
