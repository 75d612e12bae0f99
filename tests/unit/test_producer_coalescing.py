"""Full batches of a partition that wait leave as one (`batch.max.size`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.producer.tuning import GROWTH_BYTES
from tests.support.producer_brokers import FakeCluster
from tests.support.producer_rig import Rig

RECORDS_PER_BATCH = 10
SMALL = {
    "batch.size": 61 + 14 * RECORDS_PER_BATCH,
    "linger.ms": 0,
    "max.in.flight.requests.per.connection": 1,
}
"""Batches of ten of `send`'s records, one request at a time."""
BATCH_BYTES = SMALL["batch.size"] - 61
GATHERED_BYTES = BATCH_BYTES + GROWTH_BYTES * RECORDS_PER_BATCH
"""What one of them counts for in a batch of several."""


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 2)
    return made


def warm(rig: Rig, producer: Any) -> None:
    """The first batch of each partition, which goes alone, is behind us, and a request is under way
    that takes 20 ms."""
    for partition in (0, 1):
        producer.send("t", b"warm up", partition=partition)
    rig.host.advance(100)
    rig.cluster.brokers[0].service_ms = 20
    producer.send("t", b"warm up", partition=0)
    rig.host.advance(11)
    rig.cluster.produce_requests.clear()


def send(producer: Any, count: int, partition: int = 0) -> list[Any]:
    return [producer.send("t", b"%06d" % number, partition=partition) for number in range(count)]


def counts(rig: Rig) -> list[list[tuple[int, int]]]:
    """Of each request: partitions with the records of their batch."""
    return [
        [(partition, header.count) for _, partition, header in request]
        for request in rig.cluster.produce_requests
    ]


def values(cluster: FakeCluster, partition: int = 0) -> list[bytes | None]:
    return [value for value in cluster.values("t")[partition] if value != b"warm up"]


def test_full_batches_that_wait_leave_as_one_and_what_is_not_full_goes_on_filling(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "linger.ms": 100})
    warm(rig, producer)
    rig.host.advance(200)
    rig.cluster.produce_requests.clear()
    send(producer, 35)
    rig.host.advance(20)
    assert counts(rig) == [[(0, 30)]]
    producer.flush()
    assert counts(rig) == [[(0, 30)], [(0, 5)]]
    assert values(rig.cluster) == [b"%06d" % number for number in range(35)]


def test_with_batch_max_size_up_to_batch_size_each_leaves_by_itself(rig: Rig) -> None:
    for most in (0, SMALL["batch.size"]):
        rig.cluster.brokers[0].service_ms = 0
        producer = rig.producer({**SMALL, "batch.max.size": most})
        warm(rig, producer)
        send(producer, 30)
        producer.flush()
        assert counts(rig) == [[(0, 10)]] * 3


def test_a_batch_is_gathered_up_to_batch_max_size(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "batch.max.size": 61 + 2 * GATHERED_BYTES})
    warm(rig, producer)
    send(producer, 50)
    producer.flush()
    assert counts(rig) == [[(0, 20)], [(0, 20)], [(0, 10)]]


@pytest.mark.parametrize("policy", ["adaptive", "late"])
def test_records_that_take_more_in_a_batch_of_many_do_not_make_it_too_large(rig: Rig, policy: str) -> None:
    rig.cluster.max_message_bytes = 1_048_588  # Kafka's default
    producer = rig.producer(
        {**SMALL, "batch.size": 16_384, "max.request.size": 8 << 20, "partitioner.class": policy}
    )
    warm(rig, producer)
    for _ in range(
        60
    ):  # Stamps seconds apart, of which the delta takes two bytes, and more than 8192 records.
        stamps = pa.array([1_000 * (number % 6) for number in range(2_000)], pa.timestamp("ms"))
        producer.send_table(
            "t", pa.table({"value": pa.array([b"v" * 20] * 2_000, pa.binary()), "timestamp": stamps})
        )
    producer.flush()
    assert max(count for request in counts(rig) for _, count in request) > 20_000
    assert producer.metrics()["producer-metrics"]["batch-split-total"] == 0


def test_every_partition_of_a_broker_finds_room_in_its_request(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "max.request.size": 2 * (61 + 3 * GATHERED_BYTES)})
    warm(rig, producer)
    send(producer, 100, partition=0)
    send(producer, 40, partition=1)
    producer.flush()
    assert counts(rig)[:2] == [[(0, 30), (1, 30)], [(0, 30), (1, 10)]]


def test_a_batch_for_each_record_stays_that(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "batch.size": 0})
    warm(rig, producer)
    send(producer, 3)
    producer.flush()
    assert counts(rig) == [[(0, 1)]] * 3


def test_what_was_sent_before_is_repeated_as_it_was(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "retry.backoff.ms": 1, "retry.backoff.max.ms": 1})
    warm(rig, producer)
    refusals = iter([7, None])  # REQUEST_TIMED_OUT
    rig.cluster.on_produce = lambda node_id, topic, partition, header: next(refusals, None)
    send(producer, 10)
    rig.host.advance(25)
    send(producer, 20)
    producer.flush()
    assert counts(rig) == [[(0, 10)], [(0, 10)], [(0, 20)]]
    assert values(rig.cluster) == [b"%06d" % number for number in [*range(10), *range(20)]]


def test_a_topic_with_smaller_batches_is_learnt_and_nothing_is_lost(rig: Rig) -> None:
    rig.cluster.max_message_bytes = 61 + 3 * BATCH_BYTES
    producer = rig.producer(SMALL)
    warm(rig, producer)
    acks = send(producer, 100)
    producer.flush()
    assert values(rig.cluster) == [b"%06d" % number for number in range(100)]
    assert sorted(ack.result().offset for ack in acks) == list(range(2, 102))
    later = len(counts(rig))
    rig.cluster.brokers[0].service_ms = 20
    producer.send("t", b"warm up", partition=0)
    rig.host.advance(1)
    send(producer, 400)
    producer.flush()
    split = producer.metrics()["producer-metrics"]["batch-split-total"]
    assert split <= 3
    assert all(count <= 30 for request in counts(rig)[later + 2 :] for _, count in request)


def test_stretches_of_a_table_that_do_not_touch_are_gathered_in_their_order(rig: Rig) -> None:
    """Under a policy that gives turns out one by one, so that a batch is gathered of several
    stretches of one table."""
    producer = rig.producer({**SMALL, "partitioner.class": "uniform.kafka"})
    warm(rig, producer)
    rows = [b"%06d" % number for number in range(400)]
    producer.send_table("t", pa.table({"value": pa.array(rows, pa.binary())}))
    producer.flush()
    assert sorted(values(rig.cluster, 0) + values(rig.cluster, 1)) == rows  # type: ignore[type-var]
    assert max(count for request in counts(rig) for _, count in request) > RECORDS_PER_BATCH
    assert all(
        later > earlier
        for part in (0, 1)
        for earlier, later in zip(values(rig.cluster, part), values(rig.cluster, part)[1:], strict=False)
    )


def table_of(count: int, size_bytes: int = 6) -> pa.Table:
    return pa.table(
        {"value": pa.array([b"%0*d" % (size_bytes, number) for number in range(count)], pa.binary())}
    )


@pytest.mark.parametrize("policy", ["uniform", "adaptive"])
def test_a_table_goes_out_in_a_few_batches_of_one_size_that_do_not_linger(rig: Rig, policy: str) -> None:
    producer = rig.producer({**SMALL, "partitioner.class": policy, "linger.ms": 1000})
    warm(rig, producer)
    rig.host.advance(2000)
    producer.send_table("t", table_of(1000))
    rig.host.advance(21)
    (sent,) = counts(rig)[-1:]
    assert dict(sent) == pytest.approx({0: 500, 1: 500}, abs=RECORDS_PER_BATCH)
    assert sum(count for _, count in sent) == 1000


def test_batches_of_a_table_are_cut_to_a_portion_of_a_request(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "partitioner.class": "uniform", "max.request.size": 2 * 4000})
    warm(rig, producer)
    producer.send_table("t", table_of(1500))
    producer.flush()
    of_the_table = [count for request in counts(rig) for _, count in request if count > 1]
    quota = (4000 - 61) // (14 + GROWTH_BYTES)
    assert sum(of_the_table) == 1500
    assert max(of_the_table) <= quota


def test_what_an_open_batch_takes_goes_first_and_it_is_closed(rig: Rig) -> None:
    """A keyed record waits to be joined; of the table it takes what fits, and goes with it."""
    producer = rig.producer(
        {**SMALL, "partitioner.class": "uniform", "linger.ms": 1000, "batch.max.size": 10_000}
    )
    warm(rig, producer)
    rig.host.advance(2000)
    rig.cluster.produce_requests.clear()
    (opened,) = send(producer, 1, partition=1)
    producer.send_table("t", table_of(1000))
    rig.host.advance(50)
    assert opened.result(timeout_s=0).offset == 1
    assert sum(count for request in counts(rig) for _, count in request) == 1001
    first, *of_the_table = values(rig.cluster, 1)
    assert first == b"000000"
    assert of_the_table == sorted(of_the_table)  # type: ignore[type-var]


def test_queues_are_compared_by_turns_not_by_batches(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "partitioner.class": "uniform"})
    warm(rig, producer)
    producer.send_table("t", table_of(1000))
    rig.host.advance(1)
    topic = rig.machine(producer).accumulator.topics["t"]
    assert list(topic.queued_batches) == pytest.approx([50, 50], abs=2)
    producer.flush()
    assert list(topic.queued_batches) == [0, 0]
