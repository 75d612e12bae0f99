"""Whole batches: walking over them, checking them, stamping them. No record is decoded here, save
by `check_produced`."""

from __future__ import annotations

import struct

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.limits import INFLATED_BATCH_MAX_BYTES
from fairlead_kafka.records import faults
from fairlead_kafka.records.arrays import Bytes
from fairlead_kafka.records.crc import batch_crc, stamp_crc
from fairlead_kafka.records.decode_kernels import check_records
from fairlead_kafka.records.layout import (
    ATTRIBUTES,
    BATCH_LENGTH,
    COMPRESSION_MASK,
    CRC,
    HEADER,
    HEADER_SIZE_BYTES,
    LAST_OFFSET_DELTA,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    MAGIC_BYTE,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    RECORD_COUNT,
    RECORD_MIN_SIZE_BYTES,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    Compression,
    Data,
    as_array,
    as_view,
)

_LENGTH = struct.Struct(">i")
_PRODUCER = struct.Struct(">qhi")
_INT16 = struct.Struct(">h")
_INT64 = struct.Struct(">q")
_OFFSET_MAX = 2**63 - 1
_CODECS = len(Compression)


def scan(data: Data) -> list[BatchHeader]:
    """The headers of all whole batches in `data`, in order; about a microsecond each, no record is
    looked at.

    A last batch that is cut short is left out: a broker may cut a fetch answer anywhere. Raises
    DecodeError, naming the byte, for anything that no Kafka batch v2 can be. The CRC is not checked
    (see `verify`).
    """
    view = as_view(data)
    total, position = len(view), 0
    headers = []
    while total - position > MAGIC_BYTE:
        size = _LENGTH.unpack_from(view, position + BATCH_LENGTH)[0] + LENGTH_PREFIX_BYTES
        if view[position + MAGIC_BYTE] != MAGIC:
            raise DecodeError(faults.magic(view[position + MAGIC_BYTE]), position + MAGIC_BYTE)
        if size < HEADER_SIZE_BYTES:
            raise DecodeError(faults.MESSAGES[faults.BATCH_LENGTH], position + BATCH_LENGTH)
        if size > total - position:
            break
        (
            base,
            _,
            epoch,
            _,
            crc,
            attributes,
            last,
            first_ms,
            newest_ms,
            producer,
            producer_epoch,
            sequence,
            count,
        ) = HEADER.unpack_from(view, position)
        if base < 0 or last < 0 or base > _OFFSET_MAX - last:
            raise DecodeError(
                faults.MESSAGES[faults.BATCH_OFFSETS], position + (0 if base < 0 else LAST_OFFSET_DELTA)
            )
        if attributes & COMPRESSION_MASK >= _CODECS:
            raise DecodeError(faults.MESSAGES[faults.CODEC], position + ATTRIBUTES)
        plain = not attributes & COMPRESSION_MASK
        if (
            count < 0
            or count > last + 1
            or (plain and count * RECORD_MIN_SIZE_BYTES > size - HEADER_SIZE_BYTES)
        ):
            raise DecodeError(faults.MESSAGES[faults.COUNT], position + RECORD_COUNT)
        fields = (
            position,
            size,
            base,
            epoch,
            crc,
            attributes,
            last,
            first_ms,
            newest_ms,
            producer,
            producer_epoch,
            sequence,
            count,
        )
        headers.append(
            tuple.__new__(BatchHeader, fields)
        )  # as BatchHeader(*fields), which takes half as long again
        position += size
    return headers


def verify(data: Data, header: BatchHeader) -> None:
    """Raise DecodeError unless the batch's CRC-32C is that of its bytes."""
    found = batch_crc(as_array(data), header.position, header.stop)
    if found != header.crc:
        raise DecodeError(faults.crc(header.crc, found), header.position + CRC)


def records_of(
    data: Data, header: BatchHeader, limit_bytes: int = INFLATED_BATCH_MAX_BYTES
) -> tuple[Bytes, int, int]:
    """The record bytes of a batch, inflated if it is compressed: an array, and where in it they
    start and stop. Raises DecodeError for garbage, `faults.InflatesTooFar` beyond `limit_bytes`."""
    array = as_array(data)
    begin = header.position + HEADER_SIZE_BYTES
    if not header.codec:
        return array, begin, header.stop
    from fairlead_kafka.records.codecs import decompress  # which loads the compressors

    try:
        inflated = decompress(header.compression, array[begin : header.stop], limit_bytes)
    except DecodeError as error:
        raise faults.moved(error, begin) from None
    return np.frombuffer(inflated, np.uint8), 0, len(inflated)


def check_produced(data: Data, header: BatchHeader, *, inflate: bool = True) -> None:
    """Check a producer's batch as a broker does: record count, offset deltas 0..n-1, every length.

    A compressed batch is inflated for it unless `inflate` is false. Raises DecodeError; for a
    compressed batch the offset is that of the records' start in `data`, and the message names the
    byte in the inflated records.
    """
    if header.count <= 0 or header.last_offset_delta + 1 != header.count:
        message = (
            f"a producer's batch must hold records at offsets 0 to n - 1; it says {header.count} "
            f"records up to {header.last_offset_delta}"
        )
        raise DecodeError(message, header.position + RECORD_COUNT)
    if header.codec and not inflate:
        return
    array, start, stop = records_of(data, header)
    fault, position = check_records(array, start, stop, header.count)
    if fault:
        raise faults.in_records(fault, position, header)


def assign(
    buffer: bytearray | memoryview,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    log_append_time_ms: int | None = None,
) -> None:
    """Write what a broker sets in the one batch in `buffer` (writable): base offset, leader epoch.

    With `log_append_time_ms` also the timestamp type and the max timestamp, which every record then
    shows, and the CRC; the deltas stay (Kafka's `DefaultRecordBatch.setMaxTimestamp`). Otherwise
    the CRC need not change.
    """
    _INT64.pack_into(buffer, 0, base_offset)
    struct.pack_into(">i", buffer, BATCH_LENGTH + 4, partition_leader_epoch)
    if log_append_time_ms is None:
        return
    (attributes,) = _INT16.unpack_from(buffer, ATTRIBUTES)
    _INT16.pack_into(buffer, ATTRIBUTES, attributes | TIMESTAMP_TYPE_MASK)
    _INT64.pack_into(buffer, MAX_TIMESTAMP, log_append_time_ms)
    stamp_crc(buffer, np.frombuffer(buffer, np.uint8), 0, _batch_size(buffer))


def restamp(
    batch: bytearray | memoryview, *, producer_id: int, producer_epoch: int, base_sequence: int
) -> None:
    """Write into the one batch in `batch` (writable) another producer's id, epoch and base
    sequence, and the CRC to match."""
    _PRODUCER.pack_into(batch, PRODUCER_ID, producer_id, producer_epoch, base_sequence)
    stamp_crc(batch, np.frombuffer(batch, np.uint8), 0, _batch_size(batch))


def _batch_size(buffer: bytearray | memoryview) -> int:
    size = int(_LENGTH.unpack_from(buffer, BATCH_LENGTH)[0]) + LENGTH_PREFIX_BYTES
    if not HEADER_SIZE_BYTES <= size <= len(buffer):
        raise DecodeError(faults.MESSAGES[faults.BATCH_LENGTH], BATCH_LENGTH)
    return size
