"""Kernels that measure and encode records (`src/native/encode.c`), and their reference
implementations: NumPy and bytes.

The first arguments of each are `RecordColumns.flat()` (see `FlatColumns`).
"""

from __future__ import annotations

import numpy as np

from fairlead_kafka.base.kernel import kernel
from fairlead_kafka.records.arrays import Bools, Bytes, Int64
from fairlead_kafka.records.layout import HEADER, LENGTH_PREFIX_BYTES, MAGIC

_VARINT_STEPS = np.array([1 << (7 * i) for i in range(1, 9)], np.int64)


def varint(number: int) -> bytes:
    """A signed 64-bit number as a zigzag varint, at most 10 bytes."""
    unsigned = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    septets = bytearray()
    while unsigned > 0x7F:
        septets.append(unsigned & 0x7F | 0x80)
        unsigned >>= 7
    septets.append(unsigned)
    return bytes(septets)


def wrapped(number: int) -> int:
    """`number` as 64 bits of two's complement hold it: the difference of two extreme timestamps can
    need one bit more."""
    return (number + 2**63) % 2**64 - 2**63


@kernel
def measure_records(
    key_data: Bytes, key_offsets: Int64, key_valid: Bools, value_data: Bytes, value_offsets: Int64,
    value_valid: Bools,
    header_offsets: Int64, header_key_data: Bytes, header_key_offsets: Int64,
    header_value_data: Bytes, header_value_offsets: Int64, header_value_valid: Bools, sizes: Int64,
) -> None:  # fmt: skip
    """Fill `sizes` with the encoded size of each record, bytes, where its timestamp delta takes 1
    byte and its offset delta 2 (`RecordColumns.sizes_bytes`).

    Assumes that the columns have `sizes.size` records.
    """
    body = (
        4
        + _sizes_of_fields(key_offsets, key_valid, len(sizes))
        + _sizes_of_fields(value_offsets, value_valid, len(sizes))
    )
    if len(header_offsets):
        each = _sizes_of_fields(header_key_offsets, header_value_valid[:0], len(header_key_offsets) - 1)
        each = each + _sizes_of_fields(header_value_offsets, header_value_valid, len(each))
        running = np.concatenate([np.zeros(1, np.int64), np.cumsum(each)])
        body = (
            body
            + _sizes_of_varints(np.diff(header_offsets))
            + running[header_offsets[1:]]
            - running[header_offsets[:-1]]
        )
    else:
        body = body + 1
    sizes[:] = body + _sizes_of_varints(body)


@kernel
def encode_batches(
    key_data: Bytes, key_offsets: Int64, key_valid: Bools, value_data: Bytes, value_offsets: Int64,
    value_valid: Bools,
    header_offsets: Int64, header_key_data: Bytes, header_key_offsets: Int64,
    header_value_data: Bytes, header_value_offsets: Int64, header_value_valid: Bools, timestamps: Int64,
    order: Int64, bounds: Int64, sequences: Int64, out: Bytes, table: Int64,
    position: int, header_size: int, create_time: int, base_timestamp: int, first_delta: int, attributes: int,
    producer_id: int, producer_epoch: int, base_offset: int, leader_epoch: int,
) -> int:  # fmt: skip
    """Encode records bounds[2b]..bounds[2b + 1] as batch b, from `position` of `out` on; returns
    the position after the last, or -1 with nothing written beyond `out` where that is too small.

    Assumes that the pairs in `bounds` ascend and, through `order` if it has items, name records of
    the columns.

    `table` takes start, base and max timestamp of each batch. A `header_size` of 61 gives each its
    header (the CRC stays zero), its base timestamp from its first record and deltas from 0; with 0
    the records continue a batch of `first_delta` records and `base_timestamp`. Records without a
    timestamp, or with -1, get `create_time`. Timestamps are milliseconds since 1970.
    """
    for batch, (start, stop) in enumerate(bounds.reshape(-1, 2).tolist()):
        indexes = order[start:stop].tolist() if len(order) else list(range(start, stop))
        times = [create_time] * len(indexes)
        if len(timestamps):
            times = [create_time if time == -1 else time for time in timestamps[indexes].tolist()]
        if times and first_delta == 0:
            base_timestamp = times[0]
        pieces = []
        for nth, (index, time) in enumerate(zip(indexes, times, strict=True)):
            body = b"\0" + varint(wrapped(time - base_timestamp)) + varint(first_delta + nth)
            body += _field(key_data, key_offsets, key_valid, index) + _field(
                value_data, value_offsets, value_valid, index
            )
            headers = range(*header_offsets[index : index + 2].tolist()) if len(header_offsets) else range(0)
            body += varint(len(headers))
            for header in headers:
                body += _field(header_key_data, header_key_offsets, header_value_valid[:0], header)
                body += _field(header_value_data, header_value_offsets, header_value_valid, header)
            pieces.append(varint(len(body)) + body)
        records = b"".join(pieces)
        newest = max(times, default=-1)
        head = b""
        if header_size:
            count = first_delta + len(indexes)
            sequence = int(sequences[batch]) if len(sequences) else -1
            head = HEADER.pack(
                base_offset, HEADER.size + len(records) - LENGTH_PREFIX_BYTES, leader_epoch, MAGIC, 0,
                attributes, count - 1,
                base_timestamp, newest, producer_id, producer_epoch, sequence, count,
            )  # fmt: skip
        size = len(head) + len(records)
        if position + size > len(out):
            return -1
        out[position : position + size] = np.frombuffer(head + records, np.uint8)
        table[3 * batch : 3 * batch + 3] = position, base_timestamp, newest
        position += size
    return position


@kernel
def cut_by_size(sizes: Int64, order: Int64, start: int, stop: int, room: int, limit: int, cuts: Int64) -> int:
    """Fill `cuts` with the ends of the pieces of records `start` to `stop`; returns how many there
    are. A piece is as `records.encoder.cut` has it; the first is of `room` bytes at most, the
    others of `limit`.

    Assumes start <= stop within `order` (or `sizes`, without order) and room for stop - start + 1
    `cuts`.
    """
    chosen = sizes[order[start:stop]] if len(order) else sizes[start:stop]
    running = np.cumsum(chosen)
    ends = [int(np.searchsorted(running, room, side="right"))]
    while ends[-1] < len(running):
        begin = ends[-1]
        before = int(running[begin - 1]) if begin else 0
        ends.append(max(begin + 1, int(np.searchsorted(running, before + limit, side="right"))))
    cuts[: len(ends)] = np.array(ends, np.int64) + start
    return len(ends)


def _sizes_of_varints(lengths: Int64) -> Int64:
    return 1 + np.searchsorted(_VARINT_STEPS, lengths << 1, side="right")


def _sizes_of_fields(offsets: Int64, valid: Bools, count: int) -> Int64:
    if not len(offsets):
        return np.ones(count, np.int64)
    lengths = np.diff(offsets)
    sizes = lengths + _sizes_of_varints(lengths)
    return np.where(valid, sizes, 1) if len(valid) else sizes


def _field(data: Bytes, offsets: Int64, valid: Bools, index: int) -> bytes:
    if not len(offsets) or (len(valid) and not valid[index]):
        return varint(-1)
    item = data[offsets[index] : offsets[index + 1]].tobytes()
    return varint(len(item)) + item
