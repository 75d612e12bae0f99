"""Estimates of the bytes between two offsets, from a few record batches of each partition.

A record batch tells its first and last offset and its size, so a few of them, spread over a range,
show its density: large records, small ones, and ranges that compaction emptied. Between two sampled
batches the bytes per offset are those of the nearer one. Sizes are those of batches as Kafka keeps
them: compressed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import OffsetRange

LOOKS_PER_RANGE = 5
"""How many places of a range are looked at, evenly spread; those looked at before count."""
HEAVY_SHARE = 0.05
"""Share of all bytes from which on a range is looked at closely."""
CLOSER_LOOKS = 6
"""How many more places are looked at where neighbours differ most: at the edge of what compaction
emptied, or of larger records."""
CLOSER_SHARE = 0.1
"""Share of a range's weight from which on a difference between neighbours matters."""
LOOKS_MAX = 64
"""How many batches are fetched for one plan, however many partitions there are: a fraction of a
second of the driver's time."""
SAMPLES_PER_PARTITION_MAX = 32
"""How many batches are remembered of a partition; those at the lowest offsets go first."""


class Sample(NamedTuple):
    """One record batch, of offsets `first` to `last`: the first one that reaches to `asked` or
    beyond, so there is nothing between `asked` and `first`."""

    asked: int
    first: int
    last: int
    size_bytes: int

    @property
    def weight(self) -> float:
        """Bytes per offset in the batch."""
        return self.size_bytes / max(1, self.last - self.first + 1)

    @property
    def weight_before(self) -> float:
        """Bytes per offset before the batch; 0.0 if it begins after the offset asked for, for
        nothing lies between."""
        return self.weight if self.first <= self.asked else 0.0


Look = Callable[[TopicPartition, int, int], Sample | None]
"""look(partition, offset, end) fetches the first batch that reaches to `offset` or beyond; None if
there is none before `end`."""


class Part(NamedTuple):
    """A piece of a range in which every offset weighs the same."""

    start: int
    end: int
    bytes_per_offset: float

    @property
    def size_bytes(self) -> float:
        """Bytes of the piece."""
        return (self.end - self.start) * self.bytes_per_offset


class Volume:
    """Estimates the bytes of ranges of offsets from sampled batches. Not for several threads."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._samples: dict[TopicPartition, list[Sample]] = {}
        self._looks_left = 0

    def learn(self, ranges: Iterable[OffsetRange]) -> None:
        """Sample batches of `ranges` where none is known nearby: first one of each range, the
        longest first, then more where sizes differ."""
        wanted = sorted((one for one in ranges if one.size > 0), key=lambda one: -one.size)
        self._looks_left = LOOKS_MAX
        for one in wanted:
            self._look_at(one, one.start, 4 * one.size)
        sizes = [self.size_bytes(one) for one in wanted]
        heavy_bytes = HEAVY_SHARE * sum(sizes)
        for one in (one for one, size in zip(wanted, sizes, strict=True) if size >= heavy_bytes):
            step = -(-one.size // LOOKS_PER_RANGE)
            for offset in range(one.start, one.end, step):
                self._look_at(one, offset, step // 4)
            for _ in range(CLOSER_LOOKS):
                doubtful = self._doubtful(one)
                if doubtful is not None:
                    self._look_at(one, doubtful, 0)

    def size_bytes(self, one: OffsetRange) -> float:
        """About how many bytes a range holds."""
        return sum(part.size_bytes for part in self._parts(one))

    def offset_after(self, one: OffsetRange, size_bytes: float) -> int:
        """The offset of the range up to which there are about `size_bytes`."""
        left = size_bytes
        for part in self._parts(one):
            if part.size_bytes > left:
                return part.start + int(left / part.bytes_per_offset)
            left -= part.size_bytes
        return one.end

    def _doubtful(self, one: OffsetRange) -> int | None:
        """The offset in the middle between the two neighbouring samples whose difference in bytes
        per offset matters most; None if none does."""
        samples = [
            sample for sample in self._samples.get(one.partition, ()) if one.start <= sample.asked < one.end
        ]
        doubts = [
            (
                (after.asked - sample.last) / 2 * abs(sample.weight - after.weight_before),
                (sample.last + after.asked) // 2,
            )
            for sample, after in pairwise(samples)
        ]
        doubt, offset = max(doubts, default=(0.0, 0))
        return offset if doubt > CLOSER_SHARE * self.size_bytes(one) else None

    def _look_at(self, one: OffsetRange, offset: int, near: int) -> None:
        """Fetch a batch at `offset`, unless one is known that holds it, or was looked at nearby.

        `near`: how many offsets away counts as nearby.
        """
        samples = self._samples.setdefault(one.partition, [])
        known = any(
            sample.asked - near <= offset <= max(sample.last, sample.asked + near) for sample in samples
        )
        if known or self._looks_left <= 0:
            return
        self._looks_left -= 1
        insort(samples, self._look(one.partition, offset, one.end) or Sample(offset, one.end, one.end - 1, 0))
        del samples[:-SAMPLES_PER_PARTITION_MAX]

    def _parts(self, one: OffsetRange) -> list[Part]:
        """The range cut into the neighbourhoods of its samples, and each of these where its batch
        begins."""
        known = self._samples.get(one.partition, [])
        before = [sample for sample in known if sample.asked <= one.start][-1:]
        samples = before + [sample for sample in known if one.start < sample.asked < one.end] or known[:1]
        if not samples:
            return [Part(one.start, one.end, self._average(self._samples.values()))]
        middles = [(sample.last + 1 + after.asked) // 2 for sample, after in pairwise(samples)]
        parts = []
        for sample, begin, end in zip(samples, [one.start, *middles], [*middles, one.end], strict=True):
            weight = sample.weight if sample.size_bytes else self._average([known])
            left = weight if sample.first <= sample.asked else 0.0
            behind = max(sample.asked, sample.first)
            for start, stop, each in (
                (begin, sample.asked, left),
                (sample.asked, sample.first, 0.0),
                (behind, end, weight),
            ):
                start, stop = max(start, begin, one.start), min(stop, end, one.end)
                if start < stop:
                    parts.append(Part(start, stop, each))
        return parts

    @staticmethod
    def _average(groups: Iterable[list[Sample]]) -> float:
        """Average bytes per offset of these batches; 1.0 if there are none, so that offsets are
        counted instead."""
        samples = [sample for group in groups for sample in group if sample.size_bytes]
        offsets = sum(sample.last - sample.first + 1 for sample in samples)
        return sum(sample.size_bytes for sample in samples) / offsets if offsets else 1.0
