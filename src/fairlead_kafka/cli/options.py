"""Options that several commands have: each group is a dataclass whose fields are options, which a
command takes as one argument (`expanded`)."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, get_type_hints

import typer

from fairlead_kafka.cli.terminal import settings

DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:9092"
SERVERS_VARIABLE = "FAIRLEAD_BOOTSTRAP_SERVERS"


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: replace, in a command's signature, each argument that is a dataclass by its
    fields, as options. typer reads them off the signature, and passes them by name."""
    groups: dict[str, type] = {}
    options: list[inspect.Parameter] = []
    for one in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(one.annotation) and isinstance(one.annotation, type):
            groups[one.name] = one.annotation
            options += _options(one.annotation)
        else:
            options.append(one.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_options(**given: object) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    seen = with_options.__dict__
    seen["__signature__"] = inspect.Signature(options)
    with_options.__annotations__ = {one.name: one.annotation for one in options}
    return with_options


def _options(group: type) -> list[inspect.Parameter]:
    hints: Mapping[str, object] = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The options by which a command's client finds its cluster."""

    bootstrap_servers: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            "--bootstrap-servers",
            "-b",
            envvar=SERVERS_VARIABLE,
            help="host:port of brokers.",
        ),
    ] = DEFAULT_BOOTSTRAP_SERVERS
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-X", metavar="KEY=VALUE", help="A client config; may be repeated."),
    ] = None

    def settings(self) -> dict[str, str]:
        """The settings of a client: those of `--profile` and `--command-config`, then the address
        and the properties that were given."""
        from fairlead_kafka.cli import profiles

        kept = dict(profiles.given())
        usual = (DEFAULT_BOOTSTRAP_SERVERS, os.environ.get(SERVERS_VARIABLE))
        if self.bootstrap_servers not in usual or "bootstrap.servers" not in kept:
            kept["bootstrap.servers"] = self.bootstrap_servers
        return {**kept, **settings(self.properties)}
