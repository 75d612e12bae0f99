"""Transactions: list, describe (KIP-664), commit or abort one that its producer left open.

To end a transaction uses the first protocol of transactions, as Fairlead's producer does: EndTxn up
to version 4 leaves the epoch as it is, so an EndTxn whose answer got lost can be sent again and is
answered as done (`base.codes` and `producer.coordinators` say more).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead_kafka.admin.coordinated import of_every_broker, per_coordinated
from fairlead_kafka.admin.scripts import AdminScript, Outcome, outcome_of
from fairlead_kafka.admin.transaction_items import TransactionDescription, TransactionListing
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
)


def list_transactions(
    states: Sequence[str], producer_ids: Sequence[int], open_for_ms: float | None, pattern: str | None
) -> AdminScript[dict[str, TransactionListing]]:
    """List transactional ids of all brokers that pass every filter: {transactional id: listing}, by
    name.

    `states` or `producer_ids` empty, `open_for_ms` or `pattern` None: all pass. UnsupportedVersion
    from brokers that have no such filter, BrokerError for a pattern that is not RE2's.
    """
    message = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if open_for_ms is None else int(open_for_ms),
        transactional_id_pattern=pattern or None,
    )
    answers = yield from of_every_broker("the transactions", ApiKey.LIST_TRANSACTIONS, message)
    rows = [row for said in answers for row in said.transaction_states]
    found = {
        row.transactional_id: TransactionListing(row.transactional_id, row.producer_id, row.transaction_state)
        for row in rows
    }
    return dict(sorted(found.items()))


def describe_transactions(
    metadata: Metadata, transactional_ids: Sequence[str]
) -> AdminScript[dict[str, TransactionDescription]]:
    """Describe transactional ids: {transactional id: description}.

    ItemsFailed names those that no coordinator knows (any more).
    """

    def ask(wanted: list[str]) -> list[tuple[ApiKey, DescribeTransactionsRequest]]:
        return [(ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(transactional_ids=wanted))]

    def read(
        node_id: int, answer: DescribeTransactionsResponse
    ) -> Iterable[tuple[str, Outcome[TransactionDescription]]]:
        for row in answer.transaction_states:
            description = TransactionDescription(
                row.transactional_id,
                row.producer_id,
                row.producer_epoch,
                row.transaction_state,
                row.transaction_timeout_ms,
                row.transaction_start_time_ms,
                metadata.nodes.get(node_id),
                tuple(
                    TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions
                ),
            )
            yield row.transactional_id, outcome_of(row.error_code, None, description)

    return per_coordinated(
        "describe_transactions", KeyType.TRANSACTION, metadata, transactional_ids, ask, read
    )


def end_transactions(
    metadata: Metadata, transactions: Sequence[PreparedTransaction], *, commit: bool
) -> AdminScript[dict[PreparedTransaction, None]]:
    """Commit or abort transactions. One that ended in the same way before is no error; ItemsFailed
    names one that ended in the other way, with what the coordinator says."""
    by_id = {one.transactional_id: one for one in transactions}

    def ask(wanted: list[str]) -> list[tuple[ApiKey, EndTxnRequest]]:
        return [(ApiKey.END_TXN, _end(by_id[each], commit)) for each in wanted]

    def read(_node_id: int, answer: EndTxnResponse) -> Iterable[tuple[str, Outcome[None]]]:
        yield "", outcome_of(answer.error_code, None, None)

    try:
        yield from per_coordinated("end_transactions", KeyType.TRANSACTION, metadata, list(by_id), ask, read)
    except ItemsFailed as failed:
        errors = {by_id[each]: error for each, error in failed.errors.items()}
        raise ItemsFailed(failed.what, errors, {by_id[each]: None for each in failed.results}) from None
    return dict.fromkeys(by_id.values())


def _end(one: PreparedTransaction, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=one.transactional_id,
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        committed=commit,
    )
