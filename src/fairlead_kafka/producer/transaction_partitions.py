"""Which partitions are part of a producer's transaction, and which are to become so."""

from __future__ import annotations

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import TopicPartition


class TransactionPartitions:
    """Each partition is in one of three sets: `wanted`, to be asked for; asked for; `added`, in which batches may go out."""

    def __init__(self) -> None:
        self.wanted: dict[TopicPartition, None] = {}
        self.added: dict[TopicPartition, None] = {}
        self._asked: dict[TopicPartition, None] = {}
        self._released: list[TopicPartition] = []

    def use(self, partition: TopicPartition) -> None:
        """A batch was begun for this partition."""
        if partition not in self.added and partition not in self._asked:
            self.wanted[partition] = None

    def ask(self) -> list[TopicPartition]:
        """Those to ask for now."""
        self._asked, self.wanted = self.wanted, {}
        return list(self._asked)

    def answered(self, *, added: bool) -> None:
        """What was asked for is `added`, or is not and will not be."""
        asked, self._asked = self._asked, {}
        if added:
            self.added.update(asked)
            self._released += asked

    def take_released(self) -> list[TopicPartition]:
        """Those added since the last call."""
        released, self._released = self._released, []
        return released

    def forget(self) -> None:
        """The transaction is over."""
        self.added.clear()
        self.wanted.clear()

    def check(self, *, started: bool, asking: bool) -> None:
        """`started`: the coordinator knows of the transaction; `asking`: a request is under way. CheckFailed if that does not fit."""
        sets = (self.wanted, self._asked, self.added)
        same("partitions of the transaction", sum(map(len, sets)), len(set().union(*sets)))
        holds("partitions were added to a transaction that was not begun", started or not self.added)
        holds("partitions are asked for by no request", asking or not self._asked)
