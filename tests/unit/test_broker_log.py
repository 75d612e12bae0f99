"""The shared log: recovery after any end, retention, files that come and go."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from fairlead_kafka.base.checks import CheckFailed
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration
from fairlead_kafka.broker.log.entry import ENTRY_CHECKED_BYTES, pack_entry, parse_entry
from fairlead_kafka.broker.log.index import BatchIndex, LeaderEpochs
from fairlead_kafka.broker.machine import Broker
from fairlead_kafka.records import decode
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import Driver, batch, fetch, produce, produce_fields

LOG = "/data/log/000000000001.log"


def driver_with(config: dict[str, Any] | None = None, topics: dict[str, int] | None = None) -> Driver:
    driver = Driver(config)
    for name, partitions in ({"events": 3} if topics is None else topics).items():
        driver.controller.create_topic(name, partitions)
    return driver


def values(driver: Driver, topic: str = "events", partition: int = 0, offset: int = 0) -> list[bytes | None]:
    row = fetch(driver.connect(), offset, topic=topic, partition=partition)
    assert row.error_code == 0
    return decode(bytes(row.records), from_offset=offset).values.to_arrow().to_pylist() if row.records else []


def crash(driver: Driver) -> None:
    driver.kill()
    assert driver.start().error is None


def raise_start(driver: Driver, offset: int) -> None:
    driver.broker.logs.move_start(driver.broker.log_of("events", 0), offset)


# --- Entries and the index


def test_an_entry_is_parsed_back_and_a_flipped_bit_in_its_header_is_seen() -> None:
    data = batch([b"a"])
    entry = pack_entry(b"i" * 16, 3, 77, 5, memoryview(data))
    parsed = parse_entry(entry, 0)
    assert parsed is not None
    assert (parsed.topic_id.bytes, parsed.partition, parsed.base_offset, parsed.size_bytes) == (
        b"i" * 16,
        3,
        77,
        len(data),
    )
    for position in range(ENTRY_CHECKED_BYTES):
        damaged = bytearray(entry)
        damaged[position] ^= 1
        assert parse_entry(damaged, 0) is None


def test_the_index_finds_batches_by_offset() -> None:
    index = BatchIndex()
    for number, timestamp in enumerate([10, 30, 20]):
        index.append(number * 10, number * 10 + 9, 1, number * 100, 50, timestamp)
    assert [index.first_reaching(offset) for offset in (0, 9, 10, 29, 30)] == [0, 0, 1, 2, 3]
    assert [index.below(offset) for offset in (0, 1, 10, 11, 100)] == [0, 1, 1, 2, 3]
    assert index.drop_front(2) == [(1, 50), (1, 50)]
    assert index.first_reaching(25) == 0


def test_leader_epochs_answer_as_kafkas_cache() -> None:
    epochs = LeaderEpochs()
    assert epochs.end_offset(4, 4, 0) == (4, 0)
    assert epochs.end_offset(3, 4, 0) == (-1, -1)
    epochs.assign(2, 10)
    epochs.assign(5, 30)
    epochs.assign(5, 40)
    assert epochs.end_offset(1, 6, 50) == (1, 10)
    assert epochs.end_offset(2, 6, 50) == (2, 30)
    assert epochs.end_offset(4, 6, 50) == (2, 30)
    assert epochs.end_offset(5, 6, 50) == (5, 50)
    assert epochs.end_offset(7, 6, 50) == (-1, -1)


@pytest.mark.parametrize(
    ("log_start", "kept"),
    [
        (0, [(2, 10), (5, 30), (6, 40)]),
        (10, [(2, 10), (5, 30), (6, 40)]),
        (29, [(2, 10), (5, 30), (6, 40)]),
        (30, [(5, 30), (6, 40)]),
        (39, [(5, 30), (6, 40)]),
        (40, [(6, 40)]),
        (99, [(6, 40)]),
    ],
)
def test_leader_epochs_below_the_logs_start_are_forgotten(
    log_start: int, kept: list[tuple[int, int]]
) -> None:
    epochs = LeaderEpochs()
    epochs.forget_before(log_start)
    assert epochs.items() == []
    for epoch, start in [(2, 10), (5, 30), (6, 40)]:
        epochs.assign(epoch, start)
    epochs.forget_before(log_start)
    assert (epochs.items(), epochs.latest) == (kept, 6)
    assert epochs.of(max(log_start, 10)) == kept[0][0]
    # An older one ended where the first that is known began, or before.
    assert epochs.end_offset(1, 7, 50) == (1, kept[0][1])


def test_a_check_notices_a_leader_epoch_that_ended_before_the_logs_start() -> None:
    epochs = LeaderEpochs()
    epochs.assign(2, 10)
    epochs.assign(5, 30)
    epochs.check(30, 50)
    with pytest.raises(CheckFailed, match="leader epoch ends at the log's start"):
        epochs.check(31, 50)


# --- Recovery


def test_everything_written_is_there_after_a_crash() -> None:
    driver = driver_with()
    client = driver.connect()
    for number in range(10):
        produce(client, batch([b"%d" % number]), partition=number % 3)
    crash(driver)
    assert [values(driver, partition=number) for number in range(3)] == [
        [b"0", b"3", b"6", b"9"],
        [b"1", b"4", b"7"],
        [b"2", b"5", b"8"],
    ]
    assert produce(driver.connect(), batch([b"next"])).base_offset == 4


@pytest.mark.parametrize("cut_bytes", [1, 30, 61, 70, 100])
def test_a_torn_tail_is_cut_with_a_warning_and_the_rest_stands(
    cut_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    driver = driver_with()
    client = driver.connect()
    produce(client, batch([b"whole"]))
    sound = len(driver.disk.files[LOG])
    produce(client, batch([b"torn"]))
    driver.kill()
    del driver.disk.files[LOG][-cut_bytes:]
    with caplog.at_level(logging.WARNING):
        assert driver.start().error is None
    assert f"from byte {sound} on are dropped" in caplog.text
    assert values(driver) == [b"whole"]
    assert len(driver.disk.files[LOG]) == sound
    assert produce(driver.connect(), batch([b"again"])).base_offset == 1
    crash(driver)
    assert values(driver) == [b"whole", b"again"]


def test_zeros_at_the_end_are_a_torn_tail() -> None:
    driver = driver_with()
    produce(driver.connect(), batch([b"a"]))
    driver.kill()
    driver.disk.files[LOG] += bytes(5000)
    assert driver.start().error is None
    assert values(driver) == [b"a"]


@pytest.mark.parametrize("where", ["entry header", "batch"])
def test_damage_in_what_was_synced_with_sound_entries_behind_it_is_refused(where: str) -> None:
    driver = driver_with({"log.flush.interval.messages": 1})
    client = driver.connect()
    for text in (b"first", b"second", b"third"):
        produce(client, batch([text]))
    driver.kill()
    at = driver.disk.files[LOG].index(b"second")
    driver.disk.files[LOG][at - 100 if where == "entry header" else at] ^= 0xFF
    before = bytes(driver.disk.files[LOG])
    error = driver.start().error
    assert isinstance(error, FairleadError)
    assert LOG in str(error)
    assert "damaged at byte" in str(error)
    assert driver.disk.files[LOG] == before, "nothing may be cut"


def test_damage_in_a_file_that_is_not_the_last_is_refused() -> None:
    driver = driver_with({"log.segment.bytes": 1 << 20})
    client = driver.connect()
    for _ in range(3):
        produce(client, batch([b"x" * 600_000]))
    driver.kill()
    del driver.disk.files[LOG][-5:]
    assert "damaged at byte" in str(driver.start().error)


def test_a_batch_longer_than_a_chunk_is_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_kafka.broker.log.recovery.CHUNK_BYTES", 100)
    driver = driver_with()
    client = driver.connect()
    for size in (10, 5_000, 1, 300):
        produce(client, batch([b"x" * size]))
    crash(driver)
    assert [len(value or b"") for value in values(driver)] == [10, 5_000, 1, 300]


def test_a_log_that_cannot_be_read_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_with()
    produce(driver.connect(), batch([b"a"]))
    driver.kill()

    def fail(_effect: object) -> None:
        raise OSError("input/output error")

    monkeypatch.setattr(driver.disk, "_FileRead", fail)
    assert "input/output error" in str(driver.start().error)


def test_records_of_a_deleted_topic_do_not_come_back() -> None:
    driver = driver_with(topics={"events": 1, "gone": 1})
    client = driver.connect()
    produce(client, batch([b"old"]), topic="gone")
    produce(client, batch([b"kept"]))
    driver.controller.delete_topic("gone")
    driver.run()
    driver.controller.create_topic("gone", 1)
    assert values(driver, topic="gone") == []
    crash(driver)
    assert values(driver, topic="gone") == []
    assert values(driver) == [b"kept"]


# --- Floors


def test_a_raised_start_survives_a_crash() -> None:
    driver = driver_with()
    client = driver.connect()
    for number in range(4):
        produce(client, batch([b"%d" % number]))
    raise_start(driver, 2)
    driver.run()
    crash(driver)
    partition = driver.broker.log_of("events", 0)
    assert (partition.log_start, partition.log_end) == (2, 4)
    assert values(driver, offset=2) == [b"2", b"3"]


def test_a_partition_that_lost_all_records_goes_on_where_it_ended() -> None:
    driver = driver_with({"log.segment.bytes": 1 << 20})
    client = driver.connect()
    produce(client, batch([b"x" * 600_000]))
    produce(client, batch([b"y" * 600_000]), partition=1)
    raise_start(driver, 1)
    driver.run()
    assert LOG not in driver.disk.files, "the first file holds nothing alive"
    crash(driver)
    assert produce(driver.connect(), batch([b"z"])).base_offset == 1


def test_retention_by_size_drops_the_oldest_batches() -> None:
    driver = driver_with()
    data = batch([b"x" * 100])
    driver.controller.create_topic("small", 1, configs={"retention.bytes": str(2 * len(data))})
    client = driver.connect()
    for _ in range(5):
        produce(client, data, topic="small")
    driver.advance(300_000)
    partition = driver.broker.log_of("small", 0)
    assert (partition.log_start, partition.log_end, partition.size_bytes) == (3, 5, 2 * len(data))


def test_retention_by_time_drops_what_is_older_and_leaves_the_offsets() -> None:
    driver = driver_with({"log.retention.check.interval.ms": 1000})
    driver.controller.create_topic("short", 1, configs={"retention.ms": "5000"})
    client = driver.connect()
    now = 1_700_000_000_000
    produce(client, batch([b"old"], timestamps_ms=[now]), topic="short")
    produce(client, batch([b"new"], timestamps_ms=[now + 4000]), topic="short")
    driver.advance(4000)
    assert driver.broker.log_of("short", 0).log_start == 0
    driver.advance(2000)
    assert driver.broker.log_of("short", 0).log_start == 1
    driver.advance(10_000)
    partition = driver.broker.log_of("short", 0)
    assert (partition.log_start, partition.log_end) == (2, 2)


def test_retention_takes_many_partitions_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_kafka.broker.log.logs.RETAINED_PER_STEP", 2)
    driver = driver_with({"log.retention.check.interval.ms": 1000}, topics={})
    driver.controller.create_topic("many", 5, configs={"retention.bytes": "0"})
    client = driver.connect()
    for number in range(5):
        produce(client, batch([b"x"]), topic="many", partition=number)
    driver.advance(1001)
    assert [driver.broker.log_of("many", number).log_start for number in range(5)] == [1] * 5


def test_a_changed_config_is_followed_at_once() -> None:
    driver = driver_with()
    client = driver.connect()
    data = batch([b"x" * 100])
    assert produce(client, data).error_code == 0
    driver.controller.alter_topic_configs(
        "events", [ConfigAlteration("max.message.bytes", AlterOperation.SET, "50")]
    )
    assert produce(client, data).error_code == 10


# --- Files


def test_files_roll_at_their_size_and_go_when_nothing_in_them_is_alive() -> None:
    driver = driver_with({"log.segment.bytes": 1 << 20})
    client = driver.connect()
    for _ in range(4):
        produce(client, batch([b"x" * 400_000]))
    produce(client, batch([b"y" * 400_000]), partition=1)
    assert log_files(driver) == [1, 2, 3]
    raise_start(driver, 3)
    driver.run()
    assert log_files(driver) == [2, 3]
    driver.controller.delete_topic("events")
    driver.run()
    assert log_files(driver) == [3], "the file written to stays"


def test_a_file_is_synced_before_the_next_is_begun() -> None:
    driver = driver_with({"log.segment.bytes": 1 << 20})
    client = driver.connect()
    driver.disk.hold_syncs = True
    produce(client, batch([b"x" * 600_000]))
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"x" * 600_000])}))
    assert log_files(driver) == [1]
    driver.release_syncs()
    assert log_files(driver) == [1, 2]


def test_a_stop_syncs_the_log() -> None:
    driver = driver_with()
    produce(driver.connect(), batch([b"a"]))
    assert driver.disk.synced == []
    assert driver.stop().done
    assert driver.disk.synced == [LOG]


def test_idle_partitions_cost_nothing() -> None:
    driver = driver_with(topics={"wide": 30_000})
    assert driver.broker.logs.hosted() == []
    assert produce(driver.connect(), batch([b"a"]), topic="wide", partition=29_999).error_code == 0
    assert len(driver.broker.logs.hosted()) == 1


def test_the_tail_is_read_from_memory() -> None:
    driver = driver_with()
    client = driver.connect()
    for _ in range(10):
        produce(client, batch([b"a"]))
    before = driver.disk.reads
    assert len(values(driver)) == 10
    assert driver.disk.reads == before


def log_files(driver: Driver) -> list[int]:
    return sorted(int(path[-16:-4]) for path in driver.disk.files if path.endswith(".log"))


def test_a_stopped_broker_answers_operations_and_nothing_else() -> None:
    driver = driver_with()
    driver.stop()
    assert isinstance(driver.stop().error, FairleadError)
    assert isinstance(driver.broker, Broker)
