"""New offsets of a group: the choices of `fairlead groups reset-offsets`.

They are those of Kafka's ConsumerGroupCommand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.partition_names import named_partitions
from fairlead_kafka.cli.terminal import errors
from fairlead_kafka.client import Admin
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST

_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


@dataclass(frozen=True, slots=True)
class Target:
    """One way to choose offsets; `value` is what goes with it: an offset, a distance, a time in ms
    since 1970."""

    way: str
    value: int = 0

    @classmethod
    def parse(
        cls,
        to_earliest: bool,
        to_latest: bool,
        to_current: bool,
        to_offset: int | None,
        shift_by: int | None,
        to_datetime: str | None,
        by_duration: str | None,
    ) -> Target:
        """The one choice made. UsageError for none or several, and for a time that cannot be
        read."""
        given: dict[str, int | str | None] = {
            "--to-earliest": to_earliest or None,
            "--to-latest": to_latest or None,
            "--to-current": to_current or None,
            "--to-offset": to_offset,
            "--shift-by": shift_by,
            "--to-datetime": to_datetime,
            "--by-duration": by_duration,
        }
        chosen = {way: value for way, value in given.items() if value is not None}
        if len(chosen) != 1:
            raise UsageError(
                f"say where to: one of {', '.join(given)}"
                + (f", not {' and '.join(chosen)}" if chosen else "")
            )
        ((way, value),) = chosen.items()
        if way == "--to-datetime":
            return cls("time", _time_ms(str(value)))
        if way == "--by-duration":
            return cls("time", int((datetime.now(UTC) - _duration(str(value))).timestamp() * 1000))
        return cls(way.removeprefix("--"), int(value))


def _time_ms(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--to-datetime {text}: expected a time such as 2026-01-31T10:00:00.000") from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise UsageError(f"--by-duration {text}: expected a duration such as PT30M or P1DT12H")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def chosen_partitions(
    admin: Admin, topics: Sequence[str], committed: Mapping[TopicPartition, OffsetAndMetadata]
) -> list[TopicPartition]:
    """The partitions that `TOPIC` and `TOPIC:0,1` name; without any, those of all topics with a
    committed offset. UsageError for one that does not exist."""
    return named_partitions(admin, topics or sorted({of.topic for of in committed}))


def new_offsets(
    admin: Admin,
    target: Target,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> dict[TopicPartition, int]:
    """{partition: offset to go on from}. An offset outside of a log is moved to its nearer end, and
    a time after the last record to its end; a line says so. (Kafka's tool does the same, and logs
    the first.) The present offset (`to-current`) is not moved."""
    if not partitions:
        return {}
    first = {
        of: one.offset
        for of, one in admin.list_offsets(dict.fromkeys(partitions, EARLIEST)).items()
        if one is not None
    }
    end = {
        of: one.offset
        for of, one in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()
        if one is not None
    }
    present = {of: committed[of].offset for of in partitions if of in committed}
    if target.way == "to-earliest":
        return first
    if target.way == "to-latest":
        return end
    if target.way == "time":
        timed = admin.list_offsets(dict.fromkeys(partitions, target.value))
        for of in (of for of, one in timed.items() if one is None):
            errors.print(f"{of}: no record is of that time or later; taking the end, {end[of]}", markup=False)
        return {of: end[of] if one is None else one.offset for of, one in timed.items()}
    if target.way == "to-current":
        return {of: present.get(of, end[of]) for of in partitions}
    if target.way == "to-offset":
        return {of: _within(of, target.value, first[of], end[of]) for of in partitions}
    missing = [str(of) for of in partitions if of not in present]
    if missing:
        raise UsageError(f"--shift-by needs offsets to shift, and there are none of {', '.join(missing)}")
    return {of: _within(of, present[of] + target.value, first[of], end[of]) for of in partitions}


def _within(of: TopicPartition, offset: int, first: int, end: int) -> int:
    nearest = min(max(offset, first), end)
    if nearest != offset:
        errors.print(
            f"{of}: offset {offset} is outside of its log, {first} to {end}; taking {nearest}", markup=False
        )
    return nearest
