"""`Batch`: records bound for one partition, from the first appended to the last result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from fairlead_kafka.producer.handover import Handover, Int64
from fairlead_kafka.records import Slice

if TYPE_CHECKING:
    from fairlead_kafka.producer.queues import PartitionQueue

Piece = tuple[Handover, int, int, "Int64 | None", int]
"""Rows `order[start:stop]` of a hand-over's source and what they hold of buffer.memory: (handover, start, stop, order, size_bytes)."""


GROWTH_BYTES = 3
"""What a record may take in a batch beyond its size by itself: 1 for an offset delta above 8191, 2 for the timestamps of
batches that were gathered into one, up to 17 minutes apart (`RecordColumns.sizes_bytes`). A batch that still comes out larger is split."""


class Batch:
    """A batch in the making, waiting, in flight or waiting to be sent again.

    It is encoded when it is first drained; its bytes then stay as they are, so that a retry repeats them. They change only when
    its producer state is given anew (`restamp`) or when it is split.
    """

    __slots__ = (
        "attempts",
        "base_sequence",
        "bound_early",
        "buffer",
        "closed",
        "count",
        "created_ns",
        "deadline_ns",
        "done",
        "in_flight",
        "last_error",
        "leader_epoch",
        "maybe_written",
        "pieces",
        "producer_epoch",
        "producer_id",
        "queue",
        "retry_at_ns",
        "serial",
        "size_bytes",
        "split_limit_bytes",
        "turns",
        "uncompressed_bytes",
    )

    def __init__(self, queue: PartitionQueue, created_ns: int, deadline_ns: int) -> None:
        self.queue = queue
        self.pieces: list[Piece] = []
        self.count = 0
        self.size_bytes = 0
        """Estimated bytes of the records in the batch (after compression), without the header."""
        self.created_ns = created_ns
        """When its first record was handed over: linger.ms and delivery.timeout.ms count from here."""
        self.deadline_ns = deadline_ns
        self.closed = False
        """Takes no more records."""
        self.buffer: memoryview | None = None
        self.attempts = 0
        self.retry_at_ns = 0
        self.serial = 0
        """Order of first draining, 0 before; retried batches line up by it."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.leader_epoch = -1
        """The partition's leader epoch when it was last sent."""
        self.in_flight = False
        self.done = False
        """Its records are delivered or failed, whatever may still come from a broker."""
        self.maybe_written = False
        """An attempt ended without a clear answer: a broker may have it, whatever another attempt is told."""
        self.bound_early = True
        """Bound when handed over, by key, partition or policy; not by `late`, as it was drained."""
        self.turns = 1
        """Batches of batch.size that it counts as where a policy compares queues (`TopicLoad.queued_batches`)."""
        self.split_limit_bytes = 0
        """What batches it was split into may hold at most, 0: it was never split."""
        self.last_error: Exception | None = None
        self.uncompressed_bytes = 0
        """What its buffer would be without compression; 0: not compressed."""

    def add(self, handover: Handover, start: int, stop: int, order: Int64 | None, size_bytes: int, held_bytes: int) -> None:
        """Append rows; `size_bytes` is what they take in the batch, `held_bytes` what they hold of buffer.memory."""
        self.pieces.append((handover, start, stop, order, held_bytes))
        self.count += stop - start
        self.size_bytes += size_bytes

    def absorb(self, behind: Batch) -> None:
        """Take over the records of the batch right behind this one; neither was ever sent. That one is settled with this one."""
        handover, start, stop, order, held_bytes = self.pieces[-1]
        other, *stretch, other_order, other_bytes = behind.pieces[0]
        if other is handover and other_order is order and stretch[0] == stop:
            self.pieces[-1] = (handover, start, stretch[1], order, held_bytes + other_bytes)
            del behind.pieces[0]
        self.pieces += behind.pieces
        self.count += behind.count
        self.size_bytes += behind.size_bytes
        self.turns += behind.turns
        behind.done, behind.pieces = True, []

    def slices(self) -> list[Slice]:
        """Its records as `records.encode` takes them."""
        return [Slice(handover.source, start, stop, order) for handover, start, stop, order, _ in self.pieces]

    def __str__(self) -> str:
        return f"{self.count} record{'' if self.count == 1 else 's'} for {self.queue}"
