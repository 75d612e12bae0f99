"""`ProducerCore`: a hosted producer machine, and the work of `Producer` and `AsyncProducer`."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from uuid import UUID
from weakref import WeakSet

import numpy as np

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import BufferExhausted, TimedOut, UsageError
from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns, s_to_ns
from fairlead_kafka.client.delivery import LOGGER, Delivery, Int64
from fairlead_kafka.client.handles import H
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Opener,
    Steps,
    closed,
    connect,
    connect_first,
    end_with,
    instance_id,
    open_host,
    run_blocking,
    wait_for,
    wait_until,
)
from fairlead_kafka.client.intake import Intake, Record, check_topic
from fairlead_kafka.client.interceptors_producer import producer_interceptors
from fairlead_kafka.client.memory import MemoryPool, Place
from fairlead_kafka.client.pieces import Part, cuts_of, piece_of
from fairlead_kafka.client.transactions import TransactionSteps
from fairlead_kafka.client.undelivered import log_undelivered, why_waiting
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.pushing import LAST_PUSH_MS
from fairlead_kafka.core.traffic_meter import sampling_of
from fairlead_kafka.producer import Flush, PartitionsFor, ProducerMachine, Stop, Submission, Wake
from fairlead_kafka.producer.metrics import Metrics, ProducerMeter
from fairlead_kafka.producer.submission import Rows
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    from fairlead_kafka.client.serializing import Serializing

T = TypeVar("T")
EXIT_S = 5.0
"""Seconds that records of all unclosed producers have together when the interpreter ends."""
QUIET_S = 1.0
"""Seconds after which a close that still waits is logged."""
_PATIENCE_S = 1.0
"""Seconds: after Ctrl-C a `with` block goes on for as long as anything is delivered within this."""
_WAKE = Wake()


class Ending(Protocol):
    """A producer that was not closed, as the end of the interpreter sees it."""

    @property
    def ended(self) -> bool:
        """True once nothing is left to be ended."""

    def now_ns(self) -> int:
        """The machine's monotonic clock, ns."""

    def exit(self, deadline_ns: int) -> None:
        """Deliver what can be delivered by `deadline_ns` on the machine's clock, then end the
        producer."""


_cores: WeakSet[Ending] = WeakSet()


class ProducerCore(Generic[H]):
    """A hosted producer machine; the client classes drive its methods named `..._steps`."""

    def __init__(self, config: Mapping[str, object], handle: type[H], opener: Opener = open_host) -> None:
        self._settings = settings = CLIENT_CONFIGS.parse("producer", config)
        self._memory = MemoryPool(settings["buffer.memory"])
        self._intake = Intake(self._memory, settings["max.request.size"], handle)
        self._max_block_ms: int = settings["max.block.ms"]
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._closing = self._stopping = self._ending = False
        self._ended: Completion[None] = Completion()
        self._given_up: dict[str, int] = {}
        self.client_id: str = settings["client.id"]
        self.interceptors = producer_interceptors(settings["interceptor.classes"], config)
        self.serializing = _serializing_of(settings)
        self._meter = ProducerMeter(sampling_of(settings))
        """Metrics counted on the callers' side, under the memory's lock."""
        self._hosted = self.host = opener(
            lambda rng: ProducerMachine(settings, rng, self._intake, self._memory, self._client_api),
            settings,
            "fairlead-producer",
        )
        self._closer = self._hosted.closer(self._end, "fairlead-producer-close")
        for warning in self._hosted.machine.settings.warnings:
            LOGGER.warning(warning)
        self._intake.attach(
            self._hosted,
            self._wake,
            self._refused,
            self._check_outside,
            partial(why_waiting, self._hosted),
        )
        self.offering = self._intake.offering
        self.offer = self.offering(_without_room)
        """Takes a record and returns its handle; without room, a plain tuple for `offer_steps`."""
        self.transactions = TransactionSteps(
            self._hosted, self._intake, settings, self._check_outside, self.timed
        )
        if self._hosted.unattended:
            _cores.add(self)

    def check_open(self) -> None:
        """Raise UsageError once the producer is closed."""
        self._intake.check()

    def check(self) -> None:
        """Raise CheckFailed unless records hold all bytes taken of buffer.memory.

        For tests in one thread, between two calls.
        """
        self._hosted.machine.check()
        self._memory.check(self._intake.held_bytes() + self._hosted.machine.held_bytes())

    def offer_steps(self, size_bytes: int, record: Record) -> Steps[H]:
        """Submit a record that found no room (`Intake.offering`), once it has room."""
        what = f"a record of {size_bytes} bytes for topic {record.topic!r}"
        offer = partial(self.offer, **record._asdict())
        handle = yield from self._in_line(size_bytes, 1, what, lambda place: offer(place=place))
        assert not isinstance(handle, tuple), "it was offered when there was room for it"
        return handle

    def table_steps(self, topic: str, table: object) -> Steps[Delivery]:
        """Submit a table, piece by piece as room comes. Returns its delivery."""
        from fairlead_kafka.client.tables import groups_of, parts_of

        self._intake.check()
        check_topic(topic)
        delivery = Delivery(topic)
        delivery.owner = self._intake
        stamps: list[Int64] = []
        first = 0
        for group in groups_of(table):
            if self.interceptors is not None:
                group = self.interceptors.on_send_table(topic, group)
            if self.serializing is not None:
                group = self.serializing.table(topic, group)
            parts = parts_of(group, self._hosted.now_ms())
            self._check_sizes(topic, parts, first)
            for part in parts:
                assert part.columns.timestamps_ms is not None
                stamps.append(part.columns.timestamps_ms)
                yield from self._part_steps(delivery, part, first)
                first += part.columns.count
        delivery.timestamps = np.concatenate(stamps) if stamps else np.empty(0, np.int64)
        if self.interceptors is not None:
            self.interceptors.watch_table(delivery)
        return delivery

    def _part_steps(self, delivery: Delivery, part: Part, first: int) -> Steps[None]:
        topic, columns, partitions = delivery.topic, part.columns, part.partitions
        for start, stop, size in cuts_of(columns, self._memory.total_bytes):
            submitted = first + start
            what = (
                f"{size} bytes of the table for topic {topic!r} (its first {submitted} rows are on their way)"
            )
            piece = Submission(
                topic,
                Rows(
                    piece_of(columns, start, stop),
                    None if partitions is None else partitions[start:stop],
                    source=columns,
                    base=start,
                    first_row=first,
                ),
                delivery,
                created_ns=self._hosted.now_ns(),
                reserved_bytes=size,
            )
            delivery.grow(stop - start)
            if not self._intake.put(piece):
                submit = partial(self._intake.put, piece)
                taken = yield from self._in_line(size, columns.count - start, what, submit)
                assert taken, "it was submitted when there was room for it"

    def flush_steps(self, timeout_s: float | None) -> Steps[None]:
        """Wait until everything sent is delivered or failed. TimedOut after `timeout_s` seconds."""
        self._intake.check()
        with self.timed("flush_ns"):
            completion = self._flushed("flush")
            yield from wait_until(completion, timeout_s)
            if not completion.done():
                why = yield from why_waiting(self._hosted, None, timeout_s or 0)
                left = self._left()
                are = "record is" if left == 1 else "records are"
                raise TimedOut(f"flush: {left} {are} neither delivered nor failed yet, and on the way{why}")

    def leave_steps(self, kind: type[BaseException] | None) -> Steps[dict[str, int]]:
        """Close at the end of a `with` block; `kind` is the type of the exception that it raised,
        or None.

        After Ctrl-C or a cancellation, the close goes on for as long as anything is delivered
        within `_PATIENCE_S` seconds.
        """
        return self.close_steps(None, None if kind is None or issubclass(kind, Exception) else _PATIENCE_S)

    def close_steps(self, timeout_s: float | None, patience_s: float | None = None) -> Steps[dict[str, int]]:
        """Flush within `timeout_s` seconds, give up the rest, and stop the machine's thread.

        Returns the count of records given up, by topic. With `patience_s`: also give up once
        nothing is delivered for so many seconds.
        """
        if self._hosted.forked:
            return {}
        self._check_outside("close")
        first = not self._closing
        self._closing = True
        self._intake.close(closed("producer"))
        try:
            if first:
                yield from self.transactions.leave(timeout_s if patience_s is None else patience_s)
                yield from (
                    self._flush_at_close(timeout_s)
                    if patience_s is None
                    else self._flush_patiently(patience_s)
                )
            else:  # somebody is at it already, and this caller can only cut the time short
                yield from wait_until(self._ended, timeout_s)
        finally:
            # Also when the wait was interrupted or cancelled: then nobody looks on, and the thread
            # ends all the same.
            waited = (
                f"close waited for {timeout_s} s"
                if patience_s is None
                else f"interrupted, and then nothing came for {patience_s:g} s"
            )
            pushes = first and patience_s is None and timeout_s != 0
            self._stop(
                f"the producer was closed before the records were delivered ({waited})", last_push=pushes
            )
        yield from wait_for(self._ended)
        with suppress(RuntimeError):  # no thread could be started, at the interpreter's end
            self._closer.join()  # it has nothing left to do, so that no thread is left either
        return self._given_up

    def connect_steps(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached; see `Producer.connect` for time-out and error."""
        self._intake.check()
        self._check_outside("connect")
        yield from connect(self._hosted, self._settings, timeout_s)

    def instance_id_steps(self, timeout_s: float | None) -> Steps[UUID]:
        """The id under which a client's metrics are pushed (KIP-714); see `client_instance_id` for
        time-out and errors."""
        self._intake.check()
        self._check_outside("client_instance_id")
        return instance_id(self._hosted, self._max_block_ms / 1000 if timeout_s is None else timeout_s)

    def partitions_steps(self, topic: str, timeout_s: float | None) -> Steps[list[PartitionMetadata]]:
        """The partitions of a topic, by number; see `Producer.partitions_for` for time-out and
        errors."""
        self._intake.check()
        self._check_outside("partitions_for")
        yield from connect_first(self._hosted, self._settings, timeout_s, "max.block.ms")
        timeout_ns = None if timeout_s is None else s_to_ns(min(timeout_s, LONGEST_S))
        with self.timed("metadata_wait_ns"):
            completion: Completion[list[PartitionMetadata]] = Completion()
            self._hosted.submit(PartitionsFor(completion, topic, timeout_ns))
            answer = yield from wait_for(completion)
        return answer

    def metrics(self) -> Metrics:
        """Metrics of the machine and of this side, by Kafka's names; from any thread."""
        return self._hosted.machine.metrics(self._hosted.now_ns(), *self._client_api())

    def _client_api(self) -> tuple[ProducerMeter, Mapping[str, float]]:
        """Counters and gauges of the client's own calls, as metrics need them."""
        memory = self._memory
        gauges = {
            "buffer-total-bytes": memory.total_bytes,
            "buffer-available-bytes": memory.free_bytes,
            "waiting-threads": len(memory.waiters),
            "machine-code": int(MACHINE_CODE),
        }
        return self._meter, gauges

    @contextmanager
    def timed(self, total: str) -> Iterator[None]:
        """Add the nanoseconds that the `with` block takes to the total `total` of
        `ProducerMeter`."""
        begun_ns = self._hosted.now_ns()
        try:
            yield
        finally:
            self._count(total, self._hosted.now_ns() - begun_ns)

    # When nobody closes it

    def belongs_to(self, client: object) -> None:
        """Have `abandon` called if `client`, the producer object, is dropped without being
        closed."""
        end_with(client, self.abandon)

    def abandon(self) -> None:
        """Deliver what was sent and end the thread, after the producer was dropped unclosed.

        May be called by the garbage collector, in the middle of anything: takes no lock.
        """
        if not self._closing and not self._hosted.forked:
            self._closing = True
            flushed: Completion[None] = Completion()
            flushed.add_done_callback(lambda _: self._stop("the producer was dropped without being closed"))
            with suppress(UsageError):  # its thread has ended already
                self._hosted.submit(Flush(flushed))

    def exit(self, deadline_ns: int) -> None:
        """Deliver what is in flight until `deadline_ns` (the machine's clock), at the end of the
        interpreter. A warning is logged if records were left, for nobody closed the producer."""
        if self._hosted.forked or self._ended.done():
            return
        if self._stopping:  # a close that was interrupted: what is left is given up already
            with suppress(TimedOut):
                self._ended.result(_PATIENCE_S)
            return
        if left := self._left():
            what = "1 record gets" if left == 1 else f"{left} records get"
            LOGGER.warning(
                "a producer was not closed; %s %g s at exit to be delivered: close it, or use `with`",
                what,
                EXIT_S,
            )
        remaining_s = max(deadline_ns - self._hosted.now_ns(), 0) / NS_PER_S
        with suppress(UsageError):
            run_blocking(self.transactions.leave(remaining_s), self._hosted)
            run_blocking(self._wait_for(self._flushed("exit"), remaining_s), self._hosted)
        self._stop(
            f"the interpreter ended, and nobody had closed the producer (its records had {EXIT_S:g} s)"
        )
        with suppress(TimedOut):
            self._ended.result(_PATIENCE_S)

    @property
    def ended(self) -> bool:
        """True once its thread has ended, or in a process where it never ran."""
        return self._ended.done() or self._hosted.forked

    def now_ns(self) -> int:
        """The machine's monotonic clock, ns."""
        return self._hosted.now_ns()

    # Inside

    def _in_line(self, size_bytes: int, records: int, what: str, submit: Callable[[Place], T]) -> Steps[T]:
        """Wait in line until `size_bytes` are free for this call, and return what `submit` returns,
        which takes them."""
        place = Place(size_bytes)
        try:
            try:
                self._memory.line_up(place)
                self._intake.check()
                if self._hosted.inside:
                    raise self._exhausted(records, f"{what} at once, and a delivery callback cannot wait")
                self._wake()  # with someone in line, nothing lingers
                with self.timed("waited_ns"):
                    yield from wait_until(
                        place.called, self._max_block_ms / 1000, lambda: self._exhausted(records, what)
                    )
                return submit(place)
            finally:
                self._memory.leave(place)
        except BaseException:
            self._memory.leave(place)  # Ctrl-C may have come within the other call; nobody else would do it
            raise

    def _flushed(self, what: str) -> Completion[None]:
        """A completion, done once everything sent is delivered or failed; nothing of it lingers."""
        self._check_outside(what)
        completion: Completion[None] = Completion()
        self._hosted.submit(Flush(completion))
        return completion

    def _wait_for(self, completion: Completion[None], timeout_s: float | None) -> Steps[None]:
        yield from wait_until(completion, timeout_s)

    def _flush_at_close(self, timeout_s: float | None) -> Steps[None]:
        """Flush, within `timeout_s` seconds (None: no limit). If that takes longer than QUIET_S
        seconds, what is waited for is logged."""
        completion = self._flushed("close")
        begun_ns, before = self._hosted.now_ns(), self._left()
        yield from wait_until(completion, QUIET_S if timeout_s is None else min(timeout_s, QUIET_S))
        if not completion.done() and (timeout_s is None or timeout_s > QUIET_S):
            longest_s = self._delivery_timeout_ms / 1000 if timeout_s is None else timeout_s
            remaining_s = max(longest_s - (self._hosted.now_ns() - begun_ns) / NS_PER_S, 0)
            yield from log_undelivered(
                self._hosted, logging.INFO if self._left() < before else logging.WARNING, remaining_s
            )
            yield from wait_until(completion, None if timeout_s is None else remaining_s)

    def _flush_patiently(self, patience_s: float) -> Steps[None]:
        """Flush for as long as anything is delivered within `patience_s` seconds."""
        completion = self._flushed("close")
        before = self._left() + 1
        while not completion.done() and self._left() < before:
            before = self._left()
            yield from wait_until(completion, patience_s)

    def _check_outside(self, what: str) -> None:
        """Raise UsageError, for the call `what`, on the machine's own thread, where a wait for the
        machine would never end."""
        if self._hosted.inside:
            raise UsageError(
                f"{what} within a delivery callback would wait for itself, as within a log handler; call "
                "it on another thread"
            )

    def _refused(self) -> None:
        self._count("records_failed", 1)

    def _left(self) -> int:
        """Number of records sent that are neither delivered nor failed."""
        return self._hosted.machine.records_open + self._intake.waiting()

    def _exhausted(self, records: int, what: str) -> BufferExhausted:
        self._count("exhausted", 1)
        self._count("records_failed", records)
        return BufferExhausted(
            f"no room for {what} within max.block.ms={self._max_block_ms}: {self._memory.free_bytes} of "
            f"buffer.memory={self._memory.total_bytes} bytes are free; brokers take records more slowly than "
            "they are sent"
        )

    def _check_sizes(self, topic: str, parts: Sequence[Part], first_row: int) -> None:
        for columns, _ in parts:
            sizes = columns.sizes_bytes()
            if len(sizes) and int(sizes.max()) > self._intake.largest_bytes:
                row = int(np.argmax(sizes > self._intake.largest_bytes))
                raise self._intake.too_large(f"row {first_row + row}", topic, int(sizes[row]))
            first_row += columns.count

    def _count(self, total: str, amount: int) -> None:
        with self._memory.lock:
            self._meter.add(total, amount, self._hosted.now_ns())

    def _wake(self) -> None:
        self._hosted.submit(_WAKE)

    def _stop(self, reason: str, last_push: bool = False) -> None:
        """Begin to give up what is left, for `reason`, and to end the thread. `last_push`: metrics
        are pushed once more, if a cluster asked for them."""
        if self._ended.done():
            return
        self._stopping = True
        completion: Completion[dict[str, int]] = Completion()
        completion.add_done_callback(self._stopped)
        try:
            self._hosted.submit(Stop(completion, reason, ms_to_ns(LAST_PUSH_MS) if last_push else 0))
        except UsageError as error:  # somebody else did it, or the machine has crashed
            completion.set_error(error)

    def _stopped(self, completion: Completion[dict[str, int]]) -> None:
        """Log what was given up, on the machine's thread, and have another one end the client."""
        self._intake.close(closed("producer"))
        if completion.error() is None and (given_up := completion.result(0)):
            self._given_up = given_up
            counts = ", ".join(f"{count} of topic {topic!r}" for topic, count in sorted(given_up.items()))
            LOGGER.warning(
                "producer closed with undelivered records: %s; they are failed",
                counts,
            )
        if not self._ending:
            self._ending = True
            try:
                self._closer.start()
            except RuntimeError:  # the interpreter is ending, and starts no threads any more
                self._end()

    def _end(self) -> None:
        try:
            self._hosted.close()
            self._intake.detach()
            if self.interceptors is not None:
                self.interceptors.close()
        finally:
            self._ended.set_result(None)


def _without_room(size_bytes: int, record: Record) -> tuple[int, Record]:
    return size_bytes, record


def _serializing_of(settings: Settings) -> Serializing | None:
    """A producer's serializers; None if it has none, as most have: then the formats are not loaded.
    ConfigError if one cannot be imported or made."""
    if settings["key.serializer"] is None and settings["value.serializer"] is None:
        return None
    from fairlead_kafka.client.serializing import serializing_of

    return serializing_of(settings)


def _close_all() -> None:
    open_cores = [core for core in list(_cores) if not core.ended]
    if open_cores:
        deadline_ns = open_cores[0].now_ns() + s_to_ns(EXIT_S)
        for core in open_cores:
            core.exit(deadline_ns)


# Registered after that of the hosts, so called before it: their threads still run.
atexit.register(_close_all)
