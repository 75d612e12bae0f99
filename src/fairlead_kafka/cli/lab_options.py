"""Options of the `fairlead lab` commands, and how an experiment is run, printed and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.terminal import JsonFile, errors, output, progress, rows_table, write_json
from fairlead_kafka.lab.experiment import EXPERIMENTS, Row, report
from fairlead_kafka.lab.plotting import SUFFIXES, Unplottable, check_suffix

__all__ = [
    "CLOCKS",
    "Clock",
    "JsonFile",
    "Peers",
    "PlotFile",
    "Profile",
    "Target",
    "chosen",
    "chosen_all",
    "chosen_profile",
    "run_experiment",
]

PROFILES = ("quick", "full")
CLOCKS = ("real", "virtual")

Profile = Annotated[str, typer.Option(help="quick (a minute or two) or full.")]
Peers = Annotated[str | None, typer.Option(help="Systems, separated by commas; default: all.")]
Target = Annotated[str, typer.Option(help="Targets, separated by commas: apache-kafka, fairlead.")]
Clock = Annotated[str, typer.Option(help="real (sockets) or virtual (simulated time, ours alone).")]


def _check_plot_file(target: str | None) -> str | None:
    if target is not None:
        check_suffix(Path(target))
        if not Path(target).absolute().parent.is_dir():
            raise ConfigError(
                f"--plot {target}: there is no such folder; name a file in a folder that exists"
            )
    return target


PlotFile = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        callback=_check_plot_file,
        help=f"Draw the rows as {' or '.join(SUFFIXES)}; with --json FILE they are drawn beside it anyway.",
    ),
]


def chosen(option: str, value: str, allowed: tuple[str, ...]) -> str:
    """`value`, if it is one of `allowed`; else ConfigError."""
    if value not in allowed:
        raise ConfigError(f"{option} {value}: must be one of {', '.join(allowed)}")
    return value


def chosen_all(option: str, values: str | None, allowed: tuple[str, ...]) -> list[str]:
    """`values`, separated by commas, each once; all that are allowed if None. ConfigError for one
    that is not allowed."""
    if values is None:
        return list(allowed)
    return list(dict.fromkeys(chosen(option, value.strip(), allowed) for value in values.split(",")))


def chosen_profile(value: str) -> str:
    """The profile, "quick" or "full"; ConfigError for any other."""
    return chosen("--profile", value, PROFILES)


def run_experiment(
    name: str, json_file: str | None, plot_file: str | None, **parameters: object
) -> list[Row]:
    """Run an experiment, print its rows unless the report goes to standard output, write the report
    and draw the plot. Returns the rows.

    A plot that cannot be drawn is said in a line and is no failure: the rows are what counts.
    """
    experiment = EXPERIMENTS[name]
    plot_file = plot_file or plot_beside(json_file)
    if plot_file and json_file and Path(plot_file).absolute() == Path(json_file).absolute():
        raise ConfigError(
            f"--json {json_file}: the plot would be written over it; name another file with --plot"
        )
    with progress(f"lab {name}") as status:
        rows = experiment.run(status, **parameters)
    if json_file != "-":
        for table in dict.fromkeys(row.get("table") for row in rows):
            output.print(rows_table([row for row in rows if row.get("table") == table], thousands=True))
    write_json(report(name, parameters, rows), json_file)
    if plot_file:
        try:
            experiment.plot(rows, Path(plot_file))
        except Unplottable as error:
            errors.print(f"no plot: {error}", markup=False)
    return rows


def plot_beside(json_file: str | None) -> str | None:
    """Path of a report's plot if none is given: beside the JSON file; None without such a file."""
    return None if json_file in (None, "-") else str(Path(json_file).with_suffix(".svg"))
