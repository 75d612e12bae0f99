"""`fairlead pipeline init | check | run | watch`.

`check` has to answer within a second, so nothing here imports a client or pyspark before it is
needed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.options import DEFAULT_BOOTSTRAP_SERVERS
from fairlead_kafka.cli.pipeline_extra import need_spark
from fairlead_kafka.cli.pipeline_report import print_findings, print_flows, summed
from fairlead_kafka.cli.terminal import (
    JsonFile,
    counted,
    errors,
    output,
    progress,
    settings,
    write_json,
)

if TYPE_CHECKING:
    from fairlead_kafka.spark.pipelines.counters import FlowCounters
    from fairlead_kafka.spark.pipelines.definitions import Definitions
    from fairlead_kafka.spark.pipelines.findings import Finding
    from fairlead_kafka.spark.pipelines.project import Project
    from fairlead_kafka.spark.pipelines.running import Runner, RunResult, Where

app = typer.Typer(no_args_is_help=True, help="Spark pipelines over topics: write, check, run, watch one.")

SAMPLE_LINES = 2_000
SAMPLE_LINES_PER_S = 0.05
"""So the sample is a log of eleven hours: ten of them are over, and are written in the first
run."""
ProjectPath = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="A project's folder, or its spark-pipeline.yml.")
]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap-servers",
        "-b",
        help="Brokers, instead of the specification's; host:port.",
    ),
]
Configuration = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", "-c", metavar="KEY=VALUE", help="Over the specification's configuration; may be repeated."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(help="Where Spark runs: local[*] (the default), spark://host:7077, yarn, k8s://…."),
]
Remote = Annotated[str | None, typer.Option(help="A Spark Connect server that is there: sc://host:15002.")]
Unchecked = Annotated[bool, typer.Option("--unchecked", help="Run although the check finds mistakes.")]


@app.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to make; its name is the pipeline's.")
    ],
    bootstrap_servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            "--bootstrap-servers",
            "-b",
            envvar="FAIRLEAD_BOOTSTRAP_SERVERS",
            help="host:port of brokers.",
        ),
    ] = DEFAULT_BOOTSTRAP_SERVERS,
    sample: Annotated[
        bool,
        typer.Option("--sample/--no-sample", help="Make the topics and fill an empty one with lines to try."),
    ] = True,
) -> None:
    """Write a project that runs.

    An access log, parsed, judged and summed up by host and hour.
    """
    _check_name(folder)
    need_spark()
    from fairlead_kafka.spark.pipelines.template import write_project

    for file in write_project(folder, folder.absolute().name, bootstrap_servers):
        output.print(f"wrote {file}", markup=False)
    if sample:
        _make_sample(bootstrap_servers)
    output.print(f"next: fairlead pipeline check {folder}, then fairlead pipeline run {folder}", markup=False)


def _check_name(folder: Path) -> None:
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(folder).decode(errors="backslashreplace")
        raise ConfigError(
            f"NAME {shown}: the pipeline's files are in UTF-8, and its path is not; name another folder"
        ) from None


@app.command()
def check(
    path: ProjectPath = Path("."),
    cluster: Annotated[
        bool, typer.Option("--cluster/--no-cluster", help="Ask the brokers for their topics.")
    ] = True,
    bootstrap_servers: Servers = None,
    configuration: Configuration = None,
    json_file: JsonFile = None,
) -> None:
    """Name the mistakes in a project, without starting Spark.

    With file, line and what to do. Exit code 1 if there is an error.
    """
    need_spark()
    started_s = time.perf_counter()
    project, definitions, findings = _checked(path, _overrides(bootstrap_servers, configuration), ask=cluster)
    seconds = time.perf_counter() - started_s
    if json_file != "-":
        print_findings(findings)
        output.print(
            f"{project.name or path}: {_summary(definitions, findings)} ({seconds:.2f} s)", markup=False
        )
    rows = [
        {name: getattr(one, name) for name in ("file", "line", "rule", "severity", "what", "fix")}
        for one in findings
    ]
    write_json({"pipeline": project.name, "findings": rows, "seconds": round(seconds, 3)}, json_file)
    _refuse_errors(findings)


@app.command()
def run(
    path: ProjectPath = Path("."),
    full_refresh: Annotated[
        list[str] | None,
        typer.Option(
            "--full-refresh", metavar="DATASET", help="Compute it again from all there is; may be repeated."
        ),
    ] = None,
    full_refresh_all: Annotated[
        bool, typer.Option("--full-refresh-all", help="Compute everything from scratch.")
    ] = False,
    refresh: Annotated[
        list[str] | None, typer.Option(metavar="DATASET", help="Run only what fills these; may be repeated.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    bootstrap_servers: Servers = None,
    configuration: Configuration = None,
    unchecked: Unchecked = False,
    json_file: JsonFile = None,
) -> None:
    """Run a pipeline once.

    Every flow reads what is there now, from where it stopped last time. Exit code 1 if one fails.
    """
    need_spark()
    from fairlead_kafka.spark.pipelines.running import Refresh

    if full_refresh_all and (full_refresh or refresh):
        raise ConfigError("--full-refresh-all computes everything; leave --full-refresh and --refresh out")
    what = Refresh(full_refresh_all, tuple(full_refresh or ()), tuple(refresh or ()))
    overrides = _overrides(bootstrap_servers, configuration)
    project, definitions = _runnable(path, overrides, unchecked)
    with _runner(project, definitions, _where(master, remote, overrides)) as (runner, status):
        result = runner.run(what, status)
    _report(project, result, json_file)
    if result.failure:
        raise typer.Exit(1)


@app.command()
def watch(
    path: ProjectPath = Path("."),
    every: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Pause between two runs.")] = 1.0,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many runs; default: at Ctrl-C.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    bootstrap_servers: Servers = None,
    configuration: Configuration = None,
    unchecked: Unchecked = False,
    json_file: JsonFile = None,
) -> None:
    """Run a pipeline again and again in one Spark, until Ctrl-C.

    Shows what each flow has done so far.
    """
    need_spark()
    overrides = _overrides(bootstrap_servers, configuration)
    project, definitions = _runnable(path, overrides, unchecked)
    so_far: RunResult | None = None
    with (
        suppress(KeyboardInterrupt),
        _runner(project, definitions, _where(master, remote, overrides)) as (runner, status),
    ):
        so_far = _watch(runner, status, every, runs)
    if so_far is not None:
        _report(project, so_far, json_file)
        if so_far.failure:
            raise typer.Exit(1)


def _watch(
    runner: Runner, status: Callable[[str], None], every_s: float, runs: int | None
) -> RunResult | None:
    """Run the pipeline until a run fails, `runs` are done, or Ctrl-C. Returns the sum of all
    runs."""
    from fairlead_kafka.spark.pipelines.running import Refresh

    so_far: RunResult | None = None
    number = 0
    with suppress(KeyboardInterrupt):
        while runs is None or number < runs:
            number += 1
            so_far = summed(so_far, runner.run(Refresh(), lambda text: None))
            if so_far.failure:
                break
            status(f"run {number}: " + "; ".join(_brief(flow) for flow in so_far.flows))
            if runs is None or number < runs:
                time.sleep(every_s)
    return so_far


def _brief(flow: FlowCounters) -> str:
    lag = "" if flow.lag is None else f", lag {flow.lag:,}"
    kept = f", {flow.quarantined:,} quarantined" if flow.quarantined else ""
    lost = f", {flow.lost:,} lost" if flow.lost else ""
    return f"{flow.flow} {flow.rows_in:,} in{kept}{lag}{lost}"


class Overrides(NamedTuple):
    """Configuration from the command line, which replaces a specification's: `values` by key, and
    the text `typed` for each."""

    values: dict[str, str]
    typed: dict[str, str]


def _overrides(bootstrap_servers: str | None, configuration: list[str] | None) -> Overrides:
    from fairlead_kafka.spark.pipelines.project import SERVERS_KEY

    values = settings(configuration, "--conf")
    typed = {key: f"--conf {key}={value}" for key, value in values.items()}
    if bootstrap_servers is None:
        return Overrides(values, typed)
    return Overrides(
        {SERVERS_KEY: bootstrap_servers, **values}, {SERVERS_KEY: f"-b {bootstrap_servers}", **typed}
    )


def _checked(path: Path, overrides: Overrides, ask: bool) -> tuple[Project, Definitions, list[Finding]]:
    from fairlead_kafka.spark.pipelines.check import check_project
    from fairlead_kafka.spark.pipelines.cluster import look_at
    from fairlead_kafka.spark.pipelines.project import find_spec

    return check_project(find_spec(path), look_at if ask else None, overrides.values, overrides.typed)


def _refuse_errors(findings: list[Finding]) -> None:
    from fairlead_kafka.spark.pipelines.check import errors_of

    if errors_of(findings):
        raise typer.Exit(1)


def _runnable(path: Path, overrides: Overrides, unchecked: bool) -> tuple[Project, Definitions]:
    """The project and its definitions, if it has no errors; else the command exits with code 1. All
    findings are printed in any case."""
    project, definitions, findings = _checked(path, overrides, ask=True)
    print_findings(findings, to=errors)
    if not unchecked:
        _refuse_errors(findings)
    return project, definitions


def _summary(definitions: Definitions, findings: list[Finding]) -> str:
    from fairlead_kafka.spark.pipelines.check import errors_of

    wrong = len(errors_of(findings))
    if wrong:
        return f"{wrong} {'error' if wrong == 1 else 'errors'}"
    flows, outputs = len(definitions.flows), len(definitions.outputs)
    targets = "dataset or sink" if outputs == 1 else "datasets and sinks"
    return f"no errors in {flows} {'flow' if flows == 1 else 'flows'} into {outputs} {targets}"


def _where(master: str | None, remote: str | None, overrides: Overrides) -> Where:
    from fairlead_kafka.spark.pipelines.running import Where

    if master and remote:
        raise ConfigError("--master and --remote are two ways to say where Spark runs; give one")
    return Where(master, remote, overrides.values)


@contextmanager
def _runner(
    project: Project, definitions: Definitions, where: Where
) -> Iterator[tuple[Runner, Callable[[str], None]]]:
    """A runner, for a `with` block, and a function that shows its progress; Spark's processes end
    with the block."""
    from fairlead_kafka.cli.spark_end import spark_ended
    from fairlead_kafka.spark.pipelines.running import open_runner

    with (
        spark_ended(),
        progress("starting Spark") as status,
        open_runner(project, definitions, where) as runner,
    ):
        status("running the pipeline")
        yield runner, status


def _report(project: Project, result: RunResult, json_file: str | None) -> None:
    if json_file != "-":
        print_flows(output, result)
    if result.failure:
        errors.print(f"{project.name} failed: {result.failure}", markup=False, soft_wrap=True)
    write_json({"pipeline": project.name, **result.as_json()}, json_file)


def _make_sample(bootstrap_servers: str) -> None:
    """Create the project's topics, with lines in `access` if it is new; print what to do by hand if
    no cluster answers."""
    from fairlead_kafka.base.errors import ConnectionFailed
    from fairlead_kafka.spark.pipelines.cluster import look_at
    from fairlead_kafka.spark.pipelines.template import TOPICS

    try:
        there = look_at(bootstrap_servers).partitions
    except ConnectionFailed as error:
        output.print(
            f"no cluster answers yet ({error}): start one with `fairlead up`, and then make the topics with",
            markup=False,
        )
        for topic, partitions in TOPICS.items():
            output.print(
                f"  fairlead topics create {topic} --partitions {partitions} -b {bootstrap_servers}",
                markup=False,
            )
        output.print(
            f"and fill them: fairlead produce access -b {bootstrap_servers} < access.log", markup=False
        )
        return
    missing = {topic: partitions for topic, partitions in TOPICS.items() if topic not in there}
    if not missing:
        return
    from fairlead_kafka.cli.demo import access_log
    from fairlead_kafka.client import Admin, NewTopic, Producer

    config = {"bootstrap.servers": bootstrap_servers}
    with Admin(config) as admin:
        admin.create_topics([NewTopic(topic, partitions=partitions) for topic, partitions in missing.items()])
    output.print(f"made {', '.join(missing)} at {bootstrap_servers}", markup=False)
    if "access" in missing:
        with Producer(config) as producer:
            sent = [
                producer.send_table("access", table)
                for table in access_log.generated(SAMPLE_LINES, lines_per_s=SAMPLE_LINES_PER_S)
            ]
            total = sum(one.result().num_rows for one in sent)
        output.print(f"put {counted(total)} of an access log into access", markup=False)
