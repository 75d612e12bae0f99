"""Custom partitioners: plain callables over columns, or over one record if marked with `per_record`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairlead.base.errors import InvalidRecord
from fairlead.partitioning.load import PartitionArray

if TYPE_CHECKING:
    from fairlead.records import BinaryColumn, RecordColumns

CustomPartitioner = Callable[[str, Any, Any, int], Any]
"""`(topic, keys, values, partition_count)`: over columns, `keys` and `values` are `BinaryColumn` or None (all null) and the
answer is n integers; marked `per_record`, they are `bytes` or None of one record and the answer is one integer. An answer
is a partition, 0 to `partition_count - 1`, or -1: decide for me, by key or by policy."""
_F = TypeVar("_F", bound=CustomPartitioner)
_MARK = "partitions_one_record"


def per_record(partitioner: _F) -> _F:
    """Decorator: mark `partitioner` as one that is called for each record, with `bytes` or None as key and value. Slow, but simple."""
    setattr(partitioner, _MARK, True)
    return partitioner


def is_per_record(partitioner: CustomPartitioner) -> bool:
    """True if `partitioner`, or the class it is an instance of, is marked with `per_record`."""
    return bool(getattr(partitioner, _MARK, False))


def call_custom(
    partitioner: CustomPartitioner, topic: str, columns: RecordColumns, partition_count: int, explicit: PartitionArray | None
) -> PartitionArray:
    """int32[n], a partition or -1 for every record, as `partitioner` answers.

    One over columns sees all n records; one per record is not called where `explicit` (int32[n], -1: none) has a
    partition and -1 stands there. Raises InvalidRecord, naming the partitioner, if it answers anything else than
    n integers of -1 to `partition_count - 1`; what `partitioner` itself raises passes through.
    """
    name = getattr(partitioner, "__qualname__", type(partitioner).__qualname__)
    asked: Sequence[int] = range(columns.count)
    if is_per_record(partitioner):
        asked = asked if explicit is None else np.flatnonzero(explicit < 0).tolist()
        keys, values = _values(columns.keys, asked), _values(columns.values, asked)
        answer: Any = [partitioner(topic, key, value, partition_count) for key, value in zip(keys, values, strict=True)]
    else:
        answer = partitioner(topic, columns.keys, columns.values, partition_count)
    given = _integers(answer, len(asked), name, topic)
    wrong = np.flatnonzero((given < -1) | (given >= partition_count))
    if len(wrong):
        raise InvalidRecord(
            f"partitioner {name} put record {asked[wrong[0]]} on partition {given[wrong[0]]} of topic {topic!r}, which has partitions 0 to "
            f"{partition_count - 1}; answer one of those, or -1 to leave the choice to the producer"
        )
    found = np.full(columns.count, -1, dtype=np.int32)
    found[asked] = given
    return found


def _integers(answer: Any, count: int, name: str, topic: str) -> npt.NDArray[Any]:
    """`answer` as an array [count] of integers, or InvalidRecord."""
    try:
        array = np.asarray(answer)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if not count and not array.size:
        return np.empty(0, dtype=np.int64)
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidRecord(
            f"partitioner {name} answered {type(answer).__name__} of shape {array.shape} and type {array.dtype} for topic {topic!r}; "
            f"expected {count} integers, one partition per record"
        )
    return array


def _values(column: BinaryColumn | None, records: Sequence[int]) -> list[bytes | None]:
    """The values of `records` in `column`, None for nulls."""
    if column is None:
        return [None] * len(records)
    return [column.item(record) for record in records]
