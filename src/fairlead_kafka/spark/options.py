"""Spark's text options as typed settings, by `option_table`; one error names all invalid options.

Spark lower-cases option names before Python sees them. Settings of clients and of a Schema Registry
are texts as the user gave them, among them passwords, so no `repr` of options shows them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.exactly_once.settings import Guarantee, parse_guarantee
from fairlead_kafka.spark.formats import (
    DEFAULT_LAYOUT,
    Layout,
    WriteFormats,
    parse_layout,
    parse_write_formats,
)
from fairlead_kafka.spark.offsets import EARLIEST, LATEST, OffsetsByPartition
from fairlead_kafka.spark.option_checks import check_options, check_read, raise_wrong
from fairlead_kafka.spark.option_table import TOPIC_CHOICES
from fairlead_kafka.spark.parsed_options import Values


@dataclass(frozen=True)
class ReadOptions:
    """Settings of a read. Offsets by partition may name `EARLIEST` and `LATEST`.

    Of `topics`, `pattern` and `assignment` one is set; none in a view of the whole cluster.
    """

    client: dict[str, str] = field(repr=False)
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
    max_bytes_per_partition: int | None = None
    balance_by: str = "offsets"
    layout: Layout = DEFAULT_LAYOUT
    poll_timeout_ms: int = 120_000
    offset_attempts: int = 3
    offset_retry_ms: int = 10
    max_offsets: int | None = None
    max_bytes: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 15 * 60_000
    commit_offsets: bool = False
    view: str = "records"
    measure_ratio: bool = True
    groups: list[str] | None = None

    @property
    def starts_at_latest(self) -> bool:
        """Whether the start depends on when it is looked up."""
        if self.starting_timestamps is not None:
            return self.no_starting_record == "latest"
        return self.starting == LATEST or (
            isinstance(self.starting, dict) and LATEST in self.starting.values()
        )


@dataclass(frozen=True)
class WriteOptions:
    """Settings of a write. `topic` None: the column `topic` names each row's topic."""

    client: dict[str, str] = field(default_factory=dict, repr=False)
    topic: str | None = None
    include_headers: bool | None = None
    """None: the column headers is written if there is one; else whether there must be one."""
    exactly_once: Guarantee | None = None
    """None: at least once."""
    formats: WriteFormats = field(default_factory=WriteFormats)


def view_of(options: Mapping[str, str]) -> str:
    """The name of the view that the options ask for, which decides the schema; `records` if they
    name none. Called before the options are checked as a whole."""
    return options.get("view", "records").strip().lower()


def parse_read_options(options: Mapping[str, str], streaming: bool = False) -> ReadOptions:
    """The settings of a read. Raises one ConfigError that names every wrong option."""
    values, client, wrong = check_read(options, streaming)
    group = values.get("kafka.group.id") or _group(values)
    if group is not None:
        # Kafka's default would have a consumer with a group commit by itself.
        client |= {"group.id": group, "enable.auto.commit": "false"}
    layout, unreadable = parse_layout(options)
    wrong += unreadable
    raise_wrong("readStream" if streaming else "read", wrong)
    return ReadOptions(
        client=client,
        topics=values.get("subscribe"),
        pattern=values.get("subscribePattern"),
        assignment=values.get("assign"),
        starting=values.get("startingOffsets", LATEST if streaming else EARLIEST),
        ending=values.get("endingOffsets", LATEST),
        starting_timestamps=values.get("startingTimestamp", values.get("startingOffsetsByTimestamp")),
        ending_timestamps=values.get("endingTimestamp", values.get("endingOffsetsByTimestamp")),
        no_starting_record=values.get("startingOffsetsByTimestampStrategy", "error"),
        fail_on_data_loss=values.get("failOnDataLoss", True),
        min_partitions=values.get("minPartitions"),
        max_records_per_partition=values.get("maxRecordsPerPartition"),
        max_bytes_per_partition=values.get("maxBytesPerPartition"),
        balance_by=values.get("balanceBy", "offsets"),
        layout=layout,
        poll_timeout_ms=values.get("kafkaConsumer.pollTimeoutMs", 120_000),
        offset_attempts=values.get("fetchOffset.numRetries", 3),
        offset_retry_ms=values.get("fetchOffset.retryIntervalMs", 10),
        max_offsets=values.get("maxOffsetsPerTrigger"),
        max_bytes=values.get("maxBytesPerTrigger"),
        min_offsets=values.get("minOffsetsPerTrigger"),
        max_delay_ms=values.get("maxTriggerDelay", 15 * 60_000),
        commit_offsets=values.get("commitOffsets", False),
        view=values.get("view", "records"),
        measure_ratio=values.get("measureRatio", True),
        groups=values.get("groups"),
    )


def _group(values: Values) -> str | None:
    """Group id: the prefix and a number that is the same whenever the same topics are read.

    So a restarted query finds its group. None without `groupIdPrefix`.
    """
    prefix = values.get("groupIdPrefix")
    if prefix is None:
        return None
    read = json.dumps([values.get(name) for name in TOPIC_CHOICES], sort_keys=True)
    return f"{prefix}-{zlib.crc32(read.encode()):08x}"


def parse_write_options(options: Mapping[str, str], streaming: bool = False) -> WriteOptions:
    """The settings of a write. Raises one ConfigError that names every wrong option."""
    values, client, wrong = check_options(options, "write")
    guarantee, unkept = parse_guarantee(values, client, wrong, streaming=streaming)
    formats, unwritable = parse_write_formats(options)
    raise_wrong("writeStream" if streaming else "write", wrong + unkept + unwritable)
    _check_producer(client, transactional=guarantee is not None)
    return WriteOptions(
        client=client,
        topic=values.get("topic"),
        include_headers=values.get("includeHeaders"),
        exactly_once=guarantee,
        formats=formats,
    )


def _check_producer(client: Mapping[str, str], *, transactional: bool) -> None:
    """Raise ConfigError for settings that contradict each other, as the tasks' producers would
    do."""
    from fairlead_kafka.producer.settings import producer_settings  # reads need none of it

    # A partitioner of the user's may be where the tasks run, and nowhere else.
    settings = {name: text for name, text in client.items() if name != "partitioner.class"}
    if transactional:
        settings["transactional.id"] = "a task's own"
    try:
        producer_settings(CLIENT_CONFIGS.parse("producer", settings))
    except ConfigError as error:
        raise ConfigError(f"kafka.* options of the producer: {error}") from error
