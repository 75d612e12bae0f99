"""Counting sort: the records of a column grouped by partition, in their order of arrival within
each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.kernel import kernel, read_only
from fairlead_kafka.partitioning.load import PartitionArray


def counting_sort(
    partitions: PartitionArray, partition_count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Group n records: `order` int64[n] and `bounds` int64[partition_count + 1], stable.

    Partition p's records are `order[bounds[p]:bounds[p + 1]]`, ascending. Raises ValueError if a
    partition is not in 0 to `partition_count - 1`: give the records that have none yet (-1) their
    partition first, by `place_unkeyed`.
    """
    if len(partitions) and not (partitions.min() >= 0 and partitions.max() < partition_count):
        raise ValueError(
            f"partitions run from {partitions.min()} to {partitions.max()}, expected 0 to "
            f"{partition_count - 1}"
        )
    order = np.empty(len(partitions), dtype=np.int64)
    bounds = np.zeros(partition_count + 1, dtype=np.int64)
    sort_by_partition(read_only(partitions), order, bounds)
    return order, bounds


@kernel
def sort_by_partition(
    partitions: PartitionArray, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]
) -> None:
    """Fill `order` int64[n] with the records' numbers, grouped by partition and ascending in each,
    and `bounds` int64[count + 1] with where each partition's begin and end in it. Assumes zeros in
    `bounds`, and partitions int32[n] in 0 to count - 1."""
    order[:] = np.argsort(partitions, kind="stable")
    bounds[1:] = np.cumsum(np.bincount(partitions, minlength=len(bounds) - 1))
