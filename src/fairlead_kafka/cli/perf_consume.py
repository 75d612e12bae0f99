"""`fairlead perf consume`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import MIB
from fairlead_kafka.cli.connecting import TOPIC_S, open_consumer
from fairlead_kafka.cli.perf_options import (
    BootstrapServer,
    date_formatter,
    metric_lines,
    property_file,
    say,
    servers,
)
from fairlead_kafka.cli.terminal import settings
from fairlead_kafka.client import Consumer, RebalanceListener

CLIENT_ID = "perf-consumer-client"
POLL_S = 0.1
COLUMNS = (
    "data.consumed.in.MB",
    "MB.sec",
    "data.consumed.in.nMsg",
    "nMsg.sec",
    "rebalance.time.ms",
    "fetch.time.ms",
    "fetch.MB.sec",
    "fetch.nMsg.sec",
)


@dataclass
class Count:
    """Totals read by `at_s`, seconds of the performance counter.

    `sharing_s`: seconds in which a group shared its partitions (rebalanced).
    """

    at_s: float
    size_bytes: int = 0
    records: int = 0
    sharing_s: float = 0.0

    def add(self, table: pa.Table) -> None:
        """Count the records of a table, and bytes of their keys and values."""
        self.records += table.num_rows
        self.size_bytes += sum(
            pc.sum(pc.binary_length(table[name])).as_py() or 0 for name in ("key", "value")
        )

    def figures(self, since: Count) -> str:
        """The totals, with rates since the Count `since`; then milliseconds of rebalancing since,
        and of fetching, with the rates in that time. In the columns of kafka-consumer-perf-test."""
        seconds = max(self.at_s - since.at_s, 1e-9)
        sharing_s = self.sharing_s - since.sharing_s
        fetching_s = max(seconds - sharing_s, 1e-9)
        size_mib, records = (self.size_bytes - since.size_bytes) / MIB, self.records - since.records
        totals = (
            f"{self.size_bytes / MIB:.4f}",
            f"{size_mib / seconds:.4f}",
            str(self.records),
            f"{records / seconds:.4f}",
        )
        fetching = (
            str(round(fetching_s * 1000)),
            f"{size_mib / fetching_s:.4f}",
            f"{records / fetching_s:.4f}",
        )
        return ", ".join((*totals, str(round(sharing_s * 1000)), *fetching))


class Sharing(RebalanceListener):
    """Adds up the time in which a group shares its partitions (`rebalance.time.ms`)."""

    def __init__(self) -> None:
        self._since_s: float | None = time.perf_counter()
        self._ended_s = 0.0

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if self._since_s is not None:
            self._ended_s += time.perf_counter() - self._since_s
            self._since_s = None

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._since_s = time.perf_counter()

    def total_s(self, now_s: float) -> float:
        """Seconds of sharing until `now_s`."""
        return self._ended_s + (0.0 if self._since_s is None else now_s - self._since_s)


def consume(
    num_records: Annotated[int, typer.Option("--num-records", "--messages", min=1, help="How many records.")],
    topic: Annotated[str | None, typer.Option(help="Topic to read.")] = None,
    include: Annotated[
        str | None, typer.Option(help="A regular expression: read all topics whose whole name it fits.")
    ] = None,
    bootstrap_server: BootstrapServer = None,
    fetch_size: Annotated[
        int, typer.Option(min=1, help="Bytes to fetch of a partition in one request.")
    ] = MIB,
    from_latest: Annotated[
        bool, typer.Option("--from-latest", help="Start at the end instead of the first record.")
    ] = False,
    timeout: Annotated[
        int, typer.Option(min=1, help="Give up when nothing came for so many milliseconds.")
    ] = 10_000,
    reporting_interval: Annotated[
        int, typer.Option(min=1, help="Milliseconds between detailed lines.")
    ] = 5_000,
    show_detailed_stats: Annotated[
        bool, typer.Option("--show-detailed-stats", help="A line per interval, not only in the end.")
    ] = False,
    hide_header: Annotated[bool, typer.Option("--hide-header", help="Leave the header line out.")] = False,
    date_format: Annotated[
        str, typer.Option(help="How times are shown, as Java's SimpleDateFormat has it.")
    ] = "yyyy-MM-dd HH:mm:ss:SSS",
    print_metrics: Annotated[
        bool, typer.Option("--print-metrics", help="Print the consumer's metrics at the end.")
    ] = False,
    config_file: Annotated[
        Path | None, typer.Option("--command-config", "--consumer.config", help="A file of consumer configs.")
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--command-property",
            "--property",
            "-X",
            metavar="KEY=VALUE …",
            help="Consumer configs, one or several.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Read as a member of this group, which shares the partitions.")
    ] = None,
) -> None:
    """Read records, as tables, and print throughput."""
    if (topic is None) == (include is None):
        raise ConfigError("exactly one of --topic and --include must be given")
    clock = date_formatter(date_format)
    config: dict[str, str] = {
        "client.id": CLIENT_ID,
        "max.partition.fetch.bytes": str(fetch_size),
        **property_file(config_file, "--command-config"),
        **settings(properties, "--command-property"),
    }
    if group is not None:
        config |= {"group.id": group, "auto.offset.reset": "latest" if from_latest else "earliest"}
    config |= servers(bootstrap_server, config)
    with open_consumer(config) as consumer:
        partitions = _partitions(consumer, topic, include)
        if not hide_header:
            say(", ".join(("time, threadId" if show_detailed_stats else "start.time, end.time", *COLUMNS)))
        sharing = None if group is None else Sharing()
        if sharing is None:
            consumer.assign(partitions)
            consumer.seek_to_end(partitions) if from_latest else consumer.seek_to_beginning(partitions)
        else:
            consumer.subscribe(re.compile(include) if include is not None else [str(topic)], sharing)
        started, start = datetime.now(), Count(time.perf_counter())
        interval_s = reporting_interval / 1000 if show_detailed_stats else None
        count = _read(consumer, num_records, timeout / 1000, start, interval_s, clock, sharing)
        if not show_detailed_stats:
            say(f"{clock(started)}, {clock(datetime.now())}, {count.figures(start)}")
        if print_metrics:
            for line in metric_lines(config["client.id"], consumer.metrics()):
                say(line)


def _partitions(consumer: Consumer, topic: str | None, include: str | None) -> list[TopicPartition]:
    if topic is not None:
        return [
            TopicPartition(topic, each.partition)
            for each in consumer.partitions_for(topic, timeout_s=TOPIC_S)
        ]
    try:
        wanted = re.compile(include or "")
    except re.error as error:
        raise ConfigError(f"--include {include!r}: not a regular expression ({error})") from None
    topics = {
        name: entries for name, entries in sorted(consumer.list_topics().items()) if wanted.fullmatch(name)
    }
    if not topics:
        raise ConfigError(f"--include {include!r}: the cluster has no topic of such a name")
    return [TopicPartition(name, entry.partition) for name, entries in topics.items() for entry in entries]


def _read(
    consumer: Consumer,
    records: int,
    timeout_s: float,
    start: Count,
    interval_s: float | None,
    clock: Callable[[datetime], str],
    sharing: Sharing | None,
) -> Count:
    """Read until there are `records`, or nothing came for `timeout_s`, and print a line every
    `interval_s` seconds. Times are in seconds."""
    count, last, heard_s = Count(start.at_s), start, start.at_s
    while count.records < records:
        table = consumer.poll_table(POLL_S)
        count.at_s = time.perf_counter()
        count.sharing_s = 0.0 if sharing is None else sharing.total_s(count.at_s)
        if table.num_rows:
            heard_s = count.at_s
            count.add(table)
        elif count.at_s - heard_s > timeout_s:
            typer.echo(
                f"nothing came for {timeout_s:g} s; {count.records} of {records} records were read (see "
                "--timeout)",
                err=True,
            )
            break
        if interval_s is not None and count.at_s - last.at_s >= interval_s:
            say(f"{clock(datetime.now())}, 0, {count.figures(last)}")
            last = Count(count.at_s, count.size_bytes, count.records, count.sharing_s)
    return count
