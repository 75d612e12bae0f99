"""What errors do to a transaction and to its producer: which of them can be lived with, and what
the next transaction needs."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    BrokerError,
    InvalidRecord,
    ProducerFenced,
    TimedOut,
    TransactionFailed,
    UnsupportedVersion,
)
from fairlead_kafka.producer.transaction_states import TransactionState
from fairlead_kafka.wire import ApiKey
from tests.support.producer_brokers import IGNORE, LOSE_ANSWER, Fault
from tests.support.transaction_rig import LIFE, SOURCE, Scene

IN_TRANSACTION = LIFE[2:]


@pytest.fixture
def scene() -> Scene:
    return Scene()


FATAL = [
    (ApiKey.FIND_COORDINATOR, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.PRODUCER_FENCED),
    *(
        (api_key, code)
        for api_key in IN_TRANSACTION
        for code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    ),
    *((api_key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) for api_key in IN_TRANSACTION),
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_TXN_STATE),
    (ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE),
    (ApiKey.END_TXN, ErrorCode.UNKNOWN_SERVER_ERROR),
]
FENCING = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize(("api_key", "code"), FATAL)
def test_errors_that_leave_no_way_on_end_the_producer(scene: Scene, api_key: ApiKey, code: int) -> None:
    scene.coordinator.faults[api_key] += [code]
    kind = ProducerFenced if code in FENCING else BrokerError
    with pytest.raises(kind) as failure:
        scene.live(b"a", b"b", offset=1)
    assert failure.value.code == code
    assert "close it" in str(failure.value)
    assert scene.state() is TransactionState.FATAL_ERROR
    for call in (
        scene.producer.begin_transaction,
        scene.producer.commit_transaction,
        scene.producer.abort_transaction,
    ):
        with pytest.raises(kind):
            call()
    assert scene.rig.machine(scene.producer).records_open == 0
    scene.producer.close()


ABORTABLE = [
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_TOPIC_EXCEPTION, False),
    (ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.INVALID_PRODUCER_ID_MAPPING, True),
    (ApiKey.ADD_OFFSETS_TO_TXN, ErrorCode.GROUP_AUTHORIZATION_FAILED, False),
    (ApiKey.ADD_OFFSETS_TO_TXN, ErrorCode.UNKNOWN_PRODUCER_ID, True),
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.ILLEGAL_GENERATION, False),
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.UNKNOWN_MEMBER_ID, False),
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.FENCED_INSTANCE_ID, False),
    (ApiKey.END_TXN, ErrorCode.TRANSACTION_ABORTABLE, False),
    (ApiKey.END_TXN, ErrorCode.INVALID_PRODUCER_ID_MAPPING, True),
]


@pytest.mark.parametrize(("api_key", "code", "bumps"), ABORTABLE)
def test_errors_that_cost_the_transaction_leave_the_producer_fit_for_the_next(
    scene: Scene, api_key: ApiKey, code: int, bumps: bool
) -> None:
    scene.producer.init_transactions()
    scene.coordinator.faults[api_key] += [code]
    with pytest.raises(TransactionFailed, match="abort it") as failure:
        scene.transact(b"a", b"b", offset=1)
    assert isinstance(failure.value.__cause__, BrokerError)
    assert failure.value.__cause__.code == code
    assert scene.state() is TransactionState.ABORTABLE_ERROR
    for call in (scene.producer.begin_transaction, scene.producer.commit_transaction):
        with pytest.raises(TransactionFailed):
            call()
    scene.producer.abort_transaction()
    assert scene.rig.machine(scene.producer).records_open == 0
    scene.transact(b"kept", offset=9)
    assert scene.committed() == [[b"kept"], []]
    assert scene.coordinator.offsets == {"group": {SOURCE: 9}}
    assert scene.coordinator.kinds().count("INIT_PRODUCER_ID") == 1 + bumps


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ],
)
def test_a_refused_batch_fails_the_commit_and_the_next_transaction_has_a_new_epoch(
    scene: Scene, code: int
) -> None:
    scene.producer.init_transactions()
    scene.transact(b"first")
    faults = [code]
    scene.cluster.on_produce = lambda *_: faults.pop() if faults else None
    scene.producer.begin_transaction()
    refused = scene.producer.send("t", b"refused", partition=0)
    with pytest.raises(BrokerError):
        refused.result(10)
    behind = scene.producer.send("t", b"behind", partition=0)
    with pytest.raises(TransactionFailed):
        scene.producer.commit_transaction()
    with pytest.raises(TransactionFailed):
        behind.result(10)
    scene.producer.abort_transaction()
    scene.transact(b"last")
    assert scene.committed() == [[b"first", b"last"], []]
    last = scene.cluster.produce_requests[-1][0][2]
    assert (last.producer_epoch, last.base_sequence) == (1, 0)


def test_batches_behind_a_refused_one_are_not_left_waiting(scene: Scene) -> None:
    scene.producer.close()
    scene.producer = scene.another(batch_size=100)
    scene.producer.init_transactions()
    scene.transact(b"first")
    faults = [ErrorCode.INVALID_RECORD]
    scene.cluster.on_produce = lambda *_: faults.pop() if faults else None
    before_ns = scene.rig.host.now_ns()
    with pytest.raises(TransactionFailed), scene.producer.transaction():
        acks = [scene.producer.send("t", b"x" * 90, partition=0) for _ in range(12)]
    assert all(ack.done() for ack in acks)
    assert (scene.rig.host.now_ns() - before_ns) / 1e9 < 2
    scene.transact(b"last")
    assert scene.committed()[0] == [b"first", b"last"]


def test_a_producer_that_is_fenced_by_a_leader_stops(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.cluster.on_produce = lambda *_: ErrorCode.PRODUCER_FENCED
    scene.producer.begin_transaction()
    scene.producer.send("t", b"late", partition=0)
    with pytest.raises(ProducerFenced):
        scene.producer.commit_transaction()
    assert scene.state() is TransactionState.FATAL_ERROR


def test_a_newer_producer_of_the_same_id_fences_this_one(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"lost", partition=0).result(10)
    newer = scene.another()
    newer.init_transactions()
    with pytest.raises(ProducerFenced):
        scene.producer.commit_transaction()
    newer.begin_transaction()
    newer.send("t", b"kept", partition=0)
    newer.commit_transaction()
    assert scene.committed()[0] == [b"kept"]


def test_a_batch_that_ran_out_of_time_is_waited_for_on_the_wire_before_the_abort(scene: Scene) -> None:
    scene.producer.close()
    scene.producer = scene.another(delivery_timeout_ms=3000, request_timeout_ms=2000)
    scene.producer.init_transactions()
    scene.transact(b"first")
    faults: list[Fault] = [LOSE_ANSWER, IGNORE, IGNORE]
    scene.cluster.on_produce = lambda *_: faults.pop(0) if faults else None
    scene.producer.begin_transaction()
    ack = scene.producer.send("t", b"unknown", partition=0)
    with pytest.raises(TimedOut):
        ack.result(10)
    with pytest.raises(TransactionFailed):
        scene.producer.commit_transaction()
    scene.producer.abort_transaction()
    scene.transact(b"last")
    assert scene.committed()[0] == [b"first", b"last"]
    last = scene.cluster.produce_requests[-1][0][2]
    assert (last.producer_epoch, last.base_sequence) == (1, 0), (
        "a straggler of the old epoch would be refused"
    )


def test_a_record_that_finds_no_partition_fails_the_commit(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    lost = scene.producer.send("t", b"nowhere", partition=9)
    with pytest.raises(TransactionFailed) as failure:
        scene.producer.commit_transaction()
    assert isinstance(failure.value.__cause__, InvalidRecord)
    with pytest.raises(InvalidRecord):
        lost.result(0)
    scene.producer.abort_transaction()
    assert scene.coordinator.kinds().count("INIT_PRODUCER_ID") == 1, (
        "nothing was sent, so the epoch serves on"
    )


def test_an_id_that_may_not_be_used_yet_may_be_asked_for_again(scene: Scene) -> None:
    scene.coordinator.faults[ApiKey.INIT_PRODUCER_ID] += [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    with pytest.raises(BrokerError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        scene.producer.init_transactions()
    scene.producer.init_transactions()
    scene.transact(b"kept")
    assert scene.committed()[0] == [b"kept"]


def test_the_last_epoch_is_followed_by_a_new_producer_id(scene: Scene) -> None:
    scene.cluster.first_epoch = 2**15 - 1
    scene.producer.init_transactions()
    scene.cluster.on_produce = lambda *_: ErrorCode.INVALID_RECORD
    with pytest.raises(TransactionFailed), scene.producer.transaction():
        scene.producer.send("t", b"refused", partition=0)
    scene.cluster.on_produce = lambda *_: None
    scene.transact(b"kept")
    assert scene.committed()[0] == [b"kept"]
    assert scene.cluster.produce_requests[-1][0][2].producer_epoch == 0


def test_a_coordinator_that_cannot_give_new_epochs_ends_the_producer_once_one_is_needed(scene: Scene) -> None:
    scene.cluster.versions[ApiKey.INIT_PRODUCER_ID] = (0, 2)
    scene.producer.init_transactions()
    scene.transact(b"kept")
    scene.cluster.on_produce = lambda *_: ErrorCode.INVALID_RECORD
    scene.producer.begin_transaction()
    scene.producer.send("t", b"refused", partition=0)
    with pytest.raises(TransactionFailed):
        scene.producer.commit_transaction()
    with pytest.raises(UnsupportedVersion, match="KIP-360"):
        scene.producer.abort_transaction()
    assert scene.coordinator.outcomes == [True, False]
