"""Kernels that measure and encode records; their twins are in `encode_plain`.

The first thirteen arguments of each are `RecordColumns.flat()` (see `FlatColumns`).
"""

from __future__ import annotations

from fairlead_kafka.base.kernel import (
    READ_BOOL,
    READ_BYTES,
    READ_INT64,
    WRITE_BYTES,
    WRITE_INT64,
    copy_bytes,
    helper,
    kernel,
    signature,
)
from fairlead_kafka.records import encode_plain
from fairlead_kafka.records.columns import Bools, Bytes, Int64

_BINARY = (READ_BYTES, READ_INT64, READ_BOOL)
_CONTENT = (*_BINARY, *_BINARY, READ_INT64, READ_BYTES, READ_INT64, *_BINARY)
_LOGICAL_SHIFT_MASK = 0x01FFFFFFFFFFFFFF
"""Clears what an arithmetic shift by 7 lets in from the sign."""


@helper
def _size_of_varint(number: int) -> int:
    """Bytes of a non-negative number as a varint (already zigzag)."""
    if number < 128:
        return 1
    if number < 16384:
        return 2
    size = 3
    number >>= 21
    while number > 0:
        number >>= 7
        size += 1
    return size


@helper
def _size_of_field(size: int) -> int:
    """Bytes of a field of `size` bytes with its length; a size of -1 is null."""
    return 1 if size < 0 else _size_of_varint(size << 1) + size


@helper
def _put_varint(out: Bytes, position: int, number: int) -> int:
    """Write 64 bits, taken as unsigned, seven at a time; returns the position after."""
    while number & ~127:
        out[position] = (number & 127) | 128
        number = (number >> 7) & _LOGICAL_SHIFT_MASK
        position += 1
    out[position] = number
    return position + 1


@helper
def _put_field(out: Bytes, position: int, data: Bytes, start: int, size: int) -> int:
    """Write a length and that many bytes of `data`; a size of -1 is null. Returns the position after."""
    if size < 0:
        out[position] = 1
        return position + 1
    position = _put_varint(out, position, size << 1)
    copy_bytes(out, position, data, start, size)
    return position + size


@helper
def _put_integer(out: Bytes, position: int, number: int, size: int) -> int:
    """Write the low `size` bytes of `number`, big-endian; returns the position after."""
    for i in range(size):
        out[position + i] = (number >> (8 * (size - 1 - i))) & 255
    return position + size


@helper
def _span(offsets: Int64, valid: Bools, index: int) -> tuple[int, int]:
    """Where header value `index` starts, and its size or -1 for null; no `valid` means that none is. Keys and values of
    records do without this function: passing two arrays costs more than the rest of the work."""
    if valid.size > 0 and not valid[index]:
        return 0, -1
    return offsets[index], offsets[index + 1] - offsets[index]


@helper
def _size_of_headers(
    header_offsets: Int64, header_key_offsets: Int64, header_value_offsets: Int64, header_value_valid: Bools, index: int
) -> int:
    """Bytes of the headers of record `index` with their count and lengths."""
    first, last = header_offsets[index], header_offsets[index + 1]
    size = _size_of_varint((last - first) << 1)
    for header in range(first, last):
        size += _size_of_field(header_key_offsets[header + 1] - header_key_offsets[header])
        _, value_size = _span(header_value_offsets, header_value_valid, header)
        size += _size_of_field(value_size)
    return size


@helper
def _put_headers(
    out: Bytes, position: int, header_offsets: Int64, header_key_data: Bytes, header_key_offsets: Int64,
    header_value_data: Bytes, header_value_offsets: Int64, header_value_valid: Bools, index: int,
) -> int:  # fmt: skip
    """Write the count and the headers of record `index`; returns the position after."""
    first, last = header_offsets[index], header_offsets[index + 1]
    position = _put_varint(out, position, (last - first) << 1)
    for header in range(first, last):
        start = header_key_offsets[header]
        position = _put_field(out, position, header_key_data, start, header_key_offsets[header + 1] - start)
        start, size = _span(header_value_offsets, header_value_valid, header)
        position = _put_field(out, position, header_value_data, start, size)
    return position


@kernel(signature("void", *_CONTENT, WRITE_INT64), plain=encode_plain.measure_records)
def measure_records(
    key_data: Bytes, key_offsets: Int64, key_valid: Bools, value_data: Bytes, value_offsets: Int64, value_valid: Bools,
    header_offsets: Int64, header_key_data: Bytes, header_key_offsets: Int64,
    header_value_data: Bytes, header_value_offsets: Int64, header_value_valid: Bools, sizes: Int64,
) -> None:  # fmt: skip
    """Assumes that the columns have `sizes.size` records; fills `sizes` as `RecordColumns.sizes_bytes` says."""
    has_keys, has_values, has_headers = key_offsets.size > 0, value_offsets.size > 0, header_offsets.size > 0
    all_keys, all_values = key_valid.size == 0, value_valid.size == 0
    for index in range(sizes.size):
        key_size, value_size = -1, -1
        if has_keys and (all_keys or key_valid[index]):
            key_size = key_offsets[index + 1] - key_offsets[index]
        if has_values and (all_values or value_valid[index]):
            value_size = value_offsets[index + 1] - value_offsets[index]
        body = 5 + _size_of_field(key_size) + _size_of_field(value_size)
        if has_headers:
            body += _size_of_headers(header_offsets, header_key_offsets, header_value_offsets, header_value_valid, index) - 1
        sizes[index] = _size_of_varint(body << 1) + body


@helper
def _put_batch_header(
    out: Bytes, begin: int, end: int, count: int, base_timestamp: int, max_timestamp: int,
    base_offset: int, leader_epoch: int, attributes: int, producer_id: int, producer_epoch: int, base_sequence: int,
) -> None:  # fmt: skip
    """Write the 61 bytes at `begin`, all but the CRC, which stays zero."""
    position = _put_integer(out, begin, base_offset, 8)
    position = _put_integer(out, position, end - begin - 12, 4)
    position = _put_integer(out, position, leader_epoch, 4)
    out[position] = 2
    position = _put_integer(out, position + 1, 0, 4)
    position = _put_integer(out, position, attributes, 2)
    position = _put_integer(out, position, count - 1, 4)
    position = _put_integer(out, position, base_timestamp, 8)
    position = _put_integer(out, position, max_timestamp, 8)
    position = _put_integer(out, position, producer_id, 8)
    position = _put_integer(out, position, producer_epoch, 2)
    position = _put_integer(out, position, base_sequence, 4)
    _put_integer(out, position, count, 4)


@kernel(
    signature("int64", *_CONTENT, READ_INT64, READ_INT64, READ_INT64, READ_INT64, WRITE_BYTES, WRITE_INT64, *["int64"] * 10),
    plain=encode_plain.encode_batches,
)
def encode_batches(
    key_data: Bytes, key_offsets: Int64, key_valid: Bools, value_data: Bytes, value_offsets: Int64, value_valid: Bools,
    header_offsets: Int64, header_key_data: Bytes, header_key_offsets: Int64,
    header_value_data: Bytes, header_value_offsets: Int64, header_value_valid: Bools, timestamps: Int64,
    order: Int64, bounds: Int64, sequences: Int64, out: Bytes, table: Int64,
    position: int, header_size: int, create_time: int, base_timestamp: int, first_delta: int, attributes: int,
    producer_id: int, producer_epoch: int, base_offset: int, leader_epoch: int,
) -> int:  # fmt: skip
    """Assumes that the pairs in `bounds` ascend and, through `order` if it has items, name records of the columns.

    Encodes records bounds[2b]..bounds[2b + 1] as batch b, from `position` of `out` on; returns the position after the last, or -1
    with nothing written beyond `out` where that is too small. `table` takes start, base and max timestamp of each batch.
    A `header_size` of 61 gives each its header (the CRC stays zero), its base timestamp from its first record and deltas
    from 0; with 0 the records continue a batch of `first_delta` records and `base_timestamp`. No timestamp, or -1, is `create_time`."""
    has_keys, has_values, has_headers = key_offsets.size > 0, value_offsets.size > 0, header_offsets.size > 0
    all_keys, all_values = key_valid.size == 0, value_valid.size == 0
    has_order, has_timestamps, capacity = order.size > 0, timestamps.size > 0, out.size
    for batch in range(bounds.size // 2):
        begin = position
        if position + header_size > capacity:
            return -1
        position += header_size
        newest = -1
        delta = first_delta
        first, last = bounds[2 * batch], bounds[2 * batch + 1]
        for place in range(first, last):
            index = order[place] if has_order else place
            timestamp = timestamps[index] if has_timestamps and timestamps[index] != -1 else create_time
            if delta == 0:
                base_timestamp = timestamp
            newest = timestamp if place == first else max(newest, timestamp)
            past = timestamp - base_timestamp
            past = (past << 1) ^ (past >> 63)
            key_start, key_size, value_start, value_size = 0, -1, 0, -1
            if has_keys and (all_keys or key_valid[index]):
                key_start = key_offsets[index]
                key_size = key_offsets[index + 1] - key_start
            if has_values and (all_values or value_valid[index]):
                value_start = value_offsets[index]
                value_size = value_offsets[index + 1] - value_start
            body = 2 + _size_of_varint(delta << 1) + _size_of_field(key_size) + _size_of_field(value_size)
            body += 10 if past < 0 else _size_of_varint(past)
            if has_headers:
                body += _size_of_headers(header_offsets, header_key_offsets, header_value_offsets, header_value_valid, index) - 1
            if position + _size_of_varint(body << 1) + body > capacity:
                return -1
            position = _put_varint(out, position, body << 1)
            out[position] = 0
            position = _put_varint(out, position + 1, past)
            position = _put_varint(out, position, delta << 1)
            position = _put_field(out, position, key_data, key_start, key_size)
            position = _put_field(out, position, value_data, value_start, value_size)
            if has_headers:
                position = _put_headers(
                    out, position, header_offsets, header_key_data, header_key_offsets,
                    header_value_data, header_value_offsets, header_value_valid, index,
                )  # fmt: skip
            else:
                out[position] = 0
                position += 1
            delta += 1
        table[3 * batch] = begin
        table[3 * batch + 1] = base_timestamp
        table[3 * batch + 2] = newest
        if header_size > 0:
            _put_batch_header(
                out, begin, position, delta, base_timestamp, newest, base_offset, leader_epoch, attributes, producer_id, producer_epoch,
                sequences[batch] if sequences.size > 0 else -1,
            )  # fmt: skip
    return position


@kernel(
    signature("int64", READ_INT64, READ_INT64, "int64", "int64", "int64", "int64", WRITE_INT64),
    plain=encode_plain.cut_by_size,
)
def cut_by_size(sizes: Int64, order: Int64, start: int, stop: int, room: int, limit: int, cuts: Int64) -> int:
    """Assumes start <= stop within `order` (or `sizes`, without order) and room for stop - start + 1 `cuts`.

    Fills `cuts` with the ends of the pieces and returns how many there are; `records.cut` says what a piece is.
    """
    count = 0
    filled = 0
    begin = start
    left = room
    for place in range(start, stop):
        size = sizes[order[place] if order.size > 0 else place]
        if filled + size > left and (place > begin or count == 0):
            cuts[count] = place
            count += 1
            begin = place
            filled = 0
            left = limit
        filled += size
    cuts[count] = stop
    return count + 1
