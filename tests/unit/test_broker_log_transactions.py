"""Last stable offset and aborted transactions of a partition: as batches and markers come, after
recovery, after retention."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.internal import Marker, append_marker
from fairlead_kafka.broker.log.transactions import AbortedRange, PartitionTransactions
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client, Driver, batch, fetch, produce_fields

EVENTS = TopicPartition("events", 0)


def test_the_oldest_open_transaction_bounds_what_is_stable() -> None:
    transactions = PartitionTransactions()
    assert transactions.stable_offset(10) == 10
    transactions.begin(1, 10)
    transactions.begin(2, 12)
    transactions.begin(1, 14)
    assert transactions.stable_offset(16) == 10
    transactions.end(1, 16, committed=True, high_watermark=0)
    assert transactions.stable_offset(17) == 12
    transactions.end(2, 17, committed=False, high_watermark=0)
    assert transactions.stable_offset(18) == 18


def test_a_marker_counts_once_the_high_watermark_has_passed_it() -> None:
    transactions = PartitionTransactions()
    transactions.begin(1, 0)
    transactions.end(1, 2, committed=True, high_watermark=0)
    assert transactions.stable_offset(2) == 0
    assert transactions.stable_offset(3) == 3


def test_a_replica_that_nobody_reads_forgets_what_has_ended() -> None:
    transactions = PartitionTransactions()
    for number in range(1_000):
        transactions.begin(1, 2 * number)
        transactions.end(1, 2 * number + 1, committed=True, high_watermark=max(0, 2 * number - 4))
    assert len(transactions._ending) <= 4
    assert transactions.stable_offset(1_995) == 1_994
    assert transactions.stable_offset(2_000) == 2_000


def test_a_marker_without_a_transaction_ends_nothing() -> None:
    transactions = PartitionTransactions()
    transactions.end(1, 0, committed=False, high_watermark=0)
    assert transactions.stable_offset(1) == 1
    assert transactions.aborted(0, 1) == []


def test_aborted_transactions_are_those_that_reach_into_the_range_by_first_offset() -> None:
    transactions = PartitionTransactions()
    transactions.begin(1, 0)
    transactions.begin(2, 2)
    transactions.end(2, 4, committed=False, high_watermark=0)
    transactions.begin(3, 5)
    transactions.end(1, 7, committed=False, high_watermark=0)
    transactions.end(3, 8, committed=True, high_watermark=0)
    transactions.begin(4, 9)
    transactions.end(4, 11, committed=False, high_watermark=0)
    first, second, third = AbortedRange(1, 0, 7, 5), AbortedRange(2, 2, 4, 0), AbortedRange(4, 9, 11, 12)
    assert transactions.aborted(0, 12) == [first, second, third]
    assert transactions.aborted(0, 2) == [first]
    assert transactions.aborted(3, 4) == [first, second]
    assert transactions.aborted(5, 9) == [first]
    assert transactions.aborted(8, 9) == []


# --- In a broker


@pytest.fixture
def driver() -> Driver:
    made = Driver(
        {"transaction.partition.verification.enable": False, "log.retention.check.interval.ms": 1_000}
    )
    made.controller.create_topic("events", 1, configs={"retention.ms": "5000"})
    return made


def write(client: Client, producer_id: int, *values: bytes, sequence: int = 0, epoch: int = 0) -> int:
    records = batch(
        list(values),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )
    answer = client.ask(
        ApiKey.PRODUCE, 9, **(produce_fields({("events", 0): records}) | {"transactional_id": "t"})
    )
    row = answer.responses[0].partition_responses[0]
    assert row.error_code == 0, row
    return int(row.base_offset)


def end(driver: Driver, producer_id: int, committed: bool, epoch: int = 0) -> list[int]:
    codes: list[int] = []
    append_marker(driver.broker, EVENTS, Marker(producer_id, epoch, committed, 1), codes.append)
    driver.broker.logs.flush()
    driver.run()
    return codes


def view(driver: Driver) -> tuple[int, int, list[tuple[int, int]]]:
    """High watermark, last stable offset and the aborted transactions, as a Fetch of committed
    records from the start tells them."""
    client = driver.connect()
    start = driver.broker.log_of("events", 0).log_start
    asked = Message(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=start,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    answer = client.ask(
        ApiKey.FETCH,
        11,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[Message(topic="events", partitions=[asked])],
        forgotten_topics_data=[],
        rack_id="",
    )
    row = answer.responses[0].partitions[0]
    return (
        row.high_watermark,
        row.last_stable_offset,
        [(one.producer_id, one.first_offset) for one in row.aborted_transactions],
    )


def test_a_reader_of_everything_is_told_of_no_aborted_transactions(driver: Driver) -> None:
    client = driver.connect()
    write(client, 1, b"a")
    end(driver, 1, committed=False)
    row = fetch(client, 0)
    assert (row.aborted_transactions, row.last_stable_offset, row.high_watermark) == (None, 2, 2)


def test_recovery_finds_what_was_open_and_what_was_aborted(driver: Driver) -> None:
    client = driver.connect()
    write(client, 1, b"a")
    write(client, 2, b"b")
    end(driver, 1, committed=False)
    write(client, 3, b"c")
    end(driver, 2, committed=True)
    before = view(driver)
    assert before == (5, 3, [(1, 0)])
    driver.kill()
    driver.start()
    assert view(driver) == before
    client = driver.connect()
    write(client, 1, b"d", sequence=1)
    assert end(driver, 3, committed=False) == [0]
    assert view(driver) == (7, 5, [(1, 0), (3, 3)])
    assert end(driver, 1, committed=False, epoch=1) == [0]
    assert view(driver) == (8, 8, [(1, 0), (3, 3), (1, 5)])


def test_a_marker_is_stable_only_when_it_is_synced(driver: Driver) -> None:
    driver.controller.create_topic("synced", 1, configs={"flush.messages": "1"})
    client = driver.connect()
    partition = driver.broker.log_of("synced", 0)
    records = batch([b"a"], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    client.ask(ApiKey.PRODUCE, 9, **(produce_fields({("synced", 0): records}) | {"transactional_id": "t"}))
    driver.disk.hold_syncs = True
    codes: list[int] = []
    append_marker(driver.broker, TopicPartition("synced", 0), Marker(1, 0, True, 1), codes.append)
    driver.broker.logs.flush()
    driver.run()
    assert (codes, partition.log_end, partition.last_stable_offset) == ([], 2, 0)
    driver.disk.hold_syncs = False
    driver.release_syncs()
    assert (codes, partition.last_stable_offset) == ([0], 2)


def test_retention_takes_aborted_transactions_with_their_batches(driver: Driver) -> None:
    client = driver.connect()
    write(client, 1, b"a")
    end(driver, 1, committed=False)
    driver.advance(20_000)
    partition = driver.broker.log_of("events", 0)
    assert partition.log_start == 2
    assert partition.aborted(0, 100) == []
    write(client, 1, b"b", sequence=1)
    end(driver, 1, committed=False)
    assert view(driver) == (4, 4, [(1, 2)])


def test_a_transaction_whose_beginning_is_past_retention_bounds_nothing_before_the_log(
    driver: Driver,
) -> None:
    client = driver.connect()
    write(client, 1, b"a")
    driver.advance(20_000)
    partition = driver.broker.log_of("events", 0)
    assert (partition.log_start, partition.last_stable_offset) == (1, 1)
    assert end(driver, 1, committed=True) == [0]
    assert partition.last_stable_offset == 2


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    driver = Driver({"transaction.partition.verification.enable": False, "producer.id.expiration.ms": 1_000})
    driver.controller.create_topic("events", 1)
    client = driver.connect()
    write(client, 1, b"a")
    write(client, 2, b"b")
    end(driver, 2, committed=True)
    driver.advance(700_000)
    assert [producer_id for producer_id, _entry in driver.broker.log_of("events", 0).producers.items()] == [1]


def test_a_marker_with_a_new_epoch_fences_and_begins_sequences_anew(driver: Driver) -> None:
    client = driver.connect()
    write(client, 1, b"a", b"b")
    assert end(driver, 1, committed=False, epoch=1) == [0]
    stale = batch([b"c"], producer_id=1, producer_epoch=0, base_sequence=2, transactional=True)
    gap = batch([b"c"], producer_id=1, producer_epoch=1, base_sequence=2, transactional=True)
    for records, code in ((stale, 47), (gap, 45)):
        answer = client.ask(
            ApiKey.PRODUCE, 9, **(produce_fields({("events", 0): records}) | {"transactional_id": "t"})
        )
        assert answer.responses[0].partition_responses[0].error_code == code
    assert write(client, 1, b"c", epoch=1) == 3


@pytest.mark.parametrize("timestamp", [-3, 1_700_000_000_001])
def test_a_search_by_time_takes_a_marker_for_a_record(driver: Driver, timestamp: int) -> None:
    client = driver.connect()
    write(client, 1, b"a")
    driver.advance(10)
    end(driver, 1, committed=True)
    asked = [Message(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)]
    answer = client.ask(
        ApiKey.LIST_OFFSETS,
        7,
        replica_id=-1,
        isolation_level=1,
        topics=[Message(name="events", partitions=asked)],
    )
    row = answer.topics[0].partitions[0]
    assert (row.error_code, row.offset, row.timestamp) == (0, 1, 1_700_000_000_010)
