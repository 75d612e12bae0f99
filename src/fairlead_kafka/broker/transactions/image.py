"""The state of a transactional id at its coordinator: an immutable value, and functions to the next
one.

Every change is a function from one image to the next; the next one counts once its record is
written. The rules of ids and epochs are those of Kafka's `TransactionMetadata` (KIP-98, KIP-360).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.log.transactions import EPOCH_PER_TRANSACTION
from fairlead_kafka.broker.transactions.states import ENDED, ENDING, TRANSITIONS, TransactionState

EPOCH_MAX = 2**15 - 1
"""The last epoch. It is never given to a producer: it is kept to fence one with."""


def epoch_after(epoch: int) -> int:
    """The epoch that follows `epoch`. The last one stays: nobody has it, so that it fences all."""
    return min(epoch + 1, EPOCH_MAX)


def may_be_held(epoch: int) -> bool:
    """True if the epoch can be a producer's own: not NO_PRODUCER_EPOCH, which an id has that is
    new, nor the last one."""
    return NO_PRODUCER_EPOCH < epoch < EPOCH_MAX


@dataclass(frozen=True, slots=True)
class TransactionImage:
    """The state of one transactional id. Epoch -1: it is new, and no producer has an epoch yet;
    `start_ms` -1: no transaction so far."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = -1
    updated_ms: int = -1
    last_epoch: int = NO_PRODUCER_EPOCH
    """The epoch that was raised at its own producer's wish: asked for again, the answer is the same
    (KIP-360). Not in the log."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last change of ids."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that the producer goes on with once its transaction has ended: the epochs of this one
    are used up (KIP-890)."""
    client_version: int = 0
    """The protocol that the producer spoke last: 2, an epoch for each transaction (KIP-890); 0, the
    first protocol."""

    @property
    def exhausted(self) -> bool:
        """True if no epoch is left to give; the next producer gets another id."""
        return self.epoch >= EPOCH_MAX - 1

    def check_expected(self, expected: ProducerIdentity | None) -> None:
        """Raise BrokerError PRODUCER_FENCED if `expected`, the id and epoch of a producer that
        wants to continue (KIP-360), are not the present ones."""
        if expected is None or self.epoch == NO_PRODUCER_EPOCH:
            return
        if not may_be_held(expected.epoch):
            raise BrokerError(ErrorCode.PRODUCER_FENCED, f"no producer is given epoch {expected.epoch}")
        if expected.producer_id == self.producer_id:
            return
        if expected.producer_id == self.previous_producer_id and expected.epoch == EPOCH_MAX - 1:
            return  # asked again for the id it was given when its epochs were used up
        raise BrokerError(
            ErrorCode.PRODUCER_FENCED,
            f"producer id {expected.producer_id} was replaced by {self.producer_id}",
        )

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch that the producer was given."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return ProducerIdentity(self.next_producer_id, 0)
        return ProducerIdentity(self.producer_id, self.epoch)

    def asks_again(self, producer: ProducerIdentity) -> bool:
        """True if the producer has the epoch before this one: its transaction has ended, and it did
        not get the answer (KIP-890). As in Kafka, the protocol by which partitions were added does
        not matter."""
        if self.state not in ENDED:
            return False
        if self.epoch == EPOCH_MAX and self.next_producer_id == NO_PRODUCER_ID:
            return False  # fenced with the last epoch, which no producer is given
        if producer.producer_id == self.producer_id:
            return producer.epoch == self.epoch - 1
        return (producer.producer_id, producer.epoch, self.epoch) == (
            self.previous_producer_id,
            EPOCH_MAX - 1,
            0,
        )

    def wants_new_id(self, expected: ProducerIdentity | None) -> bool:
        """True if the next producer must have another producer id."""
        return self.exhausted and (expected is None or expected.epoch == self.epoch)

    def bumped(self, timeout_ms: int, expected: ProducerIdentity | None, now_ms: int) -> TransactionImage:
        """The image with the next epoch, for a producer that begins or continues. BrokerError
        PRODUCER_FENCED if it was replaced by another."""
        epoch, last_epoch = epoch_after(self.epoch), NO_PRODUCER_EPOCH
        if expected is not None:
            if self.epoch in (NO_PRODUCER_EPOCH, expected.epoch):
                last_epoch = self.epoch
            elif expected.epoch == self.last_epoch:
                epoch, last_epoch = (
                    self.epoch,
                    self.last_epoch,
                )  # its first question was heard, the answer was lost
            else:
                raise BrokerError(
                    ErrorCode.PRODUCER_FENCED, f"epoch {expected.epoch} was followed by {self.epoch}"
                )
        return self._fresh(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def rotated(
        self, producer_id: int, timeout_ms: int, expected: ProducerIdentity | None, now_ms: int
    ) -> TransactionImage:
        """The image with another producer id, whose epochs begin at 0."""
        fresh = self._fresh(
            producer_id, 0, NO_PRODUCER_EPOCH if expected is None else self.epoch, timeout_ms, now_ms
        )
        return replace(fresh, previous_producer_id=self.producer_id)

    def _fresh(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> TransactionImage:
        fresh = self._to(
            TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=epoch,
            timeout_ms=timeout_ms,
            start_ms=-1,
            updated_ms=now_ms,
        )
        return replace(fresh, partitions=frozenset(), last_epoch=last_epoch)

    def with_partitions(
        self, partitions: Iterable[TopicPartition], now_ms: int, client_version: int = 0
    ) -> TransactionImage:
        """The image with these partitions in the transaction, which begins if none is open."""
        is_open = self.state is TransactionState.ONGOING
        return self._to(
            TransactionState.ONGOING,
            partitions=(self.partitions if is_open else frozenset()) | frozenset(partitions),
            start_ms=self.start_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def prepared(self, committed: bool, now_ms: int) -> TransactionImage:
        """The image with the end of its transaction decided, by the first protocol."""
        state = TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT
        return self._to(state, updated_ms=now_ms, client_version=0)

    def prepared_by_epoch(
        self, committed: bool, now_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionImage:
        """The image with the end of its transaction decided, and the epoch of the next one
        (KIP-890). If no transaction is open an abort only raises the epoch. `next_producer_id`: the
        producer id from now on, if the epochs of the present one are `exhausted`."""
        state = TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT
        return self._to(
            state,
            epoch=epoch_after(self.epoch),
            last_epoch=self.epoch,
            next_producer_id=next_producer_id,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            updated_ms=now_ms,
            client_version=EPOCH_PER_TRANSACTION,
        )

    def fenced(self, now_ms: int) -> TransactionImage:
        """The image with the abort of its transaction decided, and the next epoch, which its
        producer does not have."""
        raised = self._to(
            TransactionState.PREPARE_EPOCH_FENCE,
            epoch=epoch_after(self.epoch),
            last_epoch=NO_PRODUCER_EPOCH,
        )
        return replace(raised.prepared(False, now_ms), client_version=self.client_version)

    def completed(self, now_ms: int) -> TransactionImage:
        """The image with all markers written."""
        committed = ENDING[self.state]
        state = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
        ended = self._to(state, partitions=frozenset(), updated_ms=now_ms)
        if self.next_producer_id == NO_PRODUCER_ID:
            return ended
        producer_id, epoch = self.identity
        return replace(
            ended,
            producer_id=producer_id,
            epoch=epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    def _to(self, state: TransactionState, **changes: object) -> TransactionImage:
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"a transaction cannot go from {self.state.value} to {state.value}")
        return replace(self, state=state, **changes)  # type: ignore[arg-type]
