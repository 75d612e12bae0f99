"""Kernels that walk over record bytes; their twins are in `decode_plain`.

All of them read bytes from anywhere: whatever these say, nothing is read or written outside of the arrays. A fault is
returned as (code of `faults`, position); (0, ...) is none.
"""

from __future__ import annotations

from typing import TypeAlias

from fairlead_kafka.base.kernel import (
    READ_BOOL,
    READ_BYTES,
    WRITE_BOOL,
    WRITE_BYTES,
    WRITE_INT8,
    WRITE_INT64,
    WRITE_TABLE,
    copy_bytes,
    helper,
    kernel,
    signature,
)
from fairlead_kafka.base.limits import HEADERS_PER_RECORD_MAX
from fairlead_kafka.records import decode_plain, faults
from fairlead_kafka.records.columns import Bools, Bytes, Int8, Int64, Table

_HEADERS_MAX = HEADERS_PER_RECORD_MAX
_TRUNCATED, _VARINT, _RECORD_LENGTH, _FIELD_LENGTH = faults.TRUNCATED, faults.VARINT, faults.RECORD_LENGTH, faults.FIELD_LENGTH
_RECORD_REST, _HEADER_COUNT, _HEADER_KEY, _BATCH_REST = faults.RECORD_REST, faults.HEADER_COUNT, faults.HEADER_KEY, faults.BATCH_REST
_OFFSET_DELTA, _BATCH_LENGTH, _MAGIC, _BATCH_OFFSETS = faults.OFFSET_DELTA, faults.BATCH_LENGTH, faults.MAGIC, faults.BATCH_OFFSETS
_CODEC, _COUNT, _ROOM = faults.CODEC, faults.COUNT, faults.ROOM
_OFFSET_MAX = 2**63 - 1
_SIGN_CLEARED = 0x7FFFFFFFFFFFFFFF
_FAULT_AND_POSITION = "UniTuple(int64, 2)"
_Record: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
"""Position after it, 0, timestamp delta, offset delta, key start and size, value start and size, headers, where they start,
bytes of their keys and of their values; or the position of a fault, and the fault."""


@helper
def _read_varint(source: Bytes, position: int, stop: int, last_shift: int) -> tuple[int, int]:
    """A zigzag varint before `stop`, and the position after it, or minus a fault.

    `last_shift` is 28 for 32 bits, 63 for 64: where the last byte goes, which may hold only the bits that are left.
    One byte is the usual case; the rest is a function of its own so that this much is inlined.
    """
    if position < stop and source[position] < 128:
        return (source[position] >> 1) ^ -(source[position] & 1), position + 1
    return _read_long_varint(source, position, stop, last_shift)


@helper
def _read_long_varint(source: Bytes, position: int, stop: int, last_shift: int) -> tuple[int, int]:
    """`_read_varint` for any number of bytes."""
    value = 0
    shift = 0
    while True:
        if position >= stop:
            return 0, -_TRUNCATED
        byte = source[position]
        position += 1
        if shift == last_shift and byte > (15 if last_shift == 28 else 1):
            return 0, -_VARINT
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return ((value >> 1) & _SIGN_CLEARED) ^ -(value & 1), position


@helper
def _read_integer(source: Bytes, position: int, size: int) -> int:
    """A signed big-endian integer of `size` bytes."""
    value = 0
    for i in range(size):
        value = (value << 8) | source[position + i]
    return (value << (64 - 8 * size)) >> (64 - 8 * size)


@helper
def _skip_headers(source: Bytes, position: int, stop: int, count: int) -> tuple[int, int, int, int]:
    """Walk over `count` headers: (position after, key bytes, value bytes, 0), or a fault's position, ..., and the fault."""
    key_bytes = 0
    value_bytes = 0
    for _ in range(count):
        size, after = _read_varint(source, position, stop, 28)
        if after < 0:
            return position, 0, 0, -after
        if size < 0 or size > stop - after:
            return position, 0, 0, _HEADER_KEY
        key_bytes += size
        position = after + size
        size, after = _read_varint(source, position, stop, 28)
        if after < 0:
            return position, 0, 0, -after
        if size < -1 or size > stop - after:
            return position, 0, 0, _FIELD_LENGTH
        value_bytes += max(size, 0)
        position = after + max(size, 0)
    return position, key_bytes, value_bytes, 0


@helper
def _faulty(position: int, fault: int) -> _Record:
    """What `_read_record` returns for a fault."""
    return position, fault, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0


@helper
def _read_record(source: Bytes, begin: int, end: int) -> _Record:
    """The record at `begin`, headers checked: see `_Record`."""
    length, position = _read_varint(source, begin, end, 28)
    if position < 0:
        return _faulty(begin, -position)
    if length < 6 or length > end - position:
        return _faulty(begin, _RECORD_LENGTH)
    stop = position + length
    at = position + 1
    timestamp_delta, position = _read_varint(source, at, stop, 63)
    if position < 0:
        return _faulty(at, -position)
    at = position
    offset_delta, position = _read_varint(source, at, stop, 28)
    if position < 0:
        return _faulty(at, -position)
    at = position
    key_size, position = _read_varint(source, at, stop, 28)
    if position < 0:
        return _faulty(at, -position)
    if key_size < -1 or key_size > stop - position:
        return _faulty(at, _FIELD_LENGTH)
    key_start = position
    at = position + max(key_size, 0)
    value_size, position = _read_varint(source, at, stop, 28)
    if position < 0:
        return _faulty(at, -position)
    if value_size < -1 or value_size > stop - position:
        return _faulty(at, _FIELD_LENGTH)
    value_start = position
    at = position + max(value_size, 0)
    headers, position = _read_varint(source, at, stop, 28)
    if position < 0:
        return _faulty(at, -position)
    if headers < 0 or headers > _HEADERS_MAX or headers * 2 > stop - position:
        return _faulty(at, _HEADER_COUNT)
    header_start, key_bytes, value_bytes = position, 0, 0
    if headers > 0:
        position, key_bytes, value_bytes, fault = _skip_headers(source, header_start, stop, headers)
        if fault != 0:
            return _faulty(position, fault)
    if position != stop:
        return _faulty(position, _RECORD_REST)
    return (
        stop,
        0,
        timestamp_delta,
        offset_delta,
        key_start,
        key_size,
        value_start,
        value_size,
        headers,
        header_start,
        key_bytes,
        value_bytes,
    )


@kernel(signature(_FAULT_AND_POSITION, READ_BYTES, "int64", "int64", "int64"), plain=decode_plain.check_records)
def check_records(source: Bytes, start: int, stop: int, count: int) -> tuple[int, int]:
    """Assumes 0 <= start <= stop <= source.size. Checks that exactly `count` sound records with offset deltas 0..count - 1
    lie between; returns a fault and its position."""
    position = start
    for index in range(count):
        after, fault, _, offset_delta, _, _, _, _, _, _, _, _ = _read_record(source, position, stop)
        if fault != 0:
            return fault, after
        if offset_delta != index:
            return _OFFSET_DELTA, position
        position = after
    if position != stop:
        return _BATCH_REST, position
    return 0, position


@kernel(signature("UniTuple(int64, 4)", READ_BYTES, "int64", "int64"), plain=decode_plain.whole_records)
def whole_records(source: Bytes, stop: int, most: int) -> tuple[int, int, int, int]:
    """Assumes 0 <= stop <= source.size. The sound records from the start of `source` on, `most` of them at most, that end by `stop`:
    (how many, the position after them, the offset delta of the last or -1, the fault of what follows or 0)."""
    position = 0
    count = 0
    last_delta = -1
    while count < most and position < stop:
        after, fault, _, offset_delta, _, _, _, _, _, _, _, _ = _read_record(source, position, stop)
        if fault != 0:
            return count, position, last_delta, fault
        count += 1
        last_delta = offset_delta
        position = after
    return count, position, last_delta, 0


@kernel(signature(_FAULT_AND_POSITION, READ_BYTES, "int64", "int64", READ_BOOL, WRITE_BYTES), plain=decode_plain.keep_records)
def keep_records(source: Bytes, start: int, stop: int, keep: Bools, target: Bytes) -> tuple[int, int]:
    """Assumes 0 <= start <= stop <= source.size and target.size >= stop - start. Copies those of the first keep.size records that
    are to be kept, byte for byte; returns (0, bytes copied) or a fault and its position."""
    position = start
    written = 0
    for index in range(keep.size):
        after, fault, _, _, _, _, _, _, _, _, _, _ = _read_record(source, position, stop)
        if fault != 0:
            return fault, after
        if keep[index]:
            copy_bytes(target, written, source, position, after - position)
            written += after - position
        position = after
    return 0, written


@kernel(signature("UniTuple(int64, 3)", READ_BYTES, "int64", WRITE_TABLE), plain=decode_plain.scan_batches)
def scan_batches(source: Bytes, position: int, rows: Table) -> tuple[int, int, int]:
    """Assumes rows of 13 numbers, the fields of `BatchHeader` in order. Reads headers from `position` on until the rows are
    full, the bytes end or a batch is cut short; returns (rows filled, fault, position of the fault or after the last)."""
    filled = 0
    while filled < rows.shape[0] and source.size - position > 16:
        size = _read_integer(source, position + 8, 4) + 12
        if source[position + 16] != 2:
            return filled, _MAGIC, position + 16
        if size < 61:
            return filled, _BATCH_LENGTH, position + 8
        if size > source.size - position:
            break
        base_offset = _read_integer(source, position, 8)
        last_delta = _read_integer(source, position + 23, 4)
        if base_offset < 0:
            return filled, _BATCH_OFFSETS, position
        if last_delta < 0 or base_offset > _OFFSET_MAX - last_delta:
            return filled, _BATCH_OFFSETS, position + 23
        attributes = _read_integer(source, position + 21, 2)
        if attributes & 7 > 4:
            return filled, _CODEC, position + 21
        count = _read_integer(source, position + 57, 4)
        if count < 0 or count > last_delta + 1 or (attributes & 7 == 0 and count * 7 > size - 61):
            return filled, _COUNT, position + 57
        rows[filled, 0] = position
        rows[filled, 1] = size
        rows[filled, 2] = base_offset
        rows[filled, 3] = _read_integer(source, position + 12, 4)
        rows[filled, 4] = _read_integer(source, position + 17, 4) & 0xFFFFFFFF
        rows[filled, 5] = attributes
        rows[filled, 6] = last_delta
        rows[filled, 7] = _read_integer(source, position + 27, 8)
        rows[filled, 8] = _read_integer(source, position + 35, 8)
        rows[filled, 9] = _read_integer(source, position + 43, 8)
        rows[filled, 10] = _read_integer(source, position + 51, 2)
        rows[filled, 11] = _read_integer(source, position + 53, 4)
        rows[filled, 12] = count
        filled += 1
        position += size
    return filled, 0, position


@kernel(
    signature(
        _FAULT_AND_POSITION, READ_BYTES, WRITE_TABLE, "int64", "int64", "int64", "int64", WRITE_INT64, WRITE_INT64, WRITE_INT8,
        WRITE_INT64, WRITE_BOOL, WRITE_BYTES, WRITE_INT64, WRITE_BOOL, WRITE_BYTES, WRITE_INT64, WRITE_INT64, WRITE_INT64,
    ),
    plain=decode_plain.decode_records,
)  # fmt: skip
def decode_records(
    source: Bytes, rows: Table, first: int, last: int, inflated_size: int, from_offset: int,
    offsets: Int64, timestamps: Int64, timestamp_types: Int8,
    key_offsets: Int64, key_valid: Bools, key_data: Bytes, value_offsets: Int64, value_valid: Bools, value_data: Bytes,
    header_offsets: Int64, header_starts: Int64, cursors: Int64,
) -> tuple[int, int]:  # fmt: skip
    """Assumes batches first..last of `rows` (see `scan_batches`) to lie within `source`, uncompressed; or, where
    `inflated_size` >= 0, the one batch's records to be the whole of `source`, of that size.

    Appends their records from `from_offset` on to the columns, at `cursors`: 0 records, 1 key bytes, 2 value bytes,
    3 headers, 4 header key bytes, 5 header value bytes, 6 null keys, 7 null values, 8 the row at work. Columns with n + 1
    offsets have their first written by the caller. Columns of keys, values or headers without room are not wanted, and not filled.
    Headers are checked and counted; `decode_headers` takes them.
    """
    at, key_at, value_at = cursors[0], cursors[1], cursors[2]
    null_keys, null_values = cursors[6], cursors[7]
    want_keys, want_values, counts_headers = key_valid.size > 0, value_valid.size > 0, header_starts.size > 0
    for row in range(first, last):
        cursors[8] = row
        position = rows[row, 0] + 61 if inflated_size < 0 else 0
        end = rows[row, 0] + rows[row, 1] if inflated_size < 0 else inflated_size
        base_offset, last_delta, count = rows[row, 2], rows[row, 6], rows[row, 12]
        log_append = (rows[row, 5] >> 3) & 1
        base_timestamp = rows[row, 8] if log_append else rows[row, 7]
        previous_delta = -1
        for _ in range(count):
            begin = position
            (
                position, fault, timestamp_delta, offset_delta, key_start, key_size, value_start, value_size,
                headers, header_start, header_key_bytes, header_value_bytes,
            ) = _read_record(source, begin, end)  # fmt: skip
            if fault != 0:
                return fault, position
            if offset_delta <= previous_delta or offset_delta > last_delta:
                return _OFFSET_DELTA, begin
            previous_delta = offset_delta
            if base_offset + offset_delta < from_offset:
                continue
            if (
                at >= offsets.size
                or (want_values and value_at + value_size > value_data.size)
                or (want_keys and key_at + key_size > key_data.size)
            ):
                return _ROOM, begin
            offsets[at] = base_offset + offset_delta
            timestamps[at] = base_timestamp if log_append else base_timestamp + timestamp_delta
            timestamp_types[at] = log_append
            if want_keys:
                key_valid[at] = key_size >= 0
                if key_size < 0:
                    null_keys += 1
                elif key_size > 0:
                    copy_bytes(key_data, key_at, source, key_start, key_size)
                    key_at += key_size
                key_offsets[at + 1] = key_at
            if want_values:
                value_valid[at] = value_size >= 0
                if value_size < 0:
                    null_values += 1
                else:
                    copy_bytes(value_data, value_at, source, value_start, value_size)
                    value_at += value_size
                value_offsets[at + 1] = value_at
            if counts_headers:
                cursors[3] += headers
                cursors[4] += header_key_bytes
                cursors[5] += header_value_bytes
                header_starts[at] = header_start
                header_offsets[at + 1] = cursors[3]
            at += 1
        if position != end:
            return _BATCH_REST, position
    cursors[0], cursors[1], cursors[2] = at, key_at, value_at
    cursors[6], cursors[7] = null_keys, null_values
    return 0, 0


@kernel(
    signature(
        "void", READ_BYTES, "int64", "int64", WRITE_INT64, WRITE_INT64,
        WRITE_INT64, WRITE_BYTES, WRITE_INT64, WRITE_BOOL, WRITE_BYTES,
    ),
    plain=decode_plain.decode_headers,
)  # fmt: skip
def decode_headers(
    source: Bytes, first: int, last: int, header_offsets: Int64, header_starts: Int64,
    key_offsets: Int64, key_data: Bytes, value_offsets: Int64, value_valid: Bools, value_data: Bytes,
) -> None:  # fmt: skip
    """Assumes that `decode_records` has checked records first..last of this `source`, and columns of exactly the size it
    counted. Fills in their headers; the first offsets of the columns are written."""
    for record in range(first, last):
        position = header_starts[record]
        for header in range(header_offsets[record], header_offsets[record + 1]):
            size, position = _read_varint(source, position, source.size, 28)
            copy_bytes(key_data, key_offsets[header], source, position, size)
            key_offsets[header + 1] = key_offsets[header] + size
            size, position = _read_varint(source, position + size, source.size, 28)
            value_valid[header] = size >= 0
            size = max(size, 0)
            copy_bytes(value_data, value_offsets[header], source, position, size)
            value_offsets[header + 1] = value_offsets[header] + size
            position += size
