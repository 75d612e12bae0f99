"""Batches made from others: compressed with another codec, or with fewer records, copied byte for
byte.

A batch keeps its base offset and base timestamp (which the deltas in its records count from), its
last offset, producer id, epoch, sequence, and its other attributes.
"""

from __future__ import annotations

import numpy as np

from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.records import faults
from fairlead_kafka.records.arrays import Bools
from fairlead_kafka.records.batch import records_of
from fairlead_kafka.records.codecs import compress
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.decode_kernels import keep_records
from fairlead_kafka.records.layout import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    BatchHeader,
    Compression,
    Data,
)


def recompress(data: Data, header: BatchHeader, codec: Compression, level: int | None = None) -> bytes:
    """The batch with its records compressed by `codec`. DecodeError if they cannot be inflated."""
    array, start, stop = records_of(data, header)
    return _made(
        header, compress(codec, array[start:stop], level), codec, header.count, header.max_timestamp_ms
    )


def keep(data: Data, header: BatchHeader, kept: Bools, max_timestamp_ms: int) -> bytes:
    """The batch with those of its records that are `kept` (bool[count]), perhaps none;
    `max_timestamp_ms` (milliseconds since 1970) is the newest of their timestamps.

    DecodeError for garbage.
    """
    array, start, stop = records_of(data, header)
    target = np.empty(stop - start, np.uint8)
    fault, written = keep_records(read_only(array), start, stop, read_only(kept), target)
    if fault:
        raise faults.in_records(fault, written, header)
    count = int(np.count_nonzero(kept))
    codec = header.compression if count else Compression.none
    return _made(header, compress(codec, target[:written]), codec, count, max_timestamp_ms)


def _made(header: BatchHeader, body: bytes, codec: Compression, count: int, max_timestamp_ms: int) -> bytes:
    size_bytes = HEADER_SIZE_BYTES + len(body)
    batch = bytearray(size_bytes)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        size_bytes - LENGTH_PREFIX_BYTES,
        header.partition_leader_epoch,
        MAGIC,
        0,
        (header.attributes & ~COMPRESSION_MASK) | codec,
        header.last_offset_delta,
        header.base_timestamp_ms,
        max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        count,
    )
    batch[HEADER_SIZE_BYTES:] = body
    stamp_crc(batch, np.frombuffer(batch, np.uint8), 0, size_bytes)
    return bytes(batch)
