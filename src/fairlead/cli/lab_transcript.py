"""`fairlead lab transcript`: whether our cluster answers as Apache Kafka does."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead.cli.terminal import JsonFile, errors, output, progress, rows_table, write_json


def transcript(
    apache_kafka: Annotated[
        str | None,
        typer.Option(
            "--apache-kafka", metavar="HOST:PORT", help="An Apache Kafka of one broker that never saw the transcript; default: start one."
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """The same requests to Apache Kafka and to our cluster, answers compared field by field; fails if a difference is unexplained."""
    from fairlead.lab.apache_kafka import Unavailable
    from fairlead.lab.transcript import run_transcript

    try:
        with progress("lab transcript") as status:
            result = run_transcript(status, apache_kafka)
    except Unavailable as error:
        write_json({"system": "apache-kafka", "skipped": str(error)}, json_file)
        errors.print(f"skipped: {error}", markup=False)
        return
    if json_file != "-":
        output.print(rows_table([result.figures()]))
    write_json(result.figures(), json_file)
    for line in result.unexplained:
        errors.print(line, markup=False)
    for entry in result.unused:
        errors.print(f"differences.toml explains what does not differ: {entry.api} {entry.where} in {entry.step}", markup=False)
    if result.unexplained:
        raise typer.Exit(1)
