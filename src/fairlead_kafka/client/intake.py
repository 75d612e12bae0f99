"""Intake of the producer's machine: chunks of records and pieces of tables, in order of arrival.

A chunk collects one topic's records until the machine takes it or it is large. They are appended to
its columns at once, by machine code as a rule (`single_records`); one lock guards the rest, that of
the memory pool.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

import numpy as np

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.config import INT_MAX, LONG_MAX
from fairlead_kafka.base.errors import InvalidRecord, RecordTooLarge, UsageError
from fairlead_kafka.base.ids import NO_PARTITION, NO_TIMESTAMP
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES, RECORD_OVERHEAD_MAX_BYTES
from fairlead_kafka.base.topic_names import wrong_topic_name
from fairlead_kafka.client.delivery import Delivery, OnDelivery, fresh
from fairlead_kafka.client.handles import H
from fairlead_kafka.client.hosting import Steps, Waiting, forked_away
from fairlead_kafka.client.memory import MemoryPool, Place, take_for
from fairlead_kafka.client.single_records import NO_ROOM, Column, Pairs, RecordBuffer, SingleSend, padded
from fairlead_kafka.producer import Submission
from fairlead_kafka.producer.submission import Rows
from fairlead_kafka.records import BinaryColumn, RecordColumns, headers_from_lists
from fairlead_kafka.runtime import Completion, wrap_async

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

CHUNK_MAX_BYTES = 1 << 18
"""Bytes at which a chunk of single records is closed, and the machine woken for it."""
HEADER_OVERHEAD_BYTES = 10
"""Upper bound, bytes, of the encoded lengths of one header's key and value."""


class Forkable(Protocol):
    """An object that refuses every call in a forked child process."""

    def forked(self) -> None:
        """Called once in a child process that was forked: refuse everything from now on."""


_intakes: WeakSet[Forkable] = WeakSet()
Headers = Sequence[tuple[str, "bytes | None"]] | Mapping[str, "bytes | None"]


class Record(NamedTuple):
    """A single record: the arguments of `Producer.send`."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: Headers | None
    partition: int | None
    timestamp_ms: int | None
    on_delivery: OnDelivery | None


class Chunk(NamedTuple):
    """Single records of one topic that are submitted together."""

    topic: str
    created_ns: int
    created_ms: int
    delivery: Delivery
    headers: list[Pairs | None]
    buffer: RecordBuffer

    def seal(self) -> Submission:
        """Submission of the records, as columns. Called once."""
        count = self.buffer.count
        values, keys, partitions, timestamps = self.buffer.take_columns()
        stamps = np.full(count, self.created_ms, np.int64)
        if timestamps is not None:
            given = np.frombuffer(timestamps, np.int64)
            stamps = np.where(given == NO_TIMESTAMP, stamps, given)
        headers = headers_from_lists(padded(self.headers, count)) if self.headers else None
        columns = RecordColumns(count, _column(keys), _column(values), headers, stamps)
        self.delivery.timestamps, self.delivery.pending = stamps, count
        return Submission(
            self.topic,
            Rows(columns, None if partitions is None else np.frombuffer(partitions, np.int32)),
            self.delivery,
            created_ns=self.created_ns,
            reserved_bytes=self.buffer.size_bytes,
        )


def _column(column: Column | None) -> BinaryColumn | None:
    if column is None:
        return None
    data, offsets, valid = column
    nulls = None if valid is None else np.frombuffer(valid, np.bool_)
    return BinaryColumn(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int64), nulls)


class Clocked(Waiting, Protocol):
    """The parts of a host that the intake uses: its clocks, and how handles wait."""

    def now_ns(self) -> int:
        """The machine's monotonic clock, ns."""

    def now_ms(self) -> int:
        """The machine's time of day, ms since 1970."""


class _Ended:
    """Stands in for a host that has ended. Whatever handles can wait for is completed by then."""

    def now_ns(self) -> int:
        return 0

    def now_ms(self) -> int:
        return 0

    def wait(self, completion: Completion[T], timeout_s: float | None) -> T:
        return completion.result(timeout_s)

    def future(self, completion: Completion[T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
        return wrap_async(completion, loop)


class Intake(Generic[H]):
    """Collects records for the machine; implements `producer.submission.Intake`.

    `put` and the function that `offering` makes may be called on any thread, `take` on the
    machine's.
    """

    def __init__(self, memory: MemoryPool, max_request_bytes: int, handle: type[H]) -> None:
        self._memory = memory
        self._handle = handle
        self._max_request_bytes = max_request_bytes
        self.largest_bytes = min(max_request_bytes - BATCH_OVERHEAD_BYTES, memory.total_bytes)
        """Bytes of the largest record accepted, encoded, without the header of its batch."""
        self._items: list[Chunk | Submission] = []
        self._open: dict[str, RecordBuffer] = {}
        # A buffer in here takes records at any time, without the lock; to end that it is removed.
        self._expected = False  # the machine comes by itself
        self._closed: Exception | None = None
        self._shut: str | None = None
        self._forked: UsageError | None = None
        self.detach()
        _intakes.add(self)

    def attach(
        self,
        host: Clocked,
        wake: Callable[[], None],
        refused: Callable[[], None],
        outside: Callable[[str], None],
        why: Callable[[str, float], Steps[str]],
    ) -> None:
        """Set what the intake calls, before the first record: the machine's clocks, and `wake`.

        `refused` counts records refused; `check_waiting` and `why` call `outside` and `why`.
        """
        self._host, self._wake, self._refused, self._outside, self._why = host, wake, refused, outside, why
        self._now_ns, self._now_ms = host.now_ns, host.now_ms

    def detach(self) -> None:
        """Drop references to a machine that has ended, so that handles do not keep it alive."""
        self.attach(_Ended(), lambda: None, lambda: None, lambda what: None, _not_known)

    def check_process(self) -> None:
        """Raise UsageError in a forked process, where results never come."""
        if self._forked is not None:
            raise UsageError(str(self._forked))

    def check_waiting(self) -> None:
        """Raise UsageError in a forked process and on the machine's thread: a wait would not
        end."""
        self.check_process()
        self._outside("a wait for a result")

    def wait(self, completion: Completion[T], timeout_s: float | None) -> T:
        """Wait for `completion` on this thread, as the machine's host does it; see
        `hosting.Waiting`."""
        return self._host.wait(completion, timeout_s)

    def future(self, completion: Completion[T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
        """A future of `loop` that follows `completion`."""
        return self._host.future(completion, loop)

    def why(self, topic: str, within_s: float) -> Steps[str]:
        """Why records of a topic are not delivered yet; see `delivery.Owner`. `within_s`: seconds
        that may be spent on finding out."""
        return self._why(topic, within_s)

    def offering(self, no_room: Callable[[int, Record], T]) -> Callable[..., H | T]:
        """Make the function that takes a single record, with the parameters of `Producer.send`.

        It checks the record, appends it, which takes its bytes, and returns its handle. If there is
        no room, or others are in line for it, it returns what `no_room(size_bytes, record)`
        returns. A caller in line offers its record again once it is called, with its `place`, whose
        bytes the record takes.

        Nearly all records go by machine code (`SingleSend`); what follows here does the same for
        every record, whatever it needs.
        """
        memory, handle, largest_bytes, open_buffers = (
            self._memory,
            self._handle,
            self.largest_bytes,
            self._open,
        )

        def send(
            topic: str,
            value: bytes | None = None,
            *beyond: object,
            key: bytes | None = None,
            headers: Headers | None = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: OnDelivery | None = None,
            place: Place | None = None,
        ) -> H | T:
            """See `Producer.send`."""
            if beyond:
                raise UsageError(
                    "send: only topic and value go without their names; write send(topic, value, key=..., "
                    "headers=...)"
                )
            if on_delivery is not None:
                check_callback(on_delivery)
            if value is not None and type(value) is not bytes:
                value = as_bytes("value", value)
            if key is not None and type(key) is not bytes:
                key = as_bytes("key", key)
            pairs, size = checked_headers(headers)
            check_numbers(partition, timestamp_ms)
            size += RECORD_OVERHEAD_MAX_BYTES + len(value or b"") + len(key or b"")
            if size > largest_bytes:
                raise self.too_large("the record", topic, size)
            placed = NO_PARTITION if partition is None else partition
            stamp = NO_TIMESTAMP if timestamp_ms is None else timestamp_ms
            wake, row, source = False, NO_ROOM, place or memory
            try:
                with memory.lock:
                    if memory.waiters and place is None:
                        self._check()
                    else:
                        buffer, wake = self._buffer_for(topic)
                        row = buffer.append(value, key, placed, stamp, pairs, on_delivery, size, source)
                        if buffer.size_bytes >= CHUNK_MAX_BYTES:
                            del open_buffers[topic]
                            wake = True
                if wake:
                    self._wake()
            except BaseException:
                self._cut_short()
                raise
            if row == NO_ROOM:
                return no_room(size, Record(topic, value, key, pairs, partition, timestamp_ms, on_delivery))
            return handle(buffer.delivery, row)

        send.__qualname__ = "Producer.send"  # Python's own errors name it
        by_machine_code = SingleSend(
            memory,
            memory.waiters,
            open_buffers,
            handle,
            send,
            largest_bytes,
            CHUNK_MAX_BYTES,
            RECORD_OVERHEAD_MAX_BYTES,
        )
        return by_machine_code.send

    def put(self, submission: Submission, place: Place | None = None) -> bool:
        """Submit a piece of a table, which takes its bytes. False, and nothing done, if there is no
        room, or others are in line for it. The bytes are those of `place`, if one is given.

        UsageError if closed or shut.
        """
        size = submission.reserved_bytes
        try:
            with self._memory.lock:
                self._check()
                if self._memory.waiters and place is None:
                    return False
                self._open.pop(submission.topic, None)
                submission.created_ns = self._now_ns()
                if not take_for(submission, size, place or self._memory, self._items):
                    return False
                wake = not self._expected or size >= CHUNK_MAX_BYTES
                self._expected = True
            if wake:
                self._wake()
        except BaseException:
            self._cut_short()
            raise
        return True

    def take(self, coming_back: bool) -> list[Submission]:
        """All submissions since the last call; see `producer.submission.Intake`."""
        with self._memory.lock:
            self._open.clear()  # first: until then a record may come to any chunk
            items = [item for item in self._items if not isinstance(item, Chunk) or item.buffer.count]
            self._items = []
            self._expected = coming_back and bool(items)
        return [item.seal() if isinstance(item, Chunk) else item for item in items]

    def too_large(self, what: str, topic: str, size_bytes: int) -> RecordTooLarge:
        """The error for `what` ("a record", say) of `size_bytes`, which is beyond max.request.size
        or buffer.memory; counts it as refused."""
        self._refused()
        name, limit = "max.request.size", self._max_request_bytes
        if self._memory.total_bytes < limit - BATCH_OVERHEAD_BYTES:
            name, limit = "buffer.memory", self._memory.total_bytes
        return RecordTooLarge(
            f"{what} for topic {topic!r} takes up to {size_bytes} bytes; {name}={limit} allows "
            f"{self.largest_bytes}: raise {name}, "
            "and max.message.bytes of the topic if need be, or send less in one record"
        )

    def waiting(self) -> int:
        """Number of records that were submitted and that the machine has not taken yet."""
        with self._memory.lock:
            return sum(item.buffer.count if isinstance(item, Chunk) else item.rows for item in self._items)

    def held_bytes(self) -> int:
        """Bytes of buffer.memory that records in the intake hold. CheckFailed if the machine would
        not take an open chunk."""
        with self._memory.lock:
            taken = [id(item.buffer) for item in self._items if isinstance(item, Chunk)]
            holds(
                "a buffer is open that nobody takes",
                all(id(buffer) in taken for buffer in self._open.values()),
            )
            return sum(
                item.buffer.size_bytes if isinstance(item, Chunk) else item.reserved_bytes
                for item in self._items
            )

    def close(self, error: Exception) -> None:
        """Refuse records from now on and fail waits for memory, with what `error` says."""
        with self._memory.lock:
            self._closed = self._closed or error
            self._open.clear()
        self._memory.close(fresh(error))  # who waited raises it, with all that his frames hold

    def shut(self, why: str) -> None:
        """Refuse records with UsageError, whose text is `why`, until `admit`; earlier ones stay."""
        with self._memory.lock:
            self._shut = why
            self._open.clear()  # the next record has to open a chunk, and that is where it is refused

    def admit(self) -> None:
        """Accept records again, after `shut`."""
        with self._memory.lock:
            self._shut = None

    def forked(self) -> None:
        """Refuse everything: this is a forked child process, where no machine runs.

        Locks may have been held at the fork, so the lock is replaced.
        """
        self._memory.lock = Lock()
        self._closed = self._forked = forked_away("producer")
        self._open.clear()

    def check(self) -> None:
        """Raise UsageError if the producer is closed."""
        if self._closed is not None:
            raise UsageError(str(self._closed))

    def _cut_short(self) -> None:
        """Wake the machine: a call that an exception ended may have left something for it."""
        with suppress(UsageError):  # it has ended
            self._wake()

    def _check(self) -> None:
        self.check()
        if self._shut is not None:
            raise UsageError(self._shut)

    def _buffer_for(self, topic: str) -> tuple[RecordBuffer, bool]:
        """The open buffer of a topic, opened if need be; and whether the machine has to be woken
        for it."""
        if type(topic) is str and (buffer := self._open.get(topic)) is not None:
            return buffer, False
        self._check()
        check_topic(topic)
        delivery = Delivery(topic)
        delivery.owner = self
        headers: list[Pairs | None] = []
        buffer = RecordBuffer(delivery, delivery.callbacks, headers, CHUNK_MAX_BYTES)
        self._items.append(Chunk(topic, self._now_ns(), self._now_ms(), delivery, headers, buffer))
        self._open[topic] = buffer
        wake, self._expected = not self._expected, True
        return buffer, wake


def _not_known(_topic: str, _within_s: float) -> Steps[str]:
    return ""
    yield  # a generator


def _forked() -> None:
    for intake in list(_intakes):
        intake.forked()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_forked)


def check_topic(topic: object) -> None:
    """Raise InvalidRecord for a topic that is not a text, or not a valid name."""
    if type(topic) is not str:
        raise InvalidRecord(f"topic must be a text, not {topic!r}")
    if wrong := wrong_topic_name(topic):
        raise InvalidRecord(wrong)


def as_bytes(field: str, value: object) -> bytes:
    """`value` as bytes; InvalidRecord for what is not bytes already."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    hint = "encode it first, for example with .encode()" if isinstance(value, str) else "serialize it first"
    raise InvalidRecord(f"{field} must be bytes or None, not {type(value).__name__}; {hint}")


def checked_headers(headers: Headers | None) -> tuple[list[tuple[str, bytes | None]] | None, int]:
    """Headers as a list of pairs, and an upper bound of their encoded size, bytes.

    None and 0 if there are none. InvalidRecord for anything but text keys, and bytes or None.
    """
    if not headers:
        return None, 0
    pairs: Iterable[tuple[str, bytes | None]]
    if type(headers) is list or type(headers) is tuple:  # most often; to ask what is abstract takes longer
        pairs = headers
    elif isinstance(headers, Iterable):
        pairs = headers.items() if isinstance(headers, Mapping) else headers
    else:
        raise InvalidRecord(
            f"headers must be pairs of a text and bytes or None, or a mapping, not {headers!r}"
        )
    checked: list[tuple[str, bytes | None]] = []
    size = 0
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidRecord(f"headers must be pairs of a text and bytes or None, not {pair!r}")
        name, value = pair
        if value is not None and type(value) is not bytes:
            value = as_bytes(f"the value of header {name!r}", value)
        checked.append((name, value))
        try:
            size += len(name.encode())
        except UnicodeEncodeError as error:
            raise InvalidRecord(f"the header's name {name!r} is not valid text: {error.reason}") from None
        size += (0 if value is None else len(value)) + HEADER_OVERHEAD_BYTES
    return checked, size


def check_callback(on_delivery: object) -> None:
    """Raise InvalidRecord for a callback that cannot be called."""
    if not callable(on_delivery):
        raise InvalidRecord(
            "on_delivery must be callable with a RecordMetadata or None, and an error or None, not "
            f"{on_delivery!r}"
        )


def check_numbers(partition: int | None, timestamp_ms: int | None) -> None:
    """Raise InvalidRecord unless partition and timestamp are None or integers of 0 or more."""
    if partition is not None and (type(partition) is not int or not 0 <= partition <= INT_MAX):
        raise InvalidRecord(f"partition must be an int of 0 or more, or None for none, not {partition!r}")
    if timestamp_ms is not None and (type(timestamp_ms) is not int or not 0 <= timestamp_ms <= LONG_MAX):
        raise InvalidRecord(
            f"timestamp_ms must be an int of milliseconds since 1970, or None for now, not {timestamp_ms!r}"
        )
