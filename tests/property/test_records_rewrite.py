"""Batches made of others: the kernel that copies records and its reference, and whole batches that
come back with fewer records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.records import (
    Compression,
    Slice,
    columns_from_lists,
    decode,
    encode,
    keep,
    recompress,
    scan,
    verify,
)
from fairlead_kafka.records.decode_kernels import keep_records
from tests.support.records_samples import kernels_served_by

NAMES = [codec.name for codec in Compression]
items = st.none() | st.binary(max_size=300)
rows = st.lists(st.tuples(items, items), min_size=1, max_size=12)


def batch(pairs: list[tuple[bytes | None, bytes | None]], codec: str) -> bytes:
    columns = columns_from_lists(
        [key for key, _ in pairs], [value for _, value in pairs], None, [1000 + n for n in range(len(pairs))]
    )
    encoded = encode(
        [Slice(columns, 0, len(pairs), None)],
        create_time_ms=5,
        compression=Compression.named(codec),
        base_offset=70,
    )
    return bytes(encoded.buffer)


@given(rows, st.sampled_from(NAMES), st.data())
def test_what_is_kept_is_as_it_was(
    pairs: list[tuple[bytes | None, bytes | None]], codec: str, data: st.DataObject
) -> None:
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs))), np.bool_)
    before = batch(pairs, codec)
    header = scan(before)[0]
    after = keep(before, header, kept, 1234)
    found = scan(after)[0]
    verify(after, found)
    assert (found.base_offset, found.last_offset, found.count, found.max_timestamp_ms) == (
        70,
        header.last_offset,
        int(kept.sum()),
        1234,
    )
    assert found.codec == (header.codec if kept.any() else 0)
    records = decode(after)
    numbers = np.flatnonzero(kept).tolist()
    assert records.offsets.tolist() == [70 + number for number in numbers]
    assert records.timestamps_ms.tolist() == [1000 + number for number in numbers]
    keys = [None] * records.count if records.keys is None else records.keys.to_list()
    assert list(zip(keys, records.values.to_list(), strict=True)) == [pairs[number] for number in numbers]


@given(rows, st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_another_codec_changes_nothing_but_the_codec(
    pairs: list[tuple[bytes | None, bytes | None]], codec: str, other: str
) -> None:
    before = batch(pairs, codec)
    after = recompress(before, scan(before)[0], Compression.named(other))
    header = scan(after)[0]
    verify(after, header)
    assert header.compression == Compression.named(other)
    assert recompress(after, header, Compression.none) == recompress(
        before, scan(before)[0], Compression.none
    )


@given(st.binary(min_size=1, max_size=200), st.lists(st.booleans(), min_size=1, max_size=4))
def test_machine_code_and_reference_take_noise_alike(noise: bytes, wanted: list[bool]) -> None:
    source, kept = read_only(np.frombuffer(noise, np.uint8)), read_only(np.array(wanted, np.bool_))
    target, other_target = np.zeros(len(noise), np.uint8), np.zeros(len(noise), np.uint8)
    with kernels_served_by("machine"):
        answer = keep_records(source, 0, len(source), kept, target)
    assert answer == keep_records.reference(source, 0, len(source), kept, other_target)
    if not answer[0]:
        assert (target == other_target).all()


@given(rows, st.integers(0, 10_000))
def test_machine_code_and_reference_copy_alike(
    pairs: list[tuple[bytes | None, bytes | None]], bits: int
) -> None:
    body = read_only(np.frombuffer(batch(pairs, "none")[61:], np.uint8))
    kept = read_only(np.array([bool(bits >> number & 1) for number in range(len(pairs))], np.bool_))
    target, other_target = np.zeros(len(body), np.uint8), np.zeros(len(body), np.uint8)
    with kernels_served_by("machine"):
        answer = keep_records(body, 0, len(body), kept, target)
    assert answer == keep_records.reference(body, 0, len(body), kept, other_target)
    assert (target == other_target).all()


def test_a_batch_with_garbage_inside_is_refused() -> None:
    data = bytearray(batch([(b"a", b"b")], "none"))
    data[61] = 0x7F
    with pytest.raises(DecodeError):
        keep(data, scan(data)[0], np.ones(1, np.bool_), 0)
