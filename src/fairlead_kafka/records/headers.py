"""Headers of record batches as rows of Arrow columns, without a look at any record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairlead_kafka.base.ids import NO_PRODUCER_ID
from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.records.arrays import Table
from fairlead_kafka.records.batch import records_of
from fairlead_kafka.records.buffers import arrow_array
from fairlead_kafka.records.decoder import scan_rows, verify_rows
from fairlead_kafka.records.faults import InflatesTooFar
from fairlead_kafka.records.layout import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER_SIZE_BYTES,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Compression,
    Data,
)
from fairlead_kafka.records.lists import column_from_list
from fairlead_kafka.records.parts import inflated_bytes

HEADER_SCHEMA = pa.schema(
    [
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records", pa.int32()),
        ("size_bytes", pa.int64()),
        ("uncompressed_bytes", pa.int64()),
        ("codec", pa.string()),
        ("base_timestamp", pa.timestamp("us", tz="UTC")),
        ("max_timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("base_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
    ]
)
"""A row per record batch. Sizes count the header's 61 bytes; `uncompressed_bytes` is the batch's
size without its codec, null if that was not measured. Timestamps are null if a batch has none;
`base_timestamp` also if compaction put there the time at which tombstones go (KIP-534). The
producer's fields are null without a producer id. `timestamp_type`: 0 create time, 1 log append."""

_FIELDS = {name: index for index, name in enumerate(BatchHeader._fields)}
_LAST_TIME_MS = 253_402_300_799_999
"""The end of the year 9999."""
_MICROSECONDS_PER_MS = 1000


def _codec_names(codecs: npt.NDArray[np.int64]) -> pa.Array:
    """The names of codecs by their numbers, an Arrow `string` array."""
    names = [Compression(number).name.encode() for number in codecs.tolist()]
    return column_from_list("codec", names).to_arrow(text=True)


def headers_of(
    data: Data, first: int, end: int, *, measure: bool = False, check_crcs: bool = True
) -> pa.RecordBatch:
    """The batches in `data` whose last offset lies in [first, end), as a record batch of
    `HEADER_SCHEMA`.

    By its last offset each batch belongs to one of several ranges that lie side by side, also where
    a range begins within a batch. With `measure` compressed batches are inflated, one at a time, to
    know their size. A last batch that is cut short is left out. DecodeError for garbage.
    """
    array = read_only(np.frombuffer(data, np.uint8)) if len(data) else read_only(np.empty(0, np.uint8))
    rows = scan_rows(array)
    last = rows[:, _FIELDS["base_offset"]] + rows[:, _FIELDS["last_offset_delta"]]
    rows = rows[(last >= first) & (last < end)]
    if check_crcs:
        verify_rows(array, rows)
    attributes = rows[:, _FIELDS["attributes"]]
    codecs = attributes & COMPRESSION_MASK
    horizon = attributes & DELETE_HORIZON_MASK != 0
    anonymous = rows[:, _FIELDS["producer_id"]] == NO_PRODUCER_ID
    columns: dict[str, pa.Array | npt.NDArray[np.generic]] = {
        "base_offset": rows[:, _FIELDS["base_offset"]],
        "last_offset": rows[:, _FIELDS["base_offset"]] + rows[:, _FIELDS["last_offset_delta"]],
        "records": rows[:, _FIELDS["count"]],
        "size_bytes": rows[:, _FIELDS["size_bytes"]],
        "uncompressed_bytes": _uncompressed(array, rows, codecs, measure),
        "codec": _codec_names(codecs),
        "base_timestamp": _times(rows[:, _FIELDS["base_timestamp_ms"]], horizon),
        "max_timestamp": _times(rows[:, _FIELDS["max_timestamp_ms"]]),
        "timestamp_type": (attributes & TIMESTAMP_TYPE_MASK != 0).astype(np.int64),
        "leader_epoch": rows[:, _FIELDS["partition_leader_epoch"]],
        "producer_id": arrow_array(rows[:, _FIELDS["producer_id"]], pa.int64(), ~anonymous),
        "producer_epoch": arrow_array(rows[:, _FIELDS["producer_epoch"]], pa.int64(), ~anonymous),
        "base_sequence": arrow_array(rows[:, _FIELDS["base_sequence"]], pa.int64(), ~anonymous),
        "is_transactional": attributes & TRANSACTIONAL_MASK != 0,
        "is_control": attributes & CONTROL_MASK != 0,
    }
    arrays = [_typed(columns[field.name], field.type) for field in HEADER_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=HEADER_SCHEMA)


def _typed(values: pa.Array | npt.NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    """An Arrow array of type `kind` made of `values`: an Arrow array, or NumPy's bools or
    numbers."""
    if isinstance(values, np.ndarray):
        values = arrow_array(values, pa.bool_() if values.dtype == np.bool_ else pa.int64())
    return values.cast(kind)


def _uncompressed(
    array: npt.NDArray[np.uint8], rows: Table, codecs: npt.NDArray[np.int64], measure: bool
) -> pa.Array:
    sizes = rows[:, _FIELDS["size_bytes"]].copy()
    compressed = codecs != 0
    if not measure:
        return arrow_array(sizes, pa.int64(), ~compressed)
    for row in np.flatnonzero(compressed).tolist():
        header = BatchHeader._make(rows[row].tolist())
        try:
            _, start, stop = records_of(array, header)
            sizes[row] = HEADER_SIZE_BYTES + stop - start
        except InflatesTooFar:
            sizes[row] = HEADER_SIZE_BYTES + inflated_bytes(array, header)
    return arrow_array(sizes, pa.int64())


def _times(times_ms: npt.NDArray[np.int64], unknown: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Milliseconds since 1970 as an Arrow array of microseconds. Null where `unknown` is true, or
    where the time is outside of Python's and Spark's calendars."""
    sound = (times_ms >= 0) & (times_ms <= _LAST_TIME_MS)
    if unknown is not None:
        sound &= ~unknown
    micros = np.where(sound, times_ms, 0) * _MICROSECONDS_PER_MS
    return arrow_array(micros, pa.timestamp("us", tz="UTC"), sound)
