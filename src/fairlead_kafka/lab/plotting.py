"""Plots of experiments: one figure of a few panels, bars or lines, as SVG or PNG by the file's
suffix.

Matplotlib is imported when something is drawn, not before, and without pyplot: no window is opened,
and no state kept. The same rows give the same bytes: no date, no version, and identifiers salted
with a constant. A system has the same colour in every plot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import cycle
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairlead_kafka.base.errors import ConfigError, FairleadError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png")
PANEL_WIDTH_INCHES = 6.4
BAR_INCHES = 0.17
FRAME_INCHES = 1.1
"""Height of a panel's title, axis and legend, inches."""
LINES_HEIGHT_INCHES = 3.6
PNG_DOTS_PER_INCH = 130

_OWN = ("#0b5c7a", "#3d9cc2", "#8cc7de", "#113946")
_SYSTEMS = {
    "java": "#c2662d",
    "confluent-kafka": "#7a5195",
    "kafka-python": "#b8a13a",
    "aiokafka": "#5a8f4f",
    "raw": "#9a9a9a",
}
_OTHERS = ("#0b5c7a", "#c2662d", "#5a8f4f", "#7a5195", "#b8a13a", "#b03a5b", "#4f7cac", "#6b6b6b")
_INK, _GRID = "#333333", "#dddddd"
# matplotlib types its keys as a literal of some three hundred names, in new releases only.
_STYLE: Any = {
    "svg.hashsalt": "fairlead",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


class Unplottable(FairleadError):
    """A plot cannot be drawn; the message says why."""


@dataclass(frozen=True)
class Bars:
    """A panel of horizontal bars: a group of them for each name in `groups`, and in each group one
    for each series.

    `series`: name to values, one for each group; None where there is none. `unit`: what the axis
    says, such as "p99, ms". `log`: a logarithmic axis. With one series its name is not shown.
    `steps`: the groups are steps of a histogram, and have one colour.
    """

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    unit: str
    log: bool = False
    steps: bool = False


@dataclass(frozen=True)
class Lines:
    """A panel of lines with a marker at each point. `series`: name to x values and y values; points
    without y (None) are left out."""

    title: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None]]]
    x_unit: str
    unit: str
    log_x: bool = False
    log_y: bool = False


def bars(
    path: str | Path,
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    unit: str,
    log: bool = False,
) -> None:
    """Draw a figure of one panel of bars; see `Bars` and `figure`."""
    figure(path, [Bars(title, groups, series, unit, log)])


def lines(
    path: str | Path,
    title: str,
    series: Mapping[str, tuple[Sequence[float], Sequence[float | None]]],
    x_unit: str,
    unit: str,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """Draw a figure of one panel of lines; see `Lines` and `figure`."""
    figure(path, [Lines(title, series, x_unit, unit, log_x, log_y)])


def figure(path: str | Path, panels: Sequence[Bars | Lines], title: str = "", columns: int = 1) -> None:
    """Draw `panels`, row by row, `columns` beside each other, into `path`.

    Raises Unplottable without matplotlib or if there is nothing to draw, ConfigError for a suffix
    that is neither .svg nor .png.
    """
    file = Path(path)
    check_suffix(file)
    check_installed()
    panels = [_without_empty(panel) for panel in panels if _values_of(panel)]
    if not panels:
        raise Unplottable("nothing was measured that could be drawn")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    heights = [max(_height_inches(panel) for panel in row) for row in rows]
    with rc_context(_STYLE):
        width = PANEL_WIDTH_INCHES * min(columns, len(panels))
        drawn = Figure(
            figsize=(width, sum(heights) + (0.4 if title else 0)), layout="constrained", facecolor="white"
        )
        grid = drawn.add_gridspec(len(rows), min(columns, len(panels)), height_ratios=heights)
        for line, row in enumerate(rows):
            for column, panel in enumerate(row):
                axes = drawn.add_subplot(grid[line, column])
                if isinstance(panel, Bars):
                    _draw_bars(axes, panel)
                else:
                    _draw_lines(axes, panel)
        if title:
            drawn.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        nameless = {"Date": None, "Creator": None} if file.suffix == ".svg" else {"Software": None}
        drawn.savefig(file, format=file.suffix[1:], dpi=PNG_DOTS_PER_INCH, metadata=nameless)


def check_suffix(path: Path) -> None:
    """Check that the file's suffix is .svg or .png; ConfigError if not."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(
            f"{path}: a plot is written as {' or '.join(SUFFIXES)}; give the file one of these suffixes"
        )


def check_installed() -> None:
    """Check that matplotlib is installed; Unplottable if not."""
    if find_spec("matplotlib") is None:
        raise Unplottable("matplotlib is not installed; pip install 'fairlead-kafka[lab]'")


def colours(names: Sequence[str]) -> list[str]:
    """A colour for each name: a system always has its own; others go through a palette in order."""
    own, others = cycle(_OWN), cycle(_OTHERS)
    known = any(_system_of(name) in ("fairlead", *_SYSTEMS) for name in names)
    found = []
    for name in names:
        system = _system_of(name)
        if system == "fairlead":
            found.append(next(own))
        elif system in _SYSTEMS:
            found.append(_SYSTEMS[system])
        else:
            found.append("#6b6b6b" if known else next(others))
    return found


def _system_of(name: str) -> str:
    return name.split(".")[0].split(" ")[0].split(",")[0]


def _without_empty(panel: Bars | Lines) -> Bars | Lines:
    """The panel without series that have no value at all: they would take space, and a place in the
    legend.
    """
    if isinstance(panel, Lines):
        return panel
    return replace(
        panel,
        series={
            name: values
            for name, values in panel.series.items()
            if any(value is not None for value in values)
        },
    )


def _values_of(panel: Bars | Lines) -> list[float]:
    columns = panel.series.values() if isinstance(panel, Bars) else [ys for _, ys in panel.series.values()]
    return [value for column in columns for value in column if value is not None]


def _height_inches(panel: Bars | Lines) -> float:
    if isinstance(panel, Lines):
        return LINES_HEIGHT_INCHES
    legend = 0.2 if len(panel.series) > 1 else 0.0
    return (
        FRAME_INCHES
        + legend
        + BAR_INCHES * len(panel.groups) * (len(panel.series) + (0.8 if len(panel.series) > 1 else 0.4))
    )


def _draw_bars(axes: Axes, panel: Bars) -> None:
    count = len(panel.series)
    thick = 0.8 / count
    # With one series a bar is a system, and has its colour; otherwise a colour tells the series.
    palette = (
        [colours(panel.groups)]
        if count == 1 and not panel.steps
        else [[colour] * len(panel.groups) for colour in colours(list(panel.series))]
    )
    for number, (name, values) in enumerate(panel.series.items()):
        shown = [
            (place, value, colour)
            for place, (value, colour) in enumerate(zip(values, palette[number], strict=True))
            if value is not None
        ]
        if not shown:
            continue
        drawn = axes.barh(
            [place + (number - (count - 1) / 2) * thick for place, _, _ in shown],
            [value for _, value, _ in shown],
            height=thick * 0.9,
            color=[colour for _, _, colour in shown],
            label=name,
        )
        axes.bar_label(drawn, [short(value) for _, value, _ in shown], padding=2, fontsize=7)
    axes.set_yticks(range(len(panel.groups)), panel.groups)
    axes.set_ylim(len(panel.groups) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    positive = [value for value in _values_of(panel) if value > 0]
    if panel.log and positive:
        # From a round number below the smallest, so that its bar is seen.
        _logarithmic(axes, "x")
        axes.set_xlim(10 ** floor(log10(min(positive) / 1.5)), max(positive) * 1.8)
    else:
        axes.xaxis.set_major_formatter(_tick)
        axes.margins(x=0.12)
    axes.set_xlabel(panel.unit)
    _finish(axes, panel.title, "x", count)


def _draw_lines(axes: Axes, panel: Lines) -> None:
    for (name, (xs, ys)), colour in zip(panel.series.items(), colours(list(panel.series)), strict=True):
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            marker="o",
            markersize=3.5,
            linewidth=1.4,
            color=colour,
            label=name,
        )
    if panel.log_x:
        _logarithmic(axes, "x")
    else:
        axes.xaxis.set_major_formatter(_tick)
    if panel.log_y:
        _logarithmic(axes, "y")
    else:
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(_tick)
    axes.set_xlabel(panel.x_unit)
    axes.set_ylabel(panel.unit)
    _finish(axes, panel.title, "y", len(panel.series))


def _logarithmic(axes: Axes, which: str) -> None:
    from matplotlib.ticker import NullFormatter

    if which == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(_tick)
    axis.set_minor_formatter(NullFormatter())


def _tick(value: float, _: float) -> str:
    return short(value)


def _finish(axes: Axes, title: str, grid: Literal["x", "y"], series: int) -> None:
    axes.set_title(title, pad=18 if series > 1 else 6)
    axes.grid(axis=grid, color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    if series > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=min(series, 5),
            borderaxespad=0.1,
            fontsize=7.5,
            handlelength=1.2,
        )


def short(value: float) -> str:
    """A figure in few letters: 1.23 M, 45.6 k, 789, 4.56."""
    for limit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"
