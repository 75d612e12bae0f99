"""`fairlead lab kip578` and `fairlead lab replication`: the experiments about a whole cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab_options import (
    JsonFile,
    PlotFile,
    Profile,
    Target,
    chosen,
    chosen_all,
    chosen_profile,
    run_experiment,
)
from fairlead_kafka.cli.terminal import output, progress, write_json


def kip578(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    experiment: Annotated[
        str | None, typer.Option(help="A1, A2, A3, separated by commas; default: all.")
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option(help="Who produces: java, fairlead, or both separated by a comma; default: both."),
    ] = None,
    partitions: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Partitions of the topic; may be repeated; default: by profile."),
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=1000, help="Records of 512 bytes of one load; default: by profile.")
    ] = None,
    hosting: Annotated[
        str, typer.Option(help="Our brokers: thread (all in one) or processes (one each).")
    ] = "thread",
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Cost of many partitions (KIP-578).

    Throughput, creation, deletion, restart, failover.
    """
    from fairlead_kafka.lab.kip578 import EXPERIMENTS
    from fairlead_kafka.lab.kip578_load import GENERATORS
    from fairlead_kafka.lab.kip578_targets import HOSTINGS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "kip578",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        experiments=chosen_all("--experiment", experiment, EXPERIMENTS),
        generators=chosen_all("--generator", generator, GENERATORS),
        partitions=partitions or [],
        records=records,
        hosting=chosen("--hosting", hosting, HOSTINGS),
    )


def replication(
    scenario: Annotated[
        list[int] | None, typer.Option(help="1, 2 or 3; may be repeated; default: all.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Show step by step what replication does when brokers fail.

    Each step shows the partition, a producer and a consumer.
    """
    from fairlead_kafka.lab.experiment import report
    from fairlead_kafka.lab.replication import SCENARIOS, run, text

    unknown = [number for number in scenario or () if number not in SCENARIOS]
    if unknown:
        raise ConfigError(f"--scenario {unknown[0]}: must be one of {', '.join(map(str, SCENARIOS))}")
    parameters = {"scenarios": sorted(set(scenario or SCENARIOS))}
    with progress("lab replication") as status:
        rows = run(status, **parameters)
    if json_file != "-":
        for line in text(rows):
            output.print(line, markup=False, highlight=False, soft_wrap=True)
    write_json(report("replication", parameters, rows), json_file)
