"""A cheap model of a broker: serves a producer's requests over the log that all brokers of its
cluster share, and can be slow or wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.effects import Close, Effect, Listen, StopListening, Write
from fairlead_kafka.core.events import Accepted, Disconnected, Event, Received, Submitted
from fairlead_kafka.records import scan, verify
from fairlead_kafka.simulation.model_apis import ModelApis
from fairlead_kafka.simulation.model_cluster import PORT, ModelCluster
from fairlead_kafka.simulation.model_log import NOWHERE, ModelPartition
from fairlead_kafka.wire import (
    ApiKey,
    ApiMessage,
    Buffer,
    FrameReader,
    Request,
    decode_request,
    encode_response,
    peek_request,
)
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

SERIAL, LATENCY = "serial", "latency"
FAULTS = (SERIAL, LATENCY)
_LISTENER = 1
_PartitionResponse = ProduceResponse.PartitionProduceResponse


@dataclass(slots=True, eq=False)
class _Outcome:
    """Result for one partition in a Produce request, kept until the answer is sent."""

    index: int
    error_code: int
    base_offset: int = NOWHERE
    end_offset: int = 0
    partition: ModelPartition | None = None
    leader_epoch: int = 0


class _Connection:
    """One accepted connection."""

    __slots__ = ("accepted_ns", "busy", "number", "open", "reader", "release_ns", "waiting")

    def __init__(self, number: int, accepted_ns: int) -> None:
        self.number = number
        self.accepted_ns = accepted_ns
        self.reader = FrameReader()
        self.waiting: deque[memoryview] = deque()
        """Requests that wait behind the one that is being served."""
        self.busy = False
        self.open = True
        self.release_ns = 0
        """Time when the last answer leaves; later answers do not leave before it."""


class ModelBroker:
    """The machine of one model broker. Written to be fast: a Produce request of one small batch
    costs some 40 microseconds."""

    def __init__(self, cluster: ModelCluster, apis: ModelApis, node_id: int) -> None:
        self.cluster = cluster
        self.apis = apis
        self.node_id = node_id
        self.name = f"{cluster.name}-{node_id}"
        self.running = True
        self.frozen = False
        """True as after SIGSTOP: nothing is served or closed, and the network still takes bytes."""
        self.request_ns = self.batch_ns = 0
        """Service time of a Produce request, and of each batch in it, ns; a connection is served
        one request after another.
        """
        self.stall_share, self.stall_ns, self.stall_rng = 0.0, 0, Random()
        """Share of Produce requests that take `stall_ns` longer, drawn from `stall_rng`."""
        self.delay_ns = 0
        """Delay of answers, ns, applied as `fault` says."""
        self.fault = SERIAL
        self.requests = 0
        """Produce requests served."""
        self._events: deque[Event] = deque()
        self._operations: deque[Callable[[ModelBroker], None]] = deque()
        self._connections: dict[int, _Connection] = {}
        self._later: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._serial = count()
        self._effects: list[Effect] = [Listen(_LISTENER, self.name, PORT)]
        self._now_ns = 0

    # The machine protocol

    def receive(self, event: Event) -> None:
        """Queue `event`; an operation is a function of this broker."""
        if type(event) is Submitted:
            self._operations.append(event.operation)
        else:
            self._events.append(event)

    def deadline_ns(self) -> int | None:
        """Time when the next answer leaves or the next request is served, ns; None: none is due."""
        return self._later[0][0] if self._later and not self.frozen else None

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Serve the requests that arrived and send the answers that are due; returns the effects
        for the host."""
        self._now_ns = now_ns
        while self._operations:
            self._operations.popleft()(self)
        if self.frozen:
            return ()
        events = self._events
        while events:
            event = events.popleft()
            kind = type(event)
            if kind is Received:
                self._received(event.connection, event.data)  # type: ignore[union-attr]
            elif kind is Accepted:
                self._accepted(event.connection)  # type: ignore[union-attr]
            elif kind is Disconnected:
                self._forget(event.connection)  # type: ignore[union-attr]
        later = self._later
        while later and later[0][0] <= now_ns:
            _, _, function, arguments = heappop(later)
            function(*arguments)
        effects, self._effects = self._effects, []
        return effects

    # Operations, by `Submitted`

    def kill(self) -> None:
        """Kill the broker: connections close, and waiting requests are never served.

        The log is the cluster's, and stays.
        """
        if not self.running:
            return
        self.running = self.frozen = False
        self._effects.append(StopListening(_LISTENER))
        self._effects += [Close(number) for number in self._connections]
        for connection in self._connections.values():
            connection.open = False
        self._connections.clear()
        self._later.clear()

    def start(self) -> None:
        """Start the broker again, after `kill`."""
        if not self.running:
            self.running = True
            self._effects.append(Listen(_LISTENER, self.name, PORT))

    # Connections

    def _accepted(self, number: int) -> None:
        if self.running:
            self._connections[number] = _Connection(number, self._now_ns)
        else:
            self._effects.append(Close(number))

    def _forget(self, number: int) -> None:
        connection = self._connections.pop(number, None)
        if connection is not None:
            connection.open = False
            connection.waiting.clear()  # the one that is being served is served to its end, as in Kafka

    def _received(self, number: int, data: bytes | memoryview) -> None:
        connection = self._connections.get(number)
        if connection is None:
            return
        for frame in connection.reader.feed(data):
            if connection.busy:
                connection.waiting.append(frame)
            elif connection.open:
                self._serve(connection, frame)

    def _close(self, connection: _Connection) -> None:
        if connection.open:
            self._effects.append(Close(connection.number))
            self._forget(connection.number)

    def _call_at(self, when_ns: int, function: Callable[..., None], *arguments: object) -> None:
        heappush(self._later, (when_ns, next(self._serial), function, arguments))

    # Serving

    def _serve(self, connection: _Connection, frame: memoryview) -> None:
        header = peek_request(frame)
        if header.api_key != ApiKey.PRODUCE:
            asked = decode_request(frame, header)
            message = self.apis.answer(self, asked, connection.accepted_ns)
            if message is None:
                self._close(connection)
            else:
                self._reply(connection, asked, message, self._now_ns)
            return
        request = decode_request(frame, header, ProduceRequest)
        if service_ns := self._service_ns(request.message):
            connection.busy = True
            self._call_at(self._now_ns + service_ns, self._served, connection, request)
        else:
            self._produce(connection, request)

    def _service_ns(self, message: ProduceRequest) -> int:
        """Service time of this Produce request, ns, while later ones on its connection wait."""
        service_ns = self.request_ns + (self.delay_ns if self.fault == SERIAL else 0)
        if self.batch_ns:
            service_ns += self.batch_ns * sum(len(topic.partition_data) for topic in message.topic_data)
        if self.stall_share and self.stall_rng.random() < self.stall_share:
            service_ns += self.stall_ns
        return service_ns

    def _served(self, connection: _Connection, request: Request[ProduceRequest]) -> None:
        """Carry out a request whose service time has passed, and turn to the next one of its
        connection.
        """
        self._produce(connection, request)
        connection.busy = False
        while connection.waiting and not connection.busy and connection.open:
            self._serve(connection, connection.waiting.popleft())

    def _reply(
        self, connection: _Connection, request: Request[R], message: ApiMessage, ready_ns: int
    ) -> None:
        buffers = encode_response(request.api_key, request.version, request.correlation_id, message)
        if ready_ns <= self._now_ns and connection.release_ns <= self._now_ns:
            self._release(connection, buffers)
        else:
            connection.release_ns = max(connection.release_ns, ready_ns)
            self._call_at(connection.release_ns, self._release, connection, buffers)

    def _release(self, connection: _Connection, buffers: list[Buffer]) -> None:
        if connection.open:
            self._effects.append(Write(connection.number, buffers))

    # Produce

    def _produce(self, connection: _Connection, request: Request[ProduceRequest]) -> None:
        self.requests += 1
        message = request.message
        outcomes = []
        for topic in message.topic_data:
            found = self.cluster.log.find(topic.name, topic.topic_id)
            own = []
            for data in topic.partition_data:
                exists = found is not None and 0 <= data.index < len(found.partitions)
                partition = found.partitions[data.index] if exists and found is not None else None
                own.append(
                    self._append(found.name if found else topic.name, data.index, partition, data.records)
                )
            outcomes.append((topic, own))
        wait_ns = (self.delay_ns if self.fault == LATENCY else 0) + (
            self.cluster.replication_ns() if message.acks == -1 else 0
        )
        if message.acks == 0:
            if any(outcome.error_code for _, own in outcomes for outcome in own):
                self._close(connection)
        elif wait_ns or connection.release_ns > self._now_ns:
            connection.release_ns = max(connection.release_ns, self._now_ns + wait_ns)
            self._call_at(connection.release_ns, self._acknowledge, connection, request, outcomes)
        else:
            self._acknowledge(connection, request, outcomes)

    @hook("model broker: a batch is appended")
    def _append(
        self, topic: str, index: int, partition: ModelPartition | None, records: Buffer | None
    ) -> _Outcome:
        cluster = self.cluster
        if partition is None:
            return _Outcome(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.leader != self.node_id:
            return _Outcome(
                index,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                partition=partition,
                leader_epoch=partition.leader_epoch,
            )
        if records is None:
            return _Outcome(index, ErrorCode.INVALID_RECORD)
        try:
            headers = scan(records)
            if (
                len(headers) != 1
                or headers[0].stop != len(records)
                or headers[0].count != headers[0].last_offset_delta + 1
            ):
                return _Outcome(index, ErrorCode.INVALID_RECORD)
            verify(records, headers[0])
        except DecodeError:
            return _Outcome(index, ErrorCode.CORRUPT_MESSAGE)
        header = headers[0]
        refusal = (
            cluster.on_produce(self.node_id, topic, index, header) if cluster.on_produce is not None else None
        )
        if refusal is not None and not refusal.written:
            return _Outcome(index, refusal.error_code)
        if header.transactional:
            code = self.apis.transactions.admit(topic, index, header)
            if code:
                return _Outcome(index, code)
        code, base_offset = partition.check_sequence(header, forgetful=cluster.forgetful)
        if not code and base_offset == NOWHERE:
            if header.size_bytes > cluster.max_message_bytes:
                return _Outcome(index, ErrorCode.MESSAGE_TOO_LARGE)
            base_offset = partition.append(header, bytes(records) if cluster.keeps_records else None)
        if refusal is not None:
            return _Outcome(index, refusal.error_code)
        return _Outcome(
            index, code, base_offset, base_offset + header.count, partition, partition.leader_epoch
        )

    def _acknowledge(
        self,
        connection: _Connection,
        request: Request[ProduceRequest],
        outcomes: list[tuple[ProduceRequest.TopicProduceData, list[_Outcome]]],
    ) -> None:
        """Send the answer to a Produce request. A write is acknowledged only if no other broker has
        become leader meanwhile; it is never taken back then."""
        if not connection.open:
            return
        responses = [
            ProduceResponse.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[self._entry(outcome, request) for outcome in own],
            )
            for topic, own in outcomes
        ]
        message = ProduceResponse(throttle_time_ms=0, responses=responses, node_endpoints=[])
        buffers = encode_response(ApiKey.PRODUCE, request.version, request.correlation_id, message)
        self._effects.append(Write(connection.number, buffers))

    def _entry(self, outcome: _Outcome, request: Request[ProduceRequest]) -> _PartitionResponse:
        code, base_offset, partition = outcome.error_code, outcome.base_offset, outcome.partition
        hint = None
        if partition is not None:
            if not code and partition.leader_epoch != outcome.leader_epoch and request.message.acks == -1:
                code, base_offset = ErrorCode.NOT_LEADER_OR_FOLLOWER, NOWHERE
            if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and request.version >= 10:
                hint = ProduceResponse.LeaderIdAndEpoch(
                    leader_id=partition.leader, leader_epoch=partition.leader_epoch
                )
            if not code:
                partition.high_watermark = max(partition.high_watermark, outcome.end_offset)
        entry = _PartitionResponse(
            index=outcome.index,
            error_code=code,
            base_offset=base_offset,
            log_append_time_ms=-1,
            log_start_offset=0 if partition is not None else -1,
            record_errors=[],
            error_message=None,
        )
        if hint is not None:
            entry.current_leader = hint
        return entry
