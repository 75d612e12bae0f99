"""What a topic's configs make of a producer's batch: another codec, timestamps within bounds, keys
where it is compacted."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration
from fairlead_kafka.records import Compression, Slice, columns_from_lists, decode, encode, scan
from tests.support.broker_driver import WALL_MS, Driver, batch, fetch, produce

HOUR_MS = 3_600_000
TEXT = b"line after line after line " * 20


def driver_with(**configs: Any) -> Driver:
    driver = Driver()
    driver.controller.create_topic(
        "events", 1, configs={key.replace("_", "."): str(value) for key, value in configs.items()}
    )
    return driver


def stored(driver: Driver) -> bytes:
    return bytes(fetch(driver.connect(), 0).records)


@pytest.mark.parametrize("came", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
def test_a_batch_is_stored_in_the_topics_codec(came: str, name: str) -> None:
    driver = driver_with(compression_type=name)
    data = batch(
        [TEXT, None, b"x"],
        [WALL_MS - 5, WALL_MS, WALL_MS - 1],
        codec=came,
        producer_id=9,
        producer_epoch=3,
        base_sequence=7,
    )
    assert produce(driver.connect(), data).base_offset == 0
    header = scan(stored(driver))[0]
    wanted = {"uncompressed": "none", "producer": came}.get(name, name)
    assert header.compression == Compression.named(wanted)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (9, 3, 7, 3)
    found = decode(stored(driver))
    assert found.values.to_list() == [TEXT, None, b"x"]
    assert found.timestamps_ms.tolist() == [WALL_MS - 5, WALL_MS, WALL_MS - 1]
    if wanted == came:
        assert stored(driver)[61:] == data[61:]


def test_a_codecs_level_is_the_topics() -> None:
    sizes = []
    for level in (1, 9):
        driver = driver_with(compression_type="gzip", compression_gzip_level=level)
        produce(driver.connect(), batch([b"%d" % (number * 7919 % 1000) for number in range(2000)]))
        sizes.append(len(stored(driver)))
    assert sizes[1] < sizes[0]


def test_a_changed_codec_holds_for_what_comes_then() -> None:
    driver = driver_with()
    client = driver.connect()
    produce(client, batch([TEXT]))
    driver.controller.alter_topic_configs(
        "events", [ConfigAlteration("compression.type", AlterOperation.SET, "zstd")]
    )
    produce(client, batch([TEXT]))
    assert [header.compression.name for header in scan(stored(driver))] == ["none", "zstd"]


def test_the_size_counts_again_after_compression_anew() -> None:
    driver = driver_with(compression_type="uncompressed", max_message_bytes=500)
    row = produce(driver.connect(), batch([bytes(2000)], codec="zstd"))
    assert row.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "recompressed" in row.error_message
    assert driver.broker.log_of("events", 0).log_end == 0


def test_a_duplicate_is_known_though_it_was_compressed_anew() -> None:
    driver = driver_with(compression_type="lz4")
    data = batch([TEXT], producer_id=9, producer_epoch=0, base_sequence=0)
    client = driver.connect()
    assert [produce(client, data).base_offset for _ in range(2)] == [0, 0]
    assert driver.broker.log_of("events", 0).log_end == 1


@pytest.mark.parametrize(
    ("configs", "timestamps_ms", "code"),
    [
        ({}, [WALL_MS + HOUR_MS], 0),
        ({}, [WALL_MS, WALL_MS + HOUR_MS + 1], ErrorCode.INVALID_TIMESTAMP),
        ({}, [0], 0),
        ({"message_timestamp_before_max_ms": 1000}, [WALL_MS, WALL_MS - 1000], 0),
        ({"message_timestamp_before_max_ms": 1000}, [WALL_MS, WALL_MS - 1001], ErrorCode.INVALID_TIMESTAMP),
        ({"message_timestamp_after_max_ms": 5}, [WALL_MS + 6], ErrorCode.INVALID_TIMESTAMP),
        ({"message_timestamp_type": "LogAppendTime"}, [WALL_MS + 2 * HOUR_MS], 0),
    ],
)
def test_timestamps_out_of_bounds_are_refused(
    configs: dict[str, Any], timestamps_ms: list[int], code: int
) -> None:
    driver = driver_with(**configs)
    row = produce(driver.connect(), batch([b"x"] * len(timestamps_ms), timestamps_ms))
    assert row.error_code == code
    if code:
        assert "message.timestamp." in row.error_message


def test_a_clock_that_went_back_refuses_what_is_too_far_ahead_and_takes_it_later() -> None:
    driver = driver_with()
    client = driver.connect()
    data = batch([b"x"], [WALL_MS + HOUR_MS + 1000])
    assert produce(client, data).error_code == ErrorCode.INVALID_TIMESTAMP
    driver.advance(1000)
    assert produce(client, data).error_code == 0


@pytest.mark.parametrize("keys", [[None], [b"a", None]])
def test_a_compacted_topic_takes_no_record_without_a_key(keys: list[bytes | None]) -> None:
    driver = driver_with(cleanup_policy="compact")
    columns = columns_from_lists(keys, [b"x"] * len(keys))
    data = bytes(encode([Slice(columns, 0, len(keys), None)], create_time_ms=WALL_MS).buffer)
    row = produce(driver.connect(), data)
    assert row.error_code == ErrorCode.INVALID_RECORD
    assert f"record {len(keys) - 1} of the batch has none" in row.error_message


def test_a_compacted_topic_takes_records_with_keys() -> None:
    driver = driver_with(cleanup_policy="compact")
    columns = columns_from_lists([b"a"], [None])
    assert (
        produce(
            driver.connect(), bytes(encode([Slice(columns, 0, 1, None)], create_time_ms=WALL_MS).buffer)
        ).error_code
        == 0
    )
