"""Meters: totals, maxima, and their values within a window of time (Kafka's `SampledStat`, `Rate`).

Recording is an addition to an attribute. Windows cost nothing until one ends: then a meter keeps
its totals, and the rate over the window is the difference to those of the previous end. A meter is
written by one thread and may be read by any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import ClassVar, NamedTuple, TypeVar

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S


class Sampling(NamedTuple):
    """Kafka's sampling: `samples` windows of `window_ns`, of which the last is under way."""

    window_ns: int
    samples: int


class _Window(NamedTuple):
    """One window: the totals at its start, and the largest values within it, once it is over."""

    start_ns: int
    totals: tuple[int | float, ...]
    maxima: tuple[int | float, ...]


class Meter:
    """Base of meters. A subclass names its attributes in TOTALS and MAXIMA (-1: no value yet), and
    has them as slots.

    A caller that records calls `roll` first if it is time: `if now_ns >= meter.rolls_ns:
    meter.roll(now_ns)`.
    """

    __slots__ = ("_sampling", "_windows", "rolls_ns")
    TOTALS: ClassVar[tuple[str, ...]] = ()
    MAXIMA: ClassVar[tuple[str, ...]] = ()

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._windows: tuple[_Window, ...] = ()
        self.rolls_ns = 0
        """When the window under way ends; the first begins with the first thing recorded."""
        for name in self.TOTALS:
            setattr(self, name, 0)
        for name in self.MAXIMA:
            setattr(self, name, -1)

    def roll(self, now_ns: int) -> None:
        """End the window under way and begin the one that holds `now_ns`."""
        window_ns = self._sampling.window_ns
        start_ns = now_ns
        ended: tuple[_Window, ...] = ()
        if self._windows:
            current = self._windows[-1]
            start_ns = current.start_ns + (now_ns - current.start_ns) // window_ns * window_ns
            current = current._replace(maxima=tuple(getattr(self, name) for name in self.MAXIMA))
            ended = (
                (*self._windows[:-1], current)[-self._sampling.samples + 1 :]
                if self._sampling.samples > 1
                else ()
            )
        # A reader takes the windows in one look, before or after.
        self._windows = (*ended, _Window(start_ns, tuple(getattr(self, name) for name in self.TOTALS), ()))
        for name in self.MAXIMA:
            setattr(self, name, -1)
        self.rolls_ns = start_ns + window_ns

    def read(self, now_ns: int) -> Reading:
        """The meter's values at `now_ns`; changes nothing."""
        # The windows first: if one ends while we look, totals are newer than its note, never older.
        windows, window_ns, samples = self._windows, self._sampling.window_ns, self._sampling.samples
        totals = tuple(getattr(self, name) for name in self.TOTALS)
        maxima = tuple(getattr(self, name) for name in self.MAXIMA)
        since, largest, elapsed_ns = totals, [-1] * len(maxima), 0
        if windows:
            last_ns = windows[-1].start_ns
            oldest_ns = (
                last_ns + max(now_ns - last_ns, 0) // window_ns * window_ns - (samples - 1) * window_ns
            )
            recent = [window for window in windows if window.start_ns >= oldest_ns]
            if recent:
                since = recent[0].totals
                last = [maxima if window is windows[-1] else window.maxima for window in recent]
                largest = [max(values) for values in zip(*last, strict=True)]
            elapsed_ns = now_ns - max(oldest_ns, windows[0].start_ns)
        # Kafka's `Rate`: never over less than all the windows that are complete, so that a young
        # producer shows no peaks.
        elapsed_s = max(elapsed_ns, (samples - 1) * window_ns, NS_PER_MS) / NS_PER_S
        changes = [now - then for now, then in zip(totals, since, strict=True)]
        return Reading(
            dict(zip(self.TOTALS, totals, strict=True)),
            dict(zip(self.TOTALS, changes, strict=True)),
            {name: change / elapsed_s for name, change in zip(self.TOTALS, changes, strict=True)},
            dict(zip(self.MAXIMA, largest, strict=True)),
        )


K = TypeVar("K")
M = TypeVar("M", bound=Meter)


class Meters(dict[K, M]):
    """Meters of one kind by key, each made by `make` when it is first asked for."""

    def __init__(self, make: Callable[[], M]) -> None:
        self._make = make

    def of(self, key: K, now_ns: int) -> M:
        """The meter of a key, with its window rolled on to `now_ns`."""
        meter = self.get(key)
        if meter is None:
            meter = self[key] = self._make()
        if now_ns >= meter.rolls_ns:
            meter.roll(now_ns)
        return meter


class Reading(NamedTuple):
    """A meter's values by name."""

    totals: Mapping[str, float]
    """Totals since the start."""
    changes: Mapping[str, float]
    """Changes of the totals within the window."""
    rates: Mapping[str, float]
    """Changes of the totals per second, over the window."""
    maxima: Mapping[str, float]
    """Largest values within the window; -1: none."""
    gauges: Mapping[str, float] | None = None
    """Present values that no meter counts, from the caller."""

    def total(self, name: str) -> float:
        """The value of the total `name` since the start."""
        return self.totals[name]

    def rate(self, name: str) -> float:
        """The change per second of the total `name`, over the window."""
        return self.rates[name]

    def average(self, name: str, of: str) -> float:
        """The change of the total `name` for each of the total `of`, over the window; NaN, as in
        Kafka, if `of` did not change."""
        return self.changes[name] / self.changes[of] if self.changes[of] else nan

    def maximum(self, name: str) -> float:
        """The largest value within the window; NaN if there was no value."""
        return self.maxima[name] if self.maxima[name] >= 0 else nan

    def gauge(self, name: str) -> float:
        """The present value of a gauge; NaN if it is not known."""
        return nan if self.gauges is None else self.gauges.get(name, nan)


def combined(readings: Sequence[Reading], gauges: Mapping[str, float]) -> Reading:
    """Readings of several meters of one kind as one reading: sums of totals, the largest of maxima,
    and `gauges`."""
    first = readings[0]
    return Reading(
        {name: sum(each.totals[name] for each in readings) for name in first.totals},
        {name: sum(each.changes[name] for each in readings) for name in first.changes},
        {name: sum(each.rates[name] for each in readings) for name in first.rates},
        {name: max(each.maxima[name] for each in readings) for name in first.maxima},
        gauges,
    )
