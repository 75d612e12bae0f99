"""The bound on a broker's share of buffer.memory: a dead or slow broker must not block the
others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.errors import BufferExhausted
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.producer.queues import Batch, PartitionQueue, TopicBuffer
from fairlead_kafka.producer.submission import Int32, Int64


class Share:
    """Bytes of buffer.memory held by bound records, waiting or in flight, by broker.

    Records without key or partition are not counted under `late`: they go to brokers with room.
    Partitions without a leader count as one broker. While no other broker has had any traffic
    nothing is refused, for there is no other broker's share to protect.
    """

    def __init__(self, limit_bytes: int | None, total_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        """`buffer.memory.per.broker.ratio` of buffer.memory; None: no bound, and nothing is
        counted."""
        self._total_bytes = total_bytes
        self._held: dict[int, int] = {}

    def held_bytes(self, node_id: int) -> int:
        """Bytes of buffer.memory that records bound to the broker hold now."""
        return self._held.get(node_id, 0)

    def bound(self, queue: PartitionQueue, size_bytes: int) -> None:
        """Count bytes of records that were bound to the queue's partition; negative for records
        that are completed."""
        if self.limit_bytes is not None:
            self._follow(queue)
            queue.held_bytes += size_bytes
            self._held[queue.held_for] = self._held.get(queue.held_for, 0) + size_bytes

    def completed(self, batch: Batch) -> None:
        """Subtract the bytes of a batch whose records are delivered or failed."""
        self.bound(batch.queue, -batch.bound_bytes)

    def leaders_changed(self, topics: Iterable[TopicBuffer]) -> None:
        """Count the bytes of partitions that have moved against the shares of their new leaders."""
        if self.limit_bytes is not None:
            for topic in topics:
                for queue in topic.used():
                    self._follow(queue)

    def refused(
        self, topic: TopicBuffer, partitions: Int32, rows: Int64 | None, sizes: Int64
    ) -> list[tuple[Int64, BufferExhausted]]:
        """Rows that find no room in the share of their partition's leader, with the error for them.

        `partitions` int32[n] and `sizes` int64[n] are of all rows; `rows` are those to be bound,
        None: all. Once a row finds no room, all later rows for the same broker are refused too, so
        that order holds.
        """
        if self.limit_bytes is None:
            return []
        chosen = np.arange(len(partitions), dtype=np.int64) if rows is None else rows
        leaders = np.array(topic.leaders, np.int64)[partitions[chosen]]
        found: list[tuple[Int64, BufferExhausted]] = []
        for node_id in np.unique(leaders).tolist():
            room = self.limit_bytes - self.held_bytes(node_id)
            of_node = chosen[leaders == node_id]
            if room >= int(sizes[of_node].sum()) or not self._others(node_id):
                continue
            fitting = int(np.searchsorted(np.cumsum(sizes[of_node]), max(room, 0), "right"))
            found.append((of_node[fitting:], self._error(topic, node_id)))
        return found

    def _follow(self, queue: PartitionQueue) -> None:
        leader = queue.topic.leaders[queue.partition]
        if queue.held_for != leader:
            if queue.held_bytes:
                self._held[queue.held_for] -= queue.held_bytes
                self._held[leader] = self._held.get(leader, 0) + queue.held_bytes
            queue.held_for = leader

    def check(self, topics: Iterable[TopicBuffer], batches: Iterable[Batch]) -> None:
        """Raise CheckFailed unless the bytes counted are those that the queues of `topics` and the
        incomplete `batches` hold."""
        if self.limit_bytes is None:
            same("bytes held by broker", self._held, {})
            return
        by_queue: Counter[PartitionQueue] = Counter()
        for batch in batches:
            by_queue[batch.queue] += batch.bound_bytes
        by_node: Counter[int] = Counter()
        for queue in (queue for topic in topics for queue in topic.used()):
            same(f"bytes held by {queue}", queue.held_bytes, by_queue[queue] + queue.records.size_bytes)
            by_node[queue.held_for] += queue.held_bytes
        same("bytes held by broker", +Counter(self._held), +by_node)

    def _others(self, node_id: int) -> bool:
        """True if any other broker had records bound to it so far."""
        return any(other not in (node_id, NO_LEADER) for other in self._held)

    def _error(self, topic: TopicBuffer, node_id: int) -> BufferExhausted:
        who = "partitions without a leader" if node_id == NO_LEADER else f"broker {node_id}"
        held = self.held_bytes(node_id)
        return BufferExhausted(
            f"topic {topic.name!r}: records bound to {who} hold {held} bytes already, and may hold "
            f"{self.limit_bytes} of "
            f"buffer.memory={self._total_bytes} (buffer.memory.per.broker.ratio); send them again later, or "
            "raise the ratio"
        )
