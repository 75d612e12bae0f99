"""The account of bytes, and late binding's quotas: who is next, what is kept for whom, who does not
count."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.partitioning import BrokerView, ByteCounter, LatePolicy, kept_bytes, levelled, make_policy
from fairlead_kafka.partitioning.tuning import OWED_SPAN_S, SKEW_RATIO

EACH = {0: [0], 1: [1], 2: [2]}
"""Three brokers with a partition each."""
BATCH = 1000
UNBOUND = 2**63 - 1
MUCH = 10**9
NOW = BrokerView(0, MUCH, free=True)
"""A broker that is free, and takes what there is."""


def policy_of(led: dict[int, list[int]], skew_bytes: int | None = None, seed: int = 1) -> LatePolicy:
    policy = LatePolicy(batch_size_bytes=BATCH, skew_bytes=skew_bytes, rng=Random(seed))
    policy.arrange(led, sum(map(len, led.values())))
    return policy


def busy(wait_ms: int, takes_bytes: int = MUCH) -> BrokerView:
    """A broker that will be free so much later."""
    return BrokerView(wait_ms * NS_PER_MS, takes_bytes, free=False)


def open_bytes(
    policy: LatePolicy, waiting_bytes: int, views: dict[int, BrokerView], ratio: float = 1.0, now_ms: int = 0
) -> int:
    """What those that are free may take together."""
    return policy.quotas(waiting_bytes, views, ratio, now_ms * NS_PER_MS)[0]


def round_of(policy: LatePolicy, brokers: list[int], size_bytes: int = BATCH) -> int:
    """One request with one batch, for whichever of these brokers needs it most; the partition that
    it was for."""
    _, quotas = policy.quotas(size_bytes, dict.fromkeys(brokers, NOW), 1.0, 0)
    partition = policy.next_in_round(quotas[0].broker)
    if partition >= 0:
        policy.placed(partition, size_bytes)
    policy.end_round()
    return partition


@pytest.mark.parametrize(
    ("quotas", "kept"),
    [
        ([], 0),
        ([(0, 70.0)], 70),  # it is free by now
        ([(5, 100.0)], 50),
        ([(20, 100.0)], 0),  # twice as much will come
        ([(20, 300.0), (5, 100.0)], 200),  # both need what the last 20 bring, and 200 more
        ([(20, 10.0), (5, 100.0)], 50),  # what comes after the first is free is more than the second wants
    ],
)
def test_no_more_is_kept_than_will_not_come_in_time(quotas: list[tuple[int, float]], kept: float) -> None:
    assert kept_bytes(quotas, rate=10.0) == kept


@pytest.mark.parametrize(
    ("levels", "size_bytes", "parts"),
    [
        ([(5.0, 1)], 0, [0]),
        ([(0.0, 1), (10.0, 1)], 4, [4, 0]),
        ([(10.0, 1), (0.0, 1)], 14, [2, 12]),
        ([(0.0, 2), (12.0, 1)], 48, [40, 8]),
        ([(7.0, 3), (7.0, 3), (90.0, 1)], 30, [15, 15, 0]),
    ],
)
def test_what_is_given_out_brings_those_with_least_to_one_level(
    levels: list[tuple[float, int]], size_bytes: int, parts: list[int]
) -> None:
    assert levelled(levels, size_bytes) == parts


def test_what_a_busy_broker_lacks_is_kept_for_it() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    for partition in (1, 2):
        policy.placed(partition, 3000)
    views = {0: busy(20), 1: NOW, 2: NOW}
    # 6,000 are placed and 600 wait: its even part is 2,200, and it has nothing, so all that waits
    # is for it.
    assert open_bytes(policy, 600, views) == 0
    # It may be behind by 2,000: then 200 are for it.
    policy.skew_bytes = 2000
    assert open_bytes(policy, 600, views) == 400
    policy.skew_bytes = UNBOUND
    assert open_bytes(policy, 600, views) == 600


def test_a_free_broker_that_lacks_something_is_first() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    policy.placed(2, 3000)
    waiting_bytes, quotas = policy.quotas(900, {0: busy(20), 1: NOW, 2: NOW}, 1.0, 0)
    # Of 3,900 the part of each is 1,300: 0 and 1 lack that, though 0 is to find all that waits.
    assert (waiting_bytes, quotas[0].broker, quotas[0].lacks_bytes) == (900, 1, 1300)


def test_each_broker_leaves_to_those_after_it_what_they_lack() -> None:
    policy = policy_of(EACH, skew_bytes=100)
    waiting_bytes, quotas = policy.quotas(3000, dict.fromkeys(EACH, NOW), 1.0, 0)
    assert waiting_bytes == 3000
    assert [quota.lacks_bytes for quota in quotas] == [900] * 3
    assert [quota.most_bytes for quota in quotas] == [1100] * 3


def test_a_part_of_a_record_that_somebody_lacks_is_open() -> None:
    """Else nobody would take the first of all."""
    policy = policy_of(EACH, skew_bytes=0)
    assert open_bytes(policy, 1, {0: NOW, 1: busy(0), 2: busy(0)}) == 1


def test_no_more_is_kept_than_a_broker_takes() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    for partition in (1, 2):
        policy.placed(partition, 100_000)
    assert open_bytes(policy, 5000, {0: busy(1, 700), 1: NOW, 2: NOW}) == 4300


def test_what_will_come_until_a_broker_is_free_has_not_to_wait_by_now() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    policy.observe(0, 0)
    policy.observe(500_000, 500 * NS_PER_MS)  # 1,000 bytes in a ms
    # Of 3,000 that wait and 2,000 that come its part is 1,666.
    assert open_bytes(policy, 3000, {0: busy(2), 1: NOW, 2: NOW}, now_ms=500) == 3000
    assert open_bytes(policy, 3000, {0: busy(1), 1: NOW, 2: NOW}, now_ms=500) == 3000 - 334


def test_a_burst_is_not_expected_to_go_on() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    policy.observe(0, 0)
    policy.observe(100_000, 25 * NS_PER_MS)  # as if in 200 ms
    assert open_bytes(policy, 3000, {0: busy(2), 1: NOW, 2: NOW}, now_ms=25) == 3000 - 334


def test_compression_is_counted_as_it_is_estimated() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    for partition in (1, 2):
        policy.placed(partition, 100)
    # 4,000 that wait come to 400: its even part of 600 is 200, which are 2,000 before compression.
    assert open_bytes(policy, 4000, {0: busy(1), 1: NOW, 2: NOW}, ratio=0.1) == 2000


def test_by_default_a_broker_may_be_behind_by_a_batch_or_by_a_part_of_what_was_placed_lately() -> None:
    policy = policy_of({0: [0], 1: [1]})
    views = {0: busy(1), 1: NOW}
    policy.observe(0, 0)
    policy.placed(0, 9 * BATCH)
    policy.placed(1, 11 * BATCH)
    assert open_bytes(policy, 100, views) == 50  # behind by a batch and half of what waits
    for partition in (0, 1):
        policy.placed(partition, 10**6)
    skew_bytes = (10**6 * 2 + 20 * BATCH) * SKEW_RATIO / 2
    assert open_bytes(policy, 10**6, views) == pytest.approx(10**6 / 2 - BATCH + skew_bytes, abs=1)


def test_what_a_broker_missed_long_ago_is_forgotten() -> None:
    policy = policy_of({0: [0], 1: [1]})
    for second in range(60):
        policy.placed(1, 10_000)
        policy.observe(0, second * NS_PER_S)
        policy.check()
        placed = policy.counter.placed_bytes
        assert placed[1] - placed[0] <= 2 * (OWED_SPAN_S * 10_000 + BATCH)
    assert policy.counter.placed_bytes[0] > 300_000


def test_the_broker_furthest_behind_is_first_and_so_is_its_partition() -> None:
    policy = policy_of({0: [0, 1], 1: [2, 3]})
    for partition, size_bytes in enumerate((5000, 9000, 2000, 30_000)):
        policy.placed(partition, size_bytes)
    _, quotas = policy.quotas(10, {1: NOW, 0: NOW}, 1.0, 0)
    assert [quota.broker for quota in quotas] == [0, 1]
    assert [
        policy.next_in_round(0),
        policy.next_in_round(1),
        policy.next_in_round(0),
        policy.next_in_round(0),
    ] == [
        0,
        2,
        1,
        -1,
    ]


def test_no_partition_gets_two_turns_for_one_request() -> None:
    policy = policy_of({0: [0, 1, 2, 3]})
    taken = [policy.next_in_round(0) for _ in range(5)]
    assert sorted(taken[:4]) == [0, 1, 2, 3]
    assert taken[4] == -1
    policy.end_round()
    assert policy.next_in_round(0) >= 0


def test_dice_decide_among_the_nearly_least() -> None:
    firsts = {round_of(policy_of(EACH, seed=seed), [0, 1, 2]) for seed in range(30)}
    assert firsts == {0, 1, 2}


def test_nothing_is_kept_for_a_partition_that_is_away_and_it_comes_back_level() -> None:
    policy = policy_of(EACH, skew_bytes=0)
    policy.counter.leave([0])
    for _ in range(50):
        round_of(policy, [1, 2])
    assert open_bytes(policy, 10, {0: busy(1), 1: NOW, 2: NOW}) == 10
    policy.counter.come_back([0])
    placed = policy.counter.placed_bytes
    assert placed[0] == sum(placed[1:]) // 2
    taken = [round_of(policy, [0, 1, 2]) for _ in range(30)]
    assert 8 <= taken.count(0) <= 12


def test_a_broker_that_is_away_still_gets_turns_when_it_can_take_them() -> None:
    policy = policy_of(EACH)
    policy.counter.leave([0])
    for _ in range(20):
        round_of(policy, [1, 2])
    assert round_of(policy, [0, 1, 2]) == 0


def test_coming_back_twice_or_without_having_left_changes_nothing() -> None:
    policy = policy_of(EACH)
    policy.counter.come_back([0])
    policy.counter.leave([0])
    policy.counter.come_back([0])
    policy.placed(1, BATCH)
    policy.counter.come_back([0])
    assert policy.counter.placed_bytes[0] == 0


def test_if_all_are_away_all_is_open_to_anybody() -> None:
    policy = policy_of(EACH)
    round_of(policy, [1])
    policy.counter.leave([0, 1, 2])
    assert policy.counter.least_bytes() is None
    assert open_bytes(policy, 10, dict.fromkeys(EACH, NOW)) == 10
    policy.observe(0, 0)


def test_a_partition_without_a_leader_gets_no_turn_and_new_ones_begin_level() -> None:
    policy = policy_of(EACH)
    for _ in range(9):
        round_of(policy, [0, 1, 2])
    policy.arrange({0: [0, 3], 2: [2]}, 4)
    assert policy.counter.placed_bytes[3] == min(policy.counter.placed_bytes[:3])
    assert policy.counter.is_away(1)
    assert 1 not in {round_of(policy, [0, 1, 2]) for _ in range(50)}


def test_a_leader_that_moves_takes_its_account_along() -> None:
    policy = policy_of(EACH)
    for _ in range(9):
        round_of(policy, [0, 1, 2])
    before = list(policy.counter.placed_bytes)
    policy.arrange({0: [0, 1], 2: [2]}, 3)
    assert policy.counter.placed_bytes == before
    assert 1 in {round_of(policy, [0]) for _ in range(5)}


@pytest.mark.parametrize(("skew_bytes", "came_to"), [(-1, None), (0, 0), (77, 77), (UNBOUND, UNBOUND)])
def test_the_skew_goes_by_traffic_unless_it_is_given(skew_bytes: int, came_to: int | None) -> None:
    policy = make_policy("late", batch_size_bytes=16_384, rng=Random(1), skew_bytes=skew_bytes)
    assert isinstance(policy, LatePolicy)
    assert (policy.skew_bytes, policy.binds_at) == (came_to, "drain")


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 3)), st.integers(1, 5 * BATCH)), max_size=120),
    st.sampled_from([0, 300, BATCH, 5000, None]),
    st.integers(0, 100),
)
def test_no_more_is_given_out_than_waits_and_all_that_waits_if_all_are_free(
    steps: list[tuple[set[int], int]], skew_bytes: int | None, seed: int
) -> None:
    """Whichever are free whenever, and whatever comes meanwhile."""
    led = {0: [0], 1: [1], 2: [2, 3], 3: [4]}
    policy = policy_of(led, skew_bytes, seed)
    waiting = 0
    for free, came in steps:
        waiting += came
        found, quotas = policy.quotas(
            waiting, {each: NOW if each in free else busy(1) for each in led}, 1.0, 0
        )
        assert 0 <= found <= waiting
        assert {quota.broker for quota in quotas} in (free, set())
        assert found == waiting or len(free) < len(led)
        for broker, _, most_bytes in quotas:
            taken = min(int(most_bytes), found)
            policy.placed(policy.next_in_round(broker), taken)
            found, waiting = found - taken, waiting - taken
        policy.end_round()
        policy.counter.check()


@given(
    st.lists(st.tuples(st.sampled_from(["round", "leave", "come_back"]), st.integers(0, 3)), max_size=150),
    st.integers(0, 100),
)
def test_those_that_stay_in_account_stay_even_whoever_leaves_and_comes_back(
    todo: list[tuple[str, int]], seed: int
) -> None:
    led = {0: [0], 1: [1], 7: [2, 3]}
    policy = policy_of(led, None, seed)
    away: set[int] = set()
    for what, partition in todo:
        if what == "round":
            round_of(policy, [[0, 1, 7, 7][partition], [1, 7, 0, 0][partition]])
        elif what == "leave":
            policy.counter.leave([partition])
            away.add(partition)
        else:
            policy.counter.come_back([partition])
            away.discard(partition)
        counted = [policy.counter.placed_bytes[each] for each in range(4) if each not in away]
        assert policy.counter.least_bytes() == min(counted, default=None)
        for broker, partitions in led.items():
            those = [policy.counter.placed_bytes[each] for each in partitions if each not in away]
            assert policy.counter.counted_of(broker) == (sum(those), len(those))


def test_what_a_broker_has_in_account_is_told_by_its_partitions_of_now_and_after_others_were_lifted() -> None:
    policy = policy_of({0: [0], 1: [1, 2]})
    for partition, size_bytes in enumerate((900, 300, 400)):
        policy.placed(partition, size_bytes)
    counter = policy.counter
    assert [counter.counted_of(broker) for broker in (0, 1, 5)] == [(900, 1), (700, 2), (0, 0)]
    counter.lift(350)
    assert counter.counted_of(1) == (350 + 400, 2)
    policy.arrange({0: [0, 2], 1: [1]}, 3)
    assert (counter.counted_of(0), counter.counted_of(1), counter.counted) == ((1300, 2), (350, 1), 3)


def test_turns_follow_the_bytes_not_their_number() -> None:
    counter = ByteCounter(near_bytes=0, rng=Random(1))
    counter.arrange({0: [0, 1]}, 2)
    order = []
    for _ in range(90):
        partition = counter.next_in_round((0,))
        counter.end_round()
        counter.add(partition, 200 if partition else 100)
        order.append(partition)
    assert order.count(0) == pytest.approx(60, abs=1)
    assert all(one != following or one == 0 for one, following in pairwise(order))
