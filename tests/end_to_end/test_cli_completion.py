"""The shell completes commands and options: bash, as a user has it, and what zsh and fish ask
for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    from tests.support.command_line import runner

    return runner("127.0.0.1:1", capsys, monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which there is `fairlead`."""
    program = tmp_path / "fairlead"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m fairlead_kafka.cli.main "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["top"], ["topics"]),
        (["topics", "de"], ["describe", "delete"]),
        (["consume", "--from-b"], ["--from-beginning"]),
        (["topics", "list", "--command-c"], ["--command-config"]),
        (["up", "--sasl", "p"], ["plain"]),
    ],
)
def test_bash_completes(path: str, words: list[str], expected: list[str]) -> None:
    program = """
        source <(fairlead completion bash)
        COMP_WORDS=(fairlead "$@"); COMP_CWORD=$#
        _fairlead_completion fairlead
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(
        ["bash", "-c", program, "bash", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_a_script(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"complete_{shell}" in ran.out or "complete_" in ran.out
    assert "fairlead" in ran.out


def test_a_shell_that_is_not_known_is_named(run: Run) -> None:
    ran = run("completion", "tcsh")
    assert ran.code == 2
    assert "'tcsh' is not one of" in ran.err


def test_no_option_is_there_twice(run: Run) -> None:
    for command in (["consume"], ["produce"], ["topics", "list"], ["groups", "describe"]):
        assert run(*command, "--help").out.count("--command-config") == 1
    assert run("profile", "add", "--help").out.count("--command-config") == 0
