"""Late binding: a record gets its partition when a broker is ready to take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from fairlead_kafka.core.machine import Dice
from fairlead_kafka.partitioning.account import Account
from fairlead_kafka.partitioning.load import TopicLoad


class LatePolicy:
    """Unkeyed records wait in one queue; a broker with room takes a batch for that of its partitions which is furthest behind.

    It must not be more than `lead_bytes` ahead of the partition furthest behind in account. So, at every moment, the bytes of
    any two partitions in account differ by at most `lead_bytes` and one batch: `batch.size`, or the largest record with its
    header if that is more, or what a gathering producer cuts at once: the even part of a backlog, and for a broker that lags its
    part of what comes until it is back.
    With `lead_bytes` 0 each waits for the others; without bound (2**63 - 1) nobody waits for anybody,
    and brokers take what they can.

    Why: what is bound early queues at the broker it was bound to, be that slow or not. What is bound late queues where
    every broker can still take it, and where a batch still grows. The idea is that of late binding in Sparrow (Ousterhout et
    al., SOSP 2013) and of join-idle-queue (Lu et al., 2011). No weights and no timers: a slow broker is asked less often because
    it asks less often, and batches are as full as the wait made them.

    Evenness is paid for by waiting. Where a broker cannot take its share at all, the wait has no end, unless it is bounded
    (`next_turn(overdue=True)`): the others then take what it leaves, and it owes nothing for that.

    Partitions whose broker is dead or silent leave the account, so that they hold nobody back, and come back level with the
    one furthest behind, so that they are not flooded (`Account`).
    """

    name = "late"
    binds_at: Literal["append", "drain"] = "drain"

    def __init__(self, *, batch_size_bytes: int, lead_bytes: int, dice: Dice) -> None:
        self.lead_bytes = lead_bytes
        self.account = Account(near_bytes=batch_size_bytes // 2, dice=dice)
        self._overdue: set[int] = set()  # partitions whose turn was due to that; until their batch is placed

    def arrange(self, led: Mapping[int, Sequence[int]], partition_count: int) -> None:
        """Which partitions each broker leads, of `partition_count`; those without leader are in none."""
        self.account.arrange(led, partition_count)

    def next_turn(self, brokers: Iterable[int], *, overdue: bool = False) -> int:
        """The partition led by one of `brokers` that is to get the next batch; -1: none, all are too far ahead or had their turn.

        `overdue`: the records have waited for the partitions behind for too long, and wait for them no more.
        """
        least_bytes = None if overdue else self.account.least_bytes()
        partition = self.account.next_turn(brokers, None if least_bytes is None else least_bytes + self.lead_bytes)
        if overdue and partition >= 0:
            self._overdue.add(partition)
        return partition

    def may_have_turn(self, partitions: Iterable[int]) -> bool:
        """True if one of these is not too far ahead."""
        least_bytes, placed_bytes = self.account.least_bytes(), self.account.placed_bytes
        return least_bytes is None or any(placed_bytes[each] <= least_bytes + self.lead_bytes for each in partitions)

    def end_turns(self) -> None:
        """The requests that the turns were for are complete: every partition may have a turn in the next ones."""
        self.account.end_turns()

    def placed(self, partition: int, size_bytes: int) -> None:
        """So many bytes, headers included, were bound to the partition."""
        if partition in self._overdue:
            self._overdue.discard(partition)
            self.account.lift(self.account.placed_bytes[partition] - self.lead_bytes)
        self.account.add(partition, size_bytes)

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """Nothing: batches that open for keyed records do not matter here."""
