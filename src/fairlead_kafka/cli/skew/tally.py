"""One pass over the headers of a window's batches, one over its records: sums and histograms that
do not grow with the topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.skew.hot_keys import HotKeys
from fairlead_kafka.cli.skew.replay import Records
from fairlead_kafka.cli.skew.window import Window
from fairlead_kafka.client import Consumer
from fairlead_kafka.records import columns_from_arrow

RECORDS_PER_BATCH_MAX = 1 << 16
"""Batches of more records count as of so many."""
FILL_MAX_PERCENT = 200
"""Batches fuller than this count as so full: a record may be larger than batch.size."""
REPLAY_MAX_BYTES = 64 << 20
"""Bytes of keys and values that are held for the replay, about."""
GAP_MAX_MS = 10_000
"""Longest gap between two records in the replay, ms: by then all that lingered is sent, and nothing
happens any more."""
Said = Callable[[str], None]
_COLUMNS = ["partition", "offset", "timestamp", "key", "value", "headers"]


@dataclass
class PartitionTally:
    """Totals of one partition's batches within the window; transaction markers are counted
    apart."""

    records: int = 0
    batches: int = 0
    size_bytes: int = 0
    uncompressed_bytes: int = 0
    markers: int = 0


@dataclass
class BatchTally:
    """Totals of all batches within the window.

    Histograms: `records_per_batch[n]` batches of n records, `fill[p]` batches p percent full.
    """

    partitions: dict[TopicPartition, PartitionTally]
    records_per_batch: npt.NDArray[np.int64]
    fill: npt.NDArray[np.int64]
    codecs: Counter[str] = field(default_factory=Counter)
    """Bytes by codec."""
    log_append_batches: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    @property
    def total(self) -> PartitionTally:
        """All partitions together."""
        every = list(self.partitions.values())
        return PartitionTally(
            sum(one.records for one in every),
            sum(one.batches for one in every),
            sum(one.size_bytes for one in every),
            sum(one.uncompressed_bytes for one in every),
            sum(one.markers for one in every),
        )

    def add(self, of: TopicPartition, table: pa.Table, batch_size: int) -> None:
        """Add batches of one partition, as `Consumer.read_batches` gives them with their ratio."""
        partition = self.partitions[of]
        partition.markers += pc.sum(table["is_control"]).as_py() or 0
        table = table.filter(pc.invert(table["is_control"]))
        if not table.num_rows:
            return
        records, sizes = (table[name].to_numpy() for name in ("records", "size_bytes"))
        partition.records += int(records.sum())
        partition.batches += table.num_rows
        partition.size_bytes += int(sizes.sum())
        partition.uncompressed_bytes += int(pc.sum(table["uncompressed_bytes"]).as_py())
        self.records_per_batch += np.bincount(
            np.minimum(records, RECORDS_PER_BATCH_MAX), minlength=RECORDS_PER_BATCH_MAX + 1
        )
        self.fill += np.bincount(
            np.minimum(sizes * 100 // batch_size, FILL_MAX_PERCENT), minlength=FILL_MAX_PERCENT + 1
        )
        for row in table.group_by("codec").aggregate([("size_bytes", "sum")]).to_pylist():
            self.codecs[row["codec"]] += row["size_bytes_sum"]
        self.log_append_batches += pc.sum(table["timestamp_type"]).as_py()
        self._seen(table)

    def _seen(self, table: pa.Table) -> None:
        first, last = (
            pc.min(table["base_timestamp"]).cast(pa.int64()).as_py(),
            pc.max(table["max_timestamp"]).cast(pa.int64()).as_py(),
        )
        if first is not None:
            self.first_ms = first // 1000 if self.first_ms is None else min(self.first_ms, first // 1000)
        if last is not None:
            self.last_ms = last // 1000 if self.last_ms is None else max(self.last_ms, last // 1000)


def tally_batches(consumer: Consumer, window: Window, batch_size: int, said: Said) -> BatchTally:
    """The totals of the window's batches, from their headers alone. `batch_size`: bytes of a full
    batch; `said` is called with progress."""
    empty = np.zeros(RECORDS_PER_BATCH_MAX + 1, np.int64), np.zeros(FILL_MAX_PERCENT + 1, np.int64)
    tally = BatchTally({of: PartitionTally() for of in window.ranges}, *empty)
    for of, (start, end) in tenths(window.ranges, "reading batches", said):
        for table in consumer.read_batches(of, start, end, measure_ratio=True):
            tally.add(of, table, batch_size)
    return tally


def tally_records(
    consumer: Consumer, window: Window, kept: Window, said: Said
) -> tuple[HotKeys, list[pa.Table]]:
    """The hottest keys, and the records within `kept`, a part of the window, as tables in no
    order."""
    keys, tables = HotKeys(), []
    for of, (start, end) in tenths(window.ranges, "reading records", said):
        for table in consumer.read_range(of, start, end, columns=_COLUMNS):
            key, value = table["key"], table["value"]
            sizes = pc.add(
                pc.fill_null(pc.binary_length(key), 0), pc.fill_null(pc.binary_length(value), 0)
            ).cast(pa.int64())
            keys.add(of.partition, key, sizes)
            if table["offset"][-1].as_py() >= kept.ranges[of][0]:
                tables.append(table.filter(pc.greater_equal(table["offset"], kept.ranges[of][0])))
    return keys, tables


def in_order(tables: Sequence[pa.Table], records_per_s: float | None) -> Records | None:
    """The records in the order of `submission_order`, at the times that their timestamps say, or at
    an even rate."""
    if not tables:
        return None
    table = pa.concat_tables(tables).combine_chunks()
    times_ms = table["timestamp"].cast(pa.int64()).to_numpy() // 1000
    order = submission_order(table["partition"].to_numpy(), times_ms)
    sets = columns_from_arrow(
        table.select(["key", "value", "headers", "timestamp"]).take(pa.array(order)).combine_chunks()
    )
    if len(sets) != 1:  # Arrow breaks what exceeds 2 GiB into chunks; REPLAY_MAX_BYTES is far below
        raise AssertionError("records for the replay in several chunks")
    columns = sets[0][0]
    if records_per_s is None:
        arrivals_ms = np.minimum(np.diff(times_ms[order], prepend=times_ms[order[0]]), GAP_MAX_MS).cumsum()
    else:
        arrivals_ms = (np.arange(columns.count) * (1000 / records_per_s)).astype(np.int64)
    return Records(columns, arrivals_ms)


def submission_order(
    partitions: npt.NDArray[np.int32], times_ms: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """int64[n]: the rows by time; `partitions` and `times_ms` int[n], rows of one partition in the
    order of their offsets.

    The order of one millisecond's records in different partitions is not known. They are
    interleaved evenly: a partition's k-th of n comes where k / n of the millisecond's records have
    come, as if every partition had its share all the time.
    """
    by_partition = np.lexsort((times_ms, partitions))
    new_run = np.diff(partitions[by_partition], prepend=-1) != 0
    new_run |= np.diff(times_ms[by_partition], prepend=-1) != 0
    begins = np.flatnonzero(new_run)
    lengths = np.diff(begins, append=len(times_ms))
    place = (np.arange(len(times_ms)) - np.repeat(begins, lengths) + 0.5) / np.repeat(lengths, lengths)
    places = np.empty(len(times_ms))
    places[by_partition] = place
    return np.lexsort((partitions, places, times_ms))


def tenths(
    ranges: Mapping[TopicPartition, tuple[int, int]], what: str, said: Said
) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
    """The ranges one by one. `said` is called with the progress of `what`, ten times at most."""
    reported = -1
    for number, item in enumerate(ranges.items()):
        if number * 10 // len(ranges) > reported:
            reported = number * 10 // len(ranges)
            said(f"{what}: partition {number} of {len(ranges)}")
        yield item
