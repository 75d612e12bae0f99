"""Submissions, operations and results, between a client API and the producer's machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.records import RecordColumns

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Calls = tuple[Callable[..., object], tuple[object, ...]]


CompletedRows = tuple[int, int, int, "Int64 | None", int, int, int, "Exception | None"]
"""Result of rows: (first row, start, stop, order, partition, base offset, log append ms, error).

Rows `first_row + order[start:stop]` (without order: `first_row + start` and on) are delivered, or
failed with the error. The first of them has the base offset (-1: not known) in the partition, each
next one 1 more; the time is -1 unless the broker set the timestamps.
"""


class Piece(NamedTuple):
    """Rows `order[start:stop]` of a submission's source, or rows `start` to `stop` of it, in a
    batch or about to be."""

    submission: Submission
    start: int
    stop: int
    order: Int64 | None
    held_bytes: int
    """Bytes of the rows before compression, which is what they hold of buffer.memory."""


class Delivery(Protocol):
    """Receiver of the results of one submission; rows are numbered as the user submitted them."""

    def complete(self, completed: CompletedRows) -> Calls | None:
        """Called once for each row, with the results of some rows. Returns what to call, outside
        the machine's step, for delivery callbacks; None if there are none."""


class Rows(NamedTuple):
    """Records of one submission, and, if they are a piece of a table, where in it they are."""

    columns: RecordColumns
    partitions: Int32 | None = None
    """int32[count] with -1 for none; None: no record has an explicit partition."""
    source: RecordColumns | None = None
    """The table's columns; None: `columns` are all there is."""
    base: int = 0
    """The row of `source` that is row 0 of `columns`."""
    first_row: int = 0
    """The row of the delivery that is row 0 of `source`."""


class Submission:
    """Records of one topic, submitted together: `columns`, the rows of `source` from `base` on.

    Once placed, rows are numbered as in `source`, which the pieces of one table share, so that
    their batches can be encoded together.
    """

    __slots__ = (
        "base", "columns", "created_ns", "delivery", "first_row", "metadata_asked", "moved", "partitions",
        "reserved_bytes", "rows",
        "serial", "source", "source_bytes", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        rows: Rows,
        delivery: Delivery,
        *,
        created_ns: int,
        reserved_bytes: int,
    ) -> None:
        columns, partitions, source, base, first_row = rows
        self.topic = topic
        self.columns = columns
        self.partitions = partitions
        """int32[count] with -1 for none; None: no record has an explicit partition."""
        self.delivery = delivery
        self.created_ns = created_ns
        self.reserved_bytes = reserved_bytes
        """Bytes of `buffer.memory` that these records still hold."""
        self.source_bytes = reserved_bytes
        """Bytes that its columns hold in memory, unless these are the caller's table."""
        self.source = columns if source is None else source
        self.base = base
        self.first_row = first_row
        """Row 0 of `source` is this row of `delivery`; may be negative."""
        self.rows = columns.count
        """Rows not yet delivered or failed."""
        self.moved: Int64 | None = None
        """After `move`: the row of the first source that each row was."""
        self.serial = 0
        """Number by order of arrival, set by the machine; 0: not arrived."""
        self.metadata_asked = -1
        """Requests for metadata when an explicit partition of these records was missing: they wait
        for the answer to a later one."""

    def sizes_bytes(self) -> Int64:
        """int64[count]: the encoded size of each record, as `RecordColumns.sizes_bytes` has it."""
        sizes = self.source.sizes_bytes()
        return sizes if self.columns is self.source else sizes[self.base : self.base + self.columns.count]

    @property
    def sparse(self) -> bool:
        """True if half of its columns' bytes or less still wait, and the columns are its own."""
        return self.source is self.columns and 0 < 2 * self.reserved_bytes <= self.source_bytes

    def move(self, source: RecordColumns, rows: Int64) -> None:
        """Use a new `source`, which has the rows `rows` of the old one: all that are not completed.
        From now on `start` and `stop` of `complete` count in the new source."""
        self.moved = rows if self.moved is None else self.moved[rows]
        self.source = self.columns = source
        self.source_bytes = self.reserved_bytes
        self.base, self.partitions = 0, None

    @hook("producer: a submission gives memory back")
    def complete(
        self,
        start: int,
        stop: int,
        order: Int64 | None,
        size_bytes: int,
        partition: int,
        base_offset: int,
        log_append_ms: int,
        error: Exception | None,
    ) -> tuple[int, Calls | None]:
        """Complete rows `order[start:stop]` of the source. Returns the bytes of buffer.memory that
        are freed, and the delivery callbacks to call."""
        self.rows -= stop - start
        freed = self.reserved_bytes if self.rows == 0 else min(size_bytes, self.reserved_bytes)
        self.reserved_bytes -= freed
        if self.moved is not None:
            order = self.moved
        return freed, self.delivery.complete(
            (self.first_row, start, stop, order, partition, base_offset, log_append_ms, error)
        )


class Intake(Protocol):
    """Intake of submissions: a client API adds them on any thread, its machine takes them."""

    def take(self, coming_back: bool) -> Sequence[Submission]:
        """All that was submitted since the last take, in order.

        With `coming_back`, and if anything was taken, the machine will look again within
        `tuning.POLL_INTERVAL_NS` without being woken: a stream of small sends then costs a step per
        interval, not one per record.
        """

    def close(self, error: Exception) -> None:
        """Called when the machine has ended: refuse what comes from now on."""


class Wake(NamedTuple):
    """Operation: look for submissions in the intake. It has no answer."""


class Flush(NamedTuple):
    """Operation: deliver everything submitted before, without lingering.

    Answered with None when all of it is delivered or failed.
    """

    completion: Completion[None]


class PartitionsFor(NamedTuple):
    """Operation: answered with the topic's list of `core.metadata.PartitionMetadata`, or with
    TimedOut after `timeout_ns` nanoseconds (None: max.block.ms)."""

    completion: Completion[list[PartitionMetadata]]
    topic: str
    timeout_ns: int | None = None


class Undelivered(NamedTuple):
    """Records that are neither delivered nor failed, by topic, and what holds up the oldest of
    them."""

    counts: dict[str, int]
    why: str


class ReportUndelivered(NamedTuple):
    """Operation: answered with `Undelivered` of one topic, or of all (None)."""

    completion: Completion[Undelivered]
    topic: str | None


class Stop(NamedTuple):
    """Operation: fail all incomplete records and close the connections. Answered with how many
    records were given up: {topic: count}. The last push of metrics may take `push_ns`
    nanoseconds."""

    completion: Completion[dict[str, int]]
    reason: str
    push_ns: int = 0
    """How long the last push of metrics may take, if a cluster asked for metrics (KIP-714)."""


class InitTransactions(NamedTuple):
    """Operation: get producer id and epoch for the transactional id, which fences older producers
    and ends a transaction that they left open. Answered with None.

    Operations with a deadline are answered with TimedOut when it passes, and go on all the same.
    `again`: the same operation was submitted before and timed out, so it may have ended meanwhile.
    """

    completion: Completion[None]
    deadline_ns: int
    again: bool = False


class BeginTransaction(NamedTuple):
    """Operation: begin a transaction, to which later submissions belong. Answered with None."""

    completion: Completion[None]
    again: bool = False


class SendOffsets(NamedTuple):
    """Commit a group's offsets with the open transaction. Answered with None once the group's
    coordinator has them."""

    completion: Completion[None]
    deadline_ns: int
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    group: GroupMetadata


class EndTransaction(NamedTuple):
    """Commit or abort the transaction, once everything submitted before is completed.

    An abort fails what was not sent. Answered with None.
    """

    completion: Completion[None]
    deadline_ns: int
    commit: bool
    again: bool = False


class PrepareTransaction(NamedTuple):
    """Leave the transaction open for another process to end, once its records are delivered.

    Answered with a `core.prepared.PreparedTransaction`, or None if nothing was sent in it. The
    producer is uninitialized then.
    """

    completion: Completion[PreparedTransaction | None]
    deadline_ns: int
    again: bool = False


class LeaveTransaction(NamedTuple):
    """Operation: leave the transaction before the producer ends. A commit or abort that is under
    way is waited for; an open transaction is aborted. Answered with True if there was one to abort,
    otherwise False."""

    completion: Completion[bool]
    deadline_ns: int


TransactionOperation = (
    InitTransactions | BeginTransaction | SendOffsets | EndTransaction | PrepareTransaction | LeaveTransaction
)
