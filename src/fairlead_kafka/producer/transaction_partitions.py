"""The partitions of a producer's transaction: those added, and those to be added."""

from __future__ import annotations

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import TopicPartition


class TransactionPartitions:
    """The partitions of a transaction, each in one of three sets: `wanted`, to be added by a
    request; those that a request under way asks for; and `added`, to which batches may be sent."""

    def __init__(self) -> None:
        self.wanted: dict[TopicPartition, None] = {}
        self.added: dict[TopicPartition, None] = {}
        self._asked: dict[TopicPartition, None] = {}
        self._released: list[TopicPartition] = []

    def use(self, partition: TopicPartition) -> None:
        """Note that a batch was begun for a partition: it has to be added, unless it is added
        already."""
        if partition not in self.added and partition not in self._asked:
            self.wanted[partition] = None

    def ask(self) -> list[TopicPartition]:
        """The partitions for a request to add now, including those asked for without an answer;
        they count as asked for."""
        self._asked |= self.wanted
        self.wanted = {}
        return list(self._asked)

    def answered(self, *, added: bool) -> None:
        """Move the partitions asked for to `added`, or, if the coordinator refused (`added` is
        false), drop them."""
        asked, self._asked = self._asked, {}
        if added:
            self.added.update(asked)
            self._released += asked

    def take_released(self) -> list[TopicPartition]:
        """Take the partitions that were added since the last call."""
        released, self._released = self._released, []
        return released

    def forget(self) -> None:
        """Forget all partitions: the transaction is over."""
        self.added.clear()
        self.wanted.clear()

    def check(self, *, started: bool, asking: bool) -> None:
        """Raise CheckFailed if the sets overlap, or do not fit the transaction's state.

        `started`: the coordinator knows of the transaction; `asking`: a request is under way.
        """
        sets = (self.wanted, self._asked, self.added)
        same("partitions of the transaction", sum(map(len, sets)), len(set().union(*sets)))
        holds("partitions were added to a transaction that was not begun", started or not self.added)
        holds("partitions are asked for by no request", asking or not self._asked)
