"""Acquired records as Arrow tables, and acknowledgements from a column. Arrow is loaded with this
module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.decoding import ALL_COLUMNS
from fairlead_kafka.consumer.share.acknowledging import UNDECIDED, AcknowledgeType, Int8
from fairlead_kafka.consumer.share.chunk import Decoded
from fairlead_kafka.consumer.share.inflight import numbers_of
from fairlead_kafka.consumer.tables import to_batch
from fairlead_kafka.records import MESSAGE_SCHEMA
from fairlead_kafka.records.arrays import Int64

DELIVERY_COUNT = "delivery_count"
SHARE_COLUMNS = (*ALL_COLUMNS, DELIVERY_COUNT)
SHARE_SCHEMA = MESSAGE_SCHEMA.append(pa.field(DELIVERY_COUNT, pa.int16()))
"""Schema of the tables: that of a consumer's, and how often each record was delivered."""
_PLACE = ("topic", "partition", "offset")


def share_batches(
    partition: TopicPartition, decoded: Decoded, columns: Sequence[str]
) -> list[pa.RecordBatch]:
    """The records of a chunk that are wanted, as record batches with these columns."""
    schema = pa.schema([SHARE_SCHEMA.field(name) for name in columns])
    own = [name for name in columns if name != DELIVERY_COUNT]
    found: list[pa.RecordBatch] = []
    for records, wanted, counts in decoded.parts:
        batch = to_batch(partition, records, own or ["offset"], 0, records.count)
        arrays = {name: batch.column(name) for name in own} | {DELIVERY_COUNT: pa.array(counts, pa.int16())}
        made = pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)
        found.append(made if wanted.all() else made.filter(pa.array(wanted)))
    return found


def share_table(batches: Sequence[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    """Record batches with these columns as a table; it may have no rows."""
    return pa.Table.from_batches(batches, pa.schema([SHARE_SCHEMA.field(name) for name in columns]))


def decisions_of(table: pa.Table, column: str) -> Iterator[tuple[TopicPartition, Int64, Int8]]:
    """Acknowledgements of a table's rows: (partition, offsets, types), without rows where the
    column is null. UsageError if a column is missing or has values of another type."""
    missing = [name for name in (*_PLACE, column) if name not in table.column_names]
    if missing:
        raise UsageError(
            f"acknowledge_table: the table has no column {', '.join(missing)}; it needs {', '.join(_PLACE)} "
            f"as poll_table gives them, and {column}"
        )
    types = _types(table.column(column))
    chosen = types != UNDECIDED
    topics = table.column("topic").combine_chunks().dictionary_encode()
    codes = topics.indices.to_numpy(zero_copy_only=False)
    partitions = np.asarray(table.column("partition").to_numpy(), np.int64)
    offsets = np.asarray(table.column("offset").to_numpy(), np.int64)
    for code, name in enumerate(topics.dictionary.to_pylist()):
        of_topic = chosen & (codes == code)
        for number in np.unique(partitions[of_topic]).tolist():
            rows = of_topic & (partitions == number)
            yield TopicPartition(name, int(number)), offsets[rows], types[rows]


def _types(column: pa.ChunkedArray) -> Int8:
    """Types of acknowledgements from texts or integers; UNDECIDED for null. UsageError for other
    values."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = pc.cast(column, kind.value_type)
        kind = kind.value_type
    if pa.types.is_integer(kind):
        found = np.asarray(column.fill_null(UNDECIDED).to_numpy())
        known = np.isin(found, [UNDECIDED, *AcknowledgeType])
        if not known.all() or (found == UNDECIDED).sum() > column.null_count:
            wrong = found[~known].tolist()[:1] or [UNDECIDED]
            allowed = ", ".join(f"{each.value} ({each.name.lower()})" for each in AcknowledgeType)
            raise UsageError(f"acknowledge type {wrong[0]} does not exist; there are {allowed}")
        return found.astype(np.int8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = column.combine_chunks().dictionary_encode()
        numbers = numbers_of(encoded.dictionary.to_pylist())
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        texts: Int8 = np.append(numbers, np.int8(UNDECIDED))[codes]
        return texts
    raise UsageError(
        f"acknowledge types are of type {kind}; give texts, such as accept, or integers, such as "
        f"{AcknowledgeType.ACCEPT.value}"
    )
