"""Producers of a broker that throttles them: nothing is sent meanwhile, nothing is lost, and
metrics say so."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import TimedOut
from tests.support.late_loads import LATE, log_bytes, warm
from tests.support.metrics import metric
from tests.support.producer_rig import Rig


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 2)
    return made


def test_nothing_is_sent_until_the_time_is_over_and_metrics_show_it(rig: Rig) -> None:
    producer = rig.producer(linger_ms=0)
    rig.cluster.brokers[0].throttle_ms = 400
    producer.send("t", b"first", partition=0).result(5)
    at_ms = rig.host.now_ms()
    rig.cluster.brokers[0].throttle_ms = 100
    ack = producer.send("t", b"second", partition=0)
    elsewhere = producer.send("t", b"elsewhere", partition=1)
    elsewhere.result(5)
    assert rig.host.now_ms() - at_ms < 100
    ack.result(5)
    assert rig.host.now_ms() - at_ms == pytest.approx(400, abs=2)
    assert metric(producer, "produce-throttle-time-max") == 400
    assert metric(producer, "produce-throttle-time-avg") == pytest.approx(500 / 3)


def test_the_time_for_delivery_goes_on(rig: Rig) -> None:
    producer = rig.producer(linger_ms=0, delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    rig.cluster.brokers[0].throttle_ms = 60_000
    producer.send("t", b"first", partition=0).result(5)
    at_ms = rig.host.now_ms()
    with pytest.raises(TimedOut) as caught:
        producer.send("t", b"second", partition=0).result(10)
    assert rig.host.now_ms() - at_ms == pytest.approx(2_000, abs=20)
    assert "broker 0, asked to be left alone, for a quota of this client is used up" in str(caught.value)


def test_a_late_producer_waits_for_a_throttled_broker_as_for_one_without_room_and_no_longer(rig: Rig) -> None:
    producer = rig.producer(LATE)
    warm(rig, producer, 2)
    rig.cluster.brokers[0].throttle_ms = 5_000
    producer.send("t", b"x", partition=0).result(5)
    rig.cluster.brokers[0].throttle_ms = 0
    before = log_bytes(rig.cluster)
    for _ in range(2_000):
        producer.send("t", b"x" * 1_000)
        rig.host.advance(1)
    taken = [now - then for now, then in zip(log_bytes(rig.cluster), before, strict=True)]
    assert taken[0] == 0
    assert taken[1] > 1_900_000, "the other one takes what comes"
    rig.host.advance(3_100)
    before = log_bytes(rig.cluster)
    for _ in range(2_000):
        producer.send("t", b"x" * 1_000)
        rig.host.advance(1)
    producer.flush()
    taken = [now - then for now, then in zip(log_bytes(rig.cluster), before, strict=True)]
    assert taken[0] == pytest.approx(taken[1], rel=0.05), "it is level with the other again"
