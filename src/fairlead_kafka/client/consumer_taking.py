"""`Taking`: chunks from the machine, decoded in the caller's thread.

A chunk is raw bytes of a fetch answer with the range of offsets to return. It is decoded here, in
the caller's thread (large ones of an async consumer on an executor), where the kernels run without
the GIL while the host's thread fetches on. Chunks are removed from `Fetched` only when nothing can
cancel the call any more, so that a cancelled poll loses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from fairlead_kafka import (
    consumer,
)  # what makes tables of chunks, and loads Arrow, is found in it when it is first used
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.units import MIB, NS_PER_S
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Fetched
from fairlead_kafka.client.hosting import Offload, Steps, wait_for, wait_until
from fairlead_kafka.consumer import NO_END, Chunk, OpenChunk, Take, decode_chunk
from fairlead_kafka.consumer.metrics import PollRecorder
from fairlead_kafka.records import DecodedRecords
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ChunkWork = Callable[[], "tuple[pa.RecordBatch, int]"]
"""Makes a record batch of a chunk; returns it with the offset after the records in it."""

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


class OnePoll:
    """A context manager that a poll runs in; UsageError on entering it while another poll is under
    way.

    It is no generator, for it is entered at every poll, also of one record.
    """

    def __init__(self, polling: threading.Lock, polls: PollRecorder) -> None:
        self._polling = polling
        self._polls = polls
        self._began_ns = 0

    def __enter__(self) -> None:
        if not self._polling.acquire(blocking=False):
            raise UsageError("another poll of this consumer is under way; one at a time, or a consumer each")
        try:
            self._began_ns = self._polls.poll_began()
        except BaseException:  # Ctrl-C: no later poll would get the lock
            self._polling.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._polls.poll_ended(self._began_ns)
        finally:
            self._polling.release()


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
        self.polling = threading.Lock()
        """Held during a poll, and while the consumer leaves its group."""
        self.one_poll = OnePoll(self.polling, asking.polls)

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
        while True:
            opened = self._fetched.first_open()
            chunk = None if opened is not None else self._fetched.first_ready()
            if chunk is None:
                return opened
            if self._offload is not None and len(chunk.data) >= OFFLOAD_BYTES:
                return None
            try:
                decoded = self._decode(chunk)
            except FairleadError:
                return None  # raised when nothing before it is left
            self._open(chunk, decoded)

    def move(self, opened: OpenChunk, stop: int) -> None:
        """Note that a poll returns the records of an open chunk up to `stop`."""
        records, opened.index = stop - opened.index, stop
        self._polls.returned(opened.chunk, records, opened.position)

    def _open(self, chunk: Chunk, decoded: DecodedRecords) -> None:
        if self._fetched.open(chunk, decoded):
            self._polls.took(chunk, decoded.next_offset)

    def rest(self, names: Sequence[str], max_records: int | None) -> list[pa.RecordBatch]:
        """The records left in open chunks, up to `max_records` (None: all), as record batches with
        the columns `names`."""
        batches: list[pa.RecordBatch] = []
        room = NO_END if max_records is None else max_records
        for opened in self._fetched.opened:
            stop = min(opened.stop, opened.index + room)
            if not opened.held and stop > opened.index:
                batches.append(
                    consumer.to_batch(opened.chunk.partition, opened.decoded, names, opened.index, stop)
                )
                room -= stop - opened.index
                self.move(opened, stop)
        return batches

    def records(self, names: Sequence[str], deadline_ns: int) -> Steps[list[pa.RecordBatch]]:
        """Record batches with the columns named, of one table's worth of chunks; [] if none came by
        `deadline_ns` (monotonic clock)."""
        return self._batches(
            deadline_ns,
            lambda chunk: lambda: consumer.chunk_batch(chunk, names, check_crcs=self._check_crcs),
            counts=True,
        )

    def headers(self, measure: bool, deadline_ns: int) -> Steps[list[pa.RecordBatch]]:
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
    ) -> Steps[list[pa.RecordBatch]]:
        """Record batches that the functions of `work_of` make of chunks; [] if no chunk came by
        `deadline_ns`. `counts`: their rows are records, which metrics count."""
        batches: list[pa.RecordBatch] = []
        while not batches:
            if self._fetched.first_ready() is None and not (
                yield from self._take(deadline_ns, TABLE_MAX_BYTES)
            ):
                break
            batches = yield from self._worked(work_of, counts)
        return batches

    def _worked(self, work_of: Callable[[Chunk], ChunkWork], counts: bool) -> Steps[list[pa.RecordBatch]]:
        """Record batches of pending chunks, up to one table's worth.

        A chunk that cannot be decoded ends them; its error is raised if it is the first chunk.
        """
        done: list[tuple[Chunk, pa.RecordBatch, int]] = []
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
            done.append((chunk, batch, next_offset))
            size_bytes += len(chunk.data)
        # Chunks are struck off only now, when nothing can cancel this call any more.
        return [batch for each in done if (batch := self._struck(*each, counts)) is not None]

    def _struck(
        self, chunk: Chunk, batch: pa.RecordBatch, next_offset: int, counts: bool
    ) -> pa.RecordBatch | None:
        """Drop `chunk` from those pending, and give `batch`, which was made of it, to be returned.
        None if the chunk was dropped before, or `batch` is empty."""
        if not self._fetched.strike(chunk, next_offset):
            return None
        self._polls.took(chunk, next_offset)
        self._polls.returned(chunk, batch.num_rows if counts else 0, next_offset)
        return batch if batch.num_rows else None

    def _take(self, deadline_ns: int, max_bytes: int) -> Steps[bool]:
        """Get chunks from the machine. False if none came in time.

        A poll that is cancelled leaves its operation with the machine; the next poll waits for the
        answer to that one first.
        """
        fetched = self._fetched
        remaining_s = None
        if fetched.asked is None:
            fetched.asked = Completion()
            self._asking.submit(Take(fetched.asked, deadline_ns, max_bytes))
        else:
            remaining_s = max(0.0, (deadline_ns - self._asking.now_ns()) / NS_PER_S)
        try:
            chunks = yield from wait_until(fetched.asked, remaining_s)
        except Exception:
            fetched.asked = None
            raise
        if chunks is None:
            return False
        fetched.asked = None
        fetched.add(chunks)
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
