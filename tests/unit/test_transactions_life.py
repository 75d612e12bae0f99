"""A transaction from its first partition to its last marker, on three brokers in virtual time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import fetch_fields
from tests.support.virtual_cluster import Transactor, VirtualCluster, state_of

P0, P1, P2 = (TopicPartition("events", number) for number in range(3))
NAMES = ["payments", "stock", "invoices"]
"""Transactional ids that are at home on different brokers, so that some markers are appended and
some are sent."""


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster()
    made.topic()
    yield made
    made.close()


@pytest.mark.parametrize("name", NAMES)
def test_committed_records_are_read_and_aborted_ones_are_not(cluster: VirtualCluster, name: str) -> None:
    producer = Transactor(cluster, name).ready()
    for number, committed in enumerate((True, False, True)):
        for of in (P0, P1, P2):
            producer.write(of, b"%d" % number, b"%d again" % number)
        producer.finish(committed)
    for of in (P0, P1, P2):
        assert cluster.values(of) == [b"0", b"0 again", b"2", b"2 again"]
        assert cluster.values(of, committed=False) == [b"0", b"0 again", b"1", b"1 again", b"2", b"2 again"]
        assert cluster.end_offset(of, committed=True) == cluster.end_offset(of, committed=False) == 9


def test_the_ids_of_these_tests_are_at_home_on_every_broker(cluster: VirtualCluster) -> None:
    assert {cluster.coordinator(name) for name in NAMES} == {0, 1, 2}


def test_nothing_beyond_an_open_transaction_is_read_committed(cluster: VirtualCluster) -> None:
    first, second = Transactor(cluster, "payments").ready(), Transactor(cluster, "orders").ready()
    first.write(P0, b"open")
    second.write(P0, b"done")
    second.finish(committed=True)
    assert cluster.values(P0) == []
    assert (cluster.end_offset(P0, committed=True), cluster.end_offset(P0, committed=False)) == (0, 3)
    assert cluster.fetch(P0, 1).error_code == 0
    first.finish(committed=False)
    assert cluster.values(P0) == [b"done"]


def test_the_markers_of_a_transaction_leave_other_producers_alone(cluster: VirtualCluster) -> None:
    first, second = Transactor(cluster, "payments").ready(), Transactor(cluster, "orders").ready()
    first.write(P0, b"1")
    second.write(P0, b"2")
    first.finish(committed=False)
    assert second.produce(P0, b"3") == 0
    second.finish(committed=True)
    assert cluster.values(P0) == [b"2", b"3"]


def test_a_waiting_fetch_is_answered_when_the_last_stable_offset_moves(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"wanted")
    fields = fetch_fields({tuple(P0): 0}, max_wait_ms=30_000) | {"isolation_level": 1}
    waiting = cluster.send(cluster.leader(P0), ApiKey.FETCH, 12, lane=1, **fields)
    cluster.quiesce(5_000)
    assert producer.produce(P0, b"wanted too") == 0
    cluster.quiesce(5_000)
    assert waiting.answer is None
    producer.finish(committed=True)
    assert waiting.answer is not None
    assert bytes(waiting.answer.responses[0].partitions[0].records)


def test_sequences_go_on_from_one_transaction_to_the_next(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1", b"2")
    producer.finish(committed=True)
    assert producer.add(P0) == 0
    assert producer.produce(P0, b"3") == 0
    assert producer.sequences[P0] == 3


def test_partitions_that_are_not_there_are_not_added_nor_the_others(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    gone = TopicPartition("nothing", 0)
    assert producer.add(gone, P0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.add(P0, gone) == ErrorCode.OPERATION_NOT_ATTEMPTED
    assert state_of(cluster) == "Empty"


@pytest.mark.parametrize("name", ["__transaction_state", "__consumer_offsets"])
def test_clients_neither_add_internal_topics_nor_write_to_them(cluster: VirtualCluster, name: str) -> None:
    producer = Transactor(cluster).ready()
    cluster.controller.create_offsets_topic()
    internal = TopicPartition(name, 0)
    assert producer.add(internal) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert producer.produce(internal, b"1") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert producer.produce(internal, b"1", transactional=False) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_deleted_topic_does_not_keep_a_transaction_from_ending(cluster: VirtualCluster) -> None:
    cluster.topic("short", 2)
    producer = Transactor(cluster).ready()
    producer.write(TopicPartition("short", 1), b"1")
    producer.write(P1, b"2")
    cluster.controller.delete_topic("short")
    producer.finish(committed=True)
    assert state_of(cluster) == "CompleteCommit"
    assert cluster.values(P1) == [b"2"]


@pytest.mark.parametrize("committed", [True, False])
def test_markers_wait_for_a_leader_that_is_down(cluster: VirtualCluster, committed: bool) -> None:
    name = next(name for name in NAMES if cluster.coordinator(name) != 2)
    producer = Transactor(cluster, name).ready()
    producer.write(P2, b"1")
    cluster.kill(2)
    assert producer.end(committed) == 0
    cluster.quiesce(10_000)
    assert state_of(cluster, name) == ("PrepareCommit" if committed else "PrepareAbort")
    assert producer.add(P0) == ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.start(2)
    cluster.quiesce()
    assert state_of(cluster, name) == ("CompleteCommit" if committed else "CompleteAbort")
    assert cluster.values(P2) == ([b"1"] if committed else [])


def test_the_next_transaction_waits_a_little_for_the_markers_of_the_one_before() -> None:
    cluster = VirtualCluster(latency_ms=10)
    cluster.topic()
    name = next(name for name in NAMES if cluster.coordinator(name) != 0)
    producer = Transactor(cluster, name).ready()
    producer.write(P0, b"1")
    assert producer.end(True) == 0
    assert state_of(cluster, name) == "PrepareCommit"
    assert producer.add(P0) == 0
    assert state_of(cluster, name) == "Ongoing"
    assert cluster.values(P0) == [b"1"]
    cluster.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_taken_only_within_a_transaction_that_the_coordinator_knows(
    cluster: VirtualCluster, name: str
) -> None:
    producer = Transactor(cluster, name).ready()
    assert producer.produce(P0, b"1", version=9) == ErrorCode.INVALID_TXN_STATE
    assert producer.produce(P0, b"1", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    producer.write(P1, b"2")
    producer.finish(committed=False)
    assert producer.produce(P1, b"late", version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert cluster.values(P1, committed=False) == [b"2"]


def test_without_verification_any_batch_is_taken() -> None:
    cluster = VirtualCluster(config={"transaction.partition.verification.enable": False})
    cluster.topic()
    producer = Transactor(cluster).ready()
    assert producer.produce(P0, b"1") == 0
    cluster.close()


def test_pipelined_first_batches_are_taken_in_their_order(cluster: VirtualCluster) -> None:
    name = next(name for name in NAMES if cluster.coordinator(name) != 0)
    producer = Transactor(cluster, name).ready()
    assert producer.add(P0) == 0
    sent = [
        cluster.send(0, ApiKey.PRODUCE, 9, **producer.request(P0, [b"%d" % number], sequence=number))
        for number in range(5)
    ]
    cluster.quiesce()
    codes = [
        one.answer.responses[0].partition_responses[0].error_code for one in sent if one.answer is not None
    ]
    assert codes == [0] * 5
    producer.finish(committed=True)
    assert cluster.values(P0) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_batch_outside_the_open_transaction_is_refused(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1")
    assert producer.produce(P0, b"2", transactional=False) == ErrorCode.INVALID_TXN_STATE


def test_a_transactional_batch_needs_a_transactional_id(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    assert producer.add(P0) == 0
    fields = producer.request(P0, [b"1"]) | {"transactional_id": None}
    row = cluster.ask(0, ApiKey.PRODUCE, 9, **fields).responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_producers_and_transactions_can_be_looked_at(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1", b"2")
    described = cluster.ask(
        producer.node_id, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["payments", "nobody", ""]
    )
    found, missing, empty = described.transaction_states
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == (
        "Ongoing",
        *producer.identity,
    )
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("events", [0])]
    assert missing.error_code in (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR)
    assert empty.error_code == ErrorCode.INVALID_REQUEST
    asked = [Message(name="events", partition_indexes=[0, 7])]
    there, beyond = cluster.ask(0, ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked).topics[0].partitions
    (active,) = there.active_producers
    assert (active.producer_id, active.last_sequence, active.current_txn_start_offset) == (
        producer.identity.producer_id,
        1,
        0,
    )
    assert beyond.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    producer.finish(committed=True)
    there = cluster.ask(0, ApiKey.DESCRIBE_PRODUCERS, 0, topics=asked).topics[0].partitions[0]
    assert there.active_producers[0].current_txn_start_offset == -1
    assert there.active_producers[0].coordinator_epoch >= 0


def listed(cluster: VirtualCluster, node_id: int, version: int = 1, **filters: object) -> list[str]:
    given = {"state_filters": [], "producer_id_filters": []} | filters
    answer = cluster.ask(node_id, ApiKey.LIST_TRANSACTIONS, version, **given)
    return [one.transactional_id for one in answer.transaction_states]


def test_transactions_are_listed_by_state_producer_and_duration(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    node_id = producer.node_id
    assert listed(cluster, node_id) == ["payments"]
    producer.write(P0, b"1")
    cluster.quiesce(5_000)
    assert listed(cluster, node_id, version=0, state_filters=["Ongoing"]) == ["payments"]
    assert listed(cluster, node_id, state_filters=["Empty"]) == []
    assert listed(cluster, node_id, producer_id_filters=[producer.identity.producer_id + 1]) == []
    assert listed(cluster, node_id, duration_filter=4_000) == ["payments"]
    assert listed(cluster, node_id, duration_filter=6_000) == []
    answer = cluster.ask(
        node_id, ApiKey.LIST_TRANSACTIONS, 0, state_filters=["Perhaps"], producer_id_filters=[]
    )
    assert answer.unknown_state_filters == ["Perhaps"]
    assert answer.transaction_states == []


def test_transactions_are_listed_by_a_pattern_that_takes_the_whole_id(cluster: VirtualCluster) -> None:
    node_id = Transactor(cluster).ready().node_id
    assert listed(cluster, node_id, version=2, transactional_id_pattern="pay.*") == ["payments"]
    assert listed(cluster, node_id, version=2, transactional_id_pattern="pay") == []
    assert listed(cluster, node_id, version=2, transactional_id_pattern="") == ["payments"]
    answer = cluster.ask(
        node_id,
        ApiKey.LIST_TRANSACTIONS,
        2,
        state_filters=[],
        producer_id_filters=[],
        transactional_id_pattern="(a",
    )
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_an_admin_can_end_a_transaction_that_is_left_hanging(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1")

    def marker(epoch: int, coordinator_epoch: int) -> int:
        one = Message(
            producer_id=producer.identity.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            topics=[Message(name="events", partition_indexes=[0])],
            coordinator_epoch=coordinator_epoch,
        )
        return int(
            cluster.ask(0, ApiKey.WRITE_TXN_MARKERS, 1, markers=[one])
            .markers[0]
            .topics[0]
            .partitions[0]
            .error_code
        )

    assert marker(-1, 5) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert marker(0, 5) == ErrorCode.NONE
    assert marker(0, 4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert cluster.values(P0) == []
    assert cluster.end_offset(P0, committed=True) == 2
