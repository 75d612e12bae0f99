"""Record batches, garbled before or under their CRC and their compression, into machine code and
reference, which must agree."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.kernel import KERNELS
from fairlead_kafka.records import (
    Compression,
    ControlType,
    Slice,
    check_produced,
    columns_from_lists,
    compress,
    control_batch,
    decode,
    encode,
    end_marker,
    headers_of,
    keep,
    recompress,
    scan,
)
from fairlead_kafka.records.batch import records_of
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.layout import (
    ATTRIBUTES,
    BATCH_LENGTH,
    HEADER_SIZE_BYTES,
    LENGTH_PREFIX_BYTES,
    as_array,
)
from tests.fuzz import checked_kernels
from tests.fuzz.messages import garbled
from tests.fuzz.tape import Tape
from tests.support.records_samples import as_batch

SOUND_BATCHES = 256
HEADER_FIELDS = (
    (0, ">q"), (8, ">i"), (12, ">i"), (16, ">b"), (21, ">h"), (23, ">i"),
    (27, ">q"), (35, ">q"), (43, ">q"), (51, ">h"), (53, ">i"), (57, ">i"),
)  # fmt: skip
EXTREMES = {
    "q": (0, -1, 1, 2**63 - 1, -(2**63), 2**62),
    "i": (0, -1, 1, 2**31 - 1, -(2**31), 7),
    "h": (0, -1, 1, 8, 16, 32, 48, 64),
    "b": (2, 0, 1, 3, -1),
}
WHOLE = 1 << 62


@cache
def sound(nth: int) -> bytes:
    """One of some batches of all shapes: any codec, with and without keys, values, headers,
    transactions; markers."""
    rng = Random(nth)
    if rng.random() < 0.08:
        kind = rng.choice((ControlType.abort, ControlType.commit))
        return bytes(
            control_batch(
                kind,
                producer_id=rng.randrange(3),
                producer_epoch=0,
                timestamp_ms=5,
                base_offset=rng.randrange(50),
            ).buffer
        )
    count = rng.randrange(1, 7)
    values = [None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 5, 130))) for _ in range(count)]
    keys = [None if rng.random() < 0.3 else rng.randbytes(rng.randrange(10)) for _ in range(count)]
    headers = [[("h", rng.choice((None, b"", b"abc")))] * rng.randrange(4) for _ in range(count)]
    times = [rng.choice((-1, 0, 10**12, 2**62)) for _ in range(count)]
    columns = columns_from_lists(keys, values, headers if rng.random() < 0.7 else None, times)
    options: dict[str, Any] = {
        "compression": Compression(rng.choice((0, 0, 0, 1, 2, 3, 4))),
        "producer_id": rng.randrange(-1, 3),
    }
    options |= {
        "transactional": rng.random() < 0.3,
        "control": rng.random() < 0.1,
        "base_offset": rng.randrange(50),
    }
    return bytes(
        encode([Slice(columns, 0, count, None)], create_time_ms=rng.choice((0, 10**12)), **options).buffer
    )


def garbled_batch(tape: Tape) -> bytes:
    """A batch with lies in its header, its records, or its compressed bytes; most often with a size
    and a CRC that fit."""
    data = bytearray(sound(tape.below(SOUND_BATCHES)))
    if tape.chance(90):
        where, layout = tape.pick(HEADER_FIELDS)
        struct.pack_into(layout, data, where, tape.pick(EXTREMES[layout[1]]))
    codec = data[ATTRIBUTES + 1] & 7
    if tape.chance(170):
        body = bytes(data[HEADER_SIZE_BYTES:])
        if 0 < codec <= 4 and tape.chance(128):
            body = _garbled_inside(data, Compression(codec), tape)
        else:
            body = garbled(body, tape)
        data[HEADER_SIZE_BYTES:] = body
        if not tape.chance(20):
            struct.pack_into(">i", data, BATCH_LENGTH, len(data) - LENGTH_PREFIX_BYTES)
    if len(data) > HEADER_SIZE_BYTES and not tape.chance(20):
        stamp_crc(data, as_array(data), 0, len(data))
    return bytes(data)


def _garbled_inside(data: bytearray, codec: Compression, tape: Tape) -> bytes:
    """The records, inflated, garbled and compressed again: what only a kernel can refuse."""
    try:
        array, start, stop = records_of(data, scan(data)[0])
    except (DecodeError, IndexError):
        return bytes(data[HEADER_SIZE_BYTES:])
    return compress(codec, garbled(array[start:stop].tobytes(), tape))


def run(tape: Tape) -> int:
    """One to three batches behind one another, decoded, measured, checked and rewritten by both
    bodies of the kernels."""
    count = tape.pick((1, 1, 2, 3))
    data = b"".join(garbled_batch(tape) for _ in range(count))
    if tape.chance(20):
        data = garbled(data, tape)
    options: dict[str, Any] = {
        "from_offset": tape.pick((0, 1, 3, 49, WHOLE)),
        "aborted": [(tape.below(3), tape.below(60)) for _ in range(tape.below(3))],
        "check_crcs": not tape.chance(128),
        "want_keys": not tape.chance(30),
        "want_values": not tape.chance(30),
        "want_headers": not tape.chance(30),
    }
    kept = tape.byte()
    actions: list[Callable[[], Any]] = [
        lambda: _decoded(data, options),
        lambda: _looked_through(data, kept),
    ]
    if tape.chance(64):  # slow: mostly Arrow's doing
        actions.append(lambda: headers_of(data, 0, WHOLE, measure=True, check_crcs=False))
    for action in actions:
        reference, machine = _outcome(data, action, True), _outcome(data, action, False)
        assert reference == machine, f"reference: {reference!s:.600}\nmachine code: {machine!s:.600}"
    return count


def prepare() -> None:
    """Have kernels check every index and every copied piece."""
    checked_kernels.load()


def _outcome(data: bytes, action: Callable[[], Any], reference: bool) -> object:
    for kernel in KERNELS:
        kernel.serve(None if reference else checked_kernels.load()[kernel.__name__])
    try:
        result = action()
        return result.to_pylist() if hasattr(result, "to_pylist") else result
    except DecodeError as error:
        if not 0 <= error.offset <= len(data):
            raise AssertionError(f"byte {error.offset} lies outside of the {len(data)}") from error
        return "DecodeError", str(error), error.offset
    finally:
        for kernel in KERNELS:
            kernel.serve(kernel.machine_code)


def _decoded(data: bytes, options: dict[str, Any]) -> object:
    found = decode(data, **options)
    headers = None if found.headers is None else [found.headers.item(nth) for nth in range(found.count)]
    keys = None if found.keys is None else found.keys.to_list()
    times = found.timestamps_ms.tolist()
    if all(abs(time_ms) < 2**63 // 1000 for time_ms in times):
        as_batch(found).validate(full=False)
    return (
        found.count,
        found.next_offset,
        found.offsets.tolist(),
        times,
        found.timestamp_types.tolist(),
        keys,
        found.values.to_list(),
        headers,
    )


def _looked_through(data: bytes, kept: int) -> object:
    """What a broker does with batches: checks them, reads markers, keeps some records, compresses
    anew."""
    found: list[object] = []
    for header in scan(data):
        steps: tuple[Callable[[], Any], ...] = (
            lambda header=header: check_produced(data, header),  # type: ignore[misc]
            lambda header=header: end_marker(data, header) if header.control else None,  # type: ignore[misc]
            lambda header=header: (
                keep(data, header, _mask(header.count, kept), 5) if header.count < 10_000 else None
            ),  # type: ignore[misc]
            lambda header=header: recompress(data, header, Compression.lz4),  # type: ignore[misc]
        )
        for step in steps:
            try:
                found.append(step())
            except DecodeError as error:
                found.append((str(error), error.offset))
                if not 0 <= error.offset <= len(data):
                    raise AssertionError(f"byte {error.offset} lies outside of the {len(data)}") from error
    return found


def _mask(count: int, kept: int) -> Any:
    return np.array([bool(kept >> nth % 8 & 1) for nth in range(count)], np.bool_)
