"""Copying of some records out of columns."""

from __future__ import annotations

import numpy as np

from fairlead_kafka.records.arrays import Int64
from fairlead_kafka.records.columns import BinaryColumn, HeaderColumns, RecordColumns, all_null


def take_rows(columns: RecordColumns, rows: Int64) -> RecordColumns:
    """Records `rows` (int64[n]) of `columns`, in that order, as columns that share no memory with
    them."""
    keys, values = _taken(columns.keys, rows), _taken(columns.values, rows)
    stamps = None if columns.timestamps_ms is None else columns.timestamps_ms[rows]
    headers = None if columns.headers is None else _taken_headers(columns.headers, rows)
    return RecordColumns(len(rows), keys, values, headers, stamps)


def _taken(column: BinaryColumn | None, rows: Int64) -> BinaryColumn | None:
    if column is None:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    from fairlead_kafka.records.arrow import columns_from_arrow

    # The system's pool: Arrow's own keeps what it freed, and this is done to get memory back. From
    # the buffer: `pa.array` would import pandas where it is installed, and cannot while the
    # interpreter is ending.
    indices = pa.Array.from_buffers(
        pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows, np.int64))]
    )
    taken = pc.take(column.to_arrow(), indices, memory_pool=pa.system_memory_pool())
    ((made, _),) = columns_from_arrow(pa.record_batch({"value": taken}))
    return made.values


def _taken_headers(headers: HeaderColumns, rows: Int64) -> HeaderColumns:
    starts, counts = headers.offsets[rows], headers.offsets[rows + 1] - headers.offsets[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    items = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1], dtype=np.int64)
    keys, values = (
        _taken(column, items) or all_null(len(items)) for column in (headers.keys, headers.values)
    )
    return HeaderColumns(offsets, keys, values)
