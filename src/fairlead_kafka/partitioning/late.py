"""Late binding: a record gets its partition when a broker is ready to take it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.partitioning.byte_counter import ByteCounter
from fairlead_kafka.partitioning.load import TopicLoad
from fairlead_kafka.partitioning.tuning import (
    OWED_SPAN_S,
    RATE_LEAST_NS,
    RATE_SAMPLE_NS,
    RATE_SPAN_NS,
    SKEW_RATIO,
)


class BrokerView(NamedTuple):
    """State of a broker for `LatePolicy.quotas`."""

    wait_ns: int
    """Nanoseconds until it can take a request, if it is not free."""
    takes_bytes: int
    """Bytes of records, before compression, that it can take then."""
    free: bool
    """It can take a request in this round."""


class Quota(NamedTuple):
    """A free broker, and bytes before compression that it may take of the records that wait."""

    broker: int
    lacks_bytes: float
    """Bytes that it lacks of its even part; the others leave it so much."""
    most_bytes: float
    """Most that it may take: what puts the free brokers level, and the skew that is allowed more.
    So a few records are one request, and not one for each broker."""


def kept_bytes(quotas: Iterable[tuple[int, float]], rate: float) -> float:
    """Bytes of the waiting records to keep back now for busy brokers. Each quota is `(nanoseconds
    until its broker is free, bytes that the broker may then take)`.

    A busy broker is to find its quota when it is free, of the newest records: those wait for its
    answer anyway, and should not have waited before. Until then more come, at `rate` bytes a ns;
    only what these will not make up is kept. Of several, the first so many to be free need their
    quotas together, less what comes until the last of them is.

        waits:      | the others' |<-- kept by now -->|
        will come:                                    |<-- until it is free -->|
        quota:                  |<------------------------------------------>|
    """
    kept = together = 0.0
    for wait_ns, size_bytes in sorted(quotas):
        together += size_bytes
        kept = max(kept, together - rate * wait_ns)
    return kept


def levelled(levels: Sequence[tuple[float, int]], size_bytes: float) -> list[float]:
    """Shares of `size_bytes`, one for each item of `levels`, that bring the lowest to one level
    (water-filling).

    An item of `levels` is a broker: its bytes per partition, and how many partitions it has. A
    broker above the level gets 0.
    """
    low = level = 0.0
    width = 0
    ascending = sorted(levels)
    for number, (height, count) in enumerate(ascending):
        low += height * count
        width += count
        level = (size_bytes + low) / width
        if number + 1 == len(ascending) or level <= ascending[number + 1][0]:
            break
    return [max((level - height) * count, 0.0) for height, count in levels]


class LatePolicy:
    """Late binding: unkeyed records wait in one queue, and a broker with room takes them.

    They go to those of its partitions that are furthest behind. A broker's even part is that of its
    partitions. What it lacks of it, once all that waits and comes until it is free is given out, is
    kept for it (`kept_bytes`), beyond the skew that is allowed, and no more than it can take. The
    others take all else as it comes. So all get the same, however slow they are, and only what a
    slow broker takes waits for it. It may be behind by `skew_bytes`; by default (None) by a batch,
    or by SKEW_RATIO of its even part of what was placed in the last OWED_SPAN_S. Without bound
    (2**63 - 1) nothing is kept.

    A broker that cannot take its even part delays no other, for no more is kept than it takes: it
    gets that, and the others the rest. When it is quick again it is level soon: what it missed in
    the last OWED_SPAN_S is made up for, what it missed before is forgotten.

    Why: what is bound early queues at the broker it was bound to, be that slow or not. What is
    bound late queues where every broker can still take it, and where a batch still grows. The idea
    is that of late binding in Sparrow (Ousterhout et al., SOSP 2013) and of join-idle-queue (Lu et
    al., 2011). There are no weights and no timers: a slow broker takes records less often because
    it is free less often, and batches are as full as the wait made them.

    Partitions whose broker is dead or silent leave the byte counter, so that nothing is kept for
    them, and come back level with the others, so that they are not flooded (`ByteCounter`).
    """

    name = "late"
    binds_at: Literal["append", "drain"] = "drain"

    def __init__(self, *, batch_size_bytes: int, skew_bytes: int | None, rng: Rng) -> None:
        self.skew_bytes, self._batch_bytes = skew_bytes, batch_size_bytes
        self.counter = ByteCounter(near_bytes=batch_size_bytes // 2, rng=rng)
        self._near_bytes, self._rng = batch_size_bytes // 2, rng
        self._arrived: deque[tuple[int, int]] = deque()  # when, and how much had ever come by then
        self._placed: deque[tuple[int, int]] = deque()  # when, and how much was ever placed by then
        self._placed_bytes = 0

    def arrange(self, led: Mapping[int, Sequence[int]], partition_count: int) -> None:
        """Set the partitions that each broker leads; of `partition_count` some may lack one."""
        self.counter.arrange(led, partition_count)

    def observe(self, arrived_bytes: int, now_ns: int) -> None:
        """Note that `arrived_bytes` of records have arrived since the start; call it before
        `quotas`."""
        arrived = self._arrived
        if not arrived or now_ns - arrived[-1][0] >= RATE_SAMPLE_NS:
            arrived.append((now_ns, arrived_bytes))
            while len(arrived) > 2 and arrived[0][0] < now_ns - RATE_SPAN_NS:
                arrived.popleft()
        placed = self._placed
        if not placed or now_ns - placed[-1][0] >= NS_PER_S:
            placed.append((now_ns, self._placed_bytes))
            if len(placed) > OWED_SPAN_S + 1:
                placed.popleft()
            self._forget_old()

    def quotas(
        self, waiting_bytes: int, brokers: Mapping[int, BrokerView], ratio: float, now_ns: int
    ) -> tuple[int, list[Quota]]:
        """How many of `waiting_bytes`, the unkeyed records' bytes, brokers may take now: all free
        brokers together, and each of them, the one that may take least first.

        `brokers` are all that lead partitions, busy or free. `ratio`: compressed bytes, in which
        the byte counter of this policy counts, for each byte of a record before compression. What
        busy brokers lack to their even part is kept for them. The free ones get the rest, or what
        they lack themselves, if that is more. Brokers that may take nearly the same come in random
        order.
        """
        counter, rate, recent_bytes = self.counter, self._rate(now_ns), self._recent_bytes()
        standings = {broker: counter.counted_of(broker) for broker in brokers}
        counted = max(counter.counted, 1)
        all_bytes = sum([size_bytes for size_bytes, _ in standings.values()]) + waiting_bytes * ratio
        busy: list[tuple[int, float]] = []
        lacking: dict[int, tuple[float, float]] = {}  # what it lacks, and what it may be behind by
        for broker, (wait_ns, takes_bytes, free) in brokers.items():
            size_bytes, count = standings[broker]
            share = count / counted
            coming_bytes = 0.0 if free else rate * wait_ns * ratio
            skew_bytes = self._skew_bytes(share, recent_bytes)
            lacks_bytes = min(
                (share * (all_bytes + coming_bytes) - size_bytes - skew_bytes) / ratio, takes_bytes
            )
            if free:
                lacking[broker] = max(lacks_bytes, 0.0), skew_bytes
            elif lacks_bytes > 0:
                busy.append((wait_ns, lacks_bytes))
        own_bytes = sum([lacks_bytes for lacks_bytes, _ in lacking.values()])
        open_bytes = min(max(waiting_bytes - kept_bytes(busy, rate), own_bytes), waiting_bytes)
        if open_bytes <= 0 or not lacking:
            return 0, []
        levels = [(counter.average_bytes(broker), standings[broker][1] or 1) for broker in lacking]
        found = []
        for (broker, lacked), (level, _), part in zip(
            lacking.items(), levels, levelled(levels, open_bytes * ratio), strict=True
        ):
            jitter = self._rng.random() * (self._near_bytes + 1)
            found.append((level + jitter, Quota(broker, lacked[0], (part + lacked[1]) / ratio)))
        return int(open_bytes) or 1, [quota for _, quota in sorted(found)]

    def next_in_round(self, broker: int) -> int:
        """The partition of this broker that is to get the next batch; -1: all had one in this
        round."""
        return self.counter.next_in_round((broker,))

    def end_round(self) -> None:
        """End the round, once its requests are complete: every partition may get a batch again."""
        self.counter.end_round()

    def placed(self, partition: int, size_bytes: int) -> None:
        """Count `size_bytes`, headers included, that were bound to the partition."""
        self.counter.add(partition, size_bytes)
        self._placed_bytes += size_bytes

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """Do nothing: batches that open for keyed records do not matter here."""

    def check(self) -> None:
        """Raise CheckFailed unless the counter has what was placed, and samples fit their spans."""
        self.counter.check()
        holds("samples of what arrived", len(self._arrived) <= RATE_SPAN_NS // RATE_SAMPLE_NS + 2)
        holds("samples of what was placed", len(self._placed) <= OWED_SPAN_S + 1)
        for samples in (self._arrived, self._placed):
            holds("samples out of order", list(samples) == sorted(samples))
        holds("more was placed in a while than ever", 0 <= self._recent_bytes() <= self._placed_bytes)

    def _rate(self, now_ns: int) -> float:
        """Bytes that arrive per nanosecond."""
        if not self._arrived:
            return 0.0
        (begun_ns, before_bytes), (_, by_now_bytes) = self._arrived[0], self._arrived[-1]
        return (by_now_bytes - before_bytes) / max(now_ns - begun_ns, RATE_LEAST_NS)

    def _recent_bytes(self) -> int:
        """Bytes placed in the last OWED_SPAN_S seconds."""
        return self._placed_bytes - self._placed[0][1] if self._placed else 0

    def _skew_bytes(self, share: float, recent_bytes: int) -> float:
        """Bytes that a broker may be behind by, of whose partitions `share` (0 to 1) is the even
        part, when `recent_bytes` were placed in the last OWED_SPAN_S seconds."""
        return (
            max(self._batch_bytes, SKEW_RATIO * share * recent_bytes)
            if self.skew_bytes is None
            else self.skew_bytes
        )

    def _forget_old(self) -> None:
        """Raise the counters of partitions that are too far behind: none is owed more than its even
        part of the last OWED_SPAN_S seconds, and a batch."""
        counter = self.counter
        if counter.counted:
            counter.lift(
                (counter.counted_bytes - self._recent_bytes()) // counter.counted - self._batch_bytes
            )
