"""Planning of a read: its first and last offsets, from options and the cluster's offsets, decided
once before any task runs."""

from __future__ import annotations

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import EARLIEST, LATEST, OffsetRange, OffsetsByPartition
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reading import DataLoss
from fairlead_kafka.spark.survey import Survey


def plan_ranges(survey: Survey, options: ReadOptions) -> list[OffsetRange]:
    """The range of offsets that a batch read reads of each partition, sorted by partition.

    Raises ConfigError, DataLoss, or what the client raises.
    """
    found = survey.find()
    survey.refuse_missing(found)
    partitions = found.partitions
    _check_named(options, partitions)
    earliest, latest = survey.earliest(partitions), survey.latest(partitions)
    starts = _resolve(
        survey,
        options.starting,
        options.starting_timestamps,
        partitions,
        earliest,
        latest,
        options.no_starting_record,
        "starting",
    )
    ends = _resolve(
        survey, options.ending, options.ending_timestamps, partitions, earliest, latest, "latest", "ending"
    )
    ranges = []
    for partition in partitions:
        start, end = starts[partition], ends[partition]
        lost = _loss(partition, start, end, earliest[partition], latest[partition])
        if lost and options.fail_on_data_loss:
            raise DataLoss(f"{lost}; set failOnDataLoss=false to read what is left")
        start, end = max(start, earliest[partition]), min(end, latest[partition])
        if start > end and not lost:
            raise ConfigError(
                f"{partition}: the read would start at offset {start}, after its end at {end}; check "
                "starting and ending options"
            )
        ranges.append(OffsetRange(partition, start, max(start, end)))
    return ranges


def starting_offsets(
    survey: Survey, options: ReadOptions, latest: OffsetsByPartition | None = None
) -> OffsetsByPartition:
    """Offset at which a new streaming query starts, for each partition there is.

    `latest` holds the ends if they are known already. An offset given by number is not checked: the
    first micro-batch raises DataLoss if it is gone.
    """
    found = survey.find()
    survey.refuse_missing(found)
    partitions = found.partitions if latest is None else sorted(latest)
    _check_named(options, partitions)
    earliest = survey.earliest(partitions)
    ends = survey.latest(partitions) if latest is None else latest
    return _resolve(
        survey,
        options.starting,
        options.starting_timestamps,
        partitions,
        earliest,
        ends,
        options.no_starting_record,
        "starting",
    )


def _loss(partition: TopicPartition, start: int, end: int, earliest: int, latest: int) -> str | None:
    if start < earliest:
        return (
            f"{partition}: offsets {start} to {earliest - 1} were asked for and are gone (the log starts "
            f"at {earliest})"
        )
    if end > latest or start > latest:
        return f"{partition}: offsets up to {max(start, end)} were asked for, and the log ends at {latest}"
    return None


def _check_named(options: ReadOptions, partitions: list[TopicPartition]) -> None:
    """Raise ConfigError unless offsets by partition name exactly the partitions that are read, as
    in Spark's connector."""
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
            said = [
                f"{word} {', '.join(map(str, some))}"
                for word, some in (("not named:", missing), ("not read:", extra))
                if some
            ]
            raise ConfigError(
                f"{name} must name every partition that is read and no other; {'; '.join(said)}"
            )


def _resolve(
    survey: Survey,
    offsets: int | OffsetsByPartition,
    timestamps: int | OffsetsByPartition | None,
    partitions: list[TopicPartition],
    earliest: OffsetsByPartition,
    latest: OffsetsByPartition,
    no_record: str,
    what: str,
) -> OffsetsByPartition:
    """The offset for each partition: by its timestamp, else its offset, as `what` ("starting", say)
    options give them.

    ConfigError if there is no record at a time or later, and `no_record` is "error".
    """
    if timestamps is not None:
        wanted = timestamps if isinstance(timestamps, dict) else dict.fromkeys(partitions, timestamps)
        found = survey.consumer.offsets_for_times(wanted)
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
    return {
        partition: markers[offset][partition] if offset in markers else offset
        for partition, offset in by_partition.items()
    }
