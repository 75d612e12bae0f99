"""Several brokers on one virtual clock, a client that speaks to them in frames, and a transactional
producer that does as it is told."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker import Broker, Controller, KillBroker, StartBroker
from fairlead_kafka.broker.controller import TRANSACTIONS_TOPIC
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.broker.transactions import Transaction
from fairlead_kafka.core.effects import Close, Connect, Effect, Write
from fairlead_kafka.core.events import Connected, Disconnected, Event, Received
from fairlead_kafka.records import decode
from fairlead_kafka.runtime import Completion, Handle, VirtualHost
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_response, encode_request
from tests.support.broker_driver import batch, fetch_fields, produce_fields
from tests.support.checked import checked

FIRST_PORT = 9092
PATIENCE_MS = 60_000


class Asked:
    """One request, and its answer once it is here."""

    def __init__(self, node_id: int, api_key: ApiKey, version: int, message: Message, lane: int = 0) -> None:
        self.node_id = node_id
        self.lane = lane
        self.api_key = api_key
        self.version = version
        self.message = message
        self.answer: Message | None = None
        self.lost = False


class Asker:
    """A machine with one connection per broker and lane, which sends what it is given."""

    def __init__(self) -> None:
        self._inbox: list[Event] = []
        self._unsent: list[Asked] = []
        self._in_flight: dict[int, list[Asked]] = {}
        self._frames: dict[int, FrameReader] = {}
        self._connections: dict[tuple[int, int], int] = {}
        self._count = 0
        self._hanging_up = False

    def ask(self, asked: Asked) -> None:
        self._unsent.append(asked)

    def receive(self, event: Event) -> None:
        self._inbox.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        effects: list[Effect] = []
        events, self._inbox = self._inbox, []
        for event in events:
            if isinstance(event, Connected | Received | Disconnected):
                self._handle(event)
        if self._hanging_up:
            effects += [Close(number) for number in self._connections.values()]
            self._connections, self._frames, self._in_flight, self._hanging_up = {}, {}, {}, False
        unsent, self._unsent = self._unsent, []
        for asked in unsent:
            number = self._connections.get((asked.node_id, asked.lane))
            if number is None:
                self._count += 1
                number = self._connections[asked.node_id, asked.lane] = self._count
                self._frames[number], self._in_flight[number] = FrameReader(), []
                effects.append(Connect(number, "127.0.0.1", FIRST_PORT + asked.node_id))
            self._in_flight[number].append(asked)
            effects.append(
                Write(number, encode_request(asked.api_key, asked.version, 1, "asker", asked.message))
            )
        return effects

    def hang_up(self) -> None:
        """Close every connection in the next step."""
        self._hanging_up = True

    def _handle(self, event: Connected | Received | Disconnected) -> None:
        if isinstance(event, Received):
            for frame in self._frames[event.connection].feed(event.data):
                asked = self._in_flight[event.connection].pop(0)
                asked.answer = decode_response(asked.api_key, asked.version, frame)
        elif isinstance(event, Disconnected):
            self._connections = {
                key: number for key, number in self._connections.items() if number != event.connection
            }
            for asked in self._in_flight.pop(event.connection, []):
                asked.lost = True

    def deadline_ns(self) -> int | None:
        return None


class VirtualCluster:
    """`brokers` brokers with their controller; every topic's partition n is led by broker n modulo
    their number.

    `checks`: each broker compares what it keeps twice after every step, which takes more time than
    all else.
    """

    def __init__(
        self,
        brokers: int = 3,
        config: dict[str, Any] | None = None,
        latency_ms: float = 0,
        racks: Sequence[str | None] = (),
        checks: bool = True,
    ) -> None:
        self._checks = checks
        self.host = VirtualHost(latency_ms=latency_ms)
        self.racks = racks
        self.controller = Controller(BROKER_CONFIGS.parse("broker", config or {}), random.Random(7))
        self.brokers: dict[int, Broker] = {}
        self.handles: dict[int, Handle] = {}
        self.asker = Asker()
        for node_id in range(brokers):
            self.start(node_id)
        self.asking = self.host.add(self.asker)

    def start(self, node_id: int) -> None:
        broker = Broker(
            node_id, self.controller, f"/data/{node_id}", random.Random(node_id), port=FIRST_PORT + node_id
        )
        broker.rack = self.racks[node_id] if self.racks else None
        handle = self.host.add(checked(broker) if self._checks else broker)
        broker.wake = lambda: self.host.wake(handle)
        self.brokers[node_id], self.handles[node_id] = broker, handle
        started = Completion()
        self.host.submit(handle, StartBroker(started))
        self.host.run_until(started.done)
        started.result(0)
        self.host.advance(10)  # coordinators read their logs

    def kill(self, node_id: int) -> None:
        handle = self.handles.pop(node_id)
        killed = Completion()
        self.host.submit(handle, KillBroker(killed))
        self.host.run_until(killed.done)
        self.host.remove(handle)
        del self.brokers[node_id]

    def topic(self, name: str = "events", partitions: int = 3) -> None:
        nodes = sorted(self.controller.image.brokers)
        self.controller.create_topic(
            name, assignments={number: [nodes[number % len(nodes)]] for number in range(partitions)}
        )

    def send(self, node_id: int, api_key: ApiKey, version: int, lane: int = 0, **fields: Any) -> Asked:
        """Send a request without waiting for its answer; what waits long goes on a `lane` of its
        own."""
        asked = Asked(node_id, api_key, version, Message(**fields), lane)
        self.asker.ask(asked)
        self.host.wake(self.asking)
        return asked

    def ask(self, node_id: int, api_key: ApiKey, version: int, **fields: Any) -> Message:
        """Send a request and wait for its answer; ConnectionError if the broker is gone."""
        asked = self.send(node_id, api_key, version, **fields)
        self.host.run_until(lambda: asked.lost or asked.answer is not None, PATIENCE_MS)
        if asked.answer is None:
            raise ConnectionError(f"broker {node_id} is gone")
        return asked.answer

    def hang_up(self) -> None:
        """Close all connections of the client that speaks in frames."""
        self.asker.hang_up()
        self.host.wake(self.asking)
        self.host.advance(10)

    def leader(self, of: TopicPartition) -> int:
        partition = self.controller.image.partition(*of)
        assert partition is not None
        return partition.leader

    def coordinator(self, transactional_id: str) -> int:
        topic = self.controller.create_transactions_topic()
        return topic.partitions[home_partition(transactional_id, len(topic.partitions))].leader

    def transaction(self, transactional_id: str) -> Transaction:
        """The coordinator's own view of a transactional id."""
        return self.brokers[self.coordinator(transactional_id)].transactions.describe(transactional_id)

    def quiesce(self, milliseconds: float = 1_000) -> None:
        """Let markers be brought."""
        self.host.advance(milliseconds)

    def fetch(self, of: TopicPartition, offset: int = 0, committed: bool = True, **limits: Any) -> Message:
        """One partition's row of a Fetch."""
        fields = fetch_fields({tuple(of): offset}, **limits) | {"isolation_level": int(committed)}
        return self.ask(self.leader(of), ApiKey.FETCH, 12, **fields).responses[0].partitions[0]

    def values(self, of: TopicPartition, offset: int = 0, committed: bool = True) -> list[bytes]:
        """All values from `offset` on that a consumer of this isolation would give."""
        found: list[bytes] = []
        while True:
            row = self.fetch(of, offset, committed)
            assert row.error_code == 0, row
            if not row.records:
                return found
            aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
            records = decode(bytes(row.records), from_offset=offset, aborted=aborted)
            found += records.values.to_list()
            offset = records.next_offset

    def end_offset(self, of: TopicPartition, committed: bool) -> int:
        """What ListOffsets says the end is."""
        asked = [Message(partition_index=of.partition, current_leader_epoch=-1, timestamp=-1)]
        fields = {
            "replica_id": -1,
            "isolation_level": int(committed),
            "topics": [Message(name=of.topic, partitions=asked)],
        }
        return int(self.ask(self.leader(of), ApiKey.LIST_OFFSETS, 5, **fields).topics[0].partitions[0].offset)

    def close(self) -> None:
        self.host.close()


class Transactor:
    """A transactional producer whose every request is asked for; error codes are given back,
    nothing is retried but `ready`."""

    def __init__(
        self, cluster: VirtualCluster, transactional_id: str = "payments", timeout_ms: int = 60_000
    ) -> None:
        self.cluster = cluster
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.identity = NO_PRODUCER
        self.sequences: dict[TopicPartition, int] = {}

    @property
    def node_id(self) -> int:
        return self.cluster.coordinator(self.transactional_id)

    def init(self, expected: ProducerIdentity = NO_PRODUCER, version: int = 4) -> int:
        answer = self.cluster.ask(
            self.node_id,
            ApiKey.INIT_PRODUCER_ID,
            version,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=expected.producer_id,
            producer_epoch=expected.epoch,
        )
        if not answer.error_code:
            self.identity = ProducerIdentity(answer.producer_id, answer.producer_epoch)
            self.sequences.clear()
        return int(answer.error_code)

    def ready(self) -> Transactor:
        """InitProducerId until whatever was open is over."""
        error: int = ErrorCode.CONCURRENT_TRANSACTIONS
        for _ in range(100):
            error = self.init()
            if error != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
            self.cluster.quiesce(50)
        assert error == 0, error
        return self

    def add(self, *partitions: TopicPartition, version: int = 3) -> int:
        answer = self.cluster.ask(
            self.node_id,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            version,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.identity.producer_id,
            v3_and_below_producer_epoch=self.identity.epoch,
            v3_and_below_topics=[Message(name=of.topic, partitions=[of.partition]) for of in partitions],
        )
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def request(
        self,
        of: TopicPartition,
        values: Iterable[bytes],
        sequence: int | None = None,
        transactional: bool = True,
    ) -> dict[str, Any]:
        """The fields of a Produce request."""
        values = list(values)
        records = batch(
            list(values),
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequences.get(of, 0) if sequence is None else sequence,
            transactional=transactional,
        )
        return produce_fields({tuple(of): records}) | {"transactional_id": self.transactional_id}

    def produce(
        self, of: TopicPartition, *values: bytes, version: int = 9, transactional: bool = True
    ) -> int:
        """Produce one batch; the error code."""
        fields = self.request(of, values, transactional=transactional)
        row = (
            self.cluster.ask(self.cluster.leader(of), ApiKey.PRODUCE, version, **fields)
            .responses[0]
            .partition_responses[0]
        )
        if not row.error_code:
            self.sequences[of] = self.sequences.get(of, 0) + len(values)
        return int(row.error_code)

    def write(self, of: TopicPartition, *values: bytes) -> None:
        """Add the partition and produce to it."""
        assert self.add(of) == 0
        assert self.produce(of, *values) == 0

    def end(self, committed: bool, version: int = 3) -> int:
        answer = self.cluster.ask(
            self.node_id,
            ApiKey.END_TXN,
            version,
            transactional_id=self.transactional_id,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            committed=committed,
        )
        return int(answer.error_code)

    def finish(self, committed: bool) -> None:
        """End the transaction and wait until its markers are everywhere."""
        assert self.end(committed) == 0
        self.cluster.quiesce()


def state_of(cluster: VirtualCluster, transactional_id: str = "payments") -> str:
    """The state's name at the coordinator."""
    return cluster.transaction(transactional_id).image.state.value


def transaction_topic(cluster: VirtualCluster) -> int:
    """How many partitions the topic of transactions has."""
    return len(cluster.controller.image.topics[TRANSACTIONS_TOPIC].partitions)
