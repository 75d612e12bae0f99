"""`fairlead perf produce`."""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path
from typing import Annotated

import typer

from fairlead_kafka.base.errors import ConfigError, TimedOut
from fairlead_kafka.cli.connecting import open_producer
from fairlead_kafka.cli.latencies import WINDOW_S, Latencies, Throttle
from fairlead_kafka.cli.perf_options import (
    PAYLOAD_SEED,
    BootstrapServer,
    metric_lines,
    payloads,
    property_file,
    say,
    servers,
)
from fairlead_kafka.cli.terminal import settings
from fairlead_kafka.client import Producer

CLIENT_ID = "perf-producer-client"

TRANSACTION_MS = 3000
"""How long a transaction lasts by default, as in Kafka's tool."""


class Transactions:
    """One transaction after the other, each of `transaction_duration_ms`."""

    def __init__(self, producer: Producer, duration_ms: int | None) -> None:
        self._producer = producer
        self._duration_s = (TRANSACTION_MS if duration_ms is None else duration_ms) / 1000
        self._begun_s: float | None = None
        producer.init_transactions()

    def before_record(self, now_s: float) -> None:
        """Commit the transaction if it has lasted long enough, and begin one if none is open.
        Called before each record."""
        if self._begun_s is not None:
            if now_s - self._begun_s < self._duration_s:
                return
            self._producer.commit_transaction()
        self._producer.begin_transaction()
        self._begun_s = now_s


Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--command-property",
        "--producer-props",
        metavar="KEY=VALUE …",
        help="Producer configs, one or several.",
    ),
]


def produce(
    topic: Annotated[str, typer.Option(help="Topic to send to.")],
    num_records: Annotated[int, typer.Option(min=1, help="How many records.")],
    throughput: Annotated[float, typer.Option(help="Records per second at most; -1: no limit.")],
    bootstrap_server: BootstrapServer = None,
    record_size: Annotated[int | None, typer.Option(min=1, help="Bytes of each value.")] = None,
    payload_file: Annotated[
        Path | None, typer.Option(help="A file of values, of which each record takes one by chance.")
    ] = None,
    payload_delimiter: Annotated[
        str, typer.Option(help="What stands between the values of the file.")
    ] = "\\n",
    payload_monotonic: Annotated[
        bool, typer.Option("--payload-monotonic", help="The values are 0, 1, 2 …")
    ] = False,
    properties: Properties = None,
    config_file: Annotated[
        Path | None, typer.Option("--command-config", "--producer.config", help="A file of producer configs.")
    ] = None,
    print_metrics: Annotated[
        bool, typer.Option("--print-metrics", help="Print the producer's metrics at the end.")
    ] = False,
    warmup_records: Annotated[
        int, typer.Option(min=0, help="Leave the first so many out of a second summary (KIP-1052).")
    ] = 0,
    reporting_interval: Annotated[
        int, typer.Option(min=1, help="Milliseconds between two lines of progress.")
    ] = int(WINDOW_S * 1000),
    transactional_id: Annotated[str | None, typer.Option(help="Send in transactions, under this id.")] = None,
    transaction_duration_ms: Annotated[
        int | None,
        typer.Option(
            min=1, help="Commit after so many milliseconds and begin another; 3000 with an id alone."
        ),
    ] = None,
) -> None:
    """Send records and print latency and throughput."""
    if throughput == 0 or throughput < -1:
        raise ConfigError(f"--throughput {throughput:g}: records per second, more than 0, or -1 for no limit")
    if warmup_records >= num_records:
        raise ConfigError(
            f"--warmup-records {warmup_records}: must be fewer than --num-records {num_records}"
        )
    rng = random.Random(PAYLOAD_SEED)
    values = payloads(record_size, payload_file, payload_delimiter, payload_monotonic, num_records, rng)
    config: dict[str, str] = {
        "client.id": CLIENT_ID,
        **property_file(config_file, "--command-config"),
        **settings(properties, "--command-property"),
    }
    config |= servers(bootstrap_server, config)
    if transactional_id is not None or transaction_duration_ms is not None:
        config["transactional.id"] = (
            transactional_id or config.get("transactional.id") or f"performance-producer-{uuid.uuid4()}"
        )
    interval_s = reporting_interval / 1000
    everything = Latencies(num_records, say, interval_s=interval_s)
    steady = (
        Latencies(num_records - warmup_records, say, interval_s=interval_s, kind=" steady state")
        if warmup_records
        else None
    )
    if steady is not None:
        say(
            f"Warmup first {warmup_records} records. Steady state results will print after the complete test "
            "summary."
        )
    with open_producer(config) as producer:
        transactions = (
            Transactions(producer, transaction_duration_ms) if config.get("transactional.id") else None
        )
        try:
            _send(
                producer,
                topic,
                values,
                rng,
                num_records,
                warmup_records,
                throughput,
                everything,
                steady,
                transactions,
            )
            producer.flush()
        finally:
            # After Ctrl-C records are still delivered, and the summary is the last to be said.
            everything.be_quiet()
            if steady is not None:
                steady.be_quiet()
            say(everything.summary())
            if steady is not None and steady.begun:
                say(steady.summary())
        metrics = producer.metrics()
    if print_metrics:
        for line in metric_lines(config["client.id"], metrics):
            say(line)
    if everything.failed:
        typer.echo(f"{everything.failed} records were not delivered; the first because of:", err=True)
        raise everything.first_error or TimedOut(f"{everything.failed} records were not delivered")


def _send(
    producer: Producer,
    topic: str,
    values: list[bytes] | None,
    rng: random.Random,
    records: int,
    warmup_records: int,
    throughput: float,
    everything: Latencies,
    steady: Latencies | None,
    transactions: Transactions | None,
) -> None:
    counted: tuple[Latencies, ...] = (everything,)
    everything.begin()
    throttle = Throttle(throughput)
    for number in range(records):
        if steady is not None and number == warmup_records:
            everything.be_quiet()
            steady.begin()
            counted = (everything, steady)
        value = values[int(rng.random() * len(values))] if values else b"%d" % number
        sent_s = time.perf_counter()
        if transactions is not None:
            transactions.before_record(sent_s)

        def delivered(
            _: object,
            error: Exception | None,
            sent_s: float = sent_s,
            size: int = len(value),
            counted: tuple[Latencies, ...] = counted,
        ) -> None:
            for one in counted:
                one.record(sent_s, size, error)

        producer.send(topic, value, on_delivery=delivered)
        if everything.reader_left or (steady is not None and steady.reader_left):
            raise BrokenPipeError
        throttle.pause(number + 1)
    if transactions is not None:
        producer.commit_transaction()
