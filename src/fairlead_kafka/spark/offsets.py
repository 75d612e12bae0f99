"""Offsets as Spark's Kafka connector writes them in JSON, and ranges of offsets: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeGuard

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import Json, JsonObject, read_json

EARLIEST = -2
LATEST = -1

OffsetsByPartition = dict[TopicPartition, int]


@dataclass(frozen=True)
class OffsetRange:
    """Records [start, end) of one partition: what one task reads."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in the range; compacted or transactional topics have fewer records."""
        return max(0, self.end - self.start)


def parse_offsets(text: str) -> int | OffsetsByPartition:
    """The offsets that a text names: EARLIEST, LATEST, or a dict of offsets by partition.

    ValueError says what is wrong with the text.
    """
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return EARLIEST if word == "earliest" else LATEST
    offsets = _by_partition(text, 'earliest, latest or JSON such as {"topic": {"0": 23}}')
    for partition, offset in offsets.items():
        if offset < EARLIEST:
            raise ValueError(
                f"the offset of {partition} must be 0 or more, -1 (latest) or -2 (earliest), not {offset}"
            )
    return offsets


def parse_timestamps(text: str) -> OffsetsByPartition:
    """Milliseconds since 1970 by partition. ValueError says what is wrong."""
    timestamps = _by_partition(text, 'JSON such as {"topic": {"0": 1000}}')
    for partition, timestamp in timestamps.items():
        if timestamp < 0:
            raise ValueError(f"the timestamp of {partition} must be 0 or more, not {timestamp}")
    return timestamps


def parse_assignment(text: str) -> dict[str, list[int]]:
    """Partitions by topic. ValueError says what is wrong."""
    found: dict[str, list[int]] = {}
    for topic, partitions in _json_object(text, 'JSON such as {"topic": [0, 1]}').items():
        if (
            not isinstance(partitions, list)
            or not partitions
            or not all(_is_integer(number) and number >= 0 for number in partitions)
        ):
            raise ValueError(f"topic {topic} must have a list of partition numbers")
        found[topic] = sorted(set(filter(_is_integer, partitions)))
    return found


def offsets_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """{topic: {partition: offset}}, sorted: what a checkpoint keeps, in the form of Spark's Kafka
    connector."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = offset
    return found


def from_offsets_json(offsets: Mapping[str, Mapping[str, int]]) -> OffsetsByPartition:
    """Offsets by partition, from the form that `offsets_json` gives them."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, numbers in offsets.items()
        for number, offset in numbers.items()
    }


def _by_partition(text: str, expected: str) -> OffsetsByPartition:
    offsets: OffsetsByPartition = {}
    for topic, partitions in _json_object(text, expected).items():
        if not isinstance(partitions, dict):
            raise ValueError(f"topic {topic} must have an object of partition numbers; expected {expected}")
        for number, offset in partitions.items():
            if not number.isdigit() or not _is_integer(offset):
                raise ValueError(
                    f"{topic}, partition {number}: a partition number and a whole number are needed"
                )
            offsets[TopicPartition(topic, int(number))] = offset
    return offsets


def _json_object(text: str, expected: str) -> JsonObject:
    try:
        parsed = read_json(text)
    except ValueError as error:
        raise ValueError(f"expected {expected} ({error})") from None
    if not isinstance(parsed, dict) or not parsed:
        raise ValueError(f"expected {expected}")
    return parsed


def _is_integer(value: Json) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def split_ranges(
    ranges: list[OffsetRange], min_partitions: int | None, max_records_per_partition: int | None
) -> list[OffsetRange]:
    """Cut ranges so that none is longer than `max_records_per_partition` and there are about
    `min_partitions` of them.

    Empty ranges are left out. Pieces of a range differ by at most one offset in size. A long range
    gets its share of pieces by its part of all offsets, as in Spark's `KafkaOffsetRangeCalculator`,
    so their number is approximate.
    """
    ranges = [one for one in ranges if one.size > 0]
    if max_records_per_partition:
        ranges = [piece for one in ranges for piece in _cut(one, -(-one.size // max_records_per_partition))]
    if not min_partitions or len(ranges) >= min_partitions:
        return ranges
    total = sum(one.size for one in ranges)
    return [piece for one in ranges for piece in _cut(one, max(1, round(one.size / total * min_partitions)))]


def _cut(one: OffsetRange, pieces: int) -> list[OffsetRange]:
    pieces = min(pieces, one.size)
    bounds = [one.start + one.size * number // pieces for number in range(pieces + 1)]
    return [OffsetRange(one.partition, start, end) for start, end in pairwise(bounds)]
