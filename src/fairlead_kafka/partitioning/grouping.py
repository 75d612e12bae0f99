"""Counting sort: the records of a column grouped by partition, in their order of arrival within each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.kernel import READ_INT32, WRITE_INT64, kernel, read_only, signature
from fairlead_kafka.partitioning.load import PartitionArray


def counting_sort(partitions: PartitionArray, partition_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Group n records: `order` int64[n] and `bounds` int64[partition_count + 1], stable.

    Partition p's records are `order[bounds[p]:bounds[p + 1]]`, ascending. Raises ValueError if a partition is not in
    0 to `partition_count - 1`: give the records that have none yet (-1) their partition first, by `place_unkeyed`.
    """
    if len(partitions) and not (partitions.min() >= 0 and partitions.max() < partition_count):
        raise ValueError(f"partitions run from {partitions.min()} to {partitions.max()}, expected 0 to {partition_count - 1}")
    order = np.empty(len(partitions), dtype=np.int64)
    bounds = np.zeros(partition_count + 1, dtype=np.int64)
    sort_by_partition(read_only(partitions), order, bounds)
    return order, bounds


def _sort_by_partition_plain(partitions: PartitionArray, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> None:
    order[:] = np.argsort(partitions, kind="stable")
    bounds[1:] = np.cumsum(np.bincount(partitions, minlength=len(bounds) - 1))


@kernel(signature("void", READ_INT32, WRITE_INT64, WRITE_INT64), plain=_sort_by_partition_plain)
def sort_by_partition(partitions: PartitionArray, order: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64]) -> None:
    """Fill `order` int64[n] and `bounds` int64[count + 1], which must be zero; partitions int32[n] must be in 0 to count - 1."""
    for record in range(partitions.shape[0]):
        bounds[partitions[record] + 1] += 1
    for partition in range(1, bounds.shape[0]):
        bounds[partition] += bounds[partition - 1]
    # bounds[p] serves as the next free slot of p and so ends as bounds[p + 1]; shifting it back restores it.
    for record in range(partitions.shape[0]):
        partition = partitions[record]
        order[bounds[partition]] = record
        bounds[partition] += 1
    for partition in range(bounds.shape[0] - 1, 0, -1):
        bounds[partition] = bounds[partition - 1]
    bounds[0] = 0
