"""The codecs alone: framings, levels, garbage, bombs."""

from __future__ import annotations

import gzip
import struct
import zlib

import cramjam
import pytest

from fairlead_kafka.base.errors import ConfigError, DecodeError
from fairlead_kafka.records import Compression, compress, decompress

CODECS = [Compression.gzip, Compression.snappy, Compression.lz4, Compression.zstd]
DATA = b"".join(b"user-%d clicked;" % (i * i) for i in range(30_000))
LIMIT = 1 << 20


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 64 * 1024, 64 * 1024 + 1, len(DATA)])
def test_round_trip(codec: Compression, size: int) -> None:
    assert decompress(codec, compress(codec, DATA[:size]), LIMIT) == DATA[:size]


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Compression.gzip, (-1, 1, 9)), (Compression.lz4, (1, 9, 12, 17)), (Compression.zstd, (-5, 1, 22))],
)
def test_every_level_round_trips(codec: Compression, levels: range) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, DATA[:20_000], level), LIMIT) == DATA[:20_000]


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Compression.gzip, 10),
        (Compression.gzip, 0),
        (Compression.lz4, 18),
        (Compression.zstd, 23),
        (Compression.snappy, 1),
    ],
)
def test_levels_a_codec_does_not_have_are_refused(codec: Compression, level: int) -> None:
    with pytest.raises(ConfigError, match=str(level)):
        compress(codec, DATA, level)


def test_lz4_blocks_are_independent_since_kafka_refuses_linked_ones() -> None:
    frame = compress(Compression.lz4, DATA)
    assert frame[:4] == bytes.fromhex("04224d18")
    assert frame[4] == 0x60
    assert frame[-4:] == bytes(4)


def test_lz4_stores_what_does_not_shrink() -> None:
    noise = zlib.compress(DATA, 9)
    frame = compress(Compression.lz4, noise)
    assert len(frame) < len(noise) + 32
    assert decompress(Compression.lz4, frame, LIMIT) == noise


def test_snappy_is_framed_as_xerial_does_and_read_in_all_its_forms() -> None:
    framed = compress(Compression.snappy, DATA)
    assert framed[:16] == b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1"
    little_endian = framed[:8] + struct.pack("<ii", 1, 1) + framed[16:]
    for form in (framed, little_endian, bytes(cramjam.snappy.compress_raw(DATA))):
        assert decompress(Compression.snappy, form, LIMIT) == DATA


def test_frames_with_and_without_size_and_several_in_a_row_are_read() -> None:
    linked = bytes(cramjam.lz4.compress(DATA))
    sized = bytes(cramjam.zstd.compress(DATA, 3))
    streamed = cramjam.zstd.Compressor(3)
    streamed.compress(DATA)
    unsized = bytes(streamed.finish())
    assert decompress(Compression.lz4, linked, LIMIT) == DATA
    assert decompress(Compression.lz4, linked + linked, 2 * LIMIT) == DATA * 2
    assert decompress(Compression.zstd, unsized, LIMIT) == DATA
    assert decompress(Compression.zstd, sized + unsized, 2 * LIMIT) == DATA * 2
    assert decompress(Compression.gzip, gzip.compress(DATA) + gzip.compress(b"more"), LIMIT) == DATA + b"more"


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_and_truncation_raise_decode_error(codec: Compression) -> None:
    packed = compress(codec, DATA[:5_000])
    for bad in (
        b"x",
        b"garbage" * 20,
        packed[: len(packed) // 2],
        packed[:-1],
        packed[1:],
        packed + b"tail" * 5,
    ):
        with pytest.raises(DecodeError, match=codec.name):
            decompress(codec, bad, LIMIT)


@pytest.mark.parametrize("codec", list(Compression))
def test_the_limit_is_kept_to_the_byte(codec: Compression) -> None:
    packed = compress(codec, DATA)
    assert decompress(codec, packed, len(DATA)) == DATA
    with pytest.raises(DecodeError, match="limit"):
        decompress(codec, packed, len(DATA) - 1)


def test_bombs_are_refused_whatever_size_they_declare() -> None:
    zeros = bytes(64 << 20)
    streamed = cramjam.zstd.Compressor(3)
    streamed.compress(zeros)
    bombs = [(codec, compress(codec, zeros)) for codec in CODECS] + [
        (Compression.zstd, bytes(streamed.finish()))
    ]
    bombs.append((Compression.lz4, bytes(cramjam.lz4.compress(zeros))))
    for codec, bomb in bombs:
        with pytest.raises(DecodeError, match="limit"):
            decompress(codec, bomb, LIMIT)


def test_a_snappy_block_that_claims_more_than_it_can_hold_takes_no_memory_for_it() -> None:
    with pytest.raises(DecodeError, match="cannot hold"):
        decompress(Compression.snappy, b"\xff\xff\xff\x07" + bytes(10), 1 << 30)
