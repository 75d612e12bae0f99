"""Transactions of the producer in virtual time: the order of requests, what gets lost on the way,
calls out of time and out of order."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    ConfigError,
    TimedOut,
    TransactionFailed,
    UsageError,
)
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
from fairlead_kafka.producer.reactions import busy_wait_ms
from fairlead_kafka.producer.transaction_states import TRANSITIONS, TransactionState, TransactionTrigger
from fairlead_kafka.wire import ApiKey
from tests.support.producer_brokers import BREAK, IGNORE, LOSE_ANSWER, Fault
from tests.support.transaction_rig import LIFE, SOURCE, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


# The way it goes


def test_a_transactions_requests_come_in_order_and_in_the_versions_of_the_first_protocol(
    scene: Scene,
) -> None:
    scene.producer.init_transactions()
    acks = scene.transact(b"a", b"b", offset=7)
    kinds = scene.coordinator.kinds()
    assert kinds[:2] == ["FIND_COORDINATOR", "INIT_PRODUCER_ID"]
    assert kinds[-1] == "END_TXN"
    assert kinds.index("ADD_OFFSETS_TO_TXN") < kinds.index("TXN_OFFSET_COMMIT")
    assert scene.committed() == [[b"a"], [b"b"]]
    assert [ack.result(0).offset for ack in acks] == [0, 0]
    assert scene.coordinator.offsets == {"group": {SOURCE: 7}}
    versions = {api_key: version for api_key, version, _ in scene.coordinator.asked}
    assert versions[ApiKey.END_TXN] == 4
    assert versions[ApiKey.TXN_OFFSET_COMMIT] == 4
    assert versions[ApiKey.ADD_PARTITIONS_TO_TXN] == 3
    assert all(header.transactional for request in scene.cluster.produce_requests for _, _, header in request)


def test_partitions_are_added_once_for_each_transaction_and_sequences_go_on(scene: Scene) -> None:
    scene.producer.init_transactions()
    for number in range(3):
        scene.producer.begin_transaction()
        for row in range(4):
            scene.producer.send("t", b"%d-%d" % (number, row), partition=0).result(10)
        scene.producer.commit_transaction()
    assert scene.coordinator.kinds().count("ADD_PARTITIONS_TO_TXN") == 3
    headers = [header for request in scene.cluster.produce_requests for _, _, header in request]
    assert [header.base_sequence for header in headers] == list(range(12))
    assert len({header.producer_epoch for header in headers}) == 1


def test_records_without_partition_are_bound_inside_the_transaction(scene: Scene) -> None:
    for policy in ("late", "uniform", "sticky", "round_robin"):
        scene.producer.close()
        scene.producer = scene.another(partitioner_class=policy, batch_size=200)
        scene.producer.init_transactions()
        scene.producer.begin_transaction()
        acks = [scene.producer.send("t", b"%s-%02d" % (policy.encode(), row)) for row in range(30)]
        scene.producer.commit_transaction()
        assert all(ack.result(0).offset >= 0 for ack in acks)
        found = [
            value
            for partition in scene.committed()
            for value in partition
            if value and value.startswith(policy.encode())
        ]
        assert len(found) == 30


def test_an_empty_transaction_asks_nothing(scene: Scene) -> None:
    scene.producer.init_transactions()
    asked = len(scene.coordinator.asked)
    for commit in (True, False):
        scene.producer.begin_transaction()
        scene.producer.send_offsets_to_transaction({}, "group")
        (scene.producer.commit_transaction if commit else scene.producer.abort_transaction)()
    assert len(scene.coordinator.asked) == asked
    assert scene.state() is TransactionState.READY


def test_an_aborted_transaction_is_undone_and_what_was_not_sent_fails(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    sent = scene.producer.send("t", b"undone", partition=0)
    sent.result(10)
    scene.cluster.on_produce = lambda *_: pytest.fail("nothing is sent any more")
    scene.coordinator.faults[ApiKey.ADD_PARTITIONS_TO_TXN] += [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    unsent = scene.producer.send("t", b"unsent", partition=1)
    scene.producer.abort_transaction()
    with pytest.raises(TransactionFailed, match="aborted before"):
        unsent.result(0)
    scene.cluster.on_produce = lambda *_: None
    scene.transact(b"kept")
    assert scene.committed() == [[b"kept"], []]
    assert scene.coordinator.outcomes == [False, True]


def test_a_block_commits_or_aborts(scene: Scene) -> None:
    scene.producer.init_transactions()
    with scene.producer.transaction():
        scene.producer.send("t", b"kept", partition=0)
    with pytest.raises(ZeroDivisionError):
        scene.fail(b"undone")
    assert scene.coordinator.outcomes == [True, False]
    assert scene.committed() == [[b"kept"], []]
    assert scene.state() is TransactionState.READY


def test_closing_aborts_an_open_transaction(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"undone", partition=0).result(10)
    scene.producer.close()
    assert scene.coordinator.outcomes == [False]
    assert "open transaction" in caplog.text


def test_closing_while_the_coordinator_is_away_ends_in_time(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"undone", partition=0).result(10)
    scene.coordinator.faults[ApiKey.END_TXN] += [IGNORE]
    scene.producer.close(timeout_s=1)
    assert scene.coordinator.outcomes == []
    assert "did not end" in caplog.text


def test_closing_does_not_wait_for_an_initialisation_that_has_no_end(scene: Scene) -> None:
    scene.coordinator.faults[ApiKey.INIT_PRODUCER_ID] += [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 10_000
    with pytest.raises(TimedOut, match="COORDINATOR_LOAD_IN_PROGRESS"):
        scene.producer.init_transactions(timeout_s=1)
    before_ns = scene.rig.host.now_ns()
    scene.producer.close()
    assert (scene.rig.host.now_ns() - before_ns) / 1e9 < 1


def test_closing_waits_for_a_commit_that_nobody_waited_for(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"kept", partition=0)
    with pytest.raises(TimedOut):
        scene.producer.commit_transaction(timeout_s=0)
    scene.producer.close()
    assert scene.coordinator.outcomes == [True]
    assert scene.committed()[0] == [b"kept"]


# Answers that get lost, coordinators that move


@pytest.mark.parametrize(
    "fault", [LOSE_ANSWER, BREAK, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
)
@pytest.mark.parametrize("api_key", LIFE, ids=lambda api_key: api_key.name)
def test_what_passes_is_asked_again_and_done_once(scene: Scene, api_key: ApiKey, fault: Fault) -> None:
    scene.coordinator.faults[api_key] += [fault, fault]
    scene.producer.init_transactions()
    scene.transact(b"a", b"b", offset=1)
    scene.transact(b"c", b"d", offset=2)
    assert not scene.coordinator.faults[api_key]
    assert scene.committed() == [[b"a", b"c"], [b"b", b"d"]]
    assert scene.coordinator.offsets == {"group": {SOURCE: 2}}
    assert scene.coordinator.outcomes == [True, True]


@pytest.mark.parametrize("api_key", LIFE[1:], ids=lambda api_key: api_key.name)
def test_a_coordinator_that_moved_is_found_again(scene: Scene, api_key: ApiKey) -> None:
    scene.producer.init_transactions()
    scene.transact(b"a", b"b", offset=1)
    scene.coordinator.coordinator = 1
    scene.transact(b"c", b"d", offset=2)
    assert scene.committed() == [[b"a", b"c"], [b"b", b"d"]]


def test_a_coordinator_that_died_is_found_again_elsewhere(scene: Scene) -> None:
    scene.coordinator.coordinator = 1
    scene.producer.init_transactions()
    scene.cluster.create("one", 1)  # led by broker 0
    scene.rig.host.remove(scene.cluster.handles[1])
    scene.coordinator.coordinator = 0
    with scene.producer.transaction():
        scene.producer.send("one", b"kept")
    assert scene.coordinator.committed("one") == [[b"kept"]]


@pytest.mark.parametrize(
    ("failures", "backoff_ms", "wait_ms"),
    [
        (0, 100, 2),
        (1, 100, 4),
        (5, 100, 64),
        (6, 100, 100),
        (10_000, 100, 100),
        (0, 1, 1),
        (3, 1, 1),
        (0, 0, 0),
    ],
)
def test_who_is_busy_is_asked_again_soon_and_then_less_often(
    failures: int, backoff_ms: float, wait_ms: float
) -> None:
    assert busy_wait_ms(failures, backoff_ms) == wait_ms


@pytest.mark.parametrize("api_key", LIFE[1:], ids=lambda api_key: api_key.name)
def test_what_is_still_under_way_is_waited_for_briefly(scene: Scene, api_key: ApiKey) -> None:
    scene.producer.close()
    scene.producer = scene.another(retry_backoff_ms=50, retry_backoff_max_ms=60_000)
    before_ns = scene.rig.host.now_ns()
    scene.live(b"a", b"b", offset=1)
    plainly_ms = (scene.rig.host.now_ns() - before_ns) / 1e6
    scene.producer.close()
    scene.producer = scene.another(retry_backoff_ms=50, retry_backoff_max_ms=60_000)
    scene.coordinator.faults[api_key] += [ErrorCode.CONCURRENT_TRANSACTIONS] * 7
    before_ns = scene.rig.host.now_ns()
    scene.live(b"c", b"d", offset=2)
    waited_ms = 2 + 4 + 8 + 16 + 32 + 50 + 50
    assert waited_ms <= (scene.rig.host.now_ns() - before_ns) / 1e6 < waited_ms + plainly_ms + 50
    assert scene.committed() == [[b"a", b"c"], [b"b", b"d"]]


def test_partitions_used_while_the_coordinator_is_busy_are_added_together(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.coordinator.faults[ApiKey.ADD_PARTITIONS_TO_TXN] += [ErrorCode.CONCURRENT_TRANSACTIONS] * 3
    scene.producer.begin_transaction()
    scene.producer.send("t", b"a", partition=0)
    scene.rig.host.run_until(lambda: "ADD_PARTITIONS_TO_TXN" in scene.coordinator.kinds(), 1000)
    scene.producer.send("t", b"b", partition=1)
    scene.producer.commit_transaction()
    added = [
        [number for topic in message.v3_and_below_topics for number in topic.partitions]
        for api_key, _, message in scene.coordinator.asked
        if api_key is ApiKey.ADD_PARTITIONS_TO_TXN
    ]
    assert added == [[0], [0, 1], [0, 1], [0, 1]]
    assert scene.committed() == [[b"a"], [b"b"]]


@pytest.mark.parametrize("fault", [LOSE_ANSWER, BREAK])
def test_a_batch_whose_answer_is_lost_is_committed_once(scene: Scene, fault: Fault) -> None:
    scene.producer.init_transactions()
    faults = [fault]
    scene.cluster.on_produce = lambda *_: faults.pop() if faults else None
    scene.transact(b"a", b"b")
    assert scene.committed() == [[b"a"], [b"b"]]


@pytest.mark.parametrize(
    "then",
    [
        (),
        (ErrorCode.NOT_COORDINATOR,),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.CONCURRENT_TRANSACTIONS,),
    ],
)
def test_an_abort_knows_of_partitions_whose_addition_was_not_answered(
    scene: Scene, then: tuple[ErrorCode, ...]
) -> None:
    scene.producer.init_transactions()
    scene.coordinator.faults[ApiKey.ADD_PARTITIONS_TO_TXN] += [LOSE_ANSWER, *then]
    scene.producer.begin_transaction()
    scene.producer.send("t", b"unsent", partition=0)
    scene.rig.host.run_until(lambda: "ADD_PARTITIONS_TO_TXN" in scene.coordinator.kinds(), 1000)
    scene.producer.abort_transaction()
    assert scene.coordinator.outcomes == [False], "the coordinator had opened it"
    scene.transact(b"kept")
    assert scene.committed() == [[b"kept"], []]


# Calls out of time and out of order


def test_a_commit_that_runs_late_goes_on_and_is_waited_for_by_the_same_call(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"a", partition=0).result(10)
    scene.coordinator.faults[ApiKey.END_TXN] += [IGNORE]
    with pytest.raises(TimedOut, match="commit_transaction has not ended"):
        scene.producer.commit_transaction(timeout_s=1)
    with pytest.raises(UsageError, match="commit_transaction"):
        scene.producer.abort_transaction()
    with pytest.raises(UsageError, match="commit_transaction"):
        scene.producer.begin_transaction()
    scene.producer.commit_transaction()
    assert scene.committed()[0] == [b"a"]
    scene.transact(b"b")


def test_a_commit_that_ended_after_its_time_is_told_by_the_same_call(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"a", partition=0).result(10)
    with pytest.raises(TimedOut):
        scene.producer.commit_transaction(timeout_s=0)
    scene.rig.host.run_until(lambda: scene.state() is TransactionState.READY, 10_000)
    with pytest.raises(UsageError, match="commit_transaction was not waited for"):
        scene.producer.begin_transaction()
    scene.producer.commit_transaction()
    with pytest.raises(UsageError, match="no transaction is open"):
        scene.producer.commit_transaction()
    assert scene.coordinator.outcomes == [True]


def test_calls_that_do_not_fit_the_state_say_so(scene: Scene) -> None:
    producer = scene.producer
    for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
        with pytest.raises(UsageError, match="init_transactions has not been called"):
            call()
    with pytest.raises(UsageError, match="begin_transaction before sending"):
        producer.send("t", b"v")
    producer.init_transactions()
    with pytest.raises(UsageError, match="init_transactions"):
        producer.init_transactions()
    with pytest.raises(UsageError, match="no transaction is open"):
        producer.send_offsets_to_transaction({SOURCE: 1}, "group")
    producer.begin_transaction()
    with pytest.raises(UsageError, match="a transaction is open"):
        producer.begin_transaction()
    producer.send("t", b"v", partition=0)
    producer.commit_transaction()
    with pytest.raises(UsageError, match="begin_transaction before sending"):
        producer.send("t", b"v", partition=0)
    assert scene.committed()[0] == [b"v"]


def test_a_producer_without_transactional_id_has_no_transactions(scene: Scene) -> None:
    plain = scene.rig.producer()
    with pytest.raises(UsageError, match=r"transactional\.id"):
        plain.init_transactions()
    plain.send("t", b"v", partition=0).result(10)


@pytest.mark.parametrize(
    ("offsets", "group"),
    [
        ({SOURCE: -1}, "group"),
        ({SOURCE: "5"}, "group"),
        ({"source": 5}, "group"),
        ({SOURCE: OffsetAndMetadata(-2)}, "group"),
        ({SOURCE: 1}, ""),
        ({SOURCE: 1}, GroupMetadata("group", 3)),
        ({SOURCE: 1}, None),
    ],
)
def test_offsets_and_groups_that_make_no_sense_are_refused(scene: Scene, offsets: Any, group: Any) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    with pytest.raises(UsageError):
        scene.producer.send_offsets_to_transaction(offsets, group)
    scene.producer.commit_transaction()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"transactional.id": "a", "enable.idempotence": False}, "enable.idempotence"),
        ({"transactional.id": "a", "acks": 1}, "acks=all"),
        ({"transactional.id": "a", "retries": 0}, "retries"),
        ({"transactional.id": "a", "max.in.flight.requests.per.connection": 6}, "max.in.flight"),
        ({"transactional.id": " "}, "transactional.id"),
        ({"transactional.id": "a", "transaction.timeout.ms": 0}, "transaction.timeout.ms"),
    ],
)
def test_settings_that_a_transaction_cannot_keep_are_refused(
    scene: Scene, config: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why.replace(".", r"\.")):
        scene.rig.producer(config)


# Prepared for another process to end


def test_a_prepared_transaction_is_written_and_left_open_by_closing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    acks = [scene.producer.send("t", b"%d" % row, partition=row % 2) for row in range(10)]
    prepared = scene.producer.prepare_transaction()
    assert all(ack.result(0).offset >= 0 for ack in acks)
    assert prepared is not None
    assert prepared.transactional_id == "app"
    header = scene.cluster.produce_requests[0][0][2]
    assert (prepared.producer_id, prepared.epoch) == (header.producer_id, header.producer_epoch)
    with pytest.raises(UsageError, match="no transaction is open"):
        scene.producer.send("t", b"late")
    scene.producer.close()
    assert "END_TXN" not in scene.coordinator.kinds()
    assert caplog.records == []


def test_nothing_sent_is_nothing_prepared(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    assert scene.producer.prepare_transaction() is None


def test_after_preparing_a_producer_goes_on_under_a_new_epoch(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"first", partition=0)
    prepared = scene.producer.prepare_transaction()
    assert prepared is not None
    with pytest.raises(UsageError, match="init_transactions has not been called"):
        scene.producer.begin_transaction()
    scene.producer.init_transactions()
    scene.transact(b"second")
    header = scene.cluster.produce_requests[-1][0][2]
    assert (header.producer_epoch, header.base_sequence) == (prepared.epoch + 1, 0)


def test_what_cannot_be_delivered_cannot_be_prepared(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.producer.send("t", b"a", partition=7)
    with pytest.raises(TransactionFailed):
        scene.producer.prepare_transaction()
    scene.producer.abort_transaction()


def test_a_preparation_that_runs_late_is_waited_for_by_the_same_call(scene: Scene) -> None:
    scene.producer.init_transactions()
    scene.producer.begin_transaction()
    scene.coordinator.faults[ApiKey.ADD_PARTITIONS_TO_TXN] += [IGNORE]
    scene.producer.send("t", b"a", partition=0)
    with pytest.raises(TimedOut, match="prepare_transaction has not ended"):
        scene.producer.prepare_transaction(timeout_s=0.5)
    with pytest.raises(UsageError, match="prepare_transaction"):
        scene.producer.begin_transaction()
    assert scene.producer.prepare_transaction(timeout_s=120) is not None


# The table


def test_every_state_can_be_reached_and_only_the_fatal_one_is_an_end() -> None:
    reached, edge = set(), {TransactionState.UNINITIALIZED}
    while edge:
        reached |= edge
        edge = {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached
    assert reached == set(TransactionState)
    for state in TransactionState:
        ways = {
            target
            for (source, trigger), target in TRANSITIONS.items()
            if source is state and trigger is not TransactionTrigger.DOOMED
        }
        assert bool(ways) == (state is not TransactionState.FATAL_ERROR)
    assert {trigger for _, trigger in TRANSITIONS} == set(TransactionTrigger)
