"""Bugs to plant that affect transactional producers like Java's, for world `transactions`.

The first two were real bugs once, which no world found while all clients were Fairlead's.
"""

from __future__ import annotations

from dataclasses import replace

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import Method
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.transactions.coordinator import TransactionCoordinator
from fairlead_kafka.broker.transactions.log import Transaction
from fairlead_kafka.broker.transactions.states import ENDING
from fairlead_kafka.simulation.canary import Canary


def _doing_nothing(_method: Method) -> Method:
    return lambda *_arguments: None


def _fencing_who_is_early(end_by_epoch: Method) -> Method:
    def planted(
        coordinator: TransactionCoordinator,
        transactional_id: str,
        producer: ProducerIdentity,
        committed: bool,
        done: object,
    ) -> object:
        transaction = coordinator._find(transactional_id)[1]
        image = None if transaction is None else transaction.image
        if image is not None and image.state in ENDING and image.identity == producer:
            raise BrokerError(ErrorCode.PRODUCER_FENCED, "the transaction before has not ended")
        return end_by_epoch(coordinator, transactional_id, producer, committed, done)

    return planted


def _raising_the_epoch_twice(fence: Method) -> Method:
    def planted(
        coordinator: TransactionCoordinator, shard: object, transaction: Transaction, done: object
    ) -> None:
        transaction.image = replace(transaction.image, epoch=transaction.image.epoch + 1)
        fence(coordinator, shard, transaction, done)

    return planted


TRANSACTION_CANARIES = (
    Canary(
        "a later batch is taken where the first of its transaction is not",
        "transactions",
        "log: a transaction begins with its first batch",
        _doing_nothing,
        first_seed=58,
    ),
    Canary(
        "an end that comes while markers are brought fences its producer",
        "transactions",
        "transactions: an end that raises the epoch",
        _fencing_who_is_early,
        first_seed=1,
    ),
    Canary(
        "a time-out raises the epoch twice",
        "transactions",
        "transactions: a producer is fenced",
        _raising_the_epoch_twice,
        first_seed=1,
    ),
)
"""The planted bugs of world `transactions`."""
