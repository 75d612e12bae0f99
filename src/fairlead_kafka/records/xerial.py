"""Kafka's framing of snappy: xerial's `SnappyOutputStream`, which is not snappy's own frame format.

A stream is the magic 0x82 "SNAPPY" 0x00, a version and the lowest version that can read it (1 and
1, big-endian), then chunks, each a big-endian length and a raw snappy block. Some writers put the
versions little-endian (redpanda, kafka-python issue 2414), so they are not looked at. A stream
without the magic is one raw block (librdkafka writes that).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import cramjam

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records.faults import InflatesTooFar

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + struct.pack(">ii", 1, 1)
CHUNK_BYTES = 32 * 1024
"""Uncompressed bytes per chunk, xerial's default."""
_LENGTH = struct.Struct(">i")


def compress(data: memoryview) -> bytes:
    """`data` as a xerial stream."""
    pieces: list[bytes | memoryview] = [HEADER]
    for start in range(0, len(data), CHUNK_BYTES):
        block = memoryview(cramjam.snappy.compress_raw(data[start : start + CHUNK_BYTES]))
        pieces += [_LENGTH.pack(len(block)), block]
    return b"".join(pieces)


def decompress(data: memoryview, limit_bytes: int) -> bytearray:
    """The bytes in a xerial stream or a raw block; DecodeError for garbage or for more than
    `limit_bytes`."""
    inflated = bytearray()
    for start, stop in blocks(data):
        _append_block(inflated, data, start, stop, limit_bytes)
    return inflated


def pieces(data: memoryview, limit_bytes: int) -> Iterator[bytearray]:
    """The bytes in a xerial stream or a raw block, block by block, each inflating to `limit_bytes`
    at most. Raises DecodeError for garbage and for a larger block."""
    for start, stop in blocks(data):
        inflated = bytearray()
        _append_block(inflated, data, start, stop, limit_bytes)
        yield inflated


def blocks(data: memoryview) -> Iterator[tuple[int, int]]:
    """Start and stop of each raw block in a xerial stream. DecodeError for garbage."""
    if data[: len(MAGIC)] != MAGIC:
        yield 0, len(data)
        return
    if len(data) < len(HEADER):
        raise DecodeError("a snappy stream ends within its header", len(data))
    position = len(HEADER)
    while position < len(data):
        if len(data) - position < _LENGTH.size:
            raise DecodeError("a snappy stream ends within the length of a chunk", position)
        (size,) = _LENGTH.unpack_from(data, position)
        begin = position + _LENGTH.size
        if not 0 < size <= len(data) - begin:
            raise DecodeError(
                f"a snappy chunk of {size} bytes does not fit the {len(data) - begin} that are left", position
            )
        yield begin, begin + size
        position = begin + size


def _append_block(inflated: bytearray, data: memoryview, start: int, stop: int, limit_bytes: int) -> None:
    """Inflate the raw block `data[start:stop]` onto the end of `inflated`; the block begins with
    its inflated size. DecodeError for garbage, InflatesTooFar beyond `limit_bytes` in all."""
    block = data[start:stop]
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
    except cramjam.DecompressionError as error:
        raise DecodeError(f"not snappy: {error}", start) from None
    have = len(inflated)
    if have + size > limit_bytes:
        raise InflatesTooFar(
            f"snappy data inflate to {have + size} bytes or more, over the limit of {limit_bytes}", start
        )
    if size > _RATIO_MAX * len(block) + _RATIO_SLACK_BYTES:
        raise DecodeError(f"a snappy block of {len(block)} bytes cannot hold the {size} it claims", start)
    inflated.extend(bytes(size))
    try:
        done = int(cramjam.snappy.decompress_raw_into(block, memoryview(inflated)[have:]))
    except cramjam.DecompressionError as error:
        raise DecodeError(f"not snappy: {error}", start) from None
    if done != size:
        raise DecodeError(f"a snappy block inflates to {done} bytes instead of the {size} it claims", start)


_RATIO_MAX = 32
"""Bound of a block's inflation: a copy of 3 bytes makes at most 64 bytes, so 22 times at most."""
_RATIO_SLACK_BYTES = 64
