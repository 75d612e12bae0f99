"""`fairlead lab kip480`, `kip794` and `scenarios`: tables of latencies by policy."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab_options import (
    CLOCKS,
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
from fairlead_kafka.cli.terminal import numbers, settings

AllClocks = Annotated[
    str,
    typer.Option(
        help="real (sockets), virtual (simulated time, ours alone, the same figures for a seed), or both, "
        "compared."
    ),
]
Policies = Annotated[
    str | None,
    typer.Option(help="Our policies, separated by commas, `default` among them; by default all of them."),
]
Records = Annotated[
    int | None,
    typer.Option(min=100, help="Measured records of a row, after the warm-up; default: by profile."),
]
Seed = Annotated[int, typer.Option(help="Of what is left to chance in virtual time.")]


def kip794(
    profile: Profile = "quick",
    clock: AllClocks = "real",
    target: Target = "apache-kafka",
    peers: Peers = None,
    policy: Policies = None,
    fault: Annotated[
        str,
        typer.Option(help="What broker 0 does: none, serial, latency or dead; several separated by commas."),
    ] = "serial",
    brokers: Annotated[int, typer.Option(min=1, help="Brokers.")] = 3,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions; partition i is led by broker i modulo the brokers.")
    ] = 3,
    delay_ms: Annotated[float, typer.Option(min=0, help="How late broker 0 answers.")] = 20.0,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Records per second; default: series 1 (2,048) and 2 (4,096).")
    ] = None,
    records: Records = None,
    linger: Annotated[str, typer.Option(help="linger.ms, several separated by commas.")] = "0,5",
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", "-X", metavar="KEY=VALUE", help="A further config of our producer; may be repeated."
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            min=1,
            help="On sockets: so often all is measured, each time in another order; of undisturbed runs the "
            "median counts.",
        ),
    ] = 1,
    seed: Seed = 1,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """How late records are while a broker is slow (KIP-794).

    One of three brokers is slow. Also: how evenly records are spread over partitions.
    """
    from fairlead_kafka.lab.faulty_targets import FAULTS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "kip794",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        clock=chosen("--clock", clock, (*CLOCKS, "both")),
        targets=chosen_all("--target", target, TARGETS),
        peers=_systems(peers, policy),
        policies=_policies(policy),
        faults=chosen_all("--fault", fault, FAULTS),
        brokers=brokers,
        partitions=partitions,
        delay_ms=delay_ms,
        rate=rate,
        records=records,
        lingers_ms=numbers("--linger", linger),
        properties=_properties(properties),
        rounds=rounds,
        seed=seed,
    )


def kip480(
    profile: Profile = "quick",
    clock: AllClocks = "real",
    target: Target = "apache-kafka",
    peers: Annotated[
        str,
        typer.Option(
            help="Systems, separated by commas; also java, confluent-kafka, kafka-python, aiokafka."
        ),
    ] = "fairlead",
    policy: Policies = None,
    partitions: Annotated[
        str | None, typer.Option(help="Numbers of partitions, separated by commas; default: by profile.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Records per second, several separated by commas; default: 1000,10000.")
    ] = None,
    records: Records = None,
    seed: Seed = 1,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Latency: round robin, sticky and late (KIP-480).

    By partitions, rate and linger.
    """
    from fairlead_kafka.lab.kip480 import POLICIES
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "kip480",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        clock=chosen("--clock", clock, (*CLOCKS, "both")),
        targets=chosen_all("--target", target, TARGETS),
        peers=_systems(peers, policy),
        policies=chosen_all("--policy", policy, tuple(POLICIES)),
        partitions=numbers("--partitions", partitions, 1),
        rates=numbers("--rate", rate, 1),
        records=records,
        seed=seed,
    )


def scenarios(
    profile: Profile = "quick",
    policy: Annotated[
        str, typer.Option(help="Our policies, separated by commas, or all.")
    ] = "adaptive.coalesced,late",
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            help="Those whose name has this in it, as: keyed, stalls, middle; may be repeated; default: all."
        ),
    ] = None,
    seed: Seed = 1,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Policies under loads and faults unlike KIP-794's.

    Keys, stalls, bursts, brokers that change, rates beyond a broker's limit; in virtual time.
    Profile full: the mean of four seeds.
    """
    from fairlead_kafka.lab.scenarios import SCENARIOS

    wanted = [name for name in SCENARIOS if any(part in name for part in scenario or [""])]
    if not wanted:
        raise ConfigError(
            f"--scenario {', '.join(scenario or [])}: no scenario has this in its name; there are: "
            f"{'; '.join(SCENARIOS)}"
        )
    run_experiment(
        "scenarios",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        policies=_policies(None if policy == "all" else policy),
        scenarios=wanted,
        seed=seed,
    )


def _policies(policy: str | None) -> list[str]:
    """The policies that are asked for, or all; `default` stands for the default policy. ConfigError
    for an unknown one."""
    from fairlead_kafka.lab.kip794_cases import DEFAULT, POLICIES

    return list(chosen_all("--policy", policy, tuple(POLICIES) if policy is None else (*POLICIES, *DEFAULT)))


def _systems(peers: str | None, policy: str | None) -> list[str]:
    """Names of the systems to measure; ConfigError if policies of ours are asked for and our client
    is left out."""
    from fairlead_kafka.lab.paced import MODULES

    systems = chosen_all("--peers", peers, tuple(MODULES))
    if policy is not None and "fairlead" not in systems:
        raise ConfigError(
            f"--policy {policy}: these are fairlead's, which --peers leaves out; add it: --peers "
            f"fairlead,{peers}"
        )
    return list(systems)


def _properties(pairs: list[str] | None) -> dict[str, str]:
    """Configs of ours for every policy; ConfigError for those that have an option or a policy of
    their own."""
    given = settings(pairs)
    for key, option in (("linger.ms", "--linger"), ("partitioner.class", "--policy")):
        if key in given:
            raise ConfigError(f"--property {key}: is set for each row; choose it with {option}")
    return given
