"""Cutting and encoding columns; most of the format is tested by the round trips and the exchange
with other codecs."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from fairlead_kafka.base.errors import ConfigError, InvalidRecord, RecordTooLarge
from fairlead_kafka.records import (
    BinaryColumn,
    Compression,
    RecordColumns,
    Slice,
    bounds_of,
    crc32c,
    cut,
    decode,
    encode,
    encode_many,
    scan,
    verify,
)
from tests.support.records_samples import (
    VARIED,
    Sample,
    columns_of,
    decoded,
    encoded,
    kernels_served_by,
    stamped,
)

BODIES = ["reference", "machine"]


def test_one_record_has_the_bytes_that_the_format_says() -> None:
    batch = encoded(
        [Sample(b"k", b"vv", (("h", None),), 7)],
        producer_id=258,
        producer_epoch=3,
        base_sequence=4,
        transactional=True,
    )
    record = bytes([0, 0, 0, 2, ord("k"), 4, ord("v"), ord("v"), 2, 2, ord("h"), 1])
    body = struct.pack(">hiqqqhii", 16, 0, 7, 7, 258, 3, 4, 1) + bytes([len(record) << 1]) + record
    assert bytes(batch.buffer) == struct.pack(">qiibI", 0, 9 + len(body), -1, 2, crc32c(body)) + body
    assert (batch.count, batch.size_bytes, batch.uncompressed_bytes, batch.max_timestamp_ms) == (1, 74, 74, 7)


def test_header_options_reach_the_header() -> None:
    batch = encoded(
        VARIED,
        base_offset=77,
        partition_leader_epoch=9,
        transactional=True,
        control=True,
        compression=Compression.gzip,
    )
    (header,) = scan(batch.buffer)
    verify(batch.buffer, header)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch, header.count) == (
        77,
        82,
        9,
        6,
    )
    assert (header.transactional, header.control, header.compression, header.producer_id) == (
        True,
        True,
        Compression.gzip,
        -1,
    )
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1_000, 1_700_000_000_000)
    assert batch.uncompressed_bytes > batch.size_bytes == header.size_bytes


@pytest.mark.parametrize("body", BODIES)
def test_slices_of_several_columns_make_one_batch_in_their_order(body: str) -> None:
    timed, untimed = columns_of(VARIED), columns_of([Sample(value=bytes([i])) for i in range(5)])
    with kernels_served_by(body):
        slices = [
            Slice(untimed, 3, 5),
            Slice(timed, 1, 1),
            Slice(timed, 0, 3, np.array([5, 4, 3])),
            Slice(untimed, 0, 2, np.array([2, 0, 1])),
        ]
        batch = encode(slices, create_time_ms=99)
        expected = [
            Sample(value=b"\3"),
            Sample(value=b"\4"),
            VARIED[5],
            VARIED[4],
            VARIED[3],
            Sample(value=b"\2"),
            Sample(value=b"\0"),
        ]
        assert decoded(decode(batch.buffer)) == stamped(expected, 99)
    assert batch.max_timestamp_ms == VARIED[3].timestamp_ms


@pytest.mark.parametrize("body", BODIES)
def test_encode_many_makes_the_batches_that_encode_makes(body: str) -> None:
    columns = columns_of(VARIED * 3)
    order = np.random.RandomState(7).permutation(columns.count)
    cuts = np.array([1, 2, 9, 17])
    sequences = np.array([10, 11, 2**31 - 1])
    with kernels_served_by(body):
        batches = encode_many(
            columns,
            order,
            bounds_of(cuts),
            create_time_ms=5,
            producer_id=1,
            producer_epoch=2,
            base_sequences=sequences,
            transactional=True,
        )
        for index, batch in enumerate(batches):
            alone = encode(
                [Slice(columns, int(cuts[index]), int(cuts[index + 1]), order)],
                create_time_ms=5,
                producer_id=1,
                producer_epoch=2,
                base_sequence=int(sequences[index]),
                transactional=True,
            )
            assert bytes(batch.buffer) == bytes(alone.buffer)
            assert batch[1:] == alone[1:]


def test_extreme_timestamps_and_ten_byte_deltas_survive() -> None:
    times = [2**62, 0, 2**63 - 1, 1, 2**62 + 64]
    batch = encoded([Sample(timestamp_ms=time) for time in times])
    assert decode(batch.buffer).timestamps_ms.tolist() == times
    assert batch.max_timestamp_ms == 2**63 - 1
    columns = RecordColumns(2, None, None, None, np.array([-(2**63), 2**63 - 1]))
    extremes = encode([Slice(columns, 0, 2)], create_time_ms=0)
    assert decode(extremes.buffer).timestamps_ms.tolist() == [-(2**63), 2**63 - 1]


def test_a_batch_of_many_small_records_fits_its_buffer() -> None:
    count = 20_000
    columns = RecordColumns(count, None, None, None, np.arange(count) * 1_000)
    batch = encode([Slice(columns, 0, count)], create_time_ms=0)
    assert decode(batch.buffer).timestamps_ms.tolist() == columns.timestamps_ms.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize("body", BODIES)
def test_sizes_are_those_of_the_encoded_records(body: str) -> None:
    columns = columns_of([each._replace(timestamp_ms=-1) for each in VARIED])
    with kernels_served_by(body):
        sizes = columns.sizes_bytes()
        # The deltas of the first 64 records take one byte each, of which two are counted.
        assert sizes.sum() == encode([Slice(columns, 0, 6)], create_time_ms=0).size_bytes - 61 + 6
        assert columns.sizes_bytes() is sizes


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("start", "stop", "room", "limit", "cuts"),
    [
        (0, 6, 1_000, 1_000, [6]),
        (0, 6, 0, 1_000, [0, 6]),
        (0, 6, 30, 40, [1, 3, 5, 6]),
        (0, 6, 20, 20, [1, 2, 3, 4, 5, 6]),
        (0, 6, 19, 1, [0, 1, 2, 3, 4, 5, 6]),
        (2, 5, 40, 20, [4, 5]),
        (3, 3, 100, 100, [3]),
    ],
)
def test_cut_fills_the_room_then_whole_batches(
    body: str, start: int, stop: int, room: int, limit: int, cuts: list[int]
) -> None:
    columns = columns_of([Sample(value=b"x" * 12) for _ in range(6)])
    with kernels_served_by(body):
        assert columns.sizes_bytes().tolist() == [20] * 6
        assert cut(Slice(columns, start, stop), room, limit).tolist() == cuts
        assert cut(Slice(columns, start, stop, np.arange(6)[::-1]), room, limit).tolist() == cuts


@pytest.mark.parametrize("body", BODIES)
def test_stretches_of_encode_many_need_not_touch_nor_ascend(body: str) -> None:
    columns = columns_of(VARIED * 3)
    bounds = [(9, 17), (0, 2), (3, 4)]
    known_bytes = sum(int(columns.sizes_bytes()[start:stop].sum()) for start, stop in bounds)
    with kernels_served_by(body):
        batches = encode_many(
            columns, None, np.array(bounds).ravel(), create_time_ms=5, records_bytes=known_bytes
        )
        for batch, (start, stop) in zip(batches, bounds, strict=True):
            assert bytes(batch.buffer) == bytes(
                encode([Slice(columns, start, stop)], create_time_ms=5).buffer
            )


def test_empty_batches_and_impossible_ones_are_refused() -> None:
    columns = columns_of(VARIED)
    with pytest.raises(InvalidRecord, match="at least one record"):
        encode([], create_time_ms=0)
    with pytest.raises(InvalidRecord, match="lie after its start"):
        encode_many(columns, None, np.array([0, 2, 2, 2]), create_time_ms=0)
    assert encode_many(columns, None, np.empty(0, np.int64), create_time_ms=0) == []
    huge = RecordColumns(1, None, BinaryColumn(np.empty(0, np.uint8), np.array([0, 2**31])))
    with pytest.raises(RecordTooLarge, match="2147483647"):
        encode([Slice(huge, 0, 1)], create_time_ms=0)


def test_codecs_have_the_names_of_compression_type() -> None:
    assert [Compression.named(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == list(
        Compression
    )
    with pytest.raises(ConfigError, match="must be one of none, gzip, snappy, lz4, zstd"):
        Compression.named("brotli")


def test_positions_outside_of_the_records_are_refused() -> None:
    columns = columns_of(VARIED)
    for start, stop, order in (
        (0, 7, None),
        (-1, 3, None),
        (4, 3, None),
        (0, 3, np.array([0, 1])),
        (0, 2, np.array([0, 6])),
    ):
        with pytest.raises((IndexError, InvalidRecord)):
            encode([Slice(columns, start, stop, order)], create_time_ms=0)
    with pytest.raises(IndexError):
        encode_many(columns, None, np.array([0, 7]), create_time_ms=0)
    with pytest.raises(IndexError):
        cut(Slice(columns, 0, 7), 100, 100)
