"""The hottest keys of any number of records, in bounded memory: a Misra-Gries summary, updated a
column at a time.

Each column is counted by Arrow and added to the counts held. If these are more than the summary has
room for, the count of the first one that does not fit is subtracted from all of them, and keys with
nothing left are dropped. A count is then too low by at most what was subtracted in all, `error`,
which is at most records / capacity; a key with more records than that is certainly held. Summaries
that merge this way keep the bound (Agarwal et al., Mergeable Summaries, 2012), which is why whole
columns may be added. As long as there are no more keys than room all counts are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

CAPACITY = 10_000
"""Keys held: a key with a ten-thousandth of the records is not missed."""
KEY_MAX_BYTES = 256
"""Longer keys count by their first so many bytes."""
_SUMS = [("records", "sum"), ("size_bytes", "sum"), ("partition_min", "min"), ("partition_max", "max")]
_NAMES = ["key", "records", "size_bytes", "partition_min", "partition_max"]


class HotKey(NamedTuple):
    """One key; `records` and `size_bytes` (of keys and values) are lower bounds. `partition` None:
    it is in several."""

    key: bytes
    records: int
    size_bytes: int
    partition: int | None


class HotKeys:
    """Counts the keys with most records in bounded memory, by a Misra-Gries summary. `records` were
    added in all, `unkeyed` of them without a key."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._held: pa.Table | None = None
        self.records = 0
        self.unkeyed = 0
        self.error = 0
        """The most records by which the count of a key may be too low."""

    @property
    def distinct(self) -> int:
        """Number of keys that are counted: all distinct keys if `error` is 0."""
        return 0 if self._held is None else int(self._held.num_rows)

    def add(self, partition: int, keys: pa.ChunkedArray, sizes_bytes: pa.ChunkedArray) -> None:
        """Count records of one partition: `keys` binary, null for none; `sizes_bytes` int64, of
        each record's key and value."""
        self.records += len(keys)
        self.unkeyed += keys.null_count
        keyed = pa.table({"key": pc.binary_slice(keys, 0, KEY_MAX_BYTES), "size_bytes": sizes_bytes}).filter(
            keys.is_valid()
        )
        if not keyed.num_rows:
            return
        counted = keyed.group_by("key").aggregate([("size_bytes", "count"), ("size_bytes", "sum")])
        placed = pa.repeat(pa.scalar(partition, pa.int32()), counted.num_rows)
        new = pa.table(
            [counted["key"], counted["size_bytes_count"], counted["size_bytes_sum"], placed, placed],
            names=_NAMES,
        )
        merged = (
            new
            if self._held is None
            else pa.concat_tables([self._held, new]).group_by("key").aggregate(_SUMS).rename_columns(_NAMES)
        )
        self._held = self._fitting(merged)

    def _fitting(self, counted: pa.Table) -> pa.Table:
        if counted.num_rows <= self._capacity:
            return counted
        order = pc.select_k_unstable(counted, k=self._capacity + 1, sort_keys=[("records", "descending")])
        taken_off = counted["records"][order[-1].as_py()].as_py()
        self.error += taken_off
        kept = counted.filter(pc.greater(counted["records"], taken_off))
        left = pc.subtract(kept["records"], taken_off)
        return kept.set_column(kept.schema.get_field_index("records"), "records", left)

    def hottest(self, count: int) -> list[HotKey]:
        """The keys with most records; of keys with equally many the lesser one first."""
        if self._held is None:
            return []
        rows = (
            self._held.sort_by([("records", "descending"), ("key", "ascending")]).slice(0, count).to_pylist()
        )
        return [
            HotKey(
                row["key"],
                row["records"],
                row["size_bytes"],
                row["partition_min"] if row["partition_min"] == row["partition_max"] else None,
            )
            for row in rows
        ]


def shown(key: bytes) -> str:
    """A key as text, or in hexadecimal if it is not UTF-8."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return f"0x{key.hex()}"
    return text if text.isprintable() else f"0x{key.hex()}"
