"""A consumer whose ground moves: seeks while it fetches ahead, partitions that come and go, offsets
that are not there, odd sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.delivery_check import PARTITIONS, QUICK
from tests.support.waiting import PATIENCE_S, until

ROWS = 6_000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=3, config={"num.partitions": PARTITIONS}) as cluster:
        yield cluster.bootstrap_servers


def partitions(topic: str, count: int = PARTITIONS) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def fill(servers: str, topic: str, rows: int, count: int = PARTITIONS) -> None:
    """Row n goes to partition n % count, in small batches."""
    numbers = pa.array([row % count for row in range(rows)], pa.int32())
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "batch.size": 1_000}) as producer:
        producer.send_table(
            topic, pa.table({"value": [b"%06d" % row for row in range(rows)], "partition": numbers})
        ).result(PATIENCE_S)


def consumer(servers: str, **config: object) -> fairlead_kafka.Consumer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "auto.offset.reset": "earliest", **QUICK, **settings}
    )


def poll_often(reader: fairlead_kafka.Consumer) -> None:
    """Poll until it raises."""
    until(lambda: reader.poll(0.5))


class Tracker:
    """Knows which offset each partition must give next, and which are paused."""

    def __init__(self, numbers: list[TopicPartition]) -> None:
        self.expected = dict.fromkeys(numbers, 0)
        self.paused: set[TopicPartition] = set()
        self.seen = 0

    def take(self, topic: str, found: list[tuple[int, int]]) -> None:
        for number, offset in found:
            partition = TopicPartition(topic, number)
            assert partition not in self.paused
            assert offset == self.expected[partition]
            self.expected[partition] += 1
            self.seen += 1


@pytest.mark.parametrize("seed", range(3))
def test_seeks_pauses_and_assignments_at_any_moment_skip_and_repeat_nothing(servers: str, seed: int) -> None:
    rng, topic = random.Random(seed), f"wandering-{seed}"
    fill(servers, topic, ROWS)
    numbers = partitions(topic)
    with consumer(servers, fetch_max_bytes=20_000, max_partition_fetch_bytes=3_000) as reader:
        reader.assign(numbers)
        track = Tracker(numbers)
        for _ in range(250):
            one, what = rng.choice(numbers), rng.random()
            if what < 0.2:
                track.expected[one] = rng.randrange(ROWS // PARTITIONS)
                reader.seek(one, track.expected[one])
            elif what < 0.25:
                reader.pause([one])
                track.paused.add(one)
            elif what < 0.35:
                reader.resume([one])
                track.paused.discard(one)
            elif what < 0.38:
                reader.seek_to_beginning([one])
                track.expected[one] = 0
            elif what < 0.4:
                reader.assign([])
                reader.assign(numbers)
                track = Tracker(numbers)
            elif what < 0.68:
                records = reader.poll(0.02, max_records=rng.choice([None, 1, 7]))
                track.take(topic, [(record.partition, record.offset) for record in records])
            elif what < 0.95:
                table = reader.poll_table(0.02, max_records=rng.choice([None, None, 5]))
                track.take(
                    topic, list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
                )
            else:
                assert reader.position(one) == track.expected[one]
        reader.resume(numbers)
        reader.seek_to_beginning()
        track = Tracker(numbers)
        while track.seen < ROWS:
            table = reader.poll_table(PATIENCE_S)
            assert table.num_rows
            track.take(
                topic, list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
            )


def test_a_partition_added_while_reading_is_read_once_assigned(servers: str) -> None:
    fill(servers, "growing", 30)
    with (
        consumer(servers) as reader,
        fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin,
        fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer,
    ):
        reader.assign(partitions("growing"))
        count = 0
        while count < 30:
            count += len(reader.poll(PATIENCE_S))
        admin.create_partitions({"growing": fairlead_kafka.NewPartitions(5)})
        reader.assign(partitions("growing", 5))
        assert producer.send("growing", b"new", partition=4).result(PATIENCE_S).offset == 0
        found = reader.poll(PATIENCE_S)
        assert [(record.partition, record.value) for record in found] == [(4, b"new")]


def test_a_topic_deleted_while_reading_is_told_and_read_anew_once_it_is_there_again(servers: str) -> None:
    fill(servers, "passing", 30)
    with (
        consumer(servers, allow_auto_create_topics="false") as reader,
        fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin,
    ):
        reader.assign(partitions("passing"))
        count = 0
        while count < 30:
            count += len(reader.poll(PATIENCE_S))
        admin.delete_topics(["passing"])
        with pytest.raises(fairlead_kafka.BrokerError, match=r"UNKNOWN_TOPIC.*passing"):
            poll_often(reader)
        admin.create_topics([fairlead_kafka.NewTopic("passing", partitions=PARTITIONS)])
        fill(servers, "passing", 9)
        reader.seek_to_beginning()
        values: list[bytes | None] = []

        def all_are_here() -> bool:
            with suppress(fairlead_kafka.BrokerError):  # it has not heard of the new one yet
                values.extend(record.value for record in reader.poll(0.5))
            return len(values) >= 9

        until(all_are_here)
        assert sorted(value or b"" for value in values) == [b"%06d" % row for row in range(9)]


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_an_offset_out_of_range_resets_or_is_told_and_other_partitions_go_on(
    servers: str, reset: str
) -> None:
    topic = f"range-{reset}"
    fill(servers, topic, 300)
    far, near = partitions(topic)[:2]
    with (
        consumer(servers, auto_offset_reset=reset) as reader,
        fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer,
    ):
        reader.assign([far, near])
        reader.seek(far, 5_000)
        reader.seek(near, 90)
        found: dict[int, list[int]] = {0: [], 1: []}
        errors: list[fairlead_kafka.FairleadError] = []
        expected = {"earliest": 100, "latest": 1, "none": 0}[reset]
        sent = False

        def told() -> bool:
            nonlocal sent
            try:
                for record in reader.poll(0.25):
                    found[record.partition].append(record.offset)
            except fairlead_kafka.BrokerError as error:
                errors.append(error)
            if reset == "latest" and not sent and reader.position(far) == 100:
                sent = producer.send(topic, b"late", partition=0).result(PATIENCE_S).offset == 100
            return len(found[1]) == 10 and len(found[0]) == expected and (bool(errors) or reset != "none")

        until(told)
        assert found[1] == list(range(90, 100))
        assert found[0] == {"earliest": list(range(100)), "latest": [100], "none": []}[reset]
        if reset == "none":
            assert "offset 5000 of range-none-0" in str(errors[0])
            reader.seek(far, 40)
            assert reader.poll(PATIENCE_S)[0].offset == 40


def test_records_larger_than_the_fetch_sizes_come_one_by_one(servers: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for number in range(5):
            producer.send("broad", bytes([number]) * 300_000, partition=0)
    with consumer(servers, max_partition_fetch_bytes=1_000, fetch_max_bytes=2_000) as reader:
        reader.assign(partitions("broad"))
        records: list[fairlead_kafka.Record] = []
        while len(records) < 5:
            more = reader.poll(PATIENCE_S)
            assert more
            records += more
    assert [record.value for record in records] == [bytes([number]) * 300_000 for number in range(5)]


def test_empty_partitions_give_nothing_and_hold_up_nobody(servers: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        producer.send("sparse", b"one", partition=1).result(PATIENCE_S)
    with consumer(servers) as reader:
        reader.assign(partitions("sparse"))
        assert [(record.partition, record.offset) for record in reader.poll(PATIENCE_S)] == [(1, 0)]
        assert reader.poll(0.05) == []
        assert reader.poll_table(0.05).num_rows == 0
        assert reader.beginning_offsets(partitions("sparse")) == dict.fromkeys(partitions("sparse"), 0)
        assert [reader.position(partition) for partition in partitions("sparse")] == [0, 1, 0]


def test_a_thousand_partitions_are_written_and_read_whole(servers: str) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic("wide", partitions=1_000)])
    fill(servers, "wide", 5_000, 1_000)
    with consumer(servers) as reader:
        reader.assign(partitions("wide", 1_000))
        values: list[bytes] = []
        while len(values) < 5_000:
            table = reader.poll_table(PATIENCE_S)
            assert table.num_rows
            values += table["value"].to_pylist()
    assert sorted(values) == [b"%06d" % row for row in range(5_000)]
