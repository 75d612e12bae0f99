"""Garbage: whatever the bytes, decoding ends in columns or in one error that names a byte, by
machine code and reference alike."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.records import Compression, DecodedRecords, check_produced, decode, decompress, scan
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.decode_kernels import check_records, scan_batches
from fairlead_kafka.records.layout import as_array
from tests.support.records_samples import VARIED, Sample, decoded, encoded, kernels_served_by

GOOD = [
    bytes(encoded(VARIED, compression=codec, base_offset=6 * nth).buffer)
    for nth, codec in enumerate(Compression)
]
SMALL = [
    Sample(b"k", b"v", (("h", b"1"), ("n", None)), 70),
    Sample(None, b"x" * 70),
    Sample(b"", None, (("", b""),)),
] * 2
RECORDS = bytes(encoded(SMALL).buffer[61:])
edges = st.sampled_from([0, 1, 2, 127, 128, 129, 255])
edits = st.lists(st.tuples(st.integers(0, 2**16), edges | st.integers(0, 255)), min_size=1, max_size=4)


def edited(data: bytes, changes: list[tuple[int, int]], start: int = 0) -> bytearray:
    changed = bytearray(data)
    for position, byte in changes:
        changed[start + position % (len(data) - start)] = byte
    return changed


def located(error: DecodeError, data: bytes | bytearray) -> int:
    """The offset of an error, which must lie within the bytes it is about."""
    assert 0 <= error.offset <= len(data)
    return error.offset


def outcome(data: bytes | bytearray, **options: Any) -> object:
    """What decoding gives, in a form that can be compared."""
    try:
        records: DecodedRecords = decode(data, **options)
    except DecodeError as error:
        return located(error, data), str(error)
    return records.offsets.tolist(), decoded(records), records.timestamp_types.tolist(), records.next_offset


def both(data: bytes | bytearray, **options: Any) -> object:
    found = []
    for body in ("reference", "machine"):
        with kernels_served_by(body):
            found.append(outcome(data, **options))
    assert found[0] == found[1]
    return found[0]


@given(st.sampled_from(GOOD), edits)
def test_bytes_changed_anywhere_in_a_batch(batch: bytes, changes: list[tuple[int, int]]) -> None:
    both(edited(batch, changes), check_crcs=False)
    both(edited(batch, changes))


@given(edits, st.integers(-2, 2))
def test_bytes_changed_in_uncompressed_records_behind_a_sound_header(
    changes: list[tuple[int, int]], count_off_by: int
) -> None:
    batch = edited(bytes(encoded(SMALL).buffer), changes, 61)
    struct.pack_into(">ii", batch, 53, -1, max(0, len(SMALL) + count_off_by))
    struct.pack_into(">i", batch, 23, 9)
    stamp_crc(batch, as_array(batch), 0, len(batch))
    both(batch)


@given(edits | st.just([]), st.integers(0, len(RECORDS)), st.integers(0, 8))
def test_check_of_records_finds_the_same_fault_in_machine_code_and_reference(
    changes: list[tuple[int, int]], stop: int, count: int
) -> None:
    source = read_only(np.frombuffer(edited(RECORDS, changes), np.uint8))
    with kernels_served_by("machine"):
        assert check_records(source, 0, stop, count) == check_records.reference(source, 0, stop, count)


@given(st.binary(max_size=200))
def test_noise_as_records(noise: bytes) -> None:
    source = read_only(np.frombuffer(b"\0" + noise, np.uint8))
    with kernels_served_by("machine"):
        assert check_records(source, 1, len(source), 3) == check_records.reference(source, 1, len(source), 3)


@given(st.lists(st.sampled_from(GOOD), max_size=3), st.binary(max_size=120), edits)
def test_headers_are_scanned_alike_by_machine_code_reference_and_scan(
    good: list[bytes], noise: bytes, changes: list[tuple[int, int]]
) -> None:
    data = b"".join(good) + noise
    assume(data)
    data = bytes(edited(data, changes))
    source = read_only(np.frombuffer(data, np.uint8))
    rows, other_rows = np.zeros((8, 13), np.int64), np.zeros((8, 13), np.int64)
    with kernels_served_by("machine"):
        filled, fault, position = scan_batches(source, 0, rows)
    assert (filled, fault, position) == scan_batches.reference(source, 0, other_rows)
    assert (rows == other_rows).all()
    if fault:
        with pytest.raises(DecodeError) as caught:
            scan(data)
        assert located(caught.value, data) == position
    else:
        assert [tuple(header) for header in scan(data)] == [tuple(row) for row in rows[:filled].tolist()]


@given(st.integers(0, sum(map(len, GOOD))))
def test_a_stream_cut_anywhere_gives_its_whole_batches(stop: int) -> None:
    data = b"".join(GOOD)[:stop]
    ends = np.cumsum([len(batch) for batch in GOOD])
    records = decode(data)
    assert records.count == 6 * int(np.searchsorted(ends, stop, side="right"))


@given(st.binary(max_size=400))
def test_noise_as_batches(noise: bytes) -> None:
    both(noise)


@given(st.sampled_from(list(Compression)), st.integers(0, 2**16), edits, st.booleans())
def test_compressed_bytes_changed_or_cut(
    codec: Compression, cut_at: int, changes: list[tuple[int, int]], cut: bool
) -> None:
    records = GOOD[codec][61:]
    data = records[: cut_at % len(records)] if cut else edited(records, changes)
    try:
        inflated = decompress(codec, data, 1 << 20)
    except DecodeError as error:
        located(error, data)
    else:
        assert len(inflated) <= 1 << 20


@given(st.sampled_from(GOOD), edits)
def test_a_produced_batch_with_changed_bytes_is_checked_or_refused(
    batch: bytes, changes: list[tuple[int, int]]
) -> None:
    data = edited(batch, changes, 21)
    try:
        for header in scan(data):
            check_produced(data, header)
    except DecodeError as error:
        located(error, data)
