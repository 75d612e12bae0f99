"""Functions that compiled codecs call: varints, sections of tags, record buffers, ids."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from uuid import UUID

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.limits import STRING_MAX_BYTES

Buffer = bytes | bytearray | memoryview
"""A buffer of bytes in a frame; the host writes a list of these with one system call."""

Records = Buffer | list[Buffer] | tuple[Buffer, ...]
"""Record batches: one buffer, or several that follow each other."""
ONE_BYTE = tuple(bytes((value,)) for value in range(128))
"""Encoded varints below 128, which are nearly all there are."""
SHORT_LIST = 16
"""Lists of numbers shorter than this have their `struct` calls prepared."""
UUIDS_KEPT_MAX = 1024
"""UUIDs that are kept, the last ones used: ids of as many topics, in 300 KB."""


def encode_varint(value: int) -> bytes:
    """Unsigned varint: seven bits a byte, lowest first (KIP-482)."""
    # Nothing is cached: sizes of batches are all different, and 4,096 of them were 600 KB of small
    # objects between those that come and go.
    if value < 1 << 7:
        return ONE_BYTE[value]
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_string_varint(value: int) -> bytes:
    """Unsigned varint of a string's length plus 1. ValueError: it is over STRING_MAX_BYTES."""
    if value > STRING_MAX_BYTES + 1:
        raise ValueError(f"a string of {value - 1} bytes; at most {STRING_MAX_BYTES} can be carried")
    return encode_varint(value)


def decode_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Decode an unsigned varint: (value, position after it). Raises `DecodeError` if it is longer
    than five bytes or above 2^32-1, IndexError if data ends."""
    value = shift = 0
    start = position
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise DecodeError(f"a variable-length integer of {value} does not fit 32 bits", start)
            return value, position
        shift += 7
        if shift > 28:
            raise DecodeError("a variable-length integer is longer than five bytes", start)


def skip_tags(data: Buffer, position: int, count: int) -> int:
    """The position after `count` tagged fields, which the reader does not know. DecodeError if one
    is longer than the frame."""
    end = len(data)
    for _ in range(count):
        _, position = decode_varint(data, position)
        size_bytes, position = decode_varint(data, position)
        position += size_bytes
        if position > end:
            raise DecodeError(
                f"a tagged field of {size_bytes} bytes ends {position - end} bytes after the frame",
                position - size_bytes,
            )
    return position


@lru_cache(maxsize=UUIDS_KEPT_MAX)
def decode_uuid(raw: bytes) -> UUID:
    """The UUID of 16 bytes. The UUID is cached: there are few ids and many mentions of them, and
    making one costs a microsecond."""
    return UUID(bytes=raw)


def record_size_bytes(records: Records) -> int:
    """Bytes in `records`: a buffer, or a list of buffers."""
    if isinstance(records, (bytes, bytearray)):
        return len(records)
    if not isinstance(records, (list, tuple)):
        return memoryview(records).nbytes
    size_bytes = 0
    for chunk in records:
        size_bytes += len(chunk) if type(chunk) is bytes else memoryview(chunk).nbytes
    return size_bytes


def append_records(frame: list[Buffer], records: Records) -> None:
    """Add `records` to a frame's buffers as they are; empty ones are left out."""
    if isinstance(records, (list, tuple)):
        frame += records if all(map(len, records)) else [chunk for chunk in records if len(chunk)]
    elif len(records):
        frame.append(records)


def unpackers(letter: str) -> list[Callable[[Buffer, int], tuple[int, ...]]]:
    """Functions `(data, position)` that read a short list of numbers, by the list's length;
    `letter` is the numbers' code in `struct`. Nearly all lists are short (replicas, in-sync
    replicas)."""
    return [struct.Struct(f">{count}{letter}").unpack_from for count in range(SHORT_LIST)]


def packers(letter: str) -> list[Callable[..., bytes]]:
    """Functions that write a list of numbers, by the list's length; `letter` is the numbers' code
    in `struct`."""
    return [struct.Struct(f">{count}{letter}").pack for count in range(SHORT_LIST)]


def refuse_length(what: str, length: int, position: int) -> DecodeError:
    """The error for a length that cannot be: negative, or more than the rest of the frame could
    hold."""
    return DecodeError(f"{what} claims a length of {length}, which cannot be", position)


def join(parts: Sequence[bytes]) -> bytes:
    """All parts in one piece."""
    return b"".join(parts)
