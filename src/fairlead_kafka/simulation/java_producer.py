"""A transactional producer that follows the rules of Kafka's Java client, for the simulation.

Fairlead's own producer avoids cases that Java's does not: Java's sends several batches to a
partition that does not know it, ends a transaction right behind the last one, even one without a
record that was sent, and goes on after an abort of a transaction whose time was up (KIP-890). An
answer of a broker that would fail or stop a Java application is a violation.

Rules are those of `TransactionManager`, `Sender` and `RecordAccumulator` of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import TypeAlias, TypeVar

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ns_to_ms
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import NO_PRODUCER, ProducerIdentity
from fairlead_kafka.records import Slice, columns_from_lists, encode
from fairlead_kafka.simulation.pipeline import Pipeline
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

PRODUCE_VERSION, INIT_VERSION, END_VERSION = 12, 5, 5
IN_FLIGHT_MAX = 5
"""max.in.flight.requests.per.connection, here of a partition."""
RETRY_MS = 20.0
PATIENCE_MS = 1_000.0
"""Milliseconds after which a request without an answer is taken for lost, as by
request.timeout.ms."""
LONGEST_MS = 1_500.0
"""Milliseconds that an application thinks at most before it ends a transaction."""
BATCHES_MAX = 8
REPLACED_SHARE = 0.3
"""Share of transactions before which the application gives way to one with a transactional id of
its own: partitions know nothing of that one's producer."""
CREATED_MS = 1_700_000_000_000
TRY_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which Java's client asks again."""
TO_BE_ABORTED = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE}
)
"""Errors of a batch after which the application has to abort: right only once its time is up."""

Identified = TypeVar("Identified", InitProducerIdResponse, EndTxnResponse)
Ask: TypeAlias = "Callable[[Callable[[int], None]], None]"
"""Sends a request, and calls back with the error code of its answer."""
Life: TypeAlias = "Generator[float | Ask, int | None, None]"
"""Steps of the application: it waits so many ms, or for the answer to a request."""
Part: TypeAlias = "Generator[float | Ask, int | None, int]"


class Ended(Enum):
    """The outcome of a transaction, as its application was told."""

    OPEN = "not ended"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class ScriptedBatch:
    """One batch of one record."""

    serial: int
    of: TopicPartition
    sequence: int
    tries: int = 0
    flying: bool = False
    complete: bool = False


@dataclass(slots=True)
class ScriptedTransaction:
    """One transaction: its batches by serial."""

    number: int
    begun_ns: int
    batches: list[ScriptedBatch] = field(default_factory=list)
    ended: Ended = Ended.OPEN
    abortable: bool = False
    """True once a broker has said that it can only be aborted."""


class JavaProducer:
    """Runs transactions one right behind the other, as Java's producer would, until `finish` is
    called."""

    def __init__(
        self,
        number: int,
        stage: Stage,
        cluster: RealCluster,
        partitions: Sequence[TopicPartition],
        timeout_ms: int,
        rng: Random,
    ) -> None:
        self.number = number
        self.transactions: list[ScriptedTransaction] = []
        self.finished = False
        """True once its last transaction has ended."""
        self._host, self._script, self._violated = stage
        self._cluster = cluster
        self._partitions = partitions
        self._timeout_ms = timeout_ms
        self._rng = rng
        self._pipeline = Pipeline(stage.host)
        self.handle = self._pipeline.handle
        self._identity: ProducerIdentity = NO_PRODUCER
        self._following: ProducerIdentity = NO_PRODUCER
        """Identity of the next transaction, as the end of this one was answered."""
        self._sequences: dict[TopicPartition, int] = {}
        self._serial = 0
        self._life = 0
        self._stopping = False

    @property
    def name(self) -> str:
        """The producer's transactional id."""
        return f"java-{self.number}.{self._life}"

    def begin(self) -> None:
        """Begin transactions."""
        self._go_on(self._live(), None)

    def finish(self) -> None:
        """Begin no more transactions."""
        self._stopping = True

    def commit_last(self) -> None:
        """Run one more transaction, with every partition, which has to be committed."""
        self.finished = False
        self._go_on(self._last(), None)

    # The life of the application

    def _live(self) -> Life:
        yield from self._initialize()
        while not self._stopping:
            if self._rng.random() < REPLACED_SHARE:
                self._life += 1
                yield from self._initialize()
            yield from self._transaction()
            yield self._rng.choice([0.0, 0.0, 0.0, 100.0]) * self._rng.random()
        self.finished = True

    def _last(self) -> Life:
        transaction = self._begin()
        for of in self._partitions:
            self._enter(transaction, of)
        yield from self._deliver(transaction)
        yield from self._end(transaction, commits=True)
        if transaction.ended is not Ended.COMMITTED:
            self._violated(f"{self.name}: its last transaction was not committed, though all was well again")
        self.finished = True

    def _initialize(self) -> Part:
        while True:
            code = yield self._ask_init
            if code == ErrorCode.NONE:
                self._sequences.clear()
                return ErrorCode.NONE
            if code not in TRY_AGAIN:
                self._violated(f"{self.name}: InitProducerId was answered {policy(code or 0).name}")
            yield RETRY_MS

    def _begin(self) -> ScriptedTransaction:
        transaction = ScriptedTransaction(len(self.transactions), self._host.now_ns())
        self.transactions.append(transaction)
        return transaction

    def _transaction(self) -> Life:
        """One transaction from begin to end."""
        rng = self._rng
        transaction = self._begin()
        chosen = rng.sample(self._partitions, 1 + rng.randrange(len(self._partitions)))
        count = rng.randrange(1 + BATCHES_MAX)  # none: sent, and aborted before anything has left
        apart_ms = rng.choice([0.0, 1.0, 10.0])
        for _ in range(count):
            self._enter(transaction, rng.choice(chosen))
            if apart_ms:
                self._send(transaction)
                yield apart_ms * rng.random()
        if not count:
            yield from self._end(transaction, commits=False)
            return
        yield from self._deliver(transaction)
        if rng.random() < 0.1:
            yield min(self._timeout_ms * 2.0, LONGEST_MS) * rng.random()
        yield from self._end(transaction, commits=rng.random() < 0.7 and not transaction.abortable)

    def _deliver(self, transaction: ScriptedTransaction) -> Life:
        """Send batches until all are complete, or the transaction is to be aborted."""
        while True:
            if transaction.abortable:
                for batch in transaction.batches:
                    batch.complete = batch.complete or not batch.flying
            if all(batch.complete for batch in transaction.batches):
                return
            self._send(transaction)
            yield 1.0

    def _end(self, transaction: ScriptedTransaction, commits: bool) -> Life:
        while True:
            code = yield lambda answered: self._ask_end(commits, answered)
            if code == ErrorCode.NONE:
                transaction.ended = Ended.COMMITTED if commits else Ended.ABORTED
                self._identity = self._following
                self._sequences.clear()
                return
            if code not in TRY_AGAIN:
                if not (commits and code == ErrorCode.INVALID_TXN_STATE and self._time_is_up(transaction)):
                    how = "commit" if commits else "abort"
                    self._violated(
                        f"{self.name}: the {how} of transaction {transaction.number} was answered "
                        f"{policy(code or 0).name}"
                    )
                transaction.ended = Ended.ABORTED
                yield from self._initialize()  # as a new producer: this one has failed for good
                return
            yield RETRY_MS

    # Batches

    def _enter(self, transaction: ScriptedTransaction, of: TopicPartition) -> None:
        sequence = self._sequences.get(of, 0)
        self._sequences[of] = sequence + 1
        transaction.batches.append(ScriptedBatch(self._serial, of, sequence))
        self._serial += 1

    def _send(self, transaction: ScriptedTransaction) -> None:
        for of in self._partitions:
            batches = [batch for batch in transaction.batches if batch.of == of and not batch.complete]
            flying = sum(batch.flying for batch in batches)
            for first, batch in enumerate(batches):
                if batch.flying:
                    continue
                # A batch that is sent again is alone: those behind it wait for it.
                if flying >= IN_FLIGHT_MAX or (batch.tries and first):
                    break
                self._send_batch(transaction, batch)
                flying += 1
                if batch.tries > 1:
                    break

    def _send_batch(self, transaction: ScriptedTransaction, batch: ScriptedBatch) -> None:
        image = self._cluster.controller.image.topics[batch.of.topic].partitions[batch.of.partition]
        if image.leader < 0:
            return
        batch.tries += 1
        batch.flying = True
        this_try = batch.tries

        def answered(answer: ProduceResponse | None) -> None:
            if batch.tries != this_try or not batch.flying:
                return  # given up before
            code = (
                ErrorCode.NETWORK_EXCEPTION
                if answer is None
                else answer.responses[0].partition_responses[0].error_code
            )
            self._answered(transaction, batch, code)

        self._pipeline.ask(
            self._cluster.brokers[image.leader].address,
            ApiKey.PRODUCE,
            PRODUCE_VERSION,
            self._produce(batch),
            answered,
        )
        self._script.after(PATIENCE_MS, answered, None)

    def _produce(self, batch: ScriptedBatch) -> ProduceRequest:
        columns = columns_from_lists([None], [b"%d/%d/" % (self.number, batch.serial)])
        records = encode(
            [Slice(columns, 0, 1, None)],
            create_time_ms=CREATED_MS,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.epoch,
            base_sequence=batch.sequence,
            transactional=True,
        ).buffer
        row = ProduceRequest.PartitionProduceData(index=batch.of.partition, records=records)
        return ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=int(PATIENCE_MS),
            topic_data=[ProduceRequest.TopicProduceData(name=batch.of.topic, partition_data=[row])],
        )

    def _answered(self, transaction: ScriptedTransaction, batch: ScriptedBatch, code: int) -> None:
        batch.flying = False
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            batch.complete = True
        elif code in TO_BE_ABORTED and self._time_is_up(transaction):
            transaction.abortable = True
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._before(transaction, batch):
            pass  # one before it is to come first
        elif code not in TRY_AGAIN and not transaction.abortable:
            self._violated(
                f"{self.name}: record {batch.serial} of transaction {transaction.number} for {batch.of}, "
                f"sequence {batch.sequence}, was answered {policy(code).name}"
            )
            transaction.abortable = True

    @staticmethod
    def _before(transaction: ScriptedTransaction, batch: ScriptedBatch) -> bool:
        """True if a batch before this one, of its partition, is not complete."""
        return any(
            one.of == batch.of and one.sequence < batch.sequence and not one.complete
            for one in transaction.batches
        )

    def _time_is_up(self, transaction: ScriptedTransaction) -> bool:
        return ns_to_ms(self._host.now_ns() - transaction.begun_ns) >= self._timeout_ms

    # The coordinator

    def _ask_coordinator(
        self,
        api_key: ApiKey,
        version: int,
        request: RequestMessage[Identified],
        answered: Callable[[int], None],
        taken: Callable[[ProducerIdentity], None],
    ) -> None:
        """Send a request to the coordinator. `answered` is called with its error code; if there is
        none, `taken` is called with the producer's identity in the answer."""
        topic = self._cluster.controller.create_transactions_topic()
        leader = topic.partitions[home_partition(self.name, len(topic.partitions))].leader
        if leader < 0:
            answered(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return

        def heard(answer: Identified | None) -> None:
            if answer is not None and not answer.error_code:
                taken(ProducerIdentity(answer.producer_id, answer.producer_epoch))
            answered(ErrorCode.NETWORK_EXCEPTION if answer is None else answer.error_code)

        self._pipeline.ask(self._cluster.brokers[leader].address, api_key, version, request, heard)

    def _ask_init(self, answered: Callable[[int], None]) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=NO_PRODUCER.producer_id,
            producer_epoch=NO_PRODUCER.epoch,
        )

        def taken(identity: ProducerIdentity) -> None:
            self._identity = identity

        self._ask_coordinator(ApiKey.INIT_PRODUCER_ID, INIT_VERSION, request, answered, taken)

    def _ask_end(self, commits: bool, answered: Callable[[int], None]) -> None:
        asked = self._identity
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=asked.producer_id,
            producer_epoch=asked.epoch,
            committed=commits,
        )

        def taken(identity: ProducerIdentity) -> None:
            # Applied by the caller that waits: a late answer to a request that was sent again
            # is equal to the other.
            if self._identity == asked:
                self._following = identity

        self._ask_coordinator(ApiKey.END_TXN, END_VERSION, request, answered, taken)

    # Inside

    def _go_on(self, life: Life, answer: int | None) -> None:
        wanted: float | Ask
        try:
            wanted = life.send(answer)
        except StopIteration:
            return
        if isinstance(wanted, float):
            self._script.after(wanted, self._go_on, life, None)
            return
        heard: list[int] = []

        def answered(code: int) -> None:
            if not heard:
                heard.append(code)
                # From the script's own step, so that an answer at once does not go on from within.
                self._script.after(0.0, self._go_on, life, code)

        wanted(answered)
        self._script.after(PATIENCE_MS, answered, int(ErrorCode.NETWORK_EXCEPTION))
