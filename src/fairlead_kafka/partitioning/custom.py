"""Custom partitioners: plain callables over columns, or over one record if marked with
`per_record`."""

from __future__ import annotations

import traceback
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import FairleadError, InvalidRecord
from fairlead_kafka.partitioning.load import PartitionArray, SizeArray

if TYPE_CHECKING:
    from fairlead_kafka.records import BinaryColumn, RecordColumns

CustomPartitioner = Callable[..., object]
"""`(topic, keys, values, partition_count)`: over columns, `keys` and `values` are `BinaryColumn` or
None (all null) and the answer is n integers; marked `per_record`, they are `bytes` or None of one
record and the answer is one integer. An answer is a partition, 0 to `partition_count - 1`, or -1:
decide for me, by key or by policy."""
_F = TypeVar("_F", bound=CustomPartitioner)
_MARK = "partitions_one_record"


def per_record(partitioner: _F) -> _F:
    """Decorator: mark `partitioner` as one that is called for each record, with `bytes` or None as
    key and value. Slow, but simple."""
    setattr(partitioner, _MARK, True)
    return partitioner


def is_per_record(partitioner: CustomPartitioner) -> bool:
    """True if `partitioner`, or the class it is an instance of, is marked with `per_record`."""
    return bool(getattr(partitioner, _MARK, False))


def new_batch_hook(partitioner: CustomPartitioner | None) -> Callable[[str, int, int], object] | None:
    """The partitioner's `on_new_batch(topic, previous_partition, partition_count)`, if it has one
    (KIP-480's `Partitioner.onNewBatch`).

    Called when a record would open a batch on a partition, be that `partitioner`'s own choice or an
    explicit one. A partitioner of single records is then asked once more for this record, and the
    second answer holds. One over columns has answered for all of them by then; it is told of each
    batch that they open, before they are appended.
    """
    hook = getattr(partitioner, "on_new_batch", None)
    return hook if callable(hook) else None


class OpenBatches:
    """Counts the new batches that n records would open, by their sizes and the room in open
    batches."""

    def __init__(self, sizes_bytes: SizeArray, room_bytes: Callable[[int], int], limit_bytes: int) -> None:
        self._sizes_bytes = sizes_bytes
        self._room_bytes = room_bytes
        self._limit_bytes = limit_bytes
        self._rooms: dict[int, int] = {}

    def opens(self, partition: int, record: int) -> bool:
        """True if this record would open a batch on the partition, given those that were appended
        so far."""
        room = self._rooms.get(partition)
        if room is None:
            room = self._rooms[partition] = self._room_bytes(partition)
        return int(self._sizes_bytes[record]) > room

    def append(self, partition: int, record: int) -> None:
        """Note that the record goes to the partition, so that there is less room in its open
        batch."""
        room = self._limit_bytes if self.opens(partition, record) else self._rooms[partition]
        self._rooms[partition] = max(room - int(self._sizes_bytes[record]), 0)

    def opened(self, partition: int, records: SizeArray) -> int:
        """How many batches records (numbers in ascending order) would open on the partition."""
        ends = np.concatenate(([0], np.cumsum(self._sizes_bytes[records]))).tolist()
        start = max(bisect_right(ends, self._room_bytes(partition)) - 1, 0)
        count = 0
        while start < len(records):
            start = max(bisect_right(ends, ends[start] + self._limit_bytes, start) - 1, start + 1)
            count += 1
        return count


def call_custom(
    partitioner: CustomPartitioner,
    topic: str,
    columns: RecordColumns,
    partition_count: int,
    explicit: PartitionArray | None,
    batches: OpenBatches | None = None,
) -> PartitionArray:
    """int32[n], a partition or -1 for every record, as `partitioner` answers.

    One over columns sees all n records; one per record is not called where `explicit` (int32[n],
    -1: none) has a partition and -1 stands there. Raises InvalidRecord, naming the partitioner, if
    it answers anything else than n integers of -1 to `partition_count - 1`. With `batches`, its
    `on_new_batch` is called (`new_batch_hook`). What `partitioner` itself raises is the cause of an
    InvalidRecord that says where.
    """
    try:
        return _asked(partitioner, topic, columns, partition_count, explicit, batches)
    except FairleadError:
        raise
    except Exception as error:
        raise _failed(columns.count, topic, error) from error.with_traceback(None)


def _failed(count: int, topic: str, error: Exception) -> InvalidRecord:
    """The InvalidRecord to raise for `error`, which a partitioner raised for `count` records of
    `topic`.

    It names the file and line as text. Handles of records keep the InvalidRecord, so it must not
    keep the frames that the partitioner's exception came through.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    error.add_note("".join(traceback.format_exception(error)).rstrip())
    return InvalidRecord(
        f"the partitioner failed for {count} record{'' if count == 1 else 's'} of topic {topic!r}: "
        f"{error!r}{where}"
    )


def _asked(
    partitioner: CustomPartitioner,
    topic: str,
    columns: RecordColumns,
    partition_count: int,
    explicit: PartitionArray | None,
    batches: OpenBatches | None,
) -> PartitionArray:
    name = getattr(partitioner, "__qualname__", type(partitioner).__qualname__)
    asked: Sequence[int] = range(columns.count)
    hook = new_batch_hook(partitioner) if batches is not None else None
    if hook is not None and batches is not None and is_per_record(partitioner):
        answer: object = _ask_twice(partitioner, hook, topic, columns, partition_count, explicit, batches)
    elif is_per_record(partitioner):
        asked = asked if explicit is None else np.flatnonzero(explicit < 0).tolist()
        keys, values = _values(columns.keys, asked), _values(columns.values, asked)
        answer = [
            partitioner(topic, key, value, partition_count) for key, value in zip(keys, values, strict=True)
        ]
    else:
        answer = partitioner(topic, columns.keys, columns.values, partition_count)
    given = _integers(answer, len(asked), name, topic)
    wrong = np.flatnonzero((given < -1) | (given >= partition_count))
    if len(wrong):
        raise InvalidRecord(
            f"partitioner {name} put record {asked[wrong[0]]} on partition {given[wrong[0]]} of topic "
            f"{topic!r}, which has partitions 0 to "
            f"{partition_count - 1}; answer one of those, or -1 to leave the choice to the producer"
        )
    found = np.full(columns.count, -1, dtype=np.int32)
    found[asked] = given
    if hook is not None and batches is not None and not is_per_record(partitioner):
        bound = found if explicit is None else np.where(explicit >= 0, explicit, found)
        for partition in np.unique(bound[bound >= 0]).tolist():
            for _ in range(batches.opened(partition, np.flatnonzero(bound == partition))):
                hook(topic, partition, partition_count)
    return found


def _ask_twice(
    partitioner: CustomPartitioner,
    hook: Callable[[str, int, int], object],
    topic: str,
    columns: RecordColumns,
    partition_count: int,
    explicit: PartitionArray | None,
    batches: OpenBatches,
) -> list[object]:
    """Each record's partition: its explicit one, or a per-record partitioner's answer, asked for as
    KIP-480 has it (`KafkaProducer.doSend` of 2.4).

    Before a record opens a batch, `hook` (the partitioner's `on_new_batch`) is called and the
    partitioner is asked again for this record; the second answer holds.
    """
    answers: list[object] = []
    for record in range(columns.count):
        given = -1 if explicit is None else int(explicit[record])
        key, value = (
            None if column is None else column.item(record) for column in (columns.keys, columns.values)
        )
        chosen = given if given >= 0 else partitioner(topic, key, value, partition_count)
        if isinstance(chosen, (int, np.integer)) and 0 <= chosen < partition_count:
            if batches.opens(int(chosen), record):
                hook(topic, int(chosen), partition_count)
                chosen = given if given >= 0 else partitioner(topic, key, value, partition_count)
            if isinstance(chosen, (int, np.integer)) and 0 <= chosen < partition_count:
                batches.append(int(chosen), record)
        answers.append(chosen)
    return answers


def _integers(answer: object, count: int, name: str, topic: str) -> npt.NDArray[np.integer]:
    """A partitioner's `answer` as an array [count] of integers. InvalidRecord if it is none."""
    try:
        array = np.asarray(answer)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=np.float64)
    if not count and not array.size:
        return np.empty(0, dtype=np.int64)
    if array.shape != (count,) or not np.issubdtype(array.dtype, np.integer):
        raise InvalidRecord(
            f"partitioner {name} answered {type(answer).__name__} of shape {array.shape} and type "
            f"{array.dtype} for topic {topic!r}; "
            f"expected {count} integers, one partition per record"
        )
    return array


def _values(column: BinaryColumn | None, records: Sequence[int]) -> list[bytes | None]:
    """The values of `records` in `column`, None for nulls."""
    if column is None:
        return [None] * len(records)
    return [column.item(record) for record in records]
