"""Delivery results: one `Delivery` for each hand-over, and the handles that callers hold on it.

The machine tells of a batch with one call. What it tells is noted as it is; arrays of results, one item per row, are made when
somebody first looks. So records whose results nobody asks for cost nothing on completion.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead.base.errors import TimedOut
from fairlead.client.hosting import Steps, Wait, run_async, run_blocking
from fairlead.runtime import Completion

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Settled = tuple[int, int, int, "Int64 | None", int, int, int, "Exception | None"]
OnDelivery = Callable[["RecordMetadata | None", "Exception | None"], object]
_PENDING, _DELIVERED, _FAILED = 0, 1, 2
_ALL = -1


class RecordMetadata(NamedTuple):
    """Where a record went. `offset` is -1 if the broker did not say (acks=0, or a duplicate of long ago)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class _Results:
    """Arrays over the rows of one delivery."""

    __slots__ = ("errors", "offsets", "partitions", "states", "timestamps")

    def __init__(self, timestamps: Int64) -> None:
        count = len(timestamps)
        self.states = np.zeros(count, np.int8)
        self.partitions = np.full(count, -1, np.int32)
        self.offsets = np.full(count, -1, np.int64)
        self.timestamps = timestamps.copy()
        self.errors: dict[int, Exception] = {}
        """By row; a batch's rows share one exception."""

    def note(self, settled: Settled) -> None:
        """Enter what became of some rows."""
        first_row, start, stop, order, partition, base_offset, log_append_ms, error = settled
        rows: Any = slice(first_row + start, first_row + stop) if order is None else order[start:stop] + first_row
        self.states[rows] = _DELIVERED if error is None else _FAILED
        self.partitions[rows] = partition
        if base_offset >= 0:
            self.offsets[rows] = np.arange(base_offset, base_offset + stop - start)
        if log_append_ms >= 0:
            self.timestamps[rows] = log_append_ms
        if error is not None:
            self.errors.update(dict.fromkeys(range(rows.start, rows.stop) if order is None else rows.tolist(), error))


class Delivery:
    """What becomes of records that were handed over together; implements `producer.handover.Delivery`."""

    __slots__ = ("_completions", "_lock", "_results", "_unread", "callbacks", "pending", "timestamps", "topic")

    def __init__(self, topic: str, count: int = 0, timestamps: Int64 | None = None) -> None:
        self.topic = topic
        self.pending = count
        """Rows without a result; set before the machine can settle any."""
        self.timestamps = timestamps
        """int64[count], ms since 1970; None while more rows may come."""
        self.callbacks: dict[int, OnDelivery] | None = None
        self._lock = Lock()
        self._unread: list[Settled] = []
        self._results: _Results | None = None
        self._completions: list[tuple[int, Completion]] = []

    def settle(
        self,
        first_row: int,
        start: int,
        stop: int,
        order: Int64 | None,
        partition: int,
        base_offset: int,
        log_append_ms: int,
        error: Exception | None,
    ) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """See `producer.handover.Delivery`."""
        settled = (first_row, start, stop, order, partition, base_offset, log_append_ms, error)
        over: list[tuple[int, Completion]] = []
        with self._lock:
            self._unread.append(settled)
            self.pending -= stop - start
            waiting = self._completions
            if waiting:
                states = self._read().states
                self._completions = []
                for row, completion in waiting:
                    settled_now = states[row] if row != _ALL else not self.pending
                    (over if settled_now else self._completions).append((row, completion))
        for _, completion in over:
            completion.set_result(None)
        return None if self.callbacks is None else (self._call_back, settled)

    def done(self, row: int) -> bool:
        """True if the row has its result."""
        if self.timestamps is None:
            return False
        with self._lock:
            return bool(self._read().states[row])

    def completion(self, row: int) -> Completion | None:
        """Done when the row (-1: every row) has its result; None: it is already."""
        with self._lock:
            if self.timestamps is not None and (not self.pending if row == _ALL else self._read().states[row]):
                return None
            completion = Completion()
            self._completions.append((row, completion))
            return completion

    def forget(self, completion: Completion) -> None:
        """Nobody waits for this completion any more."""
        with self._lock:
            self._completions = [each for each in self._completions if each[1] is not completion]

    def metadata(self, row: int) -> RecordMetadata:
        """The row's result, which must be there; raises its error."""
        with self._lock:
            results = self._read()
        if results.states[row] == _FAILED:
            # The rows of a batch share one error: without this each raise would lengthen its traceback.
            raise results.errors[row].with_traceback(None)
        return RecordMetadata(self.topic, int(results.partitions[row]), int(results.offsets[row]), int(results.timestamps[row]))

    def results(self) -> _Results:
        """All rows' results, which must be there."""
        with self._lock:
            return self._read()

    def _read(self) -> _Results:
        if self._results is None:
            assert self.timestamps is not None, "rows are settled after they were handed over"
            self._results = _Results(self.timestamps)
        for settled in self._unread:
            self._results.note(settled)
        self._unread.clear()
        return self._results

    def _call_back(self, first_row: int, start: int, stop: int, order: Int64 | None, *_: Any) -> None:
        """Call the callbacks of rows that were just settled, on the host's thread, outside the machine's step."""
        from fairlead.client.intake import LOGGER

        assert self.callbacks is not None
        rows = range(first_row + start, first_row + stop) if order is None else (order[start:stop] + first_row).tolist()
        for row in rows:
            callback = self.callbacks.pop(row, None)
            if callback is None:
                continue
            try:
                metadata: RecordMetadata | None = self.metadata(row)
                error: Exception | None = None
            except Exception as failure:
                metadata, error = None, failure
            try:
                callback(metadata, error)
            except BaseException:  # whatever it is, the callbacks of the other rows are due
                LOGGER.exception("the delivery callback of a record of topic %r raised", self.topic)


def _wait(delivery: Delivery, row: int, timeout_s: float | None, what: str) -> Generator[Wait, Any, None]:
    completion = delivery.completion(row)
    if completion is None:
        return
    try:
        yield Wait(completion, timeout_s, lambda: TimedOut(f"{what} of topic {delivery.topic!r} not delivered within {timeout_s} s"))
    finally:
        if not completion.done():
            delivery.forget(completion)


class _Handle(tuple[Delivery, int]):
    """Base of the handles: a delivery, and a row of it. A tuple, since there is one for every `send`, and nothing is made faster."""

    __slots__ = ()

    def done(self) -> bool:
        """True once the record is delivered or failed."""
        return self[0].done(self[1])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of topic {self[0].topic!r}, {'done' if self.done() else 'pending'}>"

    def _steps(self, timeout_s: float | None) -> Steps[RecordMetadata]:
        delivery, row = self
        yield from _wait(delivery, row, timeout_s, "a record")
        return delivery.metadata(row)


class Ack(_Handle):
    """A record that was handed over."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Where the record went; waits for it.

        Raises the error that it failed with, or TimedOut after `timeout_s` (None: as long as delivery.timeout.ms allows); the
        record may still be delivered then.
        """
        return run_blocking(self._steps(timeout_s))


class AsyncAck(_Handle):
    """A record that was handed over. `await ack` is `await ack.result()`."""

    __slots__ = ()

    async def result(self, timeout_s: float | None = None) -> RecordMetadata:
        return await run_async(self._steps(timeout_s))

    result.__doc__ = Ack.result.__doc__

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        return self.result().__await__()


class _TableHandle:
    """Base of the handles on tables."""

    __slots__ = ("_delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    def done(self) -> bool:
        """True once every row is delivered or failed."""
        return not self._delivery.pending

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of topic {self._delivery.topic!r}, {self._delivery.pending} rows pending>"

    def _steps(self, timeout_s: float | None, raise_on_error: bool) -> Steps[Any]:
        yield from _wait(self._delivery, _ALL, timeout_s, "rows")
        results = self._delivery.results()
        if raise_on_error and results.errors:
            raise results.errors[min(results.errors)].with_traceback(None)
        return _as_arrow(results)


def _as_arrow(results: _Results) -> Any:
    import pyarrow as pa

    count = len(results.states)
    if results.errors:
        texts: list[str | None] = [None] * count
        for row, error in results.errors.items():
            texts[row] = str(error)
        errors = pa.array(texts, pa.string())
    else:
        errors = pa.nulls(count, pa.string())
    timestamps = pa.array(results.timestamps, pa.timestamp("ms", tz="UTC"))
    known = results.offsets >= 0
    offsets = pa.array(results.offsets) if known.all() else pa.array(results.offsets, mask=~known)
    return pa.table({"partition": pa.array(results.partitions), "offset": offsets, "timestamp": timestamps, "error": errors})


class TableAck(_TableHandle):
    """A table that was handed over."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None, raise_on_error: bool = True) -> Any:
        """A `pyarrow.Table` with a row for each row handed over, in the same order; waits for all of them.

        Columns: `partition` int32; `offset` int64, null if failed or not known (acks=0); `timestamp` timestamp[ms, UTC];
        `error` string, null if delivered. With `raise_on_error` the error of the first failed row is raised instead. TimedOut
        after `timeout_s` (None: as long as delivery.timeout.ms allows); rows may still be delivered then.
        """
        return run_blocking(self._steps(timeout_s, raise_on_error))


class AsyncTableAck(_TableHandle):
    """A table that was handed over. `await ack` is `await ack.result()`."""

    __slots__ = ()

    async def result(self, timeout_s: float | None = None, raise_on_error: bool = True) -> Any:
        return await run_async(self._steps(timeout_s, raise_on_error))

    result.__doc__ = TableAck.result.__doc__

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.result().__await__()
