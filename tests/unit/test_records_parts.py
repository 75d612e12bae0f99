"""Batches that inflate beyond what is held at once are read in parts, each within the limit; bombs
are not read at all."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.records import Compression, assign, decode, headers_of, keep, scan, xerial
from fairlead_kafka.records import decoder as decoder_module
from fairlead_kafka.records import headers as headers_module
from fairlead_kafka.records import parts as parts_module
from fairlead_kafka.records.crc import stamp_crc
from fairlead_kafka.records.decode_kernels import whole_records
from tests.support.client_rig import Rig
from tests.support.records_samples import Sample, encoded

LIMIT_BYTES = 3_000
CODECS = [Compression.gzip, Compression.snappy, Compression.lz4, Compression.zstd]
SIZES = [0, 10, 900, 1_500, 2_900, 1, 1, 2_000, 700, 700, 700]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_module, "INFLATED_BATCH_MAX_BYTES", LIMIT_BYTES)
    monkeypatch.setattr(parts_module, "PIECE_BYTES", 700)
    monkeypatch.setattr(xerial, "CHUNK_BYTES", 1_000)


def made(codec: Compression, sizes: list[int] = SIZES, base_offset: int = 5) -> bytes:
    samples = [
        Sample(key=b"%d" % place, value=bytes([65 + place % 100]) * size) for place, size in enumerate(sizes)
    ]
    return bytes(encoded(samples, base_offset=base_offset, compression=codec).buffer)


def in_parts(data: bytes, from_offset: int = 0) -> tuple[list[int], list[bytes | None], int]:
    """Offsets and values, read until nothing is left, and how many calls that took."""
    offsets: list[int] = []
    values: list[bytes | None] = []
    end, calls = scan(data)[-1].last_offset + 1, 0
    while from_offset < end:
        found = decode(data, from_offset=from_offset)
        assert found.next_offset > from_offset
        offsets += found.offsets.tolist()
        values += found.values.to_list()
        from_offset, calls = found.next_offset, calls + 1
    return offsets, values, calls


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_batch_is_read_in_parts_of_whole_records(codec: Compression, small: None) -> None:
    before, large, after = made(Compression.zstd, [10], 4), made(codec), made(Compression.none, [10], 16)
    offsets, values, calls = in_parts(before + large + after)
    assert offsets == list(range(4, 17))
    assert values[1:-1] == [bytes([65 + place]) * size for place, size in enumerate(SIZES)]
    assert calls >= sum(SIZES) // LIMIT_BYTES + 2
    for start in range(5, 16):
        assert in_parts(large, start)[0] == list(range(start, 16))


def test_offsets_that_compaction_has_emptied_are_passed_over(small: None) -> None:
    data = made(Compression.gzip)
    kept = np.ones(len(SIZES), np.bool_)
    kept[[3, 4, 10]] = False
    compacted = keep(data, scan(data)[0], kept, 1_000)
    assert in_parts(compacted)[0] == [5, 6, 7, 10, 11, 12, 13, 14]
    assert decode(compacted, from_offset=15).count == 0
    assert decode(compacted, from_offset=15).next_offset == 16


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_record_that_does_not_fit_is_refused_once_it_is_the_next(codec: Compression, small: None) -> None:
    data = made(codec, [100, 2_000, LIMIT_BYTES, 100])
    assert decode(data).offsets.tolist() == [5, 6]
    with pytest.raises(DecodeError, match=f"a record takes more than {LIMIT_BYTES} bytes"):
        decode(data, from_offset=7)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_what_inflates_without_end_is_not_read(
    codec: Compression, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "INFLATED_IN_PARTS_MAX_BYTES", 8_000)
    data = made(codec)
    assert decode(data).count > 0
    with pytest.raises(DecodeError, match="more than the limit of 8000"):
        in_parts(data)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_garbage_behind_the_first_part_is_an_error_where_it_is_reached(
    codec: Compression, small: None
) -> None:
    whole = made(codec)
    data = bytearray(whole[: len(whole) * 3 // 4])
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    stamp_crc(data, np.frombuffer(data, np.uint8), 0, len(data))
    with pytest.raises(DecodeError):
        in_parts(bytes(data))


@pytest.mark.parametrize("count", [len(SIZES) - 1, len(SIZES) + 1])
def test_a_count_that_lies_is_found_at_the_end(count: int, small: None) -> None:
    data = bytearray(made(Compression.zstd))
    data[57:61] = count.to_bytes(4, "big")
    data[23:27] = (count - 1 if count > len(SIZES) else len(SIZES) - 1).to_bytes(4, "big")
    stamp_crc(data, np.frombuffer(data, np.uint8), 0, len(data))
    with pytest.raises(DecodeError, match=r"bytes after its last record|record count is impossible"):
        in_parts(bytes(data))


def test_the_kernel_and_its_reference_find_the_same_whole_records() -> None:
    plain = made(Compression.none)
    source = np.frombuffer(plain, np.uint8)[61:]
    for stop in range(0, len(source), 97):
        for most in (0, 3, 100):
            assert whole_records(source, stop, most) == whole_records.reference(source, stop, most)
    assert whole_records(source, len(source), 100) == (len(SIZES), len(source), len(SIZES) - 1, 0)


def test_the_size_of_a_large_batch_is_measured(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise headers_module.InflatesTooFar("too far", 0)

    monkeypatch.setattr(headers_module, "records_of", refuse)
    uncompressed = len(made(Compression.none))
    for codec in CODECS:
        assert headers_of(made(codec), 0, 100, measure=True)["uncompressed_bytes"].to_pylist() == [
            uncompressed
        ]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_memory_follows_the_limit_and_not_the_batch(
    codec: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_bytes = 1 << 20
    monkeypatch.setattr(decoder_module, "INFLATED_BATCH_MAX_BYTES", limit_bytes)
    monkeypatch.setattr(parts_module, "PIECE_BYTES", 1 << 18)
    data = made(codec, [100_000] * 300)
    tracemalloc.start()
    assert decode(data, from_offset=5 + 250).offsets[0] <= 5 + 250
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 8 * limit_bytes < 30_000_000


def test_a_consumer_gets_a_large_batch_whichever_way_it_reads(small: None) -> None:
    rig = Rig()
    rig.cluster.topic("t")
    log = rig.cluster.log("t")
    data = bytearray(made(Compression.zstd, base_offset=0))
    assign(data, base_offset=0, partition_leader_epoch=3)
    log.batches.append((0, len(SIZES) - 1, bytes(data)))
    log.end = len(SIZES)
    rig.cluster.write("t", 0, [b"after"])
    of, every = TopicPartition("t", 0), list(range(len(SIZES) + 1))
    for way in ("poll", "table", "range"):
        consumer = rig.consumer(auto_offset_reset="earliest")
        offsets: list[int] = []
        if way == "range":
            offsets = [
                offset
                for table in consumer.read_range(of, 0, len(every))
                for offset in table["offset"].to_pylist()
            ]
        else:
            consumer.assign([of])
            while len(offsets) < len(every):
                found = (
                    consumer.poll_table(1)["offset"].to_pylist()
                    if way == "table"
                    else [each.offset for each in consumer.poll(1, 2)]
                )
                offsets += found
                assert consumer.position(of) == offsets[-1] + 1
        assert offsets == every, way
        consumer.close()
