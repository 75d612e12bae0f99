"""Topics that change while a query runs, or while it does not: found, lost, made again;
transactions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.base.errors import BrokerError, TimedOut
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.reading import DataLoss, TaskRanges
from tests.unit.spark_stream.driving import Offsets, advance, rows


def test_new_partitions_and_topics_of_a_pattern_are_found_while_running(
    stream: Any, send: Any, admin: Any, topic: str
) -> None:
    reader = stream(subscribePattern=topic + ".*")
    first = advance(reader, reader.initialOffset())
    admin.create_partitions({topic: fairlead_kafka.NewPartitions(3)})
    admin.create_topics([fairlead_kafka.NewTopic(topic + "-more", partitions=1)])
    send(topic, 0, 0, 2)
    send(topic + "-more", 1)
    end = advance(reader, first)
    assert end == {topic: {"0": 0, "1": 0, "2": 2}, topic + "-more": {"0": 1}}
    assert rows(reader, first, end) == [(2, 0), (2, 1), (0, 0)]


def test_a_pattern_that_matches_nothing_yet_begins_at_the_first_record(
    stream: Any, send: Any, admin: Any, topic: str
) -> None:
    reader = stream(subscribePattern=topic + "-later")
    assert advance(reader, reader.initialOffset()) == {}
    admin.create_topics([fairlead_kafka.NewTopic(topic + "-later", partitions=1)])
    send(topic + "-later", 2)
    end = advance(reader, {})
    assert end == {topic + "-later": {"0": 2}}
    assert len(rows(reader, {}, end)) == 2


def test_offsets_that_are_gone_are_named(stream: Any, send: Any, admin: Any, topic: str) -> None:
    send(topic, 10)
    reader = stream(subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    end = advance(reader, start)
    admin.delete_records({fairlead_kafka.TopicPartition(topic, 0): 4})
    with pytest.raises(DataLoss, match=f"{topic}-0: offsets 0 to 3 are gone"):
        rows(reader, start, end)
    assert rows(stream(subscribe=topic, failOnDataLoss="false"), start, end) == [
        (0, offset) for offset in range(4, 10)
    ]


@pytest.mark.parametrize("how", ["subscribe", "subscribePattern"])
def test_a_topic_that_is_gone_is_named_or_left_out(
    stream: Any, send: Any, admin: Any, topic: str, how: str
) -> None:
    send(topic, 4)
    options = {how: topic, "startingOffsets": "earliest"}
    strict, lenient = stream(**options), stream(**options, failOnDataLoss="false")
    start, end = strict.initialOffset(), {topic: {"0": 2, "1": 0}}
    assert lenient.initialOffset() == start
    assert advance(strict, start) == advance(lenient, start) == {topic: {"0": 4, "1": 0}}
    admin.delete_topics([topic])
    with pytest.raises(
        DataLoss, match=f"{topic}-0: there is no such partition any more; offsets 2 to 3 were not read"
    ):
        advance(strict, end)
    assert advance(lenient, end) == {}
    assert rows(lenient, end, {}) == []


def test_a_topic_made_again_is_read_from_its_beginning(
    stream: Any, send: Any, admin: Any, topic: str
) -> None:
    """Even if it has grown past the offset that was next, which offsets alone would not show."""
    send(topic, 3)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    strict, lenient, late = (
        stream(**options),
        stream(**options, failOnDataLoss="false"),
        stream(**options, failOnDataLoss="false"),
    )
    end = advance(strict, strict.initialOffset())
    assert advance(lenient, lenient.initialOffset()) == end
    admin.delete_topics([topic])
    admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=2)])
    send(topic, 5, 1)
    with pytest.raises(
        DataLoss, match=f"{topic}-0: its topic was deleted and made again; of the old one offset 3 was next"
    ):
        advance(strict, end)
    without = advance(lenient, end)
    assert without == {}
    after = advance(lenient, without)
    assert after == {topic: {"0": 5, "1": 1}}
    assert rows(lenient, without, after) == [*((0, offset) for offset in range(5)), (1, 0)]
    # A driver that was not there sees only that the log is shorter than what was read.
    assert advance(late, {topic: {"0": 9, "1": 0}}) == {topic: {"1": 1}}


def test_a_replayed_micro_batch_that_reaches_past_the_log_is_a_loss(
    stream: Any, send: Any, topic: str
) -> None:
    send(topic, 3)
    start, end = {topic: {"0": 1, "1": 0}}, {topic: {"0": 7, "1": 0}}
    with pytest.raises(
        DataLoss,
        match=f"{topic}-0: offsets 3 to 6 were planned before the restart, and its log ends at 3 now",
    ):
        stream(subscribe=topic).partitions(start, end)
    assert rows(stream(subscribe=topic, failOnDataLoss="false"), start, end) == [(0, 1), (0, 2)]


def test_a_missing_topic_is_named_at_once(stream: Any) -> None:
    for starting in ("earliest", "latest"):
        reader = stream(subscribe="no-such-topic", startingOffsets=starting)
        with pytest.raises(fairlead_kafka.BrokerError, match="topic no-such-topic is not in the cluster"):
            advance(reader, reader.initialOffset())


def test_transactions_are_read_up_to_the_first_that_is_open(
    stream: Any, cluster: fairlead_kafka.Cluster, topic: str
) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
        "maxBytesPerTrigger": "1g",
    }
    with fairlead_kafka.Producer(settings) as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for _ in range(3):
                producer.send(topic, b"v", partition=0)
            producer.flush()
            end()
        producer.begin_transaction()
        producer.send(topic, b"v", partition=0).result(timeout_s=10)
        reader = stream(**options)
        first = advance(reader, reader.initialOffset())
        assert first == {topic: {"0": 8, "1": 0}}  # three records and a marker, twice
        assert rows(reader, reader.initialOffset(), first) == [(0, 0), (0, 1), (0, 2)]
        assert advance(reader, first) == first
        producer.commit_transaction()
    second = advance(reader, first)
    assert rows(reader, first, second) == [(0, 8)]
    assert second == advance(reader, second) == {topic: {"0": 10, "1": 0}}
    everything = stream(subscribe=topic, startingOffsets="earliest")
    assert len(rows(everything, everything.initialOffset(), second)) == 7


def test_a_stretch_without_records_is_passed_over(
    stream: Any, cluster: fairlead_kafka.Cluster, topic: str
) -> None:
    """As compaction leaves one: offsets that hold nothing, here markers alone, are planned, read to
    their end and give no row."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic}
    with fairlead_kafka.Producer(settings) as producer:
        producer.init_transactions()
        for _ in range(2):
            producer.begin_transaction()
            producer.send(topic, b"v", partition=0)
            producer.commit_transaction()
    for options in ({}, {"balanceBy": "bytes"}, {"maxBytesPerPartition": "10"}):
        reader = stream(subscribe=topic, **options)
        assert rows(reader, {topic: {"0": 1, "1": 0}}, {topic: {"0": 2, "1": 0}}) == []
        assert rows(reader, {topic: {"0": 0, "1": 0}}, {topic: {"0": 4, "1": 0}}) == [(0, 0), (0, 2)]


@pytest.mark.parametrize(
    "options",
    [
        {"maxBytesPerTrigger": "1m"},
        {"maxBytesPerPartition": "10k"},
        {"balanceBy": "bytes"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_query_that_weighs_bytes_goes_on_over_what_retention_took(
    stream: Any, send: Any, admin: Any, topic: str, options: dict[str, str]
) -> None:
    send(topic, 10)
    start: Offsets = {topic: {"0": 2, "1": 0}}  # as a stopped query's checkpoint has it
    admin.delete_records({fairlead_kafka.TopicPartition(topic, 0): 4})
    reader = stream(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false", **options)
    end = advance(reader, start)
    assert rows(reader, start, end) == [(0, offset) for offset in range(4, 10)]
    strict = stream(subscribe=topic, startingOffsets="earliest", **options)
    with pytest.raises(DataLoss, match=f"{topic}-0: offsets 2 to 3 are gone"):
        rows(strict, start, advance(strict, start))


def test_a_query_that_began_at_the_latest_offsets_reads_a_topic_made_again_from_its_first_record(
    stream: Any, send: Any, admin: Any, topic: str
) -> None:
    reader = stream(subscribe=topic, failOnDataLoss="false")
    first = advance(reader, reader.initialOffset())
    assert rows(reader, {}, first) == []
    send(topic, 3)
    second = advance(reader, first)
    assert len(rows(reader, first, second)) == 3
    admin.delete_topics([topic])
    gone = advance(reader, second)
    assert gone == {}
    assert advance(reader, gone) == {}, "while there is no topic, it waits"
    admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=1)])
    send(topic, 5)
    again = advance(reader, gone)
    assert len(rows(reader, gone, again)) == 5


def test_a_topic_that_is_gone_is_not_made_again_by_the_query_that_reads_it(
    stream: Any, admin: Any, topic: str
) -> None:
    reader = stream(
        subscribe=topic,
        failOnDataLoss="false",
        **{"kafka.default.api.timeout.ms": 1_000, "kafkaConsumer.pollTimeoutMs": 1_000},
    )
    reader.survey.consumer.connect()
    partition = TopicPartition(topic, 0)
    admin.delete_topics([topic])
    for ask in (reader.survey.latest, reader.survey.earliest):
        with pytest.raises(BrokerError, match=f"topic {topic} is not in the cluster"):
            ask([partition])
    with suppress(BrokerError, TimedOut):
        reader.survey.look(partition, 0, 5)
    with suppress(TimedOut):
        assert list(reader.read(TaskRanges((OffsetRange(partition, 0, 5),)))) == []
    assert topic not in admin.list_topics()
