"""Drives a broker by hand: a disk in memory, a clock that moves when told, clients that speak in
frames."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.broker import Broker, Controller, KillBroker, StartBroker, StopBroker
from fairlead_kafka.core import effects as fx
from fairlead_kafka.core import events as ev
from fairlead_kafka.records import Compression, Slice, columns_from_lists, encode
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_response, encode_request
from tests.support.checked import checked

WALL_MS = 1_700_000_000_000


class MemoryDisk:
    """Files as bytes. `hold_syncs` keeps syncs unanswered until `release_syncs`; `fail_appends`
    makes every append fail."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.synced: list[str] = []
        self.reads = 0
        self.appends = 0
        self.hold_syncs = False
        self.fail_appends = False
        self.held: list[fx.FileSync] = []

    def carry_out(self, effect: Any) -> ev.FileDone | None:
        try:
            return ev.FileDone(effect.token, getattr(self, "_" + type(effect).__name__)(effect))
        except OSError as error:
            return ev.FileDone(effect.token, None, error)
        except _Held:
            return None

    def release_syncs(self) -> list[ev.FileDone]:
        held, self.held = self.held, []
        self.synced.extend(effect.path for effect in held)
        return [ev.FileDone(effect.token, None) for effect in held]

    def _FileAppend(self, effect: fx.FileAppend) -> int:
        if self.fail_appends:
            raise OSError("no space left")
        self.appends += 1
        file = self.files.setdefault(effect.path, bytearray())
        start = len(file)
        for buffer in effect.buffers:
            file += buffer
        return start

    def _FileRead(self, effect: fx.FileRead) -> bytes:
        self.reads += 1
        file = self.files[effect.path]
        stop = len(file) if effect.size_bytes < 0 else effect.position + effect.size_bytes
        return bytes(file[effect.position : stop])

    def _FileSync(self, effect: fx.FileSync) -> None:
        if self.hold_syncs:
            self.held.append(effect)
            raise _Held
        self.synced.append(effect.path)

    def _FileReplace(self, effect: fx.FileReplace) -> None:
        self.files[effect.path] = bytearray(b"".join(effect.buffers))

    def _FileTruncate(self, effect: fx.FileTruncate) -> None:
        del self.files[effect.path][effect.size_bytes :]

    def _FileDelete(self, effect: fx.FileDelete) -> None:
        self.files.pop(effect.path, None)

    def _FileList(self, effect: fx.FileList) -> list[tuple[str, int]]:
        prefix = effect.path + "/"
        return sorted(
            (path.removeprefix(prefix), len(data))
            for path, data in self.files.items()
            if path.startswith(prefix)
        )


class _Held(Exception):
    pass


class Answer:
    """A completion that keeps what it was told."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.done = False

    def set_result(self, value: Any) -> None:
        self.value, self.done = value, True

    def set_error(self, error: Exception) -> None:
        self.error, self.done = error, True


class Client:
    """One connection to the driven broker."""

    def __init__(self, driver: Driver, connection: int) -> None:
        self.driver = driver
        self.connection = connection
        self.closed = False
        self.held = False
        """The broker reads nothing more from it."""
        self.reads = True
        """Takes what the broker sends; else what is written waits, until `read_on`."""
        self._untaken: list[bytes] = []
        self._taken_bytes = 0
        self._awaited: int | None = None
        self.client_id = "driver"
        self.raw = bytearray()
        self._frames = FrameReader()
        self._sent: list[tuple[int, int]] = []
        self.arrived: list[Message] = []
        self._correlation = 0

    def expect(self, api_key: int, version: int) -> None:
        """Take the next answer for that of such a request, which was sent as bytes."""
        self._sent.append((api_key, version))

    def send(self, api_key: int, version: int, **fields: Any) -> None:
        self._correlation += 1
        self._sent.append((api_key, version))
        self.send_bytes(
            b"".join(encode_request(api_key, version, self._correlation, self.client_id, Message(**fields)))
        )

    def send_bytes(self, data: bytes) -> None:
        self.driver.broker.receive(ev.Received(self.connection, data))
        self.driver.run()

    def ask(self, api_key: int, version: int, **fields: Any) -> Message:
        """Send, and the answer, which must be there at once."""
        before = len(self.arrived)
        self.send(api_key, version, **fields)
        assert len(self.arrived) == before + 1, "no answer yet"
        return self.arrived[-1]

    @property
    def untaken_bytes(self) -> int:
        """What the broker has written and this client has not read."""
        return sum(map(len, self._untaken))

    def read_on(self) -> None:
        """Read what has waited, and go on reading."""
        self.reads = True
        untaken, self._untaken = self._untaken, []
        self.take(untaken)
        self.driver.run()

    def await_sent(self, position: int | None) -> None:
        self._awaited = position
        if position is not None and position <= self._taken_bytes:
            self._awaited = None
            self.driver.broker.receive(ev.Sent(self.connection, self._taken_bytes))

    def take(self, buffers: Any) -> None:
        data = b"".join(buffers)
        if not self.reads:
            self._untaken.append(data)
            return
        self._taken_bytes += len(data)
        self.await_sent(self._awaited)
        self.raw += data
        for frame in self._frames.feed(data):
            if self._sent:
                api_key, version = self._sent.pop(0)
                self.arrived.append(decode_response(api_key, version, frame))

    def drop_expectation(self) -> None:
        """The last request gets no answer (acks=0)."""
        self._sent.pop()


class Driver:
    """One broker (id 0) with its controller. `restart` and `crash` go on over the same disk."""

    def __init__(
        self,
        config: dict[str, Any] | None = None,
        disk: MemoryDisk | None = None,
        controller: Controller | None = None,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.controller = controller or Controller(
            BROKER_CONFIGS.parse("broker", config or {}), random.Random(7)
        )
        self.now_ns = 0
        self.held_listeners: set[int] = set()
        """Numbers of the listeners at which the broker takes no new connections."""
        self.clients: dict[int, Client] = {}
        self.authenticate: Callable[[fx.Authenticate], ev.Authenticated] | None = None
        """What the host says of a token; None: nothing yet."""
        self.start()

    @property
    def accepts(self) -> bool:
        """True if the broker takes new connections at every listener."""
        return not self.held_listeners

    def start(self) -> Answer:
        self.broker = checked(Broker(0, self.controller, "/data", random.Random(11)))
        self.clients.clear()
        self._connection = 0
        answer = Answer()
        self.broker.receive(ev.Submitted(StartBroker(answer)))
        self.run()
        return answer

    def stop(self) -> Answer:
        answer = Answer()
        self.broker.receive(ev.Submitted(StopBroker(answer)))
        self.run()
        return answer

    def kill(self) -> None:
        self.broker.receive(ev.Submitted(KillBroker(Answer())))
        self.run()

    def connect(self, address: str = "driver", listener: int = 1) -> Client:
        self._connection -= 1
        client = self.clients[self._connection] = Client(self, self._connection)
        self.broker.receive(ev.Accepted(self._connection, listener, f"{address}:1"))
        self.run()
        return client

    def advance(self, milliseconds: float) -> None:
        """Move the clock, stopping at each deadline on the way."""
        target = self.now_ns + round(milliseconds * 1_000_000)
        while True:
            deadline_ns = self.broker.deadline_ns()
            if deadline_ns is None or deadline_ns > target:
                break
            self.now_ns = max(self.now_ns, deadline_ns)
            self.run()
        self.now_ns = target
        self.run()

    def run(self) -> None:
        """Step until nothing more happens."""
        while True:
            effects = self.broker.step(self.now_ns, WALL_MS + self.now_ns // 1_000_000)
            if not effects:
                return
            for effect in effects:
                self._carry_out(effect)

    def _carry_out(self, effect: Any) -> None:
        if isinstance(effect, fx.Write):
            if effect.connection in self.clients:
                self.clients[effect.connection].take(effect.buffers)
        elif isinstance(effect, fx.Close):
            if effect.connection in self.clients:
                self.clients[effect.connection].closed = True
        elif isinstance(effect, fx.Hold):
            self.clients[effect.connection].held = effect.held
        elif isinstance(effect, fx.AwaitSent):
            self.clients[effect.connection].await_sent(effect.position)
        elif isinstance(effect, fx.HoldListener):
            change = self.held_listeners.add if effect.held else self.held_listeners.discard
            change(effect.listener)
        elif isinstance(effect, fx.Listen):
            self.broker.receive(ev.Listening(effect.listener, effect.host, effect.port or 9092))
        elif isinstance(effect, fx.Authenticate) and self.authenticate is not None:
            self.broker.receive(self.authenticate(effect))
        elif isinstance(effect, fx.Resolve):
            if effect.error is not None:
                effect.completion.set_error(effect.error)
            else:
                effect.completion.set_result(effect.value)
        elif isinstance(effect, fx.FileEffect):
            done = self.disk.carry_out(effect)
            if done is not None:
                self.broker.receive(done)

    def release_syncs(self) -> None:
        for done in self.disk.release_syncs():
            self.broker.receive(done)
        self.run()


def batch(
    values: list[bytes | None], timestamps_ms: list[int] | None = None, codec: str = "none", **options: Any
) -> bytes:
    """One record batch as a producer would send it."""
    columns = columns_from_lists(None, values, None, timestamps_ms)
    encoded = encode(
        [Slice(columns, 0, len(values), None)],
        create_time_ms=WALL_MS,
        compression=Compression.named(codec),
        **options,
    )
    return bytes(encoded.buffer)


def produce_fields(records: dict[tuple[str, int], bytes | None], acks: int = -1) -> dict[str, Any]:
    """Fields of a Produce request."""
    topics: dict[str, list[Message]] = {}
    for (topic, partition), data in records.items():
        topics.setdefault(topic, []).append(Message(index=partition, records=data))
    return {
        "transactional_id": None,
        "acks": acks,
        "timeout_ms": 1000,
        "topic_data": [Message(name=name, partition_data=rows) for name, rows in topics.items()],
    }


def produce(
    client: Client,
    records: bytes | None,
    topic: str = "events",
    partition: int = 0,
    version: int = 9,
    acks: int = -1,
) -> Message:
    """Produce one batch; its row of the answer."""
    answer = client.ask(ApiKey.PRODUCE, version, **produce_fields({(topic, partition): records}, acks))
    return answer.responses[0].partition_responses[0]


def fetch_fields(offsets: dict[tuple[str, int], int], **limits: Any) -> dict[str, Any]:
    """Fields of a Fetch request by topic names."""
    topics: dict[str, list[Message]] = {}
    for (topic, partition), offset in offsets.items():
        row = Message(
            partition=partition,
            fetch_offset=offset,
            current_leader_epoch=limits.get("epoch", -1),
            last_fetched_epoch=limits.get("last_fetched_epoch", -1),
            log_start_offset=-1,
            partition_max_bytes=limits.get("partition_max_bytes", 1 << 20),
        )
        topics.setdefault(topic, []).append(row)
    return {
        "replica_id": limits.get("replica_id", -1),
        "max_wait_ms": limits.get("max_wait_ms", 0),
        "min_bytes": limits.get("min_bytes", 1),
        "max_bytes": limits.get("max_bytes", 50 << 20),
        "isolation_level": 0,
        "session_id": limits.get("session_id", 0),
        "session_epoch": limits.get("session_epoch", -1),
        "topics": [Message(topic=name, partitions=rows) for name, rows in topics.items()],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def fetch(client: Client, offset: int, topic: str = "events", partition: int = 0, **limits: Any) -> Message:
    """Fetch one partition; its row of the answer."""
    answer = client.ask(ApiKey.FETCH, 12, **fetch_fields({(topic, partition): offset}, **limits))
    return answer.responses[0].partitions[0]
