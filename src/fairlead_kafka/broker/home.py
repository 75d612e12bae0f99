"""The partition of an internal topic that a group or a transactional id belongs to; its leader is
the coordinator."""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, as a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def home_partition(key: str, partition_count: int) -> int:
    """The partition of an internal topic that belongs to the name of a group or a transactional id
    (Kafka's `partitionFor`, whose absolute value of the smallest integer is 0)."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
