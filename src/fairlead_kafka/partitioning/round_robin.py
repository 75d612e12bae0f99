"""Round robin: one record to each available partition in turn, what Kafka's producers did before
KIP-480."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fairlead_kafka.partitioning.load import PartitionArray, SizeArray, TopicLoad, candidates


class RoundRobinPolicy:
    """Record number i since the start goes to `available[i % len(available)]` (Kafka's
    `RoundRobinPartitioner`).

    Kafka's own class advances twice whenever a batch is opened and so leaves partitions out
    (KAFKA-9965, KAFKA-13303); this one does not. Sizes and loads play no part.
    """

    name = "round_robin"
    binds_at: Literal["append", "drain"] = "append"

    def __init__(self) -> None:
        self._placed = 0

    def place(self, sizes_bytes: SizeArray, load: TopicLoad) -> PartitionArray:
        """int32[n]: the available partitions in ascending order, repeated, going on where the last
        call stopped."""
        count = len(sizes_bytes)
        available = list(candidates(load))
        start = self._placed % len(available)
        self._placed += count
        return np.resize(np.array(available[start:] + available[:start], dtype=np.int32), count)

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """Do nothing: batches do not matter here."""
