"""`fairlead lab list | kernels | throughput`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from fairlead.base.errors import ConfigError
from fairlead.cli.terminal import JsonFile, output, progress, rows_table, write_json
from fairlead.lab.experiment import EXPERIMENTS, report

app = typer.Typer(no_args_is_help=True, help="Experiments: every claim about speed, to be run again beside the peers.")

Profile = Annotated[str, typer.Option(help="quick (a minute or two) or full.")]
PROFILES = ("quick", "full")


@app.command(name="list")
def list_experiments() -> None:
    """List the experiments."""
    table = Table("experiment", "measures", box=None, pad_edge=False)
    for one in EXPERIMENTS.values():
        table.add_row(one.name, one.summary)
    output.print(table)


@app.command()
def kernels(profile: Profile = "quick", json_file: JsonFile = None) -> None:
    """Records encoded and decoded per second by the kernels."""
    _run("kernels", json_file, profile=_chosen("--profile", profile, PROFILES))


@app.command()
def throughput(
    profile: Profile = "quick",
    target: Annotated[str, typer.Option(help="Targets, separated by commas: apache-kafka, fairlead.")] = "apache-kafka,fairlead",
    peers: Annotated[str | None, typer.Option(help="Systems, separated by commas; default: all.")] = None,
    records: Annotated[int | None, typer.Option(min=1000, help="Records for the fast systems; the slow ones send a share of it.")] = None,
    record_size: Annotated[list[int] | None, typer.Option(min=1, help="Bytes of a value; may be repeated.")] = None,
    compression: Annotated[str, typer.Option(help="none, gzip, snappy, lz4 or zstd.")] = "none",
    json_file: JsonFile = None,
) -> None:
    """Records produced per second, beside the peers."""
    from fairlead.lab.targets import TARGETS
    from fairlead.lab.throughput import SYSTEMS

    _run(
        "throughput",
        json_file,
        profile=_chosen("--profile", profile, PROFILES),
        targets=_chosen_all("--target", target, TARGETS),
        peers=_chosen_all("--peers", ",".join(SYSTEMS) if peers is None else peers, tuple(SYSTEMS)),
        records=records,
        record_sizes=record_size or [],
        compression=_chosen("--compression", compression, ("none", "gzip", "snappy", "lz4", "zstd")),
    )


def _chosen(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ConfigError(f"{option} {value}: must be one of {', '.join(allowed)}")
    return value


def _chosen_all(option: str, values: str, allowed: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(_chosen(option, value.strip(), allowed) for value in values.split(",")))


def _run(name: str, json_file: str | None, **parameters: Any) -> None:
    with progress(f"lab {name}") as status:
        rows = EXPERIMENTS[name].run(status, **parameters)
    if json_file != "-":
        output.print(rows_table(rows))
    write_json(report(name, parameters, rows), json_file)
