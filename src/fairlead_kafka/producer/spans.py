"""Waiting records, as spans of rows of submissions; only `SpanQueue.cut` makes batches of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.producer.submission import Int64, Piece, Submission

Sums = Sequence[int]


def prefix_sums(sizes: Int64) -> Sums:
    """Prefix sums of `sizes`, from 0."""
    if len(sizes) == 1:
        return (0, int(sizes[0]))
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.add.accumulate(sizes, out=sums[1:])
    return sums.data  # gives Python's integers at a fifth of what an array's items cost


class Span:
    """Rows of one submission: `order[start:stop]` of its source, or rows `start` to `stop` of its
    columns if there is no order.

    `ends` is the prefix sum of the sizes, which spans of a submission share; so a batch is cut from
    any length by one binary search.
    """

    __slots__ = ("ends", "first_row", "order", "start", "stop", "submission")

    def __init__(
        self, submission: Submission, ends: Sums, start: int, stop: int, order: Int64 | None = None
    ) -> None:
        self.submission, self.ends, self.start, self.stop, self.order = submission, ends, start, stop, order
        self.first_row = submission.base
        """Row 0 without an order is this one of the source."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the records in a batch, before compression."""
        return self.ends[self.stop] - self.ends[self.start]

    def piece(self, stop: int) -> Piece:
        """The rows from the span's `start` to `stop`, as a batch holds them."""
        ends, start = self.ends, self.start
        if self.order is None:
            return Piece(
                self.submission, self.first_row + start, self.first_row + stop, None, ends[stop] - ends[start]
            )
        return Piece(self.submission, start, stop, self.order, ends[stop] - ends[start])

    def move(self, first_row: int) -> None:
        """Note that the submission has a new source, in which this span's rows lie one after the
        other from `first_row` on (`Submission.move`)."""
        self.ends = prefix_sums(np.diff(np.asarray(self.ends[self.start : self.stop + 1])))
        self.start, self.stop, self.order, self.first_row = 0, self.stop - self.start, None, first_row


class SpanQueue:
    """A queue of spans, first in, first out. Sizes are record bytes before compression."""

    __slots__ = ("arrived_bytes", "count", "size_bytes", "spans")

    def __init__(self) -> None:
        self.spans: deque[Span] = deque()
        self.size_bytes = 0
        self.count = 0
        """Number of records that wait."""
        self.arrived_bytes = 0
        """Bytes of all records that ever waited here."""

    @property
    def oldest_ns(self) -> int:
        """Monotonic time, ns, at which the first of the waiting records was submitted."""
        return self.spans[0].submission.created_ns

    @property
    def next_bytes(self) -> int:
        """Bytes of the first record, before compression."""
        span = self.spans[0]
        return span.ends[span.start + 1] - span.ends[span.start]

    def append(self, span: Span) -> None:
        """Add records, behind the others."""
        size_bytes = span.ends[span.stop] - span.ends[span.start]
        self.size_bytes += size_bytes
        self.arrived_bytes += size_bytes
        self.count += span.stop - span.start
        if self.spans:
            last = self.spans[-1]
            if last.ends is span.ends and last.stop == span.start and last.order is span.order:
                last.stop = span.stop
                return
        self.spans.append(span)

    def cut(self, room_bytes: int) -> list[Piece]:
        """Take records from the front: as many as fit `room_bytes`, and one at least."""
        pieces: list[Piece] = []
        spans, room = self.spans, room_bytes
        while spans:
            span = spans[0]
            ends, start, stop = span.ends, span.start, span.stop
            if ends[stop] - ends[start] > room:
                stop = bisect_right(ends, ends[start] + max(room, 0), start, stop) - 1
                if stop == start:
                    if pieces:
                        break
                    stop += 1
            piece = span.piece(stop)
            pieces.append(piece)
            self.size_bytes -= piece.held_bytes
            self.count -= stop - start
            room -= piece.held_bytes
            if stop < span.stop:
                span.start = stop
                break
            spans.popleft()
        return pieces

    def take_older(self, than_ns: int) -> list[Piece]:
        """Take the records that were submitted at `than_ns` or before."""
        taken = []
        while self.spans and self.spans[0].submission.created_ns <= than_ns:
            span = self.spans.popleft()
            piece = span.piece(span.stop)
            taken.append(piece)
            self.size_bytes -= piece.held_bytes
            self.count -= span.stop - span.start
        return taken

    def check(self, what: str) -> None:
        """Raise CheckFailed, naming `what`, unless bytes and records are those of the spans."""
        same(f"bytes that wait for {what}", self.size_bytes, sum(span.size_bytes for span in self.spans))
        same(f"records that wait for {what}", self.count, sum(span.stop - span.start for span in self.spans))
        holds(
            f"a span waits for {what} that is used up",
            all(0 <= span.start < span.stop for span in self.spans),
        )
