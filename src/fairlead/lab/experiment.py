"""Experiments by name, and the stable shape of their reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import fairlead

Row = dict[str, Any]
Status = Callable[[str], None]
"""Told what is being measured now, for showing progress."""

REPORT_VERSION = 1
_PACKAGES = ("pyarrow", "numba", "numpy", "confluent-kafka", "kafka-python", "aiokafka", "pyspark")


@dataclass(frozen=True)
class Experiment:
    """An experiment: what it measures, and where its function `run(status, **parameters) -> rows` is."""

    name: str
    summary: str
    module: str

    def run(self, status: Status, **parameters: Any) -> list[Row]:
        """The rows, flat, units in the keys."""
        return import_module(self.module).run(status, **parameters)  # type: ignore[no-any-return]


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in (
        Experiment("kernels", "Records encoded and decoded per second by the kernels, no network.", "fairlead.lab.kernels"),
        Experiment(
            "throughput", "Records produced per second, beside the peers, on Apache Kafka and on our cluster.", "fairlead.lab.throughput"
        ),
    )
}


def environment() -> Row:
    """What a figure depends on: machine, interpreter, libraries."""
    libraries = {}
    for name in _PACKAGES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = "not installed"
    return {
        "fairlead": fairlead.__version__,
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "libraries": libraries,
    }


def report(name: str, parameters: Mapping[str, Any], rows: Sequence[Row]) -> Row:
    """The report of one run, as `--json` writes it."""
    return {
        "experiment": name,
        "version": REPORT_VERSION,
        "environment": environment(),
        "parameters": dict(parameters),
        "rows": list(rows),
    }
