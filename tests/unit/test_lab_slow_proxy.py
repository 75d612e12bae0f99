"""The slow proxy in virtual time: what is late by how much, and that nothing is lost or
overtaken."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pytest

from fairlead_kafka.core.effects import Close, Connect, Effect, Listen, Write
from fairlead_kafka.core.events import Connected, Disconnected, Event, Received
from fairlead_kafka.lab.slow_proxy import OpenDoor, SetDelays, SlowProxy
from fairlead_kafka.runtime import Completion, Handle, VirtualHost
from fairlead_kafka.wire import ApiKey
from tests.support.hosts import Puppet

PRODUCE, METADATA = int(ApiKey.PRODUCE), int(ApiKey.METADATA)
BROKER_PORT = 9092


def frame(*numbers: int, form: str) -> bytes:
    body = struct.pack(form, *numbers)
    return struct.pack(">i", len(body)) + body


def request(api_key: int, correlation_id: int) -> bytes:
    return frame(api_key, 9, correlation_id, form=">hhi")


class Stage:
    """A client, the proxy, and a broker that answers each request at once with its correlation id,
    on a virtual host."""

    def __init__(self) -> None:
        self.host = VirtualHost(latency_ms=0, chunk_bytes=5)
        self.arrivals: list[tuple[int, float]] = []
        """(correlation id, ms) of each answer that reached the client."""
        self._answers = b""
        self.broker = self.host.add(Puppet(self._serve))
        self._asked: dict[int, bytes] = {}
        self.host.submit(self.broker, [Listen(1, "127.0.0.1", BROKER_PORT)])
        self.proxy = self.host.add(SlowProxy("127.0.0.1", BROKER_PORT))
        opened = Completion()
        self.host.submit(self.proxy, OpenDoor(opened))
        self.host.advance(0)
        self.puppet = Puppet(self._take)
        self.client: Handle = self.host.add(self.puppet)
        self.host.submit(self.client, [Connect(1, "127.0.0.1", int(opened.result(0)))])
        self.host.run_until(lambda: self.puppet.of(Connected))
        self.started_ns = self.host.now_ns()

    def _serve(self, event: Event) -> Sequence[Effect]:
        if not isinstance(event, Received):
            return ()
        data = self._asked.get(event.connection, b"") + event.data
        answers = []
        while len(data) >= 12:
            answers.append(frame(struct.unpack_from(">i", data, 8)[0], form=">i"))
            data = data[12:]
        self._asked[event.connection] = data
        return [Write(event.connection, answers)] if answers else ()

    def _take(self, event: Event) -> Sequence[Effect]:
        if isinstance(event, Received):
            self._answers += event.data
            while len(self._answers) >= 8:
                self.arrivals.append(
                    (
                        struct.unpack_from(">i", self._answers, 4)[0],
                        (self.host.now_ns() - self.started_ns) / 1e6,
                    )
                )
                self._answers = self._answers[8:]
        return ()

    def delay(self, service_ms: float = 0, latency_ms: float = 0) -> None:
        self.host.submit(self.proxy, SetDelays(service_ms, latency_ms, Completion()))

    def send(self, *requests: bytes) -> None:
        self.host.submit(self.client, [Write(1, list(requests))])


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.host.close()


def test_without_delays_answers_pass_at_once(stage: Stage) -> None:
    stage.send(request(PRODUCE, 1), request(METADATA, 2))
    stage.host.advance(1)
    assert stage.arrivals == [(1, 0.0), (2, 0.0)]


def test_service_time_holds_produces_one_after_another_and_what_comes_behind(stage: Stage) -> None:
    stage.delay(service_ms=20)
    stage.send(request(METADATA, 1), request(PRODUCE, 2), request(PRODUCE, 3), request(METADATA, 4))
    stage.host.advance(100)
    assert stage.arrivals == [(1, 0.0), (2, 20.0), (3, 40.0), (4, 40.0)]


def test_a_produce_after_a_pause_waits_for_its_own_service_alone(stage: Stage) -> None:
    stage.delay(service_ms=20)
    stage.send(request(PRODUCE, 1))
    stage.host.advance(50)
    stage.send(request(PRODUCE, 2))
    stage.host.advance(50)
    assert stage.arrivals == [(1, 20.0), (2, 70.0)]


def test_latency_delays_every_answer_all_concurrently(stage: Stage) -> None:
    stage.delay(latency_ms=20)
    stage.send(request(PRODUCE, 1), request(PRODUCE, 2), request(METADATA, 3))
    stage.host.advance(5)
    stage.send(request(PRODUCE, 4))
    stage.host.advance(50)
    assert stage.arrivals == [(1, 20.0), (2, 20.0), (3, 20.0), (4, 25.0)]


def test_a_healed_broker_lets_nothing_overtake_what_is_still_held(stage: Stage) -> None:
    stage.delay(service_ms=20)
    stage.send(request(PRODUCE, 1))
    stage.host.advance(5)
    stage.delay()
    stage.send(request(PRODUCE, 2))
    stage.host.advance(50)
    assert stage.arrivals == [(1, 20.0), (2, 20.0)]


def test_a_broker_that_goes_takes_the_clients_connection_along(stage: Stage) -> None:
    stage.host.remove(stage.broker)
    stage.host.run_until(lambda: stage.puppet.of(Disconnected))


def test_a_client_that_goes_takes_the_brokers_connection_along(stage: Stage) -> None:
    stage.host.submit(stage.client, [Close(1)])
    broker = stage.broker.machine
    assert isinstance(broker, Puppet)
    stage.host.run_until(lambda: broker.of(Disconnected))
