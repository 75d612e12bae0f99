"""Conversion of chunks to Arrow tables. Arrow is loaded with this module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.decoding import decode_chunk, named, wanted_count
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.records import (
    HEADER_SCHEMA,
    MESSAGE_SCHEMA,
    BinaryColumn,
    DecodedRecords,
    arrow_array,
    headers_of,
    pooled,
    repeated_text,
)

_MICROSECONDS_PER_MS = 1000
BATCH_SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), *HEADER_SCHEMA])
"""Schema of batch headers: topic and partition, and `records.HEADER_SCHEMA`."""


def chunk_batch(chunk: Chunk, columns: Sequence[str], *, check_crcs: bool) -> tuple[pa.RecordBatch, int]:
    """The wanted records of a chunk as a record batch, and the offset after them. DecodeError names
    partition and offset."""
    decoded = decode_chunk(chunk, columns, check_crcs=check_crcs, room=pooled)
    return to_batch(chunk.partition, decoded, columns, 0, wanted_count(chunk, decoded)), decoded.next_offset


def chunk_headers(chunk: Chunk, *, measure: bool, check_crcs: bool) -> pa.RecordBatch:
    """A row of `BATCH_SCHEMA` per batch of a chunk, none of its records decoded. DecodeError names
    partition and offset."""
    try:
        headers = headers_of(chunk.data, chunk.start, chunk.end, measure=measure, check_crcs=check_crcs)
    except DecodeError as error:
        raise named(error, chunk) from error
    count = headers.num_rows
    partition = np.full(count, chunk.partition.partition, np.int32)
    names = [repeated_text(chunk.partition.topic, count), arrow_array(partition, pa.int32())]
    return pa.RecordBatch.from_arrays([*names, *headers.columns], schema=BATCH_SCHEMA)


def to_batch(
    partition: TopicPartition, decoded: DecodedRecords, columns: Iterable[str], start: int, stop: int
) -> pa.RecordBatch:
    """Records `start` to `stop` (indexes) as an Arrow record batch with `columns`.

    Keys and values are not copied.
    """
    makers = {
        "topic": lambda: repeated_text(partition.topic, decoded.count),
        "partition": lambda: arrow_array(np.full(decoded.count, partition.partition, np.int32), pa.int32()),
        "offset": lambda: arrow_array(decoded.offsets, pa.int64()),
        "timestamp": lambda: arrow_array(
            decoded.timestamps_ms * _MICROSECONDS_PER_MS, pa.timestamp("us", tz="UTC")
        ),
        "timestampType": lambda: arrow_array(decoded.timestamp_types, pa.int32()),
        "key": lambda: _binary(decoded.keys, decoded.count),
        "value": lambda: _binary(decoded.values, decoded.count),
        "headers": lambda: _headers(decoded),
    }
    names = list(columns)
    schema = pa.schema([MESSAGE_SCHEMA.field(name) for name in names])
    batch = pa.RecordBatch.from_arrays([makers[name]() for name in names], schema=schema)
    return batch if (start, stop) == (0, decoded.count) else batch.slice(start, stop - start)


def headers_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Record batches of `chunk_headers` as a table; it may have no rows."""
    return pa.Table.from_batches(batches, BATCH_SCHEMA)


def table_of(batches: Sequence[pa.RecordBatch], columns: Iterable[str]) -> pa.Table:
    """Record batches with these columns as a table; it may have no rows."""
    return pa.Table.from_batches(
        batches, None if batches else pa.schema([MESSAGE_SCHEMA.field(name) for name in columns])
    )


def _binary(column: BinaryColumn | None, count: int) -> pa.Array:
    return pa.nulls(count, pa.binary()) if column is None else column.to_arrow()


def _headers(decoded: DecodedRecords) -> pa.Array:
    if decoded.headers is None:
        return pa.nulls(decoded.count, MESSAGE_SCHEMA.field("headers").type)
    return decoded.headers.to_arrow()
