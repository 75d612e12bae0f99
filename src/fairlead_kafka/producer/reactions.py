"""Reactions of transactions to coordinators' error codes: Kafka's `TransactionManager` as a table.

The rule is the same for all requests, with few exceptions by request. What the table does not name
ends the producer, as in Kafka: nobody knows then what has become of the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.core.backoff import exponential_ms
from fairlead_kafka.producer.tuning import BUSY_BACKOFF_MS
from fairlead_kafka.wire import ApiKey


class Reaction(IntEnum):
    """Reactions to error codes of coordinators, from the mildest to the gravest. Of several codes
    in an answer, the gravest reaction counts."""

    DONE = 0
    """The request was carried out."""
    RETRY = 1
    """Ask again later."""
    REFIND = 2
    """Ask another broker: the coordinator has moved."""
    REFUSED = 3
    """It did not happen, and the application may ask again: what it lacked can be granted."""
    ABORT = 4
    """The transaction can only be aborted."""
    BUMP = 5
    """The transaction can only be aborted, and the next one needs a new epoch (KIP-360)."""
    FENCED = 6
    """Another producer of the same transactional id, or the coordinator, has taken over: this one
    must stop (KIP-98, KIP-588)."""
    FATAL = 7
    """This producer must stop."""


_REACTIONS: dict[int, Reaction] = {
    ErrorCode.NONE: Reaction.DONE,
    ErrorCode.NOT_COORDINATOR: Reaction.REFIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REFIND,
    ErrorCode.INVALID_PRODUCER_EPOCH: Reaction.FENCED,
    ErrorCode.PRODUCER_FENCED: Reaction.FENCED,
    ErrorCode.UNKNOWN_PRODUCER_ID: Reaction.BUMP,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Reaction.BUMP,
    ErrorCode.TRANSACTION_ABORTABLE: Reaction.ABORT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.ABORT,
    ErrorCode.FENCED_INSTANCE_ID: Reaction.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.ABORT,
    ErrorCode.ILLEGAL_GENERATION: Reaction.ABORT,
    # Its neighbours in the request had errors, and those count.
    ErrorCode.OPERATION_NOT_ATTEMPTED: Reaction.RETRY,
}
_EXCEPTIONS: dict[tuple[ApiKey, int], Reaction] = {
    (ApiKey.FIND_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE): Reaction.RETRY,
    (ApiKey.FIND_COORDINATOR, ErrorCode.NOT_COORDINATOR): Reaction.RETRY,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED): Reaction.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED): Reaction.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE): Reaction.REFUSED,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.UNKNOWN_PRODUCER_ID): Reaction.FATAL,
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING): Reaction.FATAL,
    (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.REQUEST_TIMED_OUT): Reaction.REFIND,
}
_FATAL_FOR_ALL = frozenset({ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.INVALID_TXN_STATE})
FATAL_CODES = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""In the answer to a batch, these end the producer, all others only the transaction
(`maybeTransitionToErrorState`).

INVALID_PRODUCER_EPOCH is not among them: it may only mean that the coordinator has timed the
transaction out; if a newer producer is behind it, the abort will say so (KIP-588).
"""


def reaction(api_key: ApiKey, code: int) -> Reaction:
    """The reaction to `code` in an answer to `api_key`."""
    found = _EXCEPTIONS.get((api_key, code), _REACTIONS.get(code))
    if found is not None:
        return found
    if policy(code).retriable:
        return Reaction.RETRY
    # A partition that cannot be added costs the transaction, not the producer.
    return (
        Reaction.ABORT
        if api_key is ApiKey.ADD_PARTITIONS_TO_TXN and code not in _FATAL_FOR_ALL
        else Reaction.FATAL
    )


def gravest(api_key: ApiKey, codes: Iterable[int]) -> tuple[Reaction, int]:
    """The gravest reaction to any of `codes`, and the code that it is to."""
    return max(
        ((reaction(api_key, code), code) for code in codes),
        key=lambda each: each[0],
        default=(Reaction.DONE, ErrorCode.NONE),
    )


def busy_wait_ms(failures: int, backoff_ms: float) -> float:
    """Milliseconds until a coordinator is asked again after CONCURRENT_TRANSACTIONS.

    `failures`: such answers to the request before. Doubles from `BUSY_BACKOFF_MS`, and is never
    above `backoff_ms` (retry.backoff.ms).

    Without jitter: a producer waits only for requests about its own transactional id.
    """
    return exponential_ms(BUSY_BACKOFF_MS, backoff_ms, failures)


def code_of(error: Exception) -> int:
    """The error code of a BrokerError; NONE for an error of another kind."""
    return error.code if isinstance(error, BrokerError) else ErrorCode.NONE
