"""The states of a transactional producer as a table (KIP-98, Kafka's
`TransactionManager.State`)."""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """States of a transactional producer; see TRANSITIONS."""

    UNINITIALIZED = "init_transactions has not been called"
    INITIALIZING = "the coordinator is asked for the producer id, or for a new epoch"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "the transaction is being committed"
    ABORTING = "the transaction is being aborted"
    PREPARING = "the transaction is being made ready for another process to end"
    ABORTABLE_ERROR = "the transaction can only be aborted"
    FATAL_ERROR = "the producer can only be closed"


class TransactionTrigger(Enum):
    """Events that change the state of a transactional producer; see TRANSITIONS."""

    INIT = "init_transactions was called"
    GRANTED = "the coordinator gave id and epoch"
    REFUSED = "it did not, and may be asked again"
    BEGIN = "begin_transaction was called"
    COMMIT = "commit_transaction was called"
    ABORT = "abort_transaction was called"
    PREPARE = "prepare_transaction was called"
    PREPARED = "all of the transaction is written; another process ends it"
    ENDED = "the coordinator has committed or aborted"
    ENDED_STALE = "likewise, and the epoch must not be used any more"
    FAILED = "something of the transaction was not done"
    DOOMED = "nothing can be done any more"


_S, _T = TransactionState, TransactionTrigger
TRANSITIONS: dict[tuple[TransactionState, TransactionTrigger], TransactionState] = {
    (_S.UNINITIALIZED, _T.INIT): _S.INITIALIZING,
    (_S.INITIALIZING, _T.GRANTED): _S.READY,
    (_S.INITIALIZING, _T.REFUSED): _S.UNINITIALIZED,
    (_S.READY, _T.BEGIN): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, _T.COMMIT): _S.COMMITTING,
    (_S.IN_TRANSACTION, _T.ABORT): _S.ABORTING,
    (_S.IN_TRANSACTION, _T.PREPARE): _S.PREPARING,
    (_S.IN_TRANSACTION, _T.FAILED): _S.ABORTABLE_ERROR,
    (_S.PREPARING, _T.FAILED): _S.ABORTABLE_ERROR,
    # A producer that goes on needs a new epoch: then it cannot touch the prepared transaction.
    (_S.PREPARING, _T.PREPARED): _S.UNINITIALIZED,
    (_S.COMMITTING, _T.FAILED): _S.ABORTABLE_ERROR,
    (_S.COMMITTING, _T.ENDED): _S.READY,
    (_S.COMMITTING, _T.ENDED_STALE): _S.INITIALIZING,
    (_S.ABORTABLE_ERROR, _T.ABORT): _S.ABORTING,
    (_S.ABORTING, _T.ENDED): _S.READY,
    (_S.ABORTING, _T.ENDED_STALE): _S.INITIALIZING,
    **{(state, _T.DOOMED): _S.FATAL_ERROR for state in TransactionState},
}
