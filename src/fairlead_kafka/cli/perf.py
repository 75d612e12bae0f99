"""`fairlead perf produce | consume`: the options and output lines of kafka-producer-perf-test and
kafka-consumer-perf-test."""

from __future__ import annotations

import typer

from fairlead_kafka.cli.perf_consume import consume
from fairlead_kafka.cli.perf_options import SeveralValuesCommand
from fairlead_kafka.cli.perf_produce import produce

app = typer.Typer(no_args_is_help=True, help="Load, as Kafka's own performance tools have it.")
app.command("produce", cls=SeveralValuesCommand)(produce)
app.command("consume", cls=SeveralValuesCommand)(consume)
