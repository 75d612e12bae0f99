"""A transaction that its producer has finished writing, for another process to end."""

from __future__ import annotations

from typing import NamedTuple


class PreparedTransaction(NamedTuple):
    """All that is needed to commit or abort a transaction, from anywhere (the `PreparedTxnState` of
    KIP-939, with its name).

    `partitions`: how many partitions it has records in. A coordinator that knows of fewer has
    aborted it before all of it was written, and taken what came later for another one.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: int

    def __str__(self) -> str:
        return f"{self.transactional_id!r} (producer id {self.producer_id}, epoch {self.epoch})"
