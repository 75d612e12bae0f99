"""Polls: return fetched records, one by one or as tables. Both client APIs drive these steps.

A poll first collects what it will return, with deserializers and interceptors, which changes no
position; its last step hands that out. Whatever ends it before, the next poll returns the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fairlead_kafka import consumer  # which loads Arrow when a table is first made
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_fetched import Part
from fairlead_kafka.client.consumer_taking import Taking, Tending
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.client.interceptors_consumer import ConsumerInterceptors
from fairlead_kafka.consumer import OpenChunk, Record, check_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.deserializing import Deserializing


class ConsumerReading:
    """Steps of polls, of which one runs at a time; deserializers and interceptors are applied to
    records."""

    def __init__(
        self,
        asking: Asking,
        taking: Taking,
        group: Tending,
        deserializing: Deserializing | None,
        interceptors: ConsumerInterceptors | None,
    ) -> None:
        self._asking = asking
        self._taking = taking
        self._group = group
        self._deserializing = deserializing
        self._interceptors = interceptors
        self._max_poll_records: int = asking.settings["max.poll.records"]

    @property
    def by_polls(self) -> bool:
        """Whether an iteration goes by polls, which interceptors and deserializers see whole."""
        return self._interceptors is not None or self._deserializing is not None

    def poll(self, timeout_s: float, max_records: int | None) -> Steps[list[Record]]:
        """Records, up to `max_records`, as soon as there are any; empty after `timeout_s` seconds.
        UsageError if `max_records` is less than 1."""
        return self._taking.one_poll(self._poll(timeout_s, max_records))

    def _poll(self, timeout_s: float, max_records: int | None) -> Steps[list[Record]]:
        records, parts = yield from self.collect(timeout_s, max_records)
        self._taking.hand_out(parts)
        return records

    def collect(self, timeout_s: float, max_records: int | None) -> Steps[tuple[list[Record], list[Part]]]:
        """Records for `poll` to return, and the parts to hand out with them."""
        limit = self._max_poll_records if max_records is None else max_records
        if limit < 1:
            raise UsageError(f"max_records is {limit}; it must be at least 1")
        return (yield from self._taking.timed(timeout_s, partial(self._collect, limit)))

    def _collect(self, limit: int, deadline_ns: int) -> Steps[tuple[list[Record], list[Part]]]:
        yield from self._group.tend()
        records, parts = yield from self._taking.parts(limit, deadline_ns)
        if self._deserializing is not None:
            read = self._deserializing.records(records)
            records = read.records
            if read.failure is not None:
                if not records:
                    raise read.failure
                parts = first_of(parts, len(records))
        if self._interceptors is not None:
            records = self._interceptors.on_consume(records)
        return records, parts

    def block(self, timeout_s: float) -> Steps[tuple[OpenChunk, list[Record]] | None]:
        """Some records of one chunk, for `one_by_one`; None if none came within `timeout_s`
        seconds."""
        return self._taking.one_poll(self._taking.timed(timeout_s, self._block))

    def _block(self, deadline_ns: int) -> Steps[tuple[OpenChunk, list[Record]] | None]:
        yield from self._group.tend()
        opened = yield from self._taking.opened(deadline_ns)
        if opened is None:
            return None
        return opened, opened.records(min(opened.stop, opened.index + self._max_poll_records))

    def one_by_one(self, block: tuple[OpenChunk, list[Record]]) -> Iterator[Record]:
        """The records of a `block` one by one, moving its chunk's `index`.

        Ends early after a seek, a pause or another poll.
        """
        opened, records = block
        first = expected = opened.index
        try:
            for record in records:
                if opened.index != expected or opened.dropped or opened.held:
                    return
                opened.index = expected = expected + 1
                yield record
        finally:
            self._asking.polls.returned(opened.chunk, expected - first, opened.position)

    def poll_table(
        self, timeout_s: float, max_records: int | None, columns: Sequence[str] | None
    ) -> Steps[pa.Table]:
        """A table of fetched records, as soon as there are any; no rows if none came in time.
        UsageError if `max_records` is less than 1."""
        return self._taking.one_poll(self._poll_table(timeout_s, max_records, columns))

    def _poll_table(
        self, timeout_s: float, max_records: int | None, columns: Sequence[str] | None
    ) -> Steps[pa.Table]:
        table, parts = yield from self.collect_table(timeout_s, max_records, columns)
        self._taking.hand_out(parts)
        return table

    def collect_table(
        self, timeout_s: float, max_records: int | None, columns: Sequence[str] | None
    ) -> Steps[tuple[pa.Table, list[Part]]]:
        """The table for `poll_table` to return, and the parts to hand out with it."""
        asked = self.columns(columns)
        if max_records is not None and max_records < 1:
            raise UsageError(f"max_records is {max_records}; it must be at least 1")
        return (yield from self._taking.timed(timeout_s, partial(self._collect_table, max_records, asked)))

    def _collect_table(
        self, max_records: int | None, asked: Sequence[str], deadline_ns: int
    ) -> Steps[tuple[pa.Table, list[Part]]]:
        taking = self._taking
        names = asked if self._deserializing is None else self._deserializing.fetched_columns(asked)
        yield from self._group.tend()
        made = taking.rest(names, max_records)
        if not made and max_records is None:
            made = yield from taking.records(names, deadline_ns)
        elif not made and (yield from taking.opened(deadline_ns)) is not None:
            made = taking.rest(names, max_records)
        table = consumer.table_of([batch for _, batch in made], names)
        if self._deserializing is not None:
            table = self._deserializing.table(table, asked)
        if self._interceptors is not None:
            table = self._interceptors.on_consume_table(table)
        return table, [part for part, _ in made]

    def columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The names of a table's columns, checked; None: all there are."""
        if self._deserializing is None:
            return check_columns(columns)
        return self._deserializing.columns(columns)


def first_of(parts: Sequence[Part], count: int) -> list[Part]:
    """The parts of open chunks that have the first `count` records of `parts`."""
    first: list[Part] = []
    for part in parts:
        if part.records > count > 0 and part.opened is not None:
            stop = part.stop - part.records + count
            part = part._replace(records=count, stop=stop, next_offset=part.opened.position_at(stop))
        if count > 0:
            first.append(part)
        count -= part.records
    return first
