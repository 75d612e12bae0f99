"""`fairlead lab exactly-once`: whether each row is there once when drivers and tasks are killed
over and over."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.cli.lab_options import Target, chosen, chosen_all
from fairlead_kafka.cli.terminal import JsonFile, output, progress, rows_table, write_json


def exactly_once(
    kills: Annotated[int, typer.Option(min=1, help="How often a driver or a task is killed.")] = 50,
    target: Target = "apache-kafka,fairlead",
    engine: Annotated[
        str,
        typer.Option(
            help="spark (the real one), or processes (the same code without Spark, many times faster)."
        ),
    ] = "spark",
    seed: Annotated[int, typer.Option(help="Draws who is killed, and where.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """`kill -9` on a query at every step of an exactly-once write.

    Fails if a row is lost, or there twice.
    """
    from fairlead_kafka.lab.exactly_once import ENGINES, run
    from fairlead_kafka.lab.experiment import report
    from fairlead_kafka.lab.targets import TARGETS

    targets = chosen_all("--target", target, TARGETS)
    engine = chosen("--engine", engine, tuple(ENGINES))
    with progress("lab exactly-once") as status:
        rows = run(
            status,
            kills=kills,
            targets=targets,
            engine=engine,
            seed=seed,
        )
    if json_file != "-":
        output.print(rows_table(rows, thousands=True))
    parameters = {
        "kills": kills,
        "targets": targets,
        "engine": engine,
        "seed": seed,
    }
    write_json(report("exactly-once", parameters, rows), json_file)
    if any(row.get("lost") or row.get("duplicated") for row in rows):
        raise typer.Exit(1)
