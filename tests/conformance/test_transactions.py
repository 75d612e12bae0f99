"""Transactions on Apache Kafka, which judges the client, and on our cluster: what is committed,
what is fenced, what a cut may do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import (
    Admin,
    GroupMetadata,
    OffsetAndMetadata,
    Producer,
    ProducerFenced,
    TopicPartition,
    TransactionFailed,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey
from tests.support.cutting_proxy import CUTS, Fault
from tests.support.metrics import lags
from tests.support.transaction_check import (
    PARTITIONS,
    STEPS,
    Pipeline,
    committed_offset,
    confluent_values,
    read_committed,
    run,
)
from tests.support.waiting import PATIENCE_S, until

confluent_kafka = pytest.importorskip("confluent_kafka")

NewTopic = Callable[..., str]


@pytest.fixture(params=["apache_kafka", "embedded"])
def servers(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def producer(servers: str, name: str, **more: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": name,
            **{key.replace("_", "."): value for key, value in more.items()},
        }
    )
    made.init_transactions()
    return made


@pytest.mark.parametrize("fault", CUTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_connection_killed_at_any_step_of_a_transaction_loses_and_repeats_nothing(
    servers: str, new_topic: NewTopic, step: ApiKey, fault: Fault
) -> None:
    _cut(servers, new_topic, step, fault)


@pytest.mark.parametrize("fault", CUTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
@pytest.mark.parametrize("cluster", ["apache_kafka_first_protocol", "embedded_first_protocol"])
def test_nor_does_one_by_the_first_protocol(
    request: pytest.FixtureRequest, new_topic: NewTopic, cluster: str, step: ApiKey, fault: Fault
) -> None:
    _cut(request.getfixturevalue(cluster), new_topic, step, fault)


def _cut(servers: str, new_topic: NewTopic, step: ApiKey, fault: Fault) -> None:
    source, target = new_topic(servers, partitions=1), new_topic(servers, partitions=PARTITIONS)
    faults = [fault] if step is ApiKey.INIT_PRODUCER_ID else [fault] * 2
    run(servers, source, target, step, faults)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    servers: str, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)
    with producer(servers, topic, compression_type=codec, batch_size=300) as sender:
        committed: list[bytes] = []
        for number in range(6):
            values = [b"%d-%03d" % (number, row) for row in range(50)]
            sender.begin_transaction()
            sender.send_table(topic, pa.table({"value": values[:25]}))
            for value in values[25:]:
                sender.send(topic, value, key=value)
            if number % 3 == 1:
                sender.flush()
                sender.abort_transaction()
            else:
                sender.commit_transaction()
                committed += values
    assert Counter(read_committed(servers, topic)) == Counter(committed)
    assert Counter(confluent_values(servers, topic, len(committed))) == Counter(committed)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as dirty:
        ends = dirty.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)])
    assert sum(ends.values()) > 6 * 50, "what was aborted is in the log, and so are the markers"


def test_another_clients_transactions_are_read_record_by_record_and_as_tables(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(servers, partitions=1)
    other = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": topic})
    other.init_transactions(30)
    for number in range(4):
        other.begin_transaction()
        for row in range(3):
            other.produce(topic, b"%d-%d" % (number, row), partition=0)
        other.flush(PATIENCE_S)
        (other.abort_transaction if number in (0, 2) else other.commit_transaction)(30)
    expected = [b"%d-%d" % (number, row) for number in (1, 3) for row in range(3)]
    assert read_committed(servers, topic, 1) == expected
    with reader(servers, topic) as consumer:
        found: list[bytes | None] = []
        while len(found) < len(expected):
            found += [record.value for record in consumer.poll(PATIENCE_S, max_records=2)]
        assert found == expected
        consumer.seek_to_beginning()
        table = pa.concat_tables([consumer.poll_table(PATIENCE_S) for _ in range(1)])
        assert table.column("value").to_pylist() == expected[: table.num_rows]
        assert table.num_rows


def test_a_reader_of_committed_data_stops_before_an_open_transaction(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(servers, partitions=1)
    partition = TopicPartition(topic, 0)
    with producer(servers, topic) as sender, reader(servers, topic) as consumer:
        with sender.transaction():
            sender.send(topic, b"first")
        assert [record.value for record in consumer.poll(PATIENCE_S)] == [b"first"]
        sender.begin_transaction()
        sender.send(topic, b"second")
        sender.flush()
        before = consumer.end_offsets([partition])[partition]
        assert consumer.poll(0.3) == []
        assert before == 2, "the record and its marker"
        assert consumer.position(partition) == 2, "the position is behind the marker"
        assert lags(consumer) == {partition: 0}
        sender.commit_transaction()
        assert [record.value for record in consumer.poll(PATIENCE_S)] == [b"second"]
        sender.begin_transaction()
        sender.send(topic, b"third")
        sender.flush()
        consumer.seek_to_end()
        assert consumer.position(partition) == 4, "latest is the last stable offset"
        sender.commit_transaction()
        assert [record.value for record in consumer.poll(PATIENCE_S)] == [b"third"]


def test_a_second_producer_of_the_same_id_fences_the_first_and_ends_its_transaction(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)
    with producer(servers, topic) as first:
        first.begin_transaction()
        first.send(topic, b"lost").result(PATIENCE_S)
        with producer(servers, topic) as second:
            late = first.send(topic, b"late")
            with pytest.raises((ProducerFenced, TransactionFailed)):
                first.commit_transaction()
            with pytest.raises((ProducerFenced, TransactionFailed, BrokerError)):
                late.result(PATIENCE_S)
            with pytest.raises(ProducerFenced):
                first.abort_transaction()
            with pytest.raises(ProducerFenced):
                first.begin_transaction()
            with second.transaction():
                second.send(topic, b"kept")
    assert read_committed(servers, topic) == [b"kept"]


def test_offsets_are_committed_with_the_records_or_not_at_all(servers: str, new_topic: NewTopic) -> None:
    source, target = new_topic(servers, partitions=1), new_topic(servers, partitions=PARTITIONS)
    stage = Pipeline(source, target, f"group-of-{target}")
    with producer(servers, target) as sender:
        stage.transact(sender)
        stage.transact(sender, commit=False)
        stage.check_output(servers)
        with sender.transaction():
            noted = OffsetAndMetadata(40, "a note", 0)
            sender.send_offsets_to_transaction({TopicPartition(source, 0): noted}, GroupMetadata(stage.group))
        assert committed_offset(servers, stage.group, TopicPartition(source, 0)) == 40


def test_a_member_that_its_group_does_not_know_cannot_commit_offsets(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)
    offsets = {TopicPartition(topic, 0): 1}
    with producer(servers, topic) as sender:
        sender.begin_transaction()
        ack = sender.send(topic, b"lost")
        with pytest.raises(TransactionFailed, match="abort it") as failure:
            sender.send_offsets_to_transaction(offsets, GroupMetadata(f"group-{topic}", 7, "nobody"))
        cause = failure.value.__cause__
        assert isinstance(cause, BrokerError)
        assert cause.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
        with pytest.raises(TransactionFailed):
            sender.commit_transaction()
        sender.abort_transaction()
        assert ack.done()
        with sender.transaction():
            sender.send(topic, b"kept")
    assert read_committed(servers, topic) == [b"kept"]


def test_a_refused_batch_fails_the_transaction_and_the_next_one_has_a_new_epoch(
    servers: str, new_topic: NewTopic
) -> None:
    topic = new_topic(servers, partitions=1, max_message_bytes="2000")
    with producer(servers, topic) as sender:
        sender.begin_transaction()
        ack = sender.send(topic, b"small")
        too_large = sender.send(topic, b"x" * 5000)
        with pytest.raises(TransactionFailed, match=r"max\.message\.bytes"):
            sender.commit_transaction()
        with pytest.raises(fairlead_kafka.RecordTooLarge):
            too_large.result(PATIENCE_S)
        sender.abort_transaction()
        assert ack.done()
        for value in (b"one", b"two"):
            with sender.transaction():
                sender.send(topic, value)
        assert (
            sender.metrics()["producer-metrics"]["buffer-available-bytes"]
            == sender.metrics()["producer-metrics"]["buffer-total-bytes"]
        )
    assert read_committed(servers, topic, 1) == [b"one", b"two"]


def test_closing_aborts_what_is_open(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)
    with producer(servers, topic) as sender:
        with sender.transaction():
            sender.send(topic, b"kept")
        sender.begin_transaction()
        sender.send(topic, b"lost").result(PATIENCE_S)
    assert read_committed(servers, topic) == [b"kept"]


def test_the_awaiting_face_does_the_same(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)

    async def main() -> None:
        async with fairlead_kafka.AsyncProducer(
            {"bootstrap.servers": servers, "transactional.id": topic}
        ) as sender:
            await sender.init_transactions()
            async with sender.transaction():
                await sender.send(topic, b"kept")
                await sender.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, topic)
            with pytest.raises(ZeroDivisionError):
                await lose(sender)

    async def lose(sender: fairlead_kafka.AsyncProducer) -> None:
        async with sender.transaction():
            await (await sender.send(topic, b"lost"))
            raise ZeroDivisionError

    asyncio.run(main())
    assert read_committed(servers, topic) == [b"kept"]
    assert committed_offset(servers, topic, TopicPartition(topic, 0)) == 1


def reader(servers: str, topic: str) -> fairlead_kafka.Consumer:
    made = fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    )
    made.assign([TopicPartition(topic, 0)])
    return made


def _epoch(servers: str, transactional_id: str) -> int:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        return admin.describe_transactions([transactional_id])[transactional_id].epoch


def test_each_transaction_has_an_epoch(servers: str, new_topic: NewTopic) -> None:
    topic = new_topic(servers, partitions=PARTITIONS)
    with producer(servers, topic) as sender:
        first = _epoch(servers, topic)
        for number in range(3):
            with sender.transaction():
                sender.send(topic, b"%d" % number, partition=number % PARTITIONS)
        sender.begin_transaction()
        sender.send(topic, b"not wanted", partition=0).result(PATIENCE_S)
        sender.abort_transaction()
        sender.begin_transaction()
        sender.commit_transaction()  # nothing was sent: nothing is ended
    assert _epoch(servers, topic) == first + 4
    assert sorted(read_committed(servers, topic)) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("cluster", ["apache_kafka_first_protocol", "embedded_first_protocol"])
def test_where_the_level_is_lower_the_epoch_stays(
    request: pytest.FixtureRequest, new_topic: NewTopic, cluster: str
) -> None:
    servers = request.getfixturevalue(cluster)
    topic = new_topic(servers, partitions=PARTITIONS)
    with producer(servers, topic) as sender:
        first = _epoch(servers, topic)
        for number in range(3):
            with sender.transaction():
                sender.send(topic, b"%d" % number, partition=number % PARTITIONS)
    assert _epoch(servers, topic) == first
    assert sorted(read_committed(servers, topic)) == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    "go_on",
    [
        lambda slow: slow.send("t", b"late", partition=1).result(PATIENCE_S),
        lambda slow: slow.send_offsets_to_transaction(
            {TopicPartition("t", 0): OffsetAndMetadata(1)}, GroupMetadata("g")
        ),
    ],
    ids=["another partition", "offsets"],
)
def test_a_transaction_that_took_too_long_is_aborted_and_followed_by_the_next(
    go_on: Callable[[Producer], object],
) -> None:
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 100}
    with (
        Cluster(config=often) as cluster,
        Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
    ):
        admin.create_topics([fairlead_kafka.NewTopic("t", 2)])
        with producer(cluster.bootstrap_servers, "slow", transaction_timeout_ms=60_000) as slow:
            slow.begin_transaction()
            slow.send("t", b"late", partition=0).result(PATIENCE_S)
            cluster.clock.advance(minutes=2)
            until(lambda: admin.describe_transactions(["slow"])["slow"].state == "CompleteAbort")
            with pytest.raises(TransactionFailed, match=r"longer than transaction\.timeout\.ms"):
                go_on(slow)
            slow.abort_transaction()
            with slow.transaction():
                slow.send("t", b"kept", partition=1)
        assert read_committed(cluster.bootstrap_servers, "t", 2) == [b"kept"]
