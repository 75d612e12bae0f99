"""What is kept for a broker that lags, and what the others may take, as arithmetic."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from fairlead_kafka.partitioning import LatePolicy
from fairlead_kafka.producer.handover import Handover
from fairlead_kafka.producer.late import LateQueue
from fairlead_kafka.producer.reserve import MOST_PARTS, Reserve, Turn
from fairlead_kafka.records import columns_from_lists
from fairlead_kafka.simulation.application import Handed

RECORD = 100
"""What a record of ours takes in the queue, in bytes."""
FULL = 2_000
LEAD = 6_000
COMING = 6_000
"""Between the turns of broker 0, which leads one partition of three."""
TURN_NS = 20_000_000


def queue(records: int, placed: tuple[int, ...] = (0, 0, 0), lead_bytes: int = LEAD, led: dict[int, list[int]] | None = None) -> LateQueue:
    policy = LatePolicy(batch_size_bytes=FULL, lead_bytes=lead_bytes, dice=Random(1))
    policy.arrange(led or {0: [0], 1: [1], 2: [2]}, len(placed))
    for partition, size_bytes in enumerate(placed):
        policy.placed(partition, size_bytes)
    late = LateQueue(policy)
    columns = columns_from_lists(None, [b"x" * (RECORD - 10)], None, None)
    for _ in range(records):
        late.append(Handover("t", columns, None, Handed("t", 0, 1, 0, lambda *_: None), created_ns=0, reserved_bytes=RECORD), None)
    return late


def reserve(late: LateQueue, left_ns: int = 0, others: tuple[int, ...] = (1, 2), **more: Any) -> Reserve:
    late.turns.setdefault(0, Turn(0, 1, TURN_NS, COMING))
    return Reserve(late, {0: 1 + left_ns}, others, FULL, more.get("ratio", 1.0), now_ns=1)


def test_where_nobody_lags_everything_is_the_others() -> None:
    late = queue(7)
    assert Reserve(late, {}, (0, 1, 2), FULL, 1.0, now_ns=1).others_bytes() == late.size_bytes


def test_while_enough_is_still_to_come_everything_is_the_others() -> None:
    late = queue(20, placed=(1_000, 0, 0))
    assert reserve(late, left_ns=TURN_NS).others_bytes() == late.size_bytes


def test_from_when_the_rest_is_its_portion_nothing_is_the_others() -> None:
    """Level at its last turn's middle: behind by half a part, so its portion is a whole one, 2,000, and a third of the time is left."""
    late = queue(0, placed=(0, 1_000, 1_000))
    assert reserve(late, left_ns=TURN_NS // 3).others_bytes() == pytest.approx(0, abs=1)
    assert reserve(late, left_ns=TURN_NS // 4).others_bytes() < 0
    assert reserve(late, left_ns=TURN_NS // 2).others_bytes() == 0


def test_while_it_is_late_the_others_get_two_thirds_of_what_comes() -> None:
    late = queue(50, placed=(0, 1_000, 1_000))
    assert reserve(late).others_bytes() == pytest.approx((late.size_bytes - 2_000) * 2 / 3, abs=1)


def test_what_the_others_take_makes_it_lag_behind_by_so_much_more() -> None:
    late = queue(50, placed=(0, 1_000, 1_000))
    kept = reserve(late)
    before, most = kept.portion_bytes(0), kept.others_bytes()
    kept.took(1, most, lags=False)
    assert kept.portion_bytes(0) == pytest.approx(before + most / 2, abs=1)
    assert kept.portion_bytes(0) == pytest.approx(late.size_bytes - most, abs=2)  # which is what they left


def test_a_turn_makes_up_for_so_much_and_no_more() -> None:
    late = queue(1, placed=(0, 250_000, 250_000), lead_bytes=150_000)
    late.turns[0] = Turn(0, 1, TURN_NS, 300_000)
    assert reserve(late).portion_bytes(0) == MOST_PARTS * 100_000


def test_far_from_the_lead_nothing_is_kept_for_anybody() -> None:
    late = queue(20, placed=(0, 9_000, 9_000), lead_bytes=2**63 - 1)
    kept = reserve(late)
    assert kept.others_bytes() == late.size_bytes
    assert kept.portion_bytes(0) <= 0


def test_where_they_have_to_wait_at_the_lead_it_takes_as_much_as_lets_them_have_the_rest_and_what_comes() -> None:
    """Without any lead: a third of what waits, and of what comes until its next turn a third of the two thirds that are theirs."""
    late = queue(90, lead_bytes=0)
    assert reserve(late).portion_bytes(0) == pytest.approx(late.size_bytes / 3 + 2 / 3 * 2_000, abs=1)


def test_of_two_that_lag_each_finds_its_portion_when_it_is_back() -> None:
    late = queue(80, placed=(0, 0, 1_000))
    turn = Turn(0, 1, TURN_NS, COMING)
    late.turns.update({0: turn, 1: turn})
    portion = 1_000 + COMING / 6
    now = Reserve(late, {0: 1, 1: 1}, (2,), FULL, 1.0, now_ns=1)
    assert now.others_bytes() == pytest.approx((late.size_bytes - 2 * portion) / 3, abs=1)
    one_later = Reserve(late, {0: 1, 1: 1 + TURN_NS}, (2,), FULL, 1.0, now_ns=1)
    assert one_later.others_bytes() == pytest.approx((late.size_bytes - portion) / 2, abs=1)


def test_a_broker_with_several_partitions_has_an_even_part_of_each() -> None:
    late = queue(0, placed=(0, 0, 500, 500), led={0: [0, 1], 1: [2], 2: [3]})
    assert reserve(late).portion_bytes(0) == 2 * 500 + COMING // 4


def test_an_account_in_compressed_bytes_is_four_times_as_much_in_the_queue_at_a_ratio_of_a_quarter() -> None:
    late = queue(0, placed=(0, 250, 250), lead_bytes=LEAD // 4)
    assert reserve(late, ratio=0.25).portion_bytes(0) == 1_000 + COMING // 6


def test_who_is_out_of_account_is_kept_nothing_for_and_compared_with_nobody() -> None:
    late = queue(20, placed=(0, 9_000, 9_000))
    late.policy.account.leave([0])
    kept = reserve(late)
    assert (kept.others_bytes(), kept.portion_bytes(0)) == (late.size_bytes, 0)
    late.policy.account.leave([1, 2])
    assert reserve(late).others_bytes() == late.size_bytes


def test_intervals_and_what_comes_are_averages_of_the_last_few_turns() -> None:
    late = queue(10)
    first = Reserve(late, {0: 100}, (1, 2), FULL, 1.0, now_ns=100)
    first.took(0, 500, lags=True)
    first.took(1, 500, lags=False)
    first.end_round()
    assert late.turns == {0: Turn(late.arrived_bytes, 100, 0, late.size_bytes)}
    for now_ns, interval_ns in ((300, 200), (400, 150)):
        turn = Reserve(late, {0: 100}, (1, 2), FULL, 1.0, now_ns)
        turn.took(0, 500, lags=True)
        turn.end_round()
        assert late.turns[0].interval_ns == interval_ns
    assert late.turns[0].coming_bytes == late.size_bytes // 4  # nothing came since
    Reserve(late, {0: 100}, (1, 2), FULL, 1.0, now_ns=900).end_round()
    assert late.turns[0].at_ns == 400  # nothing was taken: no turn
