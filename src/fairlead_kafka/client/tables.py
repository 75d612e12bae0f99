"""Tables to send: which objects are accepted, and which rows are checked together.

Loaded, with Arrow, for the first table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.base.ids import NO_TIMESTAMP
from fairlead_kafka.client.pieces import Part
from fairlead_kafka.records import RecordColumns, columns_from_arrow

_HINTS = {
    ("polars", "LazyFrame"): "; call .collect() on it first",
    ("pyspark", "DataFrame"): '; write it with .write.format("fairlead"), or call .toArrow() on it first',
    ("pandas", "Series"): '; call .to_frame("value") on it first',
    ("polars", "Series"): '; call .to_frame("value") on it first',
    ("builtins", "list"): "; pa.Table.from_pylist makes one of a list of dicts",
    ("builtins", "dict"): "; pa.table makes one of a dict of columns",
}
"""Advice for objects often taken for a table, by a type's top module and its name."""


def groups_of(table: object) -> Iterator[pa.Table]:
    """Split a table into groups, each checked as one before any of its rows is sent.

    A table or record batch is one group; of a stream each batch is one. A stream is a
    `pyarrow.RecordBatchReader` or any object with `__arrow_c_stream__`; it is read as its rows find
    room, and once. An object with `__arrow_c_array__` is a record batch. InvalidRecord for anything
    else.
    """
    if isinstance(table, pa.Table):
        yield table
    elif isinstance(table, pa.RecordBatch):
        yield pa.Table.from_batches([table])
    elif hasattr(table, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(table)
        except (pa.ArrowException, TypeError) as error:
            raise _no_stream(table, error) from None
        columns_from_arrow(
            pa.Table.from_batches([], reader.schema)
        )  # a schema that does not fit is refused before the first batch is read
        for batch in reader:
            yield pa.Table.from_batches([batch])
    elif hasattr(table, "__arrow_c_array__"):
        yield from groups_of(pa.record_batch(table))
    else:
        name = type(table).__name__
        raise InvalidRecord(
            "expected a pyarrow.Table, a RecordBatch, or anything with __arrow_c_stream__, not "
            f"{name}{_hint(table)}"
        )


def _hint(table: object) -> str:
    kind = type(table)
    return _HINTS.get((kind.__module__.partition(".")[0], kind.__name__), "")


def _no_stream(table: object, error: Exception) -> InvalidRecord:
    """The error for an object that offers a stream which is not one of record batches."""
    name = type(table).__name__
    if hint := _hint(table):
        return InvalidRecord(f"{name} is no stream of record batches{hint}")
    why = str(error)
    if len(error.args) > 1:  # pandas adds which column it is
        *reasons, where = map(str, error.args)
        column = re.search(r"column (.*) with type", where)
        named = where if column is None else f"column {column[1]!r}"
        why = (
            f"{named} has values of several types, or of one that Arrow has not ({'; '.join(reasons)}): "
            "make all of them bytes, or texts"
        )
    return InvalidRecord(f"{name} is not a stream of record batches: {why}")


def parts_of(group: pa.Table, now_ms: int) -> list[Part]:
    """Columns of a group, one set for each of its chunks.

    Records without a timestamp get `now_ms` (since 1970).
    """
    return [Part(_stamped(columns, now_ms), partitions) for columns, partitions in columns_from_arrow(group)]


def _stamped(columns: RecordColumns, now_ms: int) -> RecordColumns:
    given = columns.timestamps_ms
    stamps = (
        np.full(columns.count, now_ms, np.int64)
        if given is None
        else np.where(given == NO_TIMESTAMP, now_ms, given)
    )
    return RecordColumns(columns.count, columns.keys, columns.values, columns.headers, stamps)
