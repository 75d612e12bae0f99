"""`fairlead acls list | add | remove`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fairlead_kafka.base.acls import AclBinding, AclPatternType, spelled
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.cli.acl_options import Entries, Resources, principals
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.terminal import (
    DEFAULT_BOOTSTRAP_SERVERS,
    BootstrapServers,
    ClientProperties,
    JsonFile,
    client_settings,
    errors,
    output,
    rows_table,
    write_rows,
)

app = typer.Typer(no_args_is_help=True, help="List, add and remove rights (access control lists).")

Topics = Annotated[
    list[str] | None, typer.Option("--topic", help="On this topic; * is every topic. May be repeated.")
]
Groups = Annotated[
    list[str] | None, typer.Option("--group", help="On this group; * is every group. May be repeated.")
]
Ids = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", help="On this transactional id, or * for every one. May be repeated."),
]
Cluster = Annotated[bool, typer.Option("--cluster", help="On the cluster itself.")]
Prefixed = Annotated[
    bool, typer.Option("--prefixed", help="The names are prefixes: orders means orders, orders-eu, orders2.")
]
Allowed = Annotated[
    list[str] | None,
    typer.Option("--allow-principal", help="Allowed: User:alice, or User:* for all. May be repeated."),
]
Denied = Annotated[
    list[str] | None, typer.Option("--deny-principal", help="Denied, whatever allows it. May be repeated.")
]
AllowHosts = Annotated[
    list[str] | None, typer.Option("--allow-host", help="Allowed from this IP address; none given: from all.")
]
DenyHosts = Annotated[
    list[str] | None, typer.Option("--deny-host", help="Denied from this IP address; none given: from all.")
]
Producer = Annotated[
    bool,
    typer.Option(
        "--producer",
        help="What a producer needs: Write, Describe, Create on topics; Write, Describe on transactional "
        "ids.",
    ),
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="What a consumer needs: Read, Describe on topics; Read on groups.")
]


@app.command(name="list")
def list_acls(
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    principal: Annotated[
        list[str] | None, typer.Option("--principal", help="Only of this one: User:alice. May be repeated.")
    ] = None,
    json_file: JsonFile = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """List rights.

    Of a name, all that apply to it: its own, those of * and of its prefixes; with --prefixed, those
    of exactly this prefix.
    """
    resources = Resources(topic or (), group or (), transactional_id or (), cluster, prefixed)
    who: Sequence[str | None] = principals("--principal", principal or ()) or (None,)
    filters = [
        one._replace(principal=name) for one in resources.filters(AclPatternType.MATCH) for name in who
    ]
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        found = sorted({binding for one in filters for binding in admin.describe_acls(one)})
    if json_file != "-" and found:
        output.print(rows_table([_row(binding) for binding in found]))
    write_rows(
        [
            {
                "resource_type": binding.resource_type.name.lower(),
                "resource_name": binding.resource_name,
                "pattern_type": binding.pattern_type.name.lower(),
                "principal": binding.principal,
                "host": binding.host,
                "operation": spelled(binding.operation),
                "permission": spelled(binding.permission),
            }
            for binding in found
        ],
        json_file,
    )


@app.command()
def add(
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", help="Read, Write, DescribeConfigs, ...; none given: All. May be repeated."
        ),
    ] = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    producer: Producer = False,
    consumer: Consumer = False,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Give rights, or deny them.

    Each principal gets each operation on each resource. What is there already stays.
    """
    resources = Resources(topic or (), group or (), transactional_id or (), cluster, prefixed)
    entries = Entries(
        resources,
        allow_principal or (),
        deny_principal or (),
        allow_host or (),
        deny_host or (),
        operation or (),
        producer,
        consumer,
    ).to_add()
    failed: ItemsFailed | None = None
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        try:
            done = admin.create_acls(entries)
        except ItemsFailed as error:
            failed, done = error, error.results
    for binding in done:
        output.print(f"added: {binding}", markup=False)
    if failed is not None:
        raise failed


@app.command()
def remove(
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", help="Only rights to Read, Write, ...; none given: to anything. May be repeated."
        ),
    ] = None,
    topic: Topics = None,
    group: Groups = None,
    transactional_id: Ids = None,
    cluster: Cluster = False,
    prefixed: Prefixed = False,
    producer: Producer = False,
    consumer: Consumer = False,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Take rights back, and denials.

    All entries that fit what is said; what is not said fits anything. A name means its own entries
    alone, or those of exactly this prefix.
    """
    resources = Resources(topic or (), group or (), transactional_id or (), cluster, prefixed)
    filters = Entries(
        resources,
        allow_principal or (),
        deny_principal or (),
        allow_host or (),
        deny_host or (),
        operation or (),
        producer,
        consumer,
    ).to_remove()
    failed: ItemsFailed | None = None
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        try:
            done = admin.delete_acls(filters)
        except ItemsFailed as error:
            failed, done = error, error.results
    gone = sorted({binding for found in done.values() for binding in found})
    for binding in gone:
        output.print(f"removed: {binding}", markup=False)
    if failed is not None:
        raise failed
    if not gone:
        errors.print(
            "nothing was removed: there is no such entry; `fairlead acls list` shows what there is",
            markup=False,
        )


def _row(binding: AclBinding) -> dict[str, str]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "permission": spelled(binding.permission),
        "operation": spelled(binding.operation),
        "resource": binding.resource_type.name.lower().replace("_", " "),
        "name": binding.resource_name,
        "pattern": binding.pattern_type.name.lower(),
    }
