"""Experiments by name, and the stable shape of their reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import fairlead_kafka
from fairlead_kafka.base.json_types import Json, JsonObject
from fairlead_kafka.lab.plotting import Unplottable

Row: TypeAlias = JsonObject
Status = Callable[[str], None]
"""Callback that is called with the present measurement, to show progress."""

REPORT_VERSION = 1
AS_KAFKA: Mapping[str, Json] = {"batch.max.size": 0}
"""Producer configs under which each batch is sent by itself, as Kafka's are: with them the KIPs'
policies are measured.
"""
_PACKAGES = ("pyarrow", "numpy", "confluent-kafka", "kafka-python", "aiokafka", "pyspark")


@dataclass(frozen=True)
class Experiment:
    """An experiment: a name, a summary, and the module of its functions `run(status, **parameters)
    -> rows` and `plot(rows, path)`.
    """

    name: str
    summary: str
    module: str

    def run(self, status: Status, **parameters: object) -> list[Row]:
        """Run the experiment; returns its rows, flat, with units in the keys."""
        return import_module(self.module).run(status, **parameters)  # type: ignore[no-any-return]

    def plot(self, rows: Sequence[Row], path: Path) -> None:
        """Draw the measured rows into `path`.

        Raises `plotting.Unplottable` if there is nothing to draw, or matplotlib is missing.
        """
        draw = getattr(import_module(self.module), "plot", None)
        measured = [row for row in rows if "skipped" not in row]
        if draw is None or not measured:
            raise Unplottable("nothing was measured that could be drawn")
        draw(measured, path)


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        Experiment(
            "first-second",
            "A program that starts, sends or reads, and ends: seconds, CPU and memory, beside the peers.",
            "fairlead_kafka.lab.first_second",
        ),
        Experiment(
            "kernels",
            "Records encoded and decoded per second by the kernels, no network.",
            "fairlead_kafka.lab.kernels",
        ),
        Experiment(
            "formats",
            "Values serialized and deserialized per second, single ones and by column, beside the peers.",
            "fairlead_kafka.lab.formats",
        ),
        Experiment(
            "throughput",
            "Records produced per second, beside the peers, on Apache Kafka and on our cluster.",
            "fairlead_kafka.lab.throughput",
        ),
        Experiment(
            "transactions",
            "Transactions with records for three brokers committed per second, beside the peers.",
            "fairlead_kafka.lab.transactions",
        ),
        Experiment(
            "consume",
            "Records read per second, cold and warm, and latency from send to poll, beside the peers.",
            "fairlead_kafka.lab.consume",
        ),
        Experiment(
            "batching",
            "What batch.size, linger.ms, compression and the limits do to the same records.",
            "fairlead_kafka.lab.batching",
        ),
        Experiment(
            "kip480",
            "Latency by partitions, rate and linger: round robin, sticky and late, as in KIP-480.",
            "fairlead_kafka.lab.kip480",
        ),
        Experiment(
            "kip794",
            "Latency and evenness while one broker of three is slow, as in KIP-794, beside the peers.",
            "fairlead_kafka.lab.kip794",
        ),
        Experiment(
            "scenarios",
            "Latency and evenness in virtual time with keys, stalls, bursts, changing brokers and too high "
            "rates.",
            "fairlead_kafka.lab.scenarios",
        ),
        Experiment(
            "kip578",
            "What 10 to 30,000 partitions cost: throughput, creation, deletion, restart, as in KIP-578.",
            "fairlead_kafka.lab.kip578",
        ),
        Experiment(
            "isolation",
            "One broker of three goes slow or dies: what the other two still get, beside the peers.",
            "fairlead_kafka.lab.isolation",
        ),
        Experiment(
            "rebalance",
            "A group under load whose members join, leave, die, and are rolled: what waits, what is read "
            "twice.",
            "fairlead_kafka.lab.rebalance",
        ),
        Experiment(
            "spark",
            "Rows per second and latency through Spark: read, write, copy, beside Spark's own Kafka "
            "connector.",
            "fairlead_kafka.lab.spark",
        ),
        Experiment(
            "soak",
            "Every kind of load on three brokers for a long time, a kill a minute: does anything rise, is "
            "anything lost?",
            "fairlead_kafka.lab.soak",
        ),
    )
}

TRIALS: Mapping[str, str] = {
    "bounded": "Gigabytes through Spark's read and write with a small heap and small Python workers: is "
    "anything lost?",
    "exactly-once": "`kill -9` on a Spark query at every step of an exactly-once write: is each row there "
    "once?",
    "replication": "What a partition, a producer and a consumer go through when replicas are lost, step by "
    "step.",
    "killstorm": "`kill -9` over and over on brokers under load from three clients: is anything lost, or "
    "there twice?",
    "transcript": "The same requests to Apache Kafka and to our cluster, the answers compared field by "
    "field.",
}
"""Trials by name: commands of the lab that tell right from wrong, not fast from slow, and have
nothing to draw.
"""


def not_installed(module: str | None) -> str | None:
    """The reason why a system that needs `module` is skipped; None if it can be measured."""
    if module is None or find_spec(module) is not None:
        return None
    return f"{module} is not installed; pip install 'fairlead-kafka[lab]'"


def environment() -> Row:
    """The environment that figures depend on: machine, interpreter, libraries."""
    libraries = {}
    for name in _PACKAGES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    return {
        "fairlead": fairlead_kafka.__version__,
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "libraries": libraries,
    }


def report(name: str, parameters: Mapping[str, object], rows: Sequence[Row]) -> dict[str, object]:
    """The report of one run, as `--json` writes it."""
    return {
        "experiment": name,
        "version": REPORT_VERSION,
        "environment": environment(),
        "parameters": dict(parameters),
        "rows": list(rows),
    }
