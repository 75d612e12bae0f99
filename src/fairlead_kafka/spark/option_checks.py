"""Problems of options, found with `option_table` alone, so that it loads quickly; all are returned
at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.spark.formats.option_rows import REGISTRY_PREFIX
from fairlead_kafka.spark.offsets import EARLIEST, LATEST
from fairlead_kafka.spark.option_table import OPTIONS, REFUSED, TOPIC_CHOICES, USES, VIEW_OPTIONS
from fairlead_kafka.spark.parsed_options import Values

BY_LOWER_NAME = {option.name.lower(): option for option in OPTIONS}
_USE_WORDS = {"batch": "a batch read", "stream": "a streaming read", "write": "a write", "read": "reads"}
_REFUSED_LOWER = {name.lower(): (name, reason) for name, reason in REFUSED.items()}
_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname"})
"""Options that Spark itself adds."""
_SERVERS = "bootstrap.servers"


class WrongOptions(ConfigError):
    """Error for invalid options; `problems` has them one by one, most with the option's name and a
    colon first."""

    problems: tuple[str, ...] = ()


def check_read(options: Mapping[str, str], streaming: bool) -> tuple[Values, dict[str, str], list[str]]:
    """The result of `check_options` for a read, and problems that only all its options together
    show."""
    values, client, wrong = check_options(options, "stream" if streaming else "batch")
    chosen = [name for name in TOPIC_CHOICES if name in values]
    whole_cluster = values.get("view") in ("offsets", "topics") and not chosen
    named_wrongly = any(f"{name}:" in problem for problem in wrong for name in TOPIC_CHOICES)
    if len(chosen) != 1 and not whole_cluster and not named_wrongly:
        wrong.append(
            "exactly one of assign, subscribe and subscribePattern says what to read; given: "
            f"{', '.join(chosen) or 'none'}"
        )
    return values, client, wrong + (_stream_problems(values, wrong) if streaming else _batch_problems(values))


def _batch_problems(values: Values) -> list[str]:
    wrong = []
    if values.get("startingOffsets") == LATEST:
        wrong.append(
            "startingOffsets: a batch read from latest would read nothing; use earliest or offsets by "
            "partition"
        )
    if values.get("endingOffsets") == EARLIEST:
        wrong.append(
            "endingOffsets: a batch read up to earliest would read nothing; use latest or offsets by "
            "partition"
        )
    for name, marker, word in (
        ("startingOffsets", LATEST, "latest (-1)"),
        ("endingOffsets", EARLIEST, "earliest (-2)"),
    ):
        found: object = values.get(name)
        if isinstance(found, dict) and marker in found.values():
            wrong.append(f"{name}: {word} is not possible for a partition here")
    return wrong + _view_problems(values)


def _view_problems(values: Values) -> list[str]:
    view = values.get("view", "records")
    if view in VIEW_OPTIONS:
        return [
            f"{name}: has no meaning in the view {view}"
            for name in values
            if name != "view" and name not in VIEW_OPTIONS[view]
        ]
    belongs = {"measureRatio": "batches", "groups": "offsets"}
    return [
        f"{name}: is for the view {belongs[name]}; set view={belongs[name]}"
        for name in values
        if name in belongs
    ]


def _stream_problems(values: Values, known: list[str]) -> list[str]:
    wrong = []
    low, high = values.get("minOffsetsPerTrigger"), values.get("maxOffsetsPerTrigger")
    if low is not None and high is not None and low > high:
        wrong.append(f"minOffsetsPerTrigger: {low} is more than maxOffsetsPerTrigger, {high}")
    if "maxTriggerDelay" in values and not is_given("minOffsetsPerTrigger", values, known):
        wrong.append("maxTriggerDelay: says how long to wait for minOffsetsPerTrigger, which is not set")
    if values.get("commitOffsets") and not any(
        is_given(name, values, known) for name in ("kafka.group.id", "groupIdPrefix")
    ):
        wrong.append("commitOffsets: to which group? set kafka.group.id, or groupIdPrefix")
    return wrong


def check_options(options: Mapping[str, str], use: str) -> tuple[Values, dict[str, str], list[str]]:
    """Parsed options by their proper name, settings of the client, and what is wrong. `use` is one
    of the values of `USES`."""
    parsed: dict[str, object] = {}
    client: dict[str, str] = {}
    wrong: list[str] = []
    for given, text in options.items():
        name = given.lower()
        if name in _REFUSED_LOWER:
            proper, reason = _REFUSED_LOWER[name]
            wrong.append(f"{proper}: not supported ({reason})")
        elif name.startswith("kafka.") and name not in BY_LOWER_NAME:
            setting = name.removeprefix("kafka.")
            client[CLIENT_CONFIGS.aliases.get(setting, setting)] = text
        elif name in BY_LOWER_NAME:
            option = BY_LOWER_NAME[name]
            if use not in USES[option.used_by]:
                wrong.append(
                    f"{option.name}: an option for {_USE_WORDS[option.used_by]}, not for {_USE_WORDS[use]}"
                )
                continue
            try:
                parsed[option.name] = option.parse(text)
            except ValueError as error:
                wrong.append(f"{option.name}: {error}, got {text!r}")
        elif name not in _SPARKS_OWN and not name.startswith(REGISTRY_PREFIX):
            wrong.append(f"{given}: unknown option{_meant(name)}")
    values = cast(Values, parsed)  # as the table's functions return them; a test compares the names
    if _SERVERS not in client:
        wrong.append(f"kafka.{_SERVERS}: required, host:port pairs of brokers separated by commas")
    return values, client, wrong + client_problems(_scope(use, values), client)


def client_problems(scope: str, client: Mapping[str, str]) -> list[str]:
    """Problems of a client's settings, by the names that options have (`kafka.*`).

    `scope` is one of the scopes of `CLIENT_CONFIGS`.
    """
    wrong = []
    for name, text in client.items():
        try:
            CLIENT_CONFIGS.parse(scope, {_SERVERS: "localhost:9092", name: text})
        except ConfigError as error:
            said = (
                str(error).removeprefix(f"{scope} config: ").replace("did you mean ", "did you mean kafka.")
            )
            wrong.append(f"kafka.{said}".replace(": unknown", ": no client has such a setting", 1))
    return wrong


def is_given(name: str, values: Values, wrong: list[str]) -> bool:
    """True if an option is given, even with an invalid value, whose message is in `wrong`."""
    return name in values or any(problem.startswith(f"{name}:") for problem in wrong)


def _scope(use: str, values: Values) -> str:
    """The kind of client (producer, admin or consumer) that the `kafka.*` settings are for."""
    if use == "write":
        return "producer"
    return "admin" if values.get("view") in ("offsets", "topics") else "consumer"


def _meant(name: str) -> str:
    """The end of a message on the unknown option `name`: the client's setting that lacks its prefix
    `kafka.`, or the option with the nearest name; empty if there is neither."""
    setting = CLIENT_CONFIGS.aliases.get(name, name)
    if f"kafka.{setting}" in BY_LOWER_NAME or setting in CLIENT_CONFIGS.keys:
        return f"; did you mean kafka.{setting}?"
    near = nearest(name, BY_LOWER_NAME)
    return f"; did you mean {BY_LOWER_NAME[near].name}?" if near else ""


def raise_wrong(use: str, wrong: list[str]) -> None:
    """Raise WrongOptions if there is anything wrong."""
    if wrong:
        error = WrongOptions(f'options of {use}.format("fairlead"): ' + "; ".join(wrong))
        error.problems = tuple(wrong)
        raise error
