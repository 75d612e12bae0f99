"""Partitions for a whole column of records: explicit, then custom, then by key, then by policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fairlead_kafka.base.errors import InvalidRecord
from fairlead_kafka.partitioning.custom import CustomPartitioner, OpenBatches, call_custom, new_batch_hook
from fairlead_kafka.partitioning.hashing import keyed_partitions
from fairlead_kafka.partitioning.load import (
    PartitionArray,
    Placement,
    SizeArray,
    TopicLoad,
    UnkeyedPolicy,
    expand,
)

if TYPE_CHECKING:
    from fairlead_kafka.records import BinaryColumn, RecordColumns

KeyedPartitions = Callable[["BinaryColumn", int], PartitionArray]
"""`(keys, partition_count)` to int32[n]: each key's partition, -1 where the policy decides."""


def assign_partitions(
    columns: RecordColumns,
    explicit: PartitionArray | None,
    partition_count: int,
    *,
    topic: str = "",
    ignore_keys: bool = False,
    custom: CustomPartitioner | None = None,
    keyed: KeyedPartitions = keyed_partitions,
    batches: OpenBatches | None = None,
) -> PartitionArray | None:
    """int32[n]: each record's partition, -1 where the unkeyed policy decides; None if it decides
    for all of them.

    For each record: its `explicit` partition (int32[n], -1: none); else what `custom` answers, if
    that is not -1; else what `keyed` has for its key over all `partition_count`, unless the key is
    null or `ignore_keys` (`KafkaProducer.partition`). `batches` lets `custom` be called for new
    batches (`new_batch_hook`). The empty key is a key (of
    `keyed_partitions`). None is answered without making an array
    whenever there is nothing to look at: no explicit partition, no custom partitioner and no keys.
    The answer may be `explicit` itself: don't write to it.

    Raises InvalidRecord if an explicit partition is outside -1 to `partition_count - 1`, naming the
    record and the topic, or if `custom` returns other than such numbers.
    """
    if explicit is not None:
        lowest, highest = (int(explicit.min()), int(explicit.max())) if len(explicit) else (-1, -1)
        if lowest < -1 or highest >= partition_count:
            raise _out_of_range(explicit, partition_count, topic)
        if lowest >= 0 and (batches is None or new_batch_hook(custom) is None):
            return explicit
        if highest < 0:
            explicit = None
    chosen = (
        call_custom(custom, topic, columns, partition_count, explicit, batches)
        if custom is not None
        else None
    )
    if explicit is not None:
        chosen = explicit if chosen is None else np.where(explicit >= 0, explicit, chosen)
    keys = None if ignore_keys else columns.keys
    if keys is not None and keys.valid is not None and not keys.valid.any():
        keys = None
    if chosen is None:
        return keyed(keys, partition_count) if keys is not None and columns.count else None
    if keys is not None and bool((chosen < 0).any()):
        return np.where(chosen < 0, keyed(keys, partition_count), chosen)
    return chosen if bool((chosen >= 0).any()) else None


def place_unkeyed(
    partitions: PartitionArray | None, sizes_bytes: SizeArray, policy: UnkeyedPolicy, load: TopicLoad
) -> Placement:
    """The full placement of n records: `partitions` as `assign_partitions` gave it, its -1 replaced
    by the policy's choice.

    If the policy decides for all (None), its `Placement` is passed on as it is: runs cost nothing
    per record. Otherwise an int32[n]. The policy is given the unkeyed records alone, in order, with
    `load` as it was before any of the n records; the ends of its quanta are then lost, so a batch
    that it left may linger. `partitions` is not changed.
    """
    if partitions is None:
        return policy.place(sizes_bytes, load)
    unkeyed = np.flatnonzero(partitions < 0)
    if not len(unkeyed):
        return partitions
    placed = partitions.copy()
    placed[unkeyed] = expand(policy.place(sizes_bytes[unkeyed], load), len(unkeyed))
    return placed


def _out_of_range(explicit: PartitionArray, partition_count: int, topic: str) -> InvalidRecord:
    record = int(np.flatnonzero((explicit < -1) | (explicit >= partition_count))[0])
    of_topic = f"topic {topic!r}" if topic else "the topic"
    return InvalidRecord(
        f"record {record} asks for partition {explicit[record]}, but {of_topic} has {partition_count} "
        "partitions, "
        f"0 to {partition_count - 1}; give one of those, or none (null) to let the key or the policy decide"
    )
