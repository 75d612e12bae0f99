"""The arithmetic of a soak: latencies in a fixed number of buckets, tallies of what was
acknowledged and read, slopes over time.

Nothing here grows with the time that a soak takes, but for its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import atan, ceil, exp, inf, isnan, log, nan, pi, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.json_types import Json, JsonObject, integer_list_at, number_at

Row: TypeAlias = JsonObject
Int64 = npt.NDArray[np.int64]

WARM_UP_SHARE = 1 / 3
"""Share of a soak that is warm-up: slopes and the throughput's ratio leave it out."""
COMPARED_SHARE = 1 / 6
"""Share of the time after the warm-up that each of its first and last parts has, whose throughput
is compared.
"""
FAMILY_WISE_ERROR_RATE = 0.05
"""Probability that any row of a report is called unsteady if all are level. A report has 66 rows,
and of those that are level one in twenty is beyond two standard errors."""
LEVEL_SHARE = 0.01
"""Share of the mean up to which a rise over all looks counts as none: that of a process which
always does the same has so little noise that a page of 4 KiB in two minutes is many standard
errors."""
METRICS = ("rss_mb", "private_mb", "blocks", "heap_mb", "descriptors", "threads")
"""Columns of rows whose slopes are reported."""

_ANGLES = 100_000
"""Steps of an integral: probabilities are right to 0.00002."""
_BUCKETS_PER_E = 20
_FIRST_MS = 0.01
_BUCKETS = 400
"""Number of buckets: from 0.01 ms to more than an hour, each 5 % wide."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_MASK = (1 << 64) - 1


class Latencies:
    """A histogram of latencies in fixed buckets: a percentile is 5 % too high at most."""

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS

    def add(self, latency_ms: float, count: int = 1) -> None:
        """Count `count` records of this latency."""
        place = ceil(_BUCKETS_PER_E * log(max(latency_ms, _FIRST_MS) / _FIRST_MS))
        self._counts[min(place, _BUCKETS - 1)] += count

    def percentile(self, share: float) -> float | None:
        """The latency, ms, within which that share of the records lies; None if there are none."""
        left = ceil(share * sum(self._counts))
        for place, count in enumerate(self._counts):
            left -= count
            if count and left <= 0:
                return round(_FIRST_MS * exp(place / _BUCKETS_PER_E), 2)
        return None


@dataclass
class Tally:
    """Counts records' numbers by topic and partition, and sums their hashes, so that different
    numbers give different sums."""

    counts: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)

    def add(self, place: str, numbers: Int64) -> None:
        """Count numbers at a place, such as "topic-3"."""
        mixed = numbers.astype(np.uint64) * _MIX
        self.counts[place] += len(numbers)
        self.sums[place] = (self.sums[place] + int((mixed ^ (mixed >> _HALF)).sum(dtype=np.uint64))) & _MASK

    def to_json(self) -> dict[str, list[int]]:
        """The tally as JSON, for another process."""
        return {place: [count, self.sums[place]] for place, count in self.counts.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Json]) -> Tally:
        """The tally that `to_json` wrote."""
        pairs = {place: integer_list_at(document, place) for place in document}
        return cls(
            Counter({place: count for place, (count, _) in pairs.items()}),
            Counter({place: each for place, (_, each) in pairs.items()}),
        )


def differences(acknowledged: Tally, read: Tally, failed: int) -> Row:
    """{lost, duplicated, differing}: the records acknowledged compared with those read, partition
    by partition. A record that `failed` may have been written all the same: so many more are no
    duplicates. `differing` counts partitions that hold as many as were acknowledged, but others."""
    places = acknowledged.counts.keys() | read.counts.keys()
    more = {place: read.counts[place] - acknowledged.counts[place] for place in places}
    return {
        "lost": -sum(each for each in more.values() if each < 0),
        "duplicated": max(0, sum(each for each in more.values() if each > 0) - failed),
        "differing": sum(
            not more[place] and acknowledged.sums[place] != read.sums[place] for place in places
        ),
    }


@dataclass(frozen=True)
class Slope:
    """A straight line through points by least squares: its rise for each unit of x, the standard
    error of that, and the degrees of freedom of the error."""

    slope: float
    stderr: float
    degrees_of_freedom: float

    @property
    def p_value(self) -> float:
        """The probability that noise alone gives a slope so far from zero, by Student's t; NaN
        without a slope."""
        if isnan(self.slope):
            return nan
        if not self.slope:
            return 1.0
        t = abs(self.slope) / self.stderr if self.stderr else inf
        return student_t_p_value(t, self.degrees_of_freedom)


def student_t_p_value(t: float, degrees_of_freedom: float) -> float:
    """The probability that a value of Student's t lies further from zero than `t`, either way, for
    one degree of freedom or more. Where t is sqrt(d) tan(angle), d degrees of freedom, its density
    goes with cos(angle)^(d - 1), which is summed in _ANGLES steps."""
    angles = (np.arange(_ANGLES) + 0.5) * (pi / 2 / _ANGLES)
    density = np.cos(angles) ** (degrees_of_freedom - 1)
    return float(density[angles > atan(t / sqrt(degrees_of_freedom))].sum() / density.sum())


def slope(xs: Sequence[float], ys: Sequence[float]) -> Slope:
    """The slope, its standard error that of residuals which resemble their neighbours; all NaN for
    fewer than three points.

    Memory goes in steps and stays: two looks in a row tell less than two independent ones.
    Residuals whose lag-1 autocorrelation is r are worth n(1-r)/(1+r) independent ones (Santer et
    al. 2000, doi:10.1029/1999JD901105), three at least; r below 0 counts as 0.
    """
    count = len(xs)
    if count < 3 or len(set(xs)) < 2:
        return Slope(nan, nan, nan)
    x, y = np.asarray(xs, float), np.asarray(ys, float)
    away = x - x.mean()
    spread = float((away**2).sum())
    rise = float((away * (y - y.mean())).sum()) / spread
    residuals = y - y.mean() - rise * away
    squares = float((residuals**2).sum())
    alike = max(0.0, float((residuals[1:] * residuals[:-1]).sum()) / squares) if squares > 0 else 0.0
    worth = max(3.0, count * (1 - alike) / (1 + alike))
    return Slope(rise, sqrt(squares / (worth - 2) / spread), worth - 2)


def warm(rows: Sequence[Row]) -> list[Row]:
    """The rows that were taken after the warm-up."""
    last = max((number_at(row, "minute") for row in rows), default=0.0)
    return [row for row in rows if number_at(row, "minute") > last * WARM_UP_SHARE]


def slope_rows(rows: Sequence[Row]) -> list[Row]:
    """Rows {process, metric, first, last, mean, per_hour, stderr, p_value, steady} for each process
    and each of METRICS, after the warm-up.

    `first` and `last`: what the line through the points has there; `per_hour` and `stderr` of it,
    in the metric's unit. `p_value`: the probability that noise alone gives such a slope. `steady`:
    the slope is zero within its noise, which is that `p_value` is no less than
    FAMILY_WISE_ERROR_RATE by the number of rows (Bonferroni), or the line rises or falls by
    LEVEL_SHARE of the mean at most.
    """
    found: list[Row] = []
    for process in dict.fromkeys(row["process"] for row in rows):
        own = [row for row in warm(rows) if row["process"] == process]
        for metric in METRICS:
            points = [
                (number_at(row, "minute"), number_at(row, metric))
                for row in own
                if row.get(metric) is not None
            ]
            minutes, values = [minute for minute, _ in points], [value for _, value in points]
            line = slope(minutes, values)
            if isnan(line.slope):
                continue
            mean, middle = float(np.mean(values)), float(np.mean(minutes))
            rise = line.slope * (minutes[-1] - minutes[0])
            found.append(
                {
                    "table": "slopes",
                    "process": process,
                    "metric": metric,
                    "first": round(mean + line.slope * (minutes[0] - middle), 2),
                    "last": round(mean + line.slope * (minutes[-1] - middle), 2),
                    "mean": round(mean, 2),
                    "per_hour": round(line.slope * 60, 3),
                    "stderr": round(line.stderr * 60, 3),
                    "p_value": round(line.p_value, 5),
                    "steady": abs(rise) <= LEVEL_SHARE * abs(mean),
                }
            )
    for row in found:
        row["steady"] = row["steady"] or number_at(row, "p_value") >= FAMILY_WISE_ERROR_RATE / len(found)
    return found


def throughput_ratio(rows: Sequence[Row], process: str) -> float | None:
    """A process's records per second in the last part after the warm-up, to those in the first
    (COMPARED_SHARE); None without both."""
    own = [row for row in warm(rows) if row["process"] == process and row.get("records_per_s") is not None]
    count = ceil(len(own) * COMPARED_SHARE)
    if len(own) < 2 * count or not count:
        return None
    first, last = (
        float(np.mean([number_at(row, "records_per_s") for row in part]))
        for part in (own[:count], own[-count:])
    )
    return round(last / first, 4) if first else None
