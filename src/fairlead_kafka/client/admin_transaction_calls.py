"""Calls of admin clients about transactions and their producers, as steps that a blocking or an
awaiting class drives."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka import admin
from fairlead_kafka.admin import (
    AbortTransaction,
    FencedProducer,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    producers,
)
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_performing import Performing, distinct, topics_of
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.core.prepared import PreparedTransaction


class TransactionCalls:
    """Calls about transactions, and the producers that began them, as steps; `Admin` has what each
    does."""

    def __init__(self, performing: Performing) -> None:
        self._timeout_ms = performing.timeout_ms
        self._perform = performing.perform

    def list_transactions(
        self,
        states: Iterable[str],
        producer_ids: Iterable[int],
        open_for_ms: float | None,
        pattern: str | None,
        timeout_s: float | None,
    ) -> Steps[dict[str, TransactionListing]]:
        """List transactional ids; see `Admin.list_transactions` for results, time-out and
        errors."""
        names = distinct("list_transactions", states)
        script = admin.list_transactions(names, list(producer_ids), open_for_ms, pattern)
        return self._perform("listing transactions", (), lambda _: script, timeout_s)

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, TransactionDescription]]:
        """Describe transactional ids; see `Admin.describe_transactions` for results, time-out and
        errors."""
        wanted = distinct("describe_transactions", transactional_ids)
        return self._perform(
            "describing transactions",
            wanted,
            lambda metadata: admin.describe_transactions(metadata, wanted),
            timeout_s,
        )

    def end_transactions(
        self, transactions: Iterable[PreparedTransaction], commit: bool, timeout_s: float | None
    ) -> Steps[dict[PreparedTransaction, None]]:
        """End prepared transactions; see `Admin.end_transactions` for results, time-out and
        errors."""
        wanted = _one_of_each_id("end_transactions", transactions)
        what = f"{'committing' if commit else 'aborting'} transactions"
        return self._perform(
            what, wanted, lambda metadata: admin.end_transactions(metadata, wanted, commit=commit), timeout_s
        )

    def describe_producers(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, list[ProducerState]]]:
        """Describe producers; see `Admin.describe_producers` for results, time-out and errors."""
        wanted = [TopicPartition(*each) for each in partitions]
        return self._perform(
            "describing producers of",
            wanted,
            lambda metadata: producers.describe_producers(metadata, wanted),
            timeout_s,
            topics_of(wanted),
        )

    def abort_transaction(self, transaction: AbortTransaction, timeout_s: float | None) -> Steps[None]:
        """Abort a transaction on a partition; see `Admin.abort_transaction` for results, time-out
        and errors."""
        one = AbortTransaction(*transaction)
        return self._perform(
            "aborting the transaction on",
            [one],
            lambda metadata: producers.abort_transaction(metadata, one),
            timeout_s,
            [one.partition[0]],
        )

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, FencedProducer]]:
        """Fence producers; see `Admin.fence_producers` for results, time-out and errors."""
        wanted = distinct("fence_producers", transactional_ids)
        timeout_ms = self._timeout_ms(timeout_s)
        return self._perform(
            "fencing producers of",
            wanted,
            lambda metadata: producers.fence_producers(metadata, wanted, timeout_ms=timeout_ms),
            timeout_s,
        )

    def force_terminate_transaction(self, transactional_id: str, timeout_s: float | None) -> Steps[None]:
        """End an open transaction; see `Admin.force_terminate_transaction` for results, time-out
        and errors."""
        timeout_ms = self._timeout_ms(timeout_s)
        try:
            yield from self._perform(
                "ending the transaction of",
                [transactional_id],
                lambda metadata: producers.fence_producers(
                    metadata, [transactional_id], timeout_ms=timeout_ms
                ),
                timeout_s,
            )
        except ItemsFailed as failed:
            raise failed.errors[transactional_id] from None


def _one_of_each_id(call: str, transactions: Iterable[PreparedTransaction]) -> list[PreparedTransaction]:
    wanted = [PreparedTransaction(*each) for each in transactions]
    distinct(call, [each.transactional_id for each in wanted])
    return wanted
