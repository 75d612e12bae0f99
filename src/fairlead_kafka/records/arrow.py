"""Conversion of Arrow tables to columns of records."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.base.ids import NO_PARTITION, NO_TIMESTAMP
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.records.arrays import Bytes, Int32, Int64
from fairlead_kafka.records.buffers import numpy_array, validity
from fairlead_kafka.records.columns import BinaryColumn, HeaderColumns, RecordColumns, all_null

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

MESSAGE_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER))),
    ]
)
"""Records consumed, as Spark's Kafka source names them (the order of columns is this project's)."""

_BINARY = "binary, string, their large and view forms, fixed_size_binary, or a dictionary of these"
_ACCEPTED = {
    "key": _BINARY,
    "value": _BINARY,
    "headers": "list<struct<key: string, value: binary>> (or large_list, list_view), or map<string, binary>",
    "timestamp": "timestamp of any unit, with a time zone or without (then UTC)",
    "partition": "an integer type; null or -1 leaves the choice to the partitioner",
}
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
"""The column that pandas makes of an index without a name. It is left out."""
_MS_PER_S = 1000
_UNITS_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def columns_from_arrow(table: pa.Table | pa.RecordBatch) -> list[tuple[RecordColumns, Int32 | None]]:
    """The columns of `table`, one set per chunk, each with its partitions (int32[], -1: none asked
    for) or None.

    Columns: `value` (required), `key`, `headers`, `timestamp`, `partition`; zero copy for binary
    and string data. Raises InvalidRecord naming the column, what was found and what is accepted.
    """
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise InvalidRecord(f"expected a pyarrow.Table or RecordBatch of records, got {type(table).__name__}")
    _check_names(table.schema)
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    return [_columns_from_batch(batch) for batch in batches if batch.num_rows]


def _check_names(schema: pa.Schema) -> None:
    names = schema.names
    for name in names:
        if _PANDAS_INDEX.fullmatch(name):
            continue  # row numbers of a frame before it was filtered or sorted: no part of records
        if name not in _ACCEPTED:
            near = nearest(name, _ACCEPTED)
            raise InvalidRecord(
                f"column {name!r} is unknown;{f' did you mean {near!r}?' if near else ''} a table of records "
                f"has the columns {', '.join(_ACCEPTED)}"
            )
        if names.count(name) > 1:
            raise InvalidRecord(f"column {name!r} appears {names.count(name)} times; it must be there once")
    if "value" not in names:
        found = ", ".join(names) or "none"
        raise InvalidRecord(
            f"column 'value' is missing (found: {found}); give {_ACCEPTED['value']} (a null type for all "
            "null)"
        )


def _columns_from_batch(batch: pa.RecordBatch) -> tuple[RecordColumns, Int32 | None]:
    names = batch.schema.names
    columns = {name: batch.column(name) for name in names}
    values = _binary("value", columns["value"])
    keys = _binary("key", columns["key"]) if "key" in columns else None
    headers = _headers(columns["headers"]) if "headers" in columns else None
    timestamps = _timestamps(columns["timestamp"]) if "timestamp" in columns else None
    partitions = _partitions(columns["partition"]) if "partition" in columns else None
    return RecordColumns(batch.num_rows, keys, values, headers, timestamps), partitions


def _refused(name: str, found: pa.DataType) -> InvalidRecord:
    return InvalidRecord(f"column {name!r} has type {found}; accepted: {_ACCEPTED[name.split('.')[0]]}")


def _binary(name: str, array: pa.Array) -> BinaryColumn | None:
    """A column of bytes from any binary-like array; None if every item is null. InvalidRecord if
    the array is damaged."""
    if array.null_count == len(array):
        return None
    types = pa.types
    if types.is_dictionary(array.type):
        # Arrow takes nothing out of views, as the dictionaries of Polars' Categorical and Enum are;
        # so they are made something else first.
        values = _plain(name, array.dictionary)
        try:
            array = values.take(array.indices)
        except pa.ArrowException as error:
            raise InvalidRecord(f"column {name!r} is not a sound Arrow array: {error}") from None
    array = _plain(name, array)
    column = _binary_column(array)
    _check_offsets(name, column)
    return column


def _plain(name: str, array: pa.Array) -> pa.Array:
    """A binary-like array as a binary or string array with offsets. Raises InvalidRecord for any
    other array."""
    types, kind = pa.types, array.type
    if types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
    elif types.is_string_view(kind):
        array = array.cast(pa.large_string())
    elif not (
        types.is_binary(kind)
        or types.is_string(kind)
        or types.is_large_binary(kind)
        or types.is_large_string(kind)
    ):
        raise _refused(name, kind)
    return array


def _check_offsets(name: str, column: BinaryColumn) -> None:
    """Raise InvalidRecord unless a column's offsets rise and lie within its data. Kernels trust
    them, and Arrow does not look at an array that came from elsewhere."""
    offsets = column.offsets
    if offsets[0] < 0 or offsets[-1] > len(column.data) or (offsets[1:] < offsets[:-1]).any():
        raise InvalidRecord(
            f"column {name!r} is not a sound Arrow array: its offsets do not ascend within its data"
        )


def _binary_column(array: pa.Array) -> BinaryColumn:
    """A column over the buffers of a binary, string, large_binary or large_string array."""
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    count, first = len(array), array.offset
    if count == 0 or offset_buffer is None:
        offsets = np.zeros(count + 1, np.int64)
    elif large:
        offsets = np.frombuffer(offset_buffer, np.int64, count + 1, first * 8)
    else:
        offsets = np.frombuffer(offset_buffer, np.int32, count + 1, first * 4).astype(np.int64)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    valid = validity(array) if array.null_count else None
    return BinaryColumn(data, offsets, valid)


def _headers(array: pa.Array) -> HeaderColumns | None:
    if array.null_count == len(array):
        return None
    kind = array.type
    entries, lengths = _entries(array)
    if not pa.types.is_struct(entries.type) or {field.name for field in entries.type} != {"key", "value"}:
        raise _refused("headers", kind)
    if len(entries) == 0:
        return None
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    header_keys = entries.field("key")
    if entries.null_count or header_keys.null_count:
        raise InvalidRecord(
            "column 'headers' has a header that is null or whose key is null; a header's key must be a string"
        )
    keys = _binary("headers.key", header_keys)
    values = _binary("headers.value", entries.field("value"))
    assert keys is not None
    return HeaderColumns(offsets, keys, values if values is not None else all_null(len(entries)))


def _entries(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.signedinteger]]:
    """The headers of all records one after the other, and how many each record has; a null list has
    none."""
    kind, types = array.type, pa.types
    if (
        types.is_list(kind)
        or types.is_large_list(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    ):
        lengths = array.value_lengths()
        return array.flatten(), np.where(
            validity(array), numpy_array(lengths, np.int32 if lengths.type.bit_width == 32 else np.int64), 0
        )
    if not types.is_map(kind):
        raise _refused("headers", kind)
    present = array.drop_null() if array.null_count else array
    bounds = numpy_array(present.offsets, np.int32)
    entries = pa.StructArray.from_arrays([present.keys, present.items], names=["key", "value"])
    sizes = np.zeros(len(array), np.int64)
    sizes[validity(array)] = np.diff(bounds)
    return entries.slice(bounds[0], bounds[-1] - bounds[0]), sizes


def _timestamps(array: pa.Array) -> Int64 | None:
    if array.null_count == len(array):
        return None
    if not pa.types.is_timestamp(array.type):
        raise _refused("timestamp", array.type)
    valid = validity(array)
    ticks: Int64 = np.where(valid, numpy_array(array, np.int64), 0)
    if ticks.min() < 0:
        raise InvalidRecord(
            "column 'timestamp' has a time before 1970; Kafka's timestamps are milliseconds since 1970, "
            "never negative"
        )
    if array.type.unit == "s":
        if ticks.max() > np.iinfo(np.int64).max // _MS_PER_S:
            raise InvalidRecord(
                "column 'timestamp' has a time that does not fit into 64 bits of milliseconds"
            )
        timestamps = ticks * _MS_PER_S
    else:
        timestamps = ticks // _UNITS_PER_MS[array.type.unit]
    if array.null_count:
        timestamps = np.where(valid, timestamps, NO_TIMESTAMP)
    return timestamps


def _partitions(array: pa.Array) -> Int32 | None:
    if array.null_count == len(array):
        return None
    if not pa.types.is_integer(array.type):
        raise _refused("partition", array.type)
    try:
        found = array.cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise InvalidRecord(f"column 'partition' has a number that is not a partition: {error}") from None
    partitions: Int32 = numpy_array(found, np.int32)
    if array.null_count:
        partitions = np.where(validity(found), partitions, np.int32(NO_PARTITION))
    if partitions.min() < NO_PARTITION:
        raise InvalidRecord(
            f"column 'partition' has {int(partitions.min())}; a partition is 0 or more, or -1 (or null) to "
            "leave it open"
        )
    return partitions


def pooled(size_bytes: int) -> Bytes:
    """Memory of `size_bytes` from Arrow's pool, which keeps pages that were freed: fresh pages for
    each answer were half the time of decoding it."""
    return np.frombuffer(pa.allocate_buffer(size_bytes), np.uint8) if size_bytes else np.empty(0, np.uint8)
