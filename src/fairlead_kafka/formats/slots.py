"""Conversion between Arrow's arrays and the slots of `kernels`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairlead_kafka.formats.kernels import Bools, Bytes, Int64, gather_pieces

EMPTY: Bytes = np.empty(0, np.uint8)
BLOCK_ROWS = 65_536
"""Rows decoded or encoded at once: slots of ten fields are 5 MiB then, and bytes stay far below
what offsets of 32 bits reach."""


class NotByColumn(Exception):
    """Raised for a schema, or a type, that machine code does not take: its values go row by row."""


class Pieces(NamedTuple):
    """The bytes of a binary array: where each begins in `data`, and ends. Null rows are empty."""

    data: Bytes
    starts: Int64
    ends: Int64
    given: Bools


def pieces_of(array: pa.Array) -> Pieces:
    """The bytes of an array of `pa.binary()` or `pa.string()`; nothing is copied but offsets."""
    _, offsets, data = array.buffers()
    count = len(array)
    if offsets is None or not count:
        return Pieces(EMPTY, np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.bool_))
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + count + 1].astype(np.int64)
    given = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else np.ones(count, np.bool_)
    return Pieces(EMPTY if data is None else np.frombuffer(data, np.uint8), ends[:-1], ends[1:], given)


def bitmap(valid: Bools | None) -> pa.Buffer | None:
    """Arrow's validity bitmap of an array; None if no value is null."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def numbers(
    kind: pa.DataType, values: np.ndarray[tuple[int], np.dtype[np.generic]], valid: Bools | None
) -> pa.Array:
    """An array of a type of fixed width over NumPy's memory."""
    return pa.Array.from_buffers(
        kind, len(values), [bitmap(valid), pa.py_buffer(np.ascontiguousarray(values))]
    )


def booleans(values: Bools, valid: Bools | None) -> pa.Array:
    """An array of booleans, null where not valid."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap(valid), bits])


def binaries(source: Bytes, starts: Int64, sizes: Int64, valid: Bools | None) -> pa.Array:
    """An array of `pa.binary()`: pieces of a source, copied."""
    offsets = np.zeros(len(starts) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    end = gather_pieces(source, starts, sizes, out)
    assert end == len(out), "pieces were read within the source"
    return pa.Array.from_buffers(
        pa.binary(), len(starts), [bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(out)]
    )


def encoded(encode: Callable[[Bytes, Int64], int], rows: int, limit: int, given: Bools) -> pa.Array:
    """An array of `pa.binary()` that the kernel `encode` writes, of `limit` bytes at most; null in
    rows that are not `given`."""
    out, offsets = np.empty(limit, np.uint8), np.empty(rows + 1, np.int64)
    end = encode(out, offsets)
    assert 0 <= end <= 2**31 - 1, "the limit was computed, and blocks are small"
    buffers = [bitmap(given), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out[:end])]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def in_blocks(
    array: pa.Array, work: Callable[[pa.Array], tuple[pa.Array, dict[int, str]]], kind: pa.DataType
) -> tuple[pa.Array, dict[int, str]]:
    """The results of `work` for blocks of rows, put together, and the reasons by row of the whole
    array."""
    if len(array) <= BLOCK_ROWS:
        return work(array)
    parts: list[pa.Array] = []
    reasons: dict[int, str] = {}
    for start in range(0, len(array), BLOCK_ROWS):
        part, found = work(array.slice(start, BLOCK_ROWS))
        parts.append(part)
        reasons.update({start + row: why for row, why in found.items()})
    return pa.concat_arrays(parts) if parts else pa.array([], kind), reasons


def placed(pieces: Sequence[tuple[Int64, pa.Array]], count: int, target: pa.DataType) -> pa.Array:
    """An array of `count` rows of type `target`, made of `pieces`, each with its rows; null in rows
    that no piece has."""
    pieces = [(rows, array) for rows, array in pieces if len(rows)]
    if not pieces:
        return pa.nulls(count, target)
    order = np.concatenate([rows for rows, _ in pieces])
    arrays = pa.concat_arrays([array for _, array in pieces]) if len(pieces) > 1 else pieces[0][1]
    if len(order) == count and bool((order == np.arange(count)).all()):
        return arrays
    places = np.full(count, -1, np.int64)
    places[order] = np.arange(len(order))
    return arrays.take(pa.array(places, mask=places < 0))
