"""`fairlead quotas list | set | remove`: quotas of users, clients and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.terminal import (
    JsonFile,
    errors,
    output,
    rows_table,
    write_rows,
)
from fairlead_kafka.client import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaFilterComponent

app = typer.Typer(no_args_is_help=True, help="List, set and remove quotas of users, clients, addresses.")


@dataclass(frozen=True, slots=True)
class EntityOptions:
    """The options that name a user, a client, both together, or an address."""

    user: Annotated[str | None, typer.Option("--user", help="This user.")] = None
    user_default: Annotated[
        bool, typer.Option("--user-default", help="Each user who has none of their own.")
    ] = False
    client_id: Annotated[
        str | None, typer.Option("--client-id", help="This client.id; with --user, theirs.")
    ] = None
    client_id_default: Annotated[
        bool, typer.Option("--client-id-default", help="Each client.id that has none of its own.")
    ] = False
    ip: Annotated[str | None, typer.Option("--ip", help="This IP address.")] = None
    ip_default: Annotated[
        bool, typer.Option("--ip-default", help="Each IP address that has none of its own.")
    ] = False

    def entity(self) -> ClientQuotaEntity:
        """The entity that is named. UsageError for a name and the default of the same kind."""
        entries: dict[str, str | None] = {}
        for kind, name, default in (
            ("user", self.user, self.user_default),
            ("client-id", self.client_id, self.client_id_default),
            ("ip", self.ip, self.ip_default),
        ):
            if name is not None and default:
                raise UsageError(f"either --{kind} or --{kind}-default")
            if name is not None or default:
                entries[kind] = name
        return ClientQuotaEntity(entries)


@app.command(name="list")
@expanded
def list_quotas(
    *,
    of: EntityOptions,
    json_file: JsonFile = None,
    client: ClientOptions,
) -> None:
    """List quotas: all, or those of a user, a client, an address."""
    wanted = of.entity()
    with open_admin(client.settings()) as admin:
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
@expanded
def set_quotas(
    *,
    of: EntityOptions,
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
    client: ClientOptions,
) -> None:
    """Set quotas of a user, a client, both together, or an address."""
    entity = _said(of.entity())
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
    with open_admin(client.settings()) as admin:
        admin.alter_client_quotas({entity: quotas})
    for key, value in quotas.items():
        output.print(f"set: {entity}, {key} {value:,}", markup=False)


@app.command()
@expanded
def remove(
    *,
    of: EntityOptions,
    quota: Annotated[
        list[str] | None,
        typer.Option("--quota", help="Only this one, such as producer_byte_rate. May be repeated."),
    ] = None,
    client: ClientOptions,
) -> None:
    """Take quotas back: all of a user, a client, an address, or some."""
    entity = _said(of.entity())
    with open_admin(client.settings()) as admin:
        own = admin.describe_client_quotas(_exactly(entity, strict=True)).get(entity, {})
        gone = [key for key in own if not quota or key in quota]
        if gone:
            admin.alter_client_quotas({entity: dict.fromkeys(gone)})
    for key in gone:
        output.print(f"removed: {entity}, {key}", markup=False)
    if not gone:
        has = f"{entity} has only {', '.join(own)}" if own else f"{entity} has no quotas"
        errors.print(f"nothing was removed: {has}", markup=False)


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
