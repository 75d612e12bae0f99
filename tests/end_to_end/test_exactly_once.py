"""The protocol of exactly-once writes, without Spark: crashes at every step, drivers that compete,
transactions that die too early."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import PreparedTransaction
from fairlead_kafka.base.errors import BrokerError, ConfigError, ProducerFenced
from fairlead_kafka.spark.exactly_once import task as tasks
from fairlead_kafka.spark.exactly_once.driver import Committer, Step
from fairlead_kafka.spark.exactly_once.errors import (
    CheckpointBehind,
    CommitUnfinished,
    NotCommitted,
    RowsLost,
)
from fairlead_kafka.spark.exactly_once.parts import TaskPrepared, Writing, parts_of
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.task import TaskStep, prepare
from tests.support.exactly_once_rig import GUARANTEE, TASKS, Crash, Query
from tests.support.waiting import until


@pytest.fixture(scope="module")
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=2) as made:
        yield made


_numbers = itertools.count()


@pytest.fixture
def query(cluster: fairlead_kafka.Cluster) -> Query:
    return Query(cluster.bootstrap_servers, f"query-{next(_numbers)}")


# The way it goes


def test_batches_are_visible_once_they_are_committed(query: Query) -> None:
    parts = query.tasks(0)
    assert query.visible() == []
    assert query.driver().commit(0, parts)
    assert query.visible() == query.all_rows(0)
    assert query.commit(1)
    assert query.visible() == query.all_rows(0, 1)


@pytest.mark.parametrize("step", list(Step))
def test_a_driver_that_dies_at_any_step_leaves_a_batch_that_is_repeated_once(
    query: Query, step: Step
) -> None:
    query.commit(0)
    with pytest.raises(Crash):
        query.driver(crash_at=step).commit(1, query.tasks(1))
    decided = step in (Step.DECIDED, Step.ENDED_SOME, Step.ENDED, Step.DONE)
    assert query.commit(1) is not decided
    assert query.visible() == query.all_rows(0, 1)
    assert query.open_transactions() == []
    query.commit(2)
    assert query.visible() == query.all_rows(0, 1, 2)


@pytest.mark.parametrize("first", [Step.VOTED, Step.ENDED_SOME])
def test_a_driver_that_dies_again_while_it_repairs_leaves_the_batch_whole(query: Query, first: Step) -> None:
    for step in (first, Step.TAKEN_OVER, Step.DECISION_SENT, Step.DECIDED):
        try:
            query.driver(crash_at=step).commit(0, query.tasks(0))
        except Crash:
            continue
    query.commit(0)
    assert query.visible() == query.all_rows(0)
    assert query.open_transactions() == []


@pytest.mark.parametrize("step", [Step.VOTED, Step.DECISION_SENT, Step.DECIDED])
def test_aborting_after_a_failed_commit_takes_back_only_what_was_not_decided(
    query: Query, step: Step
) -> None:
    parts = query.tasks(0)
    with pytest.raises(Crash):
        query.driver(crash_at=step).commit(0, parts)
    query.driver().abort(parts)  # Spark does so with the messages of all tasks
    query.commit(0)
    assert query.visible() == query.all_rows(0)


@pytest.mark.parametrize("step", list(TaskStep))
def test_a_task_that_dies_and_is_repeated_leaves_no_row_behind(query: Query, step: TaskStep) -> None:
    def reached(now: TaskStep) -> None:
        if now is step:
            raise Crash

    with pytest.raises(Crash):
        query.task(0, 0, reached=reached)
    query.commit(0)
    assert query.visible() == query.all_rows(0)
    assert query.open_transactions() == []


def test_of_attempts_that_run_at_once_one_counts_and_the_others_are_aborted(query: Query) -> None:
    winner, losers = query.tasks(0), [query.task(0, 0), query.task(0, 1)]
    assert len(query.open_transactions()) == TASKS + 2
    query.driver().commit(0, winner)
    assert query.open_transactions() == []
    assert query.visible() == query.all_rows(0)
    with pytest.raises(NotCommitted):
        query.driver().commit(1, losers)


def test_tasks_without_rows_have_no_transaction(query: Query) -> None:
    empty = prepare(
        query.client,
        GUARANTEE,
        Writing(query.name, 0),
        query.name,
        iter([pa.record_batch({"value": pa.array([], pa.binary())})]),
    )
    assert empty == TaskPrepared(Writing(query.name, 0), None)
    assert parts_of([empty, None]) == (Writing(query.name, 0), [])
    assert query.driver().commit(0, [])
    assert query.commit(0)
    assert query.visible() == query.all_rows(0)


# Competing drivers


def test_a_driver_that_was_replaced_decides_nothing(query: Query) -> None:
    parts = query.tasks(0)

    def reached(step: Step) -> None:
        if step is Step.VOTED:
            assert query.commit(0)  # the new driver's, with transactions of its own

    with pytest.raises(ProducerFenced):
        Committer(query.client, GUARANTEE, query.name, reached).commit(0, parts)
    assert query.visible() == query.all_rows(0)


def test_a_query_leaves_the_transactions_of_one_alone_whose_name_begins_like_an_id_of_its_own(
    query: Query, cluster: fairlead_kafka.Cluster
) -> None:
    other = Query(cluster.bootstrap_servers, f"{query.name}-task-b")
    parts = other.tasks(0)
    query.commit(0)
    assert len(other.open_transactions()) == TASKS
    assert other.driver().commit(0, parts)
    assert other.visible() == other.all_rows(0)


@pytest.mark.parametrize("name", ["a-task-b", "a-task-", "a-task-" + "0" * 32, "a-task", "A", ""])
def test_no_id_is_one_of_two_names(name: str) -> None:
    drawn = uuid.uuid4().hex
    mine, theirs = (f"{tasks.prefix_of(GUARANTEE, of)}{drawn}" for of in ("a", name))
    assert tasks.is_task_of(GUARANTEE, "a", mine)
    assert tasks.is_task_of(GUARANTEE, name, theirs)
    assert not tasks.is_task_of(GUARANTEE, "a", theirs)
    assert not tasks.is_task_of(GUARANTEE, name, mine)


def test_what_another_driver_has_aborted_is_not_committed(query: Query) -> None:
    late = query.tasks(1)
    query.commit(0)  # takes the transactions of the later batch for leftovers
    with pytest.raises(
        NotCommitted, match="3 of 3 transactions were aborted before the batch could be committed"
    ):
        query.driver().commit(1, late)
    query.commit(1)
    assert query.visible() == query.all_rows(0, 1)


def test_a_transaction_that_was_aborted_while_it_was_written_is_not_committed(
    query: Query, cluster: fairlead_kafka.Cluster
) -> None:
    """Its later rows would be a transaction of their own, under the same epoch."""

    def reached(step: TaskStep) -> None:
        if step is TaskStep.OPENED:
            until(query.open_transactions)  # the coordinator may still have to hear of it
            begun = query.open_transactions()
            with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
                for each, found in admin.describe_transactions(begun).items():
                    admin.end_transactions(
                        [PreparedTransaction(each, found.producer_id, found.epoch, 1)], commit=False
                    )

    def batches() -> Iterator[pa.RecordBatch]:
        for number in (0, 1):
            yield pa.record_batch({"value": [b"x"], "partition": pa.array([number], pa.int32())})

    try:
        part = prepare(
            {**query.client, "linger.ms": "1000"},
            GUARANTEE,
            Writing(query.name, 0),
            query.name,
            batches(),
            reached,
        ).part
    except (NotCommitted, BrokerError):
        return
    assert part is not None
    with pytest.raises(NotCommitted):
        query.driver().commit(0, [part])


def test_a_checkpoint_that_went_back_is_told(query: Query) -> None:
    query.commit(5)
    with pytest.raises(CheckpointBehind, match="batch 5 was committed before"):
        query.commit(4)
    assert query.driver().commit(4, query.tasks(4), repeats_older=True) is False
    assert query.visible() == query.all_rows(5)
    assert query.open_transactions() == []


# Time


def test_a_transaction_that_timed_out_before_the_decision_is_told_and_the_batch_repeated(
    query: Query,
) -> None:
    parts = query.tasks(0)
    query.time_out(parts[1])
    with pytest.raises(
        NotCommitted, match=r"1 of 3 transactions were aborted.*transaction\.max\.timeout\.ms"
    ):
        query.driver().commit(0, parts)
    query.commit(0)
    assert query.visible() == query.all_rows(0)


def test_a_transaction_with_little_time_left_is_not_committed(query: Query) -> None:
    parts = query.tasks(0)
    slow = Committer({**query.client, "transaction.timeout.ms": "1"}, GUARANTEE, query.name)
    with pytest.raises(NotCommitted, match="a transaction is open for"):
        slow.commit(0, parts)


def test_transactions_that_timed_out_after_the_decision_are_replaced_by_those_with_the_same_rows(
    query: Query,
) -> None:
    query.commit(0)
    parts = query.tasks(1)
    with pytest.raises(Crash):
        query.driver(crash_at=Step.DECIDED).commit(1, parts)
    query.time_out(parts[2])
    assert query.commit(1)
    assert query.visible() == query.all_rows(0, 1)
    assert query.open_transactions() == []
    assert query.commit(1) is False


def test_a_replacement_that_times_out_too_is_replaced_again(query: Query) -> None:
    parts = query.tasks(0)
    with pytest.raises(Crash):
        query.driver(crash_at=Step.DECIDED).commit(0, parts)
    query.time_out(parts[0])
    again = query.tasks(0)
    with pytest.raises(Crash):
        query.driver(crash_at=Step.DECIDED).commit(0, again)
    query.time_out(again[0])
    assert query.commit(0)
    assert query.visible() == query.all_rows(0)


def test_a_batch_of_which_nothing_was_committed_is_repeated_with_whatever_rows(query: Query) -> None:
    parts = query.tasks(0)
    with pytest.raises(Crash):
        query.driver(crash_at=Step.DECIDED).commit(0, parts)
    for part in parts:
        query.time_out(part)
    other = [query.task(0, 0, rows=query.rows(0, 7)), query.task(0, 1, rows=query.rows(0, 8))]
    assert query.driver().commit(0, other)
    assert query.visible() == sorted(query.rows(0, 7) + query.rows(0, 8))


def test_rows_that_were_lost_and_do_not_come_again_are_told(query: Query) -> None:
    parts = query.tasks(0)

    def reached(step: Step) -> None:
        if step is Step.DECIDED:
            query.time_out(parts[0])

    with pytest.raises(RowsLost, match=r"1 of its transactions, with 4 rows\. Start the query again"):
        Committer(query.client, GUARANTEE, query.name, reached).commit(0, parts)
    other = [query.task(0, number, rows=query.rows(0, number + 7)) for number in range(TASKS)]
    with pytest.raises(RowsLost, match="do not hold the same rows as the first time"):
        query.driver().commit(0, other)
    assert query.commit(0)
    assert query.visible() == query.all_rows(0)


def test_brokers_that_allow_less_time_are_told_of(query: Query) -> None:
    query.client["transaction.timeout.ms"] = str(2**31 - 1)
    with pytest.raises(ConfigError, match=r"kafka\.transaction\.timeout\.ms"):
        query.task(0, 0)


# Names


def test_an_id_is_not_used_again_while_its_transaction_is_open_or_for_the_same_batch(query: Query) -> None:
    first = query.task(0, 0)
    others = [query.task(1, 0)]
    query.driver().commit(0, [first])
    others.append(query.task(0, 0))
    assert len({part.transaction.transactional_id for part in [first, *others]}) == 3


def test_an_id_is_taken_again_under_a_new_epoch(query: Query) -> None:
    first = query.task(0, 0)
    query.driver().commit(0, [first])
    second = query.task(1, 0)
    assert second.transaction.transactional_id == first.transaction.transactional_id
    assert (second.transaction.producer_id, second.transaction.epoch) == (
        first.transaction.producer_id,
        first.transaction.epoch + 2,  # one for the end (KIP-890), and one for the producer that took it
    )


def test_another_process_makes_up_ids_of_its_own(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    first = query.task(0, 0)
    query.driver().commit(0, [first])
    monkeypatch.setattr(tasks, "os", SimpleNamespace(getpid=lambda: -1))
    assert query.task(1, 0).transaction.transactional_id != first.transaction.transactional_id


def test_a_worker_remembers_ids_of_the_last_queries_and_none_of_named_batch_writes(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_used", {})
    monkeypatch.setattr(tasks, "NAMES_MAX", 2)
    rows = pa.record_batch({"value": ["a"]})
    for version in range(3):
        prepare(query.client, Guarantee(app_id="app"), Writing("app", version), query.name, iter([rows]))
    assert tasks._used == {}
    for name in ("one", "two", "one", "three"):
        prepare(query.client, GUARANTEE, Writing(f"{query.name}-{name}", 0), query.name, iter([rows]))
    remembered = [prefix for _, prefix in tasks._used]
    assert remembered == [tasks.prefix_of(GUARANTEE, f"{query.name}-{name}") for name in ("one", "three")]


@pytest.mark.parametrize("lost", [False, True])
def test_a_batch_that_is_repeated_without_rows_after_its_decision_is_done_with(
    query: Query, lost: bool
) -> None:
    parts = query.tasks(0)
    with pytest.raises(Crash):
        query.driver(crash_at=Step.DECIDED).commit(0, parts)
    if lost:
        for part in parts:
            query.time_out(part)
    query.driver().commit(0, [])
    assert query.open_transactions() == []
    # The workers live on, and take their ids again.
    assert query.commit(1)
    assert query.commit(2)
    assert query.visible() == (query.all_rows(1, 2) if lost else query.all_rows(0, 1, 2))


def test_rows_lost_of_a_write_without_a_name_are_not_said_to_come_again(query: Query) -> None:
    parts = query.tasks(0)

    def reached(step: Step) -> None:
        if step is Step.DECIDED:
            query.time_out(parts[0])

    unnamed = Committer(query.client, GUARANTEE, query.name, reached, remembers=False)
    with pytest.raises(RowsLost, match="compare before you write it again"):
        unnamed.commit(0, parts)


def test_a_driver_that_comes_back_after_brokers_forgot_the_transactions_is_told_what_cannot_be_known() -> (
    None
):
    config = {
        "transactional.id.expiration.ms": 5_000,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 200,
    }
    with fairlead_kafka.Cluster(brokers=1, config=config) as cluster:
        query = Query(cluster.bootstrap_servers, "forgotten")
        parts = query.tasks(0)
        with pytest.raises(Crash):
            query.driver(crash_at=Step.DECIDED).commit(0, parts)
        for part in parts[1:]:
            query.time_out(part)

        def known() -> set[str]:
            with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
                return set(admin.list_transactions())

        until(lambda: not known() & {part.transaction.transactional_id for part in parts[1:]})
        for _ in range(2):
            with pytest.raises(CommitUnfinished, match=r"forgotten 2 of its transactions, with 8 rows"):
                query.commit(0)
        assert query.visible() == sorted(query.rows(0, 0)), "what could be finished is"
