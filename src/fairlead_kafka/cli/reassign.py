"""`fairlead reassign plan | execute | verify | cancel | list`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.partition_names import named_partitions
from fairlead_kafka.cli.reassign_plan import moved, plan_text, read_plan, shown, spread
from fairlead_kafka.cli.terminal import (
    JsonFile,
    errors,
    numbers,
    output,
    show_rows,
)
from fairlead_kafka.client import Admin

app = typer.Typer(no_args_is_help=True, help="Move partitions between brokers by a plan.")

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="A plan, as `plan` writes it and Kafka's tool reads it.")
]
LOOK_S = 0.5
"""Seconds between looks whether moves are over (`verify --wait`)."""


@app.command()
@expanded
def plan(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC", help="TOPIC, or TOPIC:0,1.")],
    brokers: Annotated[str, typer.Option("--brokers", metavar="IDS", help="To these, such as 1,2,3.")],
    no_racks: Annotated[
        bool, typer.Option("--ignore-racks", help="Several replicas may be in one rack.")
    ] = False,
    *,
    client: ClientOptions,
) -> None:
    """Plan to spread partitions over brokers, and print the plan.

    Nothing is changed: `execute` takes the plan from a file.
    """
    wanted = numbers("--brokers", brokers)
    with open_admin(client.settings()) as admin:
        racks = {node.node_id: node.rack for node in admin.describe_cluster().nodes}
        absent = [node_id for node_id in wanted if node_id not in racks]
        if absent:
            there = ", ".join(map(str, sorted(racks)))
            raise UsageError(f"--brokers {brokers}: there is no broker {absent[0]}; there are {there}")
        current = _replicas(admin, named_partitions(admin, topics, "TOPIC"))
    proposed = spread(current, {node_id: None if no_racks else racks[node_id] for node_id in wanted})
    changes = moved(current, proposed)
    for of in changes:
        errors.print(f"{of}: {shown(current[of], proposed[of])}", markup=False, soft_wrap=True)
    errors.print(f"{len(changes)} of {len(proposed)} partitions would change")
    sys.stdout.write(plan_text(proposed) + "\n")


@app.command()
@expanded
def execute(
    file: File,
    additional: Annotated[
        bool, typer.Option("--additional", help="Change moves that are under way, too.")
    ] = False,
    *,
    client: ClientOptions,
) -> None:
    """Begin to move partitions as a plan says.

    Prints what was before, as a plan that leads back.
    """
    wanted = read_plan(file)
    with open_admin(client.settings()) as admin:
        under_way = admin.list_partition_reassignments(wanted)
        if under_way and not additional:
            raise UsageError(
                f"{', '.join(map(str, sorted(under_way)))}: on the move already; wait (`verify --wait`), "
                "take that back (`cancel`), or change it (--additional)"
            )
        current = _replicas(admin, wanted)
        begun = admin.alter_partition_reassignments(wanted)
    sys.stdout.write(plan_text(current) + "\n")
    sys.stdout.flush()
    errors.print(f"{len(begun)} partitions are on the move; the line above is the way back", markup=False)


@app.command()
@expanded
def verify(
    file: File,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all moves are over.")] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show which moves of a plan are over.

    Exit code 1 if a partition is not where the plan has it.
    """
    wanted = read_plan(file)
    with open_admin(client.settings()) as admin:
        while (under_way := admin.list_partition_reassignments(wanted)) and wait:
            time.sleep(LOOK_S)
        current = _replicas(admin, wanted)
    rows: list[dict[str, object]] = []
    for of, replicas in sorted(wanted.items()):
        state = "moving" if of in under_way else "done" if current[of] == replicas else "elsewhere"
        rows.append(
            {
                "topic": of.topic,
                "partition": of.partition,
                "state": state,
                "replicas": list(current[of]),
                "planned": list(replicas),
            }
        )
    show_rows(rows, json_file)
    if any(row["state"] != "done" for row in rows):
        raise typer.Exit(1)


@app.command()
@expanded
def cancel(
    file: File,
    *,
    client: ClientOptions,
) -> None:
    """Take back the moves of a plan that are under way."""
    wanted = read_plan(file)
    with open_admin(client.settings()) as admin:
        under_way = admin.list_partition_reassignments(wanted)
        taken_back = admin.alter_partition_reassignments(dict.fromkeys(under_way)) if under_way else {}
    for of in sorted(taken_back):
        output.print(f"cancelled: {of}", markup=False)
    if not taken_back:
        output.print("nothing is under way")


@app.command(name="list")
@expanded
def list_moves(
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List partitions that are on the move."""
    with open_admin(client.settings()) as admin:
        found = admin.list_partition_reassignments()
    show_rows(
        [
            {
                "topic": of.topic,
                "partition": of.partition,
                "replicas": list(one.replicas),
                "adding": list(one.adding),
                "removing": list(one.removing),
            }
            for of, one in sorted(found.items())
        ],
        json_file,
    )


def _replicas(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that partitions have now. UsageError for a partition that does not exist."""
    wanted = list(partitions)
    described = admin.describe_topics({of.topic for of in wanted})
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for of in wanted:
        there = described[of.topic].partitions
        if of.partition >= len(there):
            raise UsageError(f"there is no partition {of}; topic {of.topic} has 0 to {len(there) - 1}")
        found[of] = there[of.partition].replicas
    return found
