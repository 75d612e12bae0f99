"""Ranges of one partition: their records, or their record batches' headers, as tables.

Both client APIs drive these steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead_kafka import consumer
from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.consumer_reading import TABLE_MAX_BYTES, ChunkWork, ConsumerReading
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.consumer import AssignRange, Chunk

if TYPE_CHECKING:
    import pyarrow as pa


class ConsumerRanges(ConsumerReading):
    """Steps of reads that end: a range is assigned, and read table by table."""

    def range_begins(
        self, partition: TopicPartition, start: int, end: int, columns: Sequence[str] | None
    ) -> Steps[tuple[str, ...]]:
        """Assign a range of one partition. Returns the names of the columns, checked."""
        names = self.columns(columns)
        yield from self.batches_begin(partition, start, end)
        return names

    def range_goes_on(
        self, partition: TopicPartition, end: int, names: Sequence[str], timeout_s: float | None
    ) -> Steps[pa.Table | None]:
        """The next table of the range; None at its end."""
        return self._goes_on(
            partition, end, timeout_s, lambda remaining_s: self.poll_table(remaining_s, None, names)
        )

    def batches_begin(self, partition: TopicPartition, start: int, end: int) -> Steps[None]:
        """Assign a range of one partition."""
        partition = TopicPartition(*partition)
        self._paused.clear()  # a range is a new assignment of its own, which nobody has paused
        self._moved(
            (yield from self._ask(lambda completion: AssignRange(completion, partition, start, end))),
            replaces=True,
        )

    def batches_go_on(
        self, partition: TopicPartition, end: int, measure: bool, timeout_s: float | None
    ) -> Steps[pa.Table | None]:
        """The next table of headers of the range's batches; None at its end."""
        return self._goes_on(
            partition, end, timeout_s, lambda remaining_s: self._poll_batches(remaining_s, measure)
        )

    def _goes_on(
        self,
        partition: TopicPartition,
        end: int,
        timeout_s: float | None,
        poll: Callable[[float], Steps[pa.Table]],
    ) -> Steps[pa.Table | None]:
        partition = TopicPartition(*partition)
        yield from self._connect_first(timeout_s)
        timeout_s = self._default_timeout_s if timeout_s is None else timeout_s
        deadline_ns = self._deadline_ns(timeout_s)
        while True:
            position = yield from self.position(partition, timeout_s)
            if position >= end:
                return None
            remaining_s = (deadline_ns - self._hosted.now_ns()) / NS_PER_S
            table = (yield from poll(remaining_s)) if remaining_s > 0 else None
            if table is None or (not table.num_rows and self._hosted.now_ns() >= deadline_ns):
                raise TimedOut(
                    f"reading {partition} up to offset {end}: nothing came for {timeout_s} s at offset "
                    f"{position}; "
                    "if the log ends before the range does, ask end_offsets first"
                )
            if table.num_rows:
                return table

    def _poll_batches(self, timeout_s: float, measure: bool) -> Steps[pa.Table]:
        """Headers of fetched batches as a table, as soon as there are any; else no rows."""
        batches: list[pa.RecordBatch] = []
        with self._one_poll():
            deadline_ns = self._deadline_ns(timeout_s)
            while not batches:
                if not self._ready() and not (yield from self._take(deadline_ns, TABLE_MAX_BYTES)):
                    break
                batches = yield from self._batches(lambda chunk: self._headers_of(chunk, measure))
        return consumer.headers_table(batches)

    def _headers_of(self, chunk: Chunk, measure: bool) -> ChunkWork:
        return lambda: (
            consumer.chunk_headers(chunk, measure=measure, check_crcs=self._check_crcs),
            chunk.next_offset,
        )
