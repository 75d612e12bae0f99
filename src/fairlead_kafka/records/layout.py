"""The record batch v2 on the wire: where each header field lies, and the header as a value.

Source: Kafka's `DefaultRecordBatch` and `DefaultRecord`, KIP-98. All integers are big-endian;
inside records they are zigzag varints. The CRC-32C covers everything from the attributes to the
end, so the base offset and the leader epoch may be stamped without touching it.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import ConfigError

Data: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
"""A contiguous buffer of bytes."""

MAGIC = 2
HEADER_SIZE_BYTES = 61
LENGTH_PREFIX_BYTES = 12
"""Base offset and batch length: the part the batch length does not count."""
RECORD_MIN_SIZE_BYTES = 7
"""Length, attributes, timestamp delta, offset delta, key length, value length and header count, one
byte each."""
BATCH_MAX_SIZE_BYTES = 2**31 - 1

BASE_OFFSET = 0
BATCH_LENGTH = 8
LEADER_EPOCH = 12
MAGIC_BYTE = 16
CRC = 17
ATTRIBUTES = 21
LAST_OFFSET_DELTA = 23
BASE_TIMESTAMP = 27
MAX_TIMESTAMP = 35
PRODUCER_ID = 43
PRODUCER_EPOCH = 51
BASE_SEQUENCE = 53
RECORD_COUNT = 57

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
"""The base timestamp is the time at which the batch's tombstones go (KIP-534); deltas count from it
all the same."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""The whole header: base offset, length, leader epoch, magic, CRC, attributes, last offset delta,
base and max timestamp, producer id, producer epoch, base sequence, count."""
assert HEADER.size == HEADER_SIZE_BYTES


class Compression(IntEnum):
    """The codec of a batch, in bits 0-2 of its attributes."""

    none = 0
    gzip = 1
    snappy = 2
    lz4 = 3
    zstd = 4

    @classmethod
    def named(cls, name: str) -> Compression:
        """The codec called `name` in `compression.type`; raises ConfigError for any other name."""
        try:
            return cls[name]
        except KeyError:
            accepted = ", ".join(codec.name for codec in cls)
            raise ConfigError(f"compression.type is {name!r}; it must be one of {accepted}") from None


MESSAGE_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
"""The columns of records consumed, in order (`records.MESSAGE_SCHEMA` has their types)."""


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    create = 0
    log_append = 1


class BatchHeader(NamedTuple):
    """The header of one record batch, and where it lies.

    `position` is the byte in the scanned buffer where the batch starts; `size_bytes` counts the
    whole batch, header included. Offsets are absolute, timestamps milliseconds since 1970.
    """

    position: int
    size_bytes: int
    base_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch was written with (compaction may have removed it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, or -1 without a producer id; wraps after 2**31 - 1 as
        Kafka's does."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def stop(self) -> int:
        """Position after the batch."""
        return self.position + self.size_bytes

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes as they are, also when no codec has that number."""
        return self.attributes & COMPRESSION_MASK

    @property
    def compression(self) -> Compression:
        """The codec of the records; ValueError for the numbers 5-7, which `scan` refuses."""
        return Compression(self.attributes & COMPRESSION_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether producer or broker set the timestamps."""
        return TimestampType.log_append if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.create

    @property
    def transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def control(self) -> bool:
        """True if the batch holds a transaction marker and no user's records."""
        return bool(self.attributes & CONTROL_MASK)


class EncodedBatch(NamedTuple):
    """A finished batch.

    `buffer` is the whole batch, writable; `uncompressed_bytes` its size had it not been compressed;
    `count` its records.
    """

    buffer: memoryview
    count: int  # type: ignore[assignment]
    size_bytes: int
    uncompressed_bytes: int
    max_timestamp_ms: int


class AbortedTransaction(NamedTuple):
    """A transaction of `producer_id` that began at `first_offset` and was aborted (Fetch
    response)."""

    producer_id: int
    first_offset: int


def as_view(data: Data) -> memoryview:
    """`data` as a flat memoryview of bytes over the same memory."""
    return memoryview(cast(bytes, data)).cast("B")


def as_array(data: Data) -> npt.NDArray[np.uint8]:
    """`data` as a flat uint8 array over the same memory."""
    return np.frombuffer(data, np.uint8)
