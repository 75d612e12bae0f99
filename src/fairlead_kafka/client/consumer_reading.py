"""Polls: return fetched records, one by one or as tables. Both client APIs drive these steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fairlead_kafka import consumer  # which loads Arrow when a table is first made
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.consumer_taking import Taking, Tending
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.client.interceptors_consumer import ConsumerInterceptors
from fairlead_kafka.consumer import OpenChunk, Record, check_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from fairlead_kafka.client.deserializing import Deserializing


class Seeking(Protocol):
    """The part of a consumer that seeks (`consumer_positions.ConsumerPositions`)."""

    def seek(self, positions: Mapping[TopicPartition, int]) -> Steps[None]:
        """Move positions of partitions: reading goes on at these offsets."""


class ConsumerReading:
    """Steps of polls, of which one runs at a time; deserializers and interceptors are applied to
    records."""

    def __init__(
        self,
        asking: Asking,
        taking: Taking,
        group: Tending,
        positions: Seeking,
        deserializing: Deserializing | None,
        interceptors: ConsumerInterceptors | None,
    ) -> None:
        self._asking = asking
        self._taking = taking
        self._group = group
        self._positions = positions
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
        limit = self._max_poll_records if max_records is None else max_records
        if limit < 1:
            raise UsageError(f"max_records is {limit}; it must be at least 1")
        records: list[Record] = []
        with self._taking.one_poll:
            deadline_ns = self._asking.deadline_ns(timeout_s)
            yield from self._group.tend()
            while len(records) < limit:
                opened = self._taking.more() if records else (yield from self._taking.opened(deadline_ns))
                if opened is None:
                    break
                part = opened.records(limit - len(records))
                self._taking.move(opened, opened.index + len(part))
                records = records + part if records else part
        if self._deserializing is not None:
            read = self._deserializing.records(records)
            records = read.records
            if read.failure is not None:
                yield from self._positions.seek(read.left)
                if not records:
                    raise read.failure
        return records if self._interceptors is None else self._interceptors.on_consume(records)

    def block(self, timeout_s: float) -> Steps[tuple[OpenChunk, list[Record]] | None]:
        """Some records of one chunk, for `one_by_one`; None if none came within `timeout_s`
        seconds."""
        with self._taking.one_poll:
            deadline_ns = self._asking.deadline_ns(timeout_s)
            yield from self._group.tend()
            opened = yield from self._taking.opened(deadline_ns)
        return None if opened is None else (opened, opened.records(self._max_poll_records))

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
        asked = self.columns(columns)
        names = asked if self._deserializing is None else self._deserializing.fetched_columns(asked)
        if max_records is not None and max_records < 1:
            raise UsageError(f"max_records is {max_records}; it must be at least 1")
        taking = self._taking
        with taking.one_poll:
            deadline_ns = self._asking.deadline_ns(timeout_s)
            yield from self._group.tend()
            batches = taking.rest(names, max_records)
            if not batches and max_records is None:
                batches = yield from taking.records(names, deadline_ns)
            elif not batches and (yield from taking.opened(deadline_ns)) is not None:
                batches = taking.rest(names, max_records)
        table = consumer.table_of(batches, names)
        if self._deserializing is not None:
            read = self._deserializing.table(table, asked)
            if read.failure is not None:
                yield from self._positions.seek(read.left)
                raise read.failure
            table = read.table
        return table if self._interceptors is None else self._interceptors.on_consume_table(table)

    def columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The names of a table's columns, checked; None: all there are."""
        if self._deserializing is None:
            return check_columns(columns)
        return self._deserializing.columns(columns)
