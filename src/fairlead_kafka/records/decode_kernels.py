"""Kernels that walk over record bytes (`src/native/decode.c`), and their reference implementations:
bytes and struct.

All of them read untrusted bytes, and never read or write outside of the arrays. A fault is returned
as (code of `faults`, position); (0, ...) is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.kernel import kernel
from fairlead_kafka.base.limits import HEADERS_PER_RECORD_MAX
from fairlead_kafka.records import faults
from fairlead_kafka.records.arrays import Bools, Bytes, Int32, Int64, Table
from fairlead_kafka.records.layout import (
    BATCH_LENGTH,
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    MAGIC_BYTE,
    TIMESTAMP_TYPE_MASK,
    Compression,
    as_view,
)

_BITS_OF_VARINT = {32: 5, 64: 10}
"""Bits → the most bytes a varint of them may have."""


class _Fault(Exception):
    def __init__(self, code: int, position: int) -> None:
        self.code = code
        self.position = position


class _Record(NamedTuple):
    start: int
    timestamp_delta: int
    offset_delta: int
    key: tuple[int, int]
    value: tuple[int, int]
    header_count: int
    header_start: int
    headers: list[tuple[tuple[int, int], tuple[int, int]]]
    stop: int


class _Reader:
    """A cursor over `source` up to `stop`; fields are (start, size) with size -1 for null."""

    def __init__(self, source: bytes, position: int, stop: int) -> None:
        self.source = source
        self.position = position
        self.stop = stop

    def varint(self, bits: int = 32) -> int:
        """Read a signed zigzag varint of at most `bits` bits; a fault names where the varint
        starts."""
        begin = self.position
        unsigned = 0
        for nth in range(_BITS_OF_VARINT[bits]):
            if self.position >= self.stop:
                raise _Fault(faults.TRUNCATED, begin)
            byte = self.source[self.position]
            self.position += 1
            unsigned |= (byte & 0x7F) << (7 * nth)
            if unsigned >> bits:
                raise _Fault(faults.VARINT, begin)
            if byte < 0x80:
                return unsigned // 2 if unsigned % 2 == 0 else -(unsigned // 2) - 1
            if nth + 1 == _BITS_OF_VARINT[bits]:
                break
        raise _Fault(faults.VARINT, begin)

    def field(self, least: int = -1, fault: int = faults.FIELD_LENGTH) -> tuple[int, int]:
        """Read a length, and pass over that many bytes: (start, size), size -1 for null. A length
        below `least`, or of more than is left, is the fault `fault`."""
        begin = self.position
        size = self.varint()
        start = self.position
        if not least <= size <= self.stop - start:
            raise _Fault(fault, begin)
        self.position += max(size, 0)
        return start, size

    def record(self) -> _Record:
        """Read the record that begins here."""
        start, end = self.position, self.stop
        length = self.varint()
        if not 6 <= length <= end - self.position:
            raise _Fault(faults.RECORD_LENGTH, start)
        self.stop = self.position + length
        self.position += 1
        timestamp_delta, offset_delta = self.varint(64), self.varint()
        key, value = self.field(), self.field()
        counted_at = self.position
        count = self.varint()
        first = self.position
        if not 0 <= count <= min(HEADERS_PER_RECORD_MAX, (self.stop - first) // 2):
            raise _Fault(faults.HEADER_COUNT, counted_at)
        headers = [(self.field(0, faults.HEADER_KEY), self.field()) for _ in range(count)]
        if self.position != self.stop:
            raise _Fault(faults.RECORD_REST, self.position)
        self.stop = end
        return _Record(start, timestamp_delta, offset_delta, key, value, count, first, headers, self.position)


@kernel
def check_records(source: Bytes, start: int, stop: int, count: int) -> tuple[int, int]:
    """Check that exactly `count` sound records with offset deltas 0..count - 1 lie in bytes `start`
    to `stop`; returns a fault (0: none, else one of `faults`) and its position.

    Assumes 0 <= start <= stop <= source.size.
    """
    reader = _Reader(source[:stop].tobytes(), start, stop)
    try:
        for index in range(count):
            record = reader.record()
            if record.offset_delta != index:
                raise _Fault(faults.OFFSET_DELTA, record.start)
    except _Fault as fault:
        return fault.code, fault.position
    return (faults.BATCH_REST if reader.position != stop else faults.NONE), reader.position


@kernel
def whole_records(source: Bytes, stop: int, most: int) -> tuple[int, int, int, int]:
    """Count the sound records from the start of `source` on, `most` of them at most, that end by
    byte `stop`: (how many, the position after them, the offset delta of the last or -1, the fault
    of what follows or 0).

    Assumes 0 <= stop <= source.size.
    """
    reader = _Reader(source[:stop].tobytes(), 0, stop)
    count, last_delta, position = 0, -1, 0
    while count < most and position < stop:
        try:
            last_delta = reader.record().offset_delta
        except _Fault as fault:
            return count, position, last_delta, fault.code
        count, position = count + 1, reader.position
    return count, position, last_delta, faults.NONE


@kernel
def keep_records(source: Bytes, start: int, stop: int, keep: Bools, target: Bytes) -> tuple[int, int]:
    """Copy to `target` those records in bytes `start` to `stop` whose place in `keep` is true, byte
    for byte; returns (0, bytes copied) or a fault and its position.

    Assumes 0 <= start <= stop <= source.size and target.size >= stop - start.
    """
    reader = _Reader(source[:stop].tobytes(), start, stop)
    written = 0
    try:
        for kept in keep:
            record = reader.record()
            if kept:
                size = record.stop - record.start
                target[written : written + size] = source[record.start : record.stop]
                written += size
    except _Fault as fault:
        return fault.code, fault.position
    return faults.NONE, written


@kernel
def scan_batches(source: Bytes, position: int, rows: Table) -> tuple[int, int, int]:
    """Read batch headers from `position` on until the rows are full, the bytes end or a batch is
    cut short; returns (rows filled, fault or 0, position of the fault or after the last batch).

    Assumes rows of 13 numbers, which get the fields of `BatchHeader` in order.
    """
    filled, view = 0, as_view(source)
    while filled < len(rows) and len(source) >= position + MAGIC_BYTE + 1:
        size = (
            int.from_bytes(view[position + BATCH_LENGTH : position + BATCH_LENGTH + 4], "big", signed=True)
            + LENGTH_PREFIX_BYTES
        )
        if view[position + MAGIC_BYTE] != MAGIC:
            return filled, faults.MAGIC, position + MAGIC_BYTE
        if size < HEADER_SIZE_BYTES:
            return filled, faults.BATCH_LENGTH, position + BATCH_LENGTH
        if position + size > len(source):
            return filled, faults.NONE, position
        base, _, epoch, _, crc, attributes, last, *rest = HEADER.unpack_from(view, position)
        codec, count = attributes & COMPRESSION_MASK, rest[-1]
        if base < 0:
            return filled, faults.BATCH_OFFSETS, position
        if last < 0 or base + last >= 2**63:
            return filled, faults.BATCH_OFFSETS, position + 23
        if codec not in list(Compression):
            return filled, faults.CODEC, position + 21
        if not 0 <= count <= last + 1 or (codec == 0 and count > (size - HEADER_SIZE_BYTES) // 7):
            return filled, faults.COUNT, position + 57
        rows[filled] = [position, size, base, epoch, crc, attributes, last, *rest]
        filled += 1
        position += size
    return filled, faults.NONE, position


@kernel
def decode_records(
    source: Bytes, rows: Table, first: int, last: int, inflated_size: int, from_offset: int,
    offsets: Int64, timestamps: Int64, timestamp_types: Int32,
    key_offsets: Int64, key_valid: Bools, key_data: Bytes, value_offsets: Int64, value_valid: Bools,
    value_data: Bytes,
    header_offsets: Int64, header_starts: Int64, cursors: Int64,
) -> tuple[int, int]:  # fmt: skip
    """Decode batches `first` to `last` of `rows` (headers, by `scan_batches`) into columns; returns
    a fault (0: none) and its position in `source`, bytes.

    Assumes that the batches lie within `source`, uncompressed; or, where `inflated_size` >= 0, that
    the one batch's records are the whole of `source`, of that size in bytes.

    Records from `from_offset` on are appended to the columns, at `cursors`: 0 records, 1 key bytes,
    2 value bytes, 3 headers, 4 header key bytes, 5 header value bytes, 6 null keys, 7 null values,
    8 the row at work. Columns with n + 1 offsets have their first written by the caller. Columns of
    keys, values or headers without room are not wanted, and not filled. Headers are checked and
    counted; `decode_headers` takes them. What says nothing may be left unwritten: keys and headers
    before the first record that has any, and which values are valid where all are.
    """
    content = source.tobytes()
    wanted = [
        column
        for column in (
            (False, 1, 6, key_offsets, key_valid, key_data),
            (True, 2, 7, value_offsets, value_valid, value_data),
        )
        if len(column[4])
    ]
    for row in range(first, last):
        cursors[8] = row
        position, size, base, _, _, attributes, last_delta, base_timestamp, max_timestamp, _, _, _, count = (
            rows[row].tolist()
        )
        begin, end = (
            (position + HEADER_SIZE_BYTES, position + size) if inflated_size < 0 else (0, inflated_size)
        )
        try:
            records = _records_of_batch(content, begin, end, count, last_delta)
        except _Fault as fault:
            return fault.code, fault.position
        chosen = [record for record in records if base + record.offset_delta >= from_offset]
        at = int(cursors[0])
        span = slice(at, at + len(chosen))
        log_append = bool(attributes & TIMESTAMP_TYPE_MASK)
        offsets[span] = [base + record.offset_delta for record in chosen]
        times = [
            max_timestamp if log_append else base_timestamp + record.timestamp_delta for record in chosen
        ]
        timestamps[span] = [(time + 2**63) % 2**64 - 2**63 for time in times]
        timestamp_types[span] = log_append
        for is_value, bytes_cursor, nulls_cursor, field_offsets, valid, data in wanted:
            fields = [record.value if is_value else record.key for record in chosen]
            filled = int(cursors[bytes_cursor])
            joined = b"".join([content[start : start + size] for start, size in fields if size > 0])
            data[filled : filled + len(joined)] = np.frombuffer(joined, np.uint8)
            field_offsets[at + 1 : at + 1 + len(chosen)] = filled + np.cumsum(
                [max(size, 0) for _, size in fields], dtype=np.int64
            )
            valid[span] = [size >= 0 for _, size in fields]
            cursors[bytes_cursor] = filled + len(joined)
            cursors[nulls_cursor] += sum(size < 0 for _, size in fields)
        if len(header_starts):
            header_starts[span] = [record.header_start for record in chosen]
            running = int(cursors[3]) + np.cumsum([record.header_count for record in chosen], dtype=np.int64)
            header_offsets[at + 1 : at + 1 + len(chosen)] = running
            cursors[3] += sum(record.header_count for record in chosen)
            cursors[4] += sum(key[1] for record in chosen for key, _ in record.headers)
            cursors[5] += sum(max(value[1], 0) for record in chosen for _, value in record.headers)
        cursors[0] = at + len(chosen)
    return faults.NONE, 0


@kernel
def decode_headers(
    source: Bytes, first: int, last: int, header_offsets: Int64, header_starts: Int64,
    key_offsets: Int64, key_data: Bytes, value_offsets: Int64, value_valid: Bools, value_data: Bytes,
) -> None:  # fmt: skip
    """Fill columns with the headers of records `first` to `last`; the first offsets of the columns
    are written by the caller.

    Assumes that `decode_records` has checked these records of this `source`, and columns of exactly
    the size it counted.
    """
    content = source.tobytes()
    bounds = header_offsets.tolist()
    for record in range(first, last):
        reader = _Reader(content, int(header_starts[record]), len(content))
        for header in range(bounds[record], bounds[record + 1]):
            for (start, size), offsets, data in (
                (reader.field(), key_offsets, key_data),
                (reader.field(), value_offsets, value_data),
            ):
                filled = int(offsets[header])
                data[filled : filled + max(size, 0)] = source[start : start + max(size, 0)]
                offsets[header + 1] = filled + max(size, 0)
                value_valid[header] = size >= 0


def first_key(source: Bytes) -> bytes:
    """The key of the first record of `source`, which `check_records` has passed; empty if it is
    null."""
    start, size = _Reader(source.tobytes(), 0, len(source)).record().key
    return source[start : start + max(size, 0)].tobytes()


def _records_of_batch(content: bytes, begin: int, end: int, count: int, last_delta: int) -> list[_Record]:
    reader = _Reader(content, begin, end)
    records: list[_Record] = []
    for _ in range(count):
        record = reader.record()
        lowest = records[-1].offset_delta + 1 if records else 0
        if not lowest <= record.offset_delta <= last_delta:
            raise _Fault(faults.OFFSET_DELTA, record.start)
        records.append(record)
    if reader.position != end:
        raise _Fault(faults.BATCH_REST, reader.position)
    return records
