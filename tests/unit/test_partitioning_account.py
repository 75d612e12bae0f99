"""The account of bytes, and late binding's turns: who is next, who waits for whom, who does not count."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.partitioning import Account, LatePolicy, make_policy

EACH = {0: [0], 1: [1], 2: [2]}
"""Three brokers with a partition each."""
BATCH = 1000
UNBOUND = 2**63 - 1


def policy_of(led: dict[int, list[int]], lead_bytes: int = BATCH, seed: int = 1) -> LatePolicy:
    policy = LatePolicy(batch_size_bytes=BATCH, lead_bytes=lead_bytes, dice=Random(seed))
    policy.arrange(led, sum(map(len, led.values())))
    return policy


def turn(policy: LatePolicy, brokers: list[int], size_bytes: int = BATCH) -> int:
    """One request with one batch; the partition that it was for."""
    partition = policy.next_turn(brokers)
    if partition >= 0:
        policy.placed(partition, size_bytes)
    policy.end_turns()
    return partition


def test_the_partition_furthest_behind_is_next() -> None:
    policy = policy_of(EACH)
    for partition, size_bytes in enumerate((5000, 3000, 4000)):
        policy.placed(partition, size_bytes)
    assert turn(policy, [0, 1, 2]) == 1
    assert policy.account.placed_bytes == [5000, 4000, 4000]


def test_a_broker_that_is_not_ready_gets_no_turn_and_the_others_wait_for_it_at_the_lead() -> None:
    policy = policy_of(EACH)
    taken = [turn(policy, [1, 2]) for _ in range(6)]
    assert sorted(taken[:4]) == [1, 1, 2, 2]
    assert taken[4:] == [-1, -1]
    assert turn(policy, [0, 1, 2]) == 0


def test_turns_that_are_overdue_wait_for_nobody_and_what_they_took_is_owed_to_nobody() -> None:
    policy = policy_of(EACH)
    while turn(policy, [1, 2]) >= 0:
        pass
    for _ in range(10):
        partition = policy.next_turn([1, 2], overdue=True)
        assert partition in (1, 2)
        policy.placed(partition, BATCH)
        policy.end_turns()
    assert turn(policy, [1, 2]) == -1
    placed = policy.account.placed_bytes
    assert max(placed) - placed[0] <= 2 * BATCH


def test_without_bound_nobody_waits() -> None:
    policy = policy_of(EACH, lead_bytes=UNBOUND)
    assert -1 not in [turn(policy, [2]) for _ in range(1000)]


def test_no_partition_gets_two_turns_for_one_request() -> None:
    policy = policy_of({0: [0, 1, 2, 3]})
    taken = [policy.next_turn([0]) for _ in range(5)]
    assert sorted(taken[:4]) == [0, 1, 2, 3]
    assert taken[4] == -1
    policy.end_turns()
    assert policy.next_turn([0]) >= 0


def test_dice_decide_among_the_nearly_least() -> None:
    firsts = {turn(policy_of(EACH, seed=seed), [0, 1, 2]) for seed in range(30)}
    assert firsts == {0, 1, 2}


def test_a_partition_that_is_away_holds_nobody_up_and_comes_back_level() -> None:
    policy = policy_of(EACH)
    policy.account.leave([0])
    assert -1 not in [turn(policy, [1, 2]) for _ in range(50)]
    policy.account.come_back([0])
    placed = policy.account.placed_bytes
    assert placed[0] == min(placed[1:])
    taken = [turn(policy, [0, 1, 2]) for _ in range(30)]
    assert 8 <= taken.count(0) <= 12


def test_a_partition_that_is_away_still_gets_turns_when_its_broker_can_take_them() -> None:
    policy = policy_of(EACH)
    policy.account.leave([0])
    for _ in range(20):
        turn(policy, [1, 2])
    assert turn(policy, [0, 1, 2]) == 0


def test_coming_back_twice_or_without_having_left_changes_nothing() -> None:
    policy = policy_of(EACH)
    turn(policy, [1])
    policy.account.come_back([0])
    policy.account.leave([0])
    policy.account.come_back([0])
    policy.account.come_back([0])
    assert policy.account.placed_bytes[0] == 0


def test_if_all_are_away_nobody_waits_for_anybody() -> None:
    policy = policy_of(EACH)
    policy.account.leave([0, 1, 2])
    assert policy.account.least_bytes() is None
    assert -1 not in [turn(policy, [1]) for _ in range(50)]


def test_a_partition_without_a_leader_gets_no_turn_and_new_ones_begin_level() -> None:
    policy = policy_of(EACH)
    for _ in range(9):
        turn(policy, [0, 1, 2])
    policy.arrange({0: [0, 3], 2: [2]}, 4)
    assert policy.account.placed_bytes[3] == min(policy.account.placed_bytes[:3])
    assert policy.account.is_away(1)
    assert 1 not in {turn(policy, [0, 1, 2]) for _ in range(50)}


def test_a_leader_that_moves_takes_its_account_along() -> None:
    policy = policy_of(EACH)
    for _ in range(9):
        turn(policy, [0, 1, 2])
    before = list(policy.account.placed_bytes)
    policy.arrange({0: [0, 1], 2: [2]}, 3)
    assert policy.account.placed_bytes == before
    assert 1 in {turn(policy, [0]) for _ in range(5)}


@pytest.mark.parametrize(("lead_bytes", "came_to"), [(-1, 16_384), (0, 0), (77, 77), (UNBOUND, UNBOUND)])
def test_the_lead_is_the_batch_size_unless_it_is_given(lead_bytes: int, came_to: int) -> None:
    policy = make_policy("late", batch_size_bytes=16_384, dice=Random(1), lead_bytes=lead_bytes)
    assert isinstance(policy, LatePolicy)
    assert (policy.lead_bytes, policy.binds_at) == (came_to, "drain")


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 3)), st.integers(1, BATCH)), max_size=120),
    st.sampled_from([0, 300, BATCH, 5000]),
    st.integers(1, 9),
    st.integers(0, 100),
)
def test_partitions_in_account_never_differ_by_more_than_the_lead_and_one_batch(
    steps: list[tuple[set[int], int]], lead_bytes: int, partition_count: int, seed: int
) -> None:
    """Whichever brokers are ready whenever, whatever batches hold, and with as many of them in a request as there are partitions."""
    led: dict[int, list[int]] = {}
    for partition in range(partition_count):
        led.setdefault(partition % 4, []).append(partition)
    policy = policy_of(led, lead_bytes, seed)
    for ready, size_bytes in steps:
        turns = []
        while (partition := policy.next_turn(sorted(ready))) >= 0:
            turns.append(partition)
            policy.placed(partition, size_bytes)
        assert len(turns) == len(set(turns))
        policy.end_turns()
        placed = policy.account.placed_bytes
        assert max(placed) - min(placed) <= lead_bytes + BATCH


@given(st.lists(st.tuples(st.sampled_from(["turn", "leave", "come_back"]), st.integers(0, 3)), max_size=150), st.integers(0, 100))
def test_those_that_stay_in_account_stay_even_whoever_leaves_and_comes_back(todo: list[tuple[str, int]], seed: int) -> None:
    led = {0: [0], 1: [1], 7: [2, 3]}
    policy = policy_of(led, BATCH, seed)
    away: set[int] = set()
    for what, partition in todo:
        if what == "turn":
            turn(policy, [[0, 1, 7, 7][partition], [1, 7, 7, 0][partition]])
        elif what == "leave":
            policy.account.leave([partition])
            away.add(partition)
        else:
            policy.account.come_back([partition])
            away.discard(partition)
        counted = [policy.account.placed_bytes[each] for each in range(4) if each not in away]
        assert policy.account.least_bytes() == min(counted, default=None)
        for broker, partitions in led.items():
            those = [policy.account.placed_bytes[each] for each in partitions if each not in away]
            assert (policy.account.bytes_of(broker), policy.account.counted_in(broker)) == (sum(those), len(those))


def test_what_a_broker_has_in_account_is_told_by_its_partitions_of_now_and_after_others_were_lifted() -> None:
    policy = policy_of({0: [0], 1: [1, 2]})
    for partition, size_bytes in enumerate((900, 300, 400)):
        policy.placed(partition, size_bytes)
    account = policy.account
    assert (account.bytes_of(0), account.bytes_of(1), account.counted_in(1), account.bytes_of(5), account.counted_in(5)) == (
        900,
        700,
        2,
        0,
        0,
    )
    account.lift(350)
    assert account.bytes_of(1) == 350 + 400
    policy.arrange({0: [0, 2], 1: [1]}, 3)
    assert (account.bytes_of(0), account.bytes_of(1), account.counted) == (1300, 350, 3)


def test_turns_follow_the_bytes_not_their_number() -> None:
    account = Account(near_bytes=0, dice=Random(1))
    account.arrange({0: [0, 1]}, 2)
    order = []
    for _ in range(90):
        partition = account.next_turn([0])
        account.end_turns()
        account.add(partition, 200 if partition else 100)
        order.append(partition)
    assert order.count(0) == pytest.approx(60, abs=1)
    assert all(one != following or one == 0 for one, following in pairwise(order))
