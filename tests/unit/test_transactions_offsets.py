"""Offsets committed in a transaction count when it is committed, and not before; read back whole
after a restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.wire import ApiKey, Message
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce
from tests.support.virtual_cluster import Transactor, VirtualCluster

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 1)
ONE, TWO = ProducerIdentity(1, 0), ProducerIdentity(2, 0)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("committed", [True, False])
def test_offsets_count_at_the_commit_marker_and_are_dropped_at_the_abort_marker(
    committed: bool, restarted: bool
) -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    assert rig.commit_in_transaction(ONE, {ORDERS: 5, PAYMENTS: 7}) == {ORDERS: 0, PAYMENTS: 0}
    assert rig.fetch() == {ORDERS: 1}
    assert rig.coordinator.offsets.unstable(GROUP) == {ORDERS, PAYMENTS}
    if restarted:
        rig = rig.restart()
        assert rig.fetch() == {ORDERS: 1}
        assert rig.coordinator.offsets.unstable(GROUP) == {ORDERS, PAYMENTS}
    rig.end_transaction(ONE, committed)
    expected = {ORDERS: 5, PAYMENTS: 7} if committed else {ORDERS: 1}
    assert rig.fetch() == expected
    assert rig.coordinator.offsets.unstable(GROUP) == frozenset()
    assert rig.restart().fetch() == expected


def test_transactions_of_two_producers_do_not_mix() -> None:
    rig = GroupRig()
    rig.commit_in_transaction(ONE, {ORDERS: 5})
    rig.commit_in_transaction(TWO, {PAYMENTS: 7})
    rig.end_transaction(TWO, committed=True)
    assert rig.fetch() == {PAYMENTS: 7}
    rig.end_transaction(ONE, committed=False)
    assert rig.fetch() == rig.restart().fetch() == {PAYMENTS: 7}


def test_a_later_commit_is_not_undone_by_an_earlier_one_in_a_transaction() -> None:
    rig = GroupRig()
    rig.commit_in_transaction(ONE, {ORDERS: 5})
    rig.commit({ORDERS: 9})
    rig.end_transaction(ONE, committed=True)
    assert rig.fetch() == rig.restart().fetch() == {ORDERS: 9}


def test_offsets_taken_back_do_not_come_again_with_the_marker() -> None:
    rig = GroupRig()
    rig.commit({PAYMENTS: 1})
    rig.commit_in_transaction(ONE, {ORDERS: 5})
    rig.controller.delete_topic("orders")
    rig.broker.timers.run_due(rig.broker.now_ns)
    rig.end_transaction(ONE, committed=True)
    assert rig.fetch() == {PAYMENTS: 1}


def test_a_group_with_offsets_in_a_transaction_is_not_forgotten() -> None:
    rig = GroupRig()
    rig.commit_in_transaction(ONE, {ORDERS: 5})
    assert rig.state() == "Empty"
    assert rig.restart().state() == "Empty"


def code_of(rig: GroupRig, generation: int, member_id: str) -> int:
    try:
        errors = rig.commit_in_transaction(ONE, {ORDERS: 5}, generation, member_id)
    except BrokerError as error:
        return error.code
    return errors[ORDERS]


def test_a_member_of_an_old_generation_is_refused_and_one_who_does_not_say_is_not() -> None:
    rig = GroupRig()
    assert code_of(rig, 3, "someone") == ErrorCode.ILLEGAL_GENERATION
    member = RigMember(rig)
    quiesce(member)
    assert code_of(rig, member.generation, member.member_id) == 0
    assert code_of(rig, member.generation - 1, member.member_id) == ErrorCode.ILLEGAL_GENERATION
    assert code_of(rig, member.generation, "another") == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(rig, -1, "") == 0


# --- Through the protocol, on three brokers


EVENTS = TopicPartition("events", 0)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster()
    made.topic()
    yield made
    made.close()


def home(cluster: VirtualCluster, group: str) -> int:
    answer = cluster.ask(0, ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group])
    return int(answer.coordinators[0].node_id)


def add_offsets(producer: Transactor, group: str) -> int:
    answer = producer.cluster.ask(
        producer.node_id,
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
        transactional_id=producer.transactional_id,
        producer_id=producer.identity.producer_id,
        producer_epoch=producer.identity.epoch,
        group_id=group,
    )
    return int(answer.error_code)


def commit_offset(
    producer: Transactor, group: str, offset: int, version: int = 3, of: TopicPartition = EVENTS
) -> int:
    rows = [
        Message(
            partition_index=of.partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            committed_metadata=None,
        )
    ]
    more = {"generation_id": -1, "member_id": "", "group_instance_id": None} if version >= 3 else {}
    answer = producer.cluster.ask(
        home(producer.cluster, group),
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.identity.producer_id,
        producer_epoch=producer.identity.epoch,
        topics=[Message(name=of.topic, partitions=rows)],
        **more,
    )
    return int(answer.topics[0].partitions[0].error_code)


def fetched(cluster: VirtualCluster, group: str, stable: bool) -> tuple[int, int]:
    topics = [Message(name="events", partition_indexes=[0])]
    answer = cluster.ask(
        home(cluster, group), ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=stable
    )
    row = answer.topics[0].partitions[0]
    return row.error_code, row.committed_offset


@pytest.mark.parametrize("group", ["readers", "others", "third"])
@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_carries_records_and_offsets_together(
    cluster: VirtualCluster, group: str, committed: bool
) -> None:
    producer = Transactor(cluster).ready()
    producer.write(EVENTS, b"1")
    assert add_offsets(producer, group) == 0
    assert commit_offset(producer, group, 42) == 0
    assert fetched(cluster, group, stable=False) == (0, -1)
    assert fetched(cluster, group, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    producer.finish(committed)
    assert fetched(cluster, group, stable=True) == (0, 42 if committed else -1)
    assert cluster.values(EVENTS) == ([b"1"] if committed else [])


@pytest.mark.parametrize("group", ["readers", "others", "third"])
def test_offsets_that_were_not_announced_are_refused(cluster: VirtualCluster, group: str) -> None:
    producer = Transactor(cluster).ready()
    producer.write(EVENTS, b"1")
    assert commit_offset(producer, group, 42) == ErrorCode.INVALID_TXN_STATE
    assert commit_offset(producer, group, 42, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert add_offsets(producer, group) == 0
    assert (
        commit_offset(producer, group, 42, of=TopicPartition("nothing", 0))
        == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


@pytest.mark.parametrize("group", ["readers", "others", "third"])
def test_a_fenced_producer_commits_no_offsets(cluster: VirtualCluster, group: str) -> None:
    old = Transactor(cluster).ready()
    assert add_offsets(old, group) == 0
    assert commit_offset(old, group, 1) == 0
    new = Transactor(cluster).ready()
    assert commit_offset(old, group, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert add_offsets(old, group) == ErrorCode.PRODUCER_FENCED
    assert fetched(cluster, group, stable=True) == (0, -1)
    assert add_offsets(new, group) == 0
    assert commit_offset(new, group, 3) == 0
    new.finish(True)
    assert fetched(cluster, group, stable=True) == (0, 3)


def test_offsets_in_a_transaction_survive_a_restart_of_every_broker(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    assert add_offsets(producer, "readers") == 0
    assert commit_offset(producer, "readers", 42) == 0
    for node_id in range(3):
        cluster.kill(node_id)
        cluster.start(node_id)
    assert fetched(cluster, "readers", stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    producer.finish(True)
    assert fetched(cluster, "readers", stable=True) == (0, 42)


@pytest.mark.parametrize("group", ["readers", "others", "third"])
def test_without_verification_the_partition_fences_by_the_epoch_it_has_seen(group: str) -> None:
    cluster = VirtualCluster(config={"transaction.partition.verification.enable": False})
    cluster.topic()
    old = Transactor(cluster).ready()
    assert add_offsets(old, group) == 0
    assert commit_offset(old, group, 1) == 0
    Transactor(cluster).ready()
    assert commit_offset(old, group, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert fetched(cluster, group, stable=True) == (0, -1)
    cluster.close()
