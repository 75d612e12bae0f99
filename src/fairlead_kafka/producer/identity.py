"""Idempotence: the producer's id and epoch, and the sequence numbers of each partition.

The rules are Kafka's (KIP-98, KIP-360, `TransactionManager`, `TxnPartitionMap`), with one
simplification that is also safer: a partition whose batches must be renumbered waits until none of
them is on the wire. So an answer always concerns the numbers that its batch carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_OFFSET, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from fairlead_kafka.producer.sequences import EPOCH_MAX, follows, last_sequence, lies_behind, sequence_after
from fairlead_kafka.records import restamp


class IdentityState(Enum):
    """States of a producer id; see TRANSITIONS."""

    OFF = "idempotence is off"
    AWAITED = "the transaction coordinator has not given a producer id yet"
    WANTED = "a producer id has to be asked for"
    ASKING = "InitProducerId is under way"
    READY = "batches can be numbered"
    FAILED = "no producer id can be had"


class IdentityTrigger(Enum):
    """Events that change the state of a producer id; see TRANSITIONS."""

    ASKED = "the request was handed to the network"
    GRANTED = "a broker gave a producer id"
    REFUSED = "try again later"
    EXHAUSTED = "the last epoch of the producer id is used up"
    GIVEN_UP = "no broker will ever grant one"


TRANSITIONS: dict[tuple[IdentityState, IdentityTrigger], IdentityState] = {
    (IdentityState.WANTED, IdentityTrigger.ASKED): IdentityState.ASKING,
    (IdentityState.ASKING, IdentityTrigger.GRANTED): IdentityState.READY,
    (IdentityState.ASKING, IdentityTrigger.REFUSED): IdentityState.WANTED,
    (IdentityState.ASKING, IdentityTrigger.GIVEN_UP): IdentityState.FAILED,
    (IdentityState.READY, IdentityTrigger.EXHAUSTED): IdentityState.WANTED,
    # With a transactional id, the coordinator gives both the id and every new epoch.
    (IdentityState.AWAITED, IdentityTrigger.GRANTED): IdentityState.READY,
    (IdentityState.AWAITED, IdentityTrigger.GIVEN_UP): IdentityState.FAILED,
    (IdentityState.READY, IdentityTrigger.GRANTED): IdentityState.READY,
    (IdentityState.READY, IdentityTrigger.GIVEN_UP): IdentityState.FAILED,
}


class Identity:
    """The producer id and epoch of one producer."""

    __slots__ = (
        "bump_wanted",
        "epoch",
        "error",
        "failures",
        "producer_id",
        "retry_at_ns",
        "state",
        "transactional",
    )

    def __init__(self, idempotent: bool, transactional: bool = False) -> None:
        self.state = IdentityState.OFF
        if idempotent:
            self.state = IdentityState.AWAITED if transactional else IdentityState.WANTED
        self.transactional = transactional
        """The transaction coordinator gives id and epochs; batches that fail are not renumbered,
        but aborted with their transaction."""
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.error: Exception | None = None
        self.failures = 0
        self.retry_at_ns = 0
        self.bump_wanted = False
        """Some partition has to start again at sequence 0 under a new epoch; in a transaction: once
        it is aborted."""

    @property
    def idempotent(self) -> bool:
        """True if batches carry sequence numbers."""
        return self.state is not IdentityState.OFF

    def fire(self, trigger: IdentityTrigger) -> None:
        """Change state by the table; UsageError if it has no such row."""
        following = TRANSITIONS.get((self.state, trigger))
        if following is None:
            raise UsageError(f"a producer identity that is {self.state.name} cannot be {trigger.name}")
        self.state = following

    def grant(self, producer_id: int, epoch: int) -> None:
        """Called when a broker answered InitProducerId with this producer id and epoch."""
        self.fire(IdentityTrigger.GRANTED)
        self.producer_id, self.epoch, self.failures, self.bump_wanted = producer_id, epoch, 0, False

    def bump(self) -> None:
        """Take a new epoch, as asked by `bump_wanted`: the next one, or after the last a new
        producer id (KIP-360)."""
        self.bump_wanted = False
        if self.epoch < EPOCH_MAX:
            self.epoch += 1
            return
        self.fire(IdentityTrigger.EXHAUSTED)
        self.producer_id, self.epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH


class NumberedBatch(Protocol):
    """A batch as `PartitionSequences` numbers it (`queues.Batch`)."""

    serial: int
    """Order of first sending within the partition, from 1."""
    count: int
    """Number of records."""
    producer_id: int
    producer_epoch: int
    base_sequence: int
    """Sequence of the first record; NO_SEQUENCE: not numbered."""
    buffer: memoryview | None
    """The encoded batch; None: not encoded yet, or completed."""


class PartitionSequences:
    """Sequence numbers of one partition's batches, with their producer id and epoch."""

    __slots__ = (
        "acknowledged_serial",
        "epoch",
        "last_acknowledged",
        "last_acknowledged_offset",
        "next_sequence",
        "outstanding",
        "producer_id",
        "rewrite",
        "unresolved_next",
    )  # fmt: skip

    def __init__(self) -> None:
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.next_sequence = 0
        self.last_acknowledged = NO_SEQUENCE
        self.acknowledged_serial = 0
        self.last_acknowledged_offset = NO_OFFSET
        self.outstanding: list[NumberedBatch] = []
        """Batches numbered and not completed, in order: in flight, or waiting to be sent again."""
        self.unresolved_next = NO_SEQUENCE
        """The sequence after a batch that was given up and may have been written; NO_SEQUENCE:
        there is none. Nothing new is numbered until that is known."""
        self.rewrite = False
        """All outstanding batches are to be renumbered as soon as none of them is on the wire; in a
        transaction they are lost."""

    @property
    def unresolved(self) -> bool:
        """True while it is not known whether a batch that was given up has been written."""
        return self.unresolved_next != NO_SEQUENCE

    @property
    def at_rest(self) -> bool:
        """True if nothing is under way here, and nothing has to be decided."""
        return not self.outstanding and not self.unresolved and not self.rewrite

    def may_forget(self, identity: Identity) -> bool:
        """True if the partition's sequences may be forgotten once nothing of the partition is
        outstanding. False within the epoch of a transactional id, for only the coordinator gives a
        newer one."""
        return not (identity.transactional and self._current(identity))

    @hook("producer: sequences are forgotten")
    def forget(self, identity: Identity) -> None:
        """Forget the sequences, and ask for a newer epoch: in this one, sequences from 0 would be
        duplicates."""
        if identity.idempotent and self._current(identity) and self.producer_id != NO_PRODUCER_ID:
            identity.bump_wanted = True

    def may_drain(self, batch: NumberedBatch | None, identity: Identity, in_flight: int) -> bool:
        """True if this partition's first batch, or (None) one yet to be made, may be sent now.
        Outstanding batches are renumbered on the way if that is due. A False changes only with an
        answer to a batch in flight (`RecordAccumulator.shouldStopDrainBatchesForPartition`)."""
        if self.rewrite:
            if in_flight or (identity.transactional and identity.bump_wanted):
                return False
            self._renumber(identity)
        if batch is not None and batch.base_sequence != NO_SEQUENCE:
            return self.outstanding[0] is batch
        if self.unresolved_next != NO_SEQUENCE:
            return False
        if self.last_acknowledged == NO_SEQUENCE and self.outstanding:
            # A broker without state for a producer takes any sequence: were the first batch
            # refused, a second one under way would be written before it. So the first goes alone
            # (Kafka's client does not see to that).
            return False
        if not self._current(identity):
            if self.outstanding:
                return False
            self._renumber(identity)
        return True

    def number(self, batch: NumberedBatch) -> None:
        """Give a batch its sequence; from now on it is outstanding."""
        batch.producer_id, batch.producer_epoch = self.producer_id, self.epoch
        batch.base_sequence = self.next_sequence
        self.next_sequence = sequence_after(self.next_sequence, batch.count)
        self.outstanding.append(batch)

    def replace(self, batch: NumberedBatch, parts: Sequence[NumberedBatch]) -> None:
        """Replace a batch that was split by its parts, which share its sequences."""
        place = self.outstanding.index(batch)
        self.outstanding[place : place + 1] = parts
        sequence = batch.base_sequence
        for part in parts:
            part.producer_id, part.producer_epoch, part.base_sequence = (
                batch.producer_id,
                batch.producer_epoch,
                sequence,
            )
            sequence = sequence_after(sequence, part.count)

    def acknowledge(self, batch: NumberedBatch, base_offset: int) -> None:
        """Note that a broker has the batch, even if it was given up meanwhile."""
        if batch.serial > self.acknowledged_serial:
            self.acknowledged_serial = batch.serial
            self.last_acknowledged = last_sequence(batch.base_sequence, batch.count)
            if base_offset >= 0:
                self.last_acknowledged_offset = base_offset + batch.count - 1
        if self.outstanding and self.outstanding[0] is batch:  # as it should be, and once for every batch
            del self.outstanding[0]
        else:
            self.drop(batch)

    def drop(self, batch: NumberedBatch) -> None:
        """Take off the outstanding batches one that is completed: delivered or failed."""
        outstanding = self.outstanding
        if outstanding and outstanding[0] is batch:
            del outstanding[0]
        elif batch in outstanding:
            outstanding.remove(batch)

    def give_up(self, batch: NumberedBatch) -> None:
        """Take off a batch that failed and may have been written: later batches have to wait until
        it is known whether it was."""
        self.drop(batch)
        self.unresolved_next = sequence_after(batch.base_sequence, batch.count)

    @hook("producer: sequences start again")
    def start_again(self, identity: Identity) -> None:
        """Have all outstanding batches numbered from 0 under a newer epoch, once none is in
        flight."""
        self.rewrite = True
        if self._current(identity):
            identity.bump_wanted = True

    def check(self, what: str, numbered: Sequence[NumberedBatch]) -> None:
        """Raise CheckFailed, naming the partition by `what`, unless the `numbered` batches are
        those outstanding, in order.

        `numbered`: the partition's batches that have a sequence and are not completed.
        """
        same(f"{what}: batches outstanding", set(self.outstanding), set(numbered))
        serials = [batch.serial for batch in self.outstanding]
        holds(f"{what}: outstanding batches are out of order: {serials}", serials == sorted(serials))
        # There may be gaps: a batch behind one that has to be repeated is acknowledged where both
        # were written.
        bases = [*(batch.base_sequence for batch in self.outstanding), self.next_sequence]
        for batch, following in zip(self.outstanding, bases[1:], strict=True):
            holds(
                f"{what}: {following} follows {batch} at {batch.base_sequence}",
                lies_behind(batch.base_sequence, batch.count, following),
            )

    def resolve(self, identity: Identity, in_flight: int) -> None:
        """Decide whether a batch that was given up was written, once no answer is awaited any more
        (`TransactionManager.maybeResolveSequences`)."""
        if not self.unresolved or self.outstanding or in_flight:
            return
        self.unresolved_next = NO_SEQUENCE
        if not follows(self.last_acknowledged, self.next_sequence):
            self.start_again(identity)

    def follows_acknowledged(self, batch: NumberedBatch) -> bool:
        """True if the batch is the one that a broker must expect next."""
        return follows(self.last_acknowledged, batch.base_sequence)

    def _current(self, identity: Identity) -> bool:
        return self.epoch == identity.epoch and self.producer_id == identity.producer_id

    def _renumber(self, identity: Identity) -> None:
        self.producer_id, self.epoch = identity.producer_id, identity.epoch
        self.next_sequence, self.last_acknowledged = 0, NO_SEQUENCE
        self.unresolved_next, self.rewrite = NO_SEQUENCE, False
        outstanding, self.outstanding = self.outstanding, []
        for batch in outstanding:
            self.number(batch)
            if batch.buffer is not None:
                restamp(
                    batch.buffer,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    base_sequence=batch.base_sequence,
                )
