"""Binding of unbound records, for the brokers that can take them now (policy `late`)."""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.partitioning import BrokerView
from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.nodes import NodeState
from fairlead_kafka.producer.parts import Parts
from fairlead_kafka.producer.queues import LateQueue, PartitionQueue, TopicBuffer
from fairlead_kafka.producer.request import Request
from fairlead_kafka.producer.tuning import REQUEST_PARTS, TAKEN_AHEAD


class Shared(NamedTuple):
    """Bytes of bound and of unbound records in one batch, before compression."""

    bound_bytes: int
    unbound_bytes: int


def shared(limit_bytes: int, bound_bytes: int, unbound_bytes: int) -> Shared:
    """Share a batch of at most `limit_bytes` between bound and unbound records.

    Each kind gets half, or what the other leaves.
    """
    bound = min(bound_bytes, max(limit_bytes - unbound_bytes, limit_bytes // 2))
    return Shared(bound, min(unbound_bytes, limit_bytes - bound))


class Binder:
    """Binds unbound records, for `Drain`: a round binds at most one batch to each partition."""

    def __init__(self, parts: Parts, accumulator: Accumulator) -> None:
        self.settings = settings = parts.settings
        self.accumulator = accumulator
        self.schedule = parts.schedule
        self.identity = parts.identity
        self.transactions = parts.transactions
        self.nodes = parts.nodes
        self.coalesces = settings.coalesce_limit_bytes > settings.batch_limit_bytes
        self.next_ns = NEVER_NS
        """When to `bind` again, by the last `bind`: a broker with room is due (`Nodes.wait_ns`), or
        records have lingered."""
        self._round: list[
            LateQueue
        ] = []  # of the last round: they end once its batches are encoded and entered in the byte counter

    def count(self, topic: TopicBuffer, now_ns: int) -> None:
        """Set which partitions of the topic count in the byte counter: those of brokers that
        respond, unless they are in `LateQueue.blocked`. A blocked partition whose failed batches
        are completed is taken out of that set here: if its broker has no other partition, nothing
        else would notice it."""
        late = topic.late
        assert late is not None
        counter = late.policy.counter
        for partition in [each for each in late.blocked if not _is_blocked(topic.queue(each))]:
            late.blocked.discard(partition)
            if late.counted.get(topic.leaders[partition]):
                counter.come_back([partition])
        late.policy.observe(late.arrived_bytes, now_ns)
        for node_id, partitions in topic.led.items():
            responds = self.nodes.responds(node_id, now_ns)
            if late.counted.get(node_id) is not responds:
                late.counted[node_id] = responds
                if responds:
                    counter.come_back(set(partitions) - late.blocked)
                else:
                    counter.leave(partitions)

    def bind(self, requests: dict[int, Request], now_ns: int) -> None:
        """Cut batches from the unbound queues of all topics, in fair rotation, for the brokers that
        can take one now."""
        takers: dict[int, NodeState] = {}
        for node_id in {node_id: None for topic in self.accumulator.late.values() for node_id in topic.led}:
            state = self.nodes.state(node_id)
            if self.nodes.can_take(node_id, full=not self.coalesces) and not self.nodes.silent(state, now_ns):
                takers[node_id] = state
        waiting = self.accumulator.late
        self.next_ns = NEVER_NS
        for name, topic in list(waiting.items()):
            if not takers:
                return
            late = topic.late
            assert late is not None
            waiting_bytes = late.size_bytes
            binding = _Binding(self, topic, late, takers, requests, now_ns)
            binding.run()
            if late.size_bytes < waiting_bytes:
                waiting[name] = waiting.pop(name)  # a topic that got something is last from now on
            if binding.outside and late.count:
                self._join(topic, late, binding.outside)
            self._round.append(late)
            if not late.count:
                self.accumulator.late_done(topic)
            else:
                self.next_ns = min(self.next_ns, binding.next_ns)

    def request_bytes(self, node_id: int) -> int:
        """Bytes of a request for unbound records: half if bound ones are ready for the broker."""
        node = self.schedule.nodes.get(node_id)
        return self.settings.max_request_bytes // (2 if node is not None and node.ready else 1)

    def end_round(self) -> None:
        """End the last round: its batches are encoded now, and their bytes are counted in the byte
        counter."""
        for late in self._round:
            late.policy.end_round()
        self._round.clear()

    def _join(self, topic: TopicBuffer, late: LateQueue, outside: list[int]) -> None:
        """Have partitions of `outside` added to the transaction: as many as there are batches of
        waiting records, and no more."""
        name, transactions = topic.name, self.transactions
        joining = [partition for partition in late.joining if not transactions.may_send(name, partition)]
        wanted = late.size_bytes * topic.ratio // max(topic.batch_limit_bytes, 1) + 1
        late.joining = dict.fromkeys(
            (joining + [each for each in outside if each not in late.joining])[: int(wanted)]
        )
        for partition in late.joining:
            transactions.partition_used(name, partition)  # again, if it was for an earlier transaction


class _Binding:
    """Binds one topic's records in one round.

    Brokers that can take a request now get what need not be kept for others, the least first.
    """

    def __init__(
        self,
        binder: Binder,
        topic: TopicBuffer,
        late: LateQueue,
        takers: dict[int, NodeState],
        requests: dict[int, Request],
        now_ns: int,
    ) -> None:
        self._binder, self._topic, self._late = binder, topic, late
        self._takers, self._requests, self._now_ns = takers, requests, now_ns
        self.outside: list[int] = []
        """Partitions that could have been bound to, were they part of the transaction."""
        self.next_ns = NEVER_NS
        """When a broker with room is due, or records have lingered."""
        self._ratio = ratio = topic.ratio
        self._full_bytes = max(int(topic.batch_limit_bytes / ratio), 1)
        self._limit_bytes = max(
            topic.most_bytes(late, min(max(map(len, topic.led.values()), default=1), REQUEST_PARTS)), 1
        )
        """Most bytes of records, before compression, that a batch may be cut of."""

    def run(self) -> None:
        """Bind unbound records of the topic to brokers that can take a batch now."""
        late = self._late
        if not late.count or not self._due():
            return
        views = self._views()
        left_bytes, quotas = late.policy.quotas(late.size_bytes, views, self._ratio, self._now_ns)
        lacking_bytes = sum([quota.lacks_bytes for quota in quotas])
        for node_id, lacks_bytes, most_bytes in quotas:
            if not late.count or not self._due() or left_bytes <= 0:
                break
            # What it lacks itself, or what the others do not; some of these may be free and have no
            # partition that can begin a batch.
            size_bytes = min(
                max(left_bytes - (lacking_bytes - lacks_bytes), lacks_bytes), most_bytes, left_bytes
            )
            if size_bytes <= 0 or not self._is_free(node_id, int(size_bytes), views[node_id].wait_ns):
                continue
            if lacks_bytes or not self._lingers(size_bytes):
                taken_bytes = self._take(node_id, int(size_bytes))
                left_bytes -= taken_bytes
                lacking_bytes -= min(taken_bytes, lacks_bytes)
        if quotas and left_bytes <= 0 and late.count:
            late.kept_ns = self._now_ns

    def _views(self) -> dict[int, BrokerView]:
        """The state of each broker that leads partitions of the topic, by node id."""
        binder, most_bytes = self._binder, self._binder.settings.max_request_bytes
        views = {}
        for node_id, partitions in self._topic.led.items():
            wait_ns = binder.nodes.wait_ns(node_id, self._now_ns)
            takes_bytes = min(
                TAKEN_AHEAD * self._limit_bytes * len(partitions), int(most_bytes / self._ratio)
            )
            views[node_id] = BrokerView(
                wait_ns, takes_bytes, self._is_free(node_id, self._late.size_bytes, wait_ns)
            )
            if wait_ns and node_id in self._takers:
                self.next_ns = min(self.next_ns, self._now_ns + wait_ns)
        return views

    def _is_free(self, node_id: int, size_bytes: int, wait_ns: int) -> bool:
        """True if the broker can be sent `size_bytes` now. Only a full batch may take the last
        places of a window, or be sent before `wait_ns` (ns) have passed."""
        state = self._takers.get(node_id)
        if state is None or size_bytes >= self._full_bytes:
            return state is not None
        return state.in_flight < state.window.partial_limit and (wait_ns == 0 or self._binder.schedule.hurry)

    def _due(self) -> bool:
        """True if something may leave: a full batch, or records that have lingered."""
        if self._late.size_bytes >= self._full_bytes or self._binder.schedule.hurry:
            return True
        return self._late.oldest_ns + self._topic.linger_ns <= self._now_ns

    def _lingers(self, size_bytes: float) -> bool:
        """True if an open batch waits for more records.

        linger.ms counts from the last time that records were bound which are not kept for busy
        brokers.
        """
        if size_bytes >= self._full_bytes or self._binder.schedule.hurry:
            return False
        until_ns = self._late.kept_ns + self._topic.linger_ns
        if until_ns > self._now_ns:
            self.next_ns = min(self.next_ns, until_ns)
        return until_ns > self._now_ns

    def _take(self, node_id: int, most_bytes: int) -> int:
        """Bind up to `most_bytes` to the broker, and return the bytes bound.

        It gets batches of one size, for as many of its partitions as full ones can be cut for.
        """
        late, before_bytes = self._late, self._late.size_bytes
        parts = min(max(most_bytes // self._full_bytes, 1), len(self._topic.led[node_id]))
        part_bytes = min(-(-most_bytes // parts), self._limit_bytes)
        while late.count and node_id in self._takers:
            left_bytes = most_bytes - (before_bytes - late.size_bytes)
            if left_bytes < min(late.next_bytes, most_bytes):
                break
            partition = late.policy.next_in_round(node_id)
            if partition < 0:
                break
            self._bind(partition, min(part_bytes, left_bytes))
        return before_bytes - late.size_bytes

    def _bind(self, partition: int, room_bytes: int) -> None:
        """Cut a batch of unbound records for the partition, if it may have one: `room_bytes` at
        most, or one record. Records that are bound to the partition already go into the same batch,
        which both kinds share (`shared`): a request carries one batch of a partition, so by itself
        it would have to wait for the next one."""
        binder, late, topic = self._binder, self._late, self._topic
        queue, node_id = topic.queue(partition), topic.leaders[partition]
        request = self._requests.get(node_id)
        if request is None:
            request = Request()
        elif queue in request.queues:
            return
        room_bytes = max(min(late.size_bytes, room_bytes), late.next_bytes)
        bound_bytes = 0
        if queue.records.count:
            together = shared(self._limit_bytes, queue.records.size_bytes, room_bytes)
            if queue.records.next_bytes <= together.bound_bytes and late.next_bytes <= together.unbound_bytes:
                bound_bytes, room_bytes = together
            elif queue.records.oldest_ns <= late.oldest_ns:
                return  # too large to share a batch: what came first goes first
        size_bytes = request.size_bytes + int((bound_bytes + room_bytes) * self._ratio) + BATCH_OVERHEAD_BYTES
        if request.batches and size_bytes > binder.request_bytes(node_id):
            self._takers.pop(node_id, None)
            return
        if binder.transactions.transactional and not binder.transactions.may_send(topic.name, partition):
            self.outside.append(partition)
            return
        if not self._may_begin(queue):
            return
        batch = binder.accumulator.cut(queue, bound_bytes, late, room_bytes)
        request.add(batch, idempotent=binder.settings.idempotent)
        self._requests[node_id] = request
        if batch.bound_bytes:
            binder.schedule.place(queue, self._now_ns)

    def _may_begin(self, queue: PartitionQueue) -> bool:
        """True if a new batch of this partition may go out now; retries go first.

        A partition with a failed batch may take nothing for long; it does not count in the byte
        counter meanwhile.
        """
        binder, late, partition, sequences = self._binder, self._late, queue.partition, queue.sequences
        if _is_blocked(queue):
            if partition not in late.blocked:
                late.blocked.add(partition)
                late.policy.counter.leave([partition])
            return False
        if queue.in_flight and binder.settings.keeps_order_by_muting:
            return False
        return not binder.settings.idempotent or sequences.may_drain(None, binder.identity, queue.in_flight)


def _is_blocked(queue: PartitionQueue) -> bool:
    """True if a failed batch of the partition goes first, which may take long."""
    sequences = queue.sequences
    return bool(queue.retries or sequences.unresolved or (sequences.rewrite and queue.in_flight))
