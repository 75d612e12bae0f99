"""Walking over batches, checking and stamping them: what a broker does without decoding records."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records import (
    BatchHeader,
    Compression,
    ControlType,
    TimestampType,
    assign,
    check_produced,
    control_batch,
    control_type,
    decode,
    restamp,
    scan,
    verify,
)
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.layout import as_array
from tests.support.records_samples import VARIED, Sample, decoded, encoded, kernels_served_by, stamped

BODIES = ["reference", "machine"]


def first(data: bytes | bytearray | memoryview) -> BatchHeader:
    return scan(data)[0]


def forged(change: Callable[[bytearray], None], **options: object) -> bytearray:
    """A batch with something changed and the CRC made to match."""
    batch = bytearray(encoded(VARIED, **options).buffer)
    change(batch)
    stamp_crc(batch, as_array(batch), 0, len(batch))
    return batch


def put(layout: str, position: int, *values: int) -> Callable[[bytearray], None]:
    return lambda batch: struct.pack_into(layout, batch, position, *values)


def test_scan_walks_over_whole_batches_and_leaves_out_a_cut_one() -> None:
    one, two = (
        bytes(encoded(VARIED).buffer),
        bytes(encoded(VARIED[:2], compression=Compression.zstd, base_offset=6).buffer),
    )
    headers = scan(one + two + one)
    assert [header.position for header in headers] == [0, len(one), len(one) + len(two)]
    assert [(header.base_offset, header.last_offset, header.count) for header in headers] == [
        (0, 5, 6),
        (6, 7, 2),
        (0, 5, 6),
    ]
    for cut_off in range(len(two)):
        assert scan(one + two[:cut_off]) == headers[:1]
    assert scan(b"") == []


@pytest.mark.parametrize(
    ("position", "layout", "value", "offset", "words"),
    [
        (16, ">b", 1, 16, "magic 1"),
        (16, ">b", 7, 16, "magic byte 7"),
        (8, ">i", 48, 8, "length"),
        (8, ">i", -5, 8, "length"),
        (0, ">q", -1, 0, "offset"),
        (0, ">q", 2**63 - 1, 23, "offset"),
        (23, ">i", -1, 23, "offset"),
        (21, ">h", 5, 21, "codec"),
        (57, ">i", -1, 57, "count"),
        (57, ">i", 2**31 - 1, 57, "count"),
        (57, ">i", 7, 57, "count"),
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_headers_that_lie_are_refused_at_their_byte(
    body: str, position: int, layout: str, value: int, offset: int, words: str
) -> None:
    good = bytes(encoded(VARIED).buffer)
    batch = good + forged(put(layout, position, value))
    with kernels_served_by(body):
        for read in (scan, decode):
            with pytest.raises(DecodeError, match=words) as caught:
                read(batch)
            assert caught.value.offset == len(good) + offset


def test_verify_finds_any_flipped_bit_from_the_attributes_on() -> None:
    batch = bytearray(encoded(VARIED[:3]).buffer)
    header = first(batch)
    verify(batch, header)
    for position in (21, 30, 60, 61, len(batch) - 1):
        batch[position] ^= 1
        with pytest.raises(DecodeError, match="CRC-32C") as caught:
            verify(batch, header)
        assert caught.value.offset == 17
        batch[position] ^= 1


@pytest.mark.parametrize("compression", list(Compression))
def test_assign_stamps_offset_and_epoch_without_touching_the_crc(compression: Compression) -> None:
    batch = bytearray(encoded(VARIED, compression=compression).buffer)
    before = first(batch)
    assign(batch, base_offset=1_000, partition_leader_epoch=8)
    after = first(batch)
    assert after == before._replace(base_offset=1_000, partition_leader_epoch=8)
    verify(batch, after)
    assert decode(batch).offsets.tolist() == list(range(1_000, 1_006))


@pytest.mark.parametrize("compression", list(Compression))
def test_log_append_time_shows_in_every_record(compression: Compression) -> None:
    batch = bytearray(encoded(VARIED, compression=compression).buffer)
    assign(batch, base_offset=3, partition_leader_epoch=0, log_append_time_ms=123_456)
    header = first(batch)
    verify(batch, header)
    assert (header.timestamp_type, header.max_timestamp_ms, header.base_timestamp_ms) == (
        TimestampType.log_append,
        123_456,
        1_000,
    )
    records = decode(batch)
    assert records.timestamps_ms.tolist() == [123_456] * 6
    assert records.timestamp_types.tolist() == [1] * 6


def test_restamp_changes_the_producer_and_nothing_else() -> None:
    batch = encoded(
        VARIED, compression=Compression.lz4, producer_id=1, producer_epoch=2, base_sequence=3
    ).buffer
    before = first(batch)
    restamp(batch, producer_id=2**40, producer_epoch=32_000, base_sequence=2**31 - 3)
    after = first(batch)
    verify(batch, after)
    assert after == before._replace(
        producer_id=2**40, producer_epoch=32_000, base_sequence=2**31 - 3, crc=after.crc
    )
    assert (before.last_sequence, after.last_sequence, first(encoded(VARIED).buffer).last_sequence) == (
        8,
        2,
        -1,
    )
    assert decoded(decode(batch)) == stamped(VARIED, 5)


def test_stamping_a_batch_with_an_impossible_length_is_refused() -> None:
    batch = bytearray(encoded(VARIED).buffer)[:-1]
    with pytest.raises(DecodeError, match="length"):
        restamp(batch, producer_id=0, producer_epoch=0, base_sequence=0)


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("body", BODIES)
def test_check_produced_passes_what_producers_make(body: str, compression: Compression) -> None:
    batch = encoded(VARIED, compression=compression).buffer
    with kernels_served_by(body):
        check_produced(batch, first(batch))


def _no_records(batch: bytearray) -> None:
    del batch[61:]
    struct.pack_into(">i", batch, 8, 49)
    struct.pack_into(">i", batch, 57, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(">i", 23, 9), "offsets 0 to n - 1"),
        (put(">ii", 53, -1, 5), "offsets 0 to n - 1"),
        (lambda batch: put(">i", 23, 4)(batch) or put(">i", 57, 5)(batch), "after its last record"),
        (_no_records, "offsets 0 to n - 1"),
        (put(">b", 64, 2), "out of order"),
        (put(">b", 61, 125), "length is impossible"),
        (put(">b", 65, 127), "points outside"),
        (lambda batch: batch.extend(b"\0"), "length"),
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_check_produced_refuses_records_that_do_not_add_up(
    body: str, change: Callable[[bytearray], None], words: str
) -> None:
    batch = forged(change)
    if words == "length":
        struct.pack_into(">i", batch, 8, len(batch) - 12)
        words = "after its last record"
    with kernels_served_by(body), pytest.raises(DecodeError, match=words):
        check_produced(batch, first(batch))


def test_check_produced_looks_into_compressed_batches_unless_told_not_to() -> None:
    batch = forged(
        lambda batch: put(">i", 57, 5)(batch) or put(">i", 23, 4)(batch), compression=Compression.gzip
    )
    check_produced(batch, first(batch), inflate=False)
    with pytest.raises(DecodeError, match="of the inflated records") as caught:
        check_produced(batch, first(batch))
    assert caught.value.offset == 61


@pytest.mark.parametrize("kind", [ControlType.abort, ControlType.commit])
def test_transaction_markers_are_control_batches(kind: ControlType) -> None:
    marker = control_batch(
        kind, producer_id=5, producer_epoch=6, timestamp_ms=7, coordinator_epoch=8, base_offset=9
    )
    header = first(marker.buffer)
    verify(marker.buffer, header)
    assert (header.control, header.transactional, header.producer_id, header.producer_epoch) == (
        True,
        True,
        5,
        6,
    )
    assert (header.base_offset, header.base_sequence, header.max_timestamp_ms, marker.count) == (9, -1, 7, 1)
    assert control_type(marker.buffer, header) == kind
    assert marker.buffer[61:].tobytes() == bytes(
        [16 << 1, 0, 0, 0, 8, 0, 0, 0, kind, 12, 0, 0, 0, 0, 0, 8, 0]
    )


def test_a_control_batch_without_a_marker_in_it_is_garbage() -> None:
    batch = encoded([Sample(b"abc", b"")], control=True).buffer
    with pytest.raises(DecodeError, match="control batch"):
        control_type(batch, first(batch))
