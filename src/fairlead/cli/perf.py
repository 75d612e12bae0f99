"""`fairlead perf produce | consume`: the options and output lines of kafka-producer-perf-test and kafka-consumer-perf-test."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Annotated

import pyarrow.compute as pc
import typer

from fairlead.base.errors import ConfigError, TimedOut
from fairlead.base.ids import TopicPartition
from fairlead.base.units import MIB
from fairlead.cli.latencies import Latencies, Throttle
from fairlead.cli.terminal import DEFAULT_BOOTSTRAP_SERVERS, BootstrapServers, ClientProperties, client_settings, settings
from fairlead.client import Consumer, Producer

app = typer.Typer(no_args_is_help=True, help="Load, with the options and output of Kafka's own performance tools.")

PAYLOAD_SEED = 0
POLL_S = 0.1
CONSUMER_COLUMNS = (
    "data.consumed.in.MB",
    "MB.sec",
    "data.consumed.in.nMsg",
    "nMsg.sec",
    "rebalance.time.ms",
    "fetch.time.ms",
    "fetch.MB.sec",
    "fetch.nMsg.sec",
)


def _property_file(path: Path | None, option: str) -> dict[str, str]:
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{option} {path}: cannot be read ({error.strerror})") from None
    return settings([line for line in map(str.strip, lines) if line and not line.startswith(("#", "!"))], option)


def _payloads(record_size: int | None, payload_file: Path | None, delimiter: str, monotonic: bool) -> list[bytes] | None:
    """The values to send, taken in turn; None: the record's number."""
    given = [record_size is not None, payload_file is not None, monotonic]
    if sum(given) != 1:
        raise ConfigError("exactly one of --record-size, --payload-file and --payload-monotonic must be given")
    if monotonic:
        return None
    if payload_file is not None:
        try:
            parts = payload_file.read_bytes().split(delimiter.replace("\\n", "\n").encode())
        except OSError as error:
            raise ConfigError(f"--payload-file {payload_file}: cannot be read ({error.strerror})") from None
        payloads = [part for part in parts if part]
        if not payloads:
            raise ConfigError(f"--payload-file {payload_file}: there is no payload in it")
        return payloads
    import random

    dice = random.Random(PAYLOAD_SEED)
    return [bytes(65 + dice.randrange(26) for _ in range(record_size or 0))]


@app.command()
def produce(
    topic: Annotated[str, typer.Option(help="Topic to send to.")],
    num_records: Annotated[int, typer.Option(min=1, help="How many records.")],
    throughput: Annotated[float, typer.Option(help="Records per second at most; -1: no limit.")],
    record_size: Annotated[int | None, typer.Option(min=1, help="Bytes of each value.")] = None,
    payload_file: Annotated[Path | None, typer.Option(help="A file of values.")] = None,
    payload_delimiter: Annotated[str, typer.Option(help="What stands between the values of the file.")] = "\\n",
    payload_monotonic: Annotated[bool, typer.Option("--payload-monotonic", help="The values are 0, 1, 2 …")] = False,
    producer_props: Annotated[
        list[str] | None, typer.Option("--producer-props", metavar="KEY=VALUE", help="A producer config; may be repeated.")
    ] = None,
    producer_config: Annotated[Path | None, typer.Option("--producer.config", help="A file of producer configs.")] = None,
    print_metrics: Annotated[bool, typer.Option("--print-metrics", help="Print the producer's metrics at the end.")] = False,
    warmup_records: Annotated[int, typer.Option(min=0, help="Leave the first so many out of a second summary (KIP-1052).")] = 0,
) -> None:
    """Send records and print latency and throughput."""
    if throughput == 0 or throughput < -1:
        raise ConfigError(f"--throughput {throughput:g}: records per second, more than 0, or -1 for no limit")
    if warmup_records >= num_records:
        raise ConfigError(f"--warmup-records {warmup_records}: must be fewer than --num-records {num_records}")
    payloads = _payloads(record_size, payload_file, payload_delimiter, payload_monotonic)
    config = {
        "client.id": "perf-producer-client",
        **_property_file(producer_config, "--producer.config"),
        **settings(producer_props, "--producer-props"),
    }
    config.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP_SERVERS)
    latencies, throttle = Latencies(num_records, typer.echo), Throttle(throughput)
    steady = Latencies(num_records - warmup_records) if warmup_records else None
    with Producer(config) as producer:
        for number in range(num_records):
            if steady is not None and number == warmup_records:
                typer.echo("Beginning steady state.")
                steady.restart()
            value = payloads[number % len(payloads)] if payloads else str(number).encode()
            counted = (latencies, steady) if steady is not None and number >= warmup_records else (latencies,)
            sent_s = time.perf_counter()

            def delivered(
                _: object, error: Exception | None, sent_s: float = sent_s, size: int = len(value), counted: tuple[Latencies, ...] = counted
            ) -> None:
                for one in counted:
                    one.record(sent_s, size, error)

            producer.send(topic, value, on_delivery=delivered)
            throttle.pause(number + 1)
        producer.flush()
        metrics = producer.metrics()
    typer.echo(latencies.summary())
    if steady is not None:
        typer.echo(steady.summary())
    if print_metrics:
        typer.echo("\nMetric Name   Value")
        for name, metric in sorted(metrics.items()):
            typer.echo(f"{name} : {metric:.3f}")
    if latencies.failed:
        raise latencies.first_error or TimedOut(f"{latencies.failed} records were not delivered")


@app.command()
def consume(
    topic: Annotated[str, typer.Option(help="Topic to read.")],
    messages: Annotated[int, typer.Option("--messages", "--num-records", min=1, help="How many records.")],
    bootstrap_servers: BootstrapServers = DEFAULT_BOOTSTRAP_SERVERS,
    fetch_size: Annotated[int, typer.Option(min=1, help="Bytes to fetch of a partition in one request.")] = MIB,
    from_latest: Annotated[bool, typer.Option("--from-latest", help="Start at the end instead of the first record.")] = False,
    timeout: Annotated[int, typer.Option(min=1, help="Give up when nothing came for so many milliseconds.")] = 10_000,
    reporting_interval: Annotated[int, typer.Option(min=1, help="Milliseconds between detailed lines.")] = 5_000,
    show_detailed_stats: Annotated[bool, typer.Option("--show-detailed-stats", help="A line per interval, not only in the end.")] = False,
    hide_header: Annotated[bool, typer.Option("--hide-header", help="Leave the header line out.")] = False,
    consumer_config: Annotated[Path | None, typer.Option("--consumer.config", help="A file of consumer configs.")] = None,
    properties: ClientProperties = None,
) -> None:
    """Read records, as tables, and print throughput."""
    config = {**_property_file(consumer_config, "--consumer.config"), **client_settings(bootstrap_servers, properties)}
    config.setdefault("max.partition.fetch.bytes", str(fetch_size))
    if not hide_header:
        typer.echo(", ".join(("time, threadId" if show_detailed_stats else "start.time, end.time", *CONSUMER_COLUMNS)))
    with Consumer(config) as consumer:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_end(partitions) if from_latest else consumer.seek_to_beginning(partitions)
        started, started_s = datetime.now(), time.perf_counter()
        last_s, last_size, last_count, heard_s = started_s, 0, 0, started_s
        size, count = 0, 0
        while count < messages:
            table = consumer.poll_table(POLL_S)
            now_s = time.perf_counter()
            if table.num_rows:
                heard_s = now_s
                count += table.num_rows
                size += sum(pc.sum(pc.binary_length(table[name])).as_py() or 0 for name in ("key", "value"))
            elif now_s - heard_s > timeout / 1000:
                typer.echo(f"WARNING: nothing came for {timeout} ms; {count} of {messages} records were read", err=True)
                break
            if show_detailed_stats and now_s - last_s >= reporting_interval / 1000:
                typer.echo(f"{_clock(datetime.now())}, 0, {_figures(size, size - last_size, count, count - last_count, now_s - last_s)}")
                last_s, last_size, last_count = now_s, size, count
    if not show_detailed_stats:
        typer.echo(f"{_clock(started)}, {_clock(datetime.now())}, {_figures(size, size, count, count, heard_s - started_s)}")


def _clock(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S:") + f"{when.microsecond // 1000:03}"


def _figures(size: int, size_since: int, count: int, count_since: int, seconds: float) -> str:
    """Totals, then rates; there is no group, so nothing is spent on rebalancing and the rates of fetching are the same."""
    seconds = max(seconds, 1e-9)
    rates = f"{size_since / MIB / seconds:.4f}", f"{count_since / seconds:.4f}"
    return ", ".join((f"{size / MIB:.4f}", rates[0], str(count), rates[1], "0", str(round(seconds * 1000)), *rates))
