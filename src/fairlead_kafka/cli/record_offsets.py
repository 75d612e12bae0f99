"""Offsets on the command line: where to begin to read, and where to stop.

beginning, end     the first offset, and the end of the log
42                 offset 42
-5                 five before the end
@2026-01-31T10:00  the first record of this time or later (UTC, or with its zone)
@1769853600000     the same time, in ms since 1970
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.terminal import errors, whole_number

if TYPE_CHECKING:
    from fairlead_kafka.client import Consumer

SYNTAX = "beginning, end, 42, -5 (before the end), @2026-01-31T10:00 (UTC) or @1769853600000 (ms)"


_YEAR_DIGITS = 4
"""So many digits alone are a year, and no time in ms."""


class OffsetSpec(NamedTuple):
    """An offset as the command line gives it. `way`: beginning, end, offset, before_end or time."""

    way: str
    value: int = 0


BEGINNING, END = OffsetSpec("beginning"), OffsetSpec("end")


def parse_offset(text: str, option: str) -> OffsetSpec:
    """Read an offset. ConfigError for anything else, with what may be written."""
    if text in ("beginning", "end"):
        return OffsetSpec(text)
    number = whole_number(text.removeprefix("-"))
    if number is not None:
        return OffsetSpec("before_end" if text.startswith("-") else "offset", number)
    if text.startswith("@"):
        return OffsetSpec("time", time_ms(text[1:], f"{option} {text}"))
    raise ConfigError(f"{option} {text}: write {SYNTAX}")


def time_ms(text: str, what: str) -> int:
    """A time in ms since 1970, from such a number or from ISO 8601, in UTC if it names no zone.
    ConfigError if it is neither."""
    number = whole_number(text)
    if number is not None and len(text) > _YEAR_DIGITS:
        return number
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{what}: {text!r} is no time; write 2026-01-31T10:00, with +01:00 for a zone, or ms since 1970"
        ) from None
    found = round((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
    if found < 0:
        raise ConfigError(f"{what}: {text!r} is before 1970, where Kafka's time begins")
    return found


def resolve(
    consumer: Consumer, spec: OffsetSpec, partitions: Sequence[TopicPartition], option: str, bounded: bool
) -> dict[TopicPartition, int]:
    """The offset that `spec` means in each partition. `bounded`: an offset outside of a log is
    moved to its nearer end, and a line says so."""
    ends = consumer.end_offsets(partitions)
    if spec.way == "end":
        return ends
    begins = consumer.beginning_offsets(partitions)
    if spec.way == "beginning":
        return begins
    if spec.way == "before_end":
        return {of: max(ends[of] - spec.value, begins[of]) for of in partitions}
    if spec.way == "time":
        found = consumer.offsets_for_times(dict.fromkeys(partitions, spec.value))
        return {of: ends[of] if (one := found[of]) is None else one.offset for of in partitions}
    if not bounded:
        return dict.fromkeys(partitions, spec.value)
    taken = {of: min(max(spec.value, begins[of]), ends[of]) for of in partitions}
    for of, offset in taken.items():
        if offset != spec.value:
            errors.print(
                f"{option} {spec.value}: {of} has offsets {begins[of]} to {ends[of]}; taking {offset}",
                markup=False,
            )
    return taken
