"""KIP-480 and round robin: the KIP's own words, one test each."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from fairlead_kafka.partitioning import RoundRobinPolicy, StickyPolicy, TopicLoad, make_policy

BATCH_SIZE_BYTES = 1061
"""Ten records of 100 bytes and a header."""


class Script:
    """Rng that draw what the test says, and nothing more often than that."""

    def __init__(self, *draws: int) -> None:
        self.draws = list(draws)

    def random(self) -> float:
        raise AssertionError("policies draw integers")

    def randrange(self, stop: int, /) -> int:
        drawn = self.draws.pop(0)
        assert drawn < stop
        return drawn


def load_of(
    partition_count: int, available: list[int] | None = None, rooms: dict[int, int] | None = None
) -> TopicLoad:
    return TopicLoad(
        partition_count,
        range(partition_count) if available is None else available,
        [0] * partition_count,
        (),
        lambda partition: (rooms or {}).get(partition, 0),
    )


def records(count: int, size_bytes: int = 100) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.full(count, size_bytes, dtype=np.int64)


def test_records_stick_until_the_batch_is_full_and_then_go_elsewhere() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(1, 0, 1))
    assert policy.place(records(25), load_of(3)) == [(1, 10), (0, 20), (2, 25)]


def test_with_no_linger_each_record_sent_at_once_goes_to_another_partition() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Random(1))
    placed = [policy.place(records(1), load_of(30))[0][0] for _ in range(200)]
    assert all(before != after for before, after in pairwise(placed))
    assert len(set(placed)) == 30


def test_a_batch_still_open_is_joined_by_the_next_call() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(2, 0))
    assert policy.place(records(4), load_of(3)) == [(2, 4)]
    assert policy.place(records(9), load_of(3, rooms={2: 600})) == [(2, 6), (0, 9)]


def test_turning_to_a_partition_with_an_open_batch_does_not_turn_again() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(0, 1, 0))
    assert policy.place(records(15), load_of(3, rooms={2: 300})) == [(0, 10), (2, 13), (0, 15)]


def test_a_record_that_does_not_fit_goes_elsewhere() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(0, 0))
    runs = policy.place(np.array([500, 400, 300], dtype=np.int64), load_of(3))
    assert runs == [(0, 2), (1, 3)]


def test_a_record_larger_than_a_batch_is_a_batch() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(0, 0, 0))
    assert policy.place(np.array([100, 5000, 100], dtype=np.int64), load_of(3)) == [(0, 1), (1, 2), (0, 3)]


def test_an_unavailable_partition_is_passed_over() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Random(1))
    placed = {
        partition
        for _ in range(50)
        for partition, _ in policy.place(records(10), load_of(4, available=[0, 3]))
    }
    assert placed == {0, 3}


def test_a_sticky_partition_that_becomes_unavailable_is_left_at_the_next_batch() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(1, 0))
    policy.place(records(1), load_of(3))
    assert policy.place(records(12), load_of(3, available=[0, 2], rooms={1: 900})) == [(1, 9), (0, 12)]


def test_the_only_available_partition_is_kept_without_drawing() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script())
    assert policy.place(records(35), load_of(3, available=[2])) == [(2, 35)]


def test_with_no_partition_available_all_are_candidates() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(2, 1))
    assert policy.place(records(20), load_of(3, available=[])) == [(2, 10), (1, 20)]


def test_a_keyed_record_that_opens_a_batch_on_the_sticky_partition_turns_the_policy() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(1, 0))
    policy.place(records(1), load_of(3))
    policy.on_new_batch(1, load_of(3))
    assert policy.current == 0


def test_a_keyed_record_that_opens_a_batch_elsewhere_does_not() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(1))
    policy.place(records(1), load_of(3))
    policy.on_new_batch(2, load_of(3))
    assert policy.current == 1


def test_the_other_partitions_are_equally_likely() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Random(7))
    runs = policy.place(records(40_000), load_of(5))
    counts = np.bincount([partition for partition, _ in runs])
    assert (abs(counts - 800) < 80).all()


def test_a_topic_that_lost_partitions_is_drawn_for_anew() -> None:
    policy = StickyPolicy(batch_size_bytes=BATCH_SIZE_BYTES, rng=Script(4, 1))
    policy.place(records(1), load_of(5))
    assert policy.place(records(1), load_of(2)) == [(1, 1)]


def test_round_robin_goes_through_the_available_partitions_and_on_from_call_to_call() -> None:
    policy = RoundRobinPolicy()
    assert list(policy.place(records(4), load_of(3))) == [0, 1, 2, 0]
    assert list(policy.place(records(3), load_of(3))) == [1, 2, 0]
    assert list(policy.place(records(3), load_of(3, available=[0, 2]))) == [2, 0, 2]
    assert list(policy.place(records(2), load_of(3, available=[]))) == [1, 2]


def test_round_robin_leaves_no_partition_out_when_batches_open() -> None:
    policy = RoundRobinPolicy()
    placed = []
    for _ in range(6):
        partition = int(policy.place(records(1), load_of(4))[0])
        policy.on_new_batch(partition, load_of(4))
        placed.append(partition)
    assert placed == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("name", ["round_robin", "sticky", "uniform", "uniform.kafka", "adaptive"])
def test_every_policy_of_the_kips_places_nothing_as_nothing_and_binds_at_append(name: str) -> None:
    policy = make_policy(name, batch_size_bytes=BATCH_SIZE_BYTES, rng=Random(1))
    assert len(policy.place(records(0), load_of(3))) == 0
    assert (policy.name, policy.binds_at) == (name, "append")
