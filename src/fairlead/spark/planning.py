"""From options and a cluster to ranges of offsets: which records a read will read, decided once, before any task runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TypeVar

from fairlead.base.errors import BrokerError, ConfigError, ConnectionFailed, FairleadError, TimedOut
from fairlead.base.ids import TopicPartition
from fairlead.client import Consumer
from fairlead.spark.offsets import EARLIEST, LATEST, OffsetRange, OffsetsByPartition, split_ranges
from fairlead.spark.options import ReadOptions

T = TypeVar("T")


class DataLoss(FairleadError):
    """Records that a read asked for are no longer there; `failOnDataLoss=false` reads what is left."""


def plan_read(options: ReadOptions) -> list[OffsetRange]:
    """The ranges to read, one per task, sorted by partition. Raises ConfigError, DataLoss, or what the client raises."""
    with Consumer(options.client) as consumer:
        return _attempt(options, lambda: _plan(consumer, options))


def _attempt(options: ReadOptions, plan: Callable[[], T]) -> T:
    """Asks again as often as `fetchOffset.numRetries` says; a wrong option is never asked twice."""
    for attempt in range(options.offset_attempts):
        try:
            return plan()
        except (BrokerError, ConnectionFailed, TimedOut):
            if attempt == options.offset_attempts - 1:
                raise
            time.sleep(options.offset_retry_ms / 1000)
    raise AssertionError("fetchOffset.numRetries is at least 1")


def _plan(consumer: Consumer, options: ReadOptions) -> list[OffsetRange]:
    partitions = _partitions(consumer, options)
    _check_named(options, partitions)
    earliest, latest = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    starts = _resolve(
        consumer, options.starting, options.starting_timestamps, partitions, earliest, latest, options.no_starting_record, "starting"
    )
    ends = _resolve(consumer, options.ending, options.ending_timestamps, partitions, earliest, latest, "latest", "ending")
    ranges = []
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        lost = _loss(partition, start, end, earliest[partition], latest[partition])
        if lost and options.fail_on_data_loss:
            raise DataLoss(f"{lost}; set failOnDataLoss=false to read what is left")
        start, end = max(start, earliest[partition]), min(end, latest[partition])
        if start > end and not lost:
            raise ConfigError(
                f"{partition}: the read would start at offset {start}, after its end at {end}; check starting and ending options"
            )
        ranges.append(OffsetRange(partition, start, max(start, end)))
    return split_ranges(ranges, options.min_partitions, options.max_records_per_partition)


def _loss(partition: TopicPartition, start: int, end: int, earliest: int, latest: int) -> str | None:
    if start < earliest:
        return f"{partition}: offsets {start} to {earliest - 1} were asked for and are gone (the log starts at {earliest})"
    if end > latest or start > latest:
        return f"{partition}: offsets up to {max(start, end)} were asked for, and the log ends at {latest}"
    return None


def _partitions(consumer: Consumer, options: ReadOptions) -> list[TopicPartition]:
    if options.assignment is not None:
        return sorted(TopicPartition(topic, number) for topic, numbers in options.assignment.items() for number in numbers)
    if options.topics is not None:
        topics = options.topics
    else:
        try:
            pattern = re.compile(options.pattern or "")
        except re.error as error:
            raise ConfigError(f"subscribePattern: {options.pattern!r} is not a regular expression ({error})") from None
        topics = [topic for topic in consumer.list_topics() if pattern.fullmatch(topic)]
    return sorted(TopicPartition(topic, each.partition) for topic in set(topics) for each in consumer.partitions_for(topic))


def _check_named(options: ReadOptions, partitions: list[TopicPartition]) -> None:
    """Offsets by partition must name exactly the partitions that are read, as in Spark's connector."""
    given: tuple[tuple[str, int | OffsetsByPartition | None], ...] = (
        ("startingOffsets", options.starting),
        ("endingOffsets", options.ending),
        ("startingOffsetsByTimestamp", options.starting_timestamps),
        ("endingOffsetsByTimestamp", options.ending_timestamps),
    )
    for name, value in given:
        if not isinstance(value, dict):
            continue
        missing, extra = sorted(set(partitions) - set(value)), sorted(set(value) - set(partitions))
        if missing or extra:
            said = [f"{word} {', '.join(map(str, some))}" for word, some in (("not named:", missing), ("not read:", extra)) if some]
            raise ConfigError(f"{name} must name every partition that is read and no other; {'; '.join(said)}")


def _resolve(
    consumer: Consumer,
    offsets: int | OffsetsByPartition,
    timestamps: int | OffsetsByPartition | None,
    partitions: list[TopicPartition],
    earliest: OffsetsByPartition,
    latest: OffsetsByPartition,
    no_record: str,
    what: str,
) -> OffsetsByPartition:
    """An offset for each partition; timestamps go over offsets."""
    if timestamps is not None:
        wanted = timestamps if isinstance(timestamps, dict) else dict.fromkeys(partitions, timestamps)
        found = consumer.offsets_for_times(wanted)
        resolved = {}
        for partition in partitions:
            record = found[partition]
            if record is None and no_record == "error":
                raise ConfigError(
                    f"{partition} has no record at {what} time {wanted[partition]} ms or later; "
                    "set startingOffsetsByTimestampStrategy=latest to start at its end"
                )
            resolved[partition] = latest[partition] if record is None else record.offset
        return resolved
    by_partition = offsets if isinstance(offsets, dict) else dict.fromkeys(partitions, offsets)
    markers = {EARLIEST: earliest, LATEST: latest}
    return {partition: markers[offset][partition] if offset in markers else offset for partition, offset in by_partition.items()}
