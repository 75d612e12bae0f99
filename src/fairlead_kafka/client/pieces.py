"""Pieces of a table's columns, as they are submitted to the machine. Nothing here imports Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.units import MIB
from fairlead_kafka.producer.submission import Int32
from fairlead_kafka.records import BinaryColumn, HeaderColumns, RecordColumns

PIECE_MAX_BYTES = 2 * MIB
"""Bytes of a piece, about, so that sending begins before all of a large table has found room."""
_PIECES_IN_MEMORY = 8


class Part(NamedTuple):
    """One set of columns over Arrow's own memory, each record with a timestamp, and its partitions
    (-1: none) or None."""

    columns: RecordColumns
    partitions: Int32 | None


def cuts_of(columns: RecordColumns, memory_bytes: int) -> Iterator[tuple[int, int, int]]:
    """The pieces that columns are submitted in, so that several fit a `buffer.memory` of
    `memory_bytes`: start, stop and bytes of each."""
    limit = max(min(PIECE_MAX_BYTES, memory_bytes // _PIECES_IN_MEMORY), 1)
    ends = np.zeros(columns.count + 1, np.int64)
    np.cumsum(columns.sizes_bytes(), out=ends[1:])
    start = 0
    while start < columns.count:
        stop = max(int(ends.searchsorted(ends[start] + limit, "right")) - 1, start + 1)
        yield start, stop, int(ends[stop] - ends[start])
        start = stop


def piece_of(columns: RecordColumns, start: int, stop: int) -> RecordColumns:
    """Rows `start` to `stop` of columns, as columns over the same data."""
    headers = columns.headers
    if headers is not None:
        headers = HeaderColumns(headers.offsets[start : stop + 1], headers.keys, headers.values)
    stamps = None if columns.timestamps_ms is None else columns.timestamps_ms[start:stop]
    return RecordColumns(
        stop - start, _piece(columns.keys, start, stop), _piece(columns.values, start, stop), headers, stamps
    )


def _piece(column: BinaryColumn | None, start: int, stop: int) -> BinaryColumn | None:
    if column is None:
        return None
    return BinaryColumn(
        column.data,
        column.offsets[start : stop + 1],
        None if column.valid is None else column.valid[start:stop],
    )
