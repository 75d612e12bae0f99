"""Faults of batches: the codes that kernels return, and the DecodeErrors made of them."""

from __future__ import annotations

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records.layout import HEADER_SIZE_BYTES, BatchHeader


class InflatesTooFar(DecodeError):
    """A batch inflates to more than is taken at once; nothing else is known to be wrong with it."""


NONE = 0
TRUNCATED = 1
VARINT = 2
RECORD_LENGTH = 3
FIELD_LENGTH = 4
RECORD_REST = 5
HEADER_COUNT = 6
HEADER_KEY = 7
BATCH_REST = 8
OFFSET_DELTA = 9
BATCH_LENGTH = 10
MAGIC = 11
BATCH_OFFSETS = 12
CODEC = 13
COUNT = 14
ROOM = 15

MESSAGES: dict[int, str] = {
    TRUNCATED: "a record batch ends within a record",
    VARINT: "a varint is longer than its type allows",
    RECORD_LENGTH: "a record's length is impossible",
    FIELD_LENGTH: "a length inside a record points outside of it",
    RECORD_REST: "a record has bytes after its last header",
    HEADER_COUNT: "a record's header count is impossible",
    HEADER_KEY: "a header's key is null or points outside of its record",
    BATCH_REST: "a record batch has bytes after its last record",
    OFFSET_DELTA: "a record's offset lies outside of its batch or out of order",
    BATCH_LENGTH: "a record batch's length is impossible",
    MAGIC: "a record batch has a magic byte that is not 2",
    BATCH_OFFSETS: "a record batch has a negative or overflowing offset",
    CODEC: "a record batch names an unknown compression codec",
    COUNT: "a record batch's record count is impossible",
    ROOM: "the columns have no room for the records; this is a defect of the decoder",
}


def magic(found: int) -> str:
    """The message for a batch whose magic byte is `found`, not 2."""
    if found in (0, 1):
        return (
            f"a message set of magic {found}, from before Kafka 0.11, is not supported; only record "
            "batches of magic 2 are"
        )
    return f"a record batch has magic byte {found}; it must be 2"


def crc(stated: int, found: int) -> str:
    """The message for a batch whose CRC is `stated` while its bytes have the CRC `found`."""
    return f"a record batch is corrupt: its CRC-32C says 0x{stated:08x}, its bytes make 0x{found:08x}"


def moved(error: DecodeError, by_bytes: int) -> DecodeError:
    """The error with its offset moved by `by_bytes`: the offset was counted from a part of the
    buffer."""
    return type(error)(str(error.args[0]).removesuffix(f" (at byte {error.offset})"), error.offset + by_bytes)


def in_records(fault: int, position: int, header: BatchHeader) -> DecodeError:
    """The error for a fault found at `position` of the records of a batch.

    For an uncompressed batch `position` counts from the start of the buffer. For a compressed one
    it counts from the start of the inflated records, and the error's offset is where the compressed
    ones begin.
    """
    if header.codec:
        begin = header.position + HEADER_SIZE_BYTES
        return DecodeError(
            f"{MESSAGES[fault]}, at byte {position} of the inflated records of the batch", begin
        )
    return DecodeError(MESSAGES[fault], position)
