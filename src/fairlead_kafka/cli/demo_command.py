"""`fairlead demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.cli.demo.line_formats import JSON_FIELDS, InputOfNoUse
from fairlead_kafka.cli.exit_codes import WRONG_COMMAND_LINE_EXIT_CODE
from fairlead_kafka.cli.pipeline_extra import need_spark
from fairlead_kafka.cli.terminal import JsonFile, errors, output, progress, write_json


def demo(
    input_path: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="An access log: common, combined or JSON lines; may be compressed. Fields of a JSON line: "
            f"{JSON_FIELDS}.",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Lines to generate when there is no --input.")] = 100_000,
    json_file: JsonFile = None,
) -> None:
    """Log lines through producer, cluster, Spark and back.

    Every record accounted for.
    """
    need_spark()
    from fairlead_kafka.cli.demo.report import print_report
    from fairlead_kafka.cli.demo.run import run_demo

    with progress("reading the input") as status:
        try:
            result = run_demo(input_path, rows, status)
        except InputOfNoUse as error:
            errors.print(str(error), markup=False, soft_wrap=True)
            raise typer.Exit(WRONG_COMMAND_LINE_EXIT_CODE) from None
    if json_file != "-":
        print_report(output, result)
    write_json(result.as_json(), json_file)
    if result.lost:
        raise typer.Exit(1)
