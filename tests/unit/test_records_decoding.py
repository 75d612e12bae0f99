"""Decoding a fetch answer: which batches and records are taken, and where to go on."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from fairlead_kafka.base import limits
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records import AbortedTransaction, Compression, ControlType, control_batch, decode
from fairlead_kafka.records import decoder as decoder_module
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.layout import as_array
from tests.support.records_samples import (
    VARIED,
    Sample,
    as_batch,
    decoded,
    encoded,
    kernels_served_by,
    stamped,
)

pytestmark = pytest.mark.parametrize("body", ["reference", "machine"])


@pytest.fixture(autouse=True)
def served(body: str):  # type: ignore[no-untyped-def]
    with kernels_served_by(body):
        yield


def mixed() -> bytes:
    """Batches of 6 records at 0, 6, 12, ... in every compression, with uncompressed ones
    between."""
    codecs = [Compression.none, Compression.none, *Compression, Compression.none]
    return b"".join(
        bytes(encoded(VARIED, base_offset=6 * nth, compression=codec).buffer)
        for nth, codec in enumerate(codecs)
    )


def test_all_batches_come_as_one_set_of_columns() -> None:
    records = decode(mixed())
    assert decoded(records) == stamped(VARIED, 5) * 8
    assert records.offsets.tolist() == list(range(48))
    assert (records.count, records.next_offset) == (48, 48)
    assert records.timestamp_types.tolist() == [0] * 48


@pytest.mark.parametrize("from_offset", [0, 1, 5, 6, 17, 25, 47])
def test_records_below_the_offset_asked_for_are_dropped(from_offset: int) -> None:
    records = decode(mixed(), from_offset=from_offset)
    assert records.offsets.tolist() == list(range(from_offset, 48))
    assert decoded(records) == (stamped(VARIED, 5) * 8)[from_offset:]
    assert records.next_offset == 48


def test_nothing_new_leaves_the_offset_where_it_is() -> None:
    for data in (b"", mixed()[:60], mixed()):
        records = decode(data, from_offset=100)
        assert (records.count, records.next_offset, records.headers) == (0, 100, None)
        assert records.values.to_arrow().to_pylist() == []


def test_a_batch_cut_short_is_ignored() -> None:
    data = mixed()
    records = decode(data[:-1])
    assert (records.count, records.next_offset) == (42, 42)


def test_keys_and_headers_are_left_out_where_not_wanted() -> None:
    records = decode(mixed(), want_keys=False, want_headers=False)
    assert (records.keys, records.headers) == (None, None)
    assert records.values.to_list() == [each.value for each in VARIED] * 8
    assert as_batch(records).column("key").null_count == 48


def test_values_are_left_out_where_not_wanted() -> None:
    whole, records = decode(mixed()), decode(mixed(), want_values=False)
    assert records.values.to_list() == [None] * 48
    assert records.values.data.nbytes == 0
    assert records.keys is not None
    assert whole.keys is not None
    assert records.keys.to_list() == whole.keys.to_list()
    assert (records.offsets.tolist(), records.timestamps_ms.tolist()) == (
        whole.offsets.tolist(),
        whole.timestamps_ms.tolist(),
    )
    assert as_batch(records).column("headers").to_pylist() == as_batch(whole).column("headers").to_pylist()


def test_columns_without_nulls_say_so() -> None:
    records = decode(encoded([Sample(b"k", b"v")] * 3).buffer)
    assert records.keys is not None
    assert (records.keys.valid, records.values.valid, records.headers) == (None, None, None)


def test_small_keys_beside_large_values_do_not_hold_the_memory_of_the_values() -> None:
    records = decode(encoded([Sample(b"k", b"v" * 100_000)] * 3).buffer)
    assert records.keys is not None
    assert records.keys.data.nbytes == 3
    assert records.keys.data.base is None


def transactions() -> bytes:
    """pid 1: offsets 0-1 aborted at 5; pid 2: 2-3 committed at 4; pid 1: 6-7 committed at 9; 8
    outside; pid 1: 10 open."""
    pieces = [
        encoded(
            [Sample(value=b"aborted")] * 2,
            base_offset=0,
            producer_id=1,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        ),
        encoded(
            [Sample(value=b"committed")] * 2,
            base_offset=2,
            producer_id=2,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        ),
        control_batch(ControlType.commit, producer_id=2, producer_epoch=0, timestamp_ms=1, base_offset=4),
        control_batch(ControlType.abort, producer_id=1, producer_epoch=0, timestamp_ms=1, base_offset=5),
        encoded(
            [Sample(value=b"second")] * 2,
            base_offset=6,
            producer_id=1,
            producer_epoch=0,
            base_sequence=2,
            transactional=True,
        ),
        encoded(
            [Sample(value=b"reference")], base_offset=8, producer_id=1, producer_epoch=0, base_sequence=4
        ),
        control_batch(ControlType.commit, producer_id=1, producer_epoch=0, timestamp_ms=1, base_offset=9),
    ]
    return b"".join(bytes(piece.buffer) for piece in pieces)


@pytest.mark.parametrize(
    "aborted", [[AbortedTransaction(1, 0)], [(1, 0)], [SimpleNamespace(producer_id=1, first_offset=0)]]
)
def test_read_committed_skips_aborted_transactions_up_to_their_marker(
    aborted: list[AbortedTransaction],
) -> None:
    records = decode(transactions(), aborted=aborted)
    assert records.offsets.tolist() == [2, 3, 6, 7, 8]
    assert records.next_offset == 10


def test_an_abort_marker_before_the_first_offset_wanted_still_ends_its_transaction() -> None:
    records = decode(transactions(), from_offset=6, aborted=[(1, 0)])
    assert records.offsets.tolist() == [6, 7, 8]
    assert decode(transactions(), from_offset=1, aborted=[(1, 0)]).offsets.tolist() == [2, 3, 6, 7, 8]


def test_read_uncommitted_skips_control_batches_alone() -> None:
    assert decode(transactions()).offsets.tolist() == [0, 1, 2, 3, 6, 7, 8]
    marker = control_batch(ControlType.commit, producer_id=2, producer_epoch=0, timestamp_ms=1, base_offset=4)
    records = decode(marker.buffer)
    assert (records.count, records.next_offset) == (0, 5)


def test_compacted_batches_keep_their_offsets_and_lead_past_their_end() -> None:
    batch = bytearray(encoded(VARIED[:3], base_offset=10).buffer)
    struct.pack_into(">i", batch, 23, 9)
    stamp_crc(batch, as_array(batch), 0, len(batch))
    records = decode(batch)
    assert (records.offsets.tolist(), records.next_offset) == ([10, 11, 12], 20)


def test_an_empty_batch_that_compaction_left_leads_past_its_end() -> None:
    batch = bytearray(encoded(VARIED[:1], base_offset=10).buffer)[:61]
    struct.pack_into(">i", batch, 8, 49)
    struct.pack_into(">ii", batch, 53, -1, 0)
    stamp_crc(batch, as_array(batch), 0, len(batch))
    records = decode(batch)
    assert (records.count, records.next_offset) == (0, 11)


def test_a_wrong_crc_is_found_unless_it_is_not_looked_at() -> None:
    data = bytearray(mixed())
    data[70] ^= 1
    with pytest.raises(DecodeError, match="CRC-32C") as caught:
        decode(data)
    assert caught.value.offset == 17
    assert decode(data, check_crcs=False).count == 48


def test_a_fault_in_a_compressed_batch_names_batch_and_inflated_byte() -> None:
    good = encoded(VARIED).buffer.tobytes()
    batch = bytearray(encoded(VARIED, compression=Compression.zstd).buffer)
    struct.pack_into(">i", batch, 57, 5)
    with pytest.raises(DecodeError, match="of the inflated records") as caught:
        decode(good + bytes(batch), check_crcs=False)
    assert caught.value.offset == len(good) + 61
    struct.pack_into(">ii", batch, 53, -1, 2**31 - 1)
    struct.pack_into(">i", batch, 23, 2**31 - 2)
    with pytest.raises(DecodeError, match="count is impossible") as caught:
        decode(good + bytes(batch), check_crcs=False)
    assert caught.value.offset == len(good) + 57


def test_compressed_batches_are_taken_up_to_the_limit_and_the_rest_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoder_module, "INFLATED_BATCH_MAX_BYTES", 20_000)
    samples = [Sample(value=b"x" * 9_000)]
    data = b"".join(
        bytes(encoded(samples, base_offset=i, compression=Compression.zstd).buffer) for i in range(9)
    )
    offset, seen = 0, []
    while offset < 9:
        records = decode(data, from_offset=offset)
        seen.append(records.offsets.tolist())
        offset = records.next_offset
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_record_that_is_larger_than_what_is_inflated_at_once_is_refused() -> None:
    bomb = encoded([Sample(value=bytes(limits.INFLATED_BATCH_MAX_BYTES))], compression=Compression.zstd)
    assert bomb.size_bytes < 100_000
    with pytest.raises(DecodeError, match="a record takes more than 134217728 bytes") as caught:
        decode(bomb.buffer)
    assert caught.value.offset == 61


def test_more_batches_than_one_scan_takes_are_all_decoded() -> None:
    one = encoded([Sample()]).buffer.tobytes()
    data = bytearray(one * 5_000)
    view = np.frombuffer(data, np.uint8).reshape(5_000, len(one))
    view[:, :8] = np.arange(5_000, dtype=">i8").view(np.uint8).reshape(5_000, 8)
    records = decode(data)
    assert (records.count, records.next_offset) == (5_000, 5_000)
    assert records.offsets.tolist() == list(range(5_000))


@pytest.mark.parametrize("deltas", [(0, 0, 2), (1, 0, 2), (0, 2, 1), (2, 2, 2), (0, 1, 3)])
def test_offsets_within_a_batch_rise(deltas: tuple[int, int, int]) -> None:
    batch = bytearray(encoded([Sample(value=None)] * 3).buffer)
    size = (len(batch) - 61) // 3
    for nth, delta in enumerate(deltas):
        batch[61 + nth * size + 3] = 2 * delta  # zigzag
    with pytest.raises(DecodeError, match="outside of its batch or out of order"):
        decode(batch, check_crcs=False)
