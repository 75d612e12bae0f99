"""Runs paced loads in processes of their own, one system after another, for the two KIPs'
experiments.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.bounded import run_client
from fairlead_kafka.lab.held import Held, by_broker, held
from fairlead_kafka.lab.pacing import Load
from fairlead_kafka.lab.peers.paced import DRAIN_S, Task
from fairlead_kafka.lab.peers.paced_java import paced_java
from fairlead_kafka.lab.stolen import Stolen

MODULES: dict[str, str | None] = {
    "fairlead": None,
    "java": None,
    "confluent-kafka": "confluent_kafka",
    "kafka-python": "kafka",
    "aiokafka": "aiokafka",
}
"""System → the module that it needs here; None: none."""
START_S = 30.0
"""Seconds that a client's process has beside its load, to start and to end."""

BROKERS_WARM_UP_S = 90.0
"""Seconds of load that warm the brokers up.

On two cores the median of one load is 8 ms after 6 s, and 3 ms after 90 s; without it, the first
system would pay for all.
"""


def limit_s(records: int, rate: int) -> float:
    """Time limit of a load, s: three times its duration, and DRAIN_S for connecting."""
    return 3 * records / rate + DRAIN_S


def run_paced(task: Task) -> JsonObject:
    """Run one system's load. Returns its figures (`peers.paced`), or {"skipped": why}."""
    module = MODULES[task.system]
    if module and find_spec(module) is None:
        return {"skipped": f"{module} is not installed; pip install 'fairlead-kafka[lab]'"}
    try:
        if task.system == "java":
            return paced_java(task)
    except Unavailable as error:
        return {"skipped": str(error)}
    return run_client(
        [sys.executable, "-m", "fairlead_kafka.lab.peers.paced", task.to_json()],
        task.load.limit_s + DRAIN_S + START_S,
    )


def make_topics(bootstrap_servers: str, names: Sequence[str], brokers: int, partitions: int) -> None:
    """Create topics whose partition i has one replica, on broker i modulo `brokers`."""
    leaders = [[partition % brokers] for partition in range(partitions)]
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(name, assignments=leaders) for name in names])


def warm_up(bootstrap_servers: str, brokers: int, rate: int) -> None:
    """Run a load of the rate that is to be measured, without measuring it: Java brokers are slow
    until their code is compiled.
    """
    topic = "warm-up"
    make_topics(bootstrap_servers, [topic], brokers, brokers)
    load = load_of(round(BROKERS_WARM_UP_S * rate), rate, 512, 0)
    run_paced(
        Task("fairlead", bootstrap_servers, topic, load, {"linger.ms": 0, "partitioner.class": "round_robin"})
    )


def measure(task: Task, brokers: int) -> JsonObject:
    """Run `run_paced`, read its topic back, and delete it, so that no later system pays for its
    data.

    Adds {cpu_stolen_share, bytes_broker_0, …, batch_size_avg_bytes, records, warmup_records};
    `records` counts the warm-up too.
    """
    stolen = Stolen()
    figures = run_paced(task)
    if "skipped" in figures:
        return figures
    figures["cpu_stolen_share"] = stolen.share()
    sums = by_broker(held(task.bootstrap_servers, task.topic), brokers)
    with Admin({"bootstrap.servers": task.bootstrap_servers}) as admin:
        admin.delete_topics([task.topic])
    return {
        **figures,
        **split_figures(sums),
        "records": task.load.total,
        "warmup_records": task.load.warmup_records,
    }


def split_figures(sums: list[Held]) -> JsonObject:
    """{bytes_broker_0, …, batch_size_avg_bytes} of sums by broker."""
    batches = sum(one.batches for one in sums)
    size_bytes = sum(one.size_bytes for one in sums)
    return {
        **{f"bytes_broker_{one.leader}": one.size_bytes for one in sums},
        "batch_size_avg_bytes": round(size_bytes / batches) if batches else None,
    }


def load_of(
    records: int, rate: int, record_size: int, warmup_s: float, period_ms: int = 1, flush: bool = False
) -> Load:
    """A load of `records` after `warmup_s` seconds of warm-up, with the time limit `limit_s`."""
    warmup_records = round(warmup_s * rate)
    return Load(
        records,
        rate,
        record_size,
        warmup_records=warmup_records,
        limit_s=limit_s(records + warmup_records, rate),
        period_ms=period_ms,
        flush=flush,
    )
