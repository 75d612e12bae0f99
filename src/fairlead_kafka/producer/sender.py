"""The sender: sends what `Drain` puts together as Produce requests, one batch per partition and
request, and handles the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, TimedOut, UnsupportedVersion
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_SEQUENCE, NO_TOPIC_ID, Node
from fairlead_kafka.base.units import ns_to_ms
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import NEVER_NS, OnDone
from fairlead_kafka.core.event_log import BATCH_FAILED, BATCH_RETRIED, BATCH_SPLIT
from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.batch_states import BatchTrigger
from fairlead_kafka.producer.classification import Classification, classify
from fairlead_kafka.producer.drain import Drain
from fairlead_kafka.producer.encoding import encode_drained, split
from fairlead_kafka.producer.identity import IdentityState
from fairlead_kafka.producer.parts import Parts
from fairlead_kafka.producer.queues import Batch, PartitionQueue, QueueState
from fairlead_kafka.producer.refusals import refusal, refused_pieces
from fairlead_kafka.producer.request import Request
from fairlead_kafka.producer.submission import Piece
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ProduceRequest, ProduceResponse

_TopicData = ProduceRequest.TopicProduceData
_PartitionData = ProduceRequest.PartitionProduceData

_UNCLEAR = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""Answers that leave open whether the batch is written: the first one also comes from a leader that
wrote it, waited, and was deposed."""


class Sender:
    """Sends requests and takes their answers; a part of the producer's machine, within its step."""

    def __init__(self, parts: Parts, accumulator: Accumulator) -> None:
        self._settings = settings = parts.settings
        self._network = parts.network
        self._accumulator = accumulator
        self._schedule = parts.schedule
        self._ledger = parts.ledger
        self._recorder = parts.recorder
        self._identity = parts.identity
        self._transactions = parts.transactions
        self._rng = parts.rng
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._now_ns = 0
        self._idempotent = settings.idempotent
        self._nodes = parts.nodes
        self._drain = Drain(parts, accumulator)

    def tick(self, now_ns: int) -> None:
        """Set the time of this step, ns, for answers that come in during it."""
        self._now_ns = now_ns

    def next_ns(self) -> int | None:
        """Monotonic time, ns, at which `send_ready` has something to do if nothing happens before;
        None: at no time."""
        return self._drain.next_ns

    # Sending

    def send_ready(self, now_ns: int, wall_ms: int) -> None:
        """Send all batches that can be sent to nodes that can take them, and begin to connect to
        the others."""
        self._drain.next_ns = None
        identity = self._identity
        if identity.bump_wanted and identity.state is IdentityState.READY and not identity.transactional:
            identity.bump()
            self._recorder.whole.epoch_bumps += 1
        if self._idempotent and identity.state is not IdentityState.READY:
            return
        drain = self._drain
        drain.look(now_ns)
        while requests := drain.round(now_ns):
            for node_id, request in requests.items():
                self._send(node_id, request, wall_ms)
        drain.plan(now_ns)

    def _send(self, node_id: int, request: Request, wall_ms: int) -> None:
        batches = request.batches
        encode_drained(batches, self._settings, wall_ms)
        self._drain.enter(request)
        topics: dict[str, tuple[_TopicData, dict[int, Batch]]] = {}
        for batch in batches:
            queue = batch.queue
            entry = topics.get(queue.topic.name)
            if entry is None:
                metadata = queue.topic.metadata
                assert metadata is not None
                row = _TopicData(name=queue.topic.name, topic_id=metadata.topic_id, partition_data=[])
                entry = topics[queue.topic.name] = (row, {})
            entry[0].partition_data.append(_PartitionData(index=queue.partition, records=batch.buffer))
            entry[1][queue.partition] = batch
        self._recorder.sent(batches)
        message = ProduceRequest(
            transactional_id=self._transactions.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[entry for entry, _ in topics.values()],
        )
        self._network.send(
            node_id,
            ApiKey.PRODUCE,
            message,
            self._answered(node_id, batches, topics),
            expects_response=self._settings.acks != 0,
        )

    # Answers

    def _answered(
        self, node_id: int, batches: list[Batch], topics: dict[str, tuple[_TopicData, dict[int, Batch]]]
    ) -> OnDone[ProduceResponse]:
        sent_ns, nodes = self._now_ns, self._nodes
        acknowledged = self._settings.acks != 0
        depth = nodes.sent(node_id, sent_ns) if acknowledged else 0
        size_bytes = sum([batch.size_bytes for batch in batches])

        def answered(response: ProduceResponse | None, error: Exception | None) -> None:
            now_ns = self._now_ns
            if acknowledged:
                nodes.answered(node_id, depth, now_ns - sent_ns, size_bytes, now_ns, failed=response is None)
            for batch in batches:
                batch.fire(BatchTrigger.ANSWERED)
                batch.queue.in_flight -= 1
            if error is not None:
                self._recorder.whole.requests_failed += 1
                self._network.metadata.request_update()
                for batch in batches:
                    self._lost(batch, error)
            elif response is None:
                for batch in batches:
                    self._delivered(batch, -1, -1)
            else:
                self._recorder.answered(node_id, now_ns - sent_ns, response.throttle_time_ms)
                self._read(node_id, response, topics)

        return answered

    def _read(
        self, node_id: int, response: ProduceResponse, topics: dict[str, tuple[_TopicData, dict[int, Batch]]]
    ) -> None:
        """Complete the batches of a Produce request by its response; a batch that the response does
        not mention is treated as one without an answer."""
        metadata = self._network.metadata
        endpoints = response.node_endpoints
        if endpoints:
            metadata.saw_nodes([Node(each.node_id, each.host, each.port, each.rack) for each in endpoints])
        delivered = self._delivered
        names = {entry.topic_id: name for name, (entry, _) in topics.items()}
        for topic in response.responses:
            name = topic.name
            if not name or topic.topic_id != NO_TOPIC_ID:
                name = names.get(topic.topic_id, name)
            batches = topics[name][1] if name in topics else {}
            for entry in topic.partition_responses:
                batch = batches.pop(entry.index, None)
                if batch is None:
                    continue
                if entry.error_code == ErrorCode.NONE:
                    delivered(batch, entry.base_offset, entry.log_append_time_ms)
                else:
                    leader = entry.current_leader
                    if leader is not None and leader.leader_id >= 0:
                        metadata.saw_leader(name, entry.index, leader.leader_id, leader.leader_epoch)
                    self._refused(batch, entry)
        for _, batches in topics.values():
            for batch in batches.values():
                self._lost(
                    batch,
                    BrokerError(
                        ErrorCode.UNKNOWN_SERVER_ERROR, f"broker {node_id} did not answer for {batch.queue}"
                    ),
                )

    def _delivered(self, batch: Batch, base_offset: int, log_append_ms: int) -> None:
        queue = batch.queue
        if batch.base_sequence != NO_SEQUENCE:
            queue.sequences.acknowledge(batch, base_offset)
        self._ledger.finish(batch, base_offset, log_append_ms, None)
        if queue.state is QueueState.PARKED or queue.sequences.unresolved_next != NO_SEQUENCE:
            self._looked_at(queue)

    @hook("producer: a broker refused a batch")
    def _refused(self, batch: Batch, entry: ProduceResponse.PartitionProduceResponse) -> None:
        """Called when a broker answered for the batch with an error."""
        code, queue = entry.error_code, batch.queue
        classification = classify(code, entry.log_start_offset, batch, queue.sequences, self._identity)
        if (
            classification is Classification.DELIVERED
        ):  # a duplicate: it was written before, its offset is not known any more
            self._delivered(batch, -1, -1)
            return
        error = refusal(batch, code, entry)
        batch.last_error = error
        batch.maybe_written = batch.maybe_written or code in _UNCLEAR
        if policy(code).refreshes_metadata:
            self._network.metadata.request_update()
        if classification is Classification.SPLIT and not batch.done:
            self._split(batch)
        elif classification in (Classification.RETRY, Classification.RENUMBER) and self._may_retry(batch):
            if classification is Classification.RENUMBER:
                queue.sequences.start_again(self._identity)
            self._retry(batch)
        else:
            maybe_written = batch.maybe_written or policy(code).retriable
            self.fail(batch, error, maybe_written=maybe_written, refused=refused_pieces(batch, code, entry))
        self._looked_at(queue)

    @hook("producer: a request was lost")
    def _lost(self, batch: Batch, error: Exception) -> None:
        """Called when no answer for the batch came, for `error`: the batch may have been written or
        not."""
        batch.last_error, batch.maybe_written = error, True
        if self._may_retry(batch) and not isinstance(error, UnsupportedVersion):
            self._retry(batch)
        else:
            self.fail(batch, error, maybe_written=True)
        self._looked_at(batch.queue)

    def _may_retry(self, batch: Batch) -> bool:
        expires_ns = batch.created_ns + self._settings.delivery_timeout_ns
        return not batch.done and batch.attempts <= self._settings.retries and self._now_ns < expires_ns

    def _retry(self, batch: Batch) -> None:
        batch.retry_at_ns = self._now_ns + self._backoff.wait_ns(batch.attempts - 1, self._rng)
        queue = batch.queue
        queue.put_back(batch)
        self._recorder.retried(batch)
        self._network.events.log(
            BATCH_RETRIED,
            queue.node_id,
            queue.topic.name,
            queue.partition,
            batch.count,
            batch.attempts,
            batch.last_error,
        )

    def _split(self, batch: Batch) -> None:
        parts = split(batch)
        if batch.base_sequence != NO_SEQUENCE:
            batch.queue.sequences.replace(batch, parts)
        for part in parts:
            batch.queue.put_back(part)
        self._ledger.split(batch, parts)
        self._recorder.whole.batches_split += 1
        queue = batch.queue
        self._network.events.log(BATCH_SPLIT, queue.topic.name, queue.partition, batch.count, len(parts))

    def fail(
        self,
        batch: Batch,
        error: Exception,
        *,
        maybe_written: bool,
        refused: Sequence[tuple[Piece, Exception]] = (),
    ) -> None:
        """Fail a batch with `error`. If it was not written there is a gap in the sequences, which
        needs a new epoch; if it may have been (`maybe_written`), later batches wait until that is
        known."""
        queue = batch.queue
        if not batch.done:
            self._network.events.log(BATCH_FAILED, queue.topic.name, queue.partition, batch.count, error)
        if batch.base_sequence != NO_SEQUENCE and not batch.done:
            if maybe_written:
                queue.sequences.give_up(batch)
            else:
                queue.sequences.drop(batch)
                queue.sequences.start_again(self._identity)
        self._ledger.finish(batch, -1, -1, error, refused)

    def expire(self, now_ns: int) -> None:
        """Fail records that are past delivery.timeout.ms, wherever they are."""
        than_ns = now_ns - self._settings.delivery_timeout_ns
        oldest_ns = self._ledger.oldest_ns()
        if oldest_ns is None or oldest_ns > than_ns:
            return
        for batch in [batch for batch in self._ledger.batches if batch.created_ns <= than_ns]:
            error = self._expired(str(batch), batch.created_ns, self.why_waiting(batch.queue, batch))
            if not batch.in_flight:
                batch.queue.remove(batch)
            self.fail(
                batch, error, maybe_written=batch.attempts > 0
            )  # attempts with a clear answer are counted too, to be safe
            self._looked_at(batch.queue)
        for queue in list(self._schedule.active):
            pieces = queue.records.take_older(than_ns)
            if pieces:
                count = sum([piece.stop - piece.start for piece in pieces])
                text = f"{count} record{'' if count == 1 else 's'} for {queue}"
                error = self._expired(text, pieces[0].submission.created_ns, self.why_waiting(queue))
                self._network.events.log(BATCH_FAILED, queue.topic.name, queue.partition, count, error)
                self._accumulator.fail_unsent(queue, pieces, error, now_ns)

    def _expired(self, what: str, created_ns: int, why: str) -> TimedOut:
        limit = f"delivery.timeout.ms={self._settings.delivery_timeout_ms}"
        return TimedOut(
            f"{what} were not delivered within {limit} ({ns_to_ms(self._now_ns - created_ns):.0f} ms): {why}"
        )

    def fail_bound(self, error: Exception, node_id: int | None = None) -> dict[str, int]:
        """Fail the records that have a partition and are in no batch yet, and return how many they
        were, by topic.

        `node_id`: only those of the partitions that this broker leads; None: all.
        """
        failed: Counter[str] = Counter()
        for queue in list(self._schedule.active):
            pieces = queue.records.take_older(NEVER_NS) if node_id in (None, queue.node_id) else []
            if pieces:
                failed[queue.topic.name] += sum([piece.stop - piece.start for piece in pieces])
                self._accumulator.fail_unsent(queue, pieces, error, self._now_ns)
        return failed

    def refuse(self, batch: Batch, error: Exception) -> None:
        """Fail a batch that its broker will not take, for the broker does not accept this
        client."""
        if not batch.in_flight:
            batch.queue.remove(batch)
            self.fail(batch, error, maybe_written=batch.attempts > 0)
            self._looked_at(batch.queue)

    def why_waiting(self, queue: PartitionQueue, batch: Batch | None = None) -> str:
        """Why a batch of the queue, or (None) its records that are in no batch yet, are not
        delivered, in words."""
        problem = batch.last_error if batch is not None else None
        last = f"last problem: {str(problem).replace(f'{batch}: ', '')}" if problem is not None else ""
        if batch is not None and batch.in_flight:
            unanswered = f"request for them is still unanswered ({self._network.trouble()})"
            return f"{last}; another {unanswered}" if last else f"a {unanswered}"
        if last:
            return last
        if queue.node_id < 0:
            return "the partition has no leader"
        if self._identity.idempotent and self._identity.state is not IdentityState.READY:
            return f"no producer id could be had ({self._identity.error or self._network.trouble()})"
        if not self._transactions.may_send(queue.topic.name, queue.partition):
            return f"the partition is not part of the transaction yet ({self._transactions.trouble()})"
        if self._network.throttled(queue.node_id):
            return (
                f"its leader, broker {queue.node_id}, asked to be left alone, for a quota of this client "
                "is used up"
            )
        if self._network.blocked(queue.node_id) or not self._network.ready(queue.node_id):
            return f"its leader, broker {queue.node_id}, could not be sent to ({self._network.trouble()})"
        return "batches before them took too long"

    def _looked_at(self, queue: PartitionQueue) -> None:
        """Resolve the queue's sequences if that is possible now, and schedule it. Called after
        anything happened to one of its batches."""
        queue.sequences.resolve(self._identity, queue.in_flight)
        if queue.waits or queue in self._schedule.active:
            self._schedule.place(queue, self._now_ns)
