"""Frees memory of submissions of which little still waits: those records are copied out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.queues import Batch
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.spans import Span
from fairlead_kafka.producer.submission import Int64, Piece, Submission
from fairlead_kafka.producer.tuning import LOOK_BYTES
from fairlead_kafka.records import take_rows


class Remainders:
    """Keeps what is held in memory within twice what `buffer.memory` counts, and a few times
    `LOOK_BYTES`.

    A batch refers to rows of a submission's columns, and these stay whole as long as one of their
    records waits. (With keys and one slow broker of three, a third of each chunk of single records
    waits, and the memory of three times as many records would be held.) Once half of a submission
    or less still waits, the waiting records are copied out: once for each halving, so each at most
    twice on average. The pieces of a table are left alone: they share its columns, which are the
    caller's.
    """

    def __init__(self, ledger: Ledger, schedule: Schedule) -> None:
        self._ledger = ledger
        self._schedule = schedule
        self._taken_bytes = 0

    def taken(self, submissions: Iterable[Submission]) -> None:
        """Count the bytes of submissions just taken in; after every LOOK_BYTES, copy out the
        records that still wait of submissions whose columns are mostly delivered
        (`Submission.sparse`)."""
        self._taken_bytes += sum(submission.reserved_bytes for submission in submissions)
        if self._taken_bytes >= LOOK_BYTES:
            self._taken_bytes = 0
            sparse = {submission for submission in self._ledger.open_submissions() if submission.sparse}
            if sum(submission.source_bytes for submission in sparse) >= LOOK_BYTES:
                copy_out(
                    sparse,
                    self._ledger.batches,
                    [span for queue in self._schedule.active for span in queue.records.spans],
                )


def copy_out(submissions: set[Submission], batches: Iterable[Batch], spans: Iterable[Span]) -> None:
    """Copy out the waiting records of these submissions, if all of them are in `batches` and
    `spans`; a submission with records elsewhere is left as it is."""
    places: dict[Submission, list[tuple[Int64, Callable[[int], None]]]] = {}
    for batch in batches:
        for number, piece in enumerate(batch.pieces):
            if piece.submission in submissions:
                places.setdefault(piece.submission, []).append((_rows(piece), partial(_move, batch, number)))
    for span in spans:
        if span.submission in submissions:
            places.setdefault(span.submission, []).append((_rows(span.piece(span.stop)), span.move))
    for submission, found in places.items():
        if sum([len(rows) for rows, _ in found]) != submission.rows:
            continue
        together = np.concatenate([rows for rows, _ in found])
        submission.move(take_rows(submission.source, together), together)
        first_row = 0
        for rows, move in found:
            move(first_row)
            first_row += len(rows)


def _rows(piece: Piece) -> Int64:
    _, start, stop, order, _ = piece
    return np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]


def _move(batch: Batch, number: int, first_row: int) -> None:
    submission, start, stop, _, held_bytes = batch.pieces[number]
    batch.pieces[number] = Piece(submission, first_row, first_row + stop - start, None, held_bytes)
