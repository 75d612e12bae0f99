"""Every `fairlead` command in the documents is one that the program takes: nothing is run."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from fairlead_kafka.cli import profiles
from fairlead_kafka.cli.application import _application, _take_settings, _takes_json_file, with_json_target

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ENDS = {"|", "<", ">", "&&", "&", ";"}
"""Words of a shell after which a command is over."""


def commands(page: Path) -> list[str]:
    """The commands in the blocks of a page that are marked as a shell's."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = (line for block in blocks for line in block.replace("\\\n", " ").splitlines())
    return [found for line in lines for found in re.findall(r"(?:^|[|;&] *)(fairlead .*)", line)]


def parse(words: list[str]) -> None:
    """Parse a command line as the program does. Raises what the program would print."""
    command = typer.main.get_command(_application(words))
    _take_settings(command)
    if _takes_json_file(command):
        words = with_json_target(words)
    name = "fairlead"
    while isinstance(command, TyperGroup):
        with command.make_context(name, words) as context:
            words = [*context._protected_args, *context.args]
            found, inner, words = command.resolve_command(context, words)
            assert inner is not None, found
            name, command = f"{name} {found}", inner
    command.make_context(name, words).close()


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_the_commands_in_the_documents_are_the_program_s(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "plots").mkdir(parents=True)
    (tmp_path / "client.properties").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles.write("prod", {})
    for line in commands(page):
        words = list(takewhile(lambda word: word not in ENDS, shlex.split(line, comments=True)))
        try:
            parse(words[1:])
        except typer.Exit:
            pass
        except Exception as error:
            pytest.fail(f"{line}: {error}")
