"""`Taking`: chunks from the machine, decoded in the caller's thread.

A chunk is raw bytes of a fetch answer with the range of offsets to return. It is decoded here, in
the caller's thread (large ones of an async consumer on an executor), where the kernels run without
the GIL while the host's thread fetches on. What a poll is to return stays in `Fetched` until
`hand_out`, the poll's last step: a poll that is cancelled, or that Ctrl-C or an error of the
application's code ends, loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

from fairlead_kafka import (
    consumer,
)  # what makes tables of chunks, and loads Arrow, is found in it when it is first used
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.units import MIB, NS_PER_S
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Fetched, Part
from fairlead_kafka.client.hosting import Offload, Steps, closed, wait_for, wait_until
from fairlead_kafka.client.one_at_a_time import CallUnderWay, OneAtATime
from fairlead_kafka.consumer import NO_END, Chunk, OpenChunk, Record, Take, decode_chunk
from fairlead_kafka.records import DecodedRecords
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ChunkWork = Callable[[], "tuple[pa.RecordBatch, int]"]
"""Makes a record batch of a chunk; returns it with the offset after the records in it."""
TablePart = tuple[Part, "pa.RecordBatch"]
"""Part to hand out, and its rows."""

TABLE_MAX_BYTES = 8 * MIB
"""Fetched bytes that one table is made of at most (a single chunk may exceed it): large enough that
fixed costs vanish, small enough that the next fetch overlaps with the work on this one."""
POLL_MAX_BYTES = MIB
"""Fetched bytes taken at once for polls of records."""
OFFLOAD_BYTES = 64 * 1024
"""Bytes of a chunk from which on an event loop has it decoded on a worker thread."""


class Tending(Protocol):
    """The group, as far as polls have to do with it (`consumer_group.ConsumerGroup`)."""

    def tend(self) -> Steps[None]:
        """Do what the group needs at a poll; see `ConsumerGroup.tend`."""

    def called_away(self) -> bool:
        """True if a poll has to tend to its group before it goes on waiting."""


class Taking:
    """Steps of one poll at a time; on an event loop `offload` runs large work on a thread."""

    def __init__(
        self, asking: Asking, fetched: Fetched, group: Tending, offload: Offload | None = None
    ) -> None:
        self._asking = asking
        self._fetched = fetched
        self._group = group
        self._polls = asking.polls
        self._offload = offload
        self._check_crcs: bool = asking.settings["check.crcs"]
        self.exclusive = OneAtATime(
            lambda: CallUnderWay(
                "another poll of this consumer is under way; one at a time, or a consumer each"
            )
        )
        """Runs polls, and what leaves the group."""

    def one_poll(self, steps: Steps[T]) -> Steps[T]:
        """Drive the steps of a poll, of which handing out is the last. CallUnderWay while there is
        another poll; UsageError once the consumer closes."""
        if self._asking.closing:
            raise closed("consumer")
        return self.exclusive.run(steps)

    def timed(self, timeout_s: float, steps: Callable[[int], Steps[T]]) -> Steps[T]:
        """Drive the steps of a poll that come before handing out, which are given its deadline (ns,
        monotonic clock), and count the poll."""
        began_ns = self._polls.poll_began()
        try:
            return (yield from steps(self._asking.deadline_ns(timeout_s)))
        finally:
            self._polls.poll_ended(began_ns)

    def opened(self, deadline_ns: int) -> Steps[OpenChunk | None]:
        """The oldest chunk with records to return, decoded; None if there is none by `deadline_ns`
        (monotonic clock)."""
        while True:
            opened = self.more()
            if opened is not None:
                return opened
            chunk = self._fetched.first_ready()
            if chunk is not None:
                decoded = yield from self._work(lambda chunk=chunk: self._decode(chunk), len(chunk.data))  # type: ignore[misc]
                self._open(chunk, decoded)
            elif not (yield from self._take(deadline_ns, POLL_MAX_BYTES)):
                return None

    def more(self) -> OpenChunk | None:
        """The oldest chunk with records to return, if one can be had without waiting (and, on an
        event loop, without large work); else None."""
        while (opened := self._fetched.first_open()) is None and self._opens():
            pass
        return opened

    def _opens(self) -> bool:
        """Open the oldest chunk that is pending. False if there is none, or it does not decode
        (which is raised when nothing before it is left), or is large work on an event loop."""
        chunk = self._fetched.first_ready()
        if chunk is None or (self._offload is not None and len(chunk.data) >= OFFLOAD_BYTES):
            return False
        try:
            decoded = self._decode(chunk)
        except FairleadError:
            return False
        self._open(chunk, decoded)
        return True

    def _open(self, chunk: Chunk, decoded: DecodedRecords) -> None:
        if self._fetched.open(chunk, decoded):
            self._polls.took(chunk, decoded.next_offset)

    def parts(self, limit: int, deadline_ns: int) -> Steps[tuple[list[Record], list[Part]]]:
        """Records of the oldest chunks, up to `limit`, and the parts to hand out with them; none if
        none came by `deadline_ns` (monotonic clock)."""
        records: list[Record] = []
        parts: list[Part] = []
        passed = 0
        more = (yield from self.opened(deadline_ns)) is not None
        while more:
            for opened in islice(self._fetched.opened, passed, None):
                part = self._part(opened, limit - len(records))
                if part is not None:
                    parts.append(part)
                    some = opened.records(part.stop)
                    records = records + some if records else some
            passed = len(self._fetched.opened)
            more = len(records) < limit and self._opens()
        return records, parts

    def _part(self, opened: OpenChunk, limit: int) -> Part | None:
        """Up to `limit` records of an open chunk, to return next; None if there are none."""
        stop = min(opened.stop, opened.index + limit)
        if opened.held or stop <= opened.index:
            return None
        return Part(opened.chunk, stop - opened.index, opened.position_at(stop), opened, stop)

    def hand_out(self, parts: Sequence[Part]) -> None:
        """Note that a poll returns the records of `parts`: its last step, after which it calls
        nothing."""
        for part in parts:
            if part.opened is None:  # else it was counted when it was opened
                self._polls.took(part.chunk, part.next_offset)
            self._polls.returned(part.chunk, part.records, part.next_offset)
        self._fetched.hand_out(parts)

    def rest(self, names: Sequence[str], max_records: int | None) -> list[TablePart]:
        """The records left in open chunks, up to `max_records` (None: all), as record batches with
        the columns `names`."""
        made: list[TablePart] = []
        room = NO_END if max_records is None else max_records
        for opened in self._fetched.opened:
            part = self._part(opened, room)
            if part is not None:
                chunk, decoded = opened.chunk, opened.decoded
                batch = consumer.to_batch(chunk.partition, decoded, names, opened.index, part.stop)
                made.append((part, batch))
                room -= part.records
        return made

    def records(self, names: Sequence[str], deadline_ns: int) -> Steps[list[TablePart]]:
        """Record batches with the columns named, of one table's worth of chunks; [] if none came by
        `deadline_ns` (monotonic clock)."""
        return self._batches(
            deadline_ns,
            lambda chunk: lambda: consumer.chunk_batch(chunk, names, check_crcs=self._check_crcs),
            counts=True,
        )

    def headers(self, measure: bool, deadline_ns: int) -> Steps[list[TablePart]]:
        """Headers of the batches in one table's worth of chunks, as rows of record batches; [] if
        none came by `deadline_ns` (monotonic clock)."""
        return self._batches(
            deadline_ns,
            lambda chunk: (
                lambda: (
                    consumer.chunk_headers(chunk, measure=measure, check_crcs=self._check_crcs),
                    chunk.next_offset,
                )
            ),
        )

    def _batches(
        self, deadline_ns: int, work_of: Callable[[Chunk], ChunkWork], *, counts: bool = False
    ) -> Steps[list[TablePart]]:
        """Record batches that the functions of `work_of` make of chunks; [] if no chunk came by
        `deadline_ns`. `counts`: their rows are records, which metrics count."""
        made: list[TablePart] = []
        while not made:
            if self._fetched.first_ready() is None and not (
                yield from self._take(deadline_ns, TABLE_MAX_BYTES)
            ):
                break
            made = yield from self._worked(work_of, counts)
        return made

    def _worked(self, work_of: Callable[[Chunk], ChunkWork], counts: bool) -> Steps[list[TablePart]]:
        """Record batches of pending chunks, up to one table's worth.

        A chunk that cannot be decoded ends them; its error is raised if it is the first chunk.
        """
        done: list[TablePart] = []
        size_bytes = 0
        for chunk in self._fetched.ready():
            if done and size_bytes + len(chunk.data) > TABLE_MAX_BYTES:
                break
            try:
                batch, next_offset = yield from self._work(work_of(chunk), len(chunk.data))
            except FairleadError:
                if done:
                    break
                raise
            done.append((Part(chunk, batch.num_rows if counts else 0, next_offset), batch))
            size_bytes += len(chunk.data)
        kept = self._fetched.kept(part for part, _ in done)
        empty = [part for part, batch in done if id(part.chunk) in kept and not batch.num_rows]
        if empty:
            self.hand_out(empty)
        return [(part, batch) for part, batch in done if id(part.chunk) in kept and batch.num_rows]

    def _take(self, deadline_ns: int, max_bytes: int) -> Steps[bool]:
        """Get chunks from the machine. False if none came in time.

        A poll that is cancelled leaves its operation with the machine; the next poll waits for the
        answer to that one first.
        """
        fetched = self._fetched
        remaining_s = None
        if fetched.asked is None:
            fetched.sent = False
            fetched.asked = Completion()
        if not fetched.sent:
            # Ctrl-C may come in the middle; the machine knows a question that it gets again.
            self._asking.submit(Take(fetched.asked, deadline_ns, max_bytes))
            fetched.sent = True
        else:
            remaining_s = max(0.0, (deadline_ns - self._asking.now_ns()) / NS_PER_S)
        try:
            chunks = yield from wait_until(fetched.asked, remaining_s)
        except Exception:
            fetched.asked = None
            raise
        if chunks is None:
            return False
        fetched.answered(chunks)
        if not chunks and self._group.called_away():
            yield from self._group.tend()
            return True
        return bool(chunks) or (remaining_s is not None and self._asking.now_ns() < deadline_ns)

    def _decode(self, chunk: Chunk) -> DecodedRecords:
        return decode_chunk(chunk, check_crcs=self._check_crcs)

    def _work(self, work: Callable[[], T], size_bytes: int) -> Steps[T]:
        """Run `work` here, or, if it is too much for an event loop, on a thread."""
        if self._offload is None or size_bytes < OFFLOAD_BYTES:
            return work()
        return (yield from wait_for(self._offload(work)))
