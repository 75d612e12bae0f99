"""Memory of hand-overs of which little still waits: what does is copied out, so that the rest of their columns can go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.batch import Batch
from fairlead_kafka.producer.handover import Handover, Int64
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.records import gather

LOOK_BYTES = 1 << 22
"""Hand-overs are looked through each time so much was taken in, and nothing is done for less."""


class Remainders:
    """Keeps what is held in memory within twice what `buffer.memory` counts, and a few times `LOOK_BYTES`.

    A batch refers to rows of a hand-over's columns, and these stay whole as long as one of their records waits. With keys and one slow
    broker of three, a third of each chunk of single records waits, and the memory of three times as many records would be held. Once
    half of a hand-over or less still waits, that is copied out: each record once for each halving, so twice at the most on
    average. The pieces of a table are left alone: they share its columns, which are the caller's.
    """

    def __init__(self, ledger: Ledger, accumulator: Accumulator) -> None:
        self._ledger = ledger
        self._accumulator = accumulator
        self._taken_bytes = 0

    def taken(self, handovers: Iterable[Handover]) -> None:
        """These were just taken in."""
        self._taken_bytes += sum(handover.reserved_bytes for handover in handovers)
        if self._taken_bytes >= LOOK_BYTES:
            self._taken_bytes = 0
            sparse = {handover for handover in self._ledger.open_handovers() if handover.sparse}
            if sum(handover.source_bytes for handover in sparse) >= LOOK_BYTES:
                copy_out(sparse, self._accumulator.batches())


def copy_out(handovers: set[Handover], batches: Sequence[Batch]) -> None:
    """Copy out what waits of these hand-overs, all of it in `batches`; those with records elsewhere are left as they are."""
    places: dict[Handover, list[tuple[Batch, int]]] = {}
    for batch in batches:
        for number, piece in enumerate(batch.pieces):
            if piece[0] in handovers:
                places.setdefault(piece[0], []).append((batch, number))
    for handover, found in places.items():
        rows = [_rows(*batch.pieces[number][1:4]) for batch, number in found]
        if sum(map(len, rows)) != handover.rows:
            continue
        handover.move(gather(handover.source, np.concatenate(rows)), np.concatenate(rows))
        start = 0
        for (batch, number), own in zip(found, rows, strict=True):
            batch.pieces[number] = (handover, start, start + len(own), None, batch.pieces[number][4])
            start += len(own)


def _rows(start: int, stop: int, order: Int64 | None) -> Int64:
    return np.arange(start, stop, dtype=np.int64) if order is None else order[start:stop]
