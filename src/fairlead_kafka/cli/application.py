"""The application: commands put together, and errors as lines.

Only the command that is called is imported: `pipeline check` answers in less time than it takes to load a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from rich.markup import escape

import fairlead_kafka
from fairlead_kafka.base.errors import FairleadError, ItemsFailed
from fairlead_kafka.cli.main import WRONG_COMMAND_LINE_EXIT_CODE
from fairlead_kafka.cli.terminal import errors

COMMANDS: Mapping[str, str] = {
    "topics": "topics:app",
    "groups": "groups:app",
    "perf": "perf:app",
    "pipeline": "pipeline:app",
    "lab": "lab:app",
    "up": "cluster:up",
    "produce": "records:produce",
    "consume": "records:consume",
    "demo": "demo_command:demo",
    "simulate": "simulate:simulate",
    "skew": "skew_command:skew",
}
"""Module of this room and what in it: `app` is a group of commands, everything else one command."""

_CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""`click.ClickException`, wherever this release of typer keeps it."""


def _application(arguments: list[str]) -> typer.Typer:
    """The command that the arguments name; all of them where they name none that there is."""
    app = typer.Typer(
        name="fairlead",
        no_args_is_help=True,
        add_completion=False,
        help="A Kafka client and an embedded Kafka cluster: start one, fill it, read it, measure it.",
    )
    app.callback(invoke_without_command=True)(_root)
    named = next((argument for argument in arguments if not argument.startswith("-")), "")
    for name in [named] if named in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        command: Any = getattr(import_module(f"fairlead_kafka.cli.{module}"), attribute)
        if attribute == "app":
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and leave."),
) -> None:
    if version:
        typer.echo(f"fairlead {fairlead_kafka.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def invoke(arguments: list[str]) -> int:
    """Runs a command; the exit code. KeyboardInterrupt and BrokenPipeError come out of it, every other error is said in one line."""
    command = typer.main.get_command(_application(arguments))
    try:
        with command.make_context("fairlead", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except _CommandLineError as error:
        _say_wrong_command_line(error)
        return WRONG_COMMAND_LINE_EXIT_CODE
    except ItemsFailed as error:
        for name, own in error.errors.items():
            _say("failed", f"{name}: {own}")
        return 1
    except FairleadError as error:
        _say(type(error).__name__, str(error))
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        _say("OSError", f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    return 0


def _say(kind: str, text: str) -> None:
    errors.print(f"[red]{kind}[/]: {escape(text)}", soft_wrap=True)


def _say_wrong_command_line(error: Exception) -> None:
    text = error.format_message().strip()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "fairlead"
    if "\n" in text:
        errors.print(escape(text))  # the help of a group that was called without a command
    elif text:
        _say(path, f"{text.rstrip('.')}; see `{path} --help`")
