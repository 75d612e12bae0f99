"""Faults by script, all brokers in one thread: links that are cut, disks that are full. The cluster
is the pytest plugin's."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.waiting import until
from tests.support.wire_client import Wire, read

TWO_REPLICAS = {"partitions": 1, "replication_factor": 2, "configs": {"min.insync.replicas": "2"}}


def replicas(cluster: Cluster, topic: str) -> list[int]:
    """Of partition 0, the leader first."""
    with Wire(cluster.broker(0).address) as wire:
        (partition,) = wire.ask(ApiKey.METADATA, 8, topics=[Message(name=topic)]).topics[0].partitions
    return [partition.leader_id, *(node for node in partition.replica_nodes if node != partition.leader_id)]


def produce(cluster: Cluster, topic: str, value: bytes, timeout_ms: int = 20_000) -> int:
    """Produce a record to partition 0 with acks=all; the error code."""
    with Wire(cluster.broker(replicas(cluster, topic)[0]).address) as wire:
        answer = wire.ask(
            ApiKey.PRODUCE, 9, **(produce_fields({(topic, 0): batch([value])}) | {"timeout_ms": timeout_ms})
        )
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.kafka_topic(**TWO_REPLICAS)
def test_a_follower_that_is_cut_off_from_its_leader_holds_up_acks_until_it_is_healed(
    kafka_cluster: Cluster, kafka_topic: str
) -> None:
    leader, follower = replicas(kafka_cluster, kafka_topic)
    assert produce(kafka_cluster, kafka_topic, b"a") == 0
    kafka_cluster.broker(leader).cut(from_=follower)
    assert produce(kafka_cluster, kafka_topic, b"b", timeout_ms=200) == ErrorCode.REQUEST_TIMED_OUT
    kafka_cluster.broker(leader).heal()
    assert produce(kafka_cluster, kafka_topic, b"c") == 0
    assert read(kafka_cluster, kafka_topic) == [b"a", b"b", b"c"]


@pytest.mark.kafka_topic(**TWO_REPLICAS)
def test_the_end_that_did_not_ask_for_the_cut_heals_it_as_well(
    kafka_cluster: Cluster, kafka_topic: str
) -> None:
    leader, follower = replicas(kafka_cluster, kafka_topic)
    kafka_cluster.broker(leader).cut()
    assert produce(kafka_cluster, kafka_topic, b"a", timeout_ms=200) == ErrorCode.REQUEST_TIMED_OUT
    kafka_cluster.broker(follower).heal()
    assert produce(kafka_cluster, kafka_topic, b"b") == 0


def test_a_full_disk_is_told_and_over_when_it_is_healed(kafka_cluster: Cluster, kafka_topic: str) -> None:
    leader = kafka_cluster.broker(replicas(kafka_cluster, kafka_topic)[0])
    assert produce(kafka_cluster, kafka_topic, b"a") == 0
    leader.fill_disk()
    assert produce(kafka_cluster, kafka_topic, b"b") == ErrorCode.KAFKA_STORAGE_ERROR
    assert read(kafka_cluster, kafka_topic) == [b"a"]
    leader.heal()
    until(lambda: produce(kafka_cluster, kafka_topic, b"c") == 0)
    assert read(kafka_cluster, kafka_topic) == [b"a", b"c"]


def test_a_fault_outlives_a_restart(kafka_cluster: Cluster, kafka_topic: str) -> None:
    leader = kafka_cluster.broker(replicas(kafka_cluster, kafka_topic)[0])
    leader.fill_disk()
    leader.kill()
    leader.start()
    assert produce(kafka_cluster, kafka_topic, b"a") == ErrorCode.KAFKA_STORAGE_ERROR


def test_nothing_lies_between_a_broker_and_the_controller_of_its_own_thread(kafka_cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="processes=True"):
        kafka_cluster.broker(0).cut("controller")
    kafka_cluster.broker(0).slow()


def test_a_cut_names_another_broker(kafka_cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="another broker"):
        kafka_cluster.broker(0).cut(from_=7)
