"""`fairlead simulate`: worlds of machines in virtual time, with faults drawn from a seed, and
planted bugs that the checks have to find."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import Json, JsonObject, integer_at, list_at, number_at, objects_at
from fairlead_kafka.cli.terminal import JsonFile, errors, output, progress, rows_table, write_json

_COUNTED = ("world", "seeds", "steps", "faults", "violations", "canaries_caught", "canaries", "seconds")
"""The columns of the table, and the keys that every report has."""


def simulate(
    world: Annotated[
        str | None, typer.Option(help="producer, cluster or readers; default: all, one after the other.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds of each world.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes to use; default: one for each core.")
    ] = None,
    canaries: Annotated[
        bool, typer.Option("--canaries", help="Also plant bugs, each of which has to be noticed.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Run real machines in virtual time on a network that fails.

    Brokers and network fail by seed; what machines did is compared with a model.

    A violation is printed with its seed, its fault plan and the command that replays it, and with
    --canaries how many seeds it took until each planted bug was noticed. Exit code 1 if there is a
    violation, or if that took more seeds than it did before.
    """
    from fairlead_kafka.simulation.run import WORLDS
    from fairlead_kafka.simulation.run import simulate as run

    if world is not None and world not in WORLDS:
        raise ConfigError(f"--world {world}: must be one of {', '.join(WORLDS)}")
    with progress("simulate") as status:
        worlds = [world] if world is not None else list(WORLDS)
        processes, report_every_tenth = jobs or os.cpu_count() or 1, _every_so_often(status)
        reports = [
            run(name, seeds, seed, jobs=processes, canaries=canaries, progress=report_every_tenth)
            for name in worlds
        ]
    if json_file != "-":
        output.print(
            rows_table([{key: report[key] for key in _COUNTED} for report in reports], thousands=True)
        )
        if canaries:
            output.print(
                rows_table([row for report in reports for row in objects_at(report, "canary_seeds")])
            )
    for report in reports:
        for story in list_at(report, "failures"):
            errors.print(str(story), markup=False, soft_wrap=True)
        for missed in list_at(report, "missed"):
            errors.print(str(missed), soft_wrap=True, markup=False)
    if json_file != "-":
        output.print(f"[bold]{_summary(reports)}[/]")
    write_json(reports[0] if len(reports) == 1 else _together(reports), json_file)
    if any(report["failures"] or report["missed"] for report in reports):
        raise typer.Exit(1)


def _summary(reports: Sequence[Mapping[str, Json]]) -> str:
    """A sentence on all reports: how many seeds ran, how many violated, planted bugs that were
    noticed."""
    seeds, violated = (
        sum(integer_at(report, "seeds") for report in reports),
        sum(integer_at(report, "violations") for report in reports),
    )
    planted, missed = (
        sum(integer_at(report, "canaries") for report in reports),
        sum(len(list_at(report, "missed")) for report in reports),
    )
    held = (
        "all held"
        if not violated
        else f"{violated} did not hold: their stories are above, with the commands that replay them"
    )
    noticed = f"; of {planted} planted bugs {planted - missed} were noticed" if planted else ""
    return f"{seeds} world{'' if seeds == 1 else 's'} simulated, {held}{noticed}"


def _every_so_often(status: Callable[[str], None]) -> Callable[[str], None]:
    """A function that passes on every status to a terminal, but only each tenth elsewhere, where
    each is a line."""
    reported: list[str] = []

    def report_every_tenth(text: str) -> None:
        reported.append(text)
        if errors.is_terminal or len(reported) % 10 == 1:
            status(text)

    return report_every_tenth


def _together(reports: Sequence[Mapping[str, Json]]) -> JsonObject:
    """One report of several worlds: the sums, and each world's own report."""
    summed = {key: sum(number_at(report, key) for report in reports) for key in _COUNTED if key != "world"}
    return {"world": "all", **summed, "worlds": reports}
