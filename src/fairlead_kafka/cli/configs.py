"""`fairlead configs list | describe | alter | delete`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from fairlead_kafka.admin import ConfigEntry, ConfigSource, ResourceType
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.cli.connecting import open_admin
from fairlead_kafka.cli.options import ClientOptions, expanded
from fairlead_kafka.cli.partition_names import known_brokers
from fairlead_kafka.cli.terminal import (
    JsonFile,
    output,
    settings,
    show_rows,
)
from fairlead_kafka.client import Admin, ConfigChange, ConfigResource

app = typer.Typer(no_args_is_help=True, help="List, show and change configs of topics, brokers, groups.")

_TYPES = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER, "groups": ResourceType.GROUP}
_TYPES["client-metrics"] = ResourceType.CLIENT_METRICS


@dataclass(frozen=True, slots=True)
class ResourceOptions:
    """The options that name resources with configs."""

    topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")
    ] = None
    brokers: Annotated[
        list[int] | None, typer.Option("--broker", metavar="ID", help="A broker; may be repeated.")
    ] = None
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="The defaults of all brokers that were set dynamically.")
    ] = False
    groups: Annotated[
        list[str] | None, typer.Option("--group", metavar="NAME", help="A group; may be repeated.")
    ] = None
    client_metrics: Annotated[
        list[str] | None,
        typer.Option("--client-metrics", metavar="NAME", help="A subscription to clients' metrics."),
    ] = None

    def resources(self) -> list[ConfigResource]:
        """The resources that are named. UsageError if none is."""
        found = [
            *map(ConfigResource.topic, self.topics or ()),
            *map(ConfigResource.broker, self.brokers or ()),
            *([ConfigResource.broker(None)] if self.broker_defaults else ()),
            *map(ConfigResource.group, self.groups or ()),
            *map(ConfigResource.client_metrics, self.client_metrics or ()),
        ]
        if not found:
            raise UsageError(
                "say whose configs: --topic, --broker, --broker-defaults, --group, --client-metrics"
            )
        return found

    def check(self, admin: Admin) -> None:
        """Raise UsageError for a broker that does not run: a request to it would wait until it
        does."""
        if self.brokers:
            known_brokers(admin.describe_cluster(), self.brokers)


@app.command(name="list")
@expanded
def list_resources(
    *,
    of: Annotated[
        list[str] | None, typer.Argument(metavar="TYPE", help=f"Types: {', '.join(_TYPES)}; none: all.")
    ] = None,
    json_file: JsonFile = None,
    client: ClientOptions,
) -> None:
    """List what has configs."""
    wrong = [name for name in of or () if name not in _TYPES]
    if wrong:
        raise UsageError(f"{wrong[0]} is no type; there are {', '.join(_TYPES)}")
    with open_admin(client.settings()) as admin:
        found = admin.list_config_resources([_TYPES[name] for name in of or ()])
    show_rows([_named(one) for one in sorted(found)], json_file)


@app.command()
@expanded
def describe(
    *,
    of: ResourceOptions,
    every: Annotated[
        bool, typer.Option("--all", help="Those too that nobody has set, with their defaults.")
    ] = False,
    json_file: JsonFile = None,
    client: ClientOptions,
) -> None:
    """Show configs that somebody has set, with --all every one."""
    resources = of.resources()
    with open_admin(client.settings()) as admin:
        of.check(admin)
        described = admin.describe_configs(resources)
    rows = [
        {
            **_named(one),
            "config": entry.name,
            "value": entry.value,
            "source": _source(entry),
            "read_only": entry.is_read_only,
            "sensitive": entry.is_sensitive,
        }
        for one in resources
        for _, entry in sorted(described[one].items())
        if every or not entry.is_default
    ]
    show_rows(rows, json_file)


@app.command()
@expanded
def alter(
    *,
    of: ResourceOptions,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a config; may be repeated.")
    ] = None,
    append: Annotated[
        list[str] | None,
        typer.Option(
            "--append", metavar="KEY=VALUE", help="Add to a config that is a list; may be repeated."
        ),
    ] = None,
    subtract: Annotated[
        list[str] | None,
        typer.Option(
            "--subtract", metavar="KEY=VALUE", help="Take from a config that is a list; may be repeated."
        ),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option("--delete", metavar="KEY", help="Set a config back to its default; may be repeated."),
    ] = None,
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Say what would happen, and change nothing.")
    ] = False,
    client: ClientOptions,
) -> None:
    """Change configs; others stay as they are."""
    resources = of.resources()
    changes = [
        *(ConfigChange.set(*pair) for pair in settings(set_, "--set").items()),
        *(ConfigChange.append(*pair) for pair in settings(append, "--append").items()),
        *(ConfigChange.subtract(*pair) for pair in settings(subtract, "--subtract").items()),
        *map(ConfigChange.delete, delete or ()),
    ]
    if not changes:
        raise UsageError("say what to change: --set, --append, --subtract or --delete")
    with open_admin(client.settings()) as admin:
        of.check(admin)
        _change(admin, resources, changes, validate_only)


@app.command(name="delete")
@expanded
def delete_configs(
    *,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Configs to set back to their defaults.")],
    of: ResourceOptions,
    client: ClientOptions,
) -> None:
    """Set configs back to their defaults."""
    resources = of.resources()
    with open_admin(client.settings()) as admin:
        of.check(admin)
        _change(admin, resources, [ConfigChange.delete(key) for key in keys], validate_only=False)


def _change(
    admin: Admin, resources: Iterable[ConfigResource], changes: Sequence[ConfigChange], validate_only: bool
) -> None:
    done = admin.alter_configs(dict.fromkeys(resources, changes), validate_only=validate_only)
    for of in done:
        output.print(f"{'could be changed' if validate_only else 'changed'}: {of}", markup=False)


def _named(of: ConfigResource) -> dict[str, object]:
    """Type and name of a resource; a name of None: the default of all brokers."""
    return {"type": ResourceType(of.type).name.lower().replace("_", "-"), "name": of.name or None}


def _source(entry: ConfigEntry) -> str:
    try:
        return ConfigSource(entry.source).name.lower().replace("_", "-")
    except ValueError:
        return str(entry.source)  # newer than this client
