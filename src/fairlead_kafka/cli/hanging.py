"""Hanging transactions: open in a partition, but not known to any coordinator (KIP-664).

By the rule of Kafka's TransactionsCommand: a transaction that has been open for longer than the
maximum time-out hangs if its producer id belongs to no transactional id, or to one whose open
transaction does not have the partition.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.admin import ProducerState
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin


def hanging_transactions(
    admin: Admin, partitions: Iterable[TopicPartition], before_ms: float
) -> list[tuple[TopicPartition, ProducerState]]:
    """Hanging transactions whose last record is older than `before_ms` (since 1970)."""
    wanted = list(partitions)
    open_ones = [
        (of, one)
        for of, producers in sorted((admin.describe_producers(wanted) if wanted else {}).items())
        for one in producers
        if one.transaction_start_offset is not None and one.last_timestamp_ms < before_ms
    ]
    if not open_ones:
        return []
    ids = {one.producer_id: one.transactional_id for one in admin.list_transactions().values()}
    known = sorted({ids[one.producer_id] for _, one in open_ones if one.producer_id in ids})
    described = admin.describe_transactions(known) if known else {}
    return [
        (of, one)
        for of, one in open_ones
        if one.producer_id not in ids or of not in described[ids[one.producer_id]].partitions
    ]
