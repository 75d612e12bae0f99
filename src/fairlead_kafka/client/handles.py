"""Handles on records sent: `Ack` for a record, `TableAck` for a table, and async counterparts.

There is an `Ack` for every `send`, and applications keep millions. Making one is cheap compared
with Python's garbage collector, which would walk all kept handles again and again (more than half
of the time of a stream of sends whose handles all go into one list), so machine code makes them,
untracked by the collector. So a delivery keeps nothing that leads to a handle once it is completed:
it drops callbacks, and raises copies of its errors (`delivery.fresh`). For the result of each of
very many records, `on_delivery` is still cheaper.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from fairlead_kafka.base.checked import check, checked
from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.base.within import Seconds
from fairlead_kafka.client.delivery import ALL_ROWS, Delivery, RecordMetadata, Results, fresh
from fairlead_kafka.client.hosting import Steps, run_async, run_blocking, wait_until
from fairlead_kafka.client.single_records import Handle

if TYPE_CHECKING:
    import pyarrow as pa


def _wait(delivery: Delivery, row: int, timeout_s: float | None, what: str) -> Steps[None]:
    if delivery.owner is not None:
        delivery.owner.check_process()  # first: a lock may have been held when this process was forked away
    completion = delivery.completion(row)
    if completion is None:
        return
    if delivery.owner is not None:
        delivery.owner.check_waiting()
    try:
        yield from wait_until(completion, timeout_s)
        why = ""
        if timeout_s and delivery.owner is not None and not completion.done():
            why = yield from delivery.owner.why(delivery.topic, timeout_s)
        if not completion.done():
            raise TimedOut(f"{what} of topic {delivery.topic!r} not delivered within {timeout_s} s{why}")
    finally:
        if not completion.done():
            delivery.forget(completion)


class _Handle(Handle):
    """Base of the handles on single records: a delivery, and a row of it."""

    __slots__ = ()

    def done(self) -> bool:
        """True once the record is delivered or failed. UsageError in a forked process."""
        return bool(self.delivery.done(self.row))

    def __repr__(self) -> str:
        try:
            state = "done" if self.done() else "pending"
        except UsageError:
            state = "of another process"
        return f"<{type(self).__name__} of topic {self.delivery.topic!r}, {state}>"

    def _steps(self, timeout_s: float | None) -> Steps[RecordMetadata]:
        delivery: Delivery = self.delivery
        yield from _wait(delivery, self.row, timeout_s, "a record")
        metadata = delivery.metadata(self.row)
        assert metadata is not None, "it was waited for"
        return metadata


class Ack(_Handle):
    """Handle on a record sent; `Producer.send` returns it."""

    __slots__ = ()

    def result(self, timeout_s: Seconds | None = None) -> RecordMetadata:
        """Topic, partition, offset and timestamp of the record; waits until it is delivered.

        Raises the error that it failed with, or TimedOut after `timeout_s` seconds (None: as long
        as delivery.timeout.ms allows); the record may still be delivered then. UsageError in a
        forked process, and in a delivery callback where it would have to wait.
        """
        if timeout_s is not None:
            check("result", "timeout_s", timeout_s, Seconds)
        metadata: RecordMetadata | None = self.delivery.metadata(self.row)
        return run_blocking(self._steps(timeout_s), self.delivery.owner) if metadata is None else metadata


class AsyncAck(_Handle):
    """Handle on a record sent. `await ack` is `await ack.result()`."""

    __slots__ = ()

    async def result(self, timeout_s: Seconds | None = None) -> RecordMetadata:
        if timeout_s is not None:
            check("result", "timeout_s", timeout_s, Seconds)
        metadata: RecordMetadata | None = self.delivery.metadata(self.row)
        return await run_async(self._steps(timeout_s), self.delivery.owner) if metadata is None else metadata

    result.__doc__ = Ack.result.__doc__

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        return self.result().__await__()


H = TypeVar("H", bound=_Handle)


class _TableHandle:
    """Base of the handles on tables."""

    __slots__ = ("_delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    @property
    def delivery(self) -> Delivery:
        """The results of the rows, as they come in."""
        return self._delivery

    def done(self) -> bool:
        """True once every row is delivered or failed. UsageError in a forked process."""
        return self._delivery.done(ALL_ROWS)

    def __repr__(self) -> str:
        try:
            self.done()
            state = f"{self._delivery.pending} rows pending"
        except UsageError:
            state = "of another process"
        return f"<{type(self).__name__} of topic {self._delivery.topic!r}, {state}>"

    def _steps(self, timeout_s: float | None, raise_on_error: bool) -> Steps[pa.Table]:
        yield from _wait(self._delivery, ALL_ROWS, timeout_s, "rows")
        results = self._delivery.results()
        if raise_on_error and results.errors:
            raise fresh(results.errors[min(results.errors)])
        return as_arrow(results)


def as_arrow(results: Results) -> pa.Table:
    """Results as the table that `TableAck.result` returns."""
    import pyarrow as pa

    from fairlead_kafka.records import arrow_array

    count = len(results.states)
    if results.errors:
        texts: list[str | None] = [None] * count
        for row, error in results.errors.items():
            texts[row] = str(error)
        errors = pa.array(texts, pa.string())
    else:
        errors = pa.nulls(count, pa.string())
    known = results.offsets >= 0
    columns = {
        "partition": arrow_array(results.partitions, pa.int32()),
        "offset": arrow_array(results.offsets, pa.int64(), None if known.all() else known),
        "timestamp": arrow_array(results.timestamps, pa.timestamp("ms", tz="UTC")),
        "error": errors,
    }
    return pa.table(columns)


@checked()
class TableAck(_TableHandle):
    """Handle on a table sent; `Producer.send_table` returns it."""

    __slots__ = ()

    def result(self, timeout_s: Seconds | None = None, raise_on_error: bool = True) -> pa.Table:
        """A `pyarrow.Table` with a row for each row sent, in the same order; waits for all of them.

        Columns: `partition` int32; `offset` int64, null if failed or not known (acks=0);
        `timestamp` timestamp[ms, UTC]; `error` string, null if delivered. With `raise_on_error` the
        error of the first failed row is raised instead. TimedOut after `timeout_s` seconds (None:
        as long as delivery.timeout.ms allows); rows may still be delivered then.
        """
        return run_blocking(self._steps(timeout_s, raise_on_error), self._delivery.owner)


@checked()
class AsyncTableAck(_TableHandle):
    """Handle on a table sent. `await ack` is `await ack.result()`."""

    __slots__ = ()

    async def result(self, timeout_s: Seconds | None = None, raise_on_error: bool = True) -> pa.Table:
        return await run_async(self._steps(timeout_s, raise_on_error), self._delivery.owner)

    result.__doc__ = TableAck.result.__doc__

    def __await__(self) -> Generator[object, None, pa.Table]:
        return self.result().__await__()
