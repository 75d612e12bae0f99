"""Fetch, ListOffsets and OffsetForLeaderEpoch: what is read, when, and within which limits."""

from __future__ import annotations

import uuid

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import Node
from fairlead_kafka.records import decode, scan
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import (
    WALL_MS,
    Client,
    Driver,
    batch,
    fetch,
    fetch_fields,
    produce,
    produce_fields,
)


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.controller.create_topic("events", 3)
    return driver


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect()


def offsets_in(records: object) -> list[tuple[int, int]]:
    return [(header.base_offset, header.last_offset) for header in scan(bytes(records))]  # type: ignore[call-overload]


# --- What is read


def test_a_fetch_in_the_middle_of_a_batch_gives_the_whole_batch(client: Client) -> None:
    produce(client, batch([b"a", b"b", b"c"]))
    produce(client, batch([b"d"]))
    assert offsets_in(fetch(client, 1).records) == [(0, 2), (3, 3)]


def test_a_fetch_at_the_end_is_empty_and_past_it_is_out_of_range(client: Client) -> None:
    produce(client, batch([b"a"]))
    row = fetch(client, 1)
    assert (row.error_code, bytes(row.records), row.high_watermark) == (0, b"", 1)
    assert fetch(client, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_partition_max_bytes_cuts_at_whole_batches_but_gives_one_in_any_case(client: Client) -> None:
    data = batch([b"x" * 100])
    for _ in range(3):
        produce(client, data)
    assert len(offsets_in(fetch(client, 0, partition_max_bytes=2 * len(data)).records)) == 2
    assert len(offsets_in(fetch(client, 0, partition_max_bytes=2 * len(data) - 1).records)) == 1
    assert len(offsets_in(fetch(client, 0, partition_max_bytes=1).records)) == 1


def test_max_bytes_bounds_the_answer_over_all_partitions(client: Client) -> None:
    data = batch([b"x" * 100])
    for partition in range(3):
        produce(client, data, partition=partition)
    wants = {("events", partition): 0 for partition in range(3)}
    answer = client.ask(ApiKey.FETCH, 12, **fetch_fields(wants, max_bytes=2 * len(data)))
    assert [len(row.records) for row in answer.responses[0].partitions] == [len(data), len(data), 0]
    answer = client.ask(ApiKey.FETCH, 12, **fetch_fields(wants, max_bytes=1))
    assert [len(row.records) for row in answer.responses[0].partitions] == [len(data), 0, 0]


def test_batches_that_are_not_written_yet_are_not_read(driver: Driver, client: Client) -> None:
    driver.controller.create_topic("safe", 1, configs={"flush.messages": "1"})
    driver.disk.hold_syncs = True
    writer = driver.connect()
    writer.send(ApiKey.PRODUCE, 9, **produce_fields({("safe", 0): batch([b"a"])}))
    row = fetch(client, 0, topic="safe")
    assert (row.high_watermark, bytes(row.records)) == (0, b"")
    driver.release_syncs()
    assert len(fetch(client, 0, topic="safe").records) > 0


@pytest.mark.parametrize("version", [13, 14, 15, 16, 17, 18])
def test_topics_by_id_from_version_13_on(driver: Driver, client: Client, version: int) -> None:
    produce(client, batch([b"a"]))
    fields = fetch_fields({("events", 0): 0})
    fields["topics"][0].topic_id = driver.controller.image.topics["events"].topic_id
    assert len(client.ask(ApiKey.FETCH, version, **fields).responses[0].partitions[0].records) > 0
    fields["topics"][0].topic_id = uuid.UUID(int=99)
    assert (
        client.ask(ApiKey.FETCH, version, **fields).responses[0].partitions[0].error_code
        == ErrorCode.UNKNOWN_TOPIC_ID
    )


@pytest.mark.parametrize("version", [4, 5, 7, 9, 11, 12])
def test_every_version_by_name_reads_the_same_batches(client: Client, version: int) -> None:
    produce(client, batch([b"a", b"b"]))
    answer = client.ask(ApiKey.FETCH, version, **fetch_fields({("events", 0): 0}))
    assert decode(bytes(answer.responses[0].partitions[0].records)).values.to_arrow().to_pylist() == [
        b"a",
        b"b",
    ]


def test_unknown_partitions_and_leaders_elsewhere(driver: Driver, client: Client) -> None:
    driver.controller.broker_started(Node(1, "other", 9093))
    driver.controller.create_topic("theirs", assignments={0: [1]})
    assert fetch(client, 0, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(client, 0, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    row = fetch(client, 0, topic="theirs")
    assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)


def test_followers_are_refused(client: Client) -> None:
    assert fetch(client, 0, replica_id=2).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_stale_leader_epoch_is_fenced_and_a_newer_one_unknown(driver: Driver, client: Client) -> None:
    driver.stop()
    driver.start()
    client = driver.connect()
    epoch = driver.controller.image.partition("events", 0).leader_epoch
    assert epoch > 0
    assert fetch(client, 0, epoch=epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(client, 0, epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetch(client, 0, epoch=epoch).error_code == 0


def test_a_diverging_epoch_is_told_instead_of_records(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a", b"b"]))
    first = driver.controller.image.partition("events", 0).leader_epoch
    driver.stop()
    driver.start()
    client = driver.connect()
    produce(client, batch([b"c"]))
    row = fetch(client, 3, last_fetched_epoch=first)
    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset, bytes(row.records)) == (first, 2, b"")
    assert len(fetch(client, 2, last_fetched_epoch=first).records) > 0
    beyond = fetch(client, 9, last_fetched_epoch=first)
    assert (beyond.error_code, beyond.diverging_epoch.end_offset) == (0, 2), (
        "the log ends before, and has parted: that is told"
    )
    assert fetch(client, 9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


# --- When


def test_a_fetch_waits_for_data_and_is_woken_by_it(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0, ("events", 1): 0}, max_wait_ms=500))
    driver.advance(100)
    assert not client.arrived
    produce(driver.connect(), batch([b"a"]), partition=1)
    rows = client.arrived[0].responses[0].partitions
    assert [len(row.records) > 0 for row in rows] == [False, True]


def test_an_append_elsewhere_wakes_nobody(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    produce(driver.connect(), batch([b"a"]), partition=2)
    assert not client.arrived


def test_a_fetch_without_data_is_answered_empty_when_its_time_is_over(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    driver.advance(499)
    assert not client.arrived
    driver.advance(1)
    assert bytes(client.arrived[0].responses[0].partitions[0].records) == b""
    assert len(driver.broker.purgatory) == 0


def test_min_bytes_are_gathered_over_partitions(driver: Driver, client: Client) -> None:
    data = batch([b"x" * 100])
    writer = driver.connect()
    produce(writer, data)
    fields = fetch_fields({("events", 0): 0, ("events", 1): 0}, max_wait_ms=500, min_bytes=3 * len(data))
    client.send(ApiKey.FETCH, 12, **fields)
    produce(writer, data)
    assert not client.arrived
    produce(writer, data, partition=1)
    assert [len(row.records) for row in client.arrived[0].responses[0].partitions] == [
        2 * len(data),
        len(data),
    ]


def test_an_error_is_answered_at_once(client: Client) -> None:
    wants = {("events", 0): 0, ("nowhere", 0): 0}
    answer = client.ask(ApiKey.FETCH, 12, **fetch_fields(wants, max_wait_ms=500))
    assert answer.responses[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_waiting_fetch_holds_what_comes_behind_it(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 1): batch([b"a"])}))
    assert driver.broker.log_of("events", 1).log_end == 0
    driver.advance(500)
    assert [type(answer).__name__ for answer in client.arrived] == ["FetchResponse", "ProduceResponse"]


def test_deleting_the_topic_ends_the_wait_with_an_error(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    driver.controller.delete_topic("events")
    driver.run()
    assert client.arrived[0].responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_connection_that_ends_takes_its_waiting_fetch_along(driver: Driver, client: Client) -> None:
    from fairlead_kafka.core.events import Disconnected

    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    assert len(driver.broker.purgatory) == 1
    driver.broker.receive(Disconnected(client.connection, "gone"))
    driver.run()
    assert len(driver.broker.purgatory) == 0
    produce(driver.connect(), batch([b"a"]))


# --- Where offsets are


def list_offset(client: Client, timestamp: int, version: int = 8, partition: int = 0) -> Message:
    asked = Message(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
    answer = client.ask(
        ApiKey.LIST_OFFSETS,
        version,
        replica_id=-1,
        isolation_level=0,
        topics=[Message(name="events", partitions=[asked])],
    )
    return answer.topics[0].partitions[0]


def test_offsets_by_time_find_the_first_record_at_or_after(client: Client) -> None:
    produce(client, batch([b"a", b"b", b"c"], timestamps_ms=[100, 300, 200]))
    produce(client, batch([b"d"], timestamps_ms=[400], codec="lz4"))
    found = {
        time: (row.offset, row.timestamp)
        for time in (0, 100, 150, 250, 301, 401)
        for row in [list_offset(client, time)]
    }
    assert found == {0: (0, 100), 100: (0, 100), 150: (1, 300), 250: (1, 300), 301: (3, 400), 401: (-1, -1)}


def test_earliest_latest_and_newest(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a", b"b"], timestamps_ms=[100, 900]))
    produce(client, batch([b"c"], timestamps_ms=[500]))
    assert list_offset(client, -2).offset == 0
    assert list_offset(client, -1).offset == 3
    newest = list_offset(client, -3)
    assert (newest.offset, newest.timestamp) == (1, 900)
    driver.broker.logs.move_start(driver.broker.log_of("events", 0), 2)
    assert list_offset(client, -2).offset == 2
    assert list_offset(client, -3).offset == 2
    assert list_offset(client, 0).offset == 2


def test_times_that_a_version_does_not_know_are_refused(client: Client) -> None:
    assert list_offset(client, -3, version=6).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(client, -4, version=7).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_empty_partition_has_no_newest_record(client: Client) -> None:
    row = list_offset(client, -3)
    assert (row.error_code, row.offset, row.timestamp) == (0, -1, -1)


def test_the_end_of_a_leader_epoch_is_where_the_next_one_began(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a", b"b"]))
    first = driver.controller.image.partition("events", 0).leader_epoch
    driver.kill()
    driver.start()
    client = driver.connect()
    second = driver.controller.image.partition("events", 0).leader_epoch
    produce(client, batch([b"c"]))

    def end_of(epoch: int) -> tuple[int, int]:
        asked = Message(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
        topics = [Message(topic="events", partitions=[asked])]
        row = (
            client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=topics)
            .topics[0]
            .partitions[0]
        )
        return row.leader_epoch, row.end_offset

    assert end_of(first) == (first, 2)
    assert end_of(second) == (second, 3)
    assert end_of(second + 1) == (-1, -1)


def test_cold_batches_are_read_from_the_file_in_few_reads(driver: Driver, client: Client) -> None:
    for _ in range(20):
        produce(client, batch([b"x" * 1000]))
        produce(client, batch([b"y" * 1000]), partition=1)
    driver.kill()
    driver.start()
    client = driver.connect()
    before = driver.disk.reads
    row = fetch(client, 0)
    assert len(offsets_in(row.records)) == 20
    assert driver.disk.reads - before == 1


def test_records_without_a_timestamp_are_kept_by_the_time_of_arrival(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a"], timestamps_ms=[-1]))
    assert driver.broker.log_of("events", 0).index.max_timestamp_ms(0) == WALL_MS
