"""What bytes decide: how heavy ranges of offsets are, what a micro-batch takes of them, and which
tasks read them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import MIB
from fairlead_kafka.spark.admission import ends_within, share_out
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.tasks import plan_tasks
from fairlead_kafka.spark.volume import LOOKS_MAX, SAMPLES_PER_PARTITION_MAX, Sample, Volume

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Log:
    """Batches of partitions, (first, last, size in bytes), for a `Volume` to look at; counts the
    looks."""

    def __init__(self, batches: dict[TopicPartition, list[tuple[int, int, int]]]) -> None:
        self.batches = batches
        self.looks = 0

    def look(self, partition: TopicPartition, offset: int, end: int) -> Sample | None:
        self.looks += 1
        found = (batch for batch in self.batches[partition] if batch[1] >= offset and batch[0] < end)
        return next((Sample(offset, *batch) for batch in found), None)

    def size_bytes(self, one: OffsetRange) -> float:
        """What the range really holds."""
        return sum(
            size * max(0, min(last + 1, one.end) - max(first, one.start)) / (last - first + 1)
            for first, last, size in self.batches[one.partition]
        )


def even(count: int, size_bytes: int, start: int = 0) -> list[tuple[int, int, int]]:
    """`count` batches of ten offsets each."""
    return [(start + 10 * number, start + 10 * number + 9, size_bytes) for number in range(count)]


def learned(log: Log, *ranges: OffsetRange) -> Volume:
    volume = Volume(log.look)
    volume.learn(ranges)
    return volume


def test_an_even_log_is_weighed_with_a_few_looks() -> None:
    log = Log({T0: even(1000, 5000)})
    whole = OffsetRange(T0, 0, 10_000)
    volume = learned(log, whole)
    assert log.looks <= 6
    assert volume.size_bytes(whole) == pytest.approx(5_000_000)
    assert volume.offset_after(whole, 50_000) == 100
    assert volume.offset_after(whole, 10**9) == 10_000
    looks = log.looks
    volume.learn([whole, OffsetRange(T0, 2000, 2200)])
    assert log.looks == looks  # what is known is not looked at again


@pytest.mark.parametrize(
    "bounds", [[0, 1, 100], [0, 50, 100], [0, 34, 100], [0, 9, 16, 33, 58, 61, 64, 73, 98, 100]]
)
def test_a_batch_that_was_looked_at_in_its_midst_weighs_once(bounds: list[int]) -> None:
    """As batches are that a producer gathered: few, and of very different length."""
    log = Log({T0: [(first, end - 1, 10_000 * (end - first)) for first, end in pairwise(bounds)]})
    whole = OffsetRange(T0, 0, 100)
    volume = learned(log, whole)
    assert volume.size_bytes(whole) == pytest.approx(1_000_000)
    assert [volume.offset_after(whole, 100_000 * tenth + 1) for tenth in range(1, 10)] == list(
        range(10, 100, 10)
    )


def test_what_compaction_emptied_weighs_nothing() -> None:
    log = Log({T0: [(0, 9, 1000), (9_000, 9_009, 1000), *even(99, 1000, 9_010)]})
    whole = OffsetRange(T0, 0, 10_000)
    volume = learned(log, whole)
    assert volume.size_bytes(whole) == pytest.approx(log.size_bytes(whole), rel=0.15)
    middle = volume.offset_after(whole, volume.size_bytes(whole) / 2)
    assert 9_300 < middle < 9_600


def test_large_records_at_one_end_are_seen() -> None:
    log = Log({T0: even(500, 100) + even(500, 10_000, 5_000)})
    whole = OffsetRange(T0, 0, 10_000)
    volume = learned(log, whole)
    assert volume.size_bytes(whole) == pytest.approx(log.size_bytes(whole), rel=0.3)
    assert volume.size_bytes(OffsetRange(T0, 0, 1000)) == pytest.approx(10_000, rel=0.1)


def test_a_range_of_markers_alone_weighs_what_its_partition_weighs_elsewhere_and_no_look_is_wasted() -> None:
    log = Log({T0: [(0, 9, 1000)]})
    volume = learned(log, OffsetRange(T0, 0, 10), OffsetRange(T0, 10, 12))
    assert volume.size_bytes(OffsetRange(T0, 10, 12)) <= 200
    assert volume.size_bytes(OffsetRange(T0, 12, 22)) == pytest.approx(1000)


def test_looks_and_memory_are_bounded() -> None:
    log = Log({TopicPartition("t", number): even(10, 1000) for number in range(500)})
    volume = learned(log, *(OffsetRange(partition, 0, 100) for partition in log.batches))
    assert log.looks <= LOOKS_MAX
    assert volume.size_bytes(OffsetRange(TopicPartition("t", 499), 0, 100)) == pytest.approx(
        10_000
    )  # as the others on average
    log = Log({T0: even(100_000, 1000)})
    volume = Volume(log.look)
    for start in range(0, 1_000_000, 10_000):
        volume.learn([OffsetRange(T0, start, start + 10_000)])
    assert len(volume._samples[T0]) == SAMPLES_PER_PARTITION_MAX
    assert volume.size_bytes(OffsetRange(T0, 990_000, 1_000_000)) == pytest.approx(1_000_000)


@pytest.mark.parametrize("seed", range(20))
def test_shares_keep_to_the_limit_and_leave_nobody_out(seed: int) -> None:
    rng = random.Random(seed)
    available = {
        TopicPartition("t", number): rng.choice([0, 1, 3, 1000, 10**12])
        for number in range(rng.randint(1, 12))
    }
    limit = rng.choice([1, 2, 5, 100, 10**6])
    waiting = {partition for partition, count in available.items() if count}
    served = set()
    for rotation in range(len(available) + 1):
        shares = share_out(limit, available, rotation)
        assert sum(shares.values()) == min(limit, sum(available.values()))
        assert all(0 < share <= available[partition] for partition, share in shares.items())
        served |= set(shares)
    assert served == waiting


def test_shares_are_in_proportion() -> None:
    assert share_out(100, {T0: 900, T1: 90, T2: 10}, 0) == {T0: 88, T1: 10, T2: 2}


@pytest.mark.parametrize("limit_bytes", [1, 500, 3_000, 50_000, 10**9])
def test_ends_keep_to_the_limit_of_bytes_and_always_move(limit_bytes: int) -> None:
    log = Log({T0: even(100, 5_000), T1: even(10, 50), T2: even(50, 100)})
    ranges = [OffsetRange(T0, 0, 1000), OffsetRange(T1, 0, 100), OffsetRange(T2, 0, 500)]
    volume = learned(log, *ranges)
    moved = set()
    for rotation in range(3):
        ends = ends_within(limit_bytes, ranges, volume, rotation)
        taken = [OffsetRange(one.partition, one.start, ends[one.partition]) for one in ranges]
        moved |= {one.partition for one in taken if one.size}
        heaviest = 500
        assert sum(log.size_bytes(one) for one in taken) <= max(limit_bytes, heaviest)
        assert any(one.size for one in taken)
        if limit_bytes >= sum(log.size_bytes(one) for one in ranges):
            assert taken == ranges
    assert moved == {T0, T1, T2}


def tasks(log: Log, ranges: list[OffsetRange], **options: object) -> list[list[OffsetRange]]:
    planned = plan_tasks(ranges, ReadOptions(client={}, **options), Volume(log.look))  # type: ignore[arg-type]
    for one in ranges:  # whatever the plan, each offset is read once
        pieces = sorted(
            (piece for task in planned for piece in task.ranges if piece.partition == one.partition),
            key=lambda p: p.start,
        )
        assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert not one.size or (pieces[0].start, pieces[-1].end) == (one.start, one.end)
    return [list(task.ranges) for task in planned]


def test_by_default_a_partition_is_a_task_and_nothing_is_looked_at() -> None:
    log = Log({T0: even(10, 10), T1: even(1, 10), T2: []})
    ranges = [OffsetRange(T0, 0, 100), OffsetRange(T1, 0, 10), OffsetRange(T2, 5, 5)]
    assert tasks(log, ranges) == [[ranges[0]], [ranges[1]]]
    assert len(tasks(log, ranges, max_records_per_partition=50)) == 3
    assert log.looks == 0


def test_balanced_tasks_weigh_about_the_same() -> None:
    partitions = [TopicPartition("t", number) for number in range(12)]
    log = Log({partition: even(100, MIB if partition == T0 else MIB // 20) for partition in partitions})
    planned = tasks(log, [OffsetRange(partition, 0, 1000) for partition in partitions], balance_by="bytes")
    weights = [sum(log.size_bytes(piece) for piece in task) for task in planned]
    assert len(planned) == 12
    assert max(weights) < 1.6 * min(weights)
    assert (
        sum(task[0].partition == T0 or any(piece.partition == T0 for piece in task) for task in planned) >= 6
    )


def test_small_ranges_share_a_task_unless_there_must_be_more() -> None:
    partitions = [TopicPartition("t", number) for number in range(200)]
    log = Log({partition: even(1, 500) for partition in partitions})
    ranges = [OffsetRange(partition, 0, 10) for partition in partitions]
    assert len(tasks(log, ranges, balance_by="bytes")) == 1
    assert len(tasks(log, ranges, balance_by="bytes", min_partitions=200)) == 200
    assert tasks(log, [], balance_by="bytes") == []


def test_large_ranges_are_cut_by_bytes_not_by_offsets() -> None:
    log = Log({T0: even(50, 100) + even(50, 10_000, 500)})
    pieces = [task[0] for task in tasks(log, [OffsetRange(T0, 0, 1000)], max_bytes_per_partition=100_000)]
    weights = [log.size_bytes(piece) for piece in pieces]
    assert max(weights) < 160_000
    assert pieces[0].size > 2 * pieces[-1].size
    assert (
        len(tasks(log, [OffsetRange(T0, 0, 1000)], balance_by="bytes", max_bytes_per_partition=50_000)) >= 9
    )
