"""One broker of three goes slow, or dies, while a client sends as fast as it can: the throughput of
the other two.

librdkafka's issue #2677, open since 2020: a queue that all brokers share fills with the records of
a broker that does not accept them, and then no record can be added. There are six partitions
without replicas, two led by each broker, so that a fault affects only a third of them. Each client
runs in a process of its own, one thread of its application sending; it is measured, then broker 0
breaks, then it is measured again: `share` compares two intervals of one run of one process, so
noise from hour to hour does not matter. The counted records are those of the healthy brokers'
partitions, when they are acknowledged (`peers.pressed`).

Slow: every answer of the broker comes 500 ms late. Dead: killed, no other broker leads its
partitions.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import (
    Json,
    JsonObject,
    integer_at,
    json_object,
    number_at,
    number_or_none,
    object_at,
    text_at,
)
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.lab.apache_kafka import Unavailable, jars, java
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.faulty_targets import FaultyTarget, fault, faulty_target
from fairlead_kafka.lab.peers.pressed import Phases, Task
from fairlead_kafka.lab.plotting import Bars, figure

BROKERS = 3
PARTITIONS = 6
FAULTY_BROKER = 0
LATENCY_MS = 500
RECORD_SIZE = 1_000
LOADS = ("unkeyed", "keyed")
FAULTS = ("slow", "dead")
NO_FAULT = "none"
START_S = 60.0
"""Seconds that a client has beyond its phases, to start and to end."""


class System(NamedTuple):
    """A client: the module it needs, its config over the defaults, and the loads under which it is
    measured.
    """

    module: str | None
    client: str
    config: Mapping[str, Json]
    loads: tuple[str, ...] = LOADS


SYSTEMS: dict[str, System] = {
    "fairlead": System(None, "fairlead", {}),
    "fairlead.share": System(None, "fairlead", {"buffer.memory.per.broker.ratio": 0.5}),
    "fairlead.adaptive": System(None, "fairlead", {"partitioner.class": "adaptive"}, ("unkeyed",)),
    "confluent-kafka": System("confluent_kafka", "confluent-kafka", {}),
    "confluent-kafka.idempotent": System("confluent_kafka", "confluent-kafka", {"enable.idempotence": True}),
    "java": System(None, "java", {}),
    "kafka-python": System("kafka", "kafka-python", {}),
    "aiokafka": System("aiokafka", "aiokafka", {}),
}

PROFILES: dict[str, Phases] = {
    "quick": Phases(warmup=2.0, baseline=2.0, settling=4.0, fault=2.0),
    "full": Phases(warmup=5.0, baseline=6.0, settling=10.0, fault=8.0),
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = ("fairlead",),
    peers: Sequence[str] = tuple(SYSTEMS),
    loads: Sequence[str] = LOADS,
    faults: Sequence[str] = FAULTS,
    rate: int = 0,
) -> list[Row]:
    """Rows {system, target, load, fault, healthy_records_per_s, share, p99_ms, acked, failed,
    rss_mb}, or {…, skipped}.

    `fault` "none": before the fault, the mean of this system's runs; its `share` is 1. `p99_ms`:
    from submission to acknowledgement, on the healthy partitions. `acked` and `failed`: all
    partitions, while `healthy_records_per_s` was counted; `failed` are records that were refused or
    given up. `rss_mb`: the client's peak. `rate`: records/s that are offered; 0: as fast as the
    client takes them.
    """
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with faulty_target(name, BROKERS, (FAULTY_BROKER,)) as target:
                bench = _Bench(target, PROFILES[profile], rate)
                for load in loads:
                    for system in (one for one in peers if load in SYSTEMS[one].loads):
                        rows += _measure(bench, status, name, system, load, faults)
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw the healthy brokers' throughput as a share of that before the fault, for each load a
    panel of bars by system and fault.
    """
    panels = []
    for target, load in dict.fromkeys((row["target"], row["load"]) for row in rows):
        shown = [
            row for row in rows if (row["target"], row["load"]) == (target, load) and row["fault"] != NO_FAULT
        ]
        shares = {(text_at(row, "system"), row["fault"]): number_or_none(row, "share") for row in shown}
        systems = list(dict.fromkeys(text_at(row, "system") for row in shown))
        series = {f"one broker {kind}": [shares.get((system, kind)) for system in systems] for kind in FAULTS}
        panels.append(
            Bars(
                f"{load} load, {target}",
                systems,
                series,
                "records/s of the healthy two, by those before the fault",
            )
        )
    figure(path, panels, title="One broker of three goes slow, or dies")


class _Bench:
    """Runs clients on one target, whose broker can fail."""

    def __init__(self, target: FaultyTarget, phases: Phases, rate: int) -> None:
        self.target = target
        self.phases = phases
        self.rate = rate
        self._topics = 0

    def run(self, system: str, load: str, kind: str) -> JsonObject:
        """Run one client once: {"baseline", "fault"} as it reports them, or {"skipped": why}."""
        lacking = missing(system)
        if lacking:
            return {"skipped": lacking}
        self._topics += 1
        topic = f"isolation-{self._topics}"
        with Admin({"bootstrap.servers": self.target.bootstrap_servers}) as admin:
            admin.create_topics(
                [NewTopic(topic, assignments=[[number % BROKERS] for number in range(PARTITIONS)])]
            )
        chosen = SYSTEMS[system]
        task = Task(
            system=chosen.client,
            bootstrap_servers=self.target.bootstrap_servers,
            topic=topic,
            keyed=load == "keyed",
            partitions=PARTITIONS,
            faulty=[number for number in range(PARTITIONS) if number % BROKERS == FAULTY_BROKER],
            phases=self.phases,
            record_size=RECORD_SIZE,
            rate=self.rate,
            config=chosen.config,
        )

        def break_broker() -> AbstractContextManager[None]:
            return fault(self.target, "latency" if kind == "slow" else "dead", LATENCY_MS, FAULTY_BROKER)

        limit_s = (
            self.phases.warmup + self.phases.baseline + self.phases.settling + self.phases.fault + START_S
        )
        reported = run_client(command_of(task), limit_s, break_broker)
        with Admin({"bootstrap.servers": self.target.bootstrap_servers}) as admin:
            admin.delete_topics([topic])
        return reported


def _measure(
    bench: _Bench, status: Status, target: str, system: str, load: str, faults: Sequence[str]
) -> list[Row]:
    reported = {}
    for kind in faults:
        status(f"{target}, {load}, one broker {kind}: {system}")
        reported[kind] = bench.run(system, load, kind)
    return [{"system": system, "target": target, "load": load, **row} for row in rows_of(reported)]


def rows_of(reported: Mapping[str, Mapping[str, Json]]) -> list[Row]:
    """Rows of one system under one load, from its runs' reports by fault; the one without fault
    first.
    """
    measured = {kind: one for kind, one in reported.items() if "skipped" not in one}
    baselines = [object_at(one, "baseline") for one in measured.values()]
    rows: list[Row] = []
    if baselines:
        latencies_ms = [number_at(one, "p99_ms") for one in baselines if one["p99_ms"] is not None]
        rows.append(
            {
                "fault": NO_FAULT,
                "healthy_records_per_s": round(
                    fmean(number_at(one, "healthy_records_per_s") for one in baselines)
                ),
                "share": 1.0,
                "p99_ms": round(fmean(latencies_ms), 1) if latencies_ms else None,
                "acked": sum(integer_at(one, "acked") for one in baselines),
                "failed": sum(integer_at(one, "failed") for one in baselines),
            }
        )
    for kind, one in reported.items():
        if "skipped" in one:
            rows.append({"fault": kind, "skipped": one["skipped"]})
            continue
        before, after = (
            number_at(object_at(one, phase), "healthy_records_per_s") for phase in ("baseline", "fault")
        )
        rows.append(
            {
                "fault": kind,
                **object_at(one, "fault"),
                "share": round(after / before, 3) if before else None,
                "rss_mb": one["rss_mb"],
            }
        )
    keys = ("fault", "healthy_records_per_s", "share", "p99_ms", "acked", "failed", "rss_mb", "skipped")
    return [{key: row[key] for key in keys if key in row} for row in rows]


def command_of(task: Task) -> list[str]:
    """The command line of a client's program. Raises Unavailable for Java without its jars."""
    if task.system != "java":
        return [sys.executable, "-m", "fairlead_kafka.lab.peers.pressed", task.to_json()]
    phases = task.phases
    words = [
        task.bootstrap_servers, task.topic, "keyed" if task.keyed else "unkeyed", str(task.partitions),
        ",".join(map(str, task.faulty)), str(task.record_size), str(task.rate),
        *(str(round(seconds * 1000)) for seconds in (phases.warmup, phases.baseline, phases.settling,
        phases.fault)),
        *(f"{key}={value}" for key, value in task.config.items()),
    ]  # fmt: skip
    source = Path(__file__).parent / "peers" / "PressedProducer.java"
    return [
        java(),
        "-Xmx512m",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "-cp",
        f"{jars()}/*",
        str(source),
        *words,
    ]


def missing(system: str) -> str | None:
    """The reason why a system cannot be measured here; None if it can be."""
    module = SYSTEMS[system].module
    if module and find_spec(module) is None:
        return f"{module} is not installed; pip install 'fairlead-kafka[lab]'"
    if system == "java":
        try:
            jars()
        except Unavailable as error:
            return str(error)
    return None


def run_client(
    command: Sequence[str], limit_s: float, break_broker: Callable[[], AbstractContextManager[None]]
) -> JsonObject:
    """Run a client, break the broker when it asks for it, and heal the broker at the end.

    Returns the client's last report, or {"skipped": why}.
    """
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        assert process.stdout is not None
        watch = threading.Timer(limit_s, process.kill)
        watch.start()
        reported: JsonObject = {}
        try:
            if process.stdout.readline().strip() == "fault":
                with break_broker():
                    last = process.stdout.readline()
                    reported = json_object(last) if last.strip() else {}
        except FairleadError as error:
            reported = {"skipped": f"the fault could not be made: {error}"}
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            watch.cancel()
        if reported:
            return reported
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.strip()]
        return {
            "skipped": f"failed: {lines[-1][-200:] if lines else f'it told nothing within {limit_s:g} s'}"
        }
