"""Quanta that are taken together: one stretch of records for each partition, where several quanta
for all of them come at once."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from fairlead_kafka.partitioning import AdaptivePolicy, TopicLoad, UniformPolicy, UnkeyedPolicy
from fairlead_kafka.partitioning.uniform import spread_quanta
from tests.unit.test_partitioning_uniform import load_of, records


def bytes_of(
    policy: UnkeyedPolicy, sizes: np.ndarray[tuple[int], np.dtype[np.int64]], load: TopicLoad
) -> list[int]:
    """What each partition gets of records that are handed over at once."""
    got = [0] * load.partition_count
    start = 0
    for partition, stop in policy.place(sizes, load):
        got[partition] += int(sizes[start:stop].sum())
        start = stop
    return got


def together(
    policy: type[AdaptivePolicy] | type[UniformPolicy], seed: int = 1
) -> AdaptivePolicy | UniformPolicy:
    return policy(batch_size_bytes=1000, rng=Random(seed), together=True)


def test_uniform_gives_many_turns_out_in_one_stretch_for_each_partition() -> None:
    policy, load = together(UniformPolicy), load_of(4, available=[0, 1, 3])
    runs = policy.place(records(1000, 100), load)
    assert sorted(partition for partition, _ in runs) == [0, 1, 3]
    assert runs.ended
    stops = [0, *(stop for _, stop in runs)]
    assert {stop - start for start, stop in pairwise(stops)} <= {333, 334}


def test_what_is_less_than_two_turns_for_each_comes_turn_by_turn() -> None:
    policy = together(UniformPolicy)
    assert len(policy.place(records(59, 100), load_of(3))) > 3
    apart = UniformPolicy(batch_size_bytes=1000, rng=Random(1))
    assert len(apart.place(records(1000, 100), load_of(3))) > 3


def test_a_turn_that_has_begun_ends_before_many_are_given_out_and_all_are_level_then() -> None:
    policy, load = together(UniformPolicy), load_of(3)
    begun, *_ = policy.place(records(4, 100), load)
    rooms = {begun[0]: 939 - 400}
    runs = policy.place(records(1000, 100), load_of(3, rooms=rooms))
    assert runs[0][0] == begun[0]
    got = [0] * 3
    got[begun[0]] = 400
    start = 0
    for partition, stop in runs:
        got[partition] += 100 * (stop - start)
        start = stop
    assert max(got) - min(got) <= 300  # a record, and the headers that the quantum counted
    assert runs.ended


@pytest.mark.parametrize("size_bytes", [10, 700, 5000, 40_000])
def test_uniform_stays_level_whatever_comes_at_once(size_bytes: int) -> None:
    """Also where a record is larger than a quantum, or than the part of a partition."""
    policy, load, rng = together(UniformPolicy), load_of(7), Random(3)
    total = np.zeros(7, np.int64)
    for _ in range(40):
        total += bytes_of(policy, records(rng.randrange(1, 60_000 // size_bytes + 3), size_bytes), load)
        assert total.max() - total.min() <= 2 * max(2 * 1000 + 61 + size_bytes, size_bytes) + 1000


def test_adaptive_gives_out_many_turns_by_the_weights() -> None:
    """Queues of 0, 3 and 1 weigh 4, 1 and 3; the one without leader nothing, and the unready one
    nothing."""
    load = load_of(5, available=[0, 1, 2, 4], queued=[0, 3, 1, 0, 0], unready=(4,))
    got = bytes_of(together(AdaptivePolicy), records(8000, 10), load)
    assert got == pytest.approx([40_000, 10_000, 30_000, 0, 0], abs=1000)


def test_adaptive_is_right_on_average_where_a_record_is_more_than_a_part() -> None:
    policy, load = together(AdaptivePolicy), load_of(4)
    total = np.sum([bytes_of(policy, records(2, 30_000), load) for _ in range(2000)], axis=0)
    assert total == pytest.approx([30_000 * 1000] * 4, rel=0.1)


def test_turns_are_spread_at_equal_distances() -> None:
    assert spread_quanta(4, [1, 3], 0.5) == [1, 3]
    assert spread_quanta(4, [1, 3], 0.9) == [2, 2]
    assert spread_quanta(4, [1, 3], 0.0) == [1, 3]
    assert spread_quanta(0, [1, 3], 0.9) == [0, 0]
    assert spread_quanta(7, [2], 0.999) == [7]
    mean = np.mean([spread_quanta(10, [1, 3, 6], jitter / 100) for jitter in range(100)], axis=0)
    assert mean == pytest.approx([10 / 6, 20 / 6, 5], abs=0.05)
