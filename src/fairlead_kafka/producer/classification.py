"""Classification of batches by brokers' answers: a pure function (Kafka's
`Sender.completeBatch`)."""

from __future__ import annotations

from enum import Enum

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.producer.identity import Identity, PartitionSequences
from fairlead_kafka.producer.queues import Batch


class Classification(Enum):
    """The outcome of an answered batch."""

    DELIVERED = "the broker has it"
    RETRY = "send the same bytes again"
    RENUMBER = "send again, renumbered under another epoch"
    SPLIT = "send it in smaller batches"
    FAIL = "tell the sender"


def classify(
    code: int, log_start_offset: int, batch: Batch, sequences: PartitionSequences, identity: Identity
) -> Classification:
    """Classify a batch by the error code of its answer alone.

    The caller checks whether time and retries are left.
    """
    if code == ErrorCode.NONE or (code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and identity.idempotent):
        return Classification.DELIVERED
    if code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
        return Classification.SPLIT
    if identity.idempotent and code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        return _out_of_order(batch, sequences, identity)
    if identity.idempotent and code == ErrorCode.UNKNOWN_PRODUCER_ID:
        # -1: the broker does not know its log's start, so it cannot tell whether our state expired
        # or never was.
        return Classification.RETRY if log_start_offset == -1 else _renumbered(identity)
    return Classification.RETRY if policy(code).retriable else Classification.FAIL


def _out_of_order(batch: Batch, sequences: PartitionSequences, identity: Identity) -> Classification:
    if identity.transactional and sequences.rewrite:
        return Classification.FAIL  # a batch before it has failed, and with it the transaction
    if sequences.unresolved:
        # Only the batch right behind the one that was given up proves that it is missing; the
        # others have to wait for it.
        return (
            _renumbered(identity)
            if batch.base_sequence == sequences.unresolved_next
            else Classification.RETRY
        )
    # An earlier batch is still to be sent again, and then this one fits; if it was next already,
    # the broker lost something.
    return _renumbered(identity) if sequences.follows_acknowledged(batch) else Classification.RETRY


def _renumbered(identity: Identity) -> Classification:
    """RENUMBER, or FAIL in a transaction: the transaction is aborted then, and the next one has a
    new epoch (KIP-360)."""
    return Classification.FAIL if identity.transactional else Classification.RENUMBER
