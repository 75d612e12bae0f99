"""Polls: chunks from the machine, decoded in the caller's thread, returned as records or tables.

Both client APIs drive these steps. A chunk is raw bytes of a fetch answer with the offsets that are
wanted of it. Chunks are decoded here, in the caller's thread (large ones of an async consumer on an
executor), where the kernels run without the GIL while the host's thread fetches on. A chunk leaves
`_pending` only once it is decoded, so bytes that do not decode are reported at every poll and never
skipped in silence; and only where nothing can cancel the call any more, so that a cancelled poll
loses nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead_kafka import (
    consumer,
)  # what makes tables of chunks, and loads Arrow, is found in it when it is first used
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import MIB, NS_PER_S, s_to_ns
from fairlead_kafka.client.consumer_group import GroupSteps
from fairlead_kafka.client.deserializing import deserializing_of
from fairlead_kafka.client.hosting import LONGEST_S, Opener, Steps, Wait, closed, connect_first, open_host
from fairlead_kafka.client.interceptors_consumer import consumer_interceptors
from fairlead_kafka.consumer import (
    NO_END,
    Chunk,
    ConsumerMachine,
    OpenChunk,
    Record,
    Seek,
    Take,
    TellPosition,
    check_columns,
    decode_chunk,
)
from fairlead_kafka.core.group_offsets import Position
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
CLOSE_S = 5.0
"""Seconds that `close` waits for the machine and its host."""


class ConsumerReading(GroupSteps):
    """State of a consumer and steps of its polls. Not for several threads at once, except `close`.

    On an event loop `offload` runs work on a thread, and `await_user` a coroutine of the
    application's.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        offload: Callable[[Callable[[], Any]], Completion[Any]] | None = None,
        await_user: Callable[[Awaitable[Any]], Completion[Any]] | None = None,
        opener: Opener = open_host,
    ) -> None:
        self.settings = CLIENT_CONFIGS.parse("consumer", config)
        self._begin_group(self.settings, await_user)
        self.closed = False
        self.interceptors = consumer_interceptors(self.settings["interceptor.classes"], config)
        self.deserializing = deserializing_of(self.settings)
        self._offload = offload
        self._hosted = self.host = opener(
            lambda rng: ConsumerMachine(self.settings, rng, self._gate), self.settings, "fairlead-consumer"
        )
        self._check_crcs: bool = self.settings["check.crcs"]
        self._max_poll_records: int = self.settings["max.poll.records"]
        self._default_timeout_s: float = self.settings["default.api.timeout.ms"] / 1000
        self._assigned: dict[TopicPartition, int] = {}
        """Partitions assigned, and their generations: a seek overtook chunks below them."""
        self._parted = 0
        """Newest generation of all partitions that were assigned once and are not any more. Each
        generation is greater than all before it, so one number tells all of their chunks."""
        self._paused: dict[TopicPartition, None] = {}
        self._pending: deque[Chunk] = deque()
        self._open: deque[OpenChunk] = deque()
        self._asked: Completion[list[Chunk]] | None = None
        self._polling = threading.Lock()
        self._records = 0

    def position(self, partition: TopicPartition, timeout_s: float | None) -> Steps[int]:
        """Offset of the next record that a poll returns, looked up if there is no position yet."""
        self.check()
        partition = TopicPartition(*partition)
        held = self._held().get(partition)
        if held is not None:
            return held.offset
        deadline_ns = self._deadline_ns(timeout_s)
        yield from self._connect_first(timeout_s)
        position: int = yield from self._ask(
            lambda completion: TellPosition(completion, deadline_ns, partition)
        )
        return position

    def _held(self) -> dict[TopicPartition, Position]:
        """First positions, by partition, of chunks taken from the machine and not yet returned."""
        held: dict[TopicPartition, Position] = {}
        for opened in self._open:
            if not opened.dropped:
                held.setdefault(opened.chunk.partition, opened.chunk.position_at(opened.position))
        asked = self._asked
        answered = asked.result() if asked is not None and asked.done() and asked.error() is None else ()
        for chunk in (*self._pending, *answered):
            if self._current(chunk):
                held.setdefault(chunk.partition, chunk.position)
        return held

    def seek(self, positions: Mapping[TopicPartition, int]) -> Steps[None]:
        """Move positions: to an offset, or to EARLIEST or LATEST."""
        moved = {TopicPartition(*partition): position for partition, position in positions.items()}
        self._moved((yield from self._ask(lambda completion: Seek(completion, moved))), replaces=False)

    # Reading

    @property
    def by_polls(self) -> bool:
        """Whether an iteration goes by polls, which interceptors and deserializers see whole."""
        return self.interceptors is not None or self.deserializing is not None

    def poll(self, timeout_s: float, max_records: int | None) -> Steps[list[Record]]:
        """Records, up to `max_records`, as soon as there are any; empty after `timeout_s` seconds."""
        limit = self._max_poll_records if max_records is None else max_records
        if limit < 1:
            raise UsageError(f"max_records is {limit}; it must be at least 1")
        records: list[Record] = []
        with self._one_poll():
            deadline_ns = self._deadline_ns(timeout_s)
            yield from self._tend()
            while len(records) < limit:
                opened = self._more() if records else (yield from self._opened(deadline_ns))
                if opened is None:
                    break
                part = opened.records(limit - len(records))
                opened.index += len(part)
                records = records + part if records else part
        self._records += len(records)
        if self.deserializing is not None:
            read = self.deserializing.records(records)
            records = read.records
            if read.failure is not None:
                yield from self.seek(read.left)
                if not records:
                    raise read.failure
        return records if self.interceptors is None else self.interceptors.on_consume(records)

    def block(self, timeout_s: float) -> Steps[tuple[OpenChunk, list[Record]] | None]:
        """Some records of one chunk, for `hand_over`."""
        with self._one_poll():
            deadline_ns = self._deadline_ns(timeout_s)
            yield from self._tend()
            opened = yield from self._opened(deadline_ns)
        return None if opened is None else (opened, opened.records(self._max_poll_records))

    def hand_over(self, block: tuple[OpenChunk, list[Record]]) -> Iterator[Record]:
        """The records of a `block` one by one, moving its chunk's `index`.

        Ends where a seek, a pause or another poll intervenes.
        """
        opened, records = block
        expected = opened.index
        for record in records:
            if opened.index != expected or opened.dropped or opened.held:
                return
            opened.index = expected = expected + 1
            self._records += 1
            yield record

    def poll_table(
        self, timeout_s: float, max_records: int | None, columns: Sequence[str] | None
    ) -> Steps[pa.Table]:
        """A table of fetched records, as soon as there are any; no rows if none came in time."""
        asked = self.columns(columns)
        names = asked if self.deserializing is None else self.deserializing.fetched_columns(asked)
        if max_records is not None and max_records < 1:
            raise UsageError(f"max_records is {max_records}; it must be at least 1")
        with self._one_poll():
            deadline_ns = self._deadline_ns(timeout_s)
            yield from self._tend()
            batches = self._rest(names, max_records)
            if not batches and max_records is not None and (yield from self._opened(deadline_ns)) is not None:
                batches = self._rest(names, max_records)
            while not batches and max_records is None:
                if not self._ready() and not (yield from self._take(deadline_ns, TABLE_MAX_BYTES)):
                    break
                batches = yield from self._batches(lambda chunk: self._batch_of(chunk, names))
        table = consumer.table_of(batches, names)
        self._records += table.num_rows
        if self.deserializing is not None:
            read = self.deserializing.table(table, asked)
            if read.failure is not None:
                yield from self.seek(read.left)
                raise read.failure
            table = read.table
        return table if self.interceptors is None else self.interceptors.on_consume_table(table)

    def columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The names of a table's columns, checked; None: all there are."""
        return check_columns(columns) if self.deserializing is None else self.deserializing.columns(columns)

    def check(self) -> None:
        """Raise UsageError if closed."""
        if self.closed:
            raise closed("consumer")

    # Inside, for the classes built on this one too

    def _ask(self, operation: Callable[[Completion[Any]], object]) -> Generator[Wait, Any, Any]:
        self.check()
        completion: Completion[Any] = Completion()
        self._hosted.submit(operation(completion))
        return (yield Wait(completion))

    def _deadline_ns(self, timeout_s: float | None) -> int:
        self.check()
        return self._hosted.now_ns() + s_to_ns(
            min(self._default_timeout_s if timeout_s is None else timeout_s, LONGEST_S)
        )

    def _connect_first(self, timeout_s: float | None) -> Steps[None]:
        return connect_first(self._hosted, self.settings, timeout_s, "default.api.timeout.ms")

    @contextmanager
    def _one_poll(self) -> Generator[None, None, None]:
        if not self._polling.acquire(blocking=False):
            raise UsageError("another poll of this consumer is under way; one at a time, or a consumer each")
        try:
            yield
        finally:
            self._polling.release()

    def _moved(self, generations: Mapping[TopicPartition, int], *, replaces: bool) -> None:
        """Note the generations of partitions, and drop chunks of older ones."""
        if replaces:
            gone = self._assigned.keys() - generations.keys()
            self._parted = max([self._parted, *(self._assigned[partition] for partition in gone)])
            self._paused = {partition: None for partition in self._paused if partition in generations}
        self._assigned = dict(generations)
        self._pending = deque(chunk for chunk in self._pending if self._current(chunk))
        for opened in self._open:
            opened.dropped = not self._current(opened.chunk)
        self._open = deque(opened for opened in self._open if not opened.dropped)

    def _current(self, chunk: Chunk) -> bool:
        return chunk.generation >= self._assigned.get(chunk.partition, self._parted + 1)

    def _ready(self) -> bool:
        return any(chunk.partition not in self._paused for chunk in self._pending)

    def _take(self, deadline_ns: int, max_bytes: int) -> Steps[bool]:
        """Get chunks from the machine into `_pending`. False if none came in time.

        A poll that is cancelled leaves its question behind, and the machine may answer it: the next
        poll waits for that answer first.
        """
        if self._asked is None:
            self._asked = Completion()
            self._hosted.submit(Take(self._asked, deadline_ns, max_bytes))
            remaining_s = None
        else:
            remaining_s = max(0.0, (deadline_ns - self._hosted.now_ns()) / NS_PER_S)
        asked = self._asked
        try:
            chunks: list[Chunk] | None = yield Wait(asked, remaining_s, lambda: None)
        except Exception:
            self._asked = None
            raise
        if chunks is None:
            return False
        self._asked = None
        self._pending.extend(chunk for chunk in chunks if self._current(chunk))
        if not chunks and self._called_away():
            yield from self._tend()
            return True
        return bool(chunks) or (remaining_s is not None and self._hosted.now_ns() < deadline_ns)

    def _opened(self, deadline_ns: int) -> Steps[OpenChunk | None]:
        """The oldest chunk with records to return, decoded; None if there is none in time."""
        while True:
            opened = self._more()
            if opened is not None:
                return opened
            if self._ready():
                chunk = next(chunk for chunk in self._pending if chunk.partition not in self._paused)
                decoded = yield from self._work(lambda chunk=chunk: self._decode(chunk), len(chunk.data))  # type: ignore[misc]
                if self._decoded(chunk, decoded.next_offset):
                    self._open.append(OpenChunk(chunk, decoded))
            elif not (yield from self._take(deadline_ns, POLL_MAX_BYTES)):
                return None

    def _more(self) -> OpenChunk | None:
        """Oldest chunk with records to return, without a wait (and, async, without large work)."""
        while True:
            self._open = deque(opened for opened in self._open if opened.index < opened.stop)
            opened = next((opened for opened in self._open if not opened.held), None)
            if opened is not None or not self._ready():
                return opened
            chunk = next(chunk for chunk in self._pending if chunk.partition not in self._paused)
            if self._offload is not None and len(chunk.data) >= OFFLOAD_BYTES:
                return None
            try:
                decoded = self._decode(chunk)
            except FairleadError:
                return None  # told when nothing before it is left
            self._decoded(chunk, decoded.next_offset)
            self._open.append(OpenChunk(chunk, decoded))

    def _rest(self, names: Sequence[str], max_records: int | None) -> list[pa.RecordBatch]:
        """Records left in open chunks, up to `max_records`."""
        batches: list[pa.RecordBatch] = []
        room = NO_END if max_records is None else max_records
        for opened in self._open:
            stop = min(opened.stop, opened.index + room)
            if not opened.held and stop > opened.index:
                batches.append(
                    consumer.to_batch(opened.chunk.partition, opened.decoded, names, opened.index, stop)
                )
                room -= stop - opened.index
                opened.index = stop
        return batches

    def _batches(self, work_of: Callable[[Chunk], ChunkWork]) -> Steps[list[pa.RecordBatch]]:
        """Record batches of pending chunks, up to one table's worth.

        An error is raised once no chunk before it is left.
        """
        done: list[tuple[Chunk, pa.RecordBatch, int]] = []
        size_bytes = 0
        for chunk in [chunk for chunk in self._pending if chunk.partition not in self._paused]:
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
        return [
            batch
            for chunk, batch, next_offset in done
            if self._decoded(chunk, next_offset) and batch.num_rows
        ]

    def _batch_of(self, chunk: Chunk, names: Sequence[str]) -> ChunkWork:
        return lambda: consumer.chunk_batch(chunk, names, check_crcs=self._check_crcs)

    def _decode(self, chunk: Chunk) -> DecodedRecords:
        return decode_chunk(chunk, check_crcs=self._check_crcs)

    def _decoded(self, chunk: Chunk, next_offset: int) -> bool:
        """Strike a decoded chunk off `_pending`, or its decoded part; False if it was dropped
        meanwhile."""
        for index, pending in enumerate(self._pending):
            if pending is chunk:
                if chunk.start < next_offset < min(chunk.next_offset, chunk.end):
                    self._pending[index] = chunk._replace(
                        start=next_offset, epoch=chunk.position_at(next_offset).leader_epoch
                    )  # inflating stopped at its memory limit
                else:
                    del self._pending[index]
                return True
        return False

    def _work(self, work: Callable[[], T], size_bytes: int) -> Generator[Wait, Any, T]:
        """Run `work` here, or, if it is too much for an event loop, on a thread."""
        if self._offload is None or size_bytes < OFFLOAD_BYTES:
            return work()
        result: T = yield Wait(self._offload(work))
        return result
