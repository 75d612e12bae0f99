"""`fairlead lab rebalance`: what a group goes through when its members change."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.cli.lab_options import (
    CLOCKS,
    Clock,
    JsonFile,
    Peers,
    PlotFile,
    Profile,
    Target,
    chosen,
    chosen_all,
    chosen_profile,
    run_experiment,
)


def rebalance(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    protocol: Annotated[
        str | None, typer.Option(help="range, cooperative, consumer, separated by commas; default: all.")
    ] = None,
    event: Annotated[
        str | None, typer.Option(help="join, leave, die, roll, separated by commas; default: all.")
    ] = None,
    members: Annotated[
        list[int] | None,
        typer.Option(min=2, help="Members of a group; may be repeated; default: 3; full: 3 and 30."),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(min=4, help="Partitions of the topic; default: 200; full: 1,000."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each group goes through the events.")] = 1,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="The groups of all peers at the same time, not in turn.")
    ] = False,
    clock: Clock = "real",
    seed: Annotated[int, typer.Option(help="Of the events' moments, and of chance in virtual time.")] = 1,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Groups under load: members join, leave, die, are rolled.

    A death is `kill -9`, a roll one restart after the other. Reported are the seconds until all is
    read again, the records read twice, and the longest wait of partitions that stayed with their
    member.
    """
    from fairlead_kafka.lab.rebalance import EVENTS, PROFILES, PROTOCOLS, SYSTEMS
    from fairlead_kafka.lab.targets import TARGETS

    size = PROFILES[chosen_profile(profile)]
    clock = chosen("--clock", clock, CLOCKS)
    run_experiment(
        "rebalance",
        json_file,
        plot_file,
        targets=chosen_all("--target", target, TARGETS),
        systems=chosen_all("--peers", peers, SYSTEMS),
        protocols=chosen_all("--protocol", protocol, tuple(PROTOCOLS)),
        events=chosen_all("--event", event, EVENTS),
        members=members or list(size.members),
        clock=clock,
        seed=seed,
        partitions=partitions or size.partitions,
        rounds=rounds,
        at_once=at_once,
    )
