"""A broker that says what a test wants, and a client that is nothing but a `Network`."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.core import Network
from fairlead_kafka.core.effects import Close, Effect, Listen, Write
from fairlead_kafka.core.events import (
    Accepted,
    ConnectionEvent,
    Disconnected,
    Event,
    Listening,
    Received,
    Submitted,
)
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.runtime.transport import Transport
from fairlead_kafka.wire import ApiKey, FrameReader, Message, Request, decode_request, encode_response

OFFERED = {
    ApiKey.PRODUCE: (3, 9),
    ApiKey.METADATA: (4, 13),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.LIST_OFFSETS: (1, 7),
}
TOPIC_ID = uuid.UUID(int=7)

Answer = Callable[[Request], "Message | bytes | list[bytes] | None"]


def versions_message(offered: Mapping[ApiKey, tuple[int, int]] = OFFERED, error_code: int = 0) -> Message:
    """An ApiVersions response."""
    keys = [
        Message(api_key=int(key), min_version=low, max_version=high) for key, (low, high) in offered.items()
    ]
    return Message(error_code=error_code, api_keys=keys, throttle_time_ms=0)


def partition_message(index: int, leader: int, epoch: int, error_code: int = 0) -> Message:
    """One partition of a Metadata response."""
    return Message(
        error_code=error_code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=[leader],
        isr_nodes=[leader],
        offline_replicas=[],
    )


def topic_message(
    name: str, partitions: Sequence[Message], topic_id: uuid.UUID = TOPIC_ID, error_code: int = 0
) -> Message:
    """One topic of a Metadata response."""
    return Message(
        error_code=error_code, name=name, topic_id=topic_id, is_internal=False, partitions=list(partitions)
    )


def metadata_message(
    nodes: Mapping[int, tuple[str, int]], topics: Sequence[Message] = (), controller_id: int = 0
) -> Message:
    """A Metadata response."""
    return Message(
        throttle_time_ms=0,
        error_code=0,
        brokers=[
            Message(node_id=node_id, host=host, port=port, rack=None)
            for node_id, (host, port) in nodes.items()
        ],
        cluster_id="cluster",
        controller_id=controller_id,
        topics=list(topics),
    )


def list_offsets_message(throttle_ms: int = 0) -> Message:
    """An empty ListOffsets response: the plainest answer there is."""
    return Message(throttle_time_ms=throttle_ms, topics=[])


def list_offsets_request() -> Message:
    """An empty ListOffsets request."""
    return Message(replica_id=-1, isolation_level=0, topics=[])


class FakeBroker:
    """A machine that listens at host:port. `answers[api_key](request)` gives a message, raw bytes,
    or None for no answer."""

    def __init__(self, host: str = "broker", port: int = 9092) -> None:
        self.port = port
        self.requests: list[Request] = []
        self.connections: list[int] = []
        self.closed: list[int] = []
        self.silent = False
        self.answers: dict[ApiKey, Answer] = {
            ApiKey.API_VERSIONS: lambda request: versions_message(),
            ApiKey.METADATA: lambda request: metadata_message({0: (host, self.port)}),
            ApiKey.LIST_OFFSETS: lambda request: list_offsets_message(),
        }
        self._readers: dict[int, FrameReader] = {}
        self._effects: list[Effect] = [Listen(1, host, port)]

    def asked(self, api_key: ApiKey) -> list[Request]:
        """The requests of one kind, so far."""
        return [request for request in self.requests if request.api_key == api_key]

    def receive(self, event: Event) -> None:
        if isinstance(event, Accepted):
            self.connections.append(event.connection)
            self._readers[event.connection] = FrameReader()
        elif isinstance(event, Listening):
            self.port = event.port
        elif isinstance(event, Disconnected):
            self.closed.append(event.connection)
        elif isinstance(event, Received):
            for frame in self._readers[event.connection].feed(event.data):
                self._answer(event.connection, decode_request(frame))
        elif isinstance(event, Submitted):
            self._effects += event.operation

    def _answer(self, connection: int, request: Request) -> None:
        self.requests.append(request)
        answer = None if self.silent else self.answers[ApiKey(request.api_key)](request)
        if isinstance(answer, Message):
            version = request.version if answer.__dict__.get("error_code") != 35 else 0
            self._effects.append(
                Write(connection, encode_response(request.api_key, version, request.correlation_id, answer))
            )
        elif answer is not None:
            self._effects.append(Write(connection, answer if isinstance(answer, list) else [answer]))

    def hang_up(self) -> list[Effect]:
        """Effects that close every connection."""
        return [Close(connection) for connection in self.connections if connection not in self.closed]

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        return None


class Client:
    """A machine that is nothing but a network; operations are functions of it. `advance_first`: the
    order within a step."""

    def __init__(
        self, advance_first: bool = False, max_in_flight: int = 5, seed: int = 1, **configs: Any
    ) -> None:
        given = {
            "bootstrap.servers": "broker:9092",
            **{name.replace("_", "."): value for name, value in configs.items()},
        }
        self.settings, self.rng = CLIENT_CONFIGS.parse("producer", given), random.Random(seed)
        self.network = Network(self.settings, self.rng, max_in_flight=max_in_flight)
        self.answers: list[tuple[Any, Exception | None]] = []
        self.steps = 0
        self._advance_first = advance_first
        self._queued: list[Event] = []

    def on_done(self, response: Message | None, error: Exception | None) -> None:
        """Record an answer."""
        self.answers.append((response, error))

    def errors(self) -> list[FairleadError]:
        """The errors among the answers."""
        return [error for _response, error in self.answers if isinstance(error, FairleadError)]

    def receive(self, event: Event) -> None:
        self._queued.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        self.steps += 1
        queued, self._queued = self._queued, []
        if self._advance_first:
            self.network.advance(now_ns, wall_ms)
        for event in queued:
            if isinstance(event, ConnectionEvent):
                self.network.handle(event, now_ns, wall_ms)
            elif isinstance(event, Submitted):
                event.operation(self.network)
        if not self._advance_first:
            self.network.advance(now_ns, wall_ms)
        return self.network.take_effects()

    def deadline_ns(self) -> int | None:
        return self.network.deadline_ns()


class Scene:
    """A virtual host with a client and brokers on it."""

    def __init__(
        self, client: Client, *brokers: FakeBroker, transport: Transport | None = None, **host: Any
    ) -> None:
        self.host = VirtualHost(**host)
        self.brokers = [(broker, self.host.add(broker)) for broker in brokers]
        self.client = client
        self.network = client.network
        self.host.advance(0)
        self.handle = self.host.add(client, transport)

    def do(self, operation: Callable[[Network], object]) -> None:
        """Run something inside the client's next step."""
        self.host.submit(self.handle, operation)

    def until_ready(self, node_id: int = 0) -> None:
        """Connect to a node that the metadata names."""
        self.host.run_until(lambda: node_id in self.network.metadata.nodes)
        self.do(lambda network: network.connect(node_id))
        self.host.run_until(lambda: self.network.ready(node_id))

    def send(self, count: int = 1, node_id: int = 0, **options: Any) -> None:
        """Send plain requests in one step."""

        def operation(network: Network) -> None:
            for _ in range(count):
                network.send(
                    node_id, ApiKey.LIST_OFFSETS, list_offsets_request(), self.client.on_done, **options
                )

        self.do(operation)

    def until_answers(
        self, count: int = 1, timeout_ms: float = 300_000
    ) -> list[tuple[Any, Exception | None]]:
        """Wait for answers to what was sent or requested."""
        self.host.run_until(lambda: len(self.client.answers) >= count, timeout_ms)
        return self.client.answers

    def now_ms(self) -> float:
        """Virtual time."""
        return self.host.now_ns() / 1e6
