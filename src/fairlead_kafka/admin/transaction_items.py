"""Arguments and results of admin calls on transactions (KIP-664)."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.ids import Node, TopicPartition


@dataclass(slots=True, frozen=True)
class TransactionListing:
    """A transactional id. `state` as Kafka names it: Empty, Ongoing, PrepareCommit, PrepareAbort,
    CompleteCommit, CompleteAbort."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(slots=True, frozen=True)
class TransactionDescription:
    """A transactional id as its coordinator has it. `started_ms` (since 1970, by the coordinator's
    clock) is -1 if none is open."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    timeout_ms: int
    started_ms: int
    coordinator: Node | None
    partitions: tuple[TopicPartition, ...]

    @property
    def is_open(self) -> bool:
        """True while it is neither committed nor aborted; records of it may have been written."""
        return self.state == "Ongoing"
