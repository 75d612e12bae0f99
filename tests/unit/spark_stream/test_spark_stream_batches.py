"""Where micro-batches begin and end, which tasks read them, and what is committed to a group."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

import fairlead_kafka
from fairlead_kafka.spark.options import parse_read_options
from tests.unit.spark_stream.driving import advance, rows


def test_micro_batches_read_everything_once(stream: Any, send: Any, topic: str) -> None:
    send(topic, 3, 5)
    reader = stream(subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    assert start == {topic: {"0": 0, "1": 0}}
    end = advance(reader, start)
    assert end == {topic: {"0": 3, "1": 5}}
    assert rows(reader, start, end) == [(0, 0), (0, 1), (0, 2), *((1, offset) for offset in range(5))]
    assert advance(reader, end) == end
    assert rows(reader, end, end) == []
    send(topic, 1)
    after = advance(reader, end)
    assert rows(reader, end, after) == [(0, 3)]


def test_a_beginning_at_latest_is_in_the_checkpoint_before_anything_is_read(
    stream: Any, send: Any, topic: str
) -> None:
    send(topic, 3)
    reader = stream(subscribe=topic)
    start = reader.initialOffset()
    assert start == reader.initialOffset()
    first = advance(reader, start)
    assert first == {topic: {"0": 3, "1": 0}}
    send(topic, 2)  # comes while the first micro-batch runs
    assert reader.initialOffset() == start
    assert rows(reader, start, first) == rows(reader, start, first) == []
    again = stream(
        subscribe=topic
    )  # a restart before the first micro-batch is committed: the checkpoint has its end
    assert rows(again, again.initialOffset(), first) == []
    assert rows(again, first, advance(again, first)) == [(0, 3), (0, 4)]


def test_a_beginning_by_number_or_time_needs_no_empty_micro_batch(
    stream: Any, producer: Any, topic: str
) -> None:
    for number in range(4):
        producer.send(topic, b"v", partition=0, timestamp_ms=1000 + number)
    producer.send(topic, b"v", partition=1, timestamp_ms=5000)
    producer.flush()
    assert stream(
        subscribe=topic, startingOffsets=json.dumps({topic: {"0": 3, "1": -2}})
    ).initialOffset() == {topic: {"0": 3, "1": 0}}
    assert stream(subscribe=topic, startingTimestamp=1002).initialOffset() == {topic: {"0": 2, "1": 0}}
    with pytest.raises(fairlead_kafka.ConfigError, match="no record at starting time 6000 ms"):
        stream(
            subscribe=topic, startingOffsetsByTimestamp=json.dumps({topic: {"0": 6000, "1": 1002}})
        ).initialOffset()
    late = stream(subscribe=topic, startingTimestamp=3000, startingOffsetsByTimestampStrategy="latest")
    assert late.initialOffset() == {}
    assert advance(late, {}) == {topic: {"0": 4, "1": 0}}
    mixed = stream(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 1, "1": -1}}))
    assert mixed.initialOffset() == {}
    assert advance(mixed, {}) == {topic: {"0": 1, "1": 1}}


def test_a_micro_batch_keeps_to_the_limit_of_offsets_and_starves_nobody(
    stream: Any, send: Any, topic: str
) -> None:
    send(topic, 90, 2)
    reader = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=10)
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    start = reader.initialOffset()
    end = advance(reader, start)
    assert end == {topic: {"0": 9, "1": 1}}
    assert advance(reader, end) == {topic: {"0": 18, "1": 2}}
    assert reader.reportLatestOffset() == {topic: {"0": 90, "1": 2}}
    assert reader.latestOffset(start, ReadAllAvailable()) == {
        topic: {"0": 90, "1": 2}
    }  # Trigger.Once has no limits
    alone = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=1)
    start = alone.initialOffset()
    ends = [start := advance(alone, start) for _ in range(2)]
    assert sorted(sum(end[topic].values()) for end in ends) == [1, 2]
    assert ends[-1][topic]["1"] == 1  # turns are taken


def test_a_micro_batch_waits_for_enough_but_not_for_ever(
    stream: Any, send: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("fairlead_kafka.spark.stream_planning.time", SimpleNamespace(monotonic=lambda: now_s))
    send(topic, 3)
    reader = stream(
        subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger=5, maxTriggerDelay="30s"
    )
    assert reader.getDefaultReadLimit() == ReadMinRows(5)
    first = advance(reader, reader.initialOffset())
    assert first == {topic: {"0": 3, "1": 0}}  # the first does not wait
    send(topic, 4)
    assert advance(reader, first) == first
    send(topic, 1)
    second = advance(reader, first)
    assert second == {topic: {"0": 8, "1": 0}}
    send(topic, 1)
    assert advance(reader, second) == second
    now_s += 30
    assert advance(reader, second) == {topic: {"0": 9, "1": 0}}


def test_both_limits_of_offsets_hold_at_once(stream: Any, send: Any, topic: str) -> None:
    send(topic, 8)
    reader = stream(
        subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger=5, maxOffsetsPerTrigger=6
    )
    end = advance(reader, reader.initialOffset())
    assert end == {topic: {"0": 6, "1": 0}}
    assert advance(reader, end) == end


def test_a_micro_batch_keeps_to_the_limit_of_bytes(stream: Any, producer: Any, topic: str) -> None:
    for number in range(200):  # a batch each, so that sizes are known to the record
        producer.send(topic, bytes(1000), partition=0)
        producer.send(topic, bytes(10), partition=1)
        if number % 10 == 9:
            producer.flush()
    reader = stream(subscribe=topic, startingOffsets="earliest", maxBytesPerTrigger="40k")
    assert reader.getDefaultReadLimit() == ReadMaxBytes(40 * 1024)
    start = reader.initialOffset()
    sizes, seen = [], []
    while (end := advance(reader, start)) != start:
        sizes.append(
            1000 * (end[topic]["0"] - start[topic]["0"]) + 10 * (end[topic]["1"] - start[topic]["1"])
        )
        seen += rows(reader, start, end)
        start = end
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(200)]
    assert max(sizes) < 1.3 * 40 * 1024
    assert len(sizes) < 10
    tiny = stream(subscribe=topic, startingOffsets="earliest", maxBytesPerTrigger=1)
    start = tiny.initialOffset()
    assert sum(advance(tiny, start)[topic].values()) == 1  # however small the limit, it goes on


def test_available_now_reads_what_is_there_within_the_limits_and_ends(
    stream: Any, send: Any, topic: str
) -> None:
    send(topic, 5, 2)
    reader = stream(
        subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=4, minOffsetsPerTrigger=4
    )
    reader.prepareForTriggerAvailableNow()
    start, ends = reader.initialOffset(), []
    send(topic, 3)
    while (end := advance(reader, start)) != start:
        ends.append(end)
        start = end
    assert len(ends) == 2
    assert ends[-1] == {topic: {"0": 5, "1": 2}}
    fresh = stream(subscribe=topic)
    fresh.prepareForTriggerAvailableNow()
    first = advance(fresh, fresh.initialOffset())
    assert first == advance(fresh, first) == {topic: {"0": 8, "1": 2}}


def test_tasks_are_split_and_put_together_by_bytes(
    stream: Any, producer: Any, send: Any, admin: Any, topic: str
) -> None:
    admin.create_partitions({topic: fairlead_kafka.NewPartitions(10)})
    for _ in range(100):
        producer.send(topic, bytes(10_000), partition=7)
    producer.flush()
    send(topic, *[20] * 7)
    end = {
        topic: {str(number): 0 for number in range(10)}
        | {str(number): 20 for number in range(7)}
        | {"7": 100}
    }
    start = {topic: dict.fromkeys(end[topic], 0)}
    plain = stream(subscribe=topic)
    assert [len(task.ranges) for task in plain.partitions(start, end)] == [1] * 8
    shared = stream(subscribe=topic, balanceBy="bytes")
    assert [len(task.ranges) for task in shared.partitions(start, end)] == [8]  # so little is one task's work
    balanced = stream(subscribe=topic, balanceBy="bytes", minPartitions=10)
    tasks = balanced.partitions(start, end)
    assert [sum(one.partition.partition == 7 for one in task.ranges) for task in tasks] == [1] * 10
    assert {one.size for task in tasks for one in task.ranges if one.partition.partition == 7} <= {
        8,
        9,
        10,
        11,
        12,
    }
    assert sorted(rows(balanced, start, end)) == sorted(rows(plain, start, end))
    cut = stream(subscribe=topic, maxBytesPerPartition="300k").partitions(start, end)
    assert [
        len([task for task in cut if task.ranges[0].partition.partition == number]) for number in (0, 7)
    ] == [1, 4]


def test_processed_offsets_are_committed_to_the_group(stream: Any, send: Any, admin: Any, topic: str) -> None:
    def lag_seen_from_outside(group: str) -> dict[int, int]:
        return {
            partition.partition: told.offset
            for partition, told in admin.list_group_offsets([group])[group].items()
        }

    send(topic, 4)
    group = topic + "-group"
    reader = stream(
        subscribe=topic, startingOffsets="earliest", commitOffsets="true", **{"kafka.group.id": group}
    )
    start = reader.initialOffset()
    end = advance(reader, start)
    assert lag_seen_from_outside(group) == {0: 0, 1: 0}
    assert len(rows(reader, start, end)) == 4
    assert lag_seen_from_outside(group) == {0: 0, 1: 0}  # reading alone commits nothing
    reader.commit(end)
    assert lag_seen_from_outside(group) == {0: 4, 1: 0}
    send(topic, 1)
    after = advance(reader, end)
    assert advance(reader, after) == after  # Spark asks for more: what came before is processed
    assert lag_seen_from_outside(group) == {0: 5, 1: 0}


def test_a_group_with_members_of_its_own_is_no_place_for_offsets(
    stream: Any, cluster: fairlead_kafka.Cluster, topic: str
) -> None:
    reader = stream(
        subscribe=topic, startingOffsets="earliest", commitOffsets="true", **{"kafka.group.id": topic}
    )
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic}
    ) as member:
        member.subscribe([topic])
        while not member.assignment():
            member.poll(0.1)
        with pytest.raises(
            fairlead_kafka.BrokerError,
            match=f"commitOffsets: group {topic} did not take them; it has members of its own",
        ):
            advance(reader, reader.initialOffset())


def test_a_group_made_of_a_prefix_is_the_same_after_a_restart(stream: Any, topic: str) -> None:
    def group(**options: str) -> str:
        return str(
            parse_read_options({"kafka.bootstrap.servers": "b:1", "groupidprefix": "p", **options}).client[
                "group.id"
            ]
        )

    assert group(subscribe=topic) == group(subscribe=topic)
    assert group(subscribe=topic).startswith("p-")
    assert group(subscribe=topic) != group(subscribe="other")
    with pytest.raises(fairlead_kafka.ConfigError, match="commitOffsets: to which group"):
        stream(subscribe=topic, commitOffsets="true")
