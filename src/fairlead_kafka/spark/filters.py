"""Push-down of filters on partition, topic, offset and timestamp: they become ranges of offsets,
and other records are not read.

Spark gives filters to a Python source only where `spark.sql.python.filterPushdown.enabled` is true,
as `spark.spark_session` sets it, and refuses a reader that takes filters where it is not. The
setting is only visible in the worker that Spark runs planning in, so `planners.filters_pushed_down`
looks at that; a wrong guess would only leave the filters to Spark.

A filter on offset, partition or topic is met exactly by the ranges. A filter on timestamp only
gives the first offset, because a later record may have an earlier time; Spark filters the rows
again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import OffsetRange

_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _among(found: object, values: object) -> bool:
    return found in values if isinstance(values, tuple) else False


_TESTS: Mapping[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    In: _among,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}


@dataclass
class Wanted:
    """Conditions that filters put on what is read; all of them must hold."""

    tests: list[tuple[str, Callable[[Any, Any], bool], object]] = field(default_factory=list)
    """A column, `topic` or `partition`, a comparison, and what its value is compared to."""
    offset_low: int = 0
    offset_high: int | None = None
    """The first offset that is too high."""
    time_low_ms: int | None = None
    nothing: bool = False

    def take(self, filters: Iterable[Filter]) -> list[Filter]:
        """Add the filters that reading can apply; returns those that Spark has to apply itself."""
        return [one for one in filters if not self._take(one)]

    def times(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The timestamp to look up for each partition, ms since 1970: reading begins at the first
        record that may be late enough. Empty without a filter by time."""
        return {} if self.time_low_ms is None else dict.fromkeys(partitions, max(0, self.time_low_ms))

    def narrow(
        self, ranges: Iterable[OffsetRange], late_enough: Mapping[TopicPartition, int | None]
    ) -> list[OffsetRange]:
        """The parts of `ranges` that may hold matching records.

        `late_enough`: by partition, the first offset that may be late enough, None if there is
        none.
        """
        left = []
        for one in ranges:
            columns = {"topic": one.partition.topic, "partition": one.partition.partition}
            if self.nothing or not all(test(columns[name], value) for name, test, value in self.tests):
                continue
            start, end = (
                max(one.start, self.offset_low),
                one.end if self.offset_high is None else min(one.end, self.offset_high),
            )
            if one.partition in late_enough:
                first = late_enough[one.partition]
                start = end if first is None else max(start, first)
            if start < end:
                left.append(OffsetRange(one.partition, start, end))
        return left

    def _take(self, one: Filter) -> bool:
        """Add one filter; True if it is then applied in full, so that Spark need not apply it
        again."""
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        column = attribute[0] if len(attribute) == 1 else ""
        if isinstance(one, IsNotNull):
            return column in _NEVER_NULL
        value = getattr(one, "value", None)
        if column == "timestamp":
            self._take_time(one, value)
            return False
        if value is None:
            return False
        if column == "offset":
            return self._take_offset(one, value)
        if column in ("topic", "partition") and type(one) in _TESTS:
            self.tests.append((column, _TESTS[type(one)], value))
            return True
        return False

    def _take_offset(self, one: Filter, value: object) -> bool:
        if isinstance(one, In):
            among = value if isinstance(value, tuple) else ()
            offsets = [offset for offset in among if offset is not None]
            self.nothing = self.nothing or not offsets
            if offsets:
                self._between(min(offsets), max(offsets) + 1)
            return False
        if not isinstance(value, int):
            return False
        if isinstance(one, (EqualTo, EqualNullSafe)):
            self._between(value, value + 1)
        elif isinstance(one, (GreaterThan, GreaterThanOrEqual)):
            self._between(value + isinstance(one, GreaterThan), None)
        elif isinstance(one, (LessThan, LessThanOrEqual)):
            self._between(0, value + isinstance(one, LessThanOrEqual))
        else:
            return False
        return True

    def _between(self, low: int, high: int | None) -> None:
        self.offset_low = max(self.offset_low, low)
        if high is not None:
            self.offset_high = high if self.offset_high is None else min(self.offset_high, high)

    def _take_time(self, one: Filter, value: object) -> None:
        """Set the earliest timestamp to read, in milliseconds, from a filter. (Timestamps are whole
        milliseconds, so "after" a time means from the next millisecond on.)"""
        if isinstance(value, datetime) and isinstance(
            one, (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)
        ):
            passed = value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH
            microseconds = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
            low_ms = microseconds // 1000 + 1 if isinstance(one, GreaterThan) else -(-microseconds // 1000)
            self.time_low_ms = low_ms if self.time_low_ms is None else max(self.time_low_ms, low_ms)
