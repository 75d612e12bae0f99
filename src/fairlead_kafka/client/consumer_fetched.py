"""`Fetched`: the assigned partitions of a consumer, and fetched records that are not returned yet.

Nothing here waits. A chunk leaves `pending` only once it is decoded, so bytes that do not decode
are reported at every poll and never skipped in silence. Records leave when a poll hands them out,
as its last step; and what moves from one place to another does so `at_once`, so that Ctrl-C, which
may come at any time, leaves it in one of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from fairlead_kafka.base.at_once import at_once
from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer import Chunk, OpenChunk
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.records import DecodedRecords
from fairlead_kafka.runtime import Completion


class Part(NamedTuple):
    """Records of one chunk that a poll is about to return; they stay until `Fetched.hand_out`."""

    chunk: Chunk
    records: int
    """How many there are."""
    next_offset: int
    """Offset after them: the position once they are returned."""
    opened: OpenChunk | None = None
    """The chunk, if it is open; else it is pending."""
    stop: int = 0
    """Index after the records in an open chunk."""


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
        self.sent = False
        """True once the machine has `asked` for certain."""

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
        begun: set[TopicPartition] = set()
        for opened in list(self.opened):
            partition = opened.chunk.partition
            if not opened.dropped and partition not in begun:
                held[partition] = opened.chunk.position_at(opened.position)
                if opened.index < opened.stop:  # else it has ended, and the next one says more
                    begun.add(partition)
        asked = self.asked
        answered = asked.result() if asked is not None and asked.done() and asked.error() is None else ()
        for chunk in (*list(self.pending), *answered):
            if self._current(chunk):
                held.setdefault(chunk.partition, chunk.position)
        return held

    def answered(self, chunks: Sequence[Chunk]) -> None:
        """Keep the chunks that answer `asked`, but for those of partitions that moved meanwhile."""
        current = [chunk for chunk in chunks if self._current(chunk)]
        at_once(partial(self.pending.extend, current), partial(setattr, self, "asked", None))

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
        for index, pending in enumerate(self.pending):
            if pending is chunk:
                rest = _after(chunk, decoded.next_offset)
                at_once(
                    partial(self.pending.__delitem__, index)
                    if rest is None
                    else partial(self.pending.__setitem__, index, rest),
                    partial(self.opened.append, OpenChunk(chunk, decoded)),
                )
                return True
        return False

    def kept(self, parts: Iterable[Part]) -> set[int]:
        """Ids (`id`) of the chunks of `parts` that are pending still, and were not dropped
        meanwhile."""
        return {id(chunk) for chunk in self.pending} & {id(part.chunk) for part in parts}

    def hand_out(self, parts: Sequence[Part]) -> None:
        """Move positions after the records of `parts`, all at once: the last step of a poll, after
        which nothing can end it before its caller has the records."""
        changes = [
            partial(setattr, part.opened, "index", part.stop) for part in parts if part.opened is not None
        ]
        struck = {id(part.chunk): part.next_offset for part in parts if part.opened is None}
        if struck:
            rests = (
                _after(chunk, struck[id(chunk)]) if id(chunk) in struck else chunk for chunk in self.pending
            )
            pending = deque(rest for rest in rests if rest is not None)
            changes.append(partial(setattr, self, "pending", pending))
        at_once(*changes)

    def clear(self) -> None:
        """Drop all chunks; called when the consumer closes."""
        self.pending.clear()
        self.opened.clear()

    def _current(self, chunk: Chunk) -> bool:
        return chunk.generation >= self.assigned.get(chunk.partition, self._parted + 1)


def _after(chunk: Chunk, next_offset: int) -> Chunk | None:
    """The rest of a chunk that was decoded up to `next_offset`; there is one only where inflating
    stopped at its memory limit."""
    if not chunk.start < next_offset < min(chunk.next_offset, chunk.end):
        return None
    return chunk._replace(start=next_offset, epoch=chunk.position_at(next_offset).leader_epoch)
