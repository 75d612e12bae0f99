"""`fairlead lab spark` and `fairlead lab bounded`: Spark with Fairlead's source and sink, compared
with its own connector, and in little memory."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab_options import (
    JsonFile,
    Peers,
    PlotFile,
    Profile,
    Target,
    chosen_all,
    chosen_profile,
    run_experiment,
)
from fairlead_kafka.cli.terminal import output, progress, rows_table, write_json


def spark(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    job: Annotated[
        str | None,
        typer.Option(help="read, read_value, write, copy, latency, separated by commas; default: all."),
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1000, help="Rows of a job; default: by profile.")] = None,
    record_size: Annotated[
        list[int] | None, typer.Option(min=8, help="Bytes of a value; may be repeated.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of which the median counts, after one that warms up.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for our source and sink, such as kafka.linger.ms=5; may be repeated."),
    ] = None,
    heap: Annotated[str, typer.Option(help="Memory of Spark's driver, of each system.")] = "1g",
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Rows per second through Spark, and a stream's latency.

    Beside Spark's own Kafka connector.
    """
    from fairlead_kafka.lab.spark import JOBS
    from fairlead_kafka.lab.spark_systems import SYSTEMS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "spark",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, SYSTEMS),
        jobs=chosen_all("--job", job, JOBS),
        rows=rows,
        record_sizes=record_size or [],
        rounds=rounds,
        options=options_of(option or []),
        heap=heap,
    )


def bounded(
    target: Target = "apache-kafka,fairlead",
    gigabytes: Annotated[
        float, typer.Option(min=0.001, help="How much is streamed, 10^9 bytes of values.")
    ] = 5.0,
    record_size: Annotated[int, typer.Option(min=16, help="Bytes of a value.")] = 512,
    heap: Annotated[str, typer.Option(help="Memory of Spark's driver.")] = "1g",
    worker_limit_mb: Annotated[
        int, typer.Option(min=100, help="Memory of each Python process, 2**20 bytes.")
    ] = 600,
    json_file: JsonFile = None,
) -> None:
    """Gigabytes through Spark's read and write with little memory.

    Fails if anything is lost or changed.
    """
    from fairlead_kafka.lab.experiment import report
    from fairlead_kafka.lab.spark_bounded import run
    from fairlead_kafka.lab.targets import TARGETS

    targets = chosen_all("--target", target, TARGETS)
    with progress("lab bounded") as status:
        rows = run(
            status,
            targets=targets,
            gigabytes=gigabytes,
            record_size=record_size,
            heap=heap,
            worker_limit_mb=worker_limit_mb,
        )
    if json_file != "-":
        output.print(rows_table(rows, thousands=True))
    parameters = {
        "targets": targets,
        "gigabytes": gigabytes,
        "record_size": record_size,
        "heap": heap,
        "worker_limit_mb": worker_limit_mb,
    }
    write_json(report("bounded", parameters, rows), json_file)
    if any(row.get("lost") or row.get("changed") for row in rows):
        raise typer.Exit(1)


def options_of(pairs: list[str]) -> dict[str, str]:
    """`NAME=VALUE` texts by name. ConfigError for one without a name or an equals sign."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise ConfigError(f"--option {pair}: must be NAME=VALUE")
        options[name] = value
    return options
