"""`fairlead topics create | list | describe | alter | delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import (
    JsonFile,
    output,
    print_each,
    settings,
    write_rows,
)
from fairlead_kafka.client import ConfigChange, ConfigResource, NewPartitions, NewTopic

app = typer.Typer(no_args_is_help=True, help="Create, list, describe, alter and delete topics.")

Names = Annotated[list[str], typer.Argument(help="Topics.")]


@app.command()
@expanded
def create(
    names: Names,
    partitions: Annotated[
        int,
        typer.Option("--partitions", "-p", help="Partitions of each topic; -1: the broker's num.partitions."),
    ] = -1,
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", "-r", help="Replicas; -1: the broker's default.")
    ] = -1,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A topic config; may be repeated."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Say what would happen, and create nothing.")
    ] = False,
    *,
    client: ClientOptions,
) -> None:
    """Create topics."""
    new = [
        NewTopic(
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=settings(config, "--config"),
        )
        for name in names
    ]
    with open_admin(client.settings()) as admin:
        print_each(
            "could be created" if validate_only else "created",
            lambda: admin.create_topics(new, validate_only=validate_only),
        )


@app.command(name="list")
@expanded
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics too.")] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List topics by name."""
    with open_admin(client.settings()) as admin:
        listed = admin.list_topics(include_internal=internal)
    topics = [listed[name] for name in sorted(listed)]
    if json_file != "-":
        for topic in topics:
            output.print(topic.name, markup=False)
    write_rows(
        (
            {"topic": topic.name, "topic_id": str(topic.topic_id), "internal": topic.is_internal}
            for topic in topics
        ),
        json_file,
    )


@app.command()
@expanded
def describe(
    names: Annotated[list[str] | None, typer.Argument(help="Topics; none: all.")] = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show leader, replicas and in-sync replicas of each partition."""
    with open_admin(client.settings()) as admin:
        described = admin.describe_topics(names or sorted(admin.list_topics()))
    if json_file != "-":
        from rich.text import Text

        table = FittingTable("topic", "partition", "leader", "replicas", "in sync")
        for name, topic in sorted(described.items()):
            for one in topic.partitions:
                replicas, in_sync = (", ".join(map(str, nodes)) for nodes in (one.replicas, one.isr))
                leader = "none" if one.leader < 0 else str(one.leader)
                table.add_row(Text(name), str(one.partition), leader, replicas, in_sync)
        output.print(table)
    write_rows(
        (
            {
                "topic": name,
                "topic_id": str(topic.topic_id),
                "internal": topic.is_internal,
                "partitions": [
                    {
                        "partition": one.partition,
                        "leader": one.leader,
                        "leader_epoch": one.leader_epoch,
                        "replicas": list(one.replicas),
                        "isr": list(one.isr),
                    }
                    for one in topic.partitions
                ],
            }
            for name, topic in sorted(described.items())
        ),
        json_file,
    )


@app.command()
@expanded
def alter(
    names: Names,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", "-p", min=1, help="So many partitions from now on; never fewer."),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="Set a topic config; may be repeated."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            "--delete-config", metavar="KEY", help="Set a config back to its default; may be repeated."
        ),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Say what would happen, and change nothing.")
    ] = False,
    *,
    client: ClientOptions,
) -> None:
    """Add partitions to topics, and set or reset their configs."""
    changes = [
        *(ConfigChange.set(key, value) for key, value in settings(config, "--config").items()),
        *(ConfigChange.delete(key) for key in delete_config or ()),
    ]
    if partitions is None and not changes:
        raise UsageError("say what to change: --partitions, --config or --delete-config")
    with open_admin(client.settings()) as admin:
        if changes:
            resources = {ConfigResource.topic(name): changes for name in names}
            print_each(
                "configs could be changed" if validate_only else "configs changed",
                lambda: admin.alter_configs(resources, validate_only=validate_only),
                lambda of: of.name,
            )
        if partitions is not None:
            wanted = {name: NewPartitions(partitions) for name in names}
            print_each(
                f"could have {partitions} partitions" if validate_only else f"has {partitions} partitions",
                lambda: admin.create_partitions(wanted, validate_only=validate_only),
            )


@app.command()
@expanded
def delete(
    names: Names,
    *,
    client: ClientOptions,
) -> None:
    """Delete topics and all their records."""
    with open_admin(client.settings()) as admin:
        print_each("deleted", lambda: admin.delete_topics(names))
