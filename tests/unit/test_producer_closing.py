"""Ends of a producer: closed once, twice, interrupted, dropped; what could not be delivered is
said."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.client.producer_async import AsyncProducer
from tests.support.metrics import memory_is_free
from tests.support.producer_brokers import IGNORE
from tests.support.producer_rig import Rig

NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 2)
    return made


def test_close_returns_what_was_given_up_and_nothing_as_a_rule(rig: Rig) -> None:
    producer = rig.producer()
    producer.send("t", b"v")
    assert producer.close() == {}
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = rig.producer()
    for topic in ("t", "t", "nowhere"):
        producer.send(topic, b"v")
    assert producer.close(timeout_s=0.2) == {"t": 2, "nowhere": 1}
    assert memory_is_free(producer)


def test_close_ends_with_the_delivery_timeout_where_no_request_is_answered(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: IGNORE
    producer = rig.producer(request_timeout_ms=400, delivery_timeout_ms=700, linger_ms=0)
    ack, begun_ns = producer.send("t", b"x"), rig.host.now_ns()
    assert producer.close() == {}
    assert rig.host.now_ns() - begun_ns <= 701_000_000
    with pytest.raises(TimedOut, match=r"delivery\.timeout\.ms=700"):
        ack.result(0)
    assert memory_is_free(producer)


def test_a_second_close_waits_for_the_first_and_both_say_the_same(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = rig.producer()
    ack = producer.send("t", b"v")
    first = producer.core.close_steps(None)
    waits_for = next(first)
    assert not waits_for.completion.done()
    assert producer.close(timeout_s=1) == {"t": 1}  # it cuts the time of the first one short
    assert waits_for.completion.done()
    next_wait = first.send(None)
    assert next_wait.completion.done()
    with pytest.raises(StopIteration) as end:
        first.send(None)
    assert end.value.value == {"t": 1}
    with pytest.raises(TimedOut, match=r"close waited for 1 s"):
        ack.result(0)


def test_a_second_close_in_time_lets_the_first_deliver(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 400
    producer = rig.producer(linger_ms=0)
    ack = producer.send("t", b"v")
    first = producer.core.close_steps(None)
    next(first)
    assert producer.close(timeout_s=5) == {}
    assert ack.result(0).offset == 0


def test_a_close_that_is_interrupted_gives_up_and_logs_what(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = rig.producer()
    for _ in range(3):
        producer.send("t", b"v")
    steps = producer.core.close_steps(None)
    next(steps)
    with pytest.raises(KeyboardInterrupt):
        steps.throw(KeyboardInterrupt())
    assert producer.close() == {"t": 3}
    assert "3 of topic 't'" in caplog.text


def test_after_an_interrupt_a_block_goes_on_while_anything_is_delivered(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 700
    acks: list[Any] = []
    producer = rig.producer(linger_ms=0, max_in_flight_requests_per_connection=1)
    for number in range(8):
        acks.append(producer.send("t", b"%d" % number, partition=0))
        rig.host.advance(2)
    producer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert all(ack.result(0).offset == number for number, ack in enumerate(acks))


def test_after_an_interrupt_a_block_gives_up_once_nothing_moves(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    producer = rig.producer()
    producer.send("t", b"good", partition=0).result()
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    stuck = producer.send("t", b"stuck", partition=0)
    before = rig.host.now_ns()
    producer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert rig.host.now_ns() - before == 1_000_000_000
    with pytest.raises(TimedOut, match=r"interrupted, and then nothing came for 1 s"):
        stuck.result(0)
    assert "1 of topic 't'" in caplog.text


def test_a_producer_that_is_dropped_delivers_what_it_was_given(rig: Rig) -> None:
    acks = [rig.producer(linger_ms=10_000).send("t", b"%d" % number) for number in range(2)]
    gc.collect()
    rig.host.run_until(lambda: all(ack.done() for ack in acks), 1000)
    assert [type(ack.result(0).offset) for ack in acks] == [int, int]


def test_a_producer_at_the_end_of_the_interpreter_gets_a_while_and_says_so(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    producer = rig.producer(linger_ms=60_000)
    ack = producer.send("t", b"v")
    producer.core.exit(rig.host.now_ns() + 10**9)
    assert ack.result(0).offset == 0
    assert "a producer was not closed; 1 record gets" in caplog.text
    caplog.clear()
    producer.core.exit(rig.host.now_ns())
    silent = rig.producer()
    silent.core.exit(rig.host.now_ns())
    assert not caplog.records


def test_what_is_left_at_the_end_of_the_interpreter_is_named(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = rig.producer()
    producer.send("t", b"v")
    producer.core.exit(rig.host.now_ns() + 10**8)
    rig.host.advance(0)
    assert "undelivered records: 1 of topic 't'" in caplog.text


def test_callbacks_of_a_loop_that_is_closed_are_dropped_with_one_line(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    called: list[Any] = []

    async def main() -> AsyncProducer:
        producer = AsyncProducer({"bootstrap.servers": rig.cluster.bootstrap}, opener=rig.opener)
        await producer.send("t", b"v", on_delivery=lambda *both: called.append(both))
        return producer

    producer = asyncio.run(main())
    with caplog.at_level(logging.WARNING):
        rig.host.advance(100)
    assert not called
    assert [record.exc_info for record in caplog.records] == [None]
    assert "event loop is closed" in caplog.text
    assert producer.metrics()["producer-metrics"]["record-delivered-total"] == 1


def test_partitions_for_takes_a_time_of_its_own(rig: Rig) -> None:
    producer = rig.producer(max_block_ms=60_000)
    before = rig.host.now_ns()
    with pytest.raises(TimedOut, match=r"'nowhere': no metadata within 0.25 s"):
        producer.partitions_for("nowhere", timeout_s=0.25)
    assert rig.host.now_ns() - before == 250_000_000
    assert [each.partition for each in producer.partitions_for("t", timeout_s=1)] == [0, 1]


def test_a_wait_in_a_callback_of_the_same_producer_is_refused(rig: Rig) -> None:
    producer = rig.producer(linger_ms=60_000)
    waiting = producer.send("t", b"w")
    (hosted,) = rig.opener.hosted
    hosted.inside = True
    for wait in (waiting.result, producer.flush, lambda: producer.partitions_for("t"), producer.close):
        with pytest.raises(UsageError, match=r"within a delivery callback would wait for itself"):
            wait()
    hosted.inside = False


def test_in_a_forked_process_handles_of_before_say_so(rig: Rig) -> None:
    producer = rig.producer(linger_ms=60_000)
    ack = producer.send("t", b"v")
    table = producer.send_table("t", pa.table({"value": [b"v"]}))
    producer.core._intake.forked()
    assert repr(ack) == "<Ack of topic 't', of another process>"
    assert repr(table) == "<TableAck of topic 't', of another process>"
    for wait in (ack.result, ack.done, table.result, table.done, lambda: producer.send("t", b"v")):
        with pytest.raises(UsageError, match=r"belongs to another process"):
            wait()
