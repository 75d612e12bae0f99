"""Kafka's murmur2 over one key and over a column of keys, and the partitions that follow from it.

`org.apache.kafka.common.utils.Utils.murmur2`: 32 bits, seed 0x9747b28c, little-endian words, a
signed result. A key's partition is `(hash & 0x7fffffff) % partition_count`: the sign bit is masked
off, which is not the absolute value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.kernel import kernel, read_only
from fairlead_kafka.partitioning.load import PartitionArray

if TYPE_CHECKING:
    from fairlead_kafka.records import BinaryColumn

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK_32 = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_LONG_KEY_WORDS = 64
"""Reference only: keys of more words than this are hashed one by one, so that a few of them do not
cost a pass each."""
_ALL_VALID = read_only(np.empty(0, dtype=np.bool_))


def murmur2(key: bytes) -> int:
    """Kafka's hash of `key`, a signed 32-bit integer: `murmur2(b"21") == -973932308`."""
    size = len(key)
    whole = size & ~3
    state = (_SEED ^ size) & _MASK_32
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * _MULTIPLIER & _MASK_32
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK_32
        state = state * _MULTIPLIER & _MASK_32 ^ word
    if size > whole:
        state = (state ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _MASK_32
    state = (state ^ state >> 13) * _MULTIPLIER & _MASK_32
    state ^= state >> 15
    return state - (1 << 32) if state > _POSITIVE else state


def keyed_partition(key: bytes, partition_count: int) -> int:
    """The partition of one key among `partition_count` (1 or more)."""
    return (murmur2(key) & _POSITIVE) % partition_count


def murmur2_column(column: BinaryColumn) -> npt.NDArray[np.int32]:
    """int32[n]: `murmur2` of every value; a null hashes as the bytes its offsets span, usually
    none."""
    hashes = np.empty(len(column.offsets) - 1, dtype=np.int32)
    hash_keys(read_only(column.data), read_only(column.offsets), hashes)
    return hashes


def keyed_partitions(column: BinaryColumn, partition_count: int) -> PartitionArray:
    """int32[n]: each key's partition among all `partition_count` (available or not, as Kafka), -1
    for a null; `partition_count` >= 1. ValueError if `partition_count` is less than 1."""
    if partition_count < 1:
        raise ValueError(f"a topic has one partition or more, not {partition_count}")
    partitions = np.empty(len(column.offsets) - 1, dtype=np.int32)
    valid = _ALL_VALID if column.valid is None else read_only(column.valid)
    partition_keys(read_only(column.data), read_only(column.offsets), valid, partition_count, partitions)
    return partitions


@kernel
def hash_keys(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], hashes: npt.NDArray[np.int32]
) -> None:
    """`hashes[i]` = murmur2 of `data[offsets[i]:offsets[i + 1]]`; assumes hashes int32[n], offsets
    int64[n + 1] within `data`."""
    # All keys at once, word by word, those with the most words first so that each pass takes a
    # prefix.
    sizes = np.diff(offsets)
    words = sizes >> 2
    order = np.argsort(-words, kind="stable")
    long_count = int(np.count_nonzero(words > _LONG_KEY_WORDS))
    for record in order[:long_count].tolist():
        hashes[record] = murmur2(data[offsets[record] : offsets[record + 1]].tobytes())
    order = order[long_count:]
    starts, sizes, words = offsets[:-1][order], sizes[order], words[order]
    multiplier = np.uint32(_MULTIPLIER)
    state = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    for index in range(int(words[0]) if len(words) else 0):
        active = int(np.searchsorted(-words, -index, side="left"))
        octets = data[starts[:active, None] + (4 * index + np.arange(4))]
        word = np.ascontiguousarray(octets).view("<u4")[:, 0].astype(np.uint32) * multiplier
        word = (word ^ word >> np.uint32(24)) * multiplier
        state[:active] = state[:active] * multiplier ^ word
    for left in (3, 2, 1):
        rest = sizes & 3 >= left
        state[rest] ^= data[(starts + 4 * words + left - 1)[rest]].astype(np.uint32) << np.uint32(
            8 * (left - 1)
        )
    tail = sizes & 3 > 0
    state[tail] *= multiplier
    state = (state ^ state >> np.uint32(13)) * multiplier
    hashes[order] = (state ^ state >> np.uint32(15)).view(np.int32)


@kernel
def partition_keys(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_],
    partition_count: int,
    partitions: npt.NDArray[np.int32],
) -> None:
    """`partitions[i]` = partition of key i, -1 if `valid[i]` is false; an empty `valid` means that
    no key is null.

    Assumes partitions int32[n], offsets int64[n + 1] within `data`, valid bool[n] or bool[0], and a
    `partition_count` of 1 or more.
    """
    hash_keys.reference(data, offsets, partitions)
    partitions &= np.int32(_POSITIVE)
    partitions %= np.int32(partition_count)
    if len(valid):
        partitions[~valid] = -1
