"""Decoding of very large batches in parts of whole records, with memory for one part.

A part begins with the first wanted record. The records before it are inflated, walked over and
dropped, again for each part: nothing is kept from one part to the next. So a batch of n parts costs
the work of n * (n + 1) / 2 of them; there are 16 at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.base.limits import INFLATED_BATCH_MAX_BYTES, INFLATED_IN_PARTS_MAX_BYTES
from fairlead_kafka.base.units import MIB
from fairlead_kafka.records import faults, xerial
from fairlead_kafka.records.arrays import Bytes
from fairlead_kafka.records.decode_kernels import whole_records
from fairlead_kafka.records.layout import HEADER_SIZE_BYTES, BatchHeader, Compression, Data, as_view

PIECE_BYTES = 4 * MIB
"""Inflated bytes that are read from a codec at a time."""


class Part(NamedTuple):
    """Some whole records of a compressed batch: the first `records` in the inflated bytes `source`.
    `next_offset` is where the next part begins, or the offset after the batch."""

    source: Bytes
    records: int
    next_offset: int


def part_of(
    array: Bytes, header: BatchHeader, from_offset: int, limit_bytes: int = INFLATED_BATCH_MAX_BYTES
) -> Part:
    """The first part of a compressed batch that holds a record at `from_offset` or later, or the
    last part if none does.

    DecodeError for garbage, for a record larger than `limit_bytes`, and for a batch beyond
    `INFLATED_IN_PARTS_MAX_BYTES`.
    """
    buffer = np.empty(limit_bytes, np.uint8)
    pieces = inflated_pieces(
        header.compression,
        array[header.position + HEADER_SIZE_BYTES : header.stop],
        min(PIECE_BYTES, limit_bytes),
    )
    rest: Data = b""
    filled = seen = dropped = 0
    ended = False
    while True:
        while filled < limit_bytes and not ended:
            if not len(rest):
                rest = as_view(next(pieces, b""))
                ended = not len(rest)
            taken = min(len(rest), limit_bytes - filled)
            buffer[filled : filled + taken] = np.frombuffer(rest[:taken], np.uint8)
            rest, filled = rest[taken:], filled + taken
        count, stop, last_delta, fault = whole_records(read_only(buffer), filled, header.count - seen)
        seen += count
        if ended and (fault or seen < header.count or stop < filled):
            raise faults.in_records(
                fault or (faults.COUNT if seen < header.count else faults.BATCH_REST), dropped + stop, header
            )
        if not count:
            raise (
                faults.in_records(fault or faults.BATCH_REST, dropped + stop, header)
                if fault not in _CUT_SHORT
                else _too_large(header, limit_bytes)
            )
        if ended:
            return Part(read_only(buffer[:stop]), count, header.last_offset + 1)
        if header.base_offset + last_delta >= from_offset:
            return Part(read_only(buffer[:stop]), count, header.base_offset + last_delta + 1)
        filled, dropped = filled - stop, dropped + stop
        buffer[:filled] = buffer[stop : stop + filled].copy()


def inflated_bytes(array: Bytes, header: BatchHeader) -> int:
    """The size of a batch's records without compression. DecodeError as in `part_of`."""
    body = array[header.position + HEADER_SIZE_BYTES : header.stop]
    return sum(len(piece) for piece in inflated_pieces(header.compression, body, PIECE_BYTES))


def inflated_pieces(codec: Compression, data: Data, piece_bytes: int) -> Iterator[Data]:
    """Decompress `data` in pieces of at most `piece_bytes`; a raw block of snappy is one piece.

    DecodeError for garbage, and beyond `INFLATED_IN_PARTS_MAX_BYTES`. Arrow's codecs are used here,
    for cramjam has none that stops in between.
    """
    import pyarrow as pa

    view = as_view(data)
    total = 0
    if codec is Compression.snappy:
        for block in xerial.pieces(view, INFLATED_BATCH_MAX_BYTES):
            total = _counted(total, len(block), codec)
            yield block
        return
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(view)), codec.name)
        while piece := stream.read(piece_bytes):
            total = _counted(total, len(piece), codec)
            yield piece
    except OSError as error:
        raise DecodeError(f"not {codec.name}: {error}", 0) from None


def _counted(total: int, more: int, codec: Compression) -> int:
    if total + more > INFLATED_IN_PARTS_MAX_BYTES:
        raise DecodeError(
            f"{codec.name} data inflate to more than the limit of {INFLATED_IN_PARTS_MAX_BYTES} bytes", 0
        )
    return total + more


def _too_large(header: BatchHeader, limit_bytes: int) -> DecodeError:
    return DecodeError(
        f"a record takes more than {limit_bytes} bytes uncompressed", header.position + HEADER_SIZE_BYTES
    )


_CUT_SHORT = frozenset({faults.TRUNCATED, faults.RECORD_LENGTH})
"""Faults of a record that goes on beyond the bytes at hand."""
