"""The broker in virtual time, beside a client machine: the faults have the throughput that KIP-794
measured, and restarts lose nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.limits import OUTBOUND_MAX_BYTES
from fairlead_kafka.broker import Broker, Controller, Faults, StartBroker
from fairlead_kafka.core.effects import Connect, Effect, Write
from fairlead_kafka.core.events import Connected, Event, Received, Submitted
from fairlead_kafka.runtime import Completion, VirtualHost
from fairlead_kafka.wire import ApiKey, FrameReader, Message, encode_request
from tests.support.broker_driver import batch, fetch_fields, produce_fields

IN_FLIGHT = 5


class SteadyProducer:
    """A machine that keeps five Produce requests of one batch each under way."""

    def __init__(self, port: int) -> None:
        self.answers = 0
        self._port = port
        self._events: list[Event] = []
        self._frames = FrameReader()
        self._connected = False
        fields = produce_fields({("events", 0): batch([b"x" * 1000] * 16)})
        self._request = encode_request(ApiKey.PRODUCE, 9, 1, None, Message(**fields))

    def receive(self, event: Event) -> None:
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        effects: list[Effect] = []
        if not self._connected:
            self._connected = True
            effects.append(Connect(1, "127.0.0.1", self._port))
        events, self._events = self._events, []
        for event in events:
            due = IN_FLIGHT if isinstance(event, Connected) else 0
            if isinstance(event, Received):
                due = len(self._frames.feed(event.data))
                self.answers += due
            effects.extend(Write(1, self._request) for _ in range(due))
        return effects

    def deadline_ns(self) -> int | None:
        return None


def answers_in_a_second(faults: Faults) -> int:
    host = VirtualHost(latency_ms=0)
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(1))
    broker = Broker(0, controller, "/data", random.Random(2), port=9092)
    broker.faults = faults
    started = Completion()
    host.submit(host.add(broker), StartBroker(started))
    assert host.run_until(started.done)
    controller.create_topic("events", 1)
    client = SteadyProducer(9092)
    host.add(client)
    host.advance(1000)
    host.close()
    assert broker.logs.error is None
    return client.answers


@pytest.mark.parametrize(
    ("faults", "expected"),
    [(Faults(produce_service_time_ms=20), 50), (Faults(latency_ms=20), 50 * IN_FLIGHT), (Faults(20, 20), 49)],
    ids=["serial", "concurrent", "both"],
)
def test_a_second_of_a_slow_broker(faults: Faults, expected: int) -> None:
    """16 KB every 20 ms is the 0.8 MB/s of KIP-794's slow broker; a mere delay would let five
    requests in flight through at once."""
    assert answers_in_a_second(faults) == expected


class Reader:
    """A machine that asks twenty times for all there is, at once."""

    def __init__(self, port: int) -> None:
        self.answers = 0
        self._port = port
        self._events: list[Event] = []
        self._frames = FrameReader()
        wanted = fetch_fields({("events", 0): 0}, max_bytes=3_000_000, partition_max_bytes=3_000_000)
        self._requests = [
            buffer
            for number in range(20)
            for buffer in encode_request(ApiKey.FETCH, 12, number, None, Message(**wanted))
        ]

    def receive(self, event: Event) -> None:
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        effects: list[Effect] = []
        events, self._events = self._events, []
        for event in events:
            if isinstance(event, Submitted):
                effects.append(Connect(1, "127.0.0.1", self._port))
            elif isinstance(event, Connected):
                effects.append(Write(1, self._requests))
            elif isinstance(event, Received):
                self.answers += len(self._frames.feed(event.data))
        return effects

    def deadline_ns(self) -> int | None:
        return None


def test_a_reader_that_does_not_read_costs_a_broker_one_answer() -> None:
    host = VirtualHost(latency_ms=1)
    controller = Controller(BROKER_CONFIGS.parse("broker", {}), random.Random(1))
    broker = Broker(0, controller, "/data", random.Random(2), port=9092)
    handle, started = host.add(broker), Completion()
    host.submit(handle, StartBroker(started))
    host.run_until(started.done)
    controller.create_topic("events", 1)
    writer = SteadyProducer(9092)
    writer_handle = host.add(writer)
    host.run_until(lambda: writer.answers >= 200)
    host.remove(writer_handle)
    reader = Reader(9092)
    reader_handle = host.add(reader)
    link = host.link(reader_handle, handle)
    link.stop_reading(reader_handle)
    host.submit(reader_handle, None)
    host.advance(10_000)
    broker.clients.check()
    assert reader.answers == 0
    assert OUTBOUND_MAX_BYTES < broker.clients.outbound_bytes <= OUTBOUND_MAX_BYTES + 3_000_000
    link.read_on(reader_handle)
    host.run_until(lambda: reader.answers == 20)
    broker.clients.check()
    assert broker.clients.outbound_bytes == 0
