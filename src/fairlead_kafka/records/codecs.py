"""Compression of the records of a batch: gzip, snappy, lz4 and zstd, as Kafka frames them.

Everything goes through cramjam except that zlib writes gzip, being half again as fast. No
decompression takes more memory than its limit: sizes that a stream declares are checked before
memory is taken, and output goes into a buffer of fixed size. Errors are DecodeError with the
position in the compressed bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import cramjam
import numpy as np

from fairlead_kafka.base.errors import ConfigError, DecodeError
from fairlead_kafka.base.limits import INFLATED_BATCH_MAX_BYTES
from fairlead_kafka.records import xerial
from fairlead_kafka.records.faults import InflatesTooFar
from fairlead_kafka.records.layout import Compression, Data, as_view

_GZIP_WINDOW_BITS = 31
_LEVELS: dict[Compression, tuple[Sequence[int], int]] = {
    Compression.gzip: ((-1, *range(1, 10)), -1),
    Compression.lz4: (range(1, 18), 1),
    Compression.zstd: (range(-131072, 23), 3),
}
"""Codec → (levels allowed, default), as `compression.<codec>.level` of KIP-390; lz4's default is
the fast compressor."""
_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Magic; version 1, independent blocks, no checksums, no size; blocks of 64 KiB; checksum of the
two. Kafka's Java reader refuses linked blocks (`Lz4BlockInputStream`), which is what most libraries
write by default."""
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_MAGIC = 0x184D2204
_LZ4_HAS_SIZE = 0x08
_ZSTD_MAGIC = 0xFD2FB528
_UINT32 = struct.Struct("<I")
_UINT64 = struct.Struct("<Q")
_BUFFER_FULL = "whole buffer"
"""Part of cramjam's message if the output does not fit; it only chooses the text of our error."""
_FIRST_GUESS_RATIO = 8
_FIRST_GUESS_MIN_BYTES = 256 * 1024


def compress(codec: Compression, data: Data, level: int | None = None) -> bytes:
    """`data` in the framing Kafka expects of `codec`; ConfigError for a level the codec does not
    have (snappy has none)."""
    view = as_view(data)
    if codec == Compression.none:
        return bytes(view)
    if codec == Compression.snappy:
        if level is not None:
            raise ConfigError(f"compression level {level} is given, but snappy has no levels")
        return xerial.compress(view)
    allowed, default = _LEVELS[codec]
    if level is None:
        level = default
    elif level not in allowed:
        raise ConfigError(
            f"compression level {level} is outside {allowed[0]} to {allowed[-1]} of {codec.name}"
        )
    if codec == Compression.gzip:
        return zlib.compress(view, level, _GZIP_WINDOW_BITS)
    if codec == Compression.zstd:
        return bytes(cramjam.zstd.compress(view, level))
    return _compress_lz4(view, level)


def decompress(codec: Compression, data: Data, limit_bytes: int = INFLATED_BATCH_MAX_BYTES) -> memoryview:
    """The bytes in `data`; DecodeError for garbage, a truncated stream, or more than `limit_bytes`
    of output."""
    view = as_view(data)
    if codec == Compression.none:
        if len(view) > limit_bytes:
            raise DecodeError(f"{len(view)} bytes are more than the limit of {limit_bytes}", 0)
        return view
    if codec == Compression.gzip:
        return _inflate(codec, cramjam.gzip.decompress_into, view, _gzip_size(view), limit_bytes)
    if codec == Compression.snappy:
        return memoryview(xerial.decompress(view, limit_bytes))
    if codec == Compression.lz4:
        return _inflate(codec, cramjam.lz4.decompress_into, view, _lz4_size(view), limit_bytes)
    return _inflate(codec, cramjam.zstd.decompress_into, view, _zstd_size(view), limit_bytes)


def _compress_lz4(view: memoryview, level: int) -> bytes:
    high = min(level, 12) if level > 1 else None
    pieces: list[bytes | memoryview] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        chunk = view[start : start + _LZ4_BLOCK_BYTES]
        if high is None:
            block = memoryview(cramjam.lz4.compress_block(chunk, store_size=False))
        else:
            block = memoryview(
                cramjam.lz4.compress_block(chunk, mode="high_compression", compression=high, store_size=False)
            )
        if len(block) < len(chunk):
            pieces += [_UINT32.pack(len(block)), block]
        else:
            pieces += [_UINT32.pack(len(chunk) | _LZ4_STORED), chunk]
    pieces.append(_UINT32.pack(0))
    return b"".join(pieces)


def _inflate(
    codec: Compression,
    inflate_into: Callable[[memoryview, memoryview], int],
    view: memoryview,
    declared: int | None,
    limit_bytes: int,
) -> memoryview:
    """The inflated bytes of `view`. The buffer has the declared size, or a guessed one; if that is
    too small, `limit_bytes`. DecodeError for garbage, InflatesTooFar beyond the limit.

    A stream may consist of several frames, so the declared size is only where to begin.
    """
    if declared is not None and declared > limit_bytes:
        raise InflatesTooFar(
            f"{codec.name} data claim to inflate to {declared} bytes, over the limit of {limit_bytes}", 0
        )
    guess = max(len(view) * _FIRST_GUESS_RATIO, _FIRST_GUESS_MIN_BYTES) if declared is None else declared
    problem = ""
    for size in (min(guess, limit_bytes), limit_bytes):
        room = as_view(np.empty(size, np.uint8))
        try:
            return room[: inflate_into(view, room)]
        except cramjam.DecompressionError as error:
            problem = str(error)
    if _BUFFER_FULL in problem:
        raise InflatesTooFar(f"{codec.name} data inflate to more than the limit of {limit_bytes} bytes", 0)
    raise DecodeError(f"not {codec.name}: {problem}", 0)


def _gzip_size(view: memoryview) -> int | None:
    """The size, bytes, that the last member of a gzip stream declares in its last four bytes."""
    return int(_UINT32.unpack_from(view, len(view) - 4)[0]) if len(view) >= 18 else None


def _lz4_size(view: memoryview) -> int | None:
    """The content size, bytes, that an lz4 frame declares, if it does; else None."""
    if len(view) < 15 or _UINT32.unpack_from(view)[0] != _LZ4_MAGIC or not view[4] & _LZ4_HAS_SIZE:
        return None
    return int(_UINT64.unpack_from(view, 6)[0])


def _zstd_size(view: memoryview) -> int | None:
    """The content size, bytes, that a zstd frame declares, if it does; else None (RFC 8878,
    3.1.1.1)."""
    if len(view) < 5 or _UINT32.unpack_from(view)[0] != _ZSTD_MAGIC:
        return None
    descriptor = view[4]
    single_segment = descriptor >> 5 & 1
    width = (single_segment, 2, 4, 8)[descriptor >> 6]
    begin = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    if width == 0 or len(view) < begin + width:
        return None
    return int.from_bytes(view[begin : begin + width], "little") + (256 if width == 2 else 0)
