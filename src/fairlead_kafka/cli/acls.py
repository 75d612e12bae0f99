"""`fairlead acls list | add | remove`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fairlead_kafka.base.acls import AclBinding, AclPatternType, spelled
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.cli.acl_options import Entries, People, Resources, principals
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.terminal import (
    JsonFile,
    errors,
    output,
    print_each,
    rows_table,
    write_rows,
)

app = typer.Typer(no_args_is_help=True, help="List, add and remove rights (access control lists).")


@app.command(name="list")
@expanded
def list_acls(
    *,
    resources: Resources,
    principal: Annotated[
        list[str] | None, typer.Option("--principal", help="Only of this one: User:alice. May be repeated.")
    ] = None,
    json_file: JsonFile = None,
    client: ClientOptions,
) -> None:
    """List rights.

    Of a name, all that apply to it: its own, those of * and of its prefixes; with --prefixed, those
    of exactly this prefix.
    """
    who: Sequence[str | None] = principals("--principal", principal or ()) or (None,)
    filters = [
        one._replace(principal=name) for one in resources.filters(AclPatternType.MATCH) for name in who
    ]
    with open_admin(client.settings()) as admin:
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
@expanded
def add(
    *,
    people: People,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", help="Read, Write, DescribeConfigs, ...; none given: All. May be repeated."
        ),
    ] = None,
    resources: Resources,
    client: ClientOptions,
) -> None:
    """Give rights, or deny them.

    Each principal gets each operation on each resource. What is there already stays.
    """
    entries = Entries(resources, people, operation or ()).to_add()
    with open_admin(client.settings()) as admin:
        print_each("added", lambda: admin.create_acls(entries))


@app.command()
@expanded
def remove(
    *,
    people: People,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation", help="Only rights to Read, Write, ...; none given: to anything. May be repeated."
        ),
    ] = None,
    resources: Resources,
    client: ClientOptions,
) -> None:
    """Take rights back, and denials.

    All entries that fit what is said; what is not said fits anything. A name means its own entries
    alone, or those of exactly this prefix.
    """
    filters = Entries(resources, people, operation or ()).to_remove()
    failed: ItemsFailed | None = None
    with open_admin(client.settings()) as admin:
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
