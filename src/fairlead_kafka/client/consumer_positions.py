"""Calls about the assignment of a consumer and its positions, as steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Fetched
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.consumer import Assign, GetPosition, Seek, SetPaused


class ConsumerPositions:
    """Steps that assign by hand, move positions and pause."""

    def __init__(self, asking: Asking, fetched: Fetched) -> None:
        self._asking = asking
        self._fetched = fetched

    def assign(self, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """Replace the assignment by these partitions; see `Consumer.assign`."""
        wanted = [TopicPartition(*each) for each in partitions]
        generations = yield from self._asking.ask(Assign, wanted)
        self._fetched.moved(generations, replaces=True)

    def assignment(self) -> list[TopicPartition]:
        """The partitions assigned to this consumer, in the order given."""
        return list(self._fetched.assigned)

    def position(self, partition: TopicPartition, timeout_s: float | None) -> Steps[int]:
        """Offset of the next record that a poll returns, looked up if there is no position yet."""
        self._asking.check()
        partition = TopicPartition(*partition)
        held = self._fetched.held().get(partition)
        if held is not None:
            return held.offset
        deadline_ns = self._asking.deadline_ns(timeout_s)
        yield from self._asking.connect_first(timeout_s)
        return (yield from self._asking.ask(GetPosition, deadline_ns, partition))

    def seek(self, positions: Mapping[TopicPartition, int]) -> Steps[None]:
        """Move positions of partitions: to an offset, or to EARLIEST or LATEST."""
        wanted = {TopicPartition(*partition): position for partition, position in positions.items()}
        generations = yield from self._asking.ask(Seek, wanted)
        self._fetched.moved(generations, replaces=False)

    def seek_to(self, partitions: Iterable[TopicPartition] | None, target: int) -> Steps[None]:
        """Move positions to `target`, EARLIEST or LATEST; `partitions` None: of all assigned
        partitions."""
        return self.seek(dict.fromkeys(self._fetched.assigned if partitions is None else partitions, target))

    def seek_offset(self, partition: TopicPartition, offset: int) -> Steps[None]:
        """Move the position of one partition to `offset`; UsageError if that is below 0."""
        if offset < 0:
            raise UsageError(
                f"seek {partition} to offset {offset}: offsets begin at 0; use seek_to_beginning or "
                "seek_to_end"
            )
        return self.seek({partition: offset})

    def pause(self, partitions: Iterable[TopicPartition], paused: bool) -> Steps[None]:
        """Pause partitions, or, if `paused` is false, resume them."""
        wanted = [TopicPartition(*each) for each in partitions]
        yield from self._asking.ask(SetPaused, wanted, paused)
        self._fetched.pause(wanted, paused)

    def paused(self) -> list[TopicPartition]:
        """The partitions of which polls return no records (`pause`)."""
        return list(self._fetched.paused)
