"""The broker in virtual time, beside a client machine: the faults have the throughput that KIP-794 measured, and restarts lose nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.broker import Broker, Controller, Faults, StartBroker
from fairlead_kafka.core.effects import Connect, Effect, Write
from fairlead_kafka.core.events import Connected, Event, Received
from fairlead_kafka.runtime import Completion, VirtualHost
from fairlead_kafka.wire import ApiKey, FrameReader, Message, encode_request
from tests.support.broker_driver import batch, produce_fields

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
    """16 KB every 20 ms is the 0.8 MB/s of KIP-794's slow broker; a mere delay would let five requests in flight through at once."""
    assert answers_in_a_second(faults) == expected
