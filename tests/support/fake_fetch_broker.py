"""A small cluster that consumers and admin clients talk to in virtual time: real frames and real
record batches, no replication.

`FakeCluster` holds the state, one `FakeNode` per broker serves it. Tests move leaders, delete
offsets, inject error codes, and look at the requests that came.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from fairlead_kafka import records
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.effects import Close, Effect, Listen, Write
from fairlead_kafka.core.events import Accepted, Disconnected, Event, Received
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.wire import ApiKey, FrameReader, Message, Request, decode_request, encode_response
from tests.support.fake_admin_answers import AdminAnswers, FakeLog, FakeTopic

PORT = 9092
VERSIONS = {
    ApiKey.FETCH: (4, 16),
    ApiKey.LIST_OFFSETS: (1, 8),
    ApiKey.METADATA: (4, 12),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
}


def coordinator_answer(group: str, node_id: int) -> Message:
    """An answer to FindCoordinator: the group is with this node."""
    row = Message(
        key=group, node_id=node_id, host=f"node{node_id}", port=PORT, error_code=0, error_message=None
    )
    return Message(throttle_time_ms=0, coordinators=[row])


class FakeCluster:
    """The state, and the brokers that serve it, numbered from 1."""

    def __init__(self, host: VirtualHost, nodes: int = 1) -> None:
        self.host = host
        self.topics: dict[str, FakeTopic] = {}
        self.controller = 1
        self.requests: list[tuple[int, Request]] = []
        self.errors: dict[tuple[ApiKey, Any], list[int]] = defaultdict(list)
        """(api, partition or name) → error codes to answer with next."""
        self.versions = dict(VERSIONS)
        self.no_leader_answers = 0
        """So many Metadata answers name no leaders."""
        self.tag_leaders = False
        """Fetch answers with NOT_LEADER name the new one (KIP-951)."""
        self._ids = 0
        self.nodes = [FakeNode(self, number + 1) for number in range(nodes)]
        self.handles = [host.add(node) for node in self.nodes]
        host.advance(0)

    @property
    def bootstrap(self) -> str:
        """For `bootstrap.servers`."""
        return f"node1:{PORT}"

    def topic(self, name: str, partitions: int = 1) -> FakeTopic:
        """Create a topic; leaders go round."""
        self._ids += 1
        self.topics[name] = FakeTopic(
            uuid.UUID(int=self._ids), [FakeLog(1 + n % len(self.nodes)) for n in range(partitions)]
        )
        return self.topics[name]

    def log(self, topic: str, partition: int = 0) -> FakeLog:
        """One partition."""
        return self.topics[topic].logs[partition]

    def write(self, topic: str, partition: int, values: Sequence[bytes | None], **options: Any) -> FakeLog:
        """Append one batch. Options: keys, headers, times_ms, control, corrupt."""
        log = self.log(topic, partition)
        times_ms = options.get("times_ms") or [1_000 + log.end + n for n in range(len(values))]
        columns = records.columns_from_lists(
            options.get("keys"), list(values), options.get("headers"), times_ms
        )
        whole = [records.Slice(columns, 0, len(values))]
        control, writer = bool(options.get("control")), options.get("transaction_of", -1)
        if writer >= 0:
            log.open.setdefault(writer, log.end)
        encoded = records.encode(
            whole,
            create_time_ms=1_000,
            transactional=control or writer >= 0,
            control=control,
            producer_id=7 if control else writer,
            producer_epoch=-1 if writer < 0 else 0,
            base_sequence=-1 if writer < 0 else log.end,
        )
        buffer = bytearray(encoded.buffer)
        records.assign(buffer, base_offset=log.end, partition_leader_epoch=log.epoch)
        if options.get("corrupt"):
            buffer[-1] ^= 0xFF
        log.times_ms.update({log.end + n: time_ms for n, time_ms in enumerate(times_ms)})
        log.batches.append((log.end, log.end + len(values) - 1, bytes(buffer)))
        log.end += len(values)
        for node in self.nodes:
            self.host.wake(self.handles[node.node_id - 1])
        return log

    def end_transaction(self, topic: str, partition: int, writer: int, *, commit: bool) -> None:
        """Write the marker that ends the transaction of a producer id."""
        log = self.log(topic, partition)
        kind = records.ControlType.commit if commit else records.ControlType.abort
        marker = records.control_batch(
            kind, producer_id=writer, producer_epoch=0, timestamp_ms=1_000, base_offset=log.end
        )
        first = log.open.pop(writer)
        if not commit:
            log.aborted.append((writer, first, log.end))
        log.batches.append((log.end, log.end, bytes(marker.buffer)))
        log.end += 1
        for node in self.nodes:
            self.host.wake(self.handles[node.node_id - 1])

    def move(self, topic: str, partition: int, leader: int) -> None:
        """Give a partition another leader."""
        log = self.log(topic, partition)
        log.leader, log.epoch = leader, log.epoch + 1

    def cut(self, topic: str, partition: int, end: int) -> None:
        """Elect a leader that has nothing from `end` on, which is between two batches."""
        log = self.log(topic, partition)
        log.ended[log.epoch] = end
        log.batches = [batch for batch in log.batches if batch[0] < end]
        log.epoch, log.end = log.epoch + 1, end

    def asked(self, api_key: ApiKey) -> list[Request]:
        """The requests of one kind, so far."""
        return [request for _, request in self.requests if request.api_key == api_key]

    def error(self, api_key: ApiKey, item: Any) -> int:
        """The error code to answer with about an item."""
        codes = self.errors[api_key, item]
        return codes.pop(0) if codes else 0


class FakeNode(AdminAnswers):
    """One broker: the machine."""

    def __init__(self, cluster: FakeCluster, node_id: int) -> None:
        super().__init__(cluster, node_id)
        self._events: list[Event] = []
        self._effects: list[Effect] = [Listen(1, f"node{node_id}", PORT)]
        self._readers: dict[int, FrameReader] = {}
        self._queues: dict[int, list[tuple[Request, int]]] = {}
        self._now_ns = 0
        self.answers: dict[ApiKey, Callable[[Request], Message | None]] = {
            ApiKey.API_VERSIONS: self._api_versions,
            ApiKey.METADATA: self._metadata,
            ApiKey.LIST_OFFSETS: self._list_offsets,
            ApiKey.FETCH: self._fetch,
            **self.admin_answers(),
        }

    def receive(self, event: Event) -> None:
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        self._now_ns = now_ns
        events, self._events = self._events, []
        for event in events:
            if isinstance(event, Accepted):
                self._readers[event.connection], self._queues[event.connection] = FrameReader(), []
            elif isinstance(event, Disconnected):
                self._queues.pop(event.connection, None)
            elif isinstance(event, Received) and event.connection in self._queues:
                for frame in self._readers[event.connection].feed(event.data):
                    request = decode_request(frame)
                    self.cluster.requests.append((self.node_id, request))
                    self._queues[event.connection].append((request, now_ns))
        for connection, queue in list(self._queues.items()):
            while queue and connection in self._queues and self._answer(connection, *queue[0]):
                queue.pop(0)
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        waits = [
            since_ns + ms_to_ns(queue[0][0].message.max_wait_ms)
            for queue in self._queues.values()
            if queue
            for since_ns in [queue[0][1]]
        ]
        return min(waits, default=None)

    def hang_up(self) -> None:
        """Close every connection."""
        self._effects += [Close(connection) for connection in self._queues]
        self._queues.clear()
        self.cluster.host.wake(self.cluster.handles[self.node_id - 1])

    def serve(self, api_key: ApiKey, answer: Callable[[Request], Message | None]) -> None:
        """Have another part of the rig answer requests of one kind; None: not yet."""
        self.answers[api_key] = answer

    def _answer(self, connection: int, request: Request, since_ns: int) -> bool:
        answer = self.answers[ApiKey(request.api_key)](request)
        if answer is None:  # it waits
            return False
        if request.api_key == ApiKey.FETCH and self._now_ns < since_ns + ms_to_ns(
            request.message.max_wait_ms
        ):
            parts = [part for topic in answer.responses for part in topic.partitions]
            if not any(part.records or part.error_code for part in parts):
                return False
        if connection not in self._queues:  # a test hung up meanwhile
            return True
        self._effects.append(
            Write(
                connection, encode_response(request.api_key, request.version, request.correlation_id, answer)
            )
        )
        return True

    def _api_versions(self, request: Request) -> Message:
        keys = [
            Message(api_key=int(key), min_version=low, max_version=high)
            for key, (low, high) in self.cluster.versions.items()
        ]
        return Message(error_code=0, api_keys=keys, throttle_time_ms=0)

    def _metadata(self, request: Request) -> Message:
        cluster = self.cluster
        by_id = {topic.topic_id: name for name, topic in cluster.topics.items()}
        names = (
            list(cluster.topics)
            if request.message.topics is None
            else [topic.name or by_id.get(topic.topic_id, "") for topic in request.message.topics]
        )
        brokers = [
            Message(node_id=node.node_id, host=f"node{node.node_id}", port=PORT, rack=None)
            for node in cluster.nodes
        ]
        leaderless = cluster.no_leader_answers > 0 and bool(names)
        cluster.no_leader_answers -= leaderless
        topics = [self._topic_metadata(name, leaderless) for name in names]
        return Message(
            throttle_time_ms=0,
            error_code=0,
            brokers=brokers,
            cluster_id="fake",
            controller_id=cluster.controller,
            topics=topics,
        )

    def _topic_metadata(self, name: str, leaderless: bool) -> Message:
        topic = self.cluster.topics.get(name)
        if topic is None:
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return Message(
                error_code=missing, name=name, topic_id=uuid.UUID(int=0), is_internal=False, partitions=[]
            )
        partitions = [
            Message(
                error_code=0,
                partition_index=number,
                leader_id=-1 if leaderless else log.leader,
                leader_epoch=log.epoch,
                replica_nodes=[log.leader],
                isr_nodes=[log.leader],
                offline_replicas=[],
            )
            for number, log in enumerate(topic.logs)
        ]
        return Message(
            error_code=0,
            name=name,
            topic_id=topic.topic_id,
            is_internal=name.startswith("__"),
            partitions=partitions,
        )

    def _list_offsets(self, request: Request) -> Message:
        topics = []
        for topic in request.message.topics:
            parts = []
            for item in topic.partitions:
                partition = TopicPartition(topic.name, item.partition_index)
                code, offset, time_ms = self._problem(ApiKey.LIST_OFFSETS, partition), NO_OFFSET, -1
                if not code:
                    log = self.cluster.log(*partition)
                    later = [
                        (at, time)
                        for at, time in sorted(log.times_ms.items())
                        if at >= log.start and time >= item.timestamp >= 0
                    ]
                    ends = {-2: log.start, -1: log.readable_end(request.message.isolation_level)}
                    offset, time_ms = (
                        (ends[item.timestamp], -1)
                        if item.timestamp in ends
                        else later[0]
                        if later
                        else (NO_OFFSET, -1)
                    )
                part = Message(
                    partition_index=item.partition_index,
                    error_code=code,
                    timestamp=time_ms,
                    offset=offset,
                    leader_epoch=0,
                )
                parts.append(part)
            topics.append(Message(name=topic.name, partitions=parts))
        return Message(throttle_time_ms=0, topics=topics)

    def _fetch(self, request: Request) -> Message:
        names = {topic.topic_id: name for name, topic in self.cluster.topics.items()}
        room = request.message.max_bytes
        responses = []
        for topic in request.message.topics:
            name = topic.topic if request.version < 13 else names.get(topic.topic_id, "")
            parts = []
            for item in topic.partitions:
                part = self._fetch_partition(
                    TopicPartition(name, item.partition), item, room, request.message.isolation_level
                )
                room -= len(part.records)
                parts.append(part)
            responses.append(Message(topic=name, topic_id=topic.topic_id, partitions=parts))
        return Message(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)

    def _fetch_partition(
        self, partition: TopicPartition, item: Message, room: int, isolation_level: int
    ) -> Message:
        code = self._problem(ApiKey.FETCH, partition)
        log = None if code else self.cluster.log(*partition)
        known_end = log.ended.get(getattr(item, "last_fetched_epoch", -1)) if log is not None else None
        if log is not None and known_end is None and not log.start <= item.fetch_offset <= log.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        data = b""
        if log is not None and not code:
            for _, last, batch in log.batches:
                if (
                    log.readable_end(isolation_level) > last >= item.fetch_offset
                    and room > 0
                    and (not data or len(data) + len(batch) <= min(item.partition_max_bytes, room))
                ):
                    data += batch
        part = Message(
            partition_index=item.partition,
            error_code=code,
            high_watermark=log.end if log else -1,
            last_stable_offset=log.readable_end(1) if log else -1,
            log_start_offset=log.start if log else -1,
            aborted_transactions=[
                Message(producer_id=writer, first_offset=first)
                for writer, first, marker in log.aborted
                if marker >= item.fetch_offset
            ]
            if log and isolation_level
            else None,
            preferred_read_replica=-1,
            records=data,
        )
        if known_end is not None and known_end < item.fetch_offset:
            part.records, part.diverging_epoch = (
                b"",
                Message(epoch=item.last_fetched_epoch, end_offset=known_end),
            )
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER and self.cluster.tag_leaders:
            moved = self.cluster.log(*partition)
            part.current_leader = Message(leader_id=moved.leader, leader_epoch=moved.epoch)
        return part
