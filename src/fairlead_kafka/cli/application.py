"""The application: all commands, and the printing of errors as lines.

Only the command that is called is imported: `pipeline check` answers in less time than it takes to
load a client. Help is plain text, because rich, which would draw it in boxes, takes longer to load
than Python itself and all other modules.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

import fairlead_kafka
from fairlead_kafka.base.errors import FairleadError, ItemsFailed
from fairlead_kafka.cli import completion
from fairlead_kafka.cli.exit_codes import WRONG_COMMAND_LINE_EXIT_CODE
from fairlead_kafka.cli.terminal import errors


class Command(NamedTuple):
    """A command's place, `module:name` in this room, and its text in `fairlead --help`.

    The name `app` is a group of commands.
    """

    place: str
    help: str


COMMANDS: Mapping[str, Command] = {
    "up": Command("cluster:up", "Start an embedded cluster and serve it until Ctrl-C."),
    "produce": Command("producing:produce", "Send each line of standard input as a record."),
    "consume": Command("records:consume", "Print the value of each record, one a line, until Ctrl-C."),
    "topics": Command("topics:app", "Create, list, describe, alter and delete topics."),
    "groups": Command("groups:app", "List, describe, reset and delete consumer groups."),
    "configs": Command("configs:app", "List, show and change configs of topics, brokers, groups."),
    "brokers": Command("brokers:app", "List and describe brokers: disks, versions of APIs."),
    "transactions": Command("transactions:app", "List, describe, abort transactions; find hanging ones."),
    "reassign": Command("reassign:app", "Move partitions between brokers by a plan."),
    "elect": Command("elect:elect", "Elect leaders of partitions."),
    "acls": Command("acls:app", "List, add and remove rights (access control lists)."),
    "users": Command("users:app", "List, set and remove SCRAM users and their passwords."),
    "quotas": Command("quotas:app", "List, set and remove quotas of users, clients, addresses."),
    "skew": Command(
        "skew_command:skew",
        "Show how a topic's bytes, batches and keys are spread.",
    ),
    "pipeline": Command("pipeline:app", "Spark pipelines over topics: write, check, run, watch one."),
    "profile": Command("profile:app", "Settings of a cluster under a name, for --profile."),
    "completion": Command("completion:completion", "Print a script that has a shell complete commands."),
    "demo": Command("demo_command:demo", "Log lines through producer, cluster, Spark and back."),
    "perf": Command("perf:app", "Load, as Kafka's own performance tools have it."),
    "lab": Command("lab:app", "Experiments: every claim about speed, beside the peers."),
    "simulate": Command(
        "simulate:simulate",
        "Run real machines in virtual time on a network that fails.",
    ),
}

_KEEPS_SETTINGS = ("profile", "add")
"""The command that takes client settings to keep them, and so from nowhere else."""
_CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]
"""`click.ClickException`, wherever this release of typer keeps it."""


def _application(arguments: list[str]) -> typer.Typer:
    """An application with the command that the arguments name. If they name none that exists, with
    all commands, by name and help alone."""
    app = typer.Typer(
        name="fairlead",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        help="A Kafka client and an embedded Kafka cluster: start one, fill it, read it, measure it.",
    )
    app.callback(invoke_without_command=True)(_root)
    named = next((argument for argument in arguments if not argument.startswith("-")), "")
    if named not in COMMANDS:
        for name, (_, text) in COMMANDS.items():
            app.command(name, help=text)(lambda: None)
        return app
    module, _, attribute = COMMANDS[named].place.partition(":")
    command: Any = getattr(import_module(f"fairlead_kafka.cli.{module}"), attribute)
    if attribute == "app":
        app.add_typer(command, name=named)
    else:
        app.command(named)(command)
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
    """Run a command, and return its exit code. Raises KeyboardInterrupt and BrokenPipeError; every
    other error is printed in one line."""
    if completion.VARIABLE in os.environ:
        command = typer.main.get_command(_application(completion.words()))
        _take_settings(command)
        completion.complete(command)
    command = typer.main.get_command(_application(arguments))
    _take_settings(command)
    if _takes_json_file(command):
        arguments = with_json_target(arguments)
    try:
        with command.make_context("fairlead", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except _CommandLineError as error:
        _say_wrong_command_line(error, arguments)
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


def with_json_target(arguments: list[str]) -> list[str]:
    """The arguments, with `--json` alone as `--json -`: typer has no options whose value may be
    left out."""
    following = [*arguments[1:], "--"]
    found: list[str] = []
    for argument, behind in zip(arguments, following, strict=True):
        found.append(argument)
        if argument == "--json" and behind.startswith("-") and behind != "-":
            found.append("-")
    return found


def _takes_json_file(command: object) -> bool:
    """True if the command, or one below it, has `--json [FILE]`; that of `consume` is a flag."""
    every = (each for own in _inner(command) for each in (own, *_inner(own)))
    return any(parameter.name == "json_file" for each in every for parameter in each.params)


def _take_settings(command: object) -> None:
    """Let every command with client settings take them from a file or a profile too."""
    from fairlead_kafka.cli import profiles

    profiles.forget()
    for own in _inner(command):
        for path, each in [((own.name,), own), *(((own.name, one.name), one) for one in _inner(own))]:
            if {"bootstrap_servers", "properties"} <= {parameter.name for parameter in each.params} and (
                path != _KEEPS_SETTINGS
            ):
                each.params += _settings_options(profiles.take_file, profiles.take_profile)


def _inner(command: object) -> list[TyperCommand | TyperGroup]:
    """The commands of a group; none of any other command."""
    inner = command.commands.values() if isinstance(command, TyperGroup) else ()
    return [one for one in inner if isinstance(one, (TyperCommand, TyperGroup))]


def _settings_options(
    take_file: Callable[[str | None], None], take_profile: Callable[[str | None], None]
) -> list[TyperOption]:
    config_help = "A Java properties file of client configs, as for Kafka's own tools."
    config = typer.Option(
        None, "--command-config", metavar="FILE", help=config_help, callback=take_file, expose_value=False
    )
    profile_help = "Settings that `fairlead profile add` has kept."
    profile = typer.Option(
        None, "--profile", metavar="NAME", help=profile_help, callback=take_profile, expose_value=False
    )

    def carrier(command_config: str | None = config, profile: str | None = profile) -> None:
        """Do nothing; only this function's options are used."""

    app = typer.Typer(add_completion=False)
    app.command()(carrier)
    parameters = typer.main.get_command(app).params
    return [one for one in parameters if isinstance(one, TyperOption) and one.name != "help"]


def _say(kind: str, text: str) -> None:
    from rich.text import Text

    errors.print(Text.assemble((kind, "red"), f": {text}"), soft_wrap=True)


def _say_wrong_command_line(error: Exception, arguments: list[str]) -> None:
    text = error.format_message().strip()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    named = list(itertools.takewhile(lambda argument: not argument.startswith("-"), arguments))
    path = context.command_path if context is not None else " ".join(["fairlead", *named[:2]])
    if "\n" in text:
        errors.print(text, markup=False)  # the help of a group that was called without a command
    elif text:
        _say(path, f"{text.rstrip('.')}{_argument_hint(error)}; see `{path} --help`")


def _argument_hint(error: Exception) -> str:
    """The end of a message on an unknown option that is an argument here, such as `--topic` of
    Kafka's tools: advice to leave its name out. Empty for other errors."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None:
        return ""
    path = context.command_path
    nouns = {f"--{word.removesuffix('s')}" for word in path.split()[1:2]}  # `topics create --topic`
    for parameter in context.command.params:
        if parameter.param_type_name == "argument" and option in {f"--{parameter.name}", *nouns}:
            return f"; it is an argument, without a name: `{path} {option.strip('-').upper()}`"
    return ""
