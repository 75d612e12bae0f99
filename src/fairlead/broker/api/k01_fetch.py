"""Fetch (1): record batches from an offset on, at once or when enough of them are there.

Versions 4-18, consumers and debugging clients alike. Topics by name up to 12, by id from 13 on. At least one whole batch is given even
above max_bytes (KIP-74). Fetch sessions (KIP-227) are declined, as Kafka does when its cache is full: the answer's session id
is 0, and a session id in a request is FETCH_SESSION_ID_NOT_FOUND. With isolation level 1 (read_committed) nothing beyond the last
stable offset is given, and the aborted transactions among what is given are listed, by first offset. Not done: preferred replicas
(KIP-392; one replica), rack ids, fetches of followers (replica id >= 0 is refused with NOT_LEADER_OR_FOLLOWER per partition).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.units import ms_to_ns
from fairlead.broker.controller import TopicImage
from fairlead.broker.dispatch import Reply, serves
from fairlead.broker.log import Location, Partition
from fairlead.core.effects import Buffer
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session

_NAMES_UNTIL_VERSION = 12
_MANY = 8
_SMALL_BATCH_BYTES = 4096
_CONSUMER = -1
_READ_COMMITTED = 1
_DEBUGGER = -2


@dataclass(slots=True)
class _Want:
    """One partition of a request."""

    topic: TopicImage | None
    data: Any
    missing_code: int


@dataclass(slots=True)
class _Plan:
    """What would be answered now: rows without records, and where the records lie."""

    rows: list[list[Message]]
    locations: list[Location]
    counts: list[tuple[Message, int]]
    """(row, how many of the locations are its own), in order."""
    size_bytes: int
    final: bool
    """There is an error or a diverging epoch, which is answered without waiting."""
    hints: list[Message]


@serves(ApiKey.FETCH, versions=(4, 18))
def fetch(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Answer now if there is reason to, else when there is."""
    message = request.message
    refused = _session_error(message)
    if refused:
        reply(Message(throttle_time_ms=0, error_code=refused, session_id=0, responses=[]))
        return
    waiting = _Fetch(broker, request, session, reply)
    plan = waiting.plan()
    if message.max_wait_ms <= 0 or not waiting.count or plan.final or plan.size_bytes >= message.min_bytes:
        waiting.answer(plan)
    else:
        waiting.park()


def _session_error(message: Any) -> int:
    """Sessions are declined; whoever claims to have one is told to do without."""
    if message.session_id != 0:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    return ErrorCode.INVALID_FETCH_SESSION_EPOCH if message.session_epoch > 0 else ErrorCode.NONE


class _Fetch:
    """One request, perhaps waiting in the purgatory."""

    def __init__(self, broker: Broker, request: Request, session: Session, reply: Reply) -> None:
        self._broker = broker
        self._message = request.message
        self._session = session
        self._reply = reply
        self._by_id = request.version > _NAMES_UNTIL_VERSION
        self._committed = request.message.isolation_level == _READ_COMMITTED
        self._wants = [(topic, self._wants_of(topic)) for topic in request.message.topics]
        self._watched: dict[Partition, tuple[int, int]] = {}
        self._available: dict[Partition, int] = {}
        self._gathered_bytes = 0
        self.count = sum(len(wants) for _topic, wants in self._wants)

    def _wants_of(self, asked: Any) -> list[_Want]:
        image = self._broker.controller.image
        if self._by_id:
            topic = image.topics_by_id.get(asked.topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = image.topics.get(asked.topic)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return [_Want(topic, data, missing) for data in asked.partitions]

    # --- What would be answered now

    def plan(self) -> _Plan:
        """Choose batches for every partition, in the order of the request, within its limits."""
        plan = _Plan([], [], [], 0, False, [])
        room_bytes = self._message.max_bytes
        for _asked, wants in self._wants:
            rows = []
            for want in wants:
                row = self._plan_partition(plan, want, room_bytes - plan.size_bytes)
                plan.final = plan.final or row.error_code != ErrorCode.NONE
                rows.append(row)
            plan.rows.append(rows)
        return plan

    def _plan_partition(self, plan: _Plan, want: _Want, room_bytes: int) -> Message:
        data = want.data
        partition = self._find(want)
        if isinstance(partition, int):
            row = _row(data.partition, partition, -1, -1)
            if partition in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                row.current_leader = self._broker.partitions.leader_hint(want.topic, data.partition)
                plan.hints.append(row.current_leader)
            return row
        offset = data.fetch_offset
        if not partition.log_start <= offset <= partition.log_end:
            # As Kafka's `KafkaApis`: unknown watermarks with OFFSET_OUT_OF_RANGE, so that nobody trusts them.
            return _row(data.partition, ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)
        limit = self._limit(partition)
        row = _row(data.partition, ErrorCode.NONE, partition.high_watermark, partition.log_start)
        row.last_stable_offset = partition.last_stable_offset
        if self._committed:
            row.aborted_transactions = []
        if data.last_fetched_epoch >= 0:
            epoch = self._broker.partitions.leader_epoch(partition)
            known_epoch, end_offset = partition.epochs.end_offset(data.last_fetched_epoch, epoch, partition.log_end)
            if known_epoch < data.last_fetched_epoch or end_offset < offset:
                row.diverging_epoch = Message(epoch=known_epoch, end_offset=end_offset)
                plan.final = True
                return row
        if offset < limit and (room_bytes > 0 or not plan.locations):
            limit_bytes = min(room_bytes, data.partition_max_bytes)
            chosen = partition.select(offset, limit, limit_bytes, at_least_one=not plan.locations)
            if chosen:
                if self._committed:
                    row.aborted_transactions = _aborted(partition, offset, len(chosen))
                plan.counts.append((row, len(chosen)))
                plan.locations.extend(chosen)
                plan.size_bytes += sum(location.size_bytes for location in chosen)
        return row

    def _limit(self, partition: Partition) -> int:
        """Where reading ends: the high watermark, or for readers of committed records the last stable offset."""
        return partition.last_stable_offset if self._committed else partition.high_watermark

    def _find(self, want: _Want) -> Partition | int:
        if want.topic is None or self._broker.controller.image.topics_by_id.get(want.topic.topic_id) is not want.topic:
            return want.missing_code
        if self._message.replica_id not in (_CONSUMER, _DEBUGGER):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return self._broker.partitions.find(want.topic, want.data.partition, want.data.current_leader_epoch)

    # --- Answering

    def answer(self, plan: _Plan) -> None:
        """Read the planned batches and reply."""

        def read(batches: list[Buffer] | None) -> None:
            position = 0
            for row, count in plan.counts:
                if batches is None:
                    row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                else:
                    row.records = _joined(batches[position : position + count])
                    position += count
            self._send(plan)

        self._broker.logs.read(plan.locations, read)

    def _send(self, plan: _Plan) -> None:
        responses = [
            Message(topic_id=asked.topic_id, partitions=rows) if self._by_id else Message(topic=asked.topic, partitions=rows)
            for (asked, _wants), rows in zip(self._wants, plan.rows, strict=True)
        ]
        answer = Message(throttle_time_ms=0, error_code=ErrorCode.NONE, session_id=0, responses=responses)
        if plan.hints:
            answer.node_endpoints = self._broker.partitions.endpoints(plan.hints)
        self._reply(answer)

    # --- Waiting

    def park(self) -> None:
        """Wait for min_bytes, or max_wait_ms."""
        broker = self._broker
        self._timer = broker.call_at(broker.now_ns + ms_to_ns(self._message.max_wait_ms), self.complete)
        self._session.on_close(self._leave)
        for _asked, wants in self._wants:
            for want in wants:
                partition = self._find(want)
                if isinstance(partition, Partition):
                    self._watched[partition] = (want.data.fetch_offset, want.data.partition_max_bytes)
                    self._count(partition)
                    broker.purgatory.watch(partition, self)

    def advanced(self, partition: Partition) -> None:
        """More can be read; answer if that is enough."""
        self._count(partition)
        if self._gathered_bytes >= self._message.min_bytes:
            self.complete()

    def _count(self, partition: Partition) -> None:
        offset, limit_bytes = self._watched[partition]
        available_bytes = min(limit_bytes, partition.available_bytes(offset, self._limit(partition), self._message.min_bytes))
        self._gathered_bytes += available_bytes - self._available.get(partition, 0)
        self._available[partition] = available_bytes

    def complete(self) -> None:
        """Answer with what is there."""
        self._leave()
        self.answer(self.plan())

    def _leave(self) -> None:
        self._timer.cancel()
        self._session.forget_on_close(self._leave)
        for partition in self._watched:
            self._broker.purgatory.forget(partition, self)


def _joined(batches: list[Buffer]) -> Buffer | list[Buffer]:
    """Many small batches as one buffer: copying them costs less than sending each on its own."""
    if len(batches) > _MANY and sum(map(len, batches)) < len(batches) * _SMALL_BATCH_BYTES:
        return b"".join(batches)
    return batches


def _aborted(partition: Partition, offset: int, batch_count: int) -> list[Message]:
    """The aborted transactions in `batch_count` batches from `offset` on."""
    index = partition.index
    stop = index.last_offsets[index.first_reaching(offset) + batch_count - 1] + 1
    return [Message(producer_id=each.producer_id, first_offset=each.first_offset) for each in partition.aborted(offset, stop)]


def _row(number: int, error_code: int, high_watermark: int, log_start: int) -> Message:
    return Message(
        partition_index=number,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=log_start,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=b"",
    )
