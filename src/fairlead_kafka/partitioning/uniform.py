"""KIP-794: quanta of batch.size bytes; the next partition is the one with the fewest bytes
(`uniform`), any (`uniform.kafka`), or drawn by the queues (`adaptive`)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.partitioning.byte_counter import ByteCounter
from fairlead_kafka.partitioning.filling import Filling
from fairlead_kafka.partitioning.load import Runs, SizeArray, TopicLoad, candidates
from fairlead_kafka.partitioning.tuning import TOGETHER_QUANTA, WEIGH_AS_ARRAYS

T = TypeVar("T")


class QuantumLimits(NamedTuple):
    """When a quantum on a partition ends, in bytes produced there since it began; `0 < soft_bytes
    <= hard_bytes`."""

    soft_bytes: int
    """From here on the quantum ends as soon as no batch is open, or the open one is full or does
    not take the next record."""
    hard_bytes: int
    """At the record that reaches this the quantum ends in any case."""


def quantum_limits(batch_size_bytes: int) -> QuantumLimits:
    """The limits of KIP-794's quantum: batch.size bytes, up to twice that while a batch is part
    full.

    Kafka's `BuiltInPartitioner.updatePartitionInfo`: switch iff `produced >= S and all batches
    full` or `produced >= 2 S` with `S = max(1, batch.size)`, without its overflow of 32 bits at `2
    S` (`batch.size` beyond 1 GiB).
    """
    sticky_bytes = max(batch_size_bytes, 1)
    return QuantumLimits(sticky_bytes, 2 * sticky_bytes)


def quantum_is_used_up(produced_bytes: int, limits: QuantumLimits, batch_is_full: bool) -> bool:
    """True if the quantum on a partition ends (KIP-794); `batch_is_full` also if none is open."""
    return produced_bytes >= limits.hard_bytes or (batch_is_full and produced_bytes >= limits.soft_bytes)


def cumulative_weights(queued_batches: Sequence[int]) -> list[int]:
    """Cumulative weights by queue size, the longest queue weighing 1: (0, 3, 1) -> weights (4, 1,
    3) -> (4, 5, 8).

    Kafka's `BuiltInPartitioner.updatePartitionLoadStats`: weight = longest + 1 - queue.
    `queued_batches` holds one or more.
    """
    most = max(queued_batches) + 1
    return list(accumulate(most - queued for queued in queued_batches))


def draw_by_queues(candidates: Sequence[int], queued_batches: Sequence[int], rng: Rng) -> Callable[[], int]:
    """A function that draws one of `candidates`, weighted by their queues (`cumulative_weights`).

    `queued_batches` is by partition. They are weighed once, now.
    """
    if len(candidates) < WEIGH_AS_ARRAYS:
        cumulative = cumulative_weights([queued_batches[partition] for partition in candidates])
        return lambda: draw_weighted(candidates, cumulative, rng)
    queued = np.array(queued_batches, np.int64)
    # Mostly all partitions are candidates: a list of them need not become an array then.
    queued = (
        queued[: len(candidates)] if candidates[-1] == len(candidates) - 1 else queued[np.array(candidates)]
    )
    weights = np.cumsum(queued.max() + 1 - queued)
    total = int(weights[-1])
    return lambda: candidates[int(np.searchsorted(weights, rng.randrange(total), side="right"))]


def draw_weighted(partitions: Sequence[int], cumulative: Sequence[int], rng: Rng) -> int:
    """One of `partitions` with a chance as its weight: the first whose cumulative weight exceeds a
    draw below the last."""
    return partitions[bisect_right(cumulative, rng.randrange(cumulative[-1]))]


class KafkaUniformPolicy:
    """KIP-794 with `partitioner.adaptive.partitioning.enable=false`, as Kafka's code has it.

    A quantum on a partition lasts until `batch.size` bytes were produced to it; the next partition
    is then drawn evenly from those with a live leader (from all, if none has), and may be the same
    again. What counts as produced: the records this policy placed, by `sizes_bytes`, and the 61
    bytes of header for each batch they opened. Explicit and keyed records do not count; they fill
    batches though, which `room_bytes` shows. Its end is put off while the batch has room, so that
    no part-full batch is left to linger: see `quantum_limits`. A switch put off that long can also
    come as a call begins: the batch was drained in between, or the first record does not fit it.

    So a quantum that ended has taken at least S and less than `2 S + 61 + its last record`; that is
    what the KIP allows partitions to differ by, per quantum. How much too much it took is
    forgotten, and quanta are longer where batches wait; so beside a slow broker this is not uniform
    (46, 27 and 27 % measured with Kafka 4.3 in the KIP's own test).
    """

    name = "uniform.kafka"
    binds_at: Literal["append", "drain"] = "append"

    def __init__(self, *, batch_size_bytes: int, rng: Rng, together: bool = False) -> None:
        self._limit_bytes = max(batch_size_bytes - BATCH_OVERHEAD_BYTES, 0)
        self._rng = rng
        self._together = together
        self._limits = quantum_limits(batch_size_bytes)
        self.current = -1
        """The partition whose quantum it is; -1 before the first record."""
        self.produced_bytes = 0
        """Bytes produced to it in this quantum, headers counted."""

    def place(self, sizes_bytes: SizeArray, load: TopicLoad) -> Runs:
        """The records' partitions as runs that end where quanta end. Costs a few microseconds for
        each batch."""
        filling = Filling(sizes_bytes, load, self._limit_bytes)
        draw = self._drawer(load)
        limits, ends, count, start = self._limits, filling.ends, filling.count, 0
        if count and not 0 <= self.current < load.partition_count:
            self._begin_quantum(draw())
        together = self._together
        while start < count:
            if together and not self.produced_bytes:
                together = False  # what is left only becomes less
                parts = self._parts(ends[count] - ends[start], load)
                if parts:
                    self._took(filling.append_together(parts, start))
                    break
            partition, room = self.current, filling.room_bytes(self.current)
            stop = bisect_right(ends, ends[start] + room, start) - 1 if room > 0 else start
            if stop == start:  # the next record opens a batch
                filling.overflow(partition)
                if quantum_is_used_up(self.produced_bytes, limits, batch_is_full=True):
                    self._begin_quantum(draw())
                    continue
                self.produced_bytes += BATCH_OVERHEAD_BYTES
                stop, room = filling.new_batch_stop(start), self._limit_bytes
            taken_bytes = ends[stop] - ends[start]
            left_bytes = limits.hard_bytes - self.produced_bytes
            if taken_bytes > left_bytes:
                stop = filling.stop_at_bytes(start, left_bytes)
                taken_bytes = ends[stop] - ends[start]
            room = room - taken_bytes if room > taken_bytes else 0
            filling.append(partition, stop, room)
            self.produced_bytes += taken_bytes
            start = stop
            if quantum_is_used_up(self.produced_bytes, limits, batch_is_full=not room):
                self._begin_quantum(draw())
        filling.runs.ended = count > 0 and not self.produced_bytes
        return filling.runs

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """Do nothing: quanta are counted in bytes, not in batches (KIP-794 deprecates the hook)."""

    def _parts(self, size_bytes: int, load: TopicLoad) -> Sequence[tuple[int, int]]:
        """Partitions, and how many bytes each gets, if `size_bytes` is several quanta for every
        partition; else nothing. Each gets as much as quanta one after the other would give it with
        the same `load`."""
        return ()

    def _took(self, parts: Sequence[tuple[int, int]]) -> None:
        """Count the bytes that each partition of `parts` (partition, bytes) took; does nothing in a
        policy that keeps no byte counter."""

    def _begin_quantum(self, partition: int) -> None:
        self.current, self.produced_bytes = partition, 0

    def _drawer(self, load: TopicLoad) -> Callable[[], int]:
        """A function that draws the next partition; `load` is weighed once for all its draws."""
        choices, randrange = candidates(load), self._rng.randrange
        return lambda: choices[randrange(len(choices))]


class UniformPolicy(KafkaUniformPolicy):
    """KIP-794 with `partitioner.adaptive.partitioning.enable=false`, as the KIP means it: uniform,
    whichever broker is slow.

    Quanta are as in `KafkaUniformPolicy`, prolonged while a batch is part full, but a byte counter
    is kept of all that they took: the next one goes to the partition that had least, drawn at
    random among those within half of batch.size, and never to the same partition again while
    another has a leader. So the excess of one quantum is subtracted from the next, and differences
    do not add up. While no partition lacks a leader, any two differ by at most two quanta, of less
    than `2 S + 61 + a record` bytes each, and S / 2 (S: batch.size, 61: a batch's header).

    With `together`, quanta that are submitted at once, two or more for each partition, become one
    run of records for each, which puts all level but for a record: for a producer that would put
    the batches of these quanta together all the same (`batch.max.size`).
    """

    name = "uniform"

    def __init__(self, *, batch_size_bytes: int, rng: Rng, together: bool = False) -> None:
        super().__init__(batch_size_bytes=batch_size_bytes, rng=rng, together=together)
        self._counter = ByteCounter(near_bytes=batch_size_bytes // 2, rng=rng)
        self._known: tuple[int, Sequence[int]] = (0, ())

    def _drawer(self, load: TopicLoad) -> Callable[[], int]:
        choices = candidates(load)
        known_count, known = self._known
        if known_count != load.partition_count or (known is not choices and known != choices):
            self._known = load.partition_count, choices
            self._counter.arrange({0: choices}, load.partition_count)
            self._counter.come_back(choices)
        return self._furthest_behind

    def _parts(self, size_bytes: int, load: TopicLoad) -> Sequence[tuple[int, int]]:
        choices = candidates(load)
        count = len(choices)
        if size_bytes < TOGETHER_QUANTA * self._limits.soft_bytes * count:
            return ()
        placed_bytes = self._counter.placed_bytes
        level_bytes = (sum([placed_bytes[partition] for partition in choices]) + size_bytes) // count
        ascending = sorted(_from_anywhere(choices, self._rng), key=placed_bytes.__getitem__)
        return [(partition, max(level_bytes - placed_bytes[partition], 0)) for partition in ascending]

    def _took(self, parts: Sequence[tuple[int, int]]) -> None:
        for partition, size_bytes in parts:
            self._counter.add(partition, size_bytes)

    def _furthest_behind(self) -> int:
        counter = self._counter
        if self.produced_bytes:
            counter.add(self.current, self.produced_bytes)
        partition = counter.next_in_round((0,))
        if partition == self.current:
            other = counter.next_in_round((0,))
            partition = other if other >= 0 else partition
        counter.end_round()
        return partition


class AdaptivePolicy(KafkaUniformPolicy):
    """KIP-794 with all its defaults: quanta as in Kafka, but the next partition is drawn by the
    inverse of its queue.

    Candidates are the partitions with a live leader that are not `unready`, whatever their queues;
    if all of those are unready, the mark tells nothing apart and they are candidates all the same;
    if none has a leader, all are. The queue of each candidate, and of no other, gives its weight
    (`cumulative_weights`), so none starves.

    Differences from Kafka's `RecordAccumulator.partitionReady`, where its code differs from the
    KIP's words: an idle partition on a broker that takes nothing is passed over too (Kafka skips
    the check for empty queues, and it keeps the highest weight); queue sizes are kept by partition
    (in Kafka one can inherit the queue of another that was passed over); if all are unready the
    queues still decide (Kafka forgets them); and partitions count from the first (Kafka draws
    evenly until each has had data).

    What a quantum takes too much is forgotten here, as in Kafka: this policy is meant to be uneven,
    and a byte counter would give back to a slow broker just what its queue took away from it.

    With `together`, quanta that are submitted at once, two or more for each candidate, become one
    run of records for each, of the expected number of quanta by the weights (`spread_quanta`):
    Kafka's probabilities with less variance.
    """

    name = "adaptive"

    def _drawer(self, load: TopicLoad) -> Callable[[], int]:
        drawer: Callable[[], int] | None = None

        def draw() -> int:
            nonlocal drawer
            if drawer is None:
                drawer = draw_by_queues(_ready(load), load.queued_batches, self._rng)
            return drawer()

        return draw

    def _parts(self, size_bytes: int, load: TopicLoad) -> Sequence[tuple[int, int]]:
        choices = _ready(load)
        quanta = size_bytes // self._limits.soft_bytes
        if quanta < TOGETHER_QUANTA * len(choices):
            return ()
        weights = cumulative_weights([load.queued_batches[partition] for partition in choices])
        counts = spread_quanta(quanta, weights, self._rng.random())
        parts = [
            (partition, size_bytes * count // quanta)
            for partition, count in zip(choices, counts, strict=True)
            if count
        ]
        return _from_anywhere(parts, self._rng)


def spread_quanta(quanta: int, cumulative: Sequence[int], jitter: float) -> list[int]:
    """How many of `quanta` each partition gets, by the weights in `cumulative` (as `draw_weighted`
    takes them).

    Each gets its expected number, rounded up or down by `jitter` (in [0, 1), one for all): 4
    quanta, weights 1 and 2, jitter 0.5 -> 1, 3.
    """
    total = cumulative[-1]
    bounds = [min(int(quanta * each / total + jitter), quanta) for each in (0, *cumulative)]
    return [stop - start for start, stop in pairwise(bounds)]


def _from_anywhere(items: Sequence[T], rng: Rng) -> list[T]:
    """`items` rotated to a random start, so that each is first equally often."""
    first = rng.randrange(len(items))
    return [*items[first:], *items[:first]]


def _ready(load: TopicLoad) -> Sequence[int]:
    """Partitions with a leader whose broker takes data; if there is none, all with a leader; if
    none has a leader, all."""
    having_leader = candidates(load)
    if not load.unready:
        return having_leader
    # A container that does not know whether it is empty gets here too.
    return [partition for partition in having_leader if partition not in load.unready] or having_leader
