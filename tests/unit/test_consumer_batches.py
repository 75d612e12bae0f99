"""`read_batches`: a row per record batch of a range, from its header alone."""

from __future__ import annotations

import asyncio
import struct

import numpy as np
import pytest

import fairlead_kafka
from fairlead_kafka.base.errors import BrokerError, DecodeError, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer import BATCH_SCHEMA
from fairlead_kafka.records import (
    BatchHeader,
    Compression,
    Slice,
    columns_from_lists,
    encode,
    headers_of,
    keep,
    scan,
)
from fairlead_kafka.records.layout import ATTRIBUTES, BASE_OFFSET, DELETE_HORIZON_MASK, MAX_TIMESTAMP
from tests.support.client_rig import Rig

T0 = TopicPartition("t", 0)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def batch(
    values: list[bytes], base_offset: int = 0, codec: Compression = Compression.none, **options: int
) -> bytes:
    columns = columns_from_lists(None, values, None, [1_000 + n for n in range(len(values))])
    encoded = encode(
        [Slice(columns, 0, len(values))],
        create_time_ms=1,
        base_offset=base_offset,
        compression=codec,
        **options,
    )
    return bytes(encoded.buffer)


def test_each_batch_is_a_row_of_what_its_header_says(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"bb"], times_ms=[5, 9])
    rig.cluster.write("t", 0, [b"c"], transaction_of=4, times_ms=[7])
    rig.cluster.end_transaction("t", 0, 4, commit=True)
    with rig.consumer() as reader:
        tables = list(reader.read_batches(T0, 0, 4))
    assert all(table.schema == BATCH_SCHEMA for table in tables)
    rows = [row for table in tables for row in table.to_pylist()]
    assert [
        (row["topic"], row["partition"], row["base_offset"], row["last_offset"], row["records"])
        for row in rows
    ] == [
        ("t", 0, 0, 1, 2),
        ("t", 0, 2, 2, 1),
        ("t", 0, 3, 3, 1),
    ]
    assert [(row["is_transactional"], row["is_control"]) for row in rows] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    assert [(row["producer_id"], row["producer_epoch"], row["base_sequence"]) for row in rows][:2] == [
        (None, None, None),
        (4, 0, 2),
    ]
    assert [(row["base_timestamp"].timestamp(), row["max_timestamp"].timestamp()) for row in rows][:2] == [
        (0.005, 0.009),
        (0.007, 0.007),
    ]
    assert [row["size_bytes"] for row in rows] == [len(data) for _, _, data in rig.cluster.log("t").batches]
    assert {row["codec"] for row in rows} == {"none"}


def test_ranges_side_by_side_give_each_batch_once(rig: Rig) -> None:
    rig.cluster.topic("t")
    for count in (3, 1, 4, 2):
        rig.cluster.write("t", 0, [b"x"] * count)
    with rig.consumer() as reader:
        for cut in range(11):
            rows = [
                row
                for start, end in ((0, cut), (cut, 10))
                for table in reader.read_batches(T0, start, end)
                for row in table.to_pylist()
            ]
            assert [row["base_offset"] for row in rows] == [0, 3, 4, 8], f"cut at {cut}"


def test_what_read_range_raises_is_raised_here_too(rig: Rig) -> None:
    log = rig.cluster.topic("t").logs[0]
    rig.cluster.write("t", 0, [b"x"] * 3)
    log.start = 2
    with rig.consumer() as reader:
        with pytest.raises(BrokerError, match="t-0"):
            list(reader.read_batches(T0, 0, 3))
        with pytest.raises(TimedOut, match="ask end_offsets first"):
            list(reader.read_batches(T0, 2, 9, timeout_s=1))
        with pytest.raises(UsageError, match="0 <= start <= end"):
            list(reader.read_batches(T0, 3, 2))


def test_a_damaged_batch_is_named_and_check_crcs_says_whether_it_is_looked_for(rig: Rig) -> None:
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"x"], corrupt=True)
    with rig.consumer() as reader, pytest.raises(DecodeError, match="t-0 from offset 0"):
        list(reader.read_batches(T0, 0, 1))
    with rig.consumer(check_crcs="false") as reader:
        assert [table.num_rows for table in reader.read_batches(T0, 0, 1)] == [1]


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name)
def test_the_size_without_a_codec_is_known_where_it_is_measured(codec: Compression) -> None:
    values = [b"the same words again and again " * 8] * 50
    data = batch(values, codec=codec)
    plain_bytes = len(batch(values))
    told = headers_of(data, 0, 50).to_pylist()[0]
    assert told["uncompressed_bytes"] == (plain_bytes if codec == Compression.none else None)
    measured = headers_of(data, 0, 50, measure=True).to_pylist()[0]
    assert (measured["codec"], measured["size_bytes"], measured["uncompressed_bytes"]) == (
        codec.name,
        len(data),
        plain_bytes,
    )


def test_the_table_says_what_the_scan_of_single_headers_says() -> None:
    rng = np.random.default_rng(1)
    data, offset = b"", 5
    for _ in range(300):
        count = int(rng.integers(1, 9))
        data += batch(
            [b"v"] * count, offset, Compression(int(rng.integers(0, 5))), producer_id=int(rng.integers(-1, 3))
        )
        offset += count + int(rng.integers(0, 3))  # compaction leaves holes
    found = headers_of(data + data[:40], 0, offset).to_pylist()  # the last one is cut short
    expected: list[BatchHeader] = scan(data)
    assert len(found) == len(expected)
    for row, header in zip(found, expected, strict=True):
        assert (row["base_offset"], row["last_offset"], row["records"]) == (
            header.base_offset,
            header.last_offset,
            header.count,
        )
        assert (row["size_bytes"], row["codec"]) == (header.size_bytes, header.compression.name)
        assert round(row["max_timestamp"].timestamp() * 1000) == header.max_timestamp_ms
        assert (row["producer_id"] is None) == (header.producer_id < 0)


def test_a_delete_horizon_is_not_shown_as_a_time_of_a_record() -> None:
    data = bytearray(batch([b"x"], codec=Compression.none))
    (attributes,) = struct.unpack_from(">h", data, ATTRIBUTES)
    struct.pack_into(">h", data, ATTRIBUTES, attributes | DELETE_HORIZON_MASK)
    row = headers_of(data, 0, 1, check_crcs=False).to_pylist()[0]
    assert row["base_timestamp"] is None
    assert row["max_timestamp"].timestamp() == 1.0


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [(253_402_300_799_999, 9999), (253_402_300_800_000, None), (2**63 - 1, None), (-1, None)],
)
def test_a_time_that_no_calendar_has_is_null(time_ms: int, shown: int | None) -> None:
    data = bytearray(batch([b"x"], codec=Compression.none))
    struct.pack_into(">q", data, MAX_TIMESTAMP, time_ms)
    row = headers_of(data, 0, 1, check_crcs=False).to_pylist()[0]
    assert (row["max_timestamp"] and row["max_timestamp"].year) == shown


def test_a_compacted_batch_has_fewer_records_than_offsets() -> None:
    data = batch([b"%d" % number for number in range(5)], 10)
    kept = keep(data, scan(data)[0], np.array([False, True, False, True, False]), 1_003)
    row = headers_of(kept, 0, 100).to_pylist()[0]
    assert (row["base_offset"], row["last_offset"], row["records"]) == (10, 14, 2)


def test_bytes_that_are_no_batch_are_refused() -> None:
    data = bytearray(batch([b"x"]))
    struct.pack_into(">q", data, BASE_OFFSET, -5)
    with pytest.raises(DecodeError):
        headers_of(data, 0, 1)
    assert headers_of(b"", 0, 1).num_rows == 0


def test_the_awaiting_face_reads_the_same_batches_of_a_real_cluster() -> None:
    async def awaited(servers: str) -> list[dict[str, object]]:
        async with fairlead_kafka.AsyncConsumer({"bootstrap.servers": servers}) as reader:
            return [
                row
                async for table in reader.read_batches(TopicPartition("t", 0), 0, 30, measure_ratio=True)
                for row in table.to_pylist()
            ]

    with fairlead_kafka.Cluster(brokers=1) as cluster:
        servers = cluster.bootstrap_servers
        with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("t", partitions=1)])
        with fairlead_kafka.Producer({"bootstrap.servers": servers, "compression.type": "zstd"}) as producer:
            for _ in range(3):
                for _ in range(10):
                    producer.send("t", b"again and again " * 20)
                producer.flush()
        with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as reader:
            rows = [
                row
                for table in reader.read_batches(TopicPartition("t", 0), 0, 30, measure_ratio=True)
                for row in table.to_pylist()
            ]
        assert sum(row["records"] for row in rows) == 30
        assert all(row["uncompressed_bytes"] > 2 * row["size_bytes"] for row in rows)
        assert asyncio.run(awaited(servers)) == rows
