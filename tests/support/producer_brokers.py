"""A small Kafka cluster for the producer's unit tests: brokers as machines on a `VirtualHost`, with
faults by script.

It serves ApiVersions, Metadata, InitProducerId and Produce, keeps what is produced in lists, and
checks sequence numbers as a broker does (five batches remembered for each producer and partition).
`FakeCluster.on_produce` may fail any batch in any way.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.effects import Close, Effect, Listen, Write
from fairlead_kafka.core.events import Accepted, Disconnected, Event, Received
from fairlead_kafka.records import BatchHeader, DecodedRecords, assign, check_produced, decode, scan, verify
from fairlead_kafka.runtime import Handle, VirtualHost
from fairlead_kafka.wire import ApiKey, FrameReader, Message, decode_request, encode_response

if TYPE_CHECKING:
    from tests.support.transaction_broker import FakeTransactions

LOSE_ANSWER = "append, then break the connection"
BREAK = "break the connection without appending"
IGNORE = "never answer"
IGNORE_WRITTEN = "append and never answer"
Fault = int | str | None
"""An error code to answer with, one of the constants above, or None: do as a broker does."""

VERSIONS = {
    ApiKey.PRODUCE: (3, 9),
    ApiKey.METADATA: (1, 12),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
}
_OUT_OF_ORDER, _OLD_EPOCH, _UNKNOWN_TOPIC, _NO_LEADER, _NOT_LEADER, _TOO_LARGE = 45, 47, 3, 5, 6, 10


@dataclass
class Partition:
    """One log."""

    leader: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    headers: list[BatchHeader] = field(default_factory=list)
    end_offset: int = 0
    producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = field(default_factory=dict)

    def check_sequence(self, header: BatchHeader) -> tuple[int, int]:
        """Error code and base offset: (0, -1) to append, (0, offset) if it was appended before."""
        epoch, window = self.producers.get(header.producer_id, (header.producer_epoch, []))
        if header.producer_epoch < epoch:
            return _OLD_EPOCH, -1
        if header.producer_epoch > epoch:
            return (0, -1) if header.base_sequence == 0 else (_OUT_OF_ORDER, -1)
        for base, last, offset in window:
            if (base, last) == (header.base_sequence, header.last_sequence):
                return 0, offset
        if window and header.base_sequence != (window[-1][1] + 1) % 2**31:
            return _OUT_OF_ORDER, -1
        return 0, -1

    def append(self, data: bytes, header: BatchHeader) -> int:
        """Append one batch; its base offset."""
        stamped = bytearray(data)
        offset = self.end_offset
        assign(stamped, base_offset=offset, partition_leader_epoch=self.leader_epoch)
        self.batches.append(bytes(stamped))
        self.headers.append(header)
        self.end_offset += header.count
        if header.producer_id >= 0:
            epoch, window = self.producers.get(header.producer_id, (header.producer_epoch, []))
            if epoch != header.producer_epoch:
                window = []
            window = [*window, (header.base_sequence, header.last_sequence, offset)][-5:]
            self.producers[header.producer_id] = (header.producer_epoch, window)
        return offset

    def decoded(self) -> DecodedRecords:
        """All records."""
        return decode(b"".join(self.batches))


class FakeCluster:
    """Brokers 0..n-1 at broker-0:9092 and so on, and what they share."""

    def __init__(self, host: VirtualHost, brokers: int = 1) -> None:
        self.host = host
        self.topics: dict[str, list[Partition]] = {}
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.brokers = [FakeBroker(self, node_id) for node_id in range(brokers)]
        self.handles: list[Handle] = [host.add(broker) for broker in self.brokers]
        self.on_produce: Callable[[int, str, int, BatchHeader], Fault] = (
            lambda node_id, topic, partition, header: None
        )
        self.on_init: Callable[[], int] = lambda: 0
        self.on_metadata: Callable[[str], int] = lambda topic: 0
        self.max_message_bytes = 1 << 20
        self.log_start_offset = 0
        self.log_append_ms = -1
        self.record_errors: list[Message] = []
        """What a refused batch's answer names (KIP-467)."""
        self.producer_ids = 1000
        self.first_epoch = 0
        self.produce_requests: list[list[tuple[str, int, BatchHeader]]] = []
        self.versions = dict(VERSIONS)
        self.transactions: FakeTransactions | None = None
        """Set by `transaction_broker.FakeTransactions`."""

    @property
    def bootstrap(self) -> str:
        """For bootstrap.servers."""
        return "broker-0:9092"

    def create(self, topic: str, partitions: int) -> None:
        """A topic, its leaders dealt out in turn; more partitions if it exists."""
        self.topic_ids[topic] = uuid.uuid5(uuid.NAMESPACE_DNS, topic)
        known = self.topics.setdefault(topic, [])
        known += [Partition(index % len(self.brokers)) for index in range(len(known), partitions)]

    def values(self, topic: str) -> list[list[bytes | None]]:
        """Per partition, the values in order."""
        return [_values(partition) for partition in self.topics[topic]]

    def restart(self, node_id: int) -> None:
        """A broker that was removed from the host is there again."""
        self.brokers[node_id] = FakeBroker(self, node_id)
        self.handles[node_id] = self.host.add(self.brokers[node_id])

    def move(self, topic: str, partition: int, leader: int) -> None:
        """Another leader, in a newer epoch."""
        entry = self.topics[topic][partition]
        entry.leader, entry.leader_epoch = leader, entry.leader_epoch + 1


def _values(partition: Partition) -> list[bytes | None]:
    if not partition.batches:
        return []
    records = partition.decoded()
    return [None] * records.count if records.values is None else records.values.to_list()


class FakeBroker:
    """One broker."""

    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.name = f"broker-{node_id}"
        self.service_ms = 0.0
        """How long each produce request takes, one after another."""
        self.throttle_ms = 0
        """How long each answer to a produce request asks to be left alone."""
        self._events: deque[Event] = deque()
        self._readers: dict[int, FrameReader] = {}
        self._later: deque[tuple[int, int, Sequence[Any]]] = deque()
        self._free_ns = 0
        self._now_ns = 0
        self._listening = False

    def receive(self, event: Event) -> None:
        self._events.append(event)

    def deadline_ns(self) -> int | None:
        return self._later[0][0] if self._later else None

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        self._now_ns = now_ns
        effects: list[Effect] = []
        if not self._listening:
            self._listening = True
            effects.append(Listen(1, self.name, 9092))
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Accepted):
                self._readers[event.connection] = FrameReader(100 << 20)
            elif isinstance(event, Disconnected):
                self._readers.pop(event.connection, None)
            elif isinstance(event, Received) and event.connection in self._readers:
                for frame in self._readers[event.connection].feed(event.data):
                    if event.connection in self._readers:
                        effects += self._serve(event.connection, decode_request(frame))
        while self._later and self._later[0][0] <= now_ns:
            _, connection, buffers = self._later.popleft()
            if connection in self._readers:
                effects.append(Write(connection, buffers))
        return effects

    def _serve(self, connection: int, request: Any) -> list[Effect]:
        body: Message | None
        cluster = self.cluster
        if request.api_key == ApiKey.PRODUCE:
            return self._produce(connection, request)
        if request.api_key == ApiKey.API_VERSIONS:
            keys = [
                Message(api_key=int(key), min_version=low, max_version=high)
                for key, (low, high) in cluster.versions.items()
            ]
            body = Message(error_code=0, api_keys=keys, throttle_time_ms=0)
        elif request.api_key == ApiKey.METADATA:
            body = self._metadata(request.message)
        elif cluster.transactions is not None:
            fault, body = cluster.transactions.serve(self.node_id, request)
            if fault in (BREAK, LOSE_ANSWER):
                self._readers.pop(connection, None)
                return [Close(connection)]
            if body is None:
                return []
        else:
            code = cluster.on_init()
            cluster.producer_ids += 1
            body = Message(
                throttle_time_ms=0,
                error_code=code,
                producer_id=-1 if code else cluster.producer_ids,
                producer_epoch=-1 if code else cluster.first_epoch,
            )
        answer = encode_response(request.api_key, request.version, request.correlation_id, body)
        before = [at_ns for at_ns, other, _ in self._later if other == connection]
        if before:  # answers of a connection come in the order of the requests
            self._later.append((max(before), connection, answer))
            return []
        return [Write(connection, answer)]

    def _metadata(self, message: Message) -> Message:
        cluster = self.cluster
        names = list(cluster.topics) if message.topics is None else [topic.name for topic in message.topics]
        brokers = [
            Message(node_id=each.node_id, host=each.name, port=9092, rack=None) for each in cluster.brokers
        ]
        topics = [self._topic(name) for name in names]
        return Message(throttle_time_ms=0, brokers=brokers, cluster_id="fake", controller_id=0, topics=topics)

    def _topic(self, name: str) -> Message:
        known = self.cluster.topics.get(name)
        code = self.cluster.on_metadata(name) or (0 if known else _UNKNOWN_TOPIC)
        partitions = [
            Message(
                error_code=0 if entry.leader >= 0 else _NO_LEADER,
                partition_index=index,
                leader_id=entry.leader,
                leader_epoch=entry.leader_epoch,
                replica_nodes=[0],
                isr_nodes=[0],
                offline_replicas=[],
            )
            for index, entry in enumerate(known or ())
        ]
        topic_id = self.cluster.topic_ids.get(name, uuid.UUID(int=0))
        return Message(
            error_code=code,
            name=name,
            topic_id=topic_id,
            is_internal=False,
            partitions=[] if code else partitions,
        )

    def _produce(self, connection: int, request: Any) -> list[Effect]:
        message, cluster = request.message, self.cluster
        seen: list[tuple[str, int, BatchHeader]] = []
        outcome: Fault = None
        responses = []
        for topic in message.topic_data:
            name = topic.name or next(
                each for each, topic_id in self.cluster.topic_ids.items() if topic_id == topic.topic_id
            )
            entries = []
            for data in topic.partition_data:
                records = bytes(data.records)
                (header,) = scan(records)
                verify(records, header)
                check_produced(records, header)
                seen.append((name, data.index, header))
                fault = self.cluster.on_produce(self.node_id, name, data.index, header)
                outcome = fault if isinstance(fault, str) else outcome
                if cluster.transactions is not None and fault in (None, LOSE_ANSWER, IGNORE_WRITTEN):
                    where = TopicPartition(name, data.index)
                    fault = (
                        cluster.transactions.check_produce(
                            message.transactional_id, request.version, header, where
                        )
                        or fault
                    )
                code, offset = (
                    (0, -1)
                    if fault in (BREAK, IGNORE)
                    else self._append(name, data.index, records, header, fault)
                )
                entries.append(self._entry(data.index, code, offset))
            responses.append(Message(name=name, topic_id=topic.topic_id, partition_responses=entries))
        self.cluster.produce_requests.append(seen)
        if outcome in (LOSE_ANSWER, BREAK):
            self._readers.pop(connection, None)
            return [Close(connection)]
        if outcome in (IGNORE, IGNORE_WRITTEN) or message.acks == 0:
            return []
        body = Message(throttle_time_ms=self.throttle_ms, responses=responses)
        buffers = encode_response(request.api_key, request.version, request.correlation_id, body)
        self._free_ns = max(self._free_ns, self._now_ns) + ms_to_ns(self.service_ms)
        self._later.append((self._free_ns, connection, buffers))
        return []

    def _entry(self, index: int, code: int, offset: int) -> Message:
        return Message(
            index=index,
            error_code=code,
            base_offset=offset,
            log_append_time_ms=self.cluster.log_append_ms,
            log_start_offset=self.cluster.log_start_offset,
            record_errors=[] if code == 0 else self.cluster.record_errors,
            error_message=None,
        )

    def _append(
        self, topic: str, index: int, records: bytes, header: BatchHeader, fault: Fault
    ) -> tuple[int, int]:
        """Error code and base offset."""
        if isinstance(fault, int):
            return fault, -1
        partition = self.cluster.topics[topic][index]
        if partition.leader != self.node_id:
            return _NOT_LEADER, -1
        if len(records) > self.cluster.max_message_bytes:
            return _TOO_LARGE, -1
        if header.producer_id >= 0:
            code, offset = partition.check_sequence(header)
            if code or offset >= 0:
                return code, offset
        return 0, partition.append(records, header)
