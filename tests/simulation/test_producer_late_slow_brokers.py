"""Policy `late` beside a slow broker: one that serves one request after another, or is far away."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.support.late_loads import LATE, log_bytes, paced, warm
from tests.support.producer_rig import Rig


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=3)
    made.cluster.create("t", 3)
    return made


def test_a_broker_that_serves_one_at_a_time_gets_its_part_and_sets_no_pace(rig: Rig) -> None:
    """KIP-794's own test, for two seconds: even by bytes, and far from the 139 ms that adaptive
    takes at p99.

    Most that is late is so in the first 250 ms, while the window is found.
    """
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer(LATE)
    warm(rig, producer)
    found = paced(rig, producer, 2048, 500)
    took = sorted(paced(rig, producer, 2048, 1500))
    sizes = log_bytes(rig.cluster)
    assert max(sizes) - min(sizes) <= 3 * 16_384
    assert max(found) < 120
    assert took[int(0.99 * len(took))] < 32
    assert sum(took) / len(took) < 11
    assert rig.machine(producer).nodes.limit(0) == 1
    assert rig.machine(producer).nodes.limit(1) == 5


def test_a_slow_broker_gets_the_newest_records_and_each_partition_stays_in_order(rig: Rig) -> None:
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer(LATE)
    warm(rig, producer)
    slow_ms: list[float] = []  # of those that went to broker 0

    def on_delivery(at_ns: int) -> Any:
        return lambda metadata, error: metadata.partition or slow_ms.append((rig.host.now_ns() - at_ns) / 1e6)

    values = [b"%06d" % number + b"x" * 506 for number in range(2000)]
    for value in values:
        producer.send("t", value, on_delivery=on_delivery(rig.host.now_ns()))
        rig.host.advance(0.5)
        if value == values[600]:
            slow_ms.clear()  # the window had to be found first
    producer.flush()
    for partition in rig.cluster.values("t"):
        mine = [value for value in partition if len(value) == len(values[0])]
        assert mine == sorted(mine)
    # A third of what comes in 20 ms comes in the last 7 of them. What came before would have waited
    # for up to 20, and then for the answer.
    assert sorted(slow_ms)[int(0.95 * len(slow_ms))] < 30


def test_it_is_so_with_several_partitions_on_each_broker(rig: Rig) -> None:
    partitions = 12
    rig.cluster.create("t", partitions)
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer(LATE)
    warm(rig, producer, partitions)
    paced(rig, producer, 4096, 500)
    took = sorted(paced(rig, producer, 4096, 1000))
    assert took[int(0.99 * len(took))] < 35
    assert took[len(took) // 2] < 2


def test_a_skew_without_bound_lets_brokers_take_what_they_can(rig: Rig) -> None:
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer(LATE, partitioner_max_skew_bytes=2**63 - 1)
    warm(rig, producer)
    took = sorted(paced(rig, producer, 1000, 1000))
    assert took[int(0.99 * len(took))] < 22
    sizes = log_bytes(rig.cluster)
    assert 6 * sizes[0] < min(sizes[1:])


def test_a_request_that_bound_batches_have_filled_takes_none_of_the_parts_of_a_portion(rig: Rig) -> None:
    """What goes to partition 0 by its number fills each request to broker 0; the other three would
    have a part each."""
    rig.cluster.create("t", 12)
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer({**LATE, "batch.size": 4000}, max_request_size=4100)
    warm(rig, producer, 12)
    for number in range(4000):
        producer.send("t", b"x" * 200, partition=None if number % 4 else 0)
        if number % 4 == 0:
            rig.host.advance(0.5)
    producer.flush()
    assert sum(len(partition) for partition in rig.cluster.values("t")) >= 4000


@pytest.mark.parametrize("partitions", [3, 12])
def test_a_broker_that_comes_back_late_or_early_keeps_nobody_waiting(rig: Rig, partitions: int) -> None:
    """The others take their parts of what comes meanwhile."""
    rig.cluster.create("t", partitions)
    brokers, rng = rig.cluster.brokers, Random(1)
    brokers[0].service_ms, brokers[1].service_ms, brokers[2].service_ms = 20, 0.4, 0.4
    producer = rig.producer(LATE)
    warm(rig, producer, partitions)
    paced(rig, producer, 4096, 500)
    began = [sum(log_bytes(rig.cluster)[broker::3]) for broker in range(3)]
    took = sorted(
        paced(
            rig,
            producer,
            4096,
            1000,
            before=lambda: setattr(brokers[0], "service_ms", rng.choice([16, 20, 24])),
        )
    )
    sizes = [sum(log_bytes(rig.cluster)[broker::3]) - began[broker] for broker in range(3)]
    assert max(sizes) - min(sizes) <= 2 * 16_384
    assert took[len(took) // 2] < 2
    assert took[int(0.99 * len(took))] < 42
    assert sum(took) / len(took) < 10


@pytest.mark.parametrize("skew_bytes", [0, 16_384])
def test_nothing_is_kept_for_a_broker_that_could_take_it_and_may_not(rig: Rig, skew_bytes: int) -> None:
    """After a burst nothing is on its way to anybody, and what then comes is sent at once, to
    whomever."""
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer(LATE, partitioner_max_skew_bytes=skew_bytes)
    warm(rig, producer)
    paced(rig, producer, 20_000, 310)
    took = []
    for _ in range(100):
        rig.host.advance(100)  # nothing is on its way to anybody
        took.append(paced(rig, producer, 1000, 1))
    rig.host.advance(100)
    assert max(one for [one] in took) < 25


def test_with_very_many_brokers_a_slow_one_takes_a_record_at_least() -> None:
    """No skew at all: its part of what waits is less than a record, and it gets one all the
    same."""
    rig = Rig(brokers=30)
    rig.cluster.create("t", 30)
    for broker in rig.cluster.brokers:
        broker.service_ms = 0.4
    rig.cluster.brokers[0].service_ms = 20
    producer = rig.producer(LATE, partitioner_max_skew_bytes=0)
    warm(rig, producer, 30)
    took = paced(rig, producer, 1000, 1000)
    rig.host.advance(100)
    assert len(took) == 1000
    assert min(log_bytes(rig.cluster)) > 0
    assert max(took) < 100


def test_what_others_may_take_lingers_though_what_is_kept_has_lingered_long_ago(rig: Rig) -> None:
    """Otherwise each record that comes while something is kept leaves by itself: 347 requests in
    this second instead of 283."""
    (
        rig.cluster.brokers[0].service_ms,
        rig.cluster.brokers[1].service_ms,
        rig.cluster.brokers[2].service_ms,
    ) = 20, 0.4, 0.4
    producer = rig.producer({**LATE, "linger.ms": 5})
    warm(rig, producer)
    paced(rig, producer, 4096, 500)
    rig.cluster.produce_requests.clear()
    took = sorted(paced(rig, producer, 4096, 1000))
    assert len(rig.cluster.produce_requests) < 320
    assert took[int(0.99 * len(took))] < 36
