"""What goes into the next requests: bound batches in rotation, and unbound records cut and bound for the brokers that can take them."""

from __future__ import annotations

from fairlead.base.limits import BATCH_OVERHEAD_BYTES
from fairlead.core.network import Network
from fairlead.producer.accumulator import Accumulator
from fairlead.producer.batch import Batch
from fairlead.producer.identity import Identity
from fairlead.producer.late import LateQueue, Portions
from fairlead.producer.nodes import Nodes, NodeState
from fairlead.producer.queues import PartitionQueue, TopicQueue
from fairlead.producer.schedule import NodeQueues, Schedule
from fairlead.producer.settings import ProducerSettings
from fairlead.producer.transactions import Transactions


class Request:
    """The batches of one Produce request in the making, one for a partition at most."""

    __slots__ = ("batches", "fresh", "queues", "size_bytes")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.fresh: list[Batch] = []
        """Those of them that go out for the first time."""
        self.queues: set[PartitionQueue] = set()
        self.size_bytes = 0


class Drain:
    """Part of the sender. A round makes at most one request for each broker; rounds go on until one makes none."""

    def __init__(
        self,
        settings: ProducerSettings,
        network: Network,
        accumulator: Accumulator,
        schedule: Schedule,
        identity: Identity,
        transactions: Transactions,
        nodes: Nodes,
    ) -> None:
        self._settings = settings
        self._network = network
        self._accumulator = accumulator
        self._schedule = schedule
        self._identity = identity
        self._transactions = transactions
        self._nodes = nodes
        self._idempotent = settings.idempotent
        self._mutes = settings.keeps_order_by_muting
        self._gathers = settings.gather_limit_bytes > settings.batch_limit_bytes
        self._late_first = True
        self._turns: list[LateQueue] = []  # of the last round: they end once its batches are encoded and entered in the account
        self.next_ns: int | None = None
        """When unbound records have to be looked at again, if nothing happens before."""

    def look(self, now_ns: int) -> None:
        """Before the rounds of a step: which brokers are there, and connecting to those that are not."""
        network, availability, nodes = self._network, self._accumulator.availability, self._nodes
        for node_id in availability.unready():
            availability.observe(node_id, can_take=nodes.can_take(node_id), now_ns=now_ns)
        for node_id, node in self._schedule.nodes.items():
            if not node.ready:
                continue
            can_take = nodes.can_take(node_id)
            availability.observe(node_id, can_take=can_take, now_ns=now_ns)
            if not can_take and not network.blocked(node_id):
                network.connect(node_id)
        if self._accumulator.late:
            nodes.plan()
            for topic in self._accumulator.late.values():
                self._count(topic, now_ns)

    def round(self, now_ns: int) -> dict[int, Request]:
        """One request for each broker that can take one and has something to take.

        Bound batches and unbound records are first in every other round, so that neither fills all requests.
        """
        requests: dict[int, Request] = {}
        for late in self._turns:
            late.policy.end_turns()
        self._turns.clear()
        late_first = self._late_first
        if late_first and self._accumulator.late:
            self._bind(requests, now_ns)
        for node_id, node in self._schedule.nodes.items():
            if node.ready and self._nodes.can_take(node_id, full=True):
                request = requests.get(node_id) or Request()
                self._take_ready(node, request, self._nodes.state(node_id), now_ns)
                if request.batches:
                    requests[node_id] = request
        if not late_first and self._accumulator.late:
            self._bind(requests, now_ns)
        if requests:  # most steps end with a round that makes none, and would put the same kind first every time
            self._late_first = not late_first
        return requests

    def enter(self, request: Request) -> None:
        """The request's batches were encoded: what they take goes into the accounts of policies that bind late."""
        for batch in request.fresh:
            late = batch.queue.topic.late
            if late is not None and (self._settings.lead_includes_keyed or not batch.bound_early):
                assert batch.buffer is not None
                late.policy.placed(batch.queue.partition, len(batch.buffer))

    def plan(self, now_ns: int) -> None:
        """After the rounds: when what still waits unbound has lingered, or a broker that is waited for has been silent for too long."""
        dues: list[int] = []
        blocked, patience_ns = False, self._settings.lead_wait_ns
        for topic in self._accumulator.late.values():
            due_ns = topic.late.oldest_ns + self._settings.linger_ns if topic.late is not None else 0
            if due_ns > now_ns and not self._schedule.hurry:
                dues.append(due_ns)
            blocked = blocked or due_ns <= now_ns or self._schedule.hurry
            if patience_ns is not None and topic.late is not None and topic.late.oldest_ns + patience_ns > now_ns:
                dues.append(topic.late.oldest_ns + patience_ns)
        if blocked or dues:
            silence_ns = self._nodes.next_ns(now_ns)
            dues += [] if silence_ns is None else [silence_ns]
        self.next_ns = min(dues, default=None)

    # Bound batches

    def _take_ready(self, node: NodeQueues, request: Request, state: NodeState, now_ns: int) -> None:
        """The first batch of each ready partition in turn, up to max.request.size.

        An idle node also takes what still lingers, as Kafka's does: the request goes anyway. To a busy one that
        would only mean smaller batches. One whose window is used up takes full batches alone.
        """
        idle, full_only = state.in_flight == 0, state.in_flight >= state.window.limit
        batches, size_bytes = request.batches, request.size_bytes
        limit_bytes = self._settings.max_request_bytes
        portion_bytes = limit_bytes // max(len(node.ready), 1) - BATCH_OVERHEAD_BYTES  # what leaves each of them room
        again: list[PartitionQueue] = []
        for _ in range(len(node.ready)):
            queue = next(iter(node.ready))
            if queue in request.queues or (full_only and not queue.batches[0].closed):
                node.ready.move_to_end(queue)
                continue
            if not self._may_drain(queue):
                self._schedule.park(queue)
                continue
            if size_bytes + queue.batches[0].size_bytes + BATCH_OVERHEAD_BYTES > limit_bytes and batches:
                break
            batch = queue.pop(portion_bytes)
            size_bytes += batch.size_bytes + BATCH_OVERHEAD_BYTES
            self._add(batch, request)
            node.ready.move_to_end(queue)
            if len(queue.batches) < 2 or queue.batches[0].retry_at_ns:
                again.append(queue)  # it may have to linger, or be empty; otherwise it stays ready
        else:
            for queue in list(node.waiting) if idle and batches else ():
                size_bytes += queue.batches[0].size_bytes + BATCH_OVERHEAD_BYTES
                if size_bytes > limit_bytes:
                    break
                if queue not in request.queues and self._may_drain(queue):
                    self._add(queue.pop(), request)
                    again.append(queue)
        for queue in again:
            self._schedule.place(queue, now_ns)

    def _may_drain(self, queue: PartitionQueue) -> bool:
        if queue.in_flight and self._mutes:
            return False
        if not self._transactions.may_send(queue.topic.name, queue.partition):
            return False
        return not self._idempotent or queue.sequences.may_drain(queue.batches[0], self._identity, queue.in_flight)

    def _add(self, batch: Batch, request: Request) -> None:
        """The batch goes out with this request; from now on it has its sequence."""
        queue = batch.queue
        if not batch.serial:
            batch.serial = queue.drained_records + 1
            queue.drained_records += batch.count
            request.fresh.append(batch)
            if self._idempotent:
                queue.sequences.number(batch)
        batch.attempts += 1
        batch.in_flight = True
        queue.in_flight += 1
        metadata = queue.topic.metadata
        assert metadata is not None, "a queue with a leader has metadata"
        batch.leader_epoch = metadata.partitions[queue.partition].leader_epoch
        request.batches.append(batch)
        request.queues.add(queue)
        request.size_bytes += batch.size_bytes + BATCH_OVERHEAD_BYTES

    # Unbound records

    def _count(self, topic: TopicQueue, now_ns: int) -> None:
        """Which partitions are in the account: those of brokers that respond, if nothing is wrong with the partition itself."""
        late = topic.late
        assert late is not None
        account = late.policy.account
        for node_id, partitions in topic.led.items():
            responds = self._nodes.responds(node_id, now_ns)
            if late.counted.get(node_id) is not responds:
                late.counted[node_id] = responds
                if responds:
                    account.come_back(set(partitions) - late.troubled)
                else:
                    account.leave(partitions)

    def _bind(self, requests: dict[int, Request], now_ns: int) -> None:
        """Cut batches from the unbound queues of all topics, in fair rotation, for the brokers that can take one now."""
        takers: dict[int, NodeState] = {}
        for node_id in {node_id: None for topic in self._accumulator.late.values() for node_id in topic.led}:
            state = self._nodes.state(node_id)
            if self._nodes.can_take(node_id, full=not self._gathers) and not self._nodes.silent(state, now_ns):
                takers[node_id] = state
        waiting = self._accumulator.late
        for name, topic in list(waiting.items()):
            if not takers:
                return
            late = topic.late
            assert late is not None
            waiting_bytes = late.size_bytes
            outside = self._bind_topic(topic, late, takers, requests, now_ns)
            if late.size_bytes < waiting_bytes:
                waiting[name] = waiting.pop(name)  # whoever got something is last from now on
            if outside and late.stretches:
                self._join(topic, late, outside)
            self._turns.append(late)
            if not late.stretches:
                self._accumulator.late_done(topic)

    def _bind_topic(
        self, topic: TopicQueue, late: LateQueue, takers: dict[int, NodeState], requests: dict[int, Request], now_ns: int
    ) -> list[int]:
        """Gives the partitions that could have been bound to, were they part of the transaction."""
        outside: list[int] = []
        accumulator, transactions, next_turn = self._accumulator, self._transactions, late.policy.next_turn
        ratio, request_bytes = accumulator.ratio(topic), self._settings.max_request_bytes
        full_bytes = int(topic.batch_limit_bytes / ratio)
        lagging = [node_id for node_id, state in takers.items() if self._gathers and self._nodes.lags(state)]
        portions = Portions(late, lagging, full_bytes, self._even_part_bytes(topic, late, ratio))
        # Only a full batch may take the last places of a window.
        ready = list(takers)
        ready_partial = [node_id for node_id, state in takers.items() if state.in_flight < state.window.partial_limit]
        patience_ns = self._settings.lead_wait_ns
        while late.stretches:
            full = late.size_bytes >= full_bytes
            if not full and not (self._schedule.hurry or late.oldest_ns + self._settings.linger_ns <= now_ns):
                break
            overdue = patience_ns is not None and late.oldest_ns + patience_ns <= now_ns
            partition = next_turn(ready if full else ready_partial, overdue=overdue)
            if partition < 0:
                break
            queue, node_id = topic.queue(partition), topic.leaders[partition]
            request, room_bytes = requests.get(node_id), portions.room_bytes(node_id)
            if room_bytes <= 0:
                continue
            if request is None:
                request = Request()
            elif queue in request.queues:
                continue
            elif request.size_bytes + int(min(late.size_bytes, room_bytes) * ratio) + BATCH_OVERHEAD_BYTES > request_bytes:
                del takers[node_id]
                ready.remove(node_id)
                ready_partial = [each for each in ready_partial if each != node_id]
                continue
            if transactions.transactional and not transactions.may_send(topic.name, partition):
                outside.append(partition)
                continue
            if not self._may_begin(queue, late):
                continue
            batch = accumulator.late_batch(queue, late.oldest_ns)
            portions.took(node_id, late.fill(batch, room_bytes, ratio))
            self._add(batch, request)
            requests[node_id] = request
        portions.note()
        return outside

    def _even_part_bytes(self, topic: TopicQueue, late: LateQueue, ratio: float) -> int:
        """What waits for each partition, in bytes of records before compression, so that whoever comes later finds his part.

        Up to batch.max.size, and to what leaves room in a request for all partitions of a broker.
        """
        together = max(map(len, topic.led.values()), default=1)
        most_bytes = min(topic.gather_limit_bytes, self._settings.max_request_bytes // together - BATCH_OVERHEAD_BYTES)
        return min(int(most_bytes / (ratio * late.growth_ratio)), late.size_bytes // max(late.policy.account.counted, 1))

    def _join(self, topic: TopicQueue, late: LateQueue, outside: list[int]) -> None:
        """Have partitions join the transaction: as many as there are batches left that those in it do not take now, and no more."""
        name, transactions = topic.name, self._transactions
        joining = [partition for partition in late.joining if not transactions.may_send(name, partition)]
        wanted = late.size_bytes * self._accumulator.ratio(topic) // max(topic.batch_limit_bytes, 1) + 1
        late.joining = dict.fromkeys((joining + [each for each in outside if each not in late.joining])[: int(wanted)])
        for partition in late.joining:
            transactions.partition_used(name, partition)  # again, if it was for an earlier transaction

    def _may_begin(self, queue: PartitionQueue, late: LateQueue) -> bool:
        """May a new batch of this partition go out now, before the keyed ones that wait there, but not before what is sent again?

        A partition that something went wrong with, and that may therefore take nothing for long, leaves the account meanwhile.
        """
        partition, sequences = queue.partition, queue.sequences
        if (queue.batches and queue.batches[0].serial) or sequences.unresolved or (sequences.rewrite and queue.in_flight):
            if partition not in late.troubled:
                late.troubled.add(partition)
                late.policy.account.leave([partition])
            return False
        if partition in late.troubled:
            late.troubled.discard(partition)
            if late.counted.get(queue.topic.leaders[partition]):
                late.policy.account.come_back([partition])
        if queue.in_flight and self._mutes:
            return False
        return not self._idempotent or sequences.may_drain(None, self._identity, queue.in_flight)
