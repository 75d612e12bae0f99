"""The client of a soak that reads everything: once as it is written, before retention takes it, and
at the end all records that are left.

Within a partition the numbers of a producer rise: a smaller one is a duplicate, or out of order.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Consumer
from fairlead_kafka.lab.peers.soak import (
    ABORT_EVERY,
    COMPACTED,
    KEYED,
    PARTITIONS,
    TRANSACTION_RECORDS,
    TRANSACTIONAL,
    UNKEYED,
    Errand,
    Ledger,
    numbers_of,
)
from fairlead_kafka.lab.soak_figures import Int64

TIMEOUT_S = 120.0
_COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value"]


class Transactions:
    """Counts the records read of each transaction; keeps only the transactions of which some are
    missing."""

    def __init__(self) -> None:
        self.aborted_seen = 0
        """Number of records of aborted transactions that were read."""
        self.whole = 0
        self._seen: Counter[int] = Counter()

    def take(self, numbers: Int64) -> None:
        """Note records that were read."""
        found, counts = np.unique(numbers // TRANSACTION_RECORDS, return_counts=True)
        for number, count in zip(found.tolist(), counts.tolist(), strict=True):
            if number % ABORT_EVERY == 0:
                self.aborted_seen += count
                continue
            self._seen[number] += count
            if self._seen[number] == TRANSACTION_RECORDS:
                del self._seen[number]
                self.whole += 1

    @property
    def torn(self) -> int:
        """Number of transactions that were read in part, or more than once."""
        return len(self._seen)


class Reading:
    """One reading of all topics, from their begin to their end."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.disorder = 0
        """Count of numbers that are not greater than the one before them in their partition."""
        self.newest: dict[int, int] = {}
        """Last number of each key of COMPACTED, -1 for a record without a value."""
        self.last: dict[str, int] = {}
        """The last number of each partition."""
        self.transactions = Transactions()
        self.records = 0
        self._ledger = ledger

    def take(self, table: pa.Table) -> None:
        """Note the records of one poll."""
        self.records += table.num_rows
        table = table.combine_chunks()
        topics, partitions = table["topic"], table["partition"].to_numpy()
        now_ms = time.time() * 1000
        for topic in topics.unique().to_pylist():
            of_topic = pc.equal(topics, topic).to_numpy()
            for partition in np.unique(partitions[of_topic]).tolist():
                part = table.filter(pa.array(of_topic & (partitions == partition)))
                self._take_partition(f"{topic}-{partition}", topic, part, now_ms)

    def _take_partition(self, place: str, topic: str, part: pa.Table, now_ms: float) -> None:
        values = part["value"].combine_chunks()
        if topic == COMPACTED:
            present = values.is_valid().to_numpy(zero_copy_only=False)
            numbers = np.full(len(values), -1)
            numbers[present] = numbers_of(values.drop_null())
            for key, number in zip(part["key"].to_pylist(), numbers.tolist(), strict=True):
                self.newest[int(key)] = number
            numbers = numbers[present]
        else:
            numbers = numbers_of(values)
        if not len(numbers):
            return
        before = np.concatenate([[self.last.get(place, -1)], numbers[:-1]])
        self.disorder += int((numbers <= before).sum())
        self.last[place] = int(numbers[-1])
        if self._ledger is not None:
            if topic == TRANSACTIONAL:
                self.transactions.take(numbers)
            age_ms = now_ms - part["timestamp"][len(part) - 1].cast(pa.int64()).as_py() / 1000
            self._ledger.completed(place, numbers, age_ms)


def auditor(errand: Errand, ledger: Ledger, stopping: threading.Event) -> None:
    """Read while the producers write; once they have ended, read to the end, then read all topics
    once more."""
    partitions = [
        TopicPartition(topic, each)
        for topic in (UNKEYED, KEYED, COMPACTED, TRANSACTIONAL)
        for each in range(PARTITIONS)
    ]
    config = {**errand.config, "isolation.level": "read_committed", "auto.offset.reset": "none"}
    following, again = Reading(ledger), Reading(None)
    with Consumer(config) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        for partition in partitions:
            consumer.position(partition, TIMEOUT_S)
        ledger.ready.set()
        while not stopping.is_set():
            following.take(consumer.poll_table(0.5, columns=_COLUMNS))
        _to_the_end(consumer, partitions, following)
    # Retention goes on: where a log begins may be gone by the time that it is read.
    with Consumer({**config, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(partitions)
        _to_the_end(consumer, partitions, again)
    ledger.last_figures |= {
        "transactions_whole": following.transactions.whole,
        "transactions_torn": following.transactions.torn,
        "aborted_seen": following.transactions.aborted_seen,
        "disorder": following.disorder + again.disorder,
        "read_again": again.records,
        "ends_differ": sum(
            following.last[place] != last
            for place, last in again.last.items()
            if not place.startswith(COMPACTED)
        ),
        "newest": {str(key): value for key, value in again.newest.items()},
    }


def _to_the_end(consumer: Consumer, partitions: list[TopicPartition], reading: Reading) -> None:
    ends = consumer.end_offsets(partitions, TIMEOUT_S)
    while any(consumer.position(partition, TIMEOUT_S) < end for partition, end in ends.items()):
        reading.take(consumer.poll_table(0.5, columns=_COLUMNS))
