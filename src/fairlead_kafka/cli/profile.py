"""`fairlead profile add | list | show | delete`: settings of a cluster under a name."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlead_kafka.cli import profiles
from fairlead_kafka.cli.terminal import output, settings

app = typer.Typer(no_args_is_help=True, help="Settings of a cluster under a name, for --profile.")
Name = Annotated[str, typer.Argument(help="The profile's name, such as prod.")]


@app.command()
def add(
    name: Name,
    bootstrap_servers: Annotated[
        str, typer.Option("--bootstrap-server", "--bootstrap-servers", "-b", help="host:port of brokers.")
    ],
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            "-X",
            metavar="KEY=VALUE",
            help="A client config; secrets as ${env:NAME} or ${file:PATH:KEY}.",
        ),
    ] = None,
) -> None:
    """Keep settings under a name, in place of what was kept there."""
    path = profiles.write(name, {"bootstrap.servers": bootstrap_servers, **settings(properties)})
    output.print(f"kept in {path}; use it with --profile {name}", markup=False, soft_wrap=True)


@app.command(name="list")
def list_profiles() -> None:
    """Print the names of all profiles, one a line."""
    for name in profiles.names():
        output.print(name, markup=False)


@app.command()
def show(name: Name) -> None:
    """Print the settings of a profile."""
    for key, value in profiles.read(name).items():
        output.print(f"{key}={value}", markup=False, soft_wrap=True)


@app.command()
def delete(name: Name) -> None:
    """Forget a profile."""
    profiles.path_of(name).unlink()
    output.print(f"profile {name} is gone", markup=False)
