"""Byte-level exchange of record batches with the codecs of kafka-python and aiokafka, both ways, in
each compression.

aiokafka's codec exists twice, in Cython and in Python. kafka-python brings no compression
libraries: pyarrow's stand in for them, which makes Arrow's lz4, zstd and snappy judges too; the
xerial framing is kafka-python's own.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from fairlead_kafka.records import Compression, TimestampType, assign, check_produced, decode, scan, verify
from tests.support.records_samples import VARIED, Sample, decoded, encoded, kernels_served_by

kafka_codec = pytest.importorskip("kafka.codec")
kafka_records = pytest.importorskip("kafka.record.default_records")
aiokafka_records = pytest.importorskip("aiokafka.record.default_records")

SAMPLES = [each._replace(timestamp_ms=max(each.timestamp_ms, 3)) for each in VARIED] * 40
PRODUCER = {"producer_id": 2**40 + 1, "producer_epoch": 7, "base_sequence": 2**31 - 5}


class Peer(NamedTuple):
    builder: Callable[..., Any]
    reader: Callable[[bytes], Any]


PEERS = {
    "kafka-python": Peer(kafka_records.DefaultRecordBatchBuilder, kafka_records.DefaultRecordBatch),
    "aiokafka": Peer(aiokafka_records.DefaultRecordBatchBuilder, aiokafka_records.DefaultRecordBatch),
    "aiokafka in Python": Peer(
        aiokafka_records._DefaultRecordBatchBuilderPy, aiokafka_records._DefaultRecordBatchPy
    ),
}
pytestmark = [
    pytest.mark.parametrize("peer", PEERS),
    pytest.mark.parametrize("body", ["reference", "machine"]),
]


@pytest.fixture(autouse=True)
def served(body: str):  # type: ignore[no-untyped-def]
    with kernels_served_by(body):
        yield


def _inflate(codec: str, data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        return bytes(stream.read())


def _inflate_snappy(block: bytes) -> bytes:
    size = sum(
        (byte & 127) << (7 * nth)
        for nth, byte in enumerate(block[: 1 + next(i for i in range(5) if block[i] < 128)])
    )
    return bytes(pa.decompress(block, size, "snappy", asbytes=True))


@pytest.fixture(autouse=True)
def compression_for_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for codec in ("lz4", "zstd"):
        monkeypatch.setattr(kafka_codec, f"has_{codec}", lambda: True)
        monkeypatch.setattr(
            kafka_records, f"{codec}_encode", lambda data, codec=codec: pa.compress(data, codec, asbytes=True)
        )
        monkeypatch.setattr(kafka_records, f"{codec}_decode", lambda data, codec=codec: _inflate(codec, data))
    stand_in = SimpleNamespace(
        compress=lambda data: pa.compress(data, "snappy", asbytes=True), decompress=_inflate_snappy
    )
    monkeypatch.setattr(kafka_codec, "snappy", stand_in)


def theirs(
    peer: str, samples: Sequence[Sample], compression: Compression, transactional: bool = True
) -> bytes:
    builder = PEERS[peer].builder(
        magic=2,
        compression_type=int(compression),
        is_transactional=transactional,
        batch_size=1 << 30,
        **PRODUCER,
    )
    for nth, each in enumerate(samples):
        assert builder.append(nth, each.timestamp_ms, each.key, each.value, list(each.headers)) is not None
    return bytes(builder.build())


def read_by(peer: str, batch: bytes) -> list[Sample]:
    reader = PEERS[peer].reader(batch)
    assert reader.validate_crc()
    return [Sample(each.key, each.value, tuple(each.headers), each.timestamp) for each in reader]


@pytest.mark.parametrize(
    "samples", [SAMPLES, SAMPLES[:1], [Sample(timestamp_ms=0)]], ids=["many", "one", "empty"]
)
def test_uncompressed_batches_are_the_same_bytes(peer: str, body: str, samples: list[Sample]) -> None:
    # kafka-python fills the leader epoch, which is the broker's to stamp, with 0; Kafka itself with
    # -1.
    epoch = 0 if peer == "kafka-python" else -1
    ours = encoded(samples, transactional=True, partition_leader_epoch=epoch, **PRODUCER)
    assert ours.buffer == theirs(peer, samples, Compression.none)


@pytest.mark.parametrize("compression", list(Compression))
def test_they_read_what_we_write(peer: str, body: str, compression: Compression) -> None:
    batch = bytes(encoded(SAMPLES, compression=compression, **PRODUCER).buffer)
    assert read_by(peer, batch) == SAMPLES


@pytest.mark.parametrize("compression", list(Compression))
def test_we_read_what_they_write(peer: str, body: str, compression: Compression) -> None:
    batch = theirs(peer, SAMPLES, compression)
    (header,) = scan(batch)
    verify(batch, header)
    check_produced(batch, header)
    assert header.compression == compression
    assert (header.transactional, header.producer_id, header.producer_epoch) == (True, 2**40 + 1, 7)
    assert header.last_sequence == (PRODUCER["base_sequence"] + len(SAMPLES) - 1) % 2**31
    assert decoded(decode(batch)) == SAMPLES


@pytest.mark.parametrize("compression", list(Compression))
def test_they_read_what_a_broker_stamped(peer: str, body: str, compression: Compression) -> None:
    batch = bytearray(encoded(SAMPLES[:9], compression=compression, **PRODUCER).buffer)
    assign(batch, base_offset=2**40, partition_leader_epoch=3, log_append_time_ms=77)
    reader = PEERS[peer].reader(bytes(batch))
    assert reader.validate_crc()
    records = list(reader)
    assert [each.offset for each in records] == list(range(2**40, 2**40 + 9))
    assert {(each.timestamp, each.timestamp_type) for each in records} == {
        (77, int(TimestampType.log_append))
    }


def test_batches_in_a_row_are_read_as_one(peer: str, body: str) -> None:
    stream = io.BytesIO()
    for compression in Compression:
        stream.write(theirs(peer, SAMPLES[:60], compression, transactional=False))
    assert decoded(decode(stream.getvalue())) == SAMPLES[:60] * len(Compression)
