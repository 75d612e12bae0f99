"""`fairlead lab`: a command for each experiment. Their common options are in `lab_options`."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab_cluster import kip578, replication
from fairlead_kafka.cli.lab_exactly_once import exactly_once
from fairlead_kafka.cli.lab_killstorm import killstorm
from fairlead_kafka.cli.lab_latency import kip480, kip794, scenarios
from fairlead_kafka.cli.lab_options import (
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
from fairlead_kafka.cli.lab_rebalance import rebalance
from fairlead_kafka.cli.lab_soak import soak
from fairlead_kafka.cli.lab_spark import bounded, spark
from fairlead_kafka.cli.lab_transcript import transcript
from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import output
from fairlead_kafka.lab.experiment import EXPERIMENTS, TRIALS

app = typer.Typer(no_args_is_help=True, help="Experiments: every claim about speed, beside the peers.")


@app.command(name="list")
def list_experiments() -> None:
    """List the experiments."""
    table = FittingTable("experiment", "measures")
    for name, summary in [(one.name, one.summary) for one in EXPERIMENTS.values()] + list(TRIALS.items()):
        table.add_row(name, summary)
    output.print(table)


@app.command()
def kernels(profile: Profile = "quick", json_file: JsonFile = None, plot_file: PlotFile = None) -> None:
    """Records encoded and decoded per second by the kernels."""
    run_experiment("kernels", json_file, plot_file, profile=chosen_profile(profile))


@app.command()
def formats(profile: Profile = "quick", json_file: JsonFile = None, plot_file: PlotFile = None) -> None:
    """Values written and read per second, beside the peers."""
    run_experiment("formats", json_file, plot_file, profile=chosen_profile(profile))


@app.command(name="first-second")
def first_second(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of which the median counts.")] = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Time and memory of a program that sends or reads, and ends.

    From the interpreter's start, beside the peers.
    """
    from fairlead_kafka.lab.first_second import SYSTEMS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "first-second",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, tuple(SYSTEMS)),
        rounds=rounds,
    )


@app.command()
def throughput(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    records: Annotated[
        int | None,
        typer.Option(min=1000, help="Records for the fast systems; the slow ones send a share of it."),
    ] = None,
    record_size: Annotated[
        list[int] | None, typer.Option(min=1, help="Bytes of a value; may be repeated.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="unkeyed, keyed, or both separated by a comma.")] = None,
    compression: Annotated[
        str | None, typer.Option(help="Separated by commas: none, gzip, snappy, lz4, zstd.")
    ] = None,
    security: Annotated[
        str, typer.Option(help="plaintext, ssl, or both separated by a comma.")
    ] = "plaintext",
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of which the median counts.")] = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Records produced per second, beside the peers."""
    from fairlead_kafka.lab.targets import SECURITIES, TARGETS
    from fairlead_kafka.lab.throughput import COMPRESSIONS, KEYS, SYSTEMS

    run_experiment(
        "throughput",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, tuple(SYSTEMS)),
        records=records,
        record_sizes=record_size or [],
        keys=chosen_all("--key", key, KEYS) if key else [],
        compressions=chosen_all("--compression", compression, COMPRESSIONS) if compression else [],
        rounds=rounds,
        securities=chosen_all("--security", security, SECURITIES),
    )


@app.command()
def transactions(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="v1 (KIP-98), v2 (KIP-890), or both separated by a comma; default: both."),
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(help="record, batch, or both separated by a comma; default: both."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of which the median counts.")] = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Transactions committed per second, beside the peers.

    Each has one record, or a batch of 1,000, for each of three brokers.
    """
    from fairlead_kafka.lab.targets import TARGETS
    from fairlead_kafka.lab.transactions import LOADS, PROTOCOLS, SYSTEMS

    run_experiment(
        "transactions",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, tuple(SYSTEMS)),
        protocols=chosen_all("--protocol", protocol, tuple(PROTOCOLS)),
        loads=chosen_all("--load", load, tuple(LOADS)),
        rounds=rounds,
    )


@app.command()
def consume(
    profile: Profile = "quick",
    target: Target = "apache-kafka,fairlead",
    peers: Peers = None,
    records: Annotated[
        int | None,
        typer.Option(min=50_000, help="Records of 100 bytes; of larger ones as many as take no more."),
    ] = None,
    record_size: Annotated[
        list[int] | None, typer.Option(min=1, help="Bytes of a value; may be repeated.")
    ] = None,
    partitions: Annotated[
        list[int] | None, typer.Option(min=1, help="Partitions of the topic; may be repeated.")
    ] = None,
    compression: Annotated[
        str | None, typer.Option(help="Separated by commas: none, gzip, snappy, lz4, zstd.")
    ] = None,
    how: Annotated[str | None, typer.Option(help="assigned, group, or both separated by a comma.")] = None,
    delay: Annotated[
        int, typer.Option(min=0, help="ms that each answer of the broker takes: a client far away.")
    ] = 0,
    isolation: Annotated[
        str, typer.Option(help="read_uncommitted, or read_committed of transactions.")
    ] = "read_uncommitted",
    security: Annotated[
        str, typer.Option(help="plaintext, ssl, or both separated by a comma.")
    ] = "plaintext",
    latency: Annotated[bool, typer.Option(help="Measure latency from send to poll too.")] = True,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Records read per second, cold and warm, beside the peers. Without options that say what is
    read: all that the profile has."""
    from fairlead_kafka.lab.consume import COMPRESSIONS, HOWS, ISOLATIONS, PLAIN, SYSTEMS, Cell
    from fairlead_kafka.lab.targets import SECURITIES, TARGETS

    if delay and security != "plaintext":
        raise ConfigError("--delay: a client far away reads in plaintext only; leave --security out")
    cells = [
        Cell(size, count, codec, way, delay, chosen("--isolation", isolation, ISOLATIONS), each)
        for size in record_size or [PLAIN.record_size]
        for count in partitions or [PLAIN.partitions]
        for codec in (
            chosen_all("--compression", compression, COMPRESSIONS) if compression else [PLAIN.compression]
        )
        for way in (chosen_all("--how", how, HOWS) if how else [PLAIN.how])
        for each in chosen_all("--security", security, SECURITIES)
    ]
    run_experiment(
        "consume",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, tuple(SYSTEMS)),
        records=records,
        cells=[] if cells == [PLAIN] else cells,
        latency=latency,
    )


@app.command()
def isolation(
    profile: Profile = "quick",
    target: Target = "fairlead",
    peers: Peers = None,
    load: Annotated[
        str | None, typer.Option(help="keyed, unkeyed, or both separated by a comma; default: both.")
    ] = None,
    fault: Annotated[
        str | None, typer.Option(help="slow, dead, or both separated by a comma; default: both.")
    ] = None,
    rate: Annotated[
        int,
        typer.Option(min=0, help="Records per second that are offered; 0: as fast as the client takes them."),
    ] = 0,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Throughput of two brokers while the third is slow or dead."""
    from fairlead_kafka.lab.isolation import FAULTS, LOADS, SYSTEMS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "isolation",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        peers=chosen_all("--peers", peers, tuple(SYSTEMS)),
        loads=chosen_all("--load", load, LOADS),
        faults=chosen_all("--fault", fault, FAULTS),
        rate=rate,
    )


@app.command()
def batching(
    profile: Profile = "quick",
    target: Target = "fairlead",
    batch_size: Annotated[list[int] | None, typer.Option(min=0, help="batch.size; may be repeated.")] = None,
    linger: Annotated[list[int] | None, typer.Option(min=0, help="linger.ms; may be repeated.")] = None,
    compression: Annotated[
        str | None, typer.Option(help="Separated by commas: none, gzip, snappy, lz4, zstd, or 'zstd 9'.")
    ] = None,
    records: Annotated[int | None, typer.Option(min=100, help="Records of a row.")] = None,
    rate: Annotated[int | None, typer.Option(min=1, help="Records per second.")] = None,
    limits: Annotated[bool, typer.Option(help="Try the limits too.")] = True,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Effects of batch.size, linger.ms, compression and limits.

    All on the same records.
    """
    from fairlead_kafka.lab.batching import CODECS
    from fairlead_kafka.lab.targets import TARGETS

    run_experiment(
        "batching",
        json_file,
        plot_file,
        profile=chosen_profile(profile),
        targets=chosen_all("--target", target, TARGETS),
        batch_sizes=batch_size or [],
        lingers_ms=linger or [],
        codecs=chosen_all("--compression", compression, tuple(CODECS)) if compression else [],
        records=records,
        rate=rate,
        limits=limits,
    )


app.command()(bounded)
app.command(name="exactly-once")(exactly_once)
app.command()(killstorm)
app.command()(kip480)
app.command()(kip794)
app.command()(scenarios)
app.command()(kip578)
app.command()(replication)
app.command()(rebalance)
app.command()(soak)
app.command()(spark)
app.command()(transcript)
