"""`Producer`, the blocking face, and `ProducerCore`, what it shares with `AsyncProducer`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from threading import Thread
from types import TracebackType
from typing import Any, Self

import numpy as np

from fairlead.base.config_client import CLIENT_CONFIGS
from fairlead.base.errors import BufferExhausted, InvalidRecord, TimedOut, UsageError
from fairlead.base.ids import NO_TIMESTAMP
from fairlead.base.units import MIB
from fairlead.client.delivery import Ack, Delivery, OnDelivery, TableAck
from fairlead.client.hosting import Steps, Wait, ask, open_host, run_blocking
from fairlead.client.intake import LOGGER, Headers, Intake, piece_of
from fairlead.client.memory import MemoryPool
from fairlead.core.metadata import PartitionMetadata
from fairlead.producer import Flush, Handover, PartitionsFor, ProducerMachine, Stop, Wake
from fairlead.records import RecordColumns, columns_from_arrow
from fairlead.runtime import Completion

PIECE_MAX_BYTES = 2 * MIB
"""Tables are handed over in pieces of about this size, so that sending begins before all of a large one has found room."""
_PIECES_IN_MEMORY = 8
_INTERRUPTED_CLOSE_S = 1.0
_CLOSED = "this producer is closed; make a new one"
_WAKE = Wake()
Record = tuple[Any, Any, Any, Any, Any, Any, Any]
"""The arguments of `Intake.offer` that make a record."""


class ProducerCore:
    """A hosted producer machine and all that both faces do with it. Methods named `..._steps` are driven by the faces."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        settings = CLIENT_CONFIGS.parse("producer", config)
        self._memory = MemoryPool(settings["buffer.memory"])
        self._intake = Intake(self._memory, settings["max.request.size"])
        self._max_block_ms: int = settings["max.block.ms"]
        self._closing = False
        self._hosted = open_host(lambda dice: ProducerMachine(settings, dice, self._intake, self._memory), "fairlead-producer")
        self._intake.attach(self._wake, self._hosted.now_ns, self._hosted.now_ms)
        self.offer = self._intake.offer

    def offer_steps(self, size_bytes: int, record: Record) -> Steps[tuple[Delivery, int]]:
        """Hand one record over that found no room: wait for it first. `record` is what `Intake.offer` was given."""
        topic = record[0]
        yield from self._reserve(size_bytes, f"a record of {size_bytes} bytes for topic {topic!r}")
        try:
            offered = self._intake.offer(*record, size_bytes)
        except Exception:
            self._memory.release(size_bytes)
            raise
        assert type(offered) is tuple
        return offered

    def table_steps(self, topic: str, table: Any) -> Steps[Delivery]:
        """Hand a table over, piece by piece as room comes; its delivery."""
        self._intake.check()
        if type(topic) is not str or not topic:
            raise InvalidRecord(f"topic must be a text that is not empty, not {topic!r}")
        now_ms = self._hosted.now_ms()
        parts = [(_stamped(columns, now_ms), partitions) for columns, partitions in columns_from_arrow(table)]
        first = 0
        for columns, _ in parts:
            self._check_sizes(topic, columns, first)
            first += columns.count
        stamps = [columns.timestamps_ms for columns, _ in parts if columns.timestamps_ms is not None]
        delivery = Delivery(topic, first, np.concatenate(stamps) if stamps else np.empty(0, np.int64))
        first = 0
        limit = max(min(PIECE_MAX_BYTES, self._memory.total_bytes // _PIECES_IN_MEMORY), 1)
        for columns, partitions in parts:
            ends = np.zeros(columns.count + 1, np.int64)
            np.cumsum(columns.sizes_bytes(), out=ends[1:])
            start = 0
            while start < columns.count:
                stop = max(int(ends.searchsorted(ends[start] + limit, "right")) - 1, start + 1)
                size = int(ends[stop] - ends[start])
                handed = first + start
                yield from self._reserve(size, f"{size} bytes of the table for topic {topic!r} (its first {handed} rows are on their way)")
                piece = Handover(
                    topic,
                    piece_of(columns, start, stop),
                    None if partitions is None else partitions[start:stop],
                    delivery,
                    created_ns=self._hosted.now_ns(),
                    reserved_bytes=size,
                    first_row=first,
                    source=columns,
                    base=start,
                )
                try:
                    self._intake.put(piece)
                except Exception:
                    self._memory.release(size)
                    raise
                start = stop
            first += columns.count
        return delivery

    def flush_steps(self, timeout_s: float | None) -> Steps[None]:
        """Wait until everything handed over is delivered or failed."""
        self._intake.check()
        yield from self._flush(timeout_s, self._late)

    def close_steps(self, timeout_s: float | None) -> Steps[None]:
        """Flush within `timeout_s`, give up the rest, and stop the machine's thread."""
        if self._closing or self._hosted.forked:
            return
        self._check_outside("close")
        self._closing = True
        self._intake.close(UsageError(_CLOSED))
        ended = Completion()
        try:
            yield from self._flush(timeout_s, lambda: None)
        finally:
            # Also when the wait was interrupted or cancelled: then nobody looks on, and the thread ends all the same.
            reason = f"the producer was closed before the records were delivered (close waited for {timeout_s} s)"
            completion = Completion()
            completion.add_done_callback(_tell_given_up)
            completion.add_done_callback(lambda _: self._end_later(ended))
            self._hosted.submit(Stop(completion, reason))
        yield Wait(completion)
        yield Wait(ended)

    def partitions_steps(self, topic: str) -> Steps[list[PartitionMetadata]]:
        """The partitions of a topic."""
        self._intake.check()
        self._check_outside("partitions_for")
        answer: list[PartitionMetadata] = yield from ask(self._hosted, lambda completion: PartitionsFor(completion, topic))
        return answer

    def metrics(self) -> dict[str, int]:
        """The machine's counters and the memory account."""
        return {
            **self._hosted.machine.metrics(),
            "buffer_total_bytes": self._memory.total_bytes,
            "buffer_available_bytes": self._memory.free_bytes,
            "waiting_for_memory": len(self._memory.waiters),
        }

    # Inside

    def _reserve(self, size_bytes: int, what: str) -> Generator[Wait, Any, None]:
        completion = self._memory.reserve(size_bytes)
        if completion is None:
            return
        try:
            self._intake.check()
            if self._hosted.inside:
                raise self._exhausted(what + " at once, and a delivery callback cannot wait for it")
            self._wake()  # with someone in line, nothing lingers
            yield Wait(completion, self._max_block_ms / 1000, lambda: self._exhausted(what))
        except BaseException:
            self._memory.withdraw(size_bytes, completion)
            raise

    def _flush(self, timeout_s: float | None, on_timeout: Callable[[], Exception | None]) -> Generator[Wait, Any, None]:
        self._check_outside("flush")
        completion = Completion()
        self._hosted.submit(Flush(completion))
        yield Wait(completion, timeout_s, on_timeout)

    def _check_outside(self, what: str) -> None:
        """UsageError on the machine's own thread, where a wait for the machine would never end."""
        if self._hosted.inside:
            raise UsageError(f"{what} within a delivery callback would wait for itself; call it on another thread")

    def _late(self) -> TimedOut:
        remaining = self._hosted.machine.records_open + self._intake.waiting()
        return TimedOut(f"flush: {remaining} records are neither delivered nor failed yet; they stay on their way")

    def _exhausted(self, what: str) -> BufferExhausted:
        return BufferExhausted(
            f"no room for {what} within max.block.ms={self._max_block_ms}: {self._memory.free_bytes} of "
            f"buffer.memory={self._memory.total_bytes} bytes are free; brokers take records more slowly than they are handed over"
        )

    def _check_sizes(self, topic: str, columns: RecordColumns, first_row: int) -> None:
        sizes = columns.sizes_bytes()
        if len(sizes) and int(sizes.max()) > self._intake.largest_bytes:
            row = int(np.argmax(sizes > self._intake.largest_bytes))
            raise self._intake.too_large(f"row {first_row + row}", topic, int(sizes[row]))

    def _wake(self) -> None:
        self._hosted.submit(_WAKE)

    def _end_later(self, ended: Completion) -> None:
        Thread(target=self._end, args=(ended,), name="fairlead-producer-close", daemon=True).start()

    def _end(self, ended: Completion) -> None:
        try:
            self._hosted.close()
        finally:
            ended.set_result(None)


def _stamped(columns: RecordColumns, now_ms: int) -> RecordColumns:
    """The columns with a timestamp for each record: those that bring none are stamped with the time of the call."""
    given = columns.timestamps_ms
    stamps = np.full(columns.count, now_ms, np.int64) if given is None else np.where(given == NO_TIMESTAMP, now_ms, given)
    return RecordColumns(columns.count, columns.keys, columns.values, columns.headers, stamps)


def _tell_given_up(completion: Completion) -> None:
    if completion.error() is None and (given_up := completion.result(0)):
        counts = ", ".join(f"{count} of topic {topic!r}" for topic, count in sorted(given_up.items()))
        LOGGER.warning("producer closed with undelivered records: %s; they are failed", counts)


def closing_time_s(kind: type[BaseException] | None) -> float | None:
    """What a `with` block that ends by `kind` gives its records to be delivered: little after Ctrl-C or a cancellation."""
    return None if kind is None or issubclass(kind, Exception) else _INTERRUPTED_CLOSE_S


class Producer:
    """Sends records to Kafka. Safe to share among threads.

    `with` closes it: everything handed over is delivered first, or failed by delivery.timeout.ms. After Ctrl-C it gets a second; what is
    left then fails, and the log says how many records of which topics. A callback must not wait on the producer that calls it.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """A producer by Kafka's config keys, such as `{"bootstrap.servers": "localhost:9092"}`.

        It begins to connect at once, on a thread of its own. ConfigError if a config is unknown, does not fit or contradicts another.
        """
        self._core = ProducerCore(config)
        self._offer = self._core.offer

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Ack:
        """Hand one record over; returns before it is delivered.

        `headers`: pairs of a text and bytes or None, or a mapping. `partition`: None lets the key or the partitioner decide.
        `timestamp_ms`: ms since 1970, None for now. `on_delivery(metadata, error)` is called once, on the producer's thread (of an
        AsyncProducer: in its event loop), with a `RecordMetadata` or with what it failed with; the other one is None.

        Waits only if `buffer.memory` is used up: BufferExhausted after max.block.ms. InvalidRecord for a key or value that is not
        bytes, RecordTooLarge beyond max.request.size or buffer.memory, UsageError once closed. What goes wrong later comes
        through the handle returned.
        """
        found = self._offer(topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if type(found) is int:
            record = (topic, value, key, headers, partition, timestamp_ms, on_delivery)
            found = run_blocking(self._core.offer_steps(found, record))
        return Ack(found)  # type: ignore[arg-type]

    def send_table(self, topic: str, table: Any) -> TableAck:
        """Hand a `pyarrow.Table` or `RecordBatch` over, a record for each row; returns before it is delivered.

        Columns: `value` and optional `key` (binary or string, null allowed), optional `headers` (list of structs of key and value),
        `timestamp` (null or missing: now) and `partition` (int32; null or missing: the key or the partitioner decides).

        A table larger than `buffer.memory` goes as room comes: BufferExhausted if none comes for max.block.ms, with the rows before
        on their way. InvalidRecord for columns that do not fit, RecordTooLarge for a row beyond max.request.size or buffer.memory
        (then no row is sent), UsageError once closed.
        """
        return TableAck(run_blocking(self._core.table_steps(topic, table)))

    def flush(self, timeout_s: float | None = None) -> None:
        """Deliver everything handed over so far, without lingering; returns when all of it is delivered or failed.

        TimedOut after `timeout_s` (None: no limit but delivery.timeout.ms), naming how many records remain; UsageError once closed.
        """
        run_blocking(self._core.flush_steps(timeout_s))

    def close(self, timeout_s: float | None = None) -> None:
        """Flush, then stop. What is not delivered within `timeout_s` (None: delivery.timeout.ms decides) fails with TimedOut.

        How many records of which topics were given up is logged as a warning. Closing twice is no error.
        """
        run_blocking(self._core.close_steps(timeout_s))

    def partitions_for(self, topic: str) -> list[PartitionMetadata]:
        """The topic's partitions, by number, with leader and replicas. TimedOut if that is not known within max.block.ms."""
        return run_blocking(self._core.partitions_steps(topic))

    def metrics(self) -> dict[str, int]:
        """Counters since the start: records, batches, bytes, requests, retries, failures; and the state of `buffer.memory`."""
        return self._core.metrics()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(closing_time_s(kind))
