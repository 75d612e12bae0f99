"""`fairlead lab transcript`: whether the embedded cluster answers as Apache Kafka does."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.terminal import JsonFile, errors, output, progress, rows_table, write_json


def transcript(
    apache_kafka: Annotated[
        str | None,
        typer.Option(
            "--apache-kafka",
            metavar="HOST:PORT",
            help="An Apache Kafka of one broker that never saw the transcript; default: start one.",
        ),
    ] = None,
    replicated: Annotated[
        bool,
        typer.Option(
            "--replicated",
            help="Three brokers on both sides instead of one: leaders and followers, moves, brokers killed.",
        ),
    ] = False,
    secured: Annotated[
        bool,
        typer.Option(
            "--secured",
            help="With log-ins and an authorizer: every API asked by users with this right, that, and none.",
        ),
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Compare how Apache Kafka and ours answer the same requests.

    Field by field; fails if a difference is unexplained.
    """
    from fairlead_kafka.lab.apache_kafka import Unavailable
    from fairlead_kafka.lab.transcript import run_replicated, run_secured, run_transcript

    if replicated and apache_kafka is not None:
        raise ConfigError(
            "--replicated starts its own Apache Kafka, for it kills brokers: leave --apache-kafka away"
        )
    if secured and (replicated or apache_kafka is not None):
        raise ConfigError(
            "--secured starts its own Apache Kafka, of one broker with users: leave --apache-kafka and "
            "--replicated away"
        )
    try:
        with progress("lab transcript") as status:
            if secured:
                result = run_secured(status)
            else:
                result = run_replicated(status) if replicated else run_transcript(status, apache_kafka)
    except Unavailable as error:
        write_json({"system": "apache-kafka", "skipped": str(error)}, json_file)
        errors.print(f"skipped: {error}", markup=False)
        return
    if json_file != "-":
        output.print(rows_table([result.figures()], thousands=True))
    write_json(result.figures(), json_file)
    for line in result.unexplained:
        errors.print(line, markup=False)
    for entry in result.unused:
        errors.print(
            f"a data file explains what does not differ: {entry.api} {entry.where} in {entry.step}",
            markup=False,
        )
    if result.unexplained:
        raise typer.Exit(1)
