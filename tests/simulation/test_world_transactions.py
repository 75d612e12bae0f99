"""World `transactions` (producers that do what Java's do, real brokers): fixed seeds."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.simulation.java_producer import Ended, ScriptedBatch, ScriptedTransaction
from fairlead_kafka.simulation.world_transactions import (
    TransactionsWorld,
    check_transactions,
    out_of_order,
    run_seed,
)

SEEDS = 8


def test_no_answer_fails_an_application_and_transactions_are_whole() -> None:
    outcomes = [run_seed(seed) for seed in range(SEEDS)]
    assert not [str(outcome) for outcome in outcomes if outcome.violations]
    assert (
        sum(outcome.acknowledged for outcome in outcomes) > sum(outcome.records for outcome in outcomes) / 3
    )


def test_a_seed_tells_the_same_story_every_time() -> None:
    first, second = run_seed(3), run_seed(3)
    assert (first.digest, first.steps) == (second.digest, second.steps)


@pytest.mark.parametrize(
    ("ended", "seen", "wrong"),
    [
        (Ended.COMMITTED, {(0, 1), (0, 2)}, False),
        (Ended.COMMITTED, {(0, 1)}, True),
        (Ended.COMMITTED, set(), True),
        (Ended.ABORTED, set(), False),
        (Ended.ABORTED, {(0, 2)}, True),
        (Ended.OPEN, {(0, 2)}, False),
    ],
)
def test_a_transaction_is_seen_whole_or_not_at_all(
    ended: Ended, seen: set[tuple[int, int]], wrong: bool
) -> None:
    producer = TransactionsWorld(0).producers[0]
    batches = [ScriptedBatch(serial, TopicPartition("orders", 0), serial) for serial in (1, 2)]
    producer.transactions = [ScriptedTransaction(0, 0, batches, ended)]
    assert bool(check_transactions(producer, seen)) is wrong


def test_records_of_a_producer_come_once_and_in_order() -> None:
    assert out_of_order({("orders", 0): [b"0/1/", None, b"1/1/", b"0/2/"]}) == []
    assert len(out_of_order({("orders", 0): [b"0/1/", b"0/1/"]})) == 1
    assert len(out_of_order({("orders", 0): [b"0/2/", b"1/1/", b"0/1/"]})) == 1
