"""Encoding of columns of records to record batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairlead_kafka.base.errors import InvalidRecord, RecordTooLarge
from fairlead_kafka.records.arrays import Int64
from fairlead_kafka.records.columns import RecordColumns, Slice, flat_order
from fairlead_kafka.records.crc import stamp_crc, stamp_crcs
from fairlead_kafka.records.encode_kernels import cut_by_size, encode_batches
from fairlead_kafka.records.layout import (
    BATCH_MAX_SIZE_BYTES,
    CONTROL_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    TRANSACTIONAL_MASK,
    Compression,
    EncodedBatch,
    as_view,
)

_NO_SEQUENCES = flat_order(None)
_SHORT_DELTAS = 8192
"""Offset deltas below this take at most the 2 bytes that `sizes_bytes` counts."""
_LONG_DELTA_BYTES = 4
_TIMESTAMP_DELTA_BYTES = 10


def cut(piece: Slice, room_bytes: int, batch_limit_bytes: int) -> Int64:
    """Cut a slice into batches: their ends in slice coordinates, the last being `piece.stop`.

    The first piece, `start` to the first position, fits `room_bytes`, later ones
    `batch_limit_bytes`; both count record bytes (`sizes_bytes`) without the header of 61. Only the
    first piece may be empty (then its position is `start`); every later one holds at least one
    record, however large that is.
    """
    _check_range(piece.columns, piece.order, piece.start, piece.stop)
    cuts = np.empty(max(1, piece.stop - piece.start + 1), np.int64)
    sizes = piece.columns.sizes_bytes()
    count = cut_by_size(
        sizes, flat_order(piece.order), piece.start, piece.stop, room_bytes, batch_limit_bytes, cuts
    )
    return cuts[:count]


def encode(
    slices: Sequence[Slice],
    *,
    create_time_ms: int,
    compression: Compression = Compression.none,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> EncodedBatch:
    """One batch of the records of `slices`, in their order.

    `create_time_ms` is the timestamp of every record that brings none; `level` the codec's, None
    for its default. Raises InvalidRecord for no records, RecordTooLarge beyond 2 GiB. Source:
    Kafka's `MemoryRecordsBuilder`.
    """
    count = sum(each.stop - each.start for each in slices)
    if count <= 0:
        raise InvalidRecord("a batch needs at least one record; give slices that are not empty")
    timed = any(each.columns.timestamps_ms is not None for each in slices)
    bound = HEADER_SIZE_BYTES + sum(
        _bound_bytes(each.columns, each.order, each.start, each.stop, count, timed) for each in slices
    )
    _check_size(bound)
    attributes = _attributes(compression, transactional, control)
    out = np.empty(bound, np.uint8)
    table = np.empty(3, np.int64)
    position, done, base_timestamp, max_timestamp = HEADER_SIZE_BYTES, 0, create_time_ms, -1
    for each in slices:
        if each.stop == each.start:
            continue
        cuts = np.array([each.start, each.stop], np.int64)
        position = encode_batches(
            *each.columns.flat(), flat_order(each.order), flat_order(cuts), _NO_SEQUENCES, out, table,
            position, 0, create_time_ms, base_timestamp, done, 0, -1, -1, 0, -1,
        )  # fmt: skip
        assert position >= 0, "the bound on the batch's size was too low"
        _, base_timestamp, newest = table.tolist()
        max_timestamp = max(max_timestamp, newest) if done else newest
        done += each.stop - each.start
    uncompressed_bytes = position
    buffer = as_view(out)[:position]
    if compression != Compression.none:
        from fairlead_kafka.records.codecs import compress  # which loads the compressors

        packed = compress(compression, buffer[HEADER_SIZE_BYTES:], level)
        position = HEADER_SIZE_BYTES + len(packed)
        buffer = memoryview(bytearray(position))
        buffer[HEADER_SIZE_BYTES:] = packed
        out = np.frombuffer(buffer, np.uint8)
    HEADER.pack_into(
        buffer, 0, base_offset, position - LENGTH_PREFIX_BYTES, partition_leader_epoch, MAGIC, 0, attributes,
        count - 1,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    stamp_crc(buffer, out, 0, position)
    return EncodedBatch(buffer, count, position, uncompressed_bytes, max_timestamp)


def encode_many(
    columns: RecordColumns,
    order: Int64 | None,
    bounds: Int64,
    *,
    create_time_ms: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequences: Int64 | None = None,
    transactional: bool = False,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    records_bytes: int | None = None,
) -> list[EncodedBatch]:
    """Uncompressed batches of one set of columns, in one kernel call: batch b has records
    `order[bounds[2b]:bounds[2b + 1]]`.

    `bounds` int64[2b]: a start and a stop for each batch, whose ranges need not touch (`bounds_of`
    makes them of cuts); `base_sequences` int64[b] or None for no producer id; `records_bytes`: the
    sum of `sizes_bytes` over all the batches' records, if the caller knows it; the order's items
    are not checked then. The batches share one buffer. Raises InvalidRecord for an empty batch,
    RecordTooLarge beyond 2 GiB in one batch, IndexError for records that are not there.
    """
    # Few numbers: Python's own lists are several times faster here than arrays are.
    listed: list[int] = bounds.tolist()
    if not listed:
        return []
    counts = [stop - start for start, stop in zip(listed[::2], listed[1::2], strict=True)]
    most = max(counts)
    if min(counts) <= 0:
        raise InvalidRecord("a batch needs at least one record; each stop must lie after its start")
    _check_range(columns, order, min(listed), max(listed))
    if records_bytes is None:
        # With an order this is also what checks the order's own items, which the kernel trusts.
        sizes = columns.sizes_bytes()
        row_spans = [slice(start, stop) for start, stop in zip(listed[::2], listed[1::2], strict=True)]
        records_bytes = sum(
            int((sizes[each] if order is None else sizes[order[each]]).sum()) for each in row_spans
        )
    slack = _slack_bytes(most, columns.timestamps_ms is not None)
    out = np.empty(len(counts) * HEADER_SIZE_BYTES + records_bytes + sum(counts) * slack, np.uint8)
    table = np.empty(3 * len(counts), np.int64)
    end = encode_batches(
        *columns.flat(), flat_order(order), flat_order(bounds), flat_order(base_sequences), out, table,
        0, HEADER_SIZE_BYTES, create_time_ms, create_time_ms, 0,
        _attributes(Compression.none, transactional, False),
        producer_id, producer_epoch, base_offset, partition_leader_epoch,
    )  # fmt: skip
    assert end >= 0, "the bound on the batches' size was too low"
    starts = table[::3].tolist()
    sizes_bytes = [stop - start for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    _check_size(max(sizes_bytes))
    view = as_view(out)
    stamp_crcs(view, out, starts, end)
    return [
        EncodedBatch(view[start : start + size_bytes], count, size_bytes, size_bytes, newest_ms)
        for start, size_bytes, count, newest_ms in zip(
            starts, sizes_bytes, counts, table[2::3].tolist(), strict=True
        )
    ]


def _attributes(compression: Compression, transactional: bool, control: bool) -> int:
    return int(compression) | (TRANSACTIONAL_MASK if transactional else 0) | (CONTROL_MASK if control else 0)


def _bound_bytes(
    columns: RecordColumns, order: Int64 | None, start: int, stop: int, batch_count: int, timed: bool
) -> int:
    """An upper bound of the encoded bytes of records start..stop, in batches of at most
    `batch_count` records.

    `timed`: timestamps may differ within a batch. Raises IndexError for records that are not there.
    """
    _check_range(columns, order, start, stop)
    sizes = columns.sizes_bytes()
    chosen = sizes[start:stop] if order is None else sizes[order[start:stop]]
    return int(chosen.sum()) + (stop - start) * _slack_bytes(batch_count, timed)


def _slack_bytes(batch_count: int, timed: bool) -> int:
    """Most bytes that a record may take beyond its `sizes_bytes` in a batch of `batch_count`
    records; `timed`: timestamps may differ within the batch."""
    return (0 if batch_count <= _SHORT_DELTAS else _LONG_DELTA_BYTES) + (
        _TIMESTAMP_DELTA_BYTES if timed else 0
    )


def bounds_of(cuts: Int64) -> Int64:
    """Starts and stops, in pairs, of the ranges between `cuts`: (0, 3, 5) gives (0, 3, 3, 5)."""
    return np.repeat(cuts, 2)[1:-1]


def _check_range(columns: RecordColumns, order: Int64 | None, start: int, stop: int) -> None:
    """Raise IndexError for positions outside the records: kernels trust them.

    The order's own items are checked by NumPy, as their sizes are looked up.
    """
    there = columns.count if order is None else len(order)
    if not 0 <= start <= stop <= there:
        raise IndexError(f"records {start} to {stop} were asked for, but there are {there}")


def _check_size(size_bytes: int) -> None:
    if size_bytes > BATCH_MAX_SIZE_BYTES:
        raise RecordTooLarge(
            f"a batch of {size_bytes} bytes exceeds the {BATCH_MAX_SIZE_BYTES} that a batch's length can "
            "say; send fewer at once"
        )
