"""`fairlead completion`: a script by which shells complete commands and options.

    source <(fairlead completion bash)

The script runs this program with `_FAIRLEAD_COMPLETE` set, which prints the possible completions
(`complete`).
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from fairlead_kafka.cli.terminal import output

PROGRAM = "fairlead"
VARIABLE = "_FAIRLEAD_COMPLETE"


class Shell(StrEnum):
    """Shells that ask for completions."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print a script that has a shell complete commands.

    For bash: `source <(fairlead completion bash)`, or a line with that in ~/.bashrc.
    """
    script = _typers().get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    output.print(script, markup=False, soft_wrap=True)


def _typers() -> Any:
    """The module that has typer's completion scripts; it exports nothing by name."""
    return import_module("typer.completion")


def words() -> list[str]:
    """The words of the command line that is to be completed, without the program's name."""
    written = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    return written.split()[1:]


def complete(command: object) -> None:
    """Print the completions of `command`'s line for the shell that asks, and end the process."""
    _typers().completion_init()  # makes the shells known
    assert isinstance(command, (typer.core.TyperCommand, typer.core.TyperGroup))
    command._main_shell_completion({}, PROGRAM, VARIABLE)
    sys.exit(1)  # it does not come back, but for a shell that nobody knows
