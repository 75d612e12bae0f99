"""The transaction coordinator of one broker: it serves transactional requests and ends transactions
that time out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.control import ProducerIds
from fairlead_kafka.broker.controller import TRANSACTION_VERSION, TRANSACTIONS_TOPIC, level
from fairlead_kafka.broker.internal import NO_PRODUCER, Marker, ProducerIdentity
from fairlead_kafka.broker.shards import ShardHost, Shards, epoch_of
from fairlead_kafka.broker.timers import Repeating
from fairlead_kafka.broker.transactions.image import TransactionImage, may_be_held
from fairlead_kafka.broker.transactions.log import Transaction, TransactionLog, TransactionShard, replay
from fairlead_kafka.broker.transactions.markers import RETRY_MS, Ending, Markers, MarkersHost
from fairlead_kafka.broker.transactions.states import (
    ADD_ERRORS,
    END_ERRORS,
    END_ERRORS_BY_EPOCH,
    ENDING,
    EXPIRING,
    INIT_ERRORS,
    TransactionState,
)
from fairlead_kafka.records import RecordColumns

ABORT_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
EXPIRY_INTERVAL: Final = "transaction.remove.expired.transaction.cleanup.interval.ms"
ADD_WAIT_MS = 100
"""How long AddPartitionsToTxn waits for the change under way, or the end of the transaction
before."""

Initialized = Callable[[int, ProducerIdentity], None]
"""Called once with an error code and, if that is 0, the producer's id and epoch."""
Done = Callable[[int], None]


class TransactionHost(ShardHost, MarkersHost, Protocol):
    """The parts of a broker that the transaction coordinator uses."""

    settings: Settings
    producer_ids: ProducerIds

    def append_internal(
        self, topic: str, partition: int, columns: RecordColumns, done: Callable[[int, int], None]
    ) -> None:
        """Append records; done(error_code, base_offset)."""


class TransactionCoordinator:
    """The coordinator of the transactional ids whose partition of `__transaction_state` is led
    here. Methods raise `BrokerError` with the code to answer."""

    def __init__(self, broker: TransactionHost) -> None:
        self._broker = broker
        self.shards: Shards[TransactionShard] = Shards(broker, TRANSACTIONS_TOPIC, "transactional id", self)
        self._log = TransactionLog(
            broker.append_internal, lambda: level(broker.controller.image, TRANSACTION_VERSION)
        )
        self._markers = Markers(broker)
        self._tasks: list[Repeating] = []

    # --- Which transactions are here

    def start(self) -> None:
        """Begin: read the transactional ids whose partition is led here."""
        self.shards.start()
        broker = self._broker
        self._tasks = [
            broker.repeat(
                "aborting overdue transactions", lambda: broker.settings[ABORT_INTERVAL], self._abort_expired
            ),
            broker.repeat(
                "forgetting unused transactional ids", lambda: broker.settings[EXPIRY_INTERVAL], self._expire
            ),
        ]

    def stop(self) -> None:
        """End: the coordinator that reads the log next completes transactions that are ending."""
        for task in self._tasks:
            task.cancel()
        self.shards.stop()

    def new_shard(self, partition: int) -> TransactionShard:
        """A new, empty shard for a partition of `__transaction_state`."""
        return TransactionShard(partition)

    def replay(self, shard: TransactionShard, batches: bytes, from_offset: int) -> None:
        """Apply batches of the log to the shard in memory, from offset `from_offset` on."""
        replay(shard, batches, from_offset)

    def shard_loaded(self, shard: TransactionShard) -> None:
        """Called when a shard's log was read: complete the transactions whose end was decided."""
        for transaction in list(shard.transactions.values()):
            if transaction.image.state in ENDING:
                self._bring_markers(shard, transaction)

    def shard_dropped(self, shard: TransactionShard) -> None:
        """Called when a shard's partition is led elsewhere. No request waits for the shard: each is
        answered when its record is written, or fails."""

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction | None]:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        shard = self.shards.of(transactional_id)
        return shard, shard.transactions.get(transactional_id)

    @hook("transactions: who may end one")
    def _of_producer(
        self, transactional_id: str, producer: ProducerIdentity
    ) -> tuple[TransactionShard, Transaction]:
        """The producer's transaction. BrokerError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
        shard, transaction = self._find(transactional_id)
        if transaction is None or transaction.image.identity.producer_id != producer.producer_id:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"{transactional_id!r} does not have producer id {producer.producer_id}",
            )
        epoch = transaction.image.identity.epoch
        if epoch != producer.epoch or not may_be_held(epoch):
            text = f"{transactional_id!r} is at epoch {epoch}, the producer at {producer.epoch}"
            raise BrokerError(ErrorCode.PRODUCER_FENCED, text)
        return shard, transaction

    # --- InitProducerId

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None, done: Initialized
    ) -> None:
        """Serve InitProducerId, of a producer that begins, or that continues after an error and
        says which id and epoch it has (`expected`, KIP-360); the producer that had the id before is
        fenced. BrokerError if the id is empty, or the time-out or the identity is invalid."""
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        longest_ms = self._broker.settings["transaction.max.timeout.ms"]
        if not 0 < timeout_ms <= longest_ms:
            text = (
                f"transaction.timeout.ms is {timeout_ms}; the brokers' transaction.max.timeout.ms allows "
                f"1 to {longest_ms}"
            )
            raise BrokerError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, text)

        def available(error: BrokerError | None) -> None:
            # With an id at hand, what is found is acted on in one go, whether it needs one or not.
            try:
                if error is not None:
                    raise error
                self._initialize(transactional_id, timeout_ms, expected, done)
            except BrokerError as refused:
                done(refused.code, NO_PRODUCER)

        self._broker.producer_ids.when_available(available)

    def _initialize(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None, done: Initialized
    ) -> None:
        shard, transaction = self._find(transactional_id)
        if transaction is None:
            image = TransactionImage(
                self._broker.producer_ids.take(), NO_PRODUCER_EPOCH, timeout_ms, TransactionState.EMPTY
            )
            transaction = Transaction(transactional_id, image)
        image = transaction.image
        if transaction.pending is not None:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, _being_changed(transaction))
        image.check_expected(expected)
        error = INIT_ERRORS[image.state]
        if image.state is TransactionState.ONGOING:
            self._fence(shard, transaction, lambda failed: done(failed or error, NO_PRODUCER))
            return
        if error:
            raise BrokerError(error, f"the transaction of {transactional_id!r} is {image.state.value}")
        now_ms = self._broker.wall_ms
        if image.wants_new_id(expected):
            following = image.rotated(self._broker.producer_ids.take(), timeout_ms, expected, now_ms)
        else:
            following = image.bumped(timeout_ms, expected, now_ms)
        identity = ProducerIdentity(following.producer_id, following.epoch)
        self._write(shard, transaction, following, lambda failed: done(failed, identity))

    # --- The transaction's life

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        done: Done,
        client_version: int = 0,
    ) -> None:
        """Add partitions that the producer is going to write to; the first ones begin a
        transaction.

        `client_version` is the producer's transaction protocol; 2: a broker adds them, because
        their first batch has come (KIP-890). If other partitions are being added, or the markers of
        the transaction before are being written, the request waits for that a little: a client that
        is answered CONCURRENT_TRANSACTIONS comes back only after its back-off.
        """
        _, transaction = self._of_producer(transactional_id, producer)
        if not transaction.changing:
            self._add(transactional_id, producer, partitions, done, client_version)
            return

        def go_on() -> None:
            timer.cancel()
            transaction.waiting.remove(go_on)
            try:
                self._add(transactional_id, producer, partitions, done, client_version)
            except BrokerError as error:
                done(error.code)

        transaction.waiting.append(go_on)
        timer = self._broker.call_at(self._broker.now_ns + ms_to_ns(ADD_WAIT_MS), go_on)

    def _add(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        done: Done,
        client_version: int,
    ) -> None:
        shard, transaction = self._of_producer(transactional_id, producer)
        image = transaction.image
        error = (
            ErrorCode.CONCURRENT_TRANSACTIONS if transaction.pending is not None else ADD_ERRORS[image.state]
        )
        if error:
            raise BrokerError(error, _being_changed(transaction))
        if image.state is TransactionState.ONGOING and image.partitions.issuperset(partitions):
            done(ErrorCode.NONE)
            return
        following = image.with_partitions(partitions, self._broker.wall_ms, client_version)
        self._write(shard, transaction, following, done)

    def verify(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """An error code for each partition: 0 if it is in the producer's open transaction,
        TRANSACTION_ABORTABLE if it is not (KIP-890). BrokerError CONCURRENT_TRANSACTIONS while its
        state is being written."""
        try:
            _, transaction = self._of_producer(transactional_id, producer)
            if transaction.image.state in ENDING:
                raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, _being_changed(transaction))
        except BrokerError as error:
            return dict.fromkeys(partitions, error.code)
        added = transaction.image.partitions
        return {of: ErrorCode.NONE if of in added else ErrorCode.TRANSACTION_ABORTABLE for of in partitions}

    def end(self, transactional_id: str, producer: ProducerIdentity, committed: bool, done: Done) -> None:
        """Commit or abort a transaction: done(error code) once the decision is in the log; the
        markers follow."""
        shard, transaction = self._of_producer(transactional_id, producer)
        image = transaction.image
        error = (
            ErrorCode.CONCURRENT_TRANSACTIONS
            if transaction.pending is not None
            else END_ERRORS[image.state, committed]
        )
        if error:
            raise _cannot_end(transaction, committed, error)
        if image.state is not TransactionState.ONGOING:
            done(ErrorCode.NONE)
            return
        self._end(shard, transaction, image.prepared(committed, self._broker.wall_ms), done)

    def end_by_epoch(
        self, transactional_id: str, producer: ProducerIdentity, committed: bool, done: Initialized
    ) -> None:
        """Commit or abort a transaction, and raise the epoch (KIP-890): done(error code, id and
        epoch of the next transaction) once the decision is in the log. A repeated request gets the
        same answer."""

        def available(error: BrokerError | None) -> None:
            try:
                if error is not None:
                    raise error
                self._end_by_epoch(transactional_id, producer, committed, done)
            except BrokerError as refused:
                done(refused.code, NO_PRODUCER)

        self._broker.producer_ids.when_available(available)

    @hook("transactions: an end that raises the epoch")
    def _end_by_epoch(
        self, transactional_id: str, producer: ProducerIdentity, committed: bool, done: Initialized
    ) -> None:
        shard, transaction = self._find(transactional_id)
        if transaction is not None and transaction.pending is not None:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, _being_changed(transaction))
        if transaction is not None and transaction.image.asks_again(producer):
            image = transaction.image
            error = END_ERRORS[image.state, committed]
        else:
            shard, transaction = self._of_producer(transactional_id, producer)
            image = transaction.image
            # Its producer has the next epoch already, and waits for the previous transaction to end
            # (KAFKA-18464).
            busy = ErrorCode.CONCURRENT_TRANSACTIONS if image.state in ENDING else ErrorCode.NONE
            error = busy or END_ERRORS_BY_EPOCH[image.state, committed]
            if not error:
                taken = self._broker.producer_ids.take() if image.exhausted else NO_PRODUCER_ID
                following = image.prepared_by_epoch(committed, self._broker.wall_ms, taken)
                self._end(shard, transaction, following, lambda failed: done(failed, following.identity))
                return
        if error:
            raise _cannot_end(transaction, committed, error)
        done(ErrorCode.NONE, image.identity)

    @hook("transactions: a producer is fenced")
    def _fence(self, shard: TransactionShard, transaction: Transaction, done: Done) -> None:
        """Abort an ongoing transaction with the next epoch, which its producer does not have."""
        fenced = transaction.image.fenced(self._broker.wall_ms)
        self._end(shard, transaction, fenced, done, through=TransactionState.PREPARE_EPOCH_FENCE)

    def _end(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        prepared: TransactionImage,
        done: Done,
        through: TransactionState | None = None,
    ) -> None:
        def written(error: int) -> None:
            done(error)
            if not error:
                self._bring_markers(shard, transaction)

        self._write(shard, transaction, prepared, written, through)

    def _bring_markers(self, shard: TransactionShard, transaction: Transaction) -> None:
        image = transaction.image
        epoch = epoch_of(self._broker.controller, TRANSACTIONS_TOPIC, shard.partition)
        marker = Marker(image.producer_id, image.epoch, ENDING[image.state], epoch, image.client_version)

        def completed(error: int) -> None:
            if error:
                # All markers are there; only the note of it is not, as when too few replicas are in
                # sync for a while.
                self._broker.call_at(self._broker.now_ns + ms_to_ns(RETRY_MS), complete)

        def complete() -> None:
            if self.shards.holds(shard) and transaction.image is image and transaction.pending is None:
                self._write(shard, transaction, image.completed(self._broker.wall_ms), completed)

        self._markers.bring(Ending(marker, set(image.partitions), lambda: self.shards.holds(shard), complete))

    def _write(
        self,
        shard: TransactionShard,
        transaction: Transaction,
        image: TransactionImage,
        done: Done,
        through: TransactionState | None = None,
    ) -> None:
        def written(error: int) -> None:
            done(error if self.shards.holds(shard) else ErrorCode.NOT_COORDINATOR)

        self._log.write(shard, transaction, image, written, through)

    # --- Looking at transactions

    def describe(self, transactional_id: str) -> Transaction:
        """The transaction of a transactional id. BrokerError: TRANSACTIONAL_ID_NOT_FOUND."""
        _, transaction = self._find(transactional_id)
        if transaction is None or transaction.pending is TransactionState.DEAD:
            raise BrokerError(
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"there is no transactional id {transactional_id!r}"
            )
        return transaction

    def transactions(self) -> tuple[list[Transaction], bool]:
        """All transactional ids of this coordinator, and True if some are still being read."""
        loading = any(not shard.loaded for shard in self.shards)
        return [one for shard in self.shards.loaded() for one in shard.transactions.values()], loading

    def check(self) -> None:
        """Raise CheckFailed unless the fields of transactions fit their states, between two steps.
        For tests and the simulator."""
        self.shards.check()
        for shard in self.shards.loaded():
            shard.check()

    # --- Time

    def _abort_expired(self) -> None:
        """Abort transactions that are open for longer than their time-out, and fence their
        producers."""
        for shard in self.shards.loaded():
            for transaction in list(shard.transactions.values()):
                image = transaction.image
                age_ms = self._broker.wall_ms - image.start_ms
                # Far in the future: a clock was wrong as it began, and nobody is to wait for that.
                ahead_ms = max(image.timeout_ms, self._broker.settings["transaction.max.timeout.ms"])
                late = age_ms > image.timeout_ms or -age_ms > ahead_ms
                expired = image.state is TransactionState.ONGOING and late
                if expired and transaction.pending is None:
                    self._broker.guard.call(
                        self.shards.owner(shard), self._fence, shard, transaction, lambda _error: None
                    )

    def _expire(self) -> None:
        """Forget transactional ids that were not used for `transactional.id.expiration.ms`."""
        before_ms = self._broker.wall_ms - self._broker.settings["transactional.id.expiration.ms"]
        for shard in self.shards.loaded():
            past = [
                one
                for one in shard.transactions.values()
                if one.pending is None
                and one.position >= 0
                and one.image.state in EXPIRING
                and one.image.updated_ms <= before_ms
            ]
            if past:
                self._broker.guard.call(self.shards.owner(shard), self._log.forget, shard, past)


def _cannot_end(transaction: Transaction, committed: bool, error: int) -> BrokerError:
    how = "committed" if committed else "aborted"
    text = f"{transaction.transactional_id!r} is {transaction.image.state.value}: it cannot be {how} now"
    return BrokerError(error, text)


def _being_changed(transaction: Transaction) -> str:
    state = transaction.pending or transaction.image.state
    return (
        f"the transaction of {transaction.transactional_id!r} is going to {state.value}; ask again a "
        "little later"
    )
