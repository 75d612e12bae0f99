"""`Fetched`: the assigned partitions of a consumer, and fetched records that are not returned yet.

Nothing here waits. A chunk leaves `pending` only once it is decoded, so bytes that do not decode
are reported at every poll and never skipped in silence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer import Chunk, OpenChunk
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.records import DecodedRecords
from fairlead_kafka.runtime import Completion


class Fetched:
    """Partitions assigned and paused, and the chunks fetched of them: pending as bytes, or open as
    records.

    `replaced`: called with the partitions of each new assignment.
    """

    def __init__(self, replaced: Callable[[Iterable[TopicPartition]], object] = list) -> None:
        self._replaced = replaced
        self.assigned: dict[TopicPartition, int] = {}
        """Partitions assigned, and their generations: a seek overtook chunks below them."""
        self._parted = 0
        """Newest generation of all partitions that were assigned once and are not any more. Each
        generation is greater than all before it, so one number is enough to know their chunks."""
        self.paused: dict[TopicPartition, None] = {}
        self.pending: deque[Chunk] = deque()
        self.opened: deque[OpenChunk] = deque()
        self.asked: Completion[list[Chunk]] | None = None
        """Question of a poll to the machine, unanswered or not looked at."""

    def check(self) -> None:
        """Raise CheckFailed if a chunk is kept of a partition whose position was moved since it was
        fetched, or a paused partition's open chunk is not held."""
        for chunk in (*self.pending, *(opened.chunk for opened in self.opened)):
            holds(f"a chunk of {chunk.partition} is kept, and is current", self._current(chunk))
        for opened in self.opened:
            partition = opened.chunk.partition
            same(f"whether a chunk of {partition} is held", opened.held, partition in self.paused)

    def moved(self, generations: Mapping[TopicPartition, int], *, replaces: bool) -> None:
        """Note each partition's generation (a number that grows when its position is moved), and
        drop chunks of older ones. `replaces`: the partitions are the new assignment."""
        if replaces:
            gone = self.assigned.keys() - generations.keys()
            self._parted = max([self._parted, *(self.assigned[partition] for partition in gone)])
            self.paused = {partition: None for partition in self.paused if partition in generations}
            self._replaced(generations)
        self.assigned = dict(generations)
        self.pending = deque(chunk for chunk in self.pending if self._current(chunk))
        for opened in self.opened:
            opened.dropped = not self._current(opened.chunk)
        self.opened = deque(opened for opened in self.opened if not opened.dropped)

    def pause(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        """Note partitions as paused, or resumed."""
        for partition in partitions:
            if paused:
                self.paused[partition] = None
            else:
                self.paused.pop(partition, None)
        for opened in self.opened:
            opened.held = opened.chunk.partition in self.paused

    def held(self) -> dict[TopicPartition, Position]:
        """First positions, by partition, of chunks taken from the machine and not yet returned;
        from any thread."""
        held: dict[TopicPartition, Position] = {}
        for opened in list(self.opened):
            if not opened.dropped:
                held.setdefault(opened.chunk.partition, opened.chunk.position_at(opened.position))
        asked = self.asked
        answered = asked.result() if asked is not None and asked.done() and asked.error() is None else ()
        for chunk in (*list(self.pending), *answered):
            if self._current(chunk):
                held.setdefault(chunk.partition, chunk.position)
        return held

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks that the machine answered, but for those of partitions that moved
        meanwhile."""
        self.pending.extend(chunk for chunk in chunks if self._current(chunk))

    def ready(self) -> list[Chunk]:
        """The pending chunks, oldest first, of partitions that are not paused."""
        return [chunk for chunk in self.pending if chunk.partition not in self.paused]

    def first_ready(self) -> Chunk | None:
        """The oldest pending chunk of a partition that is not paused."""
        return next((chunk for chunk in self.pending if chunk.partition not in self.paused), None)

    def first_open(self) -> OpenChunk | None:
        """The oldest open chunk with records to return; those read to their ends are closed."""
        if self.opened:
            first = self.opened[0]
            if first.index < first.stop and not first.held:
                return first  # the usual case, at every poll
        self.opened = deque(opened for opened in self.opened if opened.index < opened.stop)
        return next((opened for opened in self.opened if not opened.held), None)

    def open(self, chunk: Chunk, decoded: DecodedRecords) -> bool:
        """Replace a pending chunk by its decoded records; False if the chunk was dropped
        meanwhile."""
        kept = self.strike(chunk, decoded.next_offset)
        if kept:
            self.opened.append(OpenChunk(chunk, decoded))
        return kept

    def strike(self, chunk: Chunk, next_offset: int) -> bool:
        """Drop from `pending` a chunk, or its part before `next_offset`, that was decoded; False if
        the chunk was dropped meanwhile."""
        for index, pending in enumerate(self.pending):
            if pending is chunk:
                if chunk.start < next_offset < min(chunk.next_offset, chunk.end):
                    self.pending[index] = chunk._replace(
                        start=next_offset, epoch=chunk.position_at(next_offset).leader_epoch
                    )  # inflating stopped at its memory limit
                else:
                    del self.pending[index]
                return True
        return False

    def clear(self) -> None:
        """Drop all chunks; called when the consumer closes."""
        self.pending.clear()
        self.opened.clear()

    def _current(self, chunk: Chunk) -> bool:
        return chunk.generation >= self.assigned.get(chunk.partition, self._parted + 1)
