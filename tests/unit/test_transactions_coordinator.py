"""What the coordinator answers in every state, whom it fences, what it does when time is up, and
what it knows after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, TopicPartition
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.transactions import EPOCH_MAX, TRANSITIONS, TransactionState
from fairlead_kafka.broker.transactions.image import epoch_after, may_be_held
from fairlead_kafka.wire import ApiKey, Message
from tests.support.virtual_cluster import Transactor, VirtualCluster, state_of

P0, P1 = TopicPartition("events", 0), TopicPartition("events", 1)
_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, _DEAD, _FENCE = (
    TransactionState
)
BUSY, WRONG = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE

EXPECTED: dict[TransactionState, tuple[int, int, int, int]] = {
    _EMPTY: (0, 0, WRONG, WRONG),
    _ONGOING: (BUSY, 0, 0, 0),
    _PREPARE_COMMIT: (BUSY, BUSY, BUSY, WRONG),
    _PREPARE_ABORT: (BUSY, BUSY, WRONG, BUSY),
    _COMPLETE_COMMIT: (0, 0, 0, WRONG),
    _COMPLETE_ABORT: (0, 0, WRONG, 0),
}
"""State → answers to InitProducerId, AddPartitionsToTxn, EndTxn (commit), EndTxn (abort); from
Kafka's `TransactionCoordinator`."""
ASKS: list[Callable[[Transactor], int]] = [
    lambda producer: producer.init(),
    lambda producer: producer.add(P0),
    lambda producer: producer.end(True),
    lambda producer: producer.end(False),
]
AFTER: dict[tuple[TransactionState, int], TransactionState] = {
    (_EMPTY, 0): _EMPTY,
    (_EMPTY, 1): _ONGOING,
    (_ONGOING, 0): _COMPLETE_ABORT,  # fenced and aborted
    (_ONGOING, 1): _ONGOING,
    (_ONGOING, 2): _COMPLETE_COMMIT,
    (_ONGOING, 3): _COMPLETE_ABORT,
    (_COMPLETE_COMMIT, 0): _EMPTY,
    (_COMPLETE_COMMIT, 1): _ONGOING,
    (_COMPLETE_ABORT, 0): _EMPTY,
    (_COMPLETE_ABORT, 1): _ONGOING,
}
"""(state, which of the four) → the state after it and the markers; others stay."""


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    made = VirtualCluster(brokers=1)
    made.topic()
    yield made
    made.close()


def restart(cluster: VirtualCluster, node_id: int = 0) -> None:
    cluster.kill(node_id)
    cluster.start(node_id)


def in_state(cluster: VirtualCluster, state: TransactionState) -> Transactor:
    """A producer whose transactional id is in `state`, by no other means than saying so."""
    producer = Transactor(cluster).ready()
    transaction = cluster.transaction("payments")
    partitions = frozenset({P0}) if state in (_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT) else frozenset()
    transaction.image = replace(
        transaction.image, state=state, partitions=partitions, start_ms=cluster.host.now_ms()
    )
    return producer


@pytest.mark.parametrize("request_number", range(4), ids=["init", "add", "commit", "abort"])
@pytest.mark.parametrize("state", EXPECTED, ids=lambda state: state.value)
def test_each_request_in_each_state(
    cluster: VirtualCluster, state: TransactionState, request_number: int
) -> None:
    producer = in_state(cluster, state)
    assert ASKS[request_number](producer) == EXPECTED[state][request_number]
    cluster.quiesce()
    assert state_of(cluster) == AFTER.get((state, request_number), state).value


@pytest.mark.parametrize(
    ("state", "before"), [(_DEAD, _EMPTY), (_FENCE, _ONGOING)], ids=["Dead", "PrepareEpochFence"]
)
def test_states_that_pass_by_are_answered_with_come_again(
    cluster: VirtualCluster, state: TransactionState, before: TransactionState
) -> None:
    producer = in_state(cluster, before)
    cluster.transaction("payments").pending = state
    assert [ask(producer) for ask in ASKS] == [BUSY] * 4


def test_an_image_goes_only_where_the_table_lets_it(cluster: VirtualCluster) -> None:
    Transactor(cluster).ready()
    image = cluster.transaction("payments").image
    changes = {
        _ONGOING: lambda one: one.with_partitions([P0], 1),
        _PREPARE_COMMIT: lambda one: one.prepared(True, 1),
        _PREPARE_ABORT: lambda one: one.prepared(False, 1),
        _EMPTY: lambda one: one.bumped(1, None, 1),
    }
    for state in TransactionState:
        for target, change in changes.items():
            if target in TRANSITIONS[state]:
                assert change(replace(image, state=state)).state is target
            else:
                with pytest.raises(AssertionError, match="cannot go from"):
                    change(replace(image, state=state))


# --- Who is fenced


def test_a_new_producer_fences_the_one_before_and_aborts_its_transaction(cluster: VirtualCluster) -> None:
    old = Transactor(cluster).ready()
    old.write(P0, b"lost")
    new = Transactor(cluster)
    assert new.init() == BUSY
    new.ready()
    assert new.identity == ProducerIdentity(old.identity.producer_id, old.identity.epoch + 2)
    assert cluster.values(P0) == []
    assert old.add(P1) == ErrorCode.PRODUCER_FENCED
    assert old.add(P1, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.end(True) == ErrorCode.PRODUCER_FENCED
    assert old.end(True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.produce(P0, b"late") != 0
    new.write(P0, b"kept")
    new.finish(True)
    assert old.produce(P0, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert cluster.values(P0) == [b"kept"]


def test_a_producer_id_that_is_not_the_ids_own_is_refused(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    producer.identity = producer.identity._replace(producer_id=producer.identity.producer_id + 1)
    assert producer.add(P0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id = "nobody"
    assert producer.end(True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)])
def test_transaction_timeouts_are_bounded(cluster: VirtualCluster, timeout_ms: int, code: int) -> None:
    assert Transactor(cluster, timeout_ms=timeout_ms).init() == code


# --- Going on with the next epoch (KIP-360)


def test_a_producer_may_go_on_with_the_next_epoch_and_ask_twice(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    first = producer.identity
    assert producer.init(first) == 0
    assert producer.identity == first._replace(epoch=first.epoch + 1)
    again = Transactor(cluster)
    assert again.init(first) == 0
    assert again.identity == producer.identity


def test_a_producer_whose_time_is_over_may_not_go_on(cluster: VirtualCluster) -> None:
    old = Transactor(cluster).ready()
    Transactor(cluster).ready()
    assert old.init(old.identity) == ErrorCode.PRODUCER_FENCED
    assert old.init(old.identity, version=3) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.init(ProducerIdentity(old.identity.producer_id + 1, 0)) == ErrorCode.PRODUCER_FENCED
    assert old.init(ProducerIdentity(old.identity.producer_id, -1)) == ErrorCode.INVALID_REQUEST
    assert old.init(ProducerIdentity(-1, 0)) == ErrorCode.INVALID_REQUEST


def test_a_forgotten_id_takes_back_whoever_comes(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster)
    assert producer.init(ProducerIdentity(4_711, 5)) == 0
    assert producer.identity.epoch == 0


def exhaust(cluster: VirtualCluster, producer: Transactor) -> None:
    transaction = cluster.transaction("payments")
    transaction.image = replace(transaction.image, epoch=EPOCH_MAX - 1)
    producer.identity = producer.identity._replace(epoch=EPOCH_MAX - 1)


@pytest.mark.parametrize("goes_on", [True, False])
def test_used_up_epochs_give_another_producer_id(cluster: VirtualCluster, goes_on: bool) -> None:
    producer = Transactor(cluster).ready()
    exhaust(cluster, producer)
    before = producer.identity
    assert producer.init(before if goes_on else NO_PRODUCER) == 0
    assert producer.identity.epoch == 0
    assert producer.identity.producer_id != before.producer_id
    if goes_on:
        again = Transactor(cluster)
        assert again.init(before) == 0
        assert again.identity == producer.identity


def test_the_last_epoch_is_kept_to_fence_with(cluster: VirtualCluster) -> None:
    old = Transactor(cluster).ready()
    exhaust(cluster, old)
    old.write(P0, b"1")
    new = Transactor(cluster).ready()
    assert new.identity.epoch == 0
    assert new.identity.producer_id != old.identity.producer_id
    assert cluster.values(P0) == []


def commit_offset(producer: Transactor, version: int) -> int:
    """The error code of a TxnOffsetCommit."""
    row = Message(partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=None)
    answer = producer.cluster.ask(
        producer.node_id,
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        transactional_id=producer.transactional_id,
        group_id="g",
        producer_id=producer.identity.producer_id,
        producer_epoch=producer.identity.epoch,
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[Message(name=P0.topic, partitions=[row])],
    )
    return int(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize(
    ("before", "after", "held"),
    [
        (NO_PRODUCER_EPOCH, 0, False),
        (0, 1, True),
        (EPOCH_MAX - 1, EPOCH_MAX, True),
        (EPOCH_MAX, EPOCH_MAX, False),
    ],
)
def test_epochs_end_with_the_one_to_fence_with(before: int, after: int, held: bool) -> None:
    assert (epoch_after(before), may_be_held(before)) == (after, held)


@pytest.mark.parametrize("epoch", [EPOCH_MAX, NO_PRODUCER_EPOCH])
def test_nobody_goes_on_with_an_epoch_that_is_given_to_nobody(cluster: VirtualCluster, epoch: int) -> None:
    """One who did was fenced with the epoch behind the last one, which no record can have: all
    transactional ids of the partition were read again, at each look for overdue transactions."""
    producer = Transactor(cluster, timeout_ms=1_000).ready()
    old = producer.identity
    if epoch == EPOCH_MAX:
        exhaust(cluster, producer)
        producer.write(P0, b"1")
        producer.cluster.quiesce(12_000)  # it is fenced, for its time is up
    else:
        transaction = cluster.transaction("payments")
        transaction.image = replace(transaction.image, epoch=epoch)  # as before the first record is written
    assert cluster.transaction("payments").image.epoch == epoch
    producer.identity = old._replace(epoch=epoch)
    fenced = ErrorCode.PRODUCER_FENCED
    assert producer.add(P1) == fenced
    assert {producer.end(committed, version) for committed in (True, False) for version in (3, 5)} == {fenced}
    if epoch == EPOCH_MAX:
        assert producer.produce(P1, b"2", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert producer.produce(P1, b"2", version=11) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert producer.init(producer.identity) == fenced
    cluster.ask(0, ApiKey.FIND_COORDINATOR, 3, key="g", key_type=0)
    for version in (4, 5):
        assert commit_offset(producer, version) == ErrorCode.INVALID_PRODUCER_EPOCH
    cluster.quiesce(12_000)
    assert cluster.brokers[0].errors == 0
    assert producer.init() == 0
    assert producer.identity.epoch == 0
    producer.write(P1, b"3")
    producer.finish(committed=True)
    assert cluster.values(P1) == [b"3"]


def test_a_transaction_that_was_begun_with_the_last_epoch_is_aborted_when_its_time_is_up(
    cluster: VirtualCluster,
) -> None:
    """A log may have one from a version that let it begin."""
    producer = Transactor(cluster, timeout_ms=1_000).ready()
    producer.write(P0, b"1")
    transaction = cluster.transaction("payments")
    transaction.image = replace(transaction.image, epoch=EPOCH_MAX)
    cluster.quiesce(12_000)
    assert (state_of(cluster), cluster.brokers[0].errors) == ("CompleteAbort", 0)
    assert producer.init() == 0
    assert producer.identity.epoch == 0


# --- Time


def test_a_transaction_that_is_open_too_long_is_aborted_and_its_producer_fenced(
    cluster: VirtualCluster,
) -> None:
    producer = Transactor(cluster, timeout_ms=30_000).ready()
    producer.write(P0, b"1")
    cluster.quiesce(29_000)
    assert state_of(cluster) == "Ongoing"
    cluster.quiesce(12_000)
    assert state_of(cluster) == "CompleteAbort"
    assert cluster.values(P0) == []
    assert producer.end(True) == ErrorCode.PRODUCER_FENCED
    assert producer.produce(P0, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.init(producer.identity) == ErrorCode.PRODUCER_FENCED


def test_an_id_that_nobody_uses_is_forgotten_and_one_that_is_used_is_not() -> None:
    config = {
        "transactional.id.expiration.ms": 60_000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 10_000,
    }
    cluster = VirtualCluster(brokers=1, config=config)
    cluster.topic()
    unused, used = (
        Transactor(cluster, "unused").ready(),
        Transactor(cluster, "used", timeout_ms=600_000).ready(),
    )
    used.write(P0, b"1")
    cluster.quiesce(80_000)
    described = cluster.ask(
        0, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["unused", "used"]
    ).transaction_states
    assert [one.error_code for one in described] == [ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.NONE]
    assert unused.add(P0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    restart(cluster)
    assert unused.add(P0) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    used.finish(True)
    assert cluster.values(P0) == [b"1"]
    cluster.close()


# --- After a restart


@pytest.mark.parametrize(
    "state", [_EMPTY, _ONGOING, _COMPLETE_COMMIT, _COMPLETE_ABORT], ids=lambda state: state.value
)
def test_a_restarted_coordinator_knows_what_the_one_before_knew(
    cluster: VirtualCluster, state: TransactionState
) -> None:
    producer = Transactor(cluster).ready()
    if state is not _EMPTY:
        producer.write(P0, b"1")
        producer.write(P1, b"2")
    if state in (_COMPLETE_COMMIT, _COMPLETE_ABORT):
        producer.finish(state is _COMPLETE_COMMIT)
    before = cluster.transaction("payments").image
    restart(cluster)
    assert cluster.transaction("payments").image == replace(before, last_epoch=-1)
    assert state_of(cluster) == state.value
    producer.write(P0, b"3")
    producer.finish(True)
    kept = [] if state is _COMPLETE_ABORT or state is _EMPTY else [b"1"]
    assert cluster.values(P0) == [*kept, b"3"]


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("reachable", [True, False], ids=["leader up", "leader down"])
def test_a_decided_end_is_brought_about_by_whoever_reads_the_log(committed: bool, reachable: bool) -> None:
    cluster = VirtualCluster(brokers=2)
    cluster.topic(partitions=2)
    producer = Transactor(cluster).ready()
    home = producer.node_id
    other = 1 - home
    of = TopicPartition("events", other)
    producer.write(of, b"1")
    cluster.kill(other)
    assert producer.end(committed) == 0
    cluster.kill(home)
    if reachable:
        cluster.start(other)
    cluster.start(home)
    cluster.quiesce()
    if not reachable:
        assert state_of(cluster) == ("PrepareCommit" if committed else "PrepareAbort")
        cluster.start(other)
        cluster.quiesce()
    assert state_of(cluster) == ("CompleteCommit" if committed else "CompleteAbort")
    assert cluster.values(of) == ([b"1"] if committed else [])
    producer.write(of, b"2")
    producer.finish(True)
    assert cluster.values(of) == ([b"1", b"2"] if committed else [b"2"])
    cluster.close()


def test_a_decision_that_was_not_written_was_not_made(cluster: VirtualCluster) -> None:
    """Killed before the write is done: whoever comes next finds the transaction open."""
    producer = Transactor(cluster).ready()
    producer.write(P0, b"1")
    broker = cluster.brokers[0]
    answers: list[int] = []
    broker.transactions.end("payments", producer.identity, True, answers.append)
    restart(cluster)
    assert answers == []
    assert state_of(cluster) == "Ongoing"


def test_while_the_log_is_read_whoever_asks_is_told_to_come_again(cluster: VirtualCluster) -> None:
    producer = Transactor(cluster).ready()
    coordinator = cluster.brokers[0].transactions
    shard = coordinator.shards.of("payments")
    shard.loaded = False
    assert producer.init() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    answer = cluster.ask(0, ApiKey.LIST_TRANSACTIONS, 0, state_filters=[], producer_id_filters=[])
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
