"""`fairlead brokers list | describe | log-dirs | api-versions`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from fairlead_kafka.admin import ClusterDescription
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.partition_names import known_brokers, named_partitions
from fairlead_kafka.cli.terminal import (
    JsonFile,
    show_rows,
)
from fairlead_kafka.wire import ApiKey

app = typer.Typer(no_args_is_help=True, help="List and describe brokers: disks, versions of APIs.")

Ids = Annotated[list[int] | None, typer.Argument(metavar="ID", help="Brokers; none: all.")]


@app.command(name="list")
@expanded
def list_brokers(
    fenced: Annotated[
        bool, typer.Option("--fenced", help="Those too that are known and do not run (Kafka 4.0).")
    ] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """List brokers by id, with their addresses."""
    with open_admin(client.settings()) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=fenced)
    show_rows(_brokers(cluster), json_file)


@app.command()
@expanded
def describe(
    ids: Ids = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show what brokers lead and hold, and what their logs take."""
    with open_admin(client.settings()) as admin:
        cluster = admin.describe_cluster()
        wanted = known_brokers(cluster, ids)
        topics = admin.describe_topics(admin.list_topics(include_internal=True))
        directories = admin.describe_log_dirs(wanted)
    partitions = [one for topic in topics.values() for one in topic.partitions]
    leads = Counter(one.leader for one in partitions)
    preferred = Counter(one.replicas[0] for one in partitions if one.replicas)
    has = Counter(node_id for one in partitions for node_id in one.replicas)
    behind = Counter(node_id for one in partitions for node_id in set(one.replicas) - set(one.isr))
    rows = [
        {
            **row,
            "leads": leads[node_id],
            "preferred_leader_of": preferred[node_id],
            "replicas": has[node_id],
            "not_in_sync": behind[node_id],
            "log_bytes": sum(
                log.size_bytes for each in directories[node_id].values() for log in each.replicas.values()
            ),
        }
        for node_id, row in zip(
            sorted(node.node_id for node in cluster.nodes), _brokers(cluster), strict=True
        )
        if node_id in wanted
    ]
    show_rows(rows, json_file)


@app.command(name="log-dirs")
@expanded
def log_dirs(
    ids: Ids = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="Only TOPIC, or TOPIC:0,1; may be repeated.")
    ] = None,
    replicas: Annotated[bool, typer.Option("--replicas", help="A row for each replica.")] = False,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show the log directories of brokers, and what is in them."""
    with open_admin(client.settings()) as admin:
        wanted = known_brokers(admin.describe_cluster(), ids)
        partitions = named_partitions(admin, topic) if topic else None
        described = admin.describe_log_dirs(wanted, partitions)
    rows: list[dict[str, object]] = []
    for node_id, directories in described.items():
        for path, one in directories.items():
            place: dict[str, object] = {"broker": node_id, "directory": path}
            if replicas:
                rows += [
                    {
                        **place,
                        "topic": of.topic,
                        "partition": of.partition,
                        "size_bytes": log.size_bytes,
                        "offset_lag": log.offset_lag,
                        "is_future": log.is_future,
                    }
                    for of, log in sorted(one.replicas.items())
                ]
                continue
            rows.append(
                {
                    **place,
                    "replicas": len(one.replicas),
                    "log_bytes": sum(log.size_bytes for log in one.replicas.values()),
                    "total_bytes": one.total_bytes,
                    "usable_bytes": one.usable_bytes,
                    "error": None if one.error is None else str(one.error),
                }
            )
    show_rows(rows, json_file)


@app.command(name="api-versions")
@expanded
def api_versions(
    ids: Ids = None,
    json_file: JsonFile = None,
    *,
    client: ClientOptions,
) -> None:
    """Show which versions of which APIs brokers serve."""
    with open_admin(client.settings()) as admin:
        found = admin.describe_api_versions(known_brokers(admin.describe_cluster(), ids))
    names = {int(key): key.name for key in ApiKey}
    rows = [
        {"broker": node_id, "api": names.get(key), "key": key, "lowest": lowest, "highest": highest}
        for node_id, versions in found.items()
        for key, (lowest, highest) in sorted(versions.items())
    ]
    show_rows(rows, json_file)


def _brokers(cluster: ClusterDescription) -> list[dict[str, object]]:
    """Rows of a listing: the cluster's brokers by id."""
    controller = None if cluster.controller is None else cluster.controller.node_id
    return [
        {
            "broker": node.node_id,
            "host": node.host,
            "port": node.port,
            "rack": node.rack,
            "controller": node.node_id == controller,
            "fenced": node.node_id in cluster.fenced,
        }
        for node in sorted(cluster.nodes)
    ]
