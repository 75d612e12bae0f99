"""`fairlead quotas list | set | remove`: how much users, clients and addresses may take."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.base.errors import UsageError
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
from fairlead_kafka.client import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaFilterComponent

app = typer.Typer(no_args_is_help=True, help="List, set and remove quotas of users, clients, addresses.")

User = Annotated[str | None, typer.Option("--user", help="This user.")]
UserDefault = Annotated[bool, typer.Option("--user-default", help="Each user who has none of their own.")]
ClientId = Annotated[str | None, typer.Option("--client-id", help="This client.id; with --user, theirs.")]
ClientIdDefault = Annotated[
    bool, typer.Option("--client-id-default", help="Each client.id that has none of its own.")
]
Ip = Annotated[str | None, typer.Option("--ip", help="This IP address.")]
IpDefault = Annotated[bool, typer.Option("--ip-default", help="Each IP address that has none of its own.")]


@app.command(name="list")
def list_quotas(
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    json_file: JsonFile = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """List quotas: all, or those of a user, a client, an address."""
    wanted = _entity(user, user_default, client_id, client_id_default, ip, ip_default)
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        found = admin.describe_client_quotas(_exactly(wanted, strict=False))
    rows = [
        {"of": str(entity), "quota": key, "value": value}
        for entity, own in found.items()
        for key, value in sorted(own.items())
    ]
    if json_file != "-" and rows:
        output.print(rows_table(rows))
    write_rows([{"entity": dict(entity.entries), "quotas": own} for entity, own in found.items()], json_file)


@app.command(name="set")
def set_quotas(
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    producer_byte_rate: Annotated[
        int | None, typer.Option(help="Bytes/s that may be written, at each broker.")
    ] = None,
    consumer_byte_rate: Annotated[
        int | None, typer.Option(help="Bytes/s that may be read, at each broker.")
    ] = None,
    request_percentage: Annotated[
        float | None, typer.Option(help="Time of request threads, 100 is one thread, at each broker.")
    ] = None,
    controller_mutation_rate: Annotated[
        float | None, typer.Option(help="Partitions/s that may be created or deleted.")
    ] = None,
    connection_creation_rate: Annotated[
        int | None, typer.Option(help="Connections/s of an address, at each broker.")
    ] = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Set quotas of a user, a client, both together, or an address."""
    entity = _said(_entity(user, user_default, client_id, client_id_default, ip, ip_default))
    given: dict[str, float | None] = {
        "producer_byte_rate": producer_byte_rate,
        "consumer_byte_rate": consumer_byte_rate,
        "request_percentage": request_percentage,
        "controller_mutation_rate": controller_mutation_rate,
        "connection_creation_rate": connection_creation_rate,
    }
    quotas = {key: value for key, value in given.items() if value is not None}
    if not quotas:
        raise UsageError(f"say how much: {', '.join(_option(key) for key in given)}")
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        admin.alter_client_quotas({entity: quotas})
    for key, value in quotas.items():
        output.print(f"set: {entity}, {key} {value:,}", markup=False)


@app.command()
def remove(
    user: User = None,
    user_default: UserDefault = False,
    client_id: ClientId = None,
    client_id_default: ClientIdDefault = False,
    ip: Ip = None,
    ip_default: IpDefault = False,
    quota: Annotated[
        list[str] | None,
        typer.Option("--quota", help="Only this one, such as producer_byte_rate. May be repeated."),
    ] = None,
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    properties: ClientProperties = None,
) -> None:
    """Take quotas back: all of a user, a client, an address, or some."""
    entity = _said(_entity(user, user_default, client_id, client_id_default, ip, ip_default))
    with open_admin(client_settings(bootstrap_servers, properties)) as admin:
        own = admin.describe_client_quotas(_exactly(entity, strict=True)).get(entity, {})
        gone = [key for key in own if not quota or key in quota]
        if gone:
            admin.alter_client_quotas({entity: dict.fromkeys(gone)})
    for key in gone:
        output.print(f"removed: {entity}, {key}", markup=False)
    if not gone:
        has = f"{entity} has only {', '.join(own)}" if own else f"{entity} has no quotas"
        errors.print(f"nothing was removed: {has}", markup=False)


def _entity(
    user: str | None,
    user_default: bool,
    client_id: str | None,
    client_id_default: bool,
    ip: str | None,
    ip_default: bool,
) -> ClientQuotaEntity:
    """The entity that the options name. UsageError for a name and the default of the same kind."""
    entries: dict[str, str | None] = {}
    for kind, name, default in (
        ("user", user, user_default),
        ("client-id", client_id, client_id_default),
        ("ip", ip, ip_default),
    ):
        if name is not None and default:
            raise UsageError(f"either --{kind} or --{kind}-default")
        if name is not None or default:
            entries[kind] = name
    return ClientQuotaEntity(entries)


def _said(entity: ClientQuotaEntity) -> ClientQuotaEntity:
    if not entity.entries:
        raise UsageError(
            "say whose: --user, --client-id, both of them, or --ip; or --user-default, --client-id-default, "
            "--ip-default"
        )
    return entity


def _exactly(entity: ClientQuotaEntity, *, strict: bool) -> ClientQuotaFilter:
    return ClientQuotaFilter([_component(kind, name) for kind, name in entity.entries.items()], strict)


def _component(kind: str, name: str | None) -> ClientQuotaFilterComponent:
    of = ClientQuotaFilterComponent
    return of.of_default_entity(kind) if name is None else of.of_entity(kind, name)


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"
