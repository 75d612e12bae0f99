"""Every version of the transactional requests, and what brokers ask of each other when one of them
is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.wire import ApiKey, Message
from tests.support.virtual_cluster import Transactor, VirtualCluster, state_of

P0, P1, P2 = (TopicPartition("events", number) for number in range(3))


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster()
    made.topic()
    yield made
    made.close()


def versions(api_key: ApiKey) -> range:
    return range(REGISTRY[api_key].low, REGISTRY[api_key].high + 1)


def of_producer(producer: Transactor) -> dict[str, Any]:
    return {
        "transactional_id": producer.transactional_id,
        "producer_id": producer.identity.producer_id,
        "producer_epoch": producer.identity.epoch,
    }


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR)[1:])
def test_the_coordinator_of_a_transactional_id_is_found(cluster: VirtualCluster, version: int) -> None:
    asked = {"coordinator_keys": ["payments"]} if version >= 4 else {"key": "payments"}
    answer = cluster.ask(0, ApiKey.FIND_COORDINATOR, version, key_type=1, **asked)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id) == (0, cluster.coordinator("payments"))
    assert len(cluster.controller.image.topics["__transaction_state"].partitions) == 50


@pytest.mark.parametrize("version", versions(ApiKey.INIT_PRODUCER_ID))
def test_a_producer_id_is_given_in_every_version(cluster: VirtualCluster, version: int) -> None:
    more = {"producer_id": -1, "producer_epoch": -1} if version >= 3 else {}
    answer = cluster.ask(
        cluster.coordinator("payments"),
        ApiKey.INIT_PRODUCER_ID,
        version,
        transactional_id="payments",
        transaction_timeout_ms=1_000,
        **more,
    )
    assert (answer.error_code, answer.producer_epoch) == (0, 0)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version_of_clients(cluster: VirtualCluster, version: int) -> None:
    producer = Transactor(cluster).ready()
    assert producer.add(P0, P1, version=version) == 0
    assert cluster.transaction("payments").image.partitions == {P0, P1}


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_for_several_transactions_at_once(
    cluster: VirtualCluster, version: int
) -> None:
    producer = Transactor(cluster).ready()
    topics = [Message(name="events", partitions=[0])]

    def ask(verify_only: bool, **more: Any) -> list[int]:
        wanted = [
            of_producer(producer) | {"verify_only": verify_only, "topics": topics} | more,
            of_producer(producer) | more,
        ]
        wanted[1] |= {"transactional_id": "nobody", "verify_only": True, "topics": topics}
        answer = cluster.ask(
            producer.node_id,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            transactions=[Message(**one) for one in wanted],
        )
        return [
            one.topic_results[0].results_by_partition[0].partition_error_code
            for one in answer.results_by_transaction
        ]

    def known(code: int) -> None:
        assert ask(verify_only=True)[0] == code

    known(ErrorCode.TRANSACTION_ABORTABLE)
    added, other = ask(verify_only=False)
    assert added == 0
    assert other in (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.NOT_COORDINATOR)
    known(0)
    assert ask(verify_only=True, producer_epoch=7)[0] == ErrorCode.PRODUCER_FENCED
    assert cluster.leader(P0) != producer.node_id
    cluster.kill(cluster.leader(P0))
    assert producer.end(True) == 0
    assert ask(verify_only=True)[0] == ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("version", versions(ApiKey.ADD_OFFSETS_TO_TXN))
def test_offsets_are_announced_in_every_version(cluster: VirtualCluster, version: int) -> None:
    producer = Transactor(cluster).ready()
    fields = of_producer(producer) | {"group_id": "readers"}
    assert cluster.ask(producer.node_id, ApiKey.ADD_OFFSETS_TO_TXN, version, **fields).error_code == 0
    (added,) = cluster.transaction("payments").image.partitions
    assert added.topic == "__consumer_offsets"
    fields["producer_epoch"] += 1
    fenced = cluster.ask(producer.node_id, ApiKey.ADD_OFFSETS_TO_TXN, version, **fields).error_code
    assert fenced == (ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize("version", versions(ApiKey.TXN_OFFSET_COMMIT))
def test_offsets_are_committed_in_every_version(cluster: VirtualCluster, version: int) -> None:
    producer = Transactor(cluster).ready()
    announced = cluster.ask(
        producer.node_id, ApiKey.ADD_OFFSETS_TO_TXN, 3, **of_producer(producer), group_id="readers"
    )
    assert announced.error_code == 0
    home = cluster.ask(0, ApiKey.FIND_COORDINATOR, 1, key_type=0, key="readers").node_id
    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "so far"}
    row |= {"committed_leader_epoch": 0} if version >= 2 else {}
    more = {"generation_id": -1, "member_id": "", "group_instance_id": None} if version >= 3 else {}
    topics = [Message(name="events", partitions=[Message(**row)])]
    answer = cluster.ask(
        home,
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        **of_producer(producer),
        group_id="readers",
        topics=topics,
        **more,
    )
    assert answer.topics[0].partitions[0].error_code == 0
    producer.finish(True)
    committed = cluster.brokers[home].coordinator.offsets.fetch("readers", [P0])[P0]
    assert committed is not None
    assert (committed.offset, committed.metadata) == (7, "so far")


@pytest.mark.parametrize("version", versions(ApiKey.END_TXN))
def test_a_transaction_is_ended_in_every_version(cluster: VirtualCluster, version: int) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1")
    assert producer.end(True, version=version) == 0
    cluster.quiesce()
    assert state_of(cluster) == "CompleteCommit"


# --- When a broker is not there


def away_from_home(cluster: VirtualCluster) -> tuple[Transactor, TopicPartition]:
    """A producer, and a partition led by another broker than the one that coordinates it."""
    producer = Transactor(cluster).ready()
    return producer, next(of for of in (P0, P1, P2) if cluster.leader(of) != producer.node_id)


def test_a_batch_whose_coordinator_is_down_is_to_be_sent_again(cluster: VirtualCluster) -> None:
    producer, of = away_from_home(cluster)
    home = producer.node_id
    assert producer.add(of) == 0
    cluster.kill(home)
    assert producer.produce(of, b"1") == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.start(home)
    assert producer.produce(of, b"1") == 0
    producer.finish(True)
    assert cluster.values(of) == [b"1"]


def test_a_question_that_dies_with_the_coordinator_is_to_be_asked_again(cluster: VirtualCluster) -> None:
    producer, of = away_from_home(cluster)
    home, leader = producer.node_id, cluster.leader(of)
    assert producer.add(of) == 0
    assert producer.produce(of, b"1") == 0
    producer.finish(True)
    assert producer.add(of) == 0
    cluster.host.link(cluster.handles[leader], cluster.handles[home]).cut()
    asked = cluster.send(leader, ApiKey.PRODUCE, 9, **producer.request(of, [b"2"]))
    cluster.quiesce(1_000)
    assert asked.answer is None
    cluster.kill(home)
    cluster.quiesce(100)
    assert asked.answer is not None
    assert asked.answer.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_marker_that_comes_before_the_verdict_refuses_the_batch(cluster: VirtualCluster) -> None:
    """The coordinator's yes is on its way when the transaction's end arrives: what was asked about
    is over."""
    producer, of = away_from_home(cluster)
    leader = cluster.leader(of)
    assert producer.add(of) == 0
    link = cluster.host.link(cluster.handles[leader], cluster.handles[producer.node_id])
    link.cut()
    asked = cluster.send(leader, ApiKey.PRODUCE, 9, lane=1, **producer.request(of, [b"late"]))
    cluster.quiesce()
    assert asked.answer is None
    marker = Message(
        producer_id=producer.identity.producer_id,
        producer_epoch=producer.identity.epoch,
        transaction_result=False,
        topics=[Message(name=of.topic, partition_indexes=[of.partition])],
        coordinator_epoch=9,
    )
    cluster.ask(leader, ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker])
    assert asked.answer is not None
    assert asked.answer.responses[0].partition_responses[0].error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    link.heal()
    cluster.quiesce()
    assert cluster.values(of, committed=False) == []


def test_who_waits_for_one_verdict_gets_it_in_order_and_a_new_epoch_asks_for_itself(
    cluster: VirtualCluster,
) -> None:
    producer, of = away_from_home(cluster)
    assert producer.add(of) == 0
    heard: list[tuple[str, int]] = []
    verifier, links = cluster.brokers[cluster.leader(of)].verifier, cluster.brokers[cluster.leader(of)].links
    asked: list[tuple[int, Message]] = []
    ask = links.ask
    links.ask = lambda *given: (asked.append((given[1], given[3])), ask(*given))  # type: ignore[method-assign]
    for name in ("first", "second"):
        verifier.verify(
            "payments", producer.identity, [(of, lambda error, name=name: heard.append((name, error)))]
        )
    newer = ProducerIdentity(producer.identity.producer_id, producer.identity.epoch + 1)
    verifier.verify("payments", newer, [(of, lambda error: heard.append(("newer", error)))])
    cluster.host.wake(cluster.handles[cluster.leader(of)])
    cluster.quiesce()
    assert heard == [("first", 0), ("second", 0), ("newer", ErrorCode.INVALID_PRODUCER_EPOCH)]
    verifications = [message for api_key, message in asked if api_key == ApiKey.ADD_PARTITIONS_TO_TXN]
    assert [one.transactions[0].producer_epoch for one in verifications] == [
        producer.identity.epoch,
        newer.epoch,
    ]


def test_markers_reach_a_leader_that_was_cut_off(cluster: VirtualCluster) -> None:
    producer, of = away_from_home(cluster)
    link = cluster.host.link(cluster.handles[producer.node_id], cluster.handles[cluster.leader(of)])
    producer.write(of, b"1")
    link.cut()
    assert producer.end(True) == 0
    cluster.quiesce(5_000)
    assert state_of(cluster) == "PrepareCommit"
    link.reset()
    link.heal()
    cluster.quiesce(5_000)
    assert state_of(cluster) == "CompleteCommit"
    producer.write(of, b"2")
    producer.finish(True)
    assert cluster.values(of) == [b"1", b"2"]
