"""Memory of hand-overs of which little still waits: what does is copied out, so that the rest of their columns can go."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from fairlead_kafka.producer.batch import Batch
from fairlead_kafka.producer.handover import Handover, Int64, Piece
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.spans import Span
from fairlead_kafka.producer.tuning import LOOK_BYTES
from fairlead_kafka.records import gather


class Remainders:
    """Keeps what is held in memory within twice what `buffer.memory` counts, and a few times `LOOK_BYTES`.

    A batch refers to rows of a hand-over's columns, and these stay whole as long as one of their records waits. With keys and one slow
    broker of three, a third of each chunk of single records waits, and the memory of three times as many records would be held. Once
    half of a hand-over or less still waits, that is copied out: each record once for each halving, so twice at the most on
    average. The pieces of a table are left alone: they share its columns, which are the caller's.
    """

    def __init__(self, ledger: Ledger, schedule: Schedule) -> None:
        self._ledger = ledger
        self._schedule = schedule
        self._taken_bytes = 0

    def taken(self, handovers: Iterable[Handover]) -> None:
        """These were just taken in."""
        self._taken_bytes += sum(handover.reserved_bytes for handover in handovers)
        if self._taken_bytes >= LOOK_BYTES:
            self._taken_bytes = 0
            sparse = {handover for handover in self._ledger.open_handovers() if handover.sparse}
            if sum(handover.source_bytes for handover in sparse) >= LOOK_BYTES:
                copy_out(sparse, self._ledger.batches, [span for queue in self._schedule.active for span in queue.records.spans])


def copy_out(handovers: set[Handover], batches: Iterable[Batch], spans: Iterable[Span]) -> None:
    """Copy out what waits of these hand-overs, all of it in `batches` and `spans`; those with records elsewhere are left as they are."""
    places: dict[Handover, list[tuple[Int64, Callable[[int], None]]]] = {}
    for batch in batches:
        for number, piece in enumerate(batch.pieces):
            if piece.handover in handovers:
                places.setdefault(piece.handover, []).append((_rows(piece), partial(_move, batch, number)))
    for span in spans:
        if span.handover in handovers:
            places.setdefault(span.handover, []).append((_rows(span.piece(span.stop)), span.move))
    for handover, found in places.items():
        if sum([len(rows) for rows, _ in found]) != handover.rows:
            continue
        together = np.concatenate([rows for rows, _ in found])
        handover.move(gather(handover.source, together), together)
        first_row = 0
        for rows, move in found:
            move(first_row)
            first_row += len(rows)


def _rows(piece: Piece) -> Int64:
    _, start, stop, order, _ = piece
    return np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]


def _move(batch: Batch, number: int, first_row: int) -> None:
    handover, start, stop, _, held_bytes = batch.pieces[number]
    batch.pieces[number] = Piece(handover, first_row, first_row + stop - start, None, held_bytes)
