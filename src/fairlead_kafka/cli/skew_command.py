"""`fairlead skew`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.cli.connecting import TOPIC_S, open_consumer
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.terminal import (
    JsonFile,
    numbers,
    output,
    progress,
    write_json,
)


@expanded
def skew(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    max_records: Annotated[
        int, typer.Option(min=0, help="Look at the newest so many records only; 0: at all.")
    ] = 1_000_000,
    replay_records: Annotated[
        int, typer.Option(min=0, help="Try other settings on the newest so many of them; 0: don't.")
    ] = 10_000,
    policy: Annotated[
        str | None, typer.Option(help="Policies to try, separated by commas; default: all.")
    ] = None,
    batch_size: Annotated[
        str,
        typer.Option(
            help="Values of batch.size to try; the first is also what a full batch of the topic is."
        ),
    ] = "16384,65536",
    linger_ms: Annotated[str, typer.Option(help="Values of linger.ms to try.")] = "5,0,50",
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Try them at so many records a second, and fill by --input so; default: as timestamps say.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Hot keys to show.")] = 10,
    seed: Annotated[int, typer.Option(help="Of what the policies leave to chance.")] = 1,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="FILE",
            help="Fill the topic first, in an embedded cluster: lines, keyed by their first field.",
        ),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the topic filled by --input.")] = 12,
    json_file: JsonFile = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the report as .svg or .png.")
    ] = None,
    *,
    client: ClientOptions,
) -> None:
    """Show how a topic's bytes, batches and keys are spread.

    And what other policies, batch.size and linger.ms would have done.
    """
    from fairlead_kafka.cli.lab_options import chosen_all
    from fairlead_kafka.cli.skew.picture import draw
    from fairlead_kafka.cli.skew.replay import POLICIES
    from fairlead_kafka.cli.skew.report import Questions, make_report
    from fairlead_kafka.cli.skew.screen import renderables
    from fairlead_kafka.lab.plotting import check_installed, check_suffix

    if plot_file is not None:
        check_suffix(plot_file)
        check_installed()
    questions = Questions(
        max_records,
        replay_records,
        chosen_all("--policy", policy, tuple(POLICIES)),
        numbers("--batch-size", batch_size, 1),
        numbers("--linger-ms", linger_ms),
        rate,
        top,
        seed,
    )
    with (
        progress(f"skew of {topic}") as said,
        _cluster(input_file, topic, partitions, rate, client.bootstrap_servers) as servers,
        open_consumer(replace(client, bootstrap_servers=servers).settings()) as consumer,
    ):
        consumer.partitions_for(topic, timeout_s=TOPIC_S)
        report = make_report(consumer, topic, questions, said)
    if json_file != "-":
        for part in renderables(report):
            output.print(part)
    write_json(report, json_file)
    if plot_file is not None:
        draw(report, plot_file)


@contextmanager
def _cluster(
    path: Path | None, topic: str, partitions: int, rate: float | None, bootstrap_servers: str
) -> Iterator[str]:
    """The cluster that has the topic: the one named, or an embedded one that is filled now."""
    if path is None:
        yield bootstrap_servers
        return
    from fairlead_kafka.cli.skew.filling import filled_cluster

    with filled_cluster(path, topic, partitions, rate) as servers:
        yield servers
