"""Ranges of one partition: their records, or their record batches' headers, as tables.

Both client APIs drive these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from fairlead_kafka import consumer
from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Fetched
from fairlead_kafka.client.consumer_taking import Taking
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.consumer import AssignRange

if TYPE_CHECKING:
    import pyarrow as pa


class Tables(Protocol):
    """The part of a consumer that polls tables (`consumer_reading.ConsumerReading`)."""

    def columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The names of a table's columns, checked; `columns` None: all there are."""

    def poll_table(
        self, timeout_s: float, max_records: int | None, columns: Sequence[str] | None
    ) -> Steps[pa.Table]:
        """A table of fetched records; see `Consumer.poll_table` for time-out and errors."""


class Locating(Protocol):
    """The part of a consumer that has positions (`consumer_positions.ConsumerPositions`)."""

    def position(self, partition: TopicPartition, timeout_s: float | None) -> Steps[int]:
        """Offset of the next record that a poll returns."""


class ConsumerRanges:
    """Steps that read a range of one partition: the range is assigned, and read table by table to
    its end."""

    def __init__(
        self, asking: Asking, fetched: Fetched, taking: Taking, reading: Tables, positions: Locating
    ) -> None:
        self._asking = asking
        self._fetched = fetched
        self._taking = taking
        self._reading = reading
        self._positions = positions

    def begin(
        self, partition: TopicPartition, start: int, end: int, columns: Sequence[str] | None
    ) -> Steps[tuple[str, ...]]:
        """Assign offsets `start` to `end` (excluded) of one partition. Returns the names of the
        columns, checked."""
        names = self._reading.columns(columns)
        yield from self.begin_batches(partition, start, end)
        return names

    def go_on(
        self, partition: TopicPartition, end: int, names: Sequence[str], timeout_s: float | None
    ) -> Steps[pa.Table | None]:
        """The next table of the range; None at its end. TimedOut if nothing came for `timeout_s`
        seconds."""
        return self._go_on(
            partition,
            end,
            timeout_s,
            lambda remaining_s: self._reading.poll_table(remaining_s, None, names),
        )

    def begin_batches(self, partition: TopicPartition, start: int, end: int) -> Steps[None]:
        """Assign offsets `start` to `end` (excluded) of one partition, to read the headers of its
        batches."""
        partition = TopicPartition(*partition)
        # A range is a new assignment of its own, which nobody has paused.
        self._fetched.pause(list(self._fetched.paused), False)
        generations = yield from self._asking.ask(AssignRange, partition, start, end)
        self._fetched.moved(generations, replaces=True)

    def go_on_batches(
        self, partition: TopicPartition, end: int, measure: bool, timeout_s: float | None
    ) -> Steps[pa.Table | None]:
        """The next table of headers of the range's batches; None at its end. TimedOut if nothing
        came for `timeout_s` seconds."""
        return self._go_on(
            partition,
            end,
            timeout_s,
            lambda remaining_s: self._taking.one_poll(self._poll_batches(remaining_s, measure)),
        )

    def _go_on(
        self,
        partition: TopicPartition,
        end: int,
        timeout_s: float | None,
        poll: Callable[[float], Steps[pa.Table]],
    ) -> Steps[pa.Table | None]:
        partition = TopicPartition(*partition)
        yield from self._asking.connect_first(timeout_s)
        timeout_s = self._asking.default_timeout_s if timeout_s is None else timeout_s
        deadline_ns = self._asking.deadline_ns(timeout_s)
        while True:
            position = yield from self._positions.position(partition, timeout_s)
            if position >= end:
                return None
            remaining_s = (deadline_ns - self._asking.now_ns()) / NS_PER_S
            table = (yield from poll(remaining_s)) if remaining_s > 0 else None
            if table is None or (not table.num_rows and self._asking.now_ns() >= deadline_ns):
                raise TimedOut(
                    f"reading {partition} up to offset {end}: nothing came for {timeout_s} s at offset "
                    f"{position}; "
                    "if the log ends before the range does, ask end_offsets first"
                )
            if table.num_rows:
                return table

    def _poll_batches(self, timeout_s: float, measure: bool) -> Steps[pa.Table]:
        """Headers of fetched batches as a table, as soon as there are any; no rows after
        `timeout_s` seconds."""
        made = yield from self._taking.timed(timeout_s, partial(self._taking.headers, measure))
        table = consumer.headers_table([batch for _, batch in made])
        self._taking.hand_out([part for part, _ in made])
        return table
