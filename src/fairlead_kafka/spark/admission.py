"""Admission limits of micro-batches, by offsets and by bytes, divided among partitions. Pure
functions.

Each share is in proportion to what a partition has. No partition starves: each gets at least one
offset, and where the limit is too small for that they take turns, for which `rotation` counts the
micro-batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import OffsetRange, OffsetsByPartition
from fairlead_kafka.spark.volume import Volume


def share_out(
    limit: int, available: Mapping[TopicPartition, int], rotation: int
) -> dict[TopicPartition, int]:
    """How many offsets of each partition to read, `limit` in all. `available` has how many there
    are. (Spark's connector rounds each small share up to one, and so goes over its limit.)"""
    waiting = [partition for partition in sorted(available) if available[partition] > 0]
    total = sum(available[partition] for partition in waiting)
    if total <= limit:
        return {partition: available[partition] for partition in waiting}
    if limit <= len(waiting):
        first = rotation * limit % len(waiting)
        chosen = [waiting[(first + number) % len(waiting)] for number in range(limit)]
        return dict.fromkeys(chosen, 1)
    # One for each; what is left in proportion to what is left, rounded down, and the remainder to
    # those rounded down most.
    spare, rest = limit - len(waiting), total - len(waiting)
    exact = {partition: divmod((available[partition] - 1) * spare, rest) for partition in waiting}
    shares = {partition: 1 + whole for partition, (whole, _) in exact.items()}
    by_remainder = sorted(waiting, key=lambda partition: (-exact[partition][1], partition))
    for partition in by_remainder[: limit - sum(shares.values())]:
        shares[partition] += 1
    return shares


def ends_within(
    limit_bytes: int, ranges: Sequence[OffsetRange], volume: Volume, rotation: int
) -> OffsetsByPartition:
    """End offset of each range, so that together they hold about `limit_bytes`.

    At least one offset of one range is always included; `rotation` decides which range is the
    first.
    """
    ends = {one.partition: one.start for one in ranges}
    waiting = sorted((one for one in ranges if one.size > 0), key=lambda one: one.partition)
    left = float(limit_bytes)
    rest = []
    for number in range(len(waiting)):
        one = waiting[(rotation + number) % len(waiting)]
        first_bytes = volume.size_bytes(OffsetRange(one.partition, one.start, one.start + 1))
        if first_bytes <= left or number == 0:
            left -= first_bytes
            rest.append(OffsetRange(one.partition, one.start + 1, one.end))
    sizes = [volume.size_bytes(one) for one in rest]
    share = min(1.0, max(0.0, left) / max(1.0, sum(sizes)))
    for one, size in zip(rest, sizes, strict=True):
        ends[one.partition] = one.end if share == 1.0 else volume.offset_after(one, share * size)
    return ends
