"""Writes the documents that come from the code, such as configuration.md and protocol.md, and
`base/config_names.py`. `tests/tidy/test_docs.py` holds them true."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from observing_pages import log_lines, metrics
from page_parts import NOTE, table

import fairlead_kafka
from fairlead_kafka import spark, testing
from fairlead_kafka.base.codes import TABLE, policy
from fairlead_kafka.base.config import ConfigKey, ConfigTable, ConfigType
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.config_share import SHARE_CONSUMER
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.broker.refusals import REFUSED_APIS, REFUSED_OPTIONS, REFUSED_VERSIONS
from fairlead_kafka.cli.application import COMMANDS
from fairlead_kafka.client.admin_names import COUNTERPARTS
from fairlead_kafka.client.grafana import DASHBOARDS, dashboard
from fairlead_kafka.formats.registry import RegistryFailed
from fairlead_kafka.lab.transcript.compare import Explanation, explanations
from fairlead_kafka.spark.connector import REFUSED_SETTINGS
from fairlead_kafka.spark.exactly_once.errors import (
    CheckpointBehind,
    CommitUnfinished,
    NotCommitted,
    RowsLost,
)
from fairlead_kafka.spark.option_table import OPTIONS, REFUSED, Option
from fairlead_kafka.spark.reading import DataLoss
from fairlead_kafka.spark.starting import SparkMissing, SparkNotStarted
from fairlead_kafka.spark.versions import (
    NO_REAL_TIME,
    SERVED,
    TOO_OLD,
    WITHOUT,
    Feature,
    SparkUnsupported,
    has,
)
from fairlead_kafka.wire import CLIENT_VERSIONS, ApiKey

FOLDER = Path(__file__).parent
_CONFIG_HEADER = ("key, type, default; what is allowed", "meaning")


def _config_row(key: ConfigKey) -> tuple[str, ...]:
    default = (
        "null"
        if key.default is None
        else str(key.default).lower()
        if key.default in (True, False)
        else ",".join(key.default)
        if isinstance(key.default, tuple)
        else key.default
    )
    kind, allowed = (key.kafka_type or key.type).value, key.allowed()
    standing = "required" if key.required else f"default `{default}`" if default != "" else "default empty"
    return f"`{key.name}`<br>{kind}, {standing}{f'; {allowed}' if allowed else ''}", key.doc


def _scope(configs: ConfigTable, scope: str, title: str) -> str:
    keys = [key for key in configs.scope(scope) if not key.no_effect]
    return f"## {title}\n\n" + table(_CONFIG_HEADER, map(_config_row, keys))


def _of_no_effect(configs: ConfigTable, scope: str, title: str) -> str:
    rows = [(*_config_row(key), key.no_effect) for key in configs.scope(scope) if key.no_effect]
    return f"## {title}\n\n" + table((*_CONFIG_HEADER, "why it changes nothing"), rows)


def _unsupported(configs: ConfigTable) -> str:
    return table(
        ("key", "reason"),
        (
            (f"`{name}…`" if name.endswith(".") else f"`{name}`", why)
            for name, why in sorted(configs.unsupported.items())
        ),
    )


def _name(key: ApiKey) -> str:
    return key.name.title().replace("_", "")


def configuration() -> str:
    """docs/reference/configuration.md"""
    return (
        "\n\n".join(
            (
                NOTE,
                "# Configuration",
                "Keys and defaults are Kafka's own. An unknown key, or a value that does not fit, is refused "
                "with the nearest right name.",
                _scope(CLIENT_CONFIGS, "producer", "Producer"),
                _scope(CLIENT_CONFIGS, "consumer", "Consumer"),
                _scope(CLIENT_CONFIGS, SHARE_CONSUMER, "Share consumer"),
                _scope(CLIENT_CONFIGS, "admin", "Admin"),
                "## Refused by clients\n\n" + _unsupported(CLIENT_CONFIGS),
                _scope(BROKER_CONFIGS, "broker", "Embedded cluster"),
                _scope(BROKER_CONFIGS, "topic", "Topics of the embedded cluster"),
                _scope(BROKER_CONFIGS, "client-metrics", "Subscriptions to clients' metrics"),
                _scope(BROKER_CONFIGS, "group", "Groups of the embedded cluster"),
                "# Of no effect here\n\nThe embedded cluster takes, checks, keeps and lists every config of "
                "Apache Kafka 4.3. These change nothing, for the reason given. What would break a promise "
                "if it were ignored is not allowed.",
                _of_no_effect(BROKER_CONFIGS, "topic", "Topics, of no effect"),
                _of_no_effect(BROKER_CONFIGS, "broker", "Embedded cluster, of no effect"),
                "## Refused by the embedded cluster\n\n" + _unsupported(BROKER_CONFIGS),
            )
        )
        + "\n"
    )


_USES = {
    "read": "batch, streaming",
    "batch": "batch",
    "stream": "streaming",
    "write": "write",
    "both": "batch, streaming, write",
}


def _option_rows(options: Iterable[Option]) -> str:
    rows = (
        (f"`{one.name}`", _USES[one.used_by], f"`{one.default}`" if one.default else "", one.doc)
        for one in options
    )
    return table(("option", "for", "default", "meaning"), rows)


def spark_options() -> str:
    """docs/reference/spark-options.md"""
    settings = (
        (f"`{name}…`" if name.endswith(".") else f"`{name}`", f"`{default}`" if default else "", why)
        for name, (default, why) in REFUSED_SETTINGS.items()
    )
    return (
        "\n\n".join(
            (
                NOTE,
                "# Options of the Spark source and sink",
                "Required: `kafka.bootstrap.servers`, host:port pairs of brokers, and for reads one of "
                "`assign`, `subscribe` and "
                "`subscribePattern`. Names may be in any case. Everything that is wrong is said at once, "
                "with the nearest right name.",
                "Options `kafka.*` that are not listed here go to the client, by the tables of "
                "[configuration](configuration.md): "
                "`kafka.isolation.level`, `kafka.fetch.max.bytes`, `kafka.linger.ms`. How the source works "
                "is in "
                "[Reading Kafka in Spark](../concepts/spark-source.md).",
                "## As in Spark's own Kafka connector",
                _option_rows(one for one in OPTIONS if not one.ours),
                "## What Spark's connector does not have",
                _option_rows(one for one in OPTIONS if one.ours),
                "## Refused options",
                table(("option", "reason"), ((f"`{name}`", why) for name, why in REFUSED.items())),
                "## Spark's settings for its own connector",
                "They mean nothing here: `fairlead_kafka.spark.spark_session` refuses them.",
                table(("setting", "default", "reason"), settings),
            )
        )
        + "\n"
    )


SPARK_RUNS = (
    ("4.0.5", "17.0.15", "27 November 2026", "all: 85 passed, 6 are not for this version"),
    ("4.0.5", "21.0.8", "27 November 2026", "some: 30 passed, 1 is not for this version"),
    ("4.1.4", "17.0.15", "27 November 2026", "all: 87 passed, 4 are not for this version"),
    ("4.1.4", "21.0.8", "27 November 2026", "some: 30 passed, 1 is not for this version"),
    ("4.2.1", "17.0.15", "27 November 2026", "all: 87 passed, 4 are not for this version"),
    ("4.2.1", "21.0.8", "27 November 2026", "some: 28 passed, 3 are not for this version"),
    ("4.3.0", "17.0.15", "each change", "all, by `make test`"),
    ("4.3.0", "21.0.8", "27 November 2026", "some: 28 passed, 3 are not for this version"),
)
"""The newest run of the tests on each version of Spark."""


def spark_versions() -> str:
    """docs/reference/spark-versions.md"""
    named = {version: "{}.{}".format(*version) for version in SERVED}
    features = (
        (one.value, *("yes" if has(one, version) else "no" for version in SERVED), WITHOUT[one])
        for one in Feature
    )
    unserved = (("Spark 3.5 and older", f"{TOO_OLD}."), ("Real-time mode", f"{NO_REAL_TIME}."))
    return (
        "\n\n".join(
            (
                NOTE,
                "# Versions of Spark",
                "The source and the sink work on these versions. `make test-spark-versions` runs their "
                "tests on each.",
                table(
                    ("Spark", "Python"),
                    ((named[version], served.python) for version, served in SERVED.items()),
                ),
                "All that [reading](../concepts/spark-source.md), [options](spark-options.md), "
                "[formats](../how-to/formats.md) and [exactly-once](../concepts/exactly-once.md) say "
                "holds on each of them, but for this:",
                table(("feature", *named.values(), "where it is missing"), features),
                "[Kafka in PySpark](../how-to/spark.md#versions-of-spark-python-and-java) says what else "
                "differs.",
                "## What was run",
                "All means the tests of `make test-spark-versions`; some are those of batches, limits, "
                "triggers and Connect. Each ran with Python 3.11.",
                table(("Spark", "Java", "on", "tests"), SPARK_RUNS),
                "## Not served",
                table(("what", "why not"), unserved),
            )
        )
        + "\n"
    )


def _difference(one: Explanation) -> tuple[str, str, str, str]:
    where = ", ".join(f"`{path}`" for path in one.where if path)
    return one.api, where, "" if one.step == "*" else one.step, one.reason


def protocol() -> str:
    """docs/reference/protocol.md"""

    def versions(pair: tuple[int, int] | None) -> str:
        return f"{pair[0]}–{pair[1]}" if pair else ""

    served = {key: (api.low, api.high) for key, api in REGISTRY.items()}
    rows = [
        (key.value, _name(key), versions(CLIENT_VERSIONS.get(key)), versions(served.get(key)))
        for key in ApiKey
    ]
    return (
        "\n\n".join(
            (
                NOTE,
                "# Protocol",
                "Kafka's APIs and the versions that our client negotiates and that the embedded cluster "
                "serves.",
                table(("key", "API", "client", "cluster"), (row for row in rows if row[2] or row[3])),
                "## Not served by the embedded cluster\n\n"
                + table(("API", "reason"), ((_name(key), why) for key, why in REFUSED_APIS.items())),
                "## Versions not served\n\n"
                + table(
                    ("API", "versions", "reason"),
                    (
                        (_name(one.api_key), versions((one.low, one.high)), one.reason)
                        for one in REFUSED_VERSIONS
                    ),
                ),
                "## Parts of served APIs that are answered with an error\n\n"
                + table(
                    ("API", "part", "error", "reason"),
                    (
                        (_name(one.api_key), one.option, policy(one.error_code).name, one.reason)
                        for one in REFUSED_OPTIONS
                    ),
                ),
                "## Answers that differ from Apache Kafka's\n\n`fairlead lab transcript` sends more than a "
                "thousand requests to both and "
                "compares the answers field by field. What differs, and why "
                "(`lab/transcript/differences.toml`):\n\n"
                + table(
                    ("API", "where", "in the step", "reason"), (_difference(one) for one in explanations())
                ),
                "`fairlead lab transcript --secured` does the same with log-ins and an authorizer on both "
                "sides: every API is asked "
                "by users with this right, that, and none. What differs beside "
                "(`lab/transcript/differences_secured.toml`):\n\n"
                + table(
                    ("API", "where", "in the step", "reason"),
                    (_difference(one) for one in explanations("differences_secured.toml")),
                ),
            )
        )
        + "\n"
    )


def admin() -> str:
    """docs/reference/admin.md"""
    rows = (
        (f"`{java}`", f"`{one.ours}`" if one.ours else "none", one.since if one.ours else "", one.note)
        for java, one in sorted(COUNTERPARTS.items())
    )
    return (
        "\n\n".join(
            (
                NOTE,
                "# The admin client",
                "`Admin` and `AsyncAdmin` have a method for each of Java's `Admin` (4.3.1) that makes sense "
                "outside KRaft's inside, with the same meaning and a result for each item.",
                table(("Java", "ours", "since", "note"), rows),
            )
        )
        + "\n"
    )


def _errors_below(root: type) -> list[type]:
    return [root, *(one for below in root.__subclasses__() for one in _errors_below(below))]


EXCEPTIONS = [one for one in _errors_below(FairleadError) if one.__module__ == FairleadError.__module__][1:]
"""The exceptions of clients, each after the one that it is a kind of."""
ELSEWHERE = (
    RegistryFailed,
    DataLoss,
    NotCommitted,
    CommitUnfinished,
    RowsLost,
    CheckpointBehind,
    SparkMissing,
    SparkNotStarted,
    SparkUnsupported,
)
"""Those of formats and of Spark."""


def remedies(kind: str) -> dict[str, str]:
    """What to do, by the name of an exception or (`kind` "codes") of an error code."""
    entries: dict[str, dict[str, str]] = tomllib.loads((FOLDER / "remedies.toml").read_text(encoding="utf-8"))
    return entries[kind]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def errors() -> str:
    """docs/reference/errors.md"""
    exceptions, by_code = remedies("exceptions"), remedies("codes")

    def raised(kinds: Iterable[type]) -> str:
        rows = (
            (
                f"`{one.__name__}`<br>a kind of `{one.__bases__[0].__name__}`",
                " ".join((one.__doc__ or "").split("\n\n")[0].split()),
                exceptions[one.__name__],
            )
            for one in kinds
        )
        return table(("exception", "cause", "remedy"), rows)

    answered = (
        (
            f"`{each.name}`<br>{each.code}{', retriable' if each.retriable else ''}",
            _sentence(each.meaning),
            by_code[each.name],
        )
        for each in TABLE.values()
    )
    return (
        "\n\n".join(
            (
                NOTE,
                "# Errors",
                "Every error that Fairlead raises is a `fairlead_kafka.FairleadError`; its class says whose "
                "fault it is. What "
                "a broker answered is a `BrokerError` with `code`, `name` and `retriable`.",
                "## Exceptions",
                raised(EXCEPTIONS),
                "## Exceptions of formats and Spark",
                raised(ELSEWHERE),
                "## Error codes of brokers",
                "Retriable: the client sends the same request again by itself, until its time-out.",
                table(("name and code", "cause", "remedy"), answered),
            )
        )
        + "\n"
    )


def _commands(command: Any, path: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            if not below.hidden:
                yield from _commands(below, f"{path} {name}")
        return
    about = inspect.cleandoc(command.help or "").split("\f")[0]
    rows = [
        (
            ", ".join(f"`{name}`" for name in one.opts)
            if one.opts[0].startswith("-")
            else f"`{one.name.upper()}`",
            "required" if one.required else "",
            " ".join((getattr(one, "help", None) or "").split()),
        )
        for one in command.params
        if one.name != "help" and not getattr(one, "hidden", False)
    ]
    shown = "\n\n" + table(("option", "", "meaning"), rows) if rows else ""
    yield f"## {path}\n\n{about}{shown}"


def cli() -> str:
    """docs/reference/cli.md"""
    shown: list[str] = []
    for name, command in COMMANDS.items():
        module, _, attribute = command.place.partition(":")
        one: Any = getattr(import_module(f"fairlead_kafka.cli.{module}"), attribute)
        if attribute != "app":
            alone = typer.Typer(add_completion=False)
            alone.command(name)(one)
            one = alone
        shown += _commands(typer.main.get_command(one), f"fairlead {name}")
    about = "`fairlead COMMAND --help` says the same, with the settings of clients that most commands take."
    return "\n\n".join((NOTE, "# Command line", about, *shown)) + "\n"


API = {
    "clients": ("Clients", fairlead_kafka, lambda name: name in _CLIENTS),
    "records": ("Records, topics and what admins name", fairlead_kafka, lambda name: name not in _CLIENTS),
    "testing": ("The embedded cluster and tests", testing, lambda name: True),
    "spark": ("Spark", spark, lambda name: True),
}
_CLIENTS = (
    *("Producer", "AsyncProducer", "Consumer", "AsyncConsumer", "ShareConsumer", "AsyncShareConsumer"),
    *("Admin", "AsyncAdmin"),
)


def _api(page: str) -> str:
    title, room, chosen = API[page]
    exceptions = {one.__name__ for one in (FairleadError, *EXCEPTIONS)}
    names = [name for name in room.__all__ if chosen(name) and name not in exceptions and name[0] != "_"]
    homes = [getattr(room, name) for name in names]
    entries = (f"::: {one.__module__}.{one.__qualname__}" for one in homes if hasattr(one, "__qualname__"))
    where = f"Import these from `{room.__name__}`. Exceptions are in [Errors](../errors.md)."
    return "\n\n".join((NOTE, f"# {title}", where, *entries)) + "\n"


_KINDS = {
    ConfigType.BOOLEAN: "Boolean",
    ConfigType.SHORT: "Integer",
    ConfigType.INT: "Integer",
    ConfigType.LONG: "Integer",
    ConfigType.DOUBLE: "Double",
    ConfigType.STRING: "String",
    ConfigType.LIST: "List",
    ConfigType.CLASS: "String",
    ConfigType.PASSWORD: "Password",
}


def config_names() -> str:
    """src/fairlead_kafka/base/config_names.py"""
    names: dict[str, set[str]] = {}
    for key in (*CLIENT_CONFIGS.keys.values(), *BROKER_CONFIGS.keys.values()):
        if key.type is not ConfigType.ANY and not key.no_effect and not key.fixed:  # nobody reads those
            kind = ("Nullable" if key.nullable else "") + _KINDS[key.type] + "Key"
            names.setdefault(kind, set()).add(key.name)
    rows = "\n".join(
        f"{kind} = Literal[\n" + "".join(f'    "{name}",\n' for name in sorted(names[kind])) + "]"
        for kind in sorted(names)
    )
    return (
        '"""Names of all configs by the type of their values, so that type checkers know what\n'
        "`Settings.__getitem__` returns. docs/generate.py (`make docs`) writes it from the config tables.\n"
        '"""\n\n'
        f"from typing import Literal\n\n{rows}\n"
    )


DOCUMENTS: dict[str, Callable[[], str]] = {
    **{f"dashboards/{name}.json": partial(dashboard, name) for name in DASHBOARDS},
    "../src/fairlead_kafka/base/config_names.py": config_names,
    "reference/admin.md": admin,
    **{f"reference/api/{page}.md": partial(_api, page) for page in API},
    "reference/cli.md": cli,
    "reference/configuration.md": configuration,
    "reference/errors.md": errors,
    "reference/logging.md": log_lines,
    "reference/metrics.md": metrics,
    "reference/protocol.md": protocol,
    "reference/spark-options.md": spark_options,
    "reference/spark-versions.md": spark_versions,
}


if __name__ == "__main__":
    for name, write in DOCUMENTS.items():
        (FOLDER / name).write_text(write(), encoding="utf-8")
