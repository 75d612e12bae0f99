"""The values of options, from text: each function raises ValueError that says what the text must
be."""

from __future__ import annotations

import re
from collections.abc import Callable

from fairlead_kafka.base.topic_names import wrong_topic_name

_UNITS_MS = {
    "": 1,
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_UNITS_BYTES = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "t": 1 << 40,
}
_NUMBER_AND_UNIT = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)


def boolean(text: str) -> bool:
    """True for the text "true", False for "false", in any case. ValueError for another text."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


def positive(text: str) -> int:
    """The whole number, at least 1, in a text. ValueError for another text."""
    number = int(text) if text.strip().lstrip("+-").isdigit() else 0
    if number < 1:
        raise ValueError("must be a whole number, at least 1")
    return number


def time_ms(text: str) -> int:
    """The milliseconds since 1970 in a text. ValueError for another text."""
    if not text.strip().isdigit():
        raise ValueError("must be milliseconds since 1970, a whole number")
    return int(text)


def duration_ms(text: str) -> int:
    """Milliseconds, from a number with a unit as Spark writes times, 15m or 30s; without a unit it
    is milliseconds. Source: Spark's `JavaUtils.timeStringAs`."""
    return round(_with_unit(text, _UNITS_MS, "a time such as 500ms, 30s, 15m or 1h"))


def size_bytes(text: str) -> int:
    """Bytes, at least 1, from a number with a unit as Spark writes sizes, 64m or 1g (powers of
    1024); without a unit it is bytes. ValueError for another text."""
    size = round(_with_unit(text, _UNITS_BYTES, "a size such as 1000000, 64m or 1g"))
    if size < 1:
        raise ValueError("must be at least 1 byte")
    return size


def _with_unit(text: str, units: dict[str, float] | dict[str, int], expected: str) -> float:
    found = _NUMBER_AND_UNIT.fullmatch(text)
    if found is None or found[2].lower() not in units:
        raise ValueError(f"must be {expected}")
    return int(found[1]) * units[found[2].lower()]


def one_of(*words: str) -> Callable[[str], str]:
    """A parser of one of these words, whatever their case."""

    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return text.strip().lower()

    return parse


def names(text: str) -> list[str]:
    """The names in a text, which are separated by commas. ValueError if there is none."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise ValueError("must name at least one topic")
    return found


def not_empty(text: str) -> str:
    """The text itself. ValueError if it is blank."""
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


def topic_name(text: str) -> str:
    """The text itself. ValueError if it is not a valid topic name."""
    wrong = wrong_topic_name(text.strip())
    if wrong:
        raise ValueError(wrong)
    return text.strip()
