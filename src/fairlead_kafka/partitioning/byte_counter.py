"""Byte counters of partitions: which partition is furthest behind, and the sums of groups of
partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.core.machine import Rng


class ByteCounter:
    """Bytes placed on each partition of one topic, and an order to serve them in: fewest bytes
    first.

    Partitions come in groups (one for each broker, say), of which a caller names those that can be
    served now. `next_in_round` gives the partition with the fewest bytes, each once in a round; of
    those within `near_bytes` of each other one is chosen at random, or many producers that start
    together would move in step. A partition that is away is still given, but its bytes do not
    count; when it comes back it is put level with the others, so that it is not flooded.

    `next_in_round` costs the logarithm of the number of partitions; the rare `arrange`, `leave`,
    `come_back` and `lift` look at all of them.
    """

    def __init__(self, *, near_bytes: int, rng: Rng) -> None:
        self.placed_bytes: list[int] = []
        """Bytes by partition; those that were put level count what they were lifted by."""
        self._near_bytes = near_bytes
        self._rng = rng
        self._away: set[int] = set()
        self._group_of: dict[int, int] = {}
        self._sums: dict[
            int, tuple[int, int]
        ] = {}  # by group: bytes, and partitions, of those that are not away
        self._groups: dict[
            int, list[tuple[int, int, int]]
        ] = {}  # heaps of (bytes with some jitter, bytes, partition)
        self._taken: list[
            tuple[list[tuple[int, int, int]], int]
        ] = []  # given since `end_round`, to be put back

    def arrange(self, groups: Mapping[int, Sequence[int]], partition_count: int) -> None:
        """Set the partitions of each group. One in no group is never given, and is away.

        New ones begin with the fewest bytes of any partition that is not away.
        """
        self.end_round()
        least = self.least_bytes()
        self.placed_bytes += [least or 0] * (partition_count - len(self.placed_bytes))
        self._group_of = {
            partition: group for group, partitions in groups.items() for partition in partitions
        }
        self._groups = {
            group: [self._entry(partition) for partition in partitions]
            for group, partitions in groups.items()
        }
        for heap in self._groups.values():
            heapify(heap)
        self.leave(set(range(len(self.placed_bytes))).difference(self._group_of))

    def leave(self, partitions: Iterable[int]) -> None:
        """Mark partitions as away: their bytes do not count until `come_back` is called."""
        self._away.update(partitions)
        self._sum_groups()

    def come_back(self, partitions: Iterable[int]) -> None:
        """Count partitions again that were away, each with the others' average bytes at least."""
        returning = self._away.intersection(partitions)
        if not returning:
            return
        if self.counted:
            level_bytes = self.counted_bytes // self.counted
            for partition in returning:
                self.placed_bytes[partition] = max(self.placed_bytes[partition], level_bytes)
        self._away -= returning
        self._sum_groups()

    @property
    def counted(self) -> int:
        """Number of partitions whose bytes count: all but those that `leave` has marked as away."""
        return sum([count for _, count in self._sums.values()])

    @property
    def counted_bytes(self) -> int:
        """Bytes of all partitions that count, so not those that `leave` has marked as away."""
        return sum([size_bytes for size_bytes, _ in self._sums.values()])

    def counted_of(self, group: int) -> tuple[int, int]:
        """Bytes, and number, of the partitions of this group that count (`leave` excludes
        partitions)."""
        return self._sums.get(group, (0, 0))

    def average_bytes(self, group: int) -> float:
        """Average bytes of a group's partitions that count (`leave` excludes partitions). If none
        of the group counts, the fewest bytes of any of its partitions; 0 for a group without
        partitions."""
        size_bytes, count = self._sums.get(group, (0, 0))
        return (
            size_bytes / count
            if count
            else min((entry[1] for entry in self._groups.get(group, ())), default=0)
        )

    def is_away(self, partition: int) -> bool:
        """True if the partition's bytes do not count at present."""
        return partition in self._away

    def least_bytes(self) -> int | None:
        """The fewest bytes of a partition that counts (`leave` excludes partitions); None: none
        counts. Looks at all."""
        return min(
            (size for partition, size in enumerate(self.placed_bytes) if partition not in self._away),
            default=None,
        )

    def add(self, partition: int, size_bytes: int) -> None:
        """Add bytes that were placed on the partition."""
        self._place(partition, self.placed_bytes[partition] + size_bytes)

    def lift(self, least_bytes: int) -> None:
        """Raise the counters of partitions below `least_bytes` to it: they are no further behind
        from then on. Looks at all partitions."""
        for partition, size_bytes in enumerate(self.placed_bytes):
            if size_bytes < least_bytes and partition not in self._away:
                self._place(partition, least_bytes)

    def next_in_round(self, groups: Iterable[int]) -> int:
        """The partition of these groups with the fewest bytes that this round has not had; -1 if
        there is none."""
        all_placed = self.placed_bytes
        heap, best = None, None
        for group in groups:
            candidates = self._groups.get(group)
            if not candidates:
                continue
            head = candidates[0]
            if head[1] != all_placed[head[2]]:
                head = self._head(candidates)
            if best is None or head < best:
                heap, best = candidates, head
        if heap is None or best is None:
            return -1
        heappop(heap)
        self._taken.append((heap, best[2]))
        return best[2]

    def end_round(self) -> None:
        """End the round: every partition may be given again."""
        if self._taken:
            for heap, partition in self._taken:
                heappush(heap, self._entry(partition))
            self._taken.clear()

    def check(self) -> None:
        """Raise CheckFailed unless sums and heaps are those of the bytes placed."""
        counted = [partition for partition in range(len(self.placed_bytes)) if partition not in self._away]
        sums: dict[int, tuple[int, int]] = {}
        for partition in counted:
            total_bytes, count = sums.get(self._group_of[partition], (0, 0))
            sums[self._group_of[partition]] = (total_bytes + self.placed_bytes[partition], count + 1)
        same("bytes counted by group", self._sums, sums)
        takers = [entry[2] for heap in self._groups.values() for entry in heap] + [
            partition for _, partition in self._taken
        ]
        same("partitions that are in the round", sorted(takers), sorted(self._group_of))
        noted = [entry[1:] for heap in self._groups.values() for entry in heap]
        holds(
            "a heap of the byte counter is ahead of its partitions",
            all(size <= self.placed_bytes[partition] for size, partition in noted),
        )

    def _head(self, heap: list[tuple[int, int, int]]) -> tuple[int, int, int]:
        """The first entry of a heap of partitions, brought up to date: bytes may have been added to
        its partition since it was entered."""
        while True:
            head = heap[0]
            if head[1] == self.placed_bytes[head[2]]:
                return head
            heapreplace(heap, self._entry(head[2]))

    def _entry(self, partition: int) -> tuple[int, int, int]:
        placed_bytes = self.placed_bytes[partition]
        return placed_bytes + int(self._rng.random() * (self._near_bytes + 1)), placed_bytes, partition

    def _place(self, partition: int, placed_bytes: int) -> None:
        if partition not in self._away:
            group = self._group_of[partition]
            total_bytes, count = self._sums[group]
            self._sums[group] = (total_bytes + placed_bytes - self.placed_bytes[partition], count)
        self.placed_bytes[partition] = placed_bytes

    def _sum_groups(self) -> None:
        self._sums = {}
        for partition, size in enumerate(self.placed_bytes):
            if partition not in self._away:
                group = self._group_of[partition]
                total_bytes, count = self._sums.get(group, (0, 0))
                self._sums[group] = (total_bytes + size, count + 1)
