"""Delivery results: one `Delivery` for each chunk of records or table; `handles` refer to it.

The machine reports a batch with one call. The report is kept as it is; arrays of results, one item
per row, are made when a caller first looks. So records whose results are not read cost nothing on
completion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from itertools import repeat
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.client.hosting import Steps, Waiting
from fairlead_kafka.producer import CompletedRows
from fairlead_kafka.producer.submission import Calls
from fairlead_kafka.runtime import Completion

Int64 = npt.NDArray[np.int64]
OnDelivery = Callable[["RecordMetadata | None", "Exception | None"], object]
LOGGER = GuardedLogger("fairlead_kafka.producer")
_PENDING, _DELIVERED, _FAILED = 0, 1, 2
ALL_ROWS = -1


class RecordMetadata(NamedTuple):
    """Topic, partition, offset and timestamp (ms since 1970) of a record sent.

    `offset` is -1 if the broker did not say (acks=0, or a duplicate of long ago).
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


_make_metadata = partial(tuple.__new__, RecordMetadata)
"""Makes a RecordMetadata of a tuple of its fields, twice as fast as its constructor."""


class Owner(Waiting, Protocol):
    """The producer that a delivery belongs to, as far as waiting for results goes
    (`client.intake.Intake`)."""

    def check_process(self) -> None:
        """Raise UsageError in a forked process, where results never come."""

    def check_waiting(self) -> None:
        """Raise UsageError where a wait for a result would never end."""

    def why(self, topic: str, within_s: float) -> Steps[str]:
        """Why records of a topic are not delivered yet, as the end of a sentence; empty if the
        reason is not known. `within_s`: seconds that may be spent on finding out."""


class Results:
    """Results of one delivery: arrays with an item per row."""

    __slots__ = ("errors", "offsets", "partitions", "states", "timestamps")

    def __init__(self, timestamps: Int64) -> None:
        count = len(timestamps)
        self.states = np.zeros(count, np.int8)
        self.partitions = np.full(count, -1, np.int32)
        self.offsets = np.full(count, -1, np.int64)
        self.timestamps = timestamps.copy()
        self.errors: dict[int, Exception] = {}
        """Row → its error; the rows of a batch share one exception."""

    def note(self, completed: CompletedRows) -> None:
        """Enter the results of the rows that `completed` is about."""
        first_row, start, stop, order, partition, base_offset, log_append_ms, error = completed
        numbers = (
            range(first_row + start, first_row + stop) if order is None else order[start:stop] + first_row
        )
        rows = slice(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers
        self.states[rows] = _DELIVERED if error is None else _FAILED
        self.partitions[rows] = partition
        if base_offset >= 0:
            self.offsets[rows] = (
                np.arange(stop - start, dtype=np.int64) + base_offset
            )  # wraps if a broker gives the largest there is
        if log_append_ms >= 0:
            self.timestamps[rows] = log_append_ms
        if error is not None:
            self.errors.update(
                dict.fromkeys(numbers if isinstance(numbers, range) else numbers.tolist(), error)
            )


def fresh(error: Exception) -> Exception:
    """A copy of an error, to be raised or passed on: with its cause, and without its traceback.

    The rows of a batch share one error. A traceback leads to its frames, and these to what a
    program keeps: handles too, which the collector does not see (`client.handles`). So what a
    delivery keeps is never raised, and never passed on.
    """
    try:
        made = copy(error)
    except Exception:  # one of somebody else's that cannot be made of its arguments
        return error.with_traceback(None)
    made.__cause__, made.__suppress_context__ = error.__cause__, error.__suppress_context__
    return made


class Delivery:
    """Results of one chunk of records or table; implements `producer.submission.Delivery`."""

    __slots__ = (
        "_completions",
        "_lock",
        "_results",
        "_unread",
        "callbacks",
        "owner",
        "pending",
        "timestamps",
        "topic",
    )

    def __init__(self, topic: str, count: int = 0, timestamps: Int64 | None = None) -> None:
        self.topic = topic
        self.pending = count
        """Rows without a result; set before the machine can complete any."""
        self.timestamps = timestamps
        """int64[count], ms since 1970; None while more rows may come."""
        self.owner: Owner | None = None
        self.callbacks: list[OnDelivery | None] = []
        """Callback of each row, None for none; as long as the last row that has one."""
        self._lock = Lock()
        self._unread: list[CompletedRows] = []
        self._results: Results | None = None
        self._completions: list[tuple[int, Completion[None]]] = []

    def grow(self, count: int) -> None:
        """Count `count` more rows of this delivery, which are about to be submitted."""
        with self._lock:
            self.pending += count

    def complete(self, completed: CompletedRows) -> Calls | None:
        """Note the results of some rows, and end the waits for them. Returns the call of their
        callbacks, if there are any; see `producer.submission.Delivery`."""
        over: list[tuple[int, Completion[None]]] = []
        error = completed[-1]
        with self._lock:
            self._unread.append(completed if error is None else (*completed[:-1], fresh(error)))
            self.pending -= completed[2] - completed[1]
            waiting = self._completions
            if waiting:
                states = self._read().states
                self._completions = []
                for row, completion in waiting:
                    completed_now = states[row] if row != ALL_ROWS else not self.pending
                    (over if completed_now else self._completions).append((row, completion))
        for _, completion in over:
            completion.set_result(None)
        return (self._call_back, (completed,)) if self.callbacks else None

    def done(self, row: int) -> bool:
        """True if the row (-1: every row) has its result. UsageError in a forked process."""
        if self.owner is not None:
            self.owner.check_process()
        if row == ALL_ROWS:
            return not self.pending
        if self.timestamps is None:
            return False
        with self._lock:
            return bool(self._read().states[row])

    def completion(self, row: int) -> Completion[None] | None:
        """A completion that is done when the row (-1: every row) has its result; None if it has it
        already."""
        with self._lock:
            if self.timestamps is not None and (
                not self.pending if row == ALL_ROWS else self._read().states[row]
            ):
                return None
            completion: Completion[None] = Completion()
            self._completions.append((row, completion))
            return completion

    def forget(self, completion: Completion[None]) -> None:
        """Drop a completion that nobody waits for any more."""
        with self._lock:
            self._completions = [each for each in self._completions if each[1] is not completion]

    def metadata(self, row: int) -> RecordMetadata | None:
        """The row's result, None if it has none yet; raises its error. UsageError in a forked
        process."""
        if self.owner is not None:
            self.owner.check_process()
        if self.timestamps is None:
            return None
        with self._lock:
            results = self._read()
        state = results.states.item(row)
        if state == _PENDING:
            return None
        if state == _FAILED:
            raise fresh(results.errors[row])
        where = results.partitions.item(row), results.offsets.item(row), results.timestamps.item(row)
        return _make_metadata((self.topic, *where))

    def results(self) -> Results:
        """Results of all rows, for a delivery that is completed."""
        with self._lock:
            return self._read()

    def _read(self) -> Results:
        if self._results is None:
            assert self.timestamps is not None, "rows are completed after they were submitted"
            self._results = Results(self.timestamps)
        for completed in self._unread:
            self._results.note(completed)
        self._unread.clear()
        return self._results

    def _call_back(self, completed: CompletedRows) -> None:
        """Call callbacks of completed rows, on the host's thread, outside the machine's step."""
        first_row, start, stop, order, partition, base_offset, log_append_ms, error = completed
        assert self.timestamps is not None, "rows are completed after they were submitted"
        count, callbacks = stop - start, self.callbacks
        rows: slice | Int64
        if order is None:
            rows = slice(first_row + start, first_row + stop)
            called = callbacks[rows]
            callbacks[rows] = [None] * len(called)  # what they refer to is not kept longer than it takes
        else:
            rows = order[start:stop] + first_row
            given = rows[rows < len(callbacks)]
            called = [callbacks[row] if row < len(callbacks) else None for row in rows.tolist()]
            for row in given.tolist():
                callbacks[row] = None
        stamps = repeat(log_append_ms) if log_append_ms >= 0 else self.timestamps[rows].tolist()
        offsets = repeat(-1) if base_offset < 0 else range(base_offset, base_offset + count)
        results: Iterator[RecordMetadata | None] = repeat(None)
        if error is None:
            results = map(
                _make_metadata, zip(repeat(self.topic), repeat(partition), offsets, stamps, strict=False)
            )
        for callback, metadata in zip(called, results, strict=False):
            if callback is None:
                continue
            if error is not None:
                error.__traceback__ = (
                    None  # the rows of a batch share one error, and each may have been raised
                )
            try:
                callback(metadata, error)
            except BaseException:  # whatever it is, the callbacks of the other rows are due
                LOGGER.error(
                    "the delivery callback of a record of topic %r raised",
                    self.topic,
                    exc_info=True,
                )
