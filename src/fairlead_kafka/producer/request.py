"""`Request`: the batches of one Produce request in the making."""

from __future__ import annotations

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.producer.batch_states import BatchTrigger
from fairlead_kafka.producer.queues import Batch, PartitionQueue


class Request:
    """The batches of one Produce request in the making, one for a partition at most."""

    __slots__ = ("batches", "fresh", "queues", "size_bytes")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.fresh: list[Batch] = []
        """The batches that go out for the first time."""
        self.queues: set[PartitionQueue] = set()
        self.size_bytes = 0

    def add(self, batch: Batch, *, idempotent: bool) -> None:
        """Add a batch, which counts as in flight from now on. If it is new and the producer
        `idempotent`, it gets its sequence."""
        queue = batch.queue
        if not batch.serial:
            batch.serial = queue.sent_records + 1
            queue.sent_records += batch.count
            self.fresh.append(batch)
            if idempotent:
                queue.sequences.number(batch)
        batch.attempts += 1
        batch.fire(BatchTrigger.SENT)
        queue.in_flight += 1
        metadata = queue.topic.metadata
        assert metadata is not None, "a queue with a leader has metadata"
        batch.leader_epoch = metadata.partitions[queue.partition].leader_epoch
        self.batches.append(batch)
        self.queues.add(queue)
        self.size_bytes += batch.size_bytes + BATCH_OVERHEAD_BYTES
