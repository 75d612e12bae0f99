"""`Batch`: records cut for one partition, from the request they first go out with to the last
result."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from fairlead_kafka.producer.submission import Piece
from fairlead_kafka.records import Slice

if TYPE_CHECKING:
    from fairlead_kafka.producer.queues import PartitionQueue


class BatchState(Enum):
    """States of a batch; see TRANSITIONS."""

    CUT = "it is about to be sent, or put back"
    IN_FLIGHT = "a request with it is not answered"
    ANSWERED = "an answer or a failure came, and is being judged"
    RETRY = "it waits to be sent again"
    DONE = "its records are completed"
    ABANDONED = "its records are completed, and it is still in flight"


class BatchTrigger(Enum):
    """Events that change the state of a batch; see TRANSITIONS."""

    SENT = "a request with it goes out"
    ANSWERED = "that request was answered, or its connection failed"
    PUT_BACK = "it is to be sent again"
    SETTLED = "its records are delivered or failed, or in smaller batches"


TRANSITIONS: dict[tuple[BatchState, BatchTrigger], BatchState] = {
    (BatchState.CUT, BatchTrigger.SENT): BatchState.IN_FLIGHT,
    (BatchState.CUT, BatchTrigger.PUT_BACK): BatchState.RETRY,  # a part of one that was split
    (BatchState.IN_FLIGHT, BatchTrigger.ANSWERED): BatchState.ANSWERED,
    (BatchState.IN_FLIGHT, BatchTrigger.SETTLED): BatchState.ABANDONED,
    (BatchState.ANSWERED, BatchTrigger.SETTLED): BatchState.DONE,
    (BatchState.ANSWERED, BatchTrigger.PUT_BACK): BatchState.RETRY,
    (BatchState.RETRY, BatchTrigger.SENT): BatchState.IN_FLIGHT,
    (BatchState.RETRY, BatchTrigger.SETTLED): BatchState.DONE,
    (BatchState.ABANDONED, BatchTrigger.ANSWERED): BatchState.DONE,
}


class Batch:
    """Records of one partition that are sent together, and again together if need be.

    It is encoded when it is first sent; its bytes then stay as they are, so that a retry repeats
    them. They change only when it gets another epoch and sequence (`restamp`), or when it is split.
    """

    __slots__ = (
        "attempts", "base_sequence", "bound_bytes", "buffer", "count", "created_ns", "last_error",
        "leader_epoch", "maybe_written",
        "pieces", "producer_epoch", "producer_id", "queue", "retry_at_ns", "serial", "size_bytes",
        "split_limit_bytes", "state",
        "uncompressed_bytes",
    )  # fmt: skip

    def __init__(
        self,
        queue: PartitionQueue,
        pieces: list[Piece],
        created_ns: int,
        size_bytes: int,
        *,
        bound_bytes: int,
    ) -> None:
        self.queue = queue
        self.pieces = pieces
        self.count = sum([piece.stop - piece.start for piece in pieces])
        self.created_ns = created_ns
        """When its first record was submitted: delivery.timeout.ms counts from here."""
        self.size_bytes = size_bytes
        """Estimated bytes of the records in the batch (after compression), without the header."""
        self.bound_bytes = bound_bytes
        """Bytes of buffer.memory held by records that were bound on submission, by key, partition
        or policy. These records come first; those that `late` bound, as the batch was cut, come
        after them."""
        self.state = BatchState.CUT
        self.buffer: memoryview | None = None
        self.attempts = 0
        self.retry_at_ns = 0
        self.serial = 0
        """Order of first sending, 0 before; retried batches line up by it."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.leader_epoch = -1
        """The partition's leader epoch when it was last sent."""
        self.maybe_written = False
        """An attempt ended without a clear answer: a broker may have it, whatever another attempt
        is told."""
        self.split_limit_bytes = 0
        """Limit of the split that it is a part of, in record bytes; 0: it is no part of one."""
        self.last_error: Exception | None = None
        self.uncompressed_bytes = 0
        """Size of its buffer if it were not compressed; 0: it is not compressed."""

    @property
    def in_flight(self) -> bool:
        """True if a request with it is not answered."""
        return self.state is BatchState.IN_FLIGHT or self.state is BatchState.ABANDONED

    @property
    def done(self) -> bool:
        """True if its records are completed, whatever may still come from a broker."""
        return self.state is BatchState.DONE or self.state is BatchState.ABANDONED

    @property
    def held_bytes(self) -> int:
        """Bytes of buffer.memory that its records hold."""
        return sum([piece.held_bytes for piece in self.pieces])

    def fire(self, trigger: BatchTrigger) -> None:
        """Change state by the table; UsageError if it has no such row."""
        following = TRANSITIONS.get((self.state, trigger))
        if following is None:
            raise UsageError(f"a batch that is {self.state.name} cannot be {trigger.name}")
        self.state = following
        if trigger is BatchTrigger.SETTLED:
            self.pieces, self.buffer = [], None

    def slices(self) -> list[Slice]:
        """Its records as `records.encode` takes them."""
        return [Slice(piece.submission.source, piece.start, piece.stop, piece.order) for piece in self.pieces]

    def __str__(self) -> str:
        return f"{self.count} record{'' if self.count == 1 else 's'} for {self.queue}"
