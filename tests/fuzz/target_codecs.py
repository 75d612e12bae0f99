"""Compressed blocks into `decompress`: bytes up to the limit or a DecodeError, whatever sizes they
declare."""

from __future__ import annotations

from functools import cache
from random import Random

import cramjam

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records import Compression, compress, decompress
from tests.fuzz.messages import garbled
from tests.fuzz.tape import Tape

LIMITS = (1 << 16, 1 << 12, 1 << 18, 100, 0)
SOUND_BLOCKS = 64
CODECS = (Compression.gzip, Compression.snappy, Compression.lz4, Compression.zstd)
VARIANTS_MAX = 8


@cache
def sound(codec: Compression, nth: int) -> tuple[bytes, bytes]:
    """Bytes, and the same compressed; by us, or in a frame that others write (linked blocks,
    declared sizes, raw snappy)."""
    rng = Random(nth)
    data = b"".join(
        rng.choice((rng.randbytes(9), b"abcabcabc" * 3, bytes(40))) * rng.randrange(1, 9)
        for _ in range(rng.randrange(30))
    )
    if nth % 4:
        return data, compress(codec, data)
    others = {
        Compression.gzip: cramjam.gzip.compress,
        Compression.snappy: cramjam.snappy.compress_raw,
        Compression.lz4: cramjam.lz4.compress,
        Compression.zstd: cramjam.zstd.compress,
    }
    return data, bytes(others[codec](data))


def run(tape: Tape) -> int:
    """One block, sound and garbled, on its own or behind another."""
    codec = tape.pick(CODECS)
    data, block = sound(codec, tape.below(SOUND_BLOCKS))
    assert bytes(decompress(codec, block, max(LIMITS))) == data
    for nth in range(VARIANTS_MAX):
        if tape.ended:
            return nth + 1
        limit = tape.pick(LIMITS)
        changed = garbled(block, tape)
        if tape.chance(30):
            changed = block + changed
        try:
            found = decompress(tape.pick(CODECS) if tape.chance(20) else codec, changed, limit)
        except DecodeError as error:
            if not 0 <= error.offset <= len(changed):
                raise AssertionError(f"byte {error.offset} lies outside of the {len(changed)}") from error
        else:
            assert len(found) <= limit, f"{len(found)} bytes, over the limit of {limit}"
    return VARIANTS_MAX + 1
