"""Produce: what a broker takes, what it refuses, and when it answers."""

from __future__ import annotations

from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import Node, TopicPartition
from fairlead_kafka.base.limits import INFLATED_BATCH_MAX_BYTES
from fairlead_kafka.broker.log.producers import REFUSED_MAX, ProducerStates
from fairlead_kafka.records import assign, decode, restamp, scan
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import WALL_MS, Client, Driver, batch, fetch, produce, produce_fields
from tests.support.virtual_cluster import VirtualCluster


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.controller.create_topic("events", 3)
    return driver


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect()


def values_from(client: Client, offset: int = 0, partition: int = 0) -> list[bytes | None]:
    row = fetch(client, offset, partition=partition)
    assert row.error_code == 0
    return decode(bytes(row.records), from_offset=offset).values.to_arrow().to_pylist() if row.records else []


def corrupt(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def test_offsets_are_assigned_in_order_and_read_back(client: Client) -> None:
    assert produce(client, batch([b"a", b"b"])).base_offset == 0
    assert produce(client, batch([b"c"])).base_offset == 2
    assert values_from(client) == [b"a", b"b", b"c"]
    assert values_from(client, offset=1) == [b"b", b"c"]


def test_the_stored_batch_carries_the_leader_epoch_and_keeps_its_crc(driver: Driver, client: Client) -> None:
    sent = batch([b"a"])
    produce(client, batch([b"x"]))
    produce(client, sent)
    stored = bytes(fetch(client, 1).records)
    (header,) = scan(stored)
    assert header.partition_leader_epoch == driver.controller.image.partition("events", 0).leader_epoch
    assert header.base_offset == 1
    assert stored[16:] == sent[16:]


def test_a_batch_that_inflates_to_more_than_is_held_at_once_is_too_large_so_that_its_producer_splits_it(
    client: Client,
) -> None:
    half = bytes(INFLATED_BATCH_MAX_BYTES // 2)
    sent = batch([half, half], codec="zstd")
    assert len(sent) < 100_000
    assert produce(client, sent).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(client, batch([half], codec="zstd")).base_offset == 0


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_stored_as_they_came(client: Client, codec: str) -> None:
    sent = batch([b"value"] * 50, codec=codec)
    assert produce(client, sent).error_code == 0
    assert bytes(fetch(client, 0).records)[16:] == sent[16:]


REFUSED = {
    "no records": (None, ErrorCode.INVALID_RECORD),
    "empty records": (b"", ErrorCode.INVALID_RECORD),
    "two batches": (batch([b"a"]) + batch([b"b"]), ErrorCode.INVALID_RECORD),
    "old magic": (batch([b"a"])[:16] + b"\1" + batch([b"a"])[17:], ErrorCode.INVALID_RECORD),
    "magic of no format": (corrupt(batch([b"a"]), 16), ErrorCode.CORRUPT_MESSAGE),
    "wrong crc": (corrupt(batch([b"abcdef"]), 66), ErrorCode.CORRUPT_MESSAGE),
    "cut short": (batch([b"abc"])[:-1], ErrorCode.INVALID_RECORD),
    "only half a header": (batch([b"abc"])[:40], ErrorCode.INVALID_RECORD),
    "base offset not 0": (batch([b"a"], base_offset=5), ErrorCode.INVALID_RECORD),
    "control batch": (batch([b"a"], control=True), ErrorCode.INVALID_RECORD),
    "transactional without a producer id": (batch([b"a"], transactional=True), ErrorCode.INVALID_RECORD),
    "transactional without a transactional id": (
        batch([b"a"], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "producer id without sequence": (
        batch([b"a"], producer_id=1, producer_epoch=0, base_sequence=-1),
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_batch_that_breaks_a_rule_is_refused_and_nothing_is_written(
    driver: Driver, client: Client, case: str
) -> None:
    records, code = REFUSED[case]
    row = produce(client, records)
    assert (row.error_code, row.base_offset) == (code, -1)
    assert driver.disk.appends == 0
    assert fetch(client, 0).high_watermark == 0


def test_a_batch_that_lies_about_its_records_is_refused(client: Client) -> None:
    lying = bytearray(batch([b"a" * 20, b"b" * 20]))
    lying[57:61] = (3).to_bytes(4, "big")
    lying[23:27] = (2).to_bytes(4, "big")
    restamp(lying, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    assert produce(client, bytes(lying)).error_code == ErrorCode.INVALID_RECORD


def test_zstd_needs_version_7(client: Client) -> None:
    assert (
        produce(client, batch([b"a"], codec="zstd"), version=6).error_code
        == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )
    assert produce(client, batch([b"a"], codec="zstd"), version=7).error_code == 0


def test_max_message_bytes_counts_the_whole_batch_and_is_checked_before_the_crc() -> None:
    data = batch([b"x" * 100])
    driver = Driver({"message.max.bytes": len(data)})
    driver.controller.create_topic("events", 1)
    client = driver.connect()
    assert produce(client, data).error_code == 0
    assert produce(client, corrupt(batch([b"x" * 101]), 70)).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_unknown_topic_and_partition(client: Client) -> None:
    assert produce(client, batch([b"a"]), topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(client, batch([b"a"]), partition=3).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_from_version_13_on_topics_are_named_by_their_ids(driver: Driver, client: Client) -> None:
    known = driver.controller.image.topics["events"].topic_id
    fields = produce_fields({("by id", 0): batch([b"a"]), ("of nobody", 0): batch([b"b"])})
    for row, topic_id in zip(fields["topic_data"], (known, UUID(int=7)), strict=True):
        row.topic_id = topic_id
    answer = client.ask(ApiKey.PRODUCE, 13, **fields)
    assert [(topic.topic_id, topic.partition_responses[0].error_code) for topic in answer.responses] == [
        (known, ErrorCode.NONE),
        (UUID(int=7), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert fetch(client, 0).error_code == ErrorCode.NONE
    assert fetch(client, 0).high_watermark == 1


def test_errors_are_per_partition(client: Client) -> None:
    fields = produce_fields(
        {("events", 0): batch([b"a"]), ("events", 9): batch([b"a"]), ("events", 1): batch([b"b"])}
    )
    answer = client.ask(ApiKey.PRODUCE, 9, **fields)
    assert [row.error_code for row in answer.responses[0].partition_responses] == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        0,
    ]


def test_acks_other_than_the_three_are_refused(client: Client) -> None:
    assert produce(client, batch([b"a"]), acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_acks_0_gets_no_answer_and_the_next_request_is_served(client: Client) -> None:
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"a"])}, acks=0))
    assert not client.raw
    client.drop_expectation()
    assert values_from(client) == [b"a"]


def test_an_error_with_acks_0_ends_the_connection(client: Client) -> None:
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("nowhere", 0): batch([b"a"])}, acks=0))
    assert client.closed


def test_log_append_time_is_stamped_and_answered(driver: Driver, client: Client) -> None:
    driver.controller.create_topic("stamped", 1, configs={"message.timestamp.type": "LogAppendTime"})
    row = produce(client, batch([b"a", b"b"], timestamps_ms=[1, 2]), topic="stamped")
    assert row.log_append_time_ms == WALL_MS
    records = decode(bytes(fetch(client, 0, topic="stamped").records))
    assert records.timestamps_ms.tolist() == [WALL_MS] * 2
    assert records.timestamp_types.tolist() == [1, 1]


def test_a_producer_may_not_claim_log_append_time(client: Client) -> None:
    data = bytearray(batch([b"a"]))
    assign(data, base_offset=0, partition_leader_epoch=-1, log_append_time_ms=5)
    assert produce(client, bytes(data)).error_code == ErrorCode.INVALID_TIMESTAMP


# --- Idempotence


def numbered(sequence: int, count: int = 1, epoch: int = 0, producer_id: int = 42) -> bytes:
    return batch([b"v"] * count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_a_duplicate_is_answered_with_the_first_offsets_and_not_written(client: Client) -> None:
    for sequence in range(5):
        assert produce(client, numbered(sequence)).base_offset == sequence
    for sequence in range(5):
        row = produce(client, numbered(sequence))
        assert (row.error_code, row.base_offset) == (0, sequence)
    assert fetch(client, 0).high_watermark == 5


def test_a_duplicate_older_than_the_window_is_out_of_order(client: Client) -> None:
    for sequence in range(6):
        produce(client, numbered(sequence))
    assert produce(client, numbered(0)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order(client: Client) -> None:
    produce(client, numbered(0))
    assert produce(client, numbered(2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, numbered(1)).error_code == 0


def test_an_unknown_producer_may_begin_anywhere(client: Client) -> None:
    assert produce(client, numbered(17)).error_code == 0


def test_an_unknown_producer_begins_with_the_batch_that_was_refused_for_now() -> None:
    producers = ProducerStates()
    first, second, of_next_epoch = (scan(numbered(*each))[0] for each in ((0, 17, 0), (17, 1, 0), (4, 1, 1)))
    producers.refuse(first, WALL_MS)
    producers.refuse(second, WALL_MS)  # it is the lowest sequence that counts
    with pytest.raises(BrokerError) as refused:
        producers.admit(second)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.admit(of_next_epoch) is None
    assert producers.admit(first) is None
    producers.expire(WALL_MS)
    with pytest.raises(BrokerError):
        producers.admit(second)
    producers.record(first, 0, -1, WALL_MS)
    assert producers.admit(second) is None


def test_a_batch_that_came_before_its_leader_did_is_taken_before_those_behind_it() -> None:
    """A producer may hear of an election before the broker does that is to lead."""
    cluster = VirtualCluster()
    cluster.controller.create_topic("replicated", assignments={0: [0, 1, 2]})
    cluster.quiesce()

    def send(sequence: int) -> int:
        fields = produce_fields({("replicated", 0): numbered(sequence)})
        return int(cluster.ask(1, ApiKey.PRODUCE, 9, **fields).responses[0].partition_responses[0].error_code)

    assert send(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.kill(0)
    cluster.quiesce()
    assert cluster.leader(TopicPartition("replicated", 0)) == 1
    assert [send(sequence) for sequence in (1, 0, 1)] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, 0]
    cluster.close()


def test_a_batch_whose_write_failed_is_taken_before_those_behind_it(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a"]))
    driver.disk.fail_appends = True
    assert produce(client, numbered(0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    driver.disk.fail_appends = False
    driver.advance(1000)
    codes = [produce(client, numbered(sequence)).error_code for sequence in (1, 0, 1)]
    assert codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0, 0]


def test_refused_batches_of_so_many_producers_are_remembered() -> None:
    producers = ProducerStates()
    for producer_id in range(REFUSED_MAX + 1):
        producers.refuse(scan(numbered(0, producer_id=producer_id))[0], WALL_MS)
    assert producers.admit(scan(numbered(1, producer_id=0))[0]) is None
    with pytest.raises(BrokerError):
        producers.admit(scan(numbered(1, producer_id=1))[0])


def test_a_refused_batch_that_never_comes_again_is_forgotten() -> None:
    producers = ProducerStates()
    first, second = (scan(numbered(*each))[0] for each in ((0, 17, 0), (17, 1, 0)))
    producers.refuse(first, WALL_MS)
    producers.expire(WALL_MS + 1)
    assert producers.admit(second) is None


def test_a_new_epoch_begins_at_0_and_fences_the_old_one(client: Client) -> None:
    produce(client, numbered(0))
    assert produce(client, numbered(1, epoch=1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, numbered(0, epoch=1)).error_code == 0
    assert produce(client, numbered(1, epoch=0)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_sequences_wrap_to_0(client: Client) -> None:
    assert produce(client, numbered(2**31 - 2, count=2)).error_code == 0
    assert produce(client, numbered(0, count=3)).error_code == 0
    assert produce(client, numbered(3)).error_code == 0


def test_a_batch_may_wrap_in_its_middle(client: Client) -> None:
    assert produce(client, numbered(2**31 - 2, count=4)).error_code == 0
    assert produce(client, numbered(2)).error_code == 0


def test_producers_and_partitions_do_not_mix(client: Client) -> None:
    produce(client, numbered(0))
    assert produce(client, numbered(0, producer_id=43)).base_offset == 1
    assert produce(client, numbered(0), partition=1).base_offset == 0


def test_producer_state_survives_a_crash(driver: Driver, client: Client) -> None:
    for sequence in range(3):
        produce(client, numbered(sequence))
    driver.kill()
    driver.start()
    client = driver.connect()
    assert produce(client, numbered(1)).base_offset == 1
    assert produce(client, numbered(4)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(client, numbered(3)).base_offset == 3


def test_an_idle_producer_is_forgotten(driver: Driver, client: Client) -> None:
    produce(client, numbered(0))
    driver.advance(86_400_000 + 300_000)
    assert produce(driver.connect(), numbered(7)).error_code == 0


# --- When it is answered


def test_a_topic_that_asks_for_syncs_is_answered_after_the_sync(driver: Driver, client: Client) -> None:
    driver.controller.create_topic("safe", 1, configs={"flush.messages": "1"})
    driver.disk.hold_syncs = True
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("safe", 0): batch([b"a"])}))
    assert not client.arrived
    assert driver.broker.log_of("safe", 0).high_watermark == 0
    driver.release_syncs()
    assert client.arrived[0].responses[0].partition_responses[0].error_code == 0
    assert driver.broker.log_of("safe", 0).high_watermark == 1


def test_one_sync_serves_all_who_waited_for_it(driver: Driver) -> None:
    driver.controller.create_topic("safe", 8, configs={"flush.messages": "1"})
    driver.disk.hold_syncs = True
    clients = [driver.connect() for _ in range(8)]
    for number, client in enumerate(clients):
        client.send(ApiKey.PRODUCE, 9, **produce_fields({("safe", number): batch([b"a"])}))
    assert len(driver.disk.held) == 1
    driver.release_syncs()
    assert len(driver.disk.held) == 1
    driver.release_syncs()
    assert all(len(client.arrived) == 1 for client in clients)
    assert not driver.disk.held


def test_requests_of_one_connection_are_written_together(driver: Driver, client: Client) -> None:
    driver.disk.hold_syncs = True
    driver.controller.create_topic("safe", 1, configs={"flush.messages": "1"})
    for sequence in range(4):
        client.send(ApiKey.PRODUCE, 9, **produce_fields({("safe", 0): numbered(sequence)}))
    assert driver.broker.log_of("safe", 0).log_end == 4
    driver.release_syncs()
    driver.release_syncs()
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in client.arrived]
    assert offsets == [0, 1, 2, 3]


def test_a_failed_disk_fails_what_is_written_until_it_works_again(driver: Driver, client: Client) -> None:
    produce(client, batch([b"a"]))
    driver.disk.fail_appends = True
    assert produce(client, batch([b"b"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    driver.disk.fail_appends = False
    assert produce(client, batch([b"c"])).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_from(client) == [b"a"]
    driver.advance(1000)
    assert produce(client, batch([b"d"])).base_offset == 1
    assert values_from(client) == [b"a", b"d"]


def test_a_partition_led_elsewhere_says_who_leads_it(driver: Driver, client: Client) -> None:
    driver.controller.broker_started(Node(1, "other", 9093))
    driver.controller.create_topic("theirs", assignments={0: [1]})
    fields = produce_fields({("theirs", 0): batch([b"a"])})
    answer = client.ask(ApiKey.PRODUCE, 10, **fields)
    row = answer.responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert row.current_leader.leader_id == 1
    assert [(node.node_id, node.host, node.port) for node in answer.node_endpoints] == [(1, "other", 9093)]
