"""The policies against a model of Kafka's accumulator that appends one record after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.partitioning import (
    POLICY_NAMES,
    AdaptivePolicy,
    KafkaUniformPolicy,
    Runs,
    StickyPolicy,
    TopicLoad,
    UniformPolicy,
    expand,
    make_policy,
    sticky,
    uniform,
)
from fairlead_kafka.partitioning.filling import Filling
from fairlead_kafka.partitioning.load import SizeArray

HEADER_BYTES = 61


@dataclass
class OpenBatch:
    used_bytes: int = HEADER_BYTES
    closed: bool = False


class WatchedFilling(Filling):
    """Notes which batches a policy saw overflow in the last call of `place`, by the record that did
    not fit."""

    overflows: ClassVar[defaultdict[int, list[int]]]

    def __init__(self, sizes_bytes: SizeArray, load: TopicLoad, limit_bytes: int) -> None:
        super().__init__(sizes_bytes, load, limit_bytes)
        WatchedFilling.overflows = defaultdict(list)

    def overflow(self, partition: int) -> None:
        if self.room_bytes(partition) > 0:
            self.overflows[self.runs[-1][1] if self.runs else 0].append(partition)
        super().overflow(partition)


@pytest.fixture(scope="module", autouse=True)
def watched() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (sticky, uniform):
            patch.setattr(module, "Filling", WatchedFilling)
        yield


class Accumulator:
    """Open batches per partition, filled record by record by Kafka's rules. A partition without one
    has none or only full ones."""

    def __init__(self, batch_size_bytes: int) -> None:
        self.batch_size_bytes = batch_size_bytes
        self.batches: dict[int, OpenBatch] = {}
        self.produced_bytes: defaultdict[int, int] = defaultdict(int)

    def is_full(self, partition: int) -> bool:
        batch = self.batches.get(partition)
        return batch is None or batch.closed or batch.used_bytes >= self.batch_size_bytes

    def room_bytes(self, partition: int) -> int:
        return 0 if self.is_full(partition) else self.batch_size_bytes - self.batches[partition].used_bytes

    def try_append(self, partition: int, size_bytes: int) -> bool:
        if self.is_full(partition):
            return False
        batch = self.batches[partition]
        if batch.used_bytes + size_bytes > self.batch_size_bytes:
            batch.closed = True
            return False
        batch.used_bytes += size_bytes
        self.produced_bytes[partition] += size_bytes
        return True

    def open(self, partition: int, size_bytes: int) -> None:
        self.batches[partition] = OpenBatch(HEADER_BYTES + size_bytes)
        self.produced_bytes[partition] += HEADER_BYTES + size_bytes

    def append(self, partition: int, size_bytes: int) -> None:
        if not self.try_append(partition, size_bytes):
            self.open(partition, size_bytes)

    def follow(self, runs: Runs, sizes_bytes: list[int]) -> None:
        """Append as Kafka's does, which closes a batch that a record did not fit, though the record
        then goes elsewhere."""
        partitions = expand(runs, len(sizes_bytes)).tolist()
        for record, (partition, size_bytes) in enumerate(zip(partitions, sizes_bytes, strict=True)):
            for left in WatchedFilling.overflows[record]:
                self.batches[left].closed = True
            self.append(partition, size_bytes)

    def load(self, partition_count: int) -> TopicLoad:
        return TopicLoad(partition_count, range(partition_count), [0] * partition_count, (), self.room_bytes)


class RecordByRecordUniform:
    """`RecordAccumulator.append` with `BuiltInPartitioner`, one record at a time."""

    def __init__(self, batch_size_bytes: int, partition_count: int, rng: Random) -> None:
        self.accumulator = Accumulator(batch_size_bytes)
        self.sticky_bytes = max(1, batch_size_bytes)
        self.partition_count, self.rng = partition_count, rng
        self.current, self.produced_bytes = -1, 0
        self.turns: list[tuple[int, int, int]] = []

    def switch(self, last_bytes: int) -> None:
        if self.current >= 0:
            self.turns.append((self.current, self.produced_bytes, last_bytes))
        self.current, self.produced_bytes = self.rng.randrange(self.partition_count), 0

    def place(self, size_bytes: int, last_bytes: int = 0) -> int:
        accumulator = self.accumulator
        if self.current < 0:
            self.switch(0)
        if accumulator.is_full(self.current) and self.produced_bytes >= self.sticky_bytes:
            self.switch(last_bytes)
        partition, appended_bytes = self.current, size_bytes
        if not accumulator.try_append(partition, size_bytes):
            if self.produced_bytes >= self.sticky_bytes:
                self.switch(last_bytes)
                return self.place(size_bytes, last_bytes)
            accumulator.open(partition, size_bytes)
            appended_bytes += HEADER_BYTES
        self.produced_bytes += appended_bytes
        full = accumulator.is_full(partition)
        if (
            self.produced_bytes >= self.sticky_bytes and full
        ) or self.produced_bytes >= 2 * self.sticky_bytes:
            self.switch(size_bytes)
        return partition


class RecordByRecordSticky:
    """Kafka 2.4: `KafkaProducer.send` with `abortOnNewBatch` and `StickyPartitionCache`."""

    def __init__(self, batch_size_bytes: int, partition_count: int, rng: Random) -> None:
        self.accumulator = Accumulator(batch_size_bytes)
        self.partition_count, self.rng, self.current = partition_count, rng, -1

    def on_new_batch(self) -> None:
        others = [partition for partition in range(self.partition_count) if partition != self.current]
        self.current = (
            others[self.rng.randrange(len(others))]
            if len(others) > 1 or self.current < 0
            else (others or [self.current])[0]
        )

    def place(self, size_bytes: int) -> int:
        if self.current < 0 or not self.accumulator.try_append(self.current, size_bytes):
            if self.partition_count > 1 or self.current < 0:
                self.on_new_batch()
            self.accumulator.append(self.current, size_bytes)
        return self.current

    def place_keyed(self, partition: int, size_bytes: int) -> None:
        if not self.accumulator.try_append(partition, size_bytes):
            if partition == self.current and self.partition_count > 1:
                self.on_new_batch()
            self.accumulator.append(partition, size_bytes)


class CountingDice:
    """Rng that draw 0, 1, 2, ... in turn, so that every partition gets as many turns as another,
    give or take one."""

    def __init__(self) -> None:
        self.drawn = 0

    def random(self) -> float:
        raise AssertionError("policies draw integers")

    def randrange(self, stop: int, /) -> int:
        self.drawn += 1
        return (self.drawn - 1) % stop


class OneDie(Random):
    """`randrange` that consumes nothing if there is nothing to draw, for models that ask and
    policies that do not."""

    def randrange(self, stop: int, /) -> int:  # type: ignore[override]
        return super().randrange(stop) if stop > 1 else 0


chunk = st.tuples(
    st.lists(st.integers(7, 700), max_size=60),
    st.lists(st.integers(7, 700), max_size=8),
    st.booleans(),
    st.sets(st.integers(0, 4), max_size=3),
)
"""Sizes handed over at once; sizes of keyed records that then go to the partition in turn; whether
that is drained, and which others."""
Chunk = tuple[list[int], list[int], bool, set[int]]
chunks = st.lists(chunk, max_size=8)
batch_sizes = st.sampled_from([0, 1, 61, 62, 200, 512, 1000])
partition_counts = st.integers(1, 5)


@given(chunks, batch_sizes, partition_counts, st.integers(0, 1000))
def test_uniform_places_columns_as_kafka_places_records(
    submitted: list[Chunk], batch_size_bytes: int, partition_count: int, seed: int
) -> None:
    policy = KafkaUniformPolicy(batch_size_bytes=batch_size_bytes, rng=Random(seed))
    oracle = RecordByRecordUniform(batch_size_bytes, partition_count, Random(seed))
    ours = Accumulator(batch_size_bytes)
    for sizes_bytes, keyed_bytes, drain_current, drained in submitted:
        runs = policy.place(np.array(sizes_bytes, dtype=np.int64), ours.load(partition_count))
        ours.follow(runs, sizes_bytes)
        assert expand(runs, len(sizes_bytes)).tolist() == [
            oracle.place(size_bytes) for size_bytes in sizes_bytes
        ]
        assert policy.produced_bytes == oracle.produced_bytes
        for size_bytes in keyed_bytes:
            ours.append(policy.current % partition_count, size_bytes)
            oracle.accumulator.append(policy.current % partition_count, size_bytes)
        assert_same_rooms(ours, oracle.accumulator, partition_count)
        drain(drained | ({policy.current} if drain_current else set()), ours, oracle.accumulator)


@given(chunks, batch_sizes, partition_counts, st.integers(0, 1000))
def test_sticky_places_columns_as_kafka_placed_records(
    submitted: list[Chunk], batch_size_bytes: int, partition_count: int, seed: int
) -> None:
    policy = StickyPolicy(batch_size_bytes=batch_size_bytes, rng=OneDie(seed))
    oracle = RecordByRecordSticky(batch_size_bytes, partition_count, OneDie(seed))
    ours = Accumulator(batch_size_bytes)
    for sizes_bytes, keyed_bytes, drain_current, drained in submitted:
        runs = policy.place(np.array(sizes_bytes, dtype=np.int64), ours.load(partition_count))
        ours.follow(runs, sizes_bytes)
        assert expand(runs, len(sizes_bytes)).tolist() == [
            oracle.place(size_bytes) for size_bytes in sizes_bytes
        ]
        for size_bytes in keyed_bytes:
            partition = policy.current % partition_count
            oracle.place_keyed(partition, size_bytes)
            if not ours.try_append(partition, size_bytes):
                policy.on_new_batch(partition, ours.load(partition_count))
                ours.open(partition, size_bytes)
        assert policy.current == oracle.current
        assert_same_rooms(ours, oracle.accumulator, partition_count)
        drain(drained | ({policy.current} if drain_current else set()), ours, oracle.accumulator)


@given(
    st.lists(st.integers(7, 3000), max_size=300),
    st.sampled_from([62, 500, 1000]),
    partition_counts,
    st.data(),
)
def test_uniform_cuts_the_same_wherever_the_column_is_cut(
    sizes_bytes: list[int], batch_size_bytes: int, partition_count: int, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(sizes_bytes)))
    placed = []
    for parts in ([sizes_bytes], [sizes_bytes[:cut], sizes_bytes[cut:]]):
        policy, accumulator = (
            KafkaUniformPolicy(batch_size_bytes=batch_size_bytes, rng=Random(5)),
            Accumulator(batch_size_bytes),
        )
        partitions: list[int] = []
        for part in parts:
            runs = policy.place(np.array(part, dtype=np.int64), accumulator.load(partition_count))
            accumulator.follow(runs, part)
            partitions += expand(runs, len(part)).tolist()
        placed.append(partitions)
    assert placed[0] == placed[1]


@given(st.lists(st.integers(7, 3000), max_size=400), st.sampled_from([200, 512, 1000]), partition_counts)
def test_no_turn_of_uniform_takes_less_than_the_batch_size_nor_twice_it_and_one_record(
    sizes_bytes: list[int], batch_size_bytes: int, partition_count: int
) -> None:
    oracle = RecordByRecordUniform(batch_size_bytes, partition_count, Random(1))
    previous = 0
    for size_bytes in sizes_bytes:
        oracle.place(size_bytes, previous)
        previous = size_bytes
    for _, produced_bytes, last_record_bytes in oracle.turns:
        assert batch_size_bytes <= produced_bytes < 2 * batch_size_bytes + HEADER_BYTES + last_record_bytes


@given(
    st.lists(st.integers(7, 3000), max_size=400),
    st.sampled_from([62, 200, 512, 1000]),
    partition_counts,
    st.booleans(),
)
def test_bytes_per_partition_differ_by_no_more_than_the_turns_allow(
    sizes_bytes: list[int], batch_size_bytes: int, partition_count: int, drained_at_once: bool
) -> None:
    """KIP-794: a turn is batch.size bytes, twice that and a record at most; rng that deal in turn
    leave no other difference."""
    rng, accumulator = CountingDice(), Accumulator(batch_size_bytes)
    policy = KafkaUniformPolicy(batch_size_bytes=batch_size_bytes, rng=rng)
    for start in range(0, len(sizes_bytes), 7):
        part = sizes_bytes[start : start + 7]
        accumulator.follow(
            policy.place(np.array(part, dtype=np.int64), accumulator.load(partition_count)), part
        )
        if drained_at_once:
            accumulator.batches.clear()
    produced = [accumulator.produced_bytes[partition] for partition in range(partition_count)]
    most_quanta = -(-rng.drawn // partition_count)
    finished_quanta = max((rng.drawn - 1) // partition_count, 0) if rng.drawn else 0
    longest_quantum_bytes = 2 * batch_size_bytes + HEADER_BYTES + max(sizes_bytes, default=0)
    assert finished_quanta * batch_size_bytes <= min(produced)
    assert max(produced) <= most_quanta * longest_quantum_bytes
    assert (
        max(produced) - min(produced)
        <= most_quanta * longest_quantum_bytes - finished_quanta * batch_size_bytes
    )


@given(
    st.lists(st.integers(7, 3000), max_size=400),
    st.sampled_from([62, 200, 512, 1000]),
    partition_counts,
    st.booleans(),
)
def test_uniform_keeps_any_two_partitions_within_two_turns_at_every_moment(
    sizes_bytes: list[int], batch_size_bytes: int, partition_count: int, drained_at_once: bool
) -> None:
    accumulator, policy = (
        Accumulator(batch_size_bytes),
        UniformPolicy(batch_size_bytes=batch_size_bytes, rng=Random(7)),
    )
    longest_quantum_bytes = 2 * batch_size_bytes + HEADER_BYTES + max(sizes_bytes, default=0)
    for size_bytes in sizes_bytes:
        accumulator.follow(
            policy.place(np.array([size_bytes], dtype=np.int64), accumulator.load(partition_count)),
            [size_bytes],
        )
        if drained_at_once:
            accumulator.batches.clear()
        produced = [accumulator.produced_bytes[partition] for partition in range(partition_count)]
        assert max(produced) - min(produced) <= 2 * longest_quantum_bytes + batch_size_bytes


@given(
    st.lists(st.lists(st.integers(7, 3000), max_size=120), max_size=8),
    st.sampled_from([1, 62, 200, 512]),
    partition_counts,
    st.sampled_from([UniformPolicy, AdaptivePolicy]),
    st.integers(0, 99),
)
def test_turns_taken_together_cover_all_records_and_uniform_stays_within_its_bound(
    submitted: list[list[int]],
    batch_size_bytes: int,
    partition_count: int,
    kind: type[UniformPolicy] | type[AdaptivePolicy],
    seed: int,
) -> None:
    policy = kind(batch_size_bytes=batch_size_bytes, rng=Random(seed), together=True)
    load = TopicLoad(
        partition_count, range(partition_count), [seed] + [0] * (partition_count - 1), (), lambda partition: 0
    )
    produced = np.zeros(partition_count, np.int64)
    largest = max((size for sizes in submitted for size in sizes), default=0)
    for sizes_bytes in submitted:
        runs = policy.place(np.array(sizes_bytes, dtype=np.int64), load)
        stops = [stop for _, stop in runs]
        assert stops == sorted(set(stops))
        assert (stops[-1] if stops else 0) == len(sizes_bytes)
        assert all(before[0] != after[0] for before, after in pairwise(runs))
        np.add.at(produced, expand(runs, len(sizes_bytes)), sizes_bytes)
        if kind is UniformPolicy:
            # Headers count for turns one by one, of which a turn of batch.size has one for each
            # record at most.
            headers = HEADER_BYTES * sum(map(len, submitted))
            assert (
                produced.max() - produced.min()
                <= 2 * (2 * batch_size_bytes + HEADER_BYTES + largest) + batch_size_bytes + headers
            )


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8),
    st.lists(st.integers(7, 900), max_size=200),
    st.data(),
)
def test_adaptive_never_begins_a_turn_on_an_unready_partition_while_another_is_ready(
    queued: list[int], sizes_bytes: list[int], data: st.DataObject
) -> None:
    partitions = range(len(queued))
    unready = data.draw(st.sets(st.sampled_from(partitions), max_size=len(queued) - 1))
    available = sorted(data.draw(st.sets(st.sampled_from(partitions), min_size=1)))
    policy = AdaptivePolicy(batch_size_bytes=500, rng=Random(3))
    load = TopicLoad(len(queued), available, queued, unready, lambda partition: 0)
    chosen = {partition for partition, _ in policy.place(np.array(sizes_bytes, dtype=np.int64), load)}
    assert chosen <= set(available)
    if set(available) - unready:
        assert not chosen & unready


@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name != "late"])
@given(st.lists(st.integers(7, 900), max_size=200), partition_counts, st.sets(st.integers(0, 4)))
def test_every_policy_places_all_records_on_partitions_with_a_leader(
    name: str, sizes_bytes: list[int], partition_count: int, alive: set[int]
) -> None:
    policy, accumulator = make_policy(name, batch_size_bytes=512, rng=Random(3)), Accumulator(512)
    assert policy.name == name
    for _ in range(2):
        load = accumulator.load(partition_count)
        load.available = available = sorted(partition for partition in alive if partition < partition_count)
        placement = policy.place(np.array(sizes_bytes, dtype=np.int64), load)
        partitions = expand(placement, len(sizes_bytes)).tolist()
        assert set(partitions) <= set(available or range(partition_count))
        if isinstance(placement, Runs):
            stops = [stop for _, stop in placement]
            assert stops == sorted(set(stops))
            assert all(before[0] != after[0] for before, after in pairwise(placement))


@given(st.lists(st.integers(0, 40), max_size=6), partition_counts, st.sets(st.integers(0, 4)))
def test_round_robin_counts_differ_by_one_at_most(
    counts: list[int], partition_count: int, alive: set[int]
) -> None:
    policy = make_policy("round_robin", batch_size_bytes=16384, rng=Random(3))
    available = sorted(partition for partition in alive if partition < partition_count)
    load = TopicLoad(partition_count, available, [0] * partition_count, (), lambda partition: 0)
    placed = [expand(policy.place(np.full(count, 100, dtype=np.int64), load), count) for count in counts]
    per_partition = np.bincount(
        np.concatenate([*placed, np.empty(0, dtype=np.int32)]), minlength=partition_count
    )
    chosen = per_partition[available] if available else per_partition
    assert chosen.max() - chosen.min() <= 1
    assert chosen.sum() == sum(counts)


def assert_same_rooms(ours: Accumulator, theirs: Accumulator, partition_count: int) -> None:
    assert [ours.room_bytes(p) for p in range(partition_count)] == [
        theirs.room_bytes(p) for p in range(partition_count)
    ]


def drain(partitions: set[int], *accumulators: Accumulator) -> None:
    for accumulator in accumulators:
        for partition in partitions:
            accumulator.batches.pop(partition, None)
