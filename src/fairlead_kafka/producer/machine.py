"""`ProducerMachine`: takes submissions, keeps the producer id, and leads accumulator, schedule and
sender through each step."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import nan
from typing import TypeAlias

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, TimedOut, UnsupportedVersion, UsageError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_SEQUENCE
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.closing import close_each
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.event_log import PRODUCER_ID_GRANTED
from fairlead_kafka.core.events import ConnectionEvent, Event, Submitted
from fairlead_kafka.core.machine import MemoryPool, Rng
from fairlead_kafka.core.network import AwaitConnection, Network
from fairlead_kafka.core.pushing import GetInstanceId
from fairlead_kafka.core.telemetry_report import Report, labels_of, report_of
from fairlead_kafka.core.traffic_meter import sampling_of
from fairlead_kafka.producer.accumulator import Accumulator
from fairlead_kafka.producer.identity import Identity, IdentityState, IdentityTrigger
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.metric_names import GROUPS
from fairlead_kafka.producer.metrics import Metrics, ProducerMeter, Recorder
from fairlead_kafka.producer.nodes import Nodes
from fairlead_kafka.producer.parts import Parts
from fairlead_kafka.producer.queues import Batch
from fairlead_kafka.producer.remainders import Remainders
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.sender import Sender
from fairlead_kafka.producer.settings import producer_settings
from fairlead_kafka.producer.submission import (
    Flush,
    Intake,
    PartitionsFor,
    ReportUndelivered,
    Stop,
    TransactionOperation,
    Undelivered,
)
from fairlead_kafka.producer.transaction_states import TransactionState
from fairlead_kafka.producer.transactions import Transactions
from fairlead_kafka.producer.tuning import POLL_INTERVAL_NS, STREAM_RECORDS
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import InitProducerIdRequest, InitProducerIdResponse

_ASK_IDENTITY = InitProducerIdRequest(
    transactional_id=None, transaction_timeout_ms=2**31 - 1, producer_id=-1, producer_epoch=-1
)
"""Without a transactional id the time-out has no meaning; Kafka sends its largest int."""


ClientApi: TypeAlias = Callable[[], tuple[ProducerMeter, Mapping[str, float]]]
"""Gives counters and gauges of the client API, on the machine's thread."""


class ProducerMachine:
    """A producer without its client API. ConfigError if `settings` (of a producer) conflict."""

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        intake: Intake,
        memory: MemoryPool,
        client_api: ClientApi | None = None,
    ) -> None:
        self.settings = producer_settings(settings)
        self._rng = rng
        self._intake = intake
        self._memory = memory
        self._events: deque[Event] = deque()
        self.recorder = Recorder(sampling_of(settings))
        self.network = Network(
            settings, rng, max_in_flight=self.settings.max_in_flight, traffic=self.recorder
        )
        self._client_api, self._labels = client_api, labels_of(settings)
        self.network.pushing.report = self._report
        self._parting: tuple[int, Stop, dict[str, int]] | None = None
        self.ledger = Ledger(memory, self.recorder)
        self.schedule = Schedule()
        self._identity = Identity(self.settings.idempotent, self.settings.transactional_id is not None)
        self._transactions = Transactions(
            self.settings, self.network, self._identity, self.ledger, rng, self._quiet
        )
        self.ledger.on_failure = self._failed
        self.nodes = Nodes(self.settings, self.network)
        parts = Parts(
            self.settings,
            self.network,
            self.schedule,
            self.ledger,
            self._identity,
            self._transactions,
            self.nodes,
            self.recorder,
            rng,
        )
        self.accumulator = Accumulator(parts)
        self._remainders = Remainders(self.ledger, self.schedule)
        self._sender = Sender(parts, self.accumulator)
        self._backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        self._metadata_version = self.network.metadata.version
        self._questions: list[tuple[int, PartitionsFor]] = []
        self._poll_ns: int | None = None
        self._taken_ns = self._taken_rows = 0  # when something was last taken in, and how much
        self._now_ns = 0
        self._stopped = False
        self._operating: list[object] = []  # what this step, or the last one, was asked for

    @property
    def records_open(self) -> int:
        """Records taken in and neither delivered nor failed; may be read from any thread."""
        return self.ledger.records_open

    @property
    def identity(self) -> Identity:
        """The producer's id and epoch."""
        return self._identity

    def _report(self, now_ns: int) -> Report:
        """The report that is pushed to a cluster that asks for metrics (KIP-714)."""
        found = None if self._client_api is None else self.metrics(now_ns, *self._client_api())
        return report_of(found, GROUPS, self._labels)

    def metrics(self, now_ns: int, client_api: ProducerMeter, gauges: Mapping[str, float]) -> Metrics:
        """All metrics by Kafka's names (`metric_names`). May be called from any thread.

        `client_api`, `gauges`: counters and gauges of the client API.
        """
        network = self.network
        age_ns = network.metadata.age_ns(now_ns)
        nodes = {node_id: network.in_flight(node_id) for node_id in list(self.recorder.nodes)}
        own: dict[str, float] = {
            "records-open": self.ledger.records_open,
            "requests-in-flight": sum(nodes.values()),
            "connection-count": network.open_connections(),
            "metadata-age": nan if age_ns is None else age_ns / NS_PER_S,
        }

        def of_node(node_id: int) -> dict[str, float]:
            return {"requests-in-flight": nodes.get(node_id, 0), "request-window": self.nodes.limit(node_id)}

        return self.recorder.read(now_ns, client_api, {**own, **gauges}, of_node)

    def receive(self, event: Event) -> None:
        """Queue `event`."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on all events, submissions and what time brings; see `core.machine.Machine`."""
        self._now_ns = now_ns
        self.recorder.tick(now_ns)
        self._sender.tick(now_ns)
        operations = self._operating = []
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Submitted):
                operations.append(event.operation)
            elif isinstance(event, ConnectionEvent):
                self.network.handle(event, now_ns, wall_ms)
        self.schedule.hurry = self._hurries()
        # Operations come after the take: a flush covers what was submitted before it was asked for.
        self._take(now_ns)
        for operation in operations:
            self._operate(operation, now_ns)
        if self._stopped:
            self._part(now_ns, wall_ms)
            return [*self.network.take_effects(), *self.ledger.take_effects()]
        self.network.advance(now_ns, wall_ms)
        self._follow_metadata(now_ns)
        for node_id, error in self.network.take_refusals():
            self._refused(node_id, error)
        self._keep_identity(now_ns)
        self.accumulator.expire(now_ns, self.network.trouble)
        self._sender.expire(now_ns)
        self._keep_transaction(now_ns)
        self.schedule.advance(now_ns, self._hurries())
        self._sender.send_ready(now_ns, wall_ms)
        self._keep_transaction(
            now_ns
        )  # batches may have been begun for partitions that are not part of it yet
        if self.settings.acks == 0:
            self.network.advance(now_ns, wall_ms)  # sent is delivered
        self._answer_questions(now_ns)
        return [*self.network.take_effects(), *self.ledger.take_effects()]

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        if self._stopped:
            if self._parting is None:
                return None
            return min(self._parting[0], self.network.deadline_ns() or self._parting[0])
        dues = [
            self.network.deadline_ns(),
            self.schedule.next_ns(),
            self.accumulator.next_ns(),
            self._sender.next_ns(),
            self._poll_ns,
        ]
        dues += [due for due, _ in self._questions]
        if self._transactions.transactional:
            dues.append(self._transactions.deadline_ns())
        if self._identity.state is IdentityState.WANTED:
            dues.append(self._identity.retry_at_ns)
        return min([due for due in dues if due is not None], default=None)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Fail all incomplete records and operations, and refuse later ones: the host will not step
        this machine again."""
        self._intake.close(error)
        failure = UsageError(f"the producer has ended: {error!r}")
        self._stopped = True
        close_each(
            partial(self._transactions.close, failure),
            *(partial(self.ledger.finish, batch, -1, -1, failure) for batch in self.ledger.batches),
            partial(self._sender.fail_bound, failure),
            partial(self.accumulator.fail_unbound, failure),
            partial(self._refuse_taken, failure),
            self.network.close,
        )
        submitted = [event.operation for event in self._events if isinstance(event, Submitted)]
        for operation in [*self._operating, *submitted, *(question for _, question in self._questions)]:
            if isinstance(
                operation,
                Flush
                | PartitionsFor
                | ReportUndelivered
                | AwaitConnection
                | GetInstanceId
                | Stop
                | TransactionOperation,
            ):
                self.ledger.resolve(operation.completion, error=error)
        if self._parting is not None:
            (_, parting, given_up), self._parting = self._parting, None
            self.ledger.resolve(parting.completion, given_up)
        return self.ledger.take_effects()

    def _refuse_taken(self, error: Exception) -> None:
        for submission in self._intake.take(False):
            self.ledger.enter(submission)
            self.ledger.fail_rows(submission, None, error)

    def held_bytes(self) -> int:
        """Bytes of buffer.memory that the records taken in hold."""
        return self.ledger.held_bytes()

    def check(self) -> None:
        """Raise CheckFailed if redundant state differs, between two steps. For tests."""
        if not self._stopped:
            self.ledger.check()
            self.accumulator.check(self.ledger.open_submissions())
            self.nodes.check()
            self._transactions.check()
            self.network.metadata.check()
            self.network.pushing.check()

    # Inside

    def _take(self, now_ns: int) -> None:
        # Someone who sends fast while earlier records are still under way goes on like that, most
        # likely: come back by ourselves then.
        fast = self._taken_rows >= STREAM_RECORDS or now_ns - self._taken_ns < POLL_INTERVAL_NS // 2
        under_way = self.ledger.records_open > 0 or self.settings.linger_ns >= POLL_INTERVAL_NS
        coming_back = fast and under_way and not self._stopped
        submissions = self._intake.take(coming_back)
        if submissions:
            self._taken_ns, self._taken_rows = now_ns, sum(submission.rows for submission in submissions)
        self._poll_ns = now_ns + POLL_INTERVAL_NS if submissions and coming_back else None
        refusal = self._transactions.refusal()
        for submission in submissions:
            self.ledger.enter(submission)
            if self._stopped:
                self.ledger.fail_rows(submission, None, UsageError("the producer is closed"))
            elif self._identity.state is IdentityState.FAILED and self._identity.error is not None:
                self.ledger.fail_rows(submission, None, self._identity.error)
            elif refusal is not None:
                self.ledger.fail_rows(submission, None, refusal)
            else:
                self.accumulator.accept(submission, now_ns)
        if submissions:
            self._remainders.taken(submissions)

    def _operate(self, operation: object, now_ns: int) -> None:
        if isinstance(operation, Flush):
            self.ledger.flush(operation.completion)
        elif isinstance(operation, PartitionsFor):
            if self._stopped:
                self.ledger.resolve(operation.completion, error=UsageError("the producer is closed"))
                return
            self.network.metadata.want(operation.topic, now_ns)
            timeout_ns = self.settings.max_block_ns if operation.timeout_ns is None else operation.timeout_ns
            self._questions.append((now_ns + timeout_ns, operation))
        elif isinstance(operation, ReportUndelivered):
            self.ledger.resolve(
                operation.completion,
                Undelivered(self.ledger.open_by_topic(), self._why_waiting(operation.topic)),
            )
        elif isinstance(operation, AwaitConnection):
            if self._stopped:
                self.ledger.resolve(operation.completion, error=UsageError("the producer is closed"))
                return
            self.network.await_connection(
                operation.deadline_ns, partial(self.ledger.resolve, operation.completion)
            )
        elif isinstance(operation, GetInstanceId):
            self.network.pushing.await_id(
                operation.deadline_ns, partial(self.ledger.resolve, operation.completion)
            )
            self.network.stir()
        elif isinstance(operation, Stop):
            self._stop(operation)
        elif isinstance(operation, TransactionOperation):
            self._transactions.operate(operation)

    def _why_waiting(self, name: str | None) -> str:
        """Why records of the topic `name` (None: of any) are not delivered yet, in words: what
        holds up the oldest of them."""
        waiting = self.accumulator.why_unplaced(name, self.network.trouble)
        if waiting is not None:
            return waiting
        for batch in self.ledger.batches:
            if name in (None, batch.queue.topic.name):
                return self._sender.why_waiting(batch.queue, batch)
        for queue in self.schedule.active:
            if name in (None, queue.topic.name):
                return self._sender.why_waiting(queue)
        return self.network.trouble()

    def _hurries(self) -> bool:
        """True if no batch should linger: a flush or a caller without memory waits, or a
        transaction ends."""
        return self.ledger.flushing or self._memory.waiting() or self._transactions.hurries

    def _keep_transaction(self, now_ns: int) -> None:
        transactions = self._transactions
        if not transactions.transactional:
            return
        transactions.advance(now_ns)
        lost = transactions.losses()
        if lost is not None and self.ledger.records_open:
            self._lose(lost, all_of_them=transactions.state is TransactionState.FATAL_ERROR)
            transactions.advance(now_ns)
        for name, partition in transactions.take_released():
            topic = self.accumulator.topics.get(name)  # None: its records failed, and it was forgotten
            if topic is not None:
                self.schedule.place(topic.queue(partition), now_ns)

    def _lose(self, error: Exception, *, all_of_them: bool) -> None:
        """Fail the records of a lost transaction that were not sent; with `all_of_them` also those
        that were.

        Otherwise batches that were sent without an answer are sent again until there is one, so
        that no late copy of one reaches a broker after the abort.
        """
        self.accumulator.fail_unbound(error)
        self._sender.fail_bound(error)
        for batch in list(self.ledger.batches):
            unsent = batch.base_sequence == NO_SEQUENCE or batch.queue.sequences.rewrite
            if all_of_them or (unsent and not batch.in_flight):
                self._give_up(batch, error)

    def _refused(self, node_id: int | None, error: AuthenticationFailed) -> None:
        """Called when a broker, or (None) every one that was asked, does not accept this client
        (AuthenticationFailed): waiting longer delivers nothing."""
        for batch in list(self.ledger.batches):
            if node_id is None or batch.queue.node_id == node_id:
                self._sender.refuse(batch, error)
        self._sender.fail_bound(error, node_id)
        if node_id is None:
            self.accumulator.fail_unbound(error)
            for _, question in self._questions:
                self.ledger.resolve(question.completion, error=error)
            self._questions = []

    @hook("producer: records failed")
    def _failed(self, error: Exception) -> None:
        """Fail the transaction that failed records belong to: it cannot be committed any more."""
        self._transactions.failed(error)

    @hook("producer: all is complete")
    def _quiet(self) -> bool:
        """True if every record is completed and no batch is on the wire, not even one given up."""
        if self.ledger.records_open:
            return False
        return not any(
            queue.in_flight for topic in self.accumulator.topics.values() for queue in topic.used()
        )

    def _follow_metadata(self, now_ns: int) -> None:
        version = self.network.metadata.version
        if version != self._metadata_version:
            self._metadata_version = version
            self.accumulator.metadata_changed(now_ns)
            self.recorder.forget(self.accumulator.forget_unused(self._identity, now_ns))

    def _answer_questions(self, now_ns: int) -> None:
        still: list[tuple[int, PartitionsFor]] = []
        for due_ns, question in self._questions:
            known = self.network.metadata.topic(question.topic)
            if known is not None and known.partitions:
                self.ledger.resolve(question.completion, list(known.partitions))
            elif known is not None and known.error_code and not policy(known.error_code).retriable:
                self.ledger.resolve(
                    question.completion,
                    error=broker_error(known.error_code, f"topic {question.topic!r}", "Describe"),
                )
            elif now_ns >= due_ns:
                reason = (
                    policy(known.error_code).meaning
                    if known is not None and known.error_code
                    else self.network.trouble()
                )
                limit = f"max.block.ms={self.settings.max_block_ms}"
                if question.timeout_ns is not None:
                    limit = f"{question.timeout_ns / NS_PER_S:g} s"
                text = f"topic {question.topic!r}: no metadata within {limit}; {reason}"
                self.ledger.resolve(question.completion, error=TimedOut(text))
            else:
                still.append((due_ns, question))
        self._questions = still

    def _keep_identity(self, now_ns: int) -> None:
        identity = self._identity
        if identity.state is not IdentityState.WANTED or now_ns < identity.retry_at_ns:
            return
        identity.fire(IdentityTrigger.ASKED)
        deadline_ns = now_ns + self.settings.request_timeout_ns
        self.network.request(
            ApiKey.INIT_PRODUCER_ID, _ASK_IDENTITY, self._identified, deadline_ns=deadline_ns
        )

    def _identified(self, response: InitProducerIdResponse | None, error: Exception | None) -> None:
        identity = self._identity
        if self._stopped:
            return
        if response is not None and response.error_code == ErrorCode.NONE:
            identity.grant(response.producer_id, response.producer_epoch)
            self.network.events.log(PRODUCER_ID_GRANTED, None, identity.producer_id, identity.epoch)
            return
        if response is not None:
            error = broker_error(
                response.error_code, "no producer id was granted", "Write on a topic, or to IdempotentWrite"
            )
        assert error is not None
        identity.error = error
        hopeless = response is not None and not policy(response.error_code).retriable
        if hopeless or isinstance(error, UnsupportedVersion):
            identity.fire(IdentityTrigger.GIVEN_UP)
            for batch in list(self.ledger.batches):
                self._give_up(batch, error)
            self._sender.fail_bound(error)
            self.accumulator.fail_unbound(error)
            return
        identity.fire(IdentityTrigger.REFUSED)
        identity.retry_at_ns = self._now_ns + self._backoff.wait_ns(identity.failures, self._rng)
        identity.failures += 1

    def _give_up(self, batch: Batch, error: Exception) -> None:
        if not batch.in_flight:
            batch.queue.remove(batch)
            self.schedule.place(batch.queue, self._now_ns)
        batch.queue.sequences.drop(batch)
        self.ledger.finish(batch, -1, -1, error)

    def _stop(self, operation: Stop) -> None:
        """Fail all incomplete records, push metrics for the last time, then close the connections
        and answer how many records were given up."""
        if self._stopped:
            self.ledger.resolve(operation.completion, {})
            return
        given_up = self._give_up_all(TimedOut(operation.reason))
        self.network.pushing.part(self._now_ns)
        self.network.stir()
        self._parting = self._now_ns + operation.push_ns, operation, given_up

    def _part(self, now_ns: int, wall_ms: int) -> None:
        """While closing: close the connections, once the last push of metrics is answered or its
        time is over."""
        if self._parting is None:
            return
        deadline_ns, operation, given_up = self._parting
        if now_ns < deadline_ns:
            self.network.advance(now_ns, wall_ms)
        if now_ns >= deadline_ns or self.network.pushing.parted:
            self._parting = None
            self.network.close()
            self.ledger.resolve(operation.completion, given_up)

    def _give_up_all(self, error: Exception) -> dict[str, int]:
        """Fail every incomplete record, and return how many were given up, by topic."""
        self._stopped = True
        self._transactions.close(UsageError("the producer is closed"))
        given_up: Counter[str] = Counter()
        for batch in list(self.ledger.batches):
            given_up[batch.queue.topic.name] += batch.count
            self._give_up(batch, error)
        given_up.update(self._sender.fail_bound(error))
        given_up.update(self.accumulator.fail_unbound(error))
        for _, question in self._questions:
            self.ledger.resolve(question.completion, error=UsageError("the producer is closed"))
        self._questions = []
        return given_up
