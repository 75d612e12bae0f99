"""What all commands share: consoles, progress, JSON reports, `key=value` settings, and the options every client command has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fairlead.base.errors import ConfigError

output = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

BootstrapServers = Annotated[
    str, typer.Option("--bootstrap-server", "--bootstrap-servers", "-b", envvar="FAIRLEAD_BOOTSTRAP_SERVERS", help="host:port of brokers.")
]
ClientProperties = Annotated[
    list[str] | None, typer.Option("--property", "-X", metavar="KEY=VALUE", help="A client config; may be repeated.")
]
JsonFile = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for standard output.")]

DEFAULT_BOOTSTRAP_SERVERS = "127.0.0.1:9092"


def settings(pairs: list[str] | None, option: str = "--property") -> dict[str, str]:
    """`key=value` texts as a dict. ConfigError for one without `=`."""
    parsed = {}
    for pair in pairs or ():
        key, found, value = pair.partition("=")
        if not found or not key.strip():
            raise ConfigError(f"{option} {pair!r}: expected KEY=VALUE, such as linger.ms=5")
        parsed[key.strip()] = value.strip()
    return parsed


def client_settings(bootstrap_servers: str, properties: list[str] | None) -> dict[str, Any]:
    """The settings of a client: `bootstrap.servers` and the properties given over it."""
    return {"bootstrap.servers": bootstrap_servers, **settings(properties)}


def write_json(report: Any, target: str | None) -> None:
    """The report to a file, or to standard output for `-`. ConfigError if the file cannot be written."""
    if target is None:
        return
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--json {target}: cannot be written ({error.strerror})") from None


@contextmanager
def progress(text: str) -> Iterator[Any]:
    """Shows what is going on, on standard error; call the value with a new text. Plain lines where there is no terminal."""
    if errors.is_terminal:
        with errors.status(text) as status:
            yield status.update
        return
    errors.print(f"{text} …")
    yield lambda text: errors.print(f"{text} …")
