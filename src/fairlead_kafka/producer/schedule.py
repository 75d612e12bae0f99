"""The schedule of partitions' queues, by node: a step looks only at those with something to do."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.producer.queues import PartitionQueue, QueueState

_KEPT = (QueueState.READY, QueueState.WAITING, QueueState.LEADERLESS)
"""The states that have a structure of their own."""


class NodeQueues:
    """The queues of the partitions that one node leads."""

    __slots__ = ("ready", "waiting")

    def __init__(self) -> None:
        self.ready: OrderedDict[PartitionQueue, None] = OrderedDict()
        """In rotation: drained from the front, put back at the end, so that no partition starves
        another."""
        self.waiting: dict[PartitionQueue, None] = {}
        """Queues whose records linger."""


class Schedule:
    """Keeps every queue that has something to send in the one structure that its state calls for
    (`QueueState`)."""

    def __init__(self) -> None:
        self._timers: list[tuple[int, int, PartitionQueue]] = []
        self._counter = count()
        self.nodes: dict[int, NodeQueues] = {}
        self.leaderless: dict[PartitionQueue, None] = {}
        self.active: dict[PartitionQueue, None] = {}
        """Every queue with something that waits, in whatever state but IDLE."""
        self.hurry = False
        """Nothing lingers: flushing, closing, or someone waits for memory."""

    def place(self, queue: PartitionQueue, now_ns: int) -> None:
        """Move `queue`, which has changed, to the structure where its present state belongs."""
        self._leave(queue)
        if not queue.waits:
            self.active.pop(queue, None)
            return
        self.active[queue] = None
        node_id = queue.node_id = queue.topic.leaders[queue.partition]
        if node_id == NO_LEADER:
            queue.state = QueueState.LEADERLESS
            self.leaderless[queue] = None
            return
        if queue.retries and queue.retries[0].retry_at_ns > now_ns:
            queue.state = QueueState.BACKING_OFF
            self._remind(queue, queue.retries[0].retry_at_ns)
            return
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeQueues()
        if queue.full or not self.lingers(queue, now_ns):
            queue.state = QueueState.READY
            node.ready[queue] = None
        else:
            queue.state = QueueState.WAITING
            node.waiting[queue] = None
            self._remind(queue, queue.records.oldest_ns + queue.topic.linger_ns)

    def grew(self, queue: PartitionQueue, now_ns: int) -> None:
        """Called when records were appended: only a queue that was idle, or lingering, can change
        its place by that."""
        state = queue.state
        if state is QueueState.IDLE or (state is QueueState.WAITING and queue.full):
            self.place(queue, now_ns)

    def lingers(self, queue: PartitionQueue, now_ns: int) -> bool:
        """True if records of the queue that were never sent and fill no batch are to wait for
        more."""
        return not (self.hurry or queue.records.oldest_ns + queue.topic.linger_ns <= now_ns)

    def due_bytes(self, queue: PartitionQueue, now_ns: int) -> int:
        """Bytes, before compression, of the queue's records that may be sent for the first time:
        all of them, or, while the open batch lingers, those of full batches."""
        topic, size_bytes = queue.topic, queue.records.size_bytes
        full_bytes = max(
            queue.closed_bytes,
            size_bytes - int(queue.batch_bytes % max(topic.batch_limit_bytes, 1) / topic.ratio),
        )
        return full_bytes if full_bytes > 0 and self.lingers(queue, now_ns) else size_bytes

    def park(self, queue: PartitionQueue) -> None:
        """Keep the queue out of the schedule until `place` is called for it."""
        self._leave(queue)
        queue.state = QueueState.PARKED

    def advance(self, now_ns: int, hurry: bool) -> None:
        """Place queues that have lingered or backed off long enough; `hurry`: all that linger."""
        timers = self._timers
        while timers and timers[0][0] <= now_ns:
            at_ns, _, queue = heappop(timers)
            if queue.timer_ns == at_ns:
                queue.timer_ns = 0
                if queue.state is QueueState.WAITING or queue.state is QueueState.BACKING_OFF:
                    self.place(queue, now_ns)
        self.hurry = hurry
        if hurry:
            for node in self.nodes.values():
                for queue in list(node.waiting):
                    self.place(queue, now_ns)

    def leaders_changed(self, now_ns: int) -> None:
        """Called when the metadata changed: move the queues whose partition has another leader, and
        send at once what waited to be retried there."""
        for queue in list(self.active):
            if queue.state is QueueState.PARKED:
                continue
            metadata = queue.topic.metadata
            first = queue.retries[0] if queue.retries else None
            if (
                first is not None
                and first.retry_at_ns > now_ns
                and metadata is not None
                and queue.partition < len(metadata.partitions)
            ):
                epoch = metadata.partitions[queue.partition].leader_epoch
                if epoch > first.leader_epoch >= 0:
                    first.retry_at_ns = 0  # KIP-951: a new leader need not be spared
                    self.place(queue, now_ns)
                    continue
            if queue.node_id != queue.topic.leaders[queue.partition]:
                self.place(queue, now_ns)

    def next_ns(self) -> int | None:
        """Monotonic time, ns, at which `advance` has something to do; None: at no time."""
        return self._timers[0][0] if self._timers else None

    def check(self, queues: Iterable[PartitionQueue]) -> None:
        """Raise CheckFailed unless each queue with something to send is kept by its state."""
        with_batches = {queue for queue in queues if queue.waits}
        same(
            "queues with something to send",
            {str(each) for each in self.active},
            {str(each) for each in with_batches},
        )
        timers = {(queue, at_ns) for at_ns, _, queue in self._timers}
        kept: Counter[tuple[PartitionQueue, QueueState]] = Counter(
            (queue, QueueState.LEADERLESS) for queue in self.leaderless
        )
        for node_id, node in self.nodes.items():
            kept.update((queue, QueueState.READY) for queue in node.ready)
            kept.update((queue, QueueState.WAITING) for queue in node.waiting)
            of_node = {queue.node_id for queue in (*node.ready, *node.waiting)}
            holds(f"queues of brokers {of_node} are kept for broker {node_id}", of_node <= {node_id})
        calls_for = {(queue, queue.state) for queue in with_batches if queue.state in _KEPT}
        same(
            "queues by state",
            {(str(queue), state) for queue, state in kept},
            {(str(queue), state) for queue, state in calls_for},
        )
        for queue in with_batches:
            holds(f"{queue} has batches and is idle", queue.state is not QueueState.IDLE)
            if queue.state in (QueueState.WAITING, QueueState.BACKING_OFF):
                holds(
                    f"{queue} is {queue.state.name} without a timer",
                    queue.timer_ns > 0 and (queue, queue.timer_ns) in timers,
                )

    def _remind(self, queue: PartitionQueue, at_ns: int) -> None:
        if not queue.timer_ns or at_ns < queue.timer_ns:
            queue.timer_ns = at_ns
            heappush(self._timers, (at_ns, next(self._counter), queue))

    def _leave(self, queue: PartitionQueue) -> None:
        state = queue.state
        if state is QueueState.READY:
            self.nodes[queue.node_id].ready.pop(queue, None)
        elif state is QueueState.WAITING:
            self.nodes[queue.node_id].waiting.pop(queue, None)
        elif state is QueueState.LEADERLESS:
            self.leaderless.pop(queue, None)
        queue.state = QueueState.IDLE
