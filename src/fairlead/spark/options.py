"""Spark's text options as typed settings: one table of options, everything that is wrong said at once.

Names and meanings are those of Spark's Kafka connector. Spark lower-cases option names before Python sees them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlead.base.errors import ConfigError
from fairlead.spark.offsets import EARLIEST, LATEST, OffsetsByPartition, parse_assignment, parse_offsets, parse_timestamps


@dataclass(frozen=True)
class Option:
    """One option of the source or the sink."""

    name: str
    used_by: str
    """read or write."""
    default: str
    doc: str
    parse: Callable[[str], Any] = str


def _boolean(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


def _positive(text: str) -> int:
    number = int(text) if text.strip().lstrip("+-").isdigit() else 0
    if number < 1:
        raise ValueError("must be a whole number, at least 1")
    return number


def _milliseconds(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError("must be milliseconds since 1970, a whole number")
    return int(text)


def _strategy(text: str) -> str:
    if text.lower() not in ("error", "latest"):
        raise ValueError("must be error or latest")
    return text.lower()


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError("must name at least one topic")
    return names


def _text(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


OPTIONS: tuple[Option, ...] = (
    Option("assign", "read", "", 'Partitions to read, as JSON: {"topic": [0, 1]}.', parse_assignment),
    Option("subscribe", "read", "", "Topics to read, separated by commas.", _names),
    Option("subscribePattern", "read", "", "Regular expression that the names of the topics to read match whole.", _text),
    Option("startingTimestamp", "read", "", "Start every partition at the first record of this time (ms since 1970).", _milliseconds),
    Option("startingOffsetsByTimestamp", "read", "", 'The same by partition: {"topic": {"0": 1000}}.', parse_timestamps),
    Option(
        "startingOffsets",
        "read",
        "earliest",
        'earliest, or offsets by partition: {"topic": {"0": 23, "1": -2}}; -2 is earliest.',
        parse_offsets,
    ),
    Option("endingTimestamp", "read", "", "End every partition before the first record of this time (ms since 1970).", _milliseconds),
    Option("endingOffsetsByTimestamp", "read", "", 'The same by partition: {"topic": {"0": 2000}}.', parse_timestamps),
    Option(
        "endingOffsets", "read", "latest", 'latest, or offsets by partition: {"topic": {"0": 50, "1": -1}}; -1 is latest.', parse_offsets
    ),
    Option(
        "startingOffsetsByTimestampStrategy",
        "read",
        "error",
        "When a partition has no record of the starting time or later: error, or latest to start at its end.",
        _strategy,
    ),
    Option("failOnDataLoss", "read", "true", "Fail if records between the offsets asked for are gone; false reads what is left.", _boolean),
    Option("minPartitions", "read", "", "Split the ranges so that there are at least so many tasks (approximately).", _positive),
    Option("maxRecordsPerPartition", "read", "", "Split ranges longer than this many offsets into several tasks.", _positive),
    Option("includeHeaders", "read", "false", "Add the column headers.", _boolean),
    Option("kafkaConsumer.pollTimeoutMs", "read", "120000", "How long a task waits for records that must exist.", _positive),
    Option("fetchOffset.numRetries", "read", "3", "How often planning asks again for offsets when it fails.", _positive),
    Option("fetchOffset.retryIntervalMs", "read", "10", "Wait between such attempts.", _positive),
    Option("topic", "write", "", "Topic of every row; goes over a column topic.", _text),
)
BY_LOWER_NAME = {option.name.lower(): option for option in OPTIONS}

_STREAMING = "for streaming queries, which this release does not have"
REFUSED: Mapping[str, str] = {
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.key.deserializer": "keys are binary; cast or decode with DataFrame operations",
    "kafka.value.deserializer": "values are binary; cast or decode with DataFrame operations",
    "kafka.key.serializer": "keys are string or binary columns; encode with DataFrame operations",
    "kafka.value.serializer": "values are string or binary columns; encode with DataFrame operations",
    "kafka.enable.auto.commit": "the source commits no offsets",
    "kafka.interceptor.classes": "the source reads keys and values as they are",
    "kafka.transactional.id": "exactly-once writes are not part of this release",
    "kafka.group.id": "a batch read takes partitions directly and belongs to no group",
    "groupIdPrefix": "a batch read takes partitions directly and belongs to no group",
    "maxOffsetsPerTrigger": _STREAMING,
    "minOffsetsPerTrigger": _STREAMING,
    "maxTriggerDelay": _STREAMING,
}
"""Options of Spark's connector that are refused, with the reason."""
_REFUSED_LOWER = {name.lower(): (name, reason) for name, reason in REFUSED.items()}
_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname"})
"""Options that Spark itself adds."""


@dataclass(frozen=True)
class ReadOptions:
    """What to read. Offsets by partition may name `EARLIEST` and `LATEST`; exactly one of the three topic choices is set."""

    client: dict[str, str]
    topics: list[str] | None = None
    pattern: str | None = None
    assignment: dict[str, list[int]] | None = None
    starting: int | OffsetsByPartition = EARLIEST
    ending: int | OffsetsByPartition = LATEST
    starting_timestamps: int | OffsetsByPartition | None = None
    ending_timestamps: int | OffsetsByPartition | None = None
    no_starting_record: str = "error"
    fail_on_data_loss: bool = True
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    include_headers: bool = False
    poll_timeout_ms: int = 120_000
    offset_attempts: int = 3
    offset_retry_ms: int = 10


@dataclass(frozen=True)
class WriteOptions:
    """Where to write. `topic` None: the column `topic` says."""

    client: dict[str, str] = field(default_factory=dict)
    topic: str | None = None


def include_headers(options: Mapping[str, str]) -> bool:
    """Whether the schema has a column headers; asked before the options are checked as a whole."""
    return options.get("includeheaders", "false").strip().lower() == "true"


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The settings of a read. Raises one ConfigError that names every wrong option."""
    values, client, wrong = _parse(options, "read")
    chosen = [name for name in ("assign", "subscribe", "subscribePattern") if name in values]
    if len(chosen) != 1 and not any(name in problem for problem in wrong for name in ("assign:", "subscribe:", "subscribePattern:")):
        wrong.append(f"exactly one of assign, subscribe and subscribePattern says what to read; given: {', '.join(chosen) or 'none'}")
    if values.get("startingOffsets") == LATEST:
        wrong.append("startingOffsets: a batch read from latest would read nothing; use earliest or offsets by partition")
    if values.get("endingOffsets") == EARLIEST:
        wrong.append("endingOffsets: a batch read up to earliest would read nothing; use latest or offsets by partition")
    for name, marker, word in (("startingOffsets", LATEST, "latest (-1)"), ("endingOffsets", EARLIEST, "earliest (-2)")):
        if isinstance(values.get(name), dict) and marker in values[name].values():
            wrong.append(f"{name}: {word} is not possible for a partition here")
    _raise("read", wrong)
    return ReadOptions(
        client=client,
        topics=values.get("subscribe"),
        pattern=values.get("subscribePattern"),
        assignment=values.get("assign"),
        starting=values.get("startingOffsets", EARLIEST),
        ending=values.get("endingOffsets", LATEST),
        starting_timestamps=values.get("startingTimestamp", values.get("startingOffsetsByTimestamp")),
        ending_timestamps=values.get("endingTimestamp", values.get("endingOffsetsByTimestamp")),
        no_starting_record=values.get("startingOffsetsByTimestampStrategy", "error"),
        fail_on_data_loss=values.get("failOnDataLoss", True),
        min_partitions=values.get("minPartitions"),
        max_records_per_partition=values.get("maxRecordsPerPartition"),
        include_headers=values.get("includeHeaders", False),
        poll_timeout_ms=values.get("kafkaConsumer.pollTimeoutMs", 120_000),
        offset_attempts=values.get("fetchOffset.numRetries", 3),
        offset_retry_ms=values.get("fetchOffset.retryIntervalMs", 10),
    )


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """The settings of a write. Raises one ConfigError that names every wrong option."""
    values, client, wrong = _parse(options, "write")
    _raise("write", wrong)
    return WriteOptions(client=client, topic=values.get("topic"))


def _parse(options: Mapping[str, str], use: str) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Parsed options by their proper name, settings of the client, and what is wrong."""
    values: dict[str, Any] = {}
    client: dict[str, str] = {}
    wrong: list[str] = []
    for given, text in options.items():
        name = given.lower()
        if name in _REFUSED_LOWER:
            proper, reason = _REFUSED_LOWER[name]
            wrong.append(f"{proper}: not supported ({reason})")
        elif name.startswith("kafka.") and name not in BY_LOWER_NAME:
            client[name.removeprefix("kafka.")] = text
        elif name in BY_LOWER_NAME:
            option = BY_LOWER_NAME[name]
            if use != option.used_by:
                wrong.append(f"{option.name}: an option for {option.used_by}, not for {use}")
                continue
            try:
                values[option.name] = option.parse(text)
            except (ValueError, json.JSONDecodeError) as error:
                wrong.append(f"{option.name}: {error}, got {text!r}")
        elif name not in _SPARKS_OWN:
            near = difflib.get_close_matches(name, BY_LOWER_NAME, n=1)
            wrong.append(f"{given}: unknown option" + (f"; did you mean {BY_LOWER_NAME[near[0]].name}?" if near else ""))
    if "bootstrap.servers" not in client:
        wrong.append("kafka.bootstrap.servers: required, host:port pairs of brokers separated by commas")
    return values, client, wrong


def _raise(use: str, wrong: list[str]) -> None:
    if wrong:
        raise ConfigError(f'options of {use}.format("fairlead"): ' + "; ".join(wrong))
