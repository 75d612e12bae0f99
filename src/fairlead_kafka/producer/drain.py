"""The drain: fills requests with bound batches, in rotation; the `Binder` adds unbound records."""

from __future__ import annotations

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.binding import Binder
from fairlead_kafka.producer.nodes import NodeState
from fairlead_kafka.producer.parts import Parts
from fairlead_kafka.producer.queues import PartitionQueue
from fairlead_kafka.producer.request import Request
from fairlead_kafka.producer.schedule import NodeQueues
from fairlead_kafka.producer.tuning import REQUEST_PARTS


class Drain:
    """Fills requests, for the sender: a round makes at most one request for each broker. The sender
    asks for rounds until one makes none."""

    def __init__(self, parts: Parts, accumulator: Accumulator) -> None:
        self._settings = parts.settings
        self._network = parts.network
        self._accumulator = accumulator
        self._schedule = parts.schedule
        self._identity = parts.identity
        self._transactions = parts.transactions
        self._nodes = parts.nodes
        self._idempotent = parts.settings.idempotent
        self._mutes = parts.settings.keeps_order_by_muting
        self._binder = Binder(parts, accumulator)
        self.next_ns: int | None = None
        """When unbound records have to be looked at again, if nothing happens before."""

    def look(self, now_ns: int) -> None:
        """Look which brokers can take requests, and connect to the others. Called before the rounds
        of a step."""
        network, nodes = self._network, self._nodes
        for node_id in tuple(nodes.unready):
            nodes.look(node_id, now_ns)
        for node_id, node in self._schedule.nodes.items():
            if not node.ready:
                continue
            if not nodes.look(node_id, now_ns) and not network.blocked(node_id):
                network.connect(node_id)
        if self._accumulator.late:
            nodes.plan()
            for topic in self._accumulator.late.values():
                self._binder.count(topic, now_ns)

    def round(self, now_ns: int) -> dict[int, Request]:
        """One request for each broker that can take one and has something to take: unbound records
        first, then bound ones."""
        requests: dict[int, Request] = {}
        self._binder.end_round()
        if self._accumulator.late:
            self._binder.bind(requests, now_ns)
        for node_id, node in self._schedule.nodes.items():
            if node.ready and self._nodes.can_take(node_id, full=True):
                request = requests.get(node_id) or Request()
                self._take_ready(node, request, self._nodes.state(node_id), now_ns)
                if request.batches:
                    requests[node_id] = request
        return requests

    def enter(self, request: Request) -> None:
        """Count the bytes of a request's encoded batches in the byte counters of `late`
        policies."""
        for batch in request.fresh:
            late = batch.queue.topic.late
            if late is not None and (
                self._settings.skew_includes_keyed or batch.bound_bytes < batch.held_bytes
            ):
                assert batch.buffer is not None
                keyed = 0.0 if self._settings.skew_includes_keyed else batch.bound_bytes / batch.held_bytes
                late.policy.placed(batch.queue.partition, int(len(batch.buffer) * (1 - keyed)))

    def plan(self, now_ns: int) -> None:
        """Set `next_ns`, the time at which unbound records have lingered or a broker has been
        silent for too long. Called after the rounds of a step."""
        dues: list[int] = []
        blocked = False
        for topic in self._accumulator.late.values():
            due_ns = topic.late.oldest_ns + topic.linger_ns if topic.late is not None else 0
            if due_ns > now_ns and not self._schedule.hurry:
                dues.append(due_ns)
            blocked = blocked or due_ns <= now_ns or self._schedule.hurry
        if self._accumulator.late and now_ns < self._binder.next_ns < NEVER_NS:
            dues.append(self._binder.next_ns)
        if blocked or dues:
            silence_ns = self._nodes.next_ns(now_ns)
            dues += [] if silence_ns is None else [silence_ns]
        self.next_ns = min(dues, default=None)

    # Bound batches

    def _take_ready(self, node: NodeQueues, request: Request, state: NodeState, now_ns: int) -> None:
        """Add the first batch of each ready partition in turn, up to max.request.size.

        An idle node is also sent batches that still linger, as Kafka's producer does, for a request
        goes to it anyway. For a busy node that would only make batches smaller. A node whose window
        is used up is sent full batches alone.
        """
        idle, full_only = state.in_flight == 0, state.in_flight >= state.window.limit
        limit_bytes = self._settings.max_request_bytes
        again: list[PartitionQueue] = []
        parts = len(node.ready)
        for _ in range(parts):
            queue = next(iter(node.ready))
            if queue in request.queues or (full_only and not queue.full):
                node.ready.move_to_end(queue)
            elif not self._may_drain(queue):
                self._schedule.park(queue)
            elif request.batches and request.size_bytes + queue.first_bytes > limit_bytes:
                break
            else:
                self._take(queue, request, parts, now_ns)
                node.ready.move_to_end(queue)
                again.append(queue)
        else:
            for queue in list(node.waiting) if idle and request.batches else ():
                if request.size_bytes + queue.first_bytes > limit_bytes:
                    break
                if queue not in request.queues and self._may_drain(queue):
                    self._take(queue, request, parts, now_ns)
                    again.append(queue)
        for queue in again:
            self._schedule.place(queue, now_ns)

    def _take(self, queue: PartitionQueue, request: Request, parts: int, now_ns: int) -> None:
        """Add the next batch of the partition to the request; a batch to be sent again goes as it
        was. `parts`: how many partitions have something to send, so that all fit the request."""
        if queue.retries:
            batch = queue.next_retry()
        else:
            topic = queue.topic
            room_bytes = self._settings.max_request_bytes - request.size_bytes - BATCH_OVERHEAD_BYTES
            most_bytes = min(
                topic.most_bytes(queue.records, min(parts, REQUEST_PARTS)), int(room_bytes / topic.ratio)
            )
            batch = self._accumulator.cut(queue, min(self._schedule.due_bytes(queue, now_ns), most_bytes))
        request.add(batch, idempotent=self._idempotent)

    def _may_drain(self, queue: PartitionQueue) -> bool:
        if queue.in_flight and self._mutes:
            return False
        if not self._transactions.may_send(queue.topic.name, queue.partition):
            return False
        return not self._idempotent or queue.sequences.may_drain(
            queue.retries[0] if queue.retries else None, self._identity, queue.in_flight
        )
