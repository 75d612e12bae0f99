"""Unbound records, cut and bound for the brokers that can take them now (policy `late`)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.late import LateQueue
from fairlead_kafka.producer.nodes import Nodes, NodeState
from fairlead_kafka.producer.queues import PartitionQueue, TopicQueue
from fairlead_kafka.producer.request import Request
from fairlead_kafka.producer.reserve import Reserve
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.transactions import Transactions

LEAST_PART_BYTES = 512
"""What a broker that lags takes is spread over its partitions, so that others wait for none of them, in parts no smaller than this."""


class Binder:
    """Part of `Drain`: a round binds at most one batch to each partition."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: Accumulator,
        schedule: Schedule,
        identity: Identity,
        transactions: Transactions,
        nodes: Nodes,
    ) -> None:
        self.settings = settings
        self.accumulator = accumulator
        self.schedule = schedule
        self.identity = identity
        self.transactions = transactions
        self.nodes = nodes
        self.gathers = settings.gather_limit_bytes > settings.batch_limit_bytes
        self.paced_ns: int | None = None
        """Found by the last `bind`: when the turn comes of a broker that lags and has room; None: nobody waits for that."""
        self._turns: list[LateQueue] = []  # of the last round: they end once its batches are encoded and entered in the account

    def count(self, topic: TopicQueue, now_ns: int) -> None:
        """Which partitions are in the account: those of brokers that respond, if nothing is wrong with the partition itself."""
        late = topic.late
        assert late is not None
        account = late.policy.account
        for node_id, partitions in topic.led.items():
            responds = self.nodes.responds(node_id, now_ns)
            if late.counted.get(node_id) is not responds:
                late.counted[node_id] = responds
                if responds:
                    account.come_back(set(partitions) - late.troubled)
                else:
                    account.leave(partitions)

    def bind(self, requests: dict[int, Request], now_ns: int) -> None:
        """Cut batches from the unbound queues of all topics, in fair rotation, for the brokers that can take one now."""
        takers: dict[int, NodeState] = {}
        for node_id in {node_id: None for topic in self.accumulator.late.values() for node_id in topic.led}:
            state = self.nodes.state(node_id)
            if self.nodes.can_take(node_id, full=not self.gathers) and not self.nodes.silent(state, now_ns):
                takers[node_id] = state
        waiting = self.accumulator.late
        self.paced_ns = None
        for name, topic in list(waiting.items()):
            if not takers:
                return
            late = topic.late
            assert late is not None
            waiting_bytes = late.size_bytes
            binding = _Binding(self, topic, late, takers, requests, now_ns)
            binding.run()
            if late.size_bytes < waiting_bytes:
                waiting[name] = waiting.pop(name)  # whoever got something is last from now on
            if binding.outside and late.stretches:
                self._join(topic, late, binding.outside)
            self._turns.append(late)
            if not late.stretches:
                self.accumulator.late_done(topic)
            elif binding.paced_ns is not None:
                self.paced_ns = binding.paced_ns if self.paced_ns is None else min(self.paced_ns, binding.paced_ns)

    def end_turns(self) -> None:
        """The last round's batches are encoded and entered in the account."""
        for late in self._turns:
            late.policy.end_turns()
        self._turns.clear()

    def _join(self, topic: TopicQueue, late: LateQueue, outside: list[int]) -> None:
        """Have partitions join the transaction: as many as there are batches left that those in it do not take now, and no more."""
        name, transactions = topic.name, self.transactions
        joining = [partition for partition in late.joining if not transactions.may_send(name, partition)]
        wanted = late.size_bytes * self.accumulator.ratio(topic) // max(topic.batch_limit_bytes, 1) + 1
        late.joining = dict.fromkeys((joining + [each for each in outside if each not in late.joining])[: int(wanted)])
        for partition in late.joining:
            transactions.partition_used(name, partition)  # again, if it was for an earlier transaction


class _Binding:
    """One topic's part of one round.

    A broker that lags gets the newest of what waits, and the others what is older, as far as they do not need to leave it (`Reserve`).
    """

    def __init__(
        self,
        binder: Binder,
        topic: TopicQueue,
        late: LateQueue,
        takers: dict[int, NodeState],
        requests: dict[int, Request],
        now_ns: int,
    ) -> None:
        self._binder, self._topic, self._late = binder, topic, late
        self._takers, self._requests, self._now_ns = takers, requests, now_ns
        self.outside: list[int] = []
        """Partitions that could have been bound to, were they part of the transaction."""
        self._ratio = ratio = binder.accumulator.ratio(topic)
        self._full_bytes = int(topic.batch_limit_bytes / ratio)
        states = {node_id: binder.nodes.state(node_id) for node_id in topic.led} if binder.gathers else {}
        self._lagging = {node_id: state for node_id, state in states.items() if binder.nodes.lags(state)}
        others = [node_id for node_id in topic.led if node_id not in self._lagging]
        self._reserve = Reserve(late, self._find_expected(), others, self._full_bytes, ratio, now_ns)
        # Only a full batch may take the last places of a window.
        self._ready = list(takers)
        self._ready_partial = [node_id for node_id, state in takers.items() if state.in_flight < state.window.partial_limit]
        paced = {} if binder.schedule.hurry else self._find_paced(self._ready_partial)
        self._ready_partial = [node_id for node_id in self._ready_partial if node_id not in paced]
        self.paced_ns = min(paced.values(), default=None)
        """When the first turn comes of a broker that has room already."""
        patience_ns = binder.settings.lead_wait_ns
        self._overdue_ns = None if patience_ns is None else now_ns - patience_ns  # what is from then or before waits for nobody

    def run(self) -> None:
        """Bind what can be bound now."""
        late, next_turn = self._late, self._late.policy.next_turn
        while late.stretches and self._due():
            partition = next_turn(self._now_ready(), overdue=self._overdue())
            if partition < 0:
                break
            if self._topic.leaders[partition] in self._lagging:
                self._bind_newest(partition)
            else:
                self._bind_older(partition)
        self._reserve.end_round()

    def _due(self) -> bool:
        """True if something may leave: a full batch, or records that have lingered."""
        if self._late.size_bytes >= self._full_bytes or self._binder.schedule.hurry:
            return True
        return self._late.oldest_ns + self._binder.settings.linger_ns <= self._now_ns

    def _overdue(self) -> bool:
        return self._overdue_ns is not None and self._late.oldest_ns <= self._overdue_ns

    def _now_ready(self) -> list[int]:
        return self._ready if self._late.size_bytes >= self._full_bytes else self._ready_partial

    def _bind_older(self, partition: int, kept_bytes: int = 0) -> None:
        """The turn of a broker that does not lag: what need not wait for one that does. If nothing may go, its like have no turn either."""
        late = self._late
        most_bytes = late.size_bytes if self._overdue() else min(self._reserve.others_bytes(), late.size_bytes - kept_bytes)
        if most_bytes >= late.next_bytes:
            self._bind(partition, most_bytes)
        else:
            self._no_more([node_id for node_id in self._ready if node_id not in self._lagging])

    def _bind_newest(self, partition: int) -> None:
        """The turn of a broker that lags: others take what they may, and then its partitions an even part each of its portion."""
        late, policy, node_id = self._late, self._late.policy, self._topic.leaders[partition]
        # A record at least, for that may be what the others wait for; and of what waits for nobody a part, like any broker.
        least_bytes = max(int(self._share(node_id) * late.size_bytes), late.next_bytes)
        while late.stretches:
            others = [each for each in self._now_ready() if each not in self._lagging]
            other = policy.next_turn(others, overdue=self._overdue())
            if other < 0:
                break
            self._bind_older(other, least_bytes)
        portion_bytes = max(self._reserve.portion_bytes(node_id), least_bytes)
        parts = min(max(portion_bytes // LEAST_PART_BYTES, 1), len(self._topic.led[node_id]))
        partitions = [partition]
        while len(partitions) < parts and (partition := policy.next_turn((node_id,))) >= 0:
            partitions.append(partition)
        part_bytes, waiting_bytes = -(-portion_bytes // len(partitions)), late.size_bytes
        for partition in partitions:
            if late.stretches:
                self._bind(partition, part_bytes)
        if late.size_bytes < waiting_bytes:
            self._no_more([node_id])  # that was its turn, for all its partitions

    def _no_more(self, node_ids: Sequence[int]) -> None:
        """These brokers have no further turn in this round."""
        self._ready = [each for each in self._ready if each not in node_ids]
        self._ready_partial = [each for each in self._ready_partial if each not in node_ids]

    def _bind(self, partition: int, most_bytes: int) -> None:
        """The partition's turn: a batch of at most so many bytes of records, if it may have one."""
        binder, late, topic = self._binder, self._late, self._topic
        queue, node_id = topic.queue(partition), topic.leaders[partition]
        # What waits for each, in even parts, so that whoever comes later finds his; one that lags may need more to keep up.
        part_bytes = most_bytes if node_id in self._lagging else late.size_bytes // max(late.policy.account.counted, 1)
        request, room_bytes = self._requests.get(node_id), min(max(self._full_bytes, min(part_bytes, self._limit_bytes()), 1), most_bytes)
        if request is None:
            request = Request()
        elif queue in request.queues:
            return
        elif (
            request.size_bytes + int(min(late.size_bytes, room_bytes) * self._ratio) + BATCH_OVERHEAD_BYTES
            > binder.settings.max_request_bytes
        ):
            self._takers.pop(node_id, None)
            self._no_more([node_id])
            return
        if binder.transactions.transactional and not binder.transactions.may_send(topic.name, partition):
            self.outside.append(partition)
            return
        if not self._may_begin(queue):
            return
        batch = binder.accumulator.late_batch(queue, late.oldest_ns)
        self._reserve.took(node_id, late.fill(batch, room_bytes, self._ratio), lags=node_id in self._lagging)
        request.add(batch, idempotent=binder.settings.idempotent)
        self._requests[node_id] = request

    def _find_expected(self) -> dict[int, int]:
        """The brokers that lag and something is kept for, with when each is expected to have room.

        Not for one that has room and may take nothing, being too far ahead: nothing might ever happen to end that.
        """
        led, policy, nodes = self._topic.led, self._late.policy, self._binder.nodes
        return {
            node_id: nodes.free_ns(state)
            for node_id, state in self._lagging.items()
            if state.in_flight or policy.may_have_turn(led[node_id])
        }

    def _find_paced(self, node_ids: Sequence[int]) -> dict[int, int]:
        """Those of these brokers that lag and have room, but not their turn yet, with when they have (`Nodes.paced_ns`)."""
        turns = {node_id: self._binder.nodes.paced_ns(self._lagging[node_id]) for node_id in node_ids if node_id in self._lagging}
        return {node_id: at_ns for node_id, at_ns in turns.items() if at_ns > self._now_ns}

    def _limit_bytes(self) -> int:
        """The most that a batch may be gathered of, in bytes of records before compression."""
        return int(self._topic.portion_bytes() / (self._ratio * self._late.growth_ratio))

    def _share(self, node_id: int) -> float:
        """Of the partitions that records are spread over evenly, those of this broker."""
        return len(self._topic.led.get(node_id, ())) / max(self._late.policy.account.counted, 1)

    def _may_begin(self, queue: PartitionQueue) -> bool:
        """May a new batch of this partition go out now, before the keyed ones that wait there, but not before what is sent again?

        A partition that something went wrong with, and that may therefore take nothing for long, leaves the account meanwhile.
        """
        binder, late, partition, sequences = self._binder, self._late, queue.partition, queue.sequences
        if (queue.batches and queue.batches[0].serial) or sequences.unresolved or (sequences.rewrite and queue.in_flight):
            if partition not in late.troubled:
                late.troubled.add(partition)
                late.policy.account.leave([partition])
            return False
        if partition in late.troubled:
            late.troubled.discard(partition)
            if late.counted.get(queue.topic.leaders[partition]):
                late.policy.account.come_back([partition])
        if queue.in_flight and binder.settings.keeps_order_by_muting:
            return False
        return not binder.settings.idempotent or sequences.may_drain(None, binder.identity, queue.in_flight)
