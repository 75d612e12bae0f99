"""The command line in this process, and in a process of its own."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fairlead_kafka.cli import connecting
from fairlead_kafka.cli.application import invoke
from tests.support.waiting import PATIENCE_S


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        """What it wrote as JSON, one object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


def runner(
    bootstrap_servers: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """A function that runs a command against a cluster, in this process; `stdin` is what it may
    read, or stands in for `sys.stdin`. No command says that it waits for the cluster, for it is
    there and only the machine may be slow; a test of one that is not there sets QUIET_S itself."""
    monkeypatch.setenv("FAIRLEAD_BOOTSTRAP_SERVERS", bootstrap_servers)
    monkeypatch.setattr(connecting, "QUIET_S", PATIENCE_S)

    def run(*arguments: str, stdin: object = b"") -> Ran:
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)) if isinstance(stdin, bytes) else stdin
        )
        capsys.readouterr()
        code = invoke(list(arguments))
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return run


def start(*arguments: str, bootstrap_servers: str = "") -> subprocess.Popen[str]:
    """A command in a process of its own, its output in pipes."""
    environment = {**os.environ, "FAIRLEAD_BOOTSTRAP_SERVERS": bootstrap_servers, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "fairlead_kafka.cli.main", *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def without_slow_starts(said: str) -> str:
    """What a process said without the lines about a broker that took long to answer at first."""
    return re.sub(r"(?m)^no connection to .*\((no answer so far|connected, but .*)\).*\n", "", said)
