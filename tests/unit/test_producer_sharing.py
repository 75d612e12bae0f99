"""Batches that records bound already share with unbound ones, and requests that no batch makes too
large."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.producer.binding import shared
from tests.support.producer_rig import Rig

SIZES = st.integers(1, 2_000)


@given(st.integers(2, 2_000), SIZES, SIZES)
def test_a_batch_is_shared_and_nobody_gets_less_than_half_who_wants_it(
    limit: int, bound: int, unbound: int
) -> None:
    together = shared(limit, bound, unbound)
    assert sum(together) <= limit or together.unbound_bytes == 0
    assert sum(together) == min(bound + unbound, limit)
    assert together.bound_bytes >= min(bound, limit // 2)
    assert together.unbound_bytes >= min(unbound, limit // 2)


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 1)
    return made


def busy(rig: Rig, config: dict[str, Any]) -> Any:
    """A producer with one request under way that takes 20 ms, and one at a time allowed."""
    producer = rig.producer({"linger.ms": 0, "max.in.flight.requests.per.connection": 1, **config})
    producer.send("t", b"first", partition=0)
    rig.host.advance(50)
    rig.cluster.brokers[0].service_ms = 20
    producer.send("t", b"under way", partition=0)
    rig.host.advance(2)
    rig.cluster.produce_requests.clear()
    return producer


def batches(rig: Rig) -> list[list[int]]:
    """Records of each batch, by request."""
    return [[header.count for _, _, header in request] for request in rig.cluster.produce_requests]


def test_keyed_and_unkeyed_records_of_a_partition_are_one_batch(rig: Rig) -> None:
    producer = busy(rig, {"partitioner.class": "late"})
    for number in range(5):
        producer.send("t", b"u%d" % number)
        producer.send("t", b"k%d" % number, key=b"key")
    producer.flush()
    assert batches(rig) == [[10]]
    values = rig.cluster.values("t")[0][2:]
    assert values == [b"k%d" % number for number in range(5)] + [b"u%d" % number for number in range(5)]


@pytest.mark.parametrize("sizes", [(600, 20), (20, 600), (600, 600)])
def test_a_record_that_leaves_the_others_no_room_goes_by_itself(rig: Rig, sizes: tuple[int, int]) -> None:
    rig.cluster.max_message_bytes = 61 + 1_000
    producer = busy(rig, {"partitioner.class": "late", "batch.size": 161, "batch.max.size": 861})
    keyed, unkeyed = sizes
    for _ in range(3):
        producer.send("t", b"k" * keyed, key=b"key")
        producer.send("t", b"u" * unkeyed)
    producer.flush()
    assert sum(sum(request) for request in batches(rig)) == 6
    assert producer.metrics()["producer-metrics"]["batch-split-total"] == 0


@pytest.mark.parametrize("policy", ["adaptive", "late"])
def test_a_request_is_never_made_too_large_by_a_large_record(policy: str) -> None:
    rig = Rig(brokers=1)
    rig.cluster.create("t", 4)
    producer = busy(rig, {"partitioner.class": policy, "batch.size": 1_000, "max.request.size": 10_000})
    for number in range(40):
        producer.send(
            "t", b"x" * (6_000 if number % 3 else 200), partition=number % 4 if number % 2 else None
        )
    producer.flush()
    sizes = [sum(header.size_bytes for _, _, header in request) for request in rig.cluster.produce_requests]
    assert max(sizes) <= 10_000
