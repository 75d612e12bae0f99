"""librdkafka's placement of keys: by their CRC-32, where Java's client has murmur2."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from fairlead_kafka.partitioning.load import PartitionArray

if TYPE_CHECKING:
    from fairlead_kafka.records import BinaryColumn


def crc32_partitions(column: BinaryColumn, partition_count: int) -> PartitionArray:
    """int32[n]: each key's partition as librdkafka's `partitioner=consistent_random` has it, with
    which confluent-kafka's producer begins; -1 for a null or an empty key, which librdkafka places
    at random."""
    keys = column.to_list()
    return np.array([crc32(key) % partition_count if key else -1 for key in keys], dtype=np.int32)
