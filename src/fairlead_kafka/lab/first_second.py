"""The cost of a short program that starts, does its work and ends: each row a fresh process,
nothing prepared; Fairlead in comparison with other clients.

Every Python client runs the same short program (`peers.fresh`), Java Kafka's own performance tools;
100-byte values, acks=all, 12 partitions. Systems take turns within a round, so that noise of the
machine affects all alike; a row is the median round. Modules were compiled before, as they are
after an installation, and the topic that is read exists.

Rows {system, target, what, records, seconds, cpu_s, rss_mb}. `import`, `client made`, `first record
acknowledged` and `first record read` count from right before the process is made; their CPU seconds
up to there, and their memory is what is resident then. `sent` and `read` are the whole process, to
its end, with its peak of memory. `cluster started` is Fairlead's in this Python (`Cluster`), or
Apache Kafka.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import fairlead_kafka.lab.peers.fresh as fresh
from fairlead_kafka.base.json_types import integer_at, number_at, text_at
from fairlead_kafka.client import Admin, NewTopic, Producer
from fairlead_kafka.lab.apache_kafka import ApacheKafka, Unavailable, java_command
from fairlead_kafka.lab.bounded import NotFinished
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.processes import cpu_s, rss_mb
from fairlead_kafka.lab.targets import TARGETS, target
from fairlead_kafka.lab.whole_process import run_whole, without_cache_ban

PARTITIONS = 12
RUN_TIMEOUT_S = 120.0
SENT, READ, FILLED = "first-second-sent", "first-second-read", 100_000
SYSTEMS: dict[str, str | None] = {
    "fairlead": None,
    "fairlead.table": "pyarrow",
    "fairlead.async": None,
    "confluent-kafka": "confluent_kafka",
    "aiokafka": "aiokafka",
    "kafka-python": "kafka",
    "java": None,
}
"""System → the module that it needs; None: none."""
_WHATS = {"send": ("first record acknowledged", "sent"), "read": ("first record read", "read")}


class _Place(NamedTuple):
    """The cluster that records go to, and the folder with files of them."""

    bootstrap_servers: str
    folder: str


@dataclass(frozen=True)
class Profile:
    """Rounds and record counts of a profile.

    `counts`: records sent and read by one process each.
    """

    rounds: int
    counts: tuple[int, ...]
    warmups: int = 1
    """Rounds that are not counted: the first one loads files from the disk."""


PROFILES = {"quick": Profile(3, (1, 1_000, 100_000)), "full": Profile(5, (1, 1_000, 100_000, 1_000_000))}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    rounds: int | None = None,
) -> list[Row]:
    """Rows as in the module's docstring, or {system, target, what, records, skipped}."""
    chosen = PROFILES[profile]
    rounds = rounds or chosen.rounds
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name) as bootstrap_servers, TemporaryDirectory(prefix="fairlead-lab-") as folder:
                _fill(bootstrap_servers, max(chosen.counts))
                for count in chosen.counts:
                    _write_file(folder, count)
                rows += _measure(status, name, _Place(bootstrap_servers, folder), peers, chosen, rounds)
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows + _clusters(status, targets, rounds)


def plot(rows: Sequence[Row], path: Path) -> None:
    """Seconds by system, a panel for what the same number of records takes, all on Apache Kafka if
    that was measured."""
    name = "apache-kafka" if any(row["target"] == "apache-kafka" for row in rows) else rows[0]["target"]
    found = {
        (text_at(row, "what"), integer_at(row, "records"), text_at(row, "system")): number_at(row, "seconds")
        for row in rows
        if row["target"] == name
    }
    panels = []
    for what, records in dict.fromkeys((what, records) for what, records, _ in found):
        systems = [system for each, count, system in found if (each, count) == (what, records)]
        title = what if records <= 1 else f"{records:,} records {what}"
        panels.append(
            Bars(
                title,
                systems,
                {"seconds": [found[what, records, system] for system in systems]},
                "seconds",
                log=True,
            )
        )
    figure(path, panels, title=f"A program from its start, {name}", columns=2)


def _write_file(folder: str, records: int) -> None:
    """Write an Arrow file of `records` records, the source of a table: making it in the program
    would cost pandas, where that is installed."""
    import pyarrow as pa

    values = [os.urandom(fresh.SIZE) for _ in range(min(records, 1_000))]
    table = pa.table({"value": pa.array((values * (records // len(values) + 1))[:records], pa.binary())})
    with pa.OSFile(_file(folder, records), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _file(folder: str, records: int) -> str:
    return os.path.join(folder, f"{records}.arrow")


def _fill(bootstrap_servers: str, records: int) -> None:
    import pyarrow as pa

    config = {"bootstrap.servers": bootstrap_servers}
    with Admin(config) as admin:
        admin.create_topics([NewTopic(SENT, partitions=PARTITIONS), NewTopic(READ, partitions=PARTITIONS)])
    values = pa.table(
        {"value": pa.array([os.urandom(fresh.SIZE) for _ in range(1_000)] * (FILLED // 1_000), pa.binary())}
    )
    with Producer(config) as producer:
        for _ in range(max(1, records // FILLED)):
            producer.send_table(READ, values).result()


def _measure(
    status: Status, name: str, place: _Place, peers: Sequence[str], chosen: Profile, rounds: int
) -> list[Row]:
    tasks = [
        ("idle", 0),
        *(("send", count) for count in chosen.counts),
        *(("read", count) for count in chosen.counts),
    ]
    rows: list[Row] = []
    for task, records in tasks:
        found: dict[tuple[str, str], list[Row]] = {}
        for number in range(1 - chosen.warmups, rounds + 1):
            for system in peers:
                if not _has(system, task):
                    continue
                status(f"{name}, {task} {records:,}, round {number} of {rounds}: {system}")
                for row in measure_once(system, task, records, place):
                    if number > 0 or "skipped" in row:
                        found.setdefault((system, text_at(row, "what")), []).append(row)
        for (system, what), measured in found.items():
            rows.append(
                {"system": system, "target": name, "what": what, "records": records, **_median(measured)}
            )
    return rows


def _has(system: str, task: str) -> bool:
    return (system, task) in fresh.PROGRAMS or (system == "java" and task != "idle")


def _median(rows: Sequence[Row]) -> Row:
    skipped = [row for row in rows if "skipped" in row]
    if skipped:
        return {"skipped": skipped[0]["skipped"]}
    return {
        key: round(statistics.median(number_at(row, key) for row in rows), 4)
        for key in ("seconds", "cpu_s", "rss_mb")
    }


def measure_once(system: str, task: str, records: int, place: _Place) -> list[Row]:
    """Rows of one process of a system, without system and target. NotFinished if the program
    failed."""
    whats = ("import", "client made") if task == "idle" else (_WHATS[task][records > 1],)
    missing = not_installed(SYSTEMS[system])
    if missing:
        return [{"what": what, "skipped": missing} for what in whats]
    try:
        ran = run_whole(_command(system, task, records, place), RUN_TIMEOUT_S, without_cache_ban())
        figures = {} if system == "java" else json.loads(ran.said.splitlines()[-1])
        if ran.returncode or (task != "idle" and system != "java" and figures["counted"] < records):
            raise NotFinished(f"failed: {ran.said.strip()[-200:]}")
    except (NotFinished, ValueError, IndexError) as error:
        return [{"what": what, "skipped": str(error)} for what in whats]
    if task == "idle":
        return [_marked(what, mark, figures) for what, mark in zip(whats, ("import", "client"), strict=True)]
    if records == 1 and figures:
        return [_marked(whats[0], "done", figures)]
    return [{"what": whats[0], "seconds": ran.seconds, "cpu_s": ran.cpu_s, "rss_mb": ran.rss_mb}]


def _marked(what: str, mark: str, figures: Row) -> Row:
    return {
        "what": what,
        "seconds": figures[f"{mark}_s"],
        "cpu_s": figures[f"{mark}_cpu_s"],
        "rss_mb": figures["rss_mb"],
    }


def _command(system: str, task: str, records: int, place: _Place) -> list[str]:
    topic = READ if task == "read" else SENT
    if system == "java" and task == "send":
        return java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            "--topic", topic, "--num-records", str(records), "--record-size", str(fresh.SIZE), "--throughput",
            "-1",
            "--command-property", f"bootstrap.servers={place.bootstrap_servers}", "acks=all",
        )  # fmt: skip
    if system == "java":
        return java_command(
            "org.apache.kafka.tools.ConsumerPerformance",
            "--bootstrap-server", place.bootstrap_servers, "--topic", topic, "--num-records", str(records),
            "--timeout", "30000",
        )  # fmt: skip
    job = {
        "system": system,
        "task": task,
        "bootstrap_servers": place.bootstrap_servers,
        "topic": topic,
        "partitions": PARTITIONS,
        "records": records,
        "file": _file(place.folder, records),
        "started_s": time.monotonic(),
    }
    return [sys.executable, fresh.__file__, json.dumps(job)]


def _clusters(status: Status, targets: Sequence[str], rounds: int) -> list[Row]:
    rows: list[Row] = []
    for system, name, brokers in (
        ("fairlead", "fairlead", 3),
        ("fairlead", "fairlead", 1),
        ("java", "apache-kafka", 1),
    ):
        if name not in targets:
            continue
        status(f"starting {name} with {brokers} brokers")
        what = f"cluster started, {brokers} broker{'s' if brokers > 1 else ''}"
        try:
            measured = [_started(name, brokers) for _ in range(rounds)]
        except (Unavailable, NotFinished) as error:
            measured = [{"skipped": str(error)}]
        rows.append({"system": system, "target": name, "what": what, "records": 0, **_median(measured)})
    return rows


def _started(name: str, brokers: int) -> Row:
    if name == "apache-kafka":
        started_s = time.monotonic()
        with ApacheKafka() as kafka:
            seconds = time.monotonic() - started_s
            used_s, resident_mb = (sum(map(each, kafka.process_ids)) for each in (cpu_s, rss_mb))
        return {"seconds": seconds, "cpu_s": used_s, "rss_mb": resident_mb}
    job = {
        "system": "fairlead",
        "task": "cluster",
        "bootstrap_servers": "",
        "topic": "",
        "partitions": 0,
        "records": brokers,
        "file": "",
    }
    command = [sys.executable, fresh.__file__, json.dumps({**job, "started_s": time.monotonic()})]
    ran = run_whole(command, RUN_TIMEOUT_S, without_cache_ban())
    if ran.returncode:
        raise NotFinished(f"failed: {ran.said.strip()[-200:]}")
    return _marked("", "done", json.loads(ran.said.splitlines()[-1]))
