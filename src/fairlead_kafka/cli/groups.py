"""`fairlead groups list | describe | reset-offsets | delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.admin import GroupMember
from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.group_offsets import Target, chosen_partitions, new_offsets
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.printable import one_line
from fairlead_kafka.cli.share import DescribedGroup, by_topic, describe_share_groups
from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import (
    JsonFile,
    errors,
    output,
    print_each,
    rows_table,
    show_rows,
    write_rows,
)
from fairlead_kafka.client import Admin
from fairlead_kafka.client.group_lag import group_lags

app = typer.Typer(no_args_is_help=True, help="List, describe, reset and delete consumer groups.")

_INACTIVE = ("Empty", "Dead")
_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Unknown",
)
"""Kafka's `GroupState`, of all protocols."""


@app.command(name="list")
@expanded
def list_groups(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only groups in this state, such as Stable; may be repeated."),
    ] = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List groups by name, with their states."""
    for name in state or ():
        if name.lower() not in map(str.lower, _STATES):
            near = nearest(name, _STATES)
            raise ConfigError(
                f"--state {name}: is none of {', '.join(_STATES)}"
                + (f"; did you mean {near}?" if near else "")
            )
    with open_admin(client.settings()) as admin:
        listed = admin.list_groups(states=state or ())
    rows = [
        {"group": one.group_id, "state": one.state, "type": one.type, "protocol_type": one.protocol_type}
        for one in listed.values()
    ]
    show_rows(rows, json_file)


@app.command()
@expanded
def describe(
    groups: Annotated[list[str] | None, typer.Argument(help="Groups; none: all.")] = None,
    members: Annotated[bool, typer.Option("--members", help="Show members instead of offsets.")] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show where groups are in each partition, and who reads it.

    How far they have come, and how far they are behind its end.
    """
    with open_admin(client.settings()) as admin:
        listed = admin.list_groups()
        wanted = groups or sorted(listed)
        shared = [name for name in wanted if name in listed and listed[name].type.lower() == "share"]
        report = [
            *_describe(admin, [name for name in wanted if name not in shared]),
            *describe_share_groups(admin, shared),
        ]
    if json_file != "-":
        for group in report:
            coordinator = "unknown" if group["coordinator"] is None else group["coordinator"]
            protocol = f", {group['protocol']}" if group["protocol"] else ""
            epochs = (
                ""
                if group["epoch"] is None
                else f", epoch {group['epoch']}, assigned in {group['target_assignment_epoch']}"
            )
            output.print(
                f"{one_line(group['group'])}: {group['state']} ({group['type']}){protocol}{epochs}, "
                f"coordinator {coordinator}",
                markup=False,
            )
            rows = group["members"] if members else group["partitions"]
            if rows:
                output.print(rows_table([{key: _plain(value) for key, value in row.items()} for row in rows]))
    write_rows(report, json_file)


def _plain(value: object) -> object:
    return (
        ", ".join(f"{topic}: {' '.join(map(str, numbers))}" for topic, numbers in value.items())
        if isinstance(value, dict)
        else value
    )


@app.command(name="reset-offsets")
@expanded
def reset_offsets(
    group: Annotated[str, typer.Argument(help="The group; it must have no members.")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="TOPIC, or TOPIC:0,1 for single partitions; may be repeated."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every topic that the group has offsets of.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first offset there is.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end.")] = False,
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the present offset, or the end where there is none.")
    ] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="By so many offsets; a negative number goes back.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            "--to-datetime",
            help="To the first record of 2026-01-31T10:00:00.000 (UTC, or with its zone) or later.",
        ),
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", help="To the first record of so long ago: PT30M, P1DT12H.")
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Do it; without this, only show what would be done.")
    ] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Set where a group without members goes on reading.

    Shows the new offsets, and sets them with --execute.
    """
    target = Target.parse(to_earliest, to_latest, to_current, to_offset, shift_by, to_datetime, by_duration)
    if bool(topic) == all_topics:
        raise UsageError("say which topics: either --topic, or --all-topics")
    with open_admin(client.settings()) as admin:
        state = _state(admin, group)
        if state not in _INACTIVE:
            raise UsageError(
                f"the offsets of a group can only be reset while it has no members; {group} is {state}: stop "
                "its consumers first"
            )
        committed = admin.list_group_offsets([group])[group]
        partitions = chosen_partitions(admin, topic or (), committed)
        changed = new_offsets(admin, target, partitions, committed)
        if execute and changed:
            admin.alter_group_offsets(group, changed)
    rows = [
        {
            "group": group,
            "topic": of.topic,
            "partition": of.partition,
            "committed": committed[of].offset if of in committed else None,
            "new_offset": offset,
        }
        for of, offset in changed.items()
    ]
    if json_file != "-":
        output.print(rows_table(rows) if rows else FittingTable())
    if not execute:
        errors.print("nothing was changed; add --execute to do it", markup=False)
    write_rows(rows, json_file)


@app.command()
@expanded
def delete(
    groups: Annotated[list[str], typer.Argument(help="Groups; they must have no members.")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="Take back only the offsets of this topic; may be repeated."),
    ] = None,
    *,
    client: ClientOptions,
) -> None:
    """Delete groups, or their offsets of some topics alone."""
    with open_admin(client.settings()) as admin:
        if topic:
            for group in groups:
                partitions = [of for of in admin.list_group_offsets([group])[group] if of.topic in topic]
                for of in admin.delete_group_offsets(group, partitions) if partitions else ():
                    output.print(f"deleted: {group}, {of}", markup=False)
            return
        print_each("deleted", lambda: admin.delete_groups(groups))


def _state(admin: Admin, group: str) -> str:
    """The group's state; "Dead" if there is no such group."""
    listed = admin.list_groups().get(group)
    return "Dead" if listed is None else listed.state


def _describe(admin: Admin, groups: list[str]) -> list[DescribedGroup]:
    if not groups:
        return []
    described = admin.describe_groups(groups)
    lags = group_lags(admin, {name: group.members for name, group in described.items()})
    report: list[DescribedGroup] = []
    for name, group in described.items():
        rows = [one.as_row() for one in lags[name]]
        report.append(
            {
                "group": name,
                "state": group.state,
                "type": group.type,
                "protocol": group.protocol,
                "epoch": group.epoch,
                "target_assignment_epoch": group.target_assignment_epoch,
                "coordinator": None if group.coordinator is None else group.coordinator.node_id,
                "partitions": rows,
                "members": [_member_row(member) for member in group.members],
            }
        )
    return report


def _member_row(member: GroupMember) -> dict[str, object]:
    """A row of the listing: a member of a group. A member of a KIP-848 group also has its epoch and
    target assignment."""
    row: dict[str, object] = {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "assignment": by_topic(member.assignment),
    }
    if member.target_assignment is not None:
        row |= {"epoch": member.epoch, "target_assignment": by_topic(member.target_assignment)}
    return row
