"""`fairlead lab soak`: whether memory or latencies rise, or records are lost, in a cluster that is
used for a long time."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.cli.lab_options import JsonFile, PlotFile, run_experiment

DEFAULT_RATE = 4_000


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="How long.")] = 10.0,
    rate: Annotated[
        int,
        typer.Option(
            min=0,
            help="Records per second of all that produce; the default is far below what two cores can do; 0: "
            "unpaced.",
        ),
    ] = DEFAULT_RATE,
    kills: Annotated[bool, typer.Option(help="Kill a broker every minute, and start it again.")] = True,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Three brokers, every kind of load, a kill a minute.

    Memory, descriptors, threads, disk, throughput; fails if anything was lost.
    """
    from fairlead_kafka.lab.soak import sound

    if not sound(run_experiment("soak", json_file, plot_file, minutes=minutes, rate=rate, kills=kills)):
        raise typer.Exit(1)
