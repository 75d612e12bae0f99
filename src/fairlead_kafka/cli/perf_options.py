"""Options and formats that `perf produce` and `perf consume` share with Kafka's tools.

These are options of several values, property files, payloads and date formats.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.units import MIB
from fairlead_kafka.cli.options import DEFAULT_BOOTSTRAP_SERVERS, SERVERS_VARIABLE
from fairlead_kafka.cli.terminal import settings
from fairlead_kafka.core.metric_table import GROUPS, labelled

PAYLOAD_SEED = 0
PAYLOADS_BYTES_MAX = 8 * MIB
"""Bytes of random payloads at most; they are made before the clock starts, and records take from
them."""
BootstrapServer = Annotated[
    str | None, typer.Option("--bootstrap-server", "--bootstrap-servers", "-b", help="host:port of brokers.")
]
_LETTERS = bytes(ord("A") + number % 26 for number in range(256))
SEVERAL_VALUES = ("--producer-props", "--command-property")
_DATE_FIELDS = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}
_DATE_PARTS = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+")


class SeveralValuesCommand(TyperCommand):
    """A command whose options of `SEVERAL_VALUES` take all the values that follow, as those of
    Kafka's own tools do."""

    # The type of a context has another home in every few releases of typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after each value of an option was given that option."""
        return super().parse_args(ctx, one_value_each(args, SEVERAL_VALUES))


def one_value_each(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    """`--x a=1 b=2` as `--x a=1 --x b=2`, for each of `options`; a text with spaces between
    properties counts as several."""
    spread: list[str] = []
    option: str | None = None
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if argument.startswith("--"):
            option = name if name in options else None
            spread.append(name if option else argument)
            if option is None or not equals:
                continue
            argument = value
        if option is None:
            spread.append(argument)
            continue
        for one in re.split(r"\s+(?=[\w.]+=)", argument.strip()):
            spread += [one] if spread[-1] == option else [option, one]
    return spread


def servers(given: str | None, config: Mapping[str, str]) -> dict[str, str]:
    """`bootstrap.servers`: from the option, else the configs, else the environment, else this
    machine at Kafka's port."""
    default = os.environ.get(SERVERS_VARIABLE, DEFAULT_BOOTSTRAP_SERVERS)
    return {"bootstrap.servers": given or config.get("bootstrap.servers", default)}


def property_file(path: Path | None, option: str) -> dict[str, str]:
    """The `key=value` lines of a file; ConfigError if it cannot be read."""
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{option} {path}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})"
        ) from None
    return settings(
        [line for line in map(str.strip, lines) if line and not line.startswith(("#", "!"))],
        f"{option} {path}:",
    )


def payloads(
    record_size: int | None,
    payload_file: Path | None,
    delimiter: str,
    monotonic: bool,
    records: int,
    rng: random.Random,
) -> list[bytes] | None:
    """The values to choose from: letters A to Z, or those of the file; None: each value is the
    record's number. ConfigError if the options contradict each other."""
    if (record_size is not None) + (payload_file is not None) + monotonic != 1:
        raise ConfigError(
            "exactly one of --record-size, --payload-file and --payload-monotonic must be given"
        )
    if monotonic:
        return None
    if payload_file is not None:
        try:
            parts = payload_file.read_bytes().split(
                delimiter.replace("\\n", "\n").replace("\\t", "\t").encode()
            )
        except OSError as error:
            raise ConfigError(f"--payload-file {payload_file}: cannot be read ({error.strerror})") from None
        found = [part for part in parts if part]
        if not found:
            raise ConfigError(f"--payload-file {payload_file}: there is no payload in it")
        return found
    size = record_size or 0
    count = max(1, min(records, PAYLOADS_BYTES_MAX // size))
    letters = rng.randbytes(count * size).translate(_LETTERS)
    return [letters[start : start + size] for start in range(0, len(letters), size)]


def date_formatter(pattern: str) -> Callable[[datetime], str]:
    """A function that formats a time by a pattern of Java's SimpleDateFormat, of the letters y M d
    H m s S and quoted text. ConfigError for other letters."""
    for letter in re.sub(r"'[^']*'", "", pattern):
        if (letter.isalpha() and letter not in "yMdHmsS") or letter == "'":
            raise ConfigError(
                f"--date-format {pattern!r}: made of y M d H m s S and text in quotes, not {letter!r}"
            )

    def format_date(when: datetime) -> str:
        def shown(found: re.Match[str]) -> str:
            letter, text = found[2], found[0]
            if found[1] is not None:
                return str(found[1])
            if letter == "S":
                return f"{when.microsecond // 1000:0{len(text)}}"
            return when.strftime(_DATE_FIELDS[letter]) if letter else str(text)

        return _DATE_PARTS.sub(shown, pattern)

    return format_date


_TAGS = {"node": "node-id"}
"""Label of a group of metrics → Kafka's tag, if it is another."""


def metric_lines(client_id: str, groups: Mapping[str, object]) -> list[str]:
    """Groups of metrics as `--print-metrics` shows them: aligned, sorted, `group:name:{client-id=…}
    : value`."""
    names: dict[str, float] = {}
    for group in groups:
        row = GROUPS[group]
        for labels, values in labelled(row, groups):
            tags = [f"client-id={client_id}"]
            tags += [f"{_TAGS.get(tag, tag)}={label}" for tag, label in zip(row.labels, labels, strict=True)]
            names |= {
                f"{row.kafka_name}:{name}:{{{', '.join(tags)}}}": value for name, value in values.items()
            }
    width = max(map(len, names), default=0)
    return [
        "",
        f"{'Metric Name':<{width}}   Value",
        *(f"{name:<{width}} : {value:.3f}" for name, value in sorted(names.items())),
    ]


def say(line: str) -> None:
    """Print a line of results at once: another program may read them as they come."""
    typer.echo(line)
