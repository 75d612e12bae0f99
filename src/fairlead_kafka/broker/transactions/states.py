"""The states of a transaction as tables (Kafka's `TransactionState`, `TransactionCoordinator`),
from which every answer comes."""

from __future__ import annotations

from enum import Enum

from fairlead_kafka.base.codes import ErrorCode


class TransactionState(Enum):
    """State of a transactional id, by Kafka's names; their order gives the numbers in its log."""

    EMPTY = "Empty"
    """The producer has its id and epoch, and no transaction yet."""
    ONGOING = "Ongoing"
    """Partitions were added; they may be written to."""
    PREPARE_COMMIT = "PrepareCommit"
    """The commit is decided and in the log; markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    """The abort is decided and in the log; markers are being written."""
    COMPLETE_COMMIT = "CompleteCommit"
    """All markers are written, after a commit."""
    COMPLETE_ABORT = "CompleteAbort"
    """All markers are written, after an abort."""
    DEAD = "Dead"
    """Nobody used the id for `transactional.id.expiration.ms`: it is being forgotten."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The epoch is being raised, so that the producer cannot go on, and the abort written with it;
    never in the log itself."""


_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT, _DEAD, _FENCE = (
    TransactionState
)

NUMBERS: dict[TransactionState, int] = {state: number for number, state in enumerate(TransactionState)}
"""State → its number in Kafka's log."""
STATES: dict[int, TransactionState] = {number: state for state, number in NUMBERS.items()}

TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    _EMPTY: frozenset({_EMPTY, _ONGOING, _PREPARE_ABORT, _DEAD}),
    _ONGOING: frozenset({_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _FENCE}),
    _PREPARE_COMMIT: frozenset({_COMPLETE_COMMIT}),
    _PREPARE_ABORT: frozenset({_COMPLETE_ABORT}),
    _COMPLETE_COMMIT: frozenset({_EMPTY, _ONGOING, _PREPARE_ABORT, _DEAD}),
    _COMPLETE_ABORT: frozenset({_EMPTY, _ONGOING, _PREPARE_ABORT, _DEAD}),
    _DEAD: frozenset(),
    _FENCE: frozenset({_PREPARE_ABORT}),
}
"""State → the states it may go to. An abort without a transaction raises the epoch (KIP-890)."""

_NONE, _BUSY, _WRONG = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE

INIT_ERRORS: dict[TransactionState, int] = {
    _EMPTY: _NONE,
    _ONGOING: _BUSY,  # it is aborted and its producer fenced; the one who asks comes again
    _PREPARE_COMMIT: _BUSY,
    _PREPARE_ABORT: _BUSY,
    _COMPLETE_COMMIT: _NONE,
    _COMPLETE_ABORT: _NONE,
    _DEAD: _BUSY,
    _FENCE: _BUSY,
}
"""State → what InitProducerId is answered; where that is no error, the epoch is raised."""

ADD_ERRORS: dict[TransactionState, int] = {
    _EMPTY: _NONE,
    _ONGOING: _NONE,
    _PREPARE_COMMIT: _BUSY,
    _PREPARE_ABORT: _BUSY,
    _COMPLETE_COMMIT: _NONE,
    _COMPLETE_ABORT: _NONE,
    _DEAD: _BUSY,
    _FENCE: _BUSY,
}
"""State → what AddPartitionsToTxn and AddOffsetsToTxn are answered."""

END_ERRORS: dict[tuple[TransactionState, bool], int] = {
    (_EMPTY, True): _WRONG,
    (_EMPTY, False): _WRONG,
    (_ONGOING, True): _NONE,
    (_ONGOING, False): _NONE,
    (_PREPARE_COMMIT, True): _BUSY,  # asked again, perhaps: the answer is not far
    (_PREPARE_COMMIT, False): _WRONG,
    (_PREPARE_ABORT, True): _WRONG,
    (_PREPARE_ABORT, False): _BUSY,
    (_COMPLETE_COMMIT, True): _NONE,  # asked again
    (_COMPLETE_COMMIT, False): _WRONG,
    (_COMPLETE_ABORT, True): _WRONG,
    (_COMPLETE_ABORT, False): _NONE,
    (_DEAD, True): _BUSY,
    (_DEAD, False): _BUSY,
    (_FENCE, True): _BUSY,
    (_FENCE, False): _BUSY,
}
"""(state, commit?) → what EndTxn is answered up to version 4. Only `Ongoing` goes on from it."""

END_ERRORS_BY_EPOCH: dict[tuple[TransactionState, bool], int] = END_ERRORS | {
    (_EMPTY, False): _NONE,
    (_COMPLETE_COMMIT, True): _WRONG,  # asked again, it would have the epoch before
    (_COMPLETE_COMMIT, False): _NONE,
    (_COMPLETE_ABORT, True): _WRONG,
    (_COMPLETE_ABORT, False): _NONE,
}
"""(state, commit?) → what EndTxn is answered from version 5 on, where each transaction has an epoch
of its own, to a producer of the current epoch (KIP-890). All that is no error goes on from here."""

EXPIRING = frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT})
"""States in which an id that nobody uses is forgotten."""
ENDING: dict[TransactionState, bool] = {_PREPARE_COMMIT: True, _PREPARE_ABORT: False}
"""States in which markers are being written → whether they commit."""
ENDED: dict[TransactionState, bool] = ENDING | {_COMPLETE_COMMIT: True, _COMPLETE_ABORT: False}
"""States after a decision on the last transaction → whether it is a commit."""
