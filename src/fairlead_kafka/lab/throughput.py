"""Records produced per second, CPU seconds per million and memory, acks=all, 12 partitions, one broker: ours beside the peers.

`raw` sends batches that were built beforehand: what the broker lets through, the ceiling for any client. Each system runs in a
process of its own, one after another within a round, so that what the machine does to one it does to all; a row is the median round.
Values are cut from log lines, so that what is compressed compresses as text does. CPU and memory are those of the client's process
alone, its interpreter, its libraries and the records that it is about to send included; for Java CPU includes starting the JVM.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.units import MIB
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.lab.apache_kafka import Unavailable, java_command
from fairlead_kafka.lab.bounded import NotFinished, run_client
from fairlead_kafka.lab.experiment import Row, Status, not_installed
from fairlead_kafka.lab.peers.run import VALUES, Job
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.targets import TARGETS, target
from fairlead_kafka.lab.whole_process import run_whole

PARTITIONS = 12
RUN_TIMEOUT_S = 300.0
"""A system that has not finished by then is stopped, and its row says so."""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS = ("unkeyed", "keyed")
BUFFER_MB = CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "x:1"})["buffer.memory"] / MIB

SYSTEMS: dict[str, tuple[str | None, float]] = {
    "raw": (None, 1.0),
    "fairlead.send": (None, 1.0),
    "fairlead.send.callbacks": (None, 1.0),
    "fairlead.send.handles": (None, 1.0),
    "fairlead.send_table": (None, 1.0),
    "confluent-kafka.produce": ("confluent_kafka", 1.0),
    "confluent-kafka.produce.callbacks": ("confluent_kafka", 1.0),
    "confluent-kafka.produce_batch": ("confluent_kafka", 1.0),
    "java": (None, 0.5),
    "kafka-python": ("kafka", 0.05),
    "aiokafka": ("aiokafka", 0.15),
}
"""Each system with the module it needs, and its share of the records: the slow ones would take minutes for a figure no better."""


@dataclass(frozen=True)
class Profile:
    """`cells`: record size, keyed or not, compression of each measurement."""

    records: int
    rounds: int
    cells: tuple[tuple[int, str, str], ...]


PROFILES: dict[str, Profile] = {
    "quick": Profile(1_000_000, 1, ((100, "unkeyed", "none"),)),
    "full": Profile(
        2_000_000,
        1,
        (
            *((size, key, "none") for size in (10, 100, 512, 1024) for key in KEYS),
            *((512, "unkeyed", compression) for compression in COMPRESSIONS[1:]),
        ),
    ),
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    records: int | None = None,
    record_sizes: Sequence[int] = (),
    keys: Sequence[str] = (),
    compressions: Sequence[str] = (),
    rounds: int | None = None,
) -> list[Row]:
    """Rows {system, target, record_size, key, compression, records_per_s, mb_per_s, cpu_s_per_million, acked, rss_mb}, or {…, skipped}.

    `rss_mb`: the client's resident memory at its peak; for clients that have a `buffer.memory`, `rss_over_buffer_mb` is what of it
    is beyond that; both in 2**20 bytes. Sizes, keys ("keyed", "unkeyed") and compressions make every combination of those given;
    of what is not given there is what the profile has.
    """
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name) as bootstrap_servers:
                for size, key, compression in cells(chosen, record_sizes, keys, compressions):
                    cell = _Cell(name, bootstrap_servers, size, key, compression, records or chosen.records)
                    rows += _measure(status, cell, rounds or chosen.rounds, peers)
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows


def cells(
    profile: Profile, record_sizes: Sequence[int] = (), keys: Sequence[str] = (), compressions: Sequence[str] = ()
) -> list[tuple[int, str, str]]:
    """What is measured: the profile's cells, or every combination of what is given with the profile's rest."""
    if not record_sizes and not keys and not compressions:
        return list(profile.cells)
    plain = [cell for cell in profile.cells if cell[2] == "none"]
    sizes = record_sizes or list(dict.fromkeys(size for size, _, _ in plain))
    return [(size, key, compression) for size in sizes for key in keys or KEYS[:1] for compression in compressions or ("none",)]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Records per second by system, for each target, key and compression a panel, for each record size a colour."""
    panels = []
    for cell in dict.fromkeys((row["target"], row["key"], row["compression"]) for row in rows):
        found = {
            (row["system"], row["record_size"]): row["records_per_s"]
            for row in rows
            if (row["target"], row["key"], row["compression"]) == cell
        }
        systems, sizes = list(dict.fromkeys(system for system, _ in found)), list(dict.fromkeys(size for _, size in found))
        series = {f"{size} B": [found.get((system, size)) for system in systems] for size in sizes}
        name, key, compression = cell
        title = f"{name}, {key}, " + (f"{sizes[0]} B, " if len(sizes) == 1 else "") + f"compression {compression}"
        panels.append(Bars(title, systems, series, "records/s", log=True))
    figure(path, panels, title="Records produced per second, acks=all")


@dataclass(frozen=True)
class _Cell:
    target: str
    bootstrap_servers: str
    size: int
    key: str
    compression: str
    records: int

    def job(self, system: str, topic: str) -> Job:
        records = max(1000, int(self.records * SYSTEMS[system][1]))
        return Job(system, self.bootstrap_servers, topic, records, self.size, self.key == "keyed", self.compression)


def _measure(status: Status, cell: _Cell, rounds: int, peers: Sequence[str]) -> list[Row]:
    measured: dict[str, list[Row]] = {system: [] for system in peers}
    what = {"target": cell.target, "record_size": cell.size, "key": cell.key, "compression": cell.compression}
    for number in range(rounds):
        for system in peers:
            status(f"{cell.target}, {cell.size} B, {cell.key}, {cell.compression}, round {number + 1} of {rounds}: {system}")
            topic = f"throughput-{cell.size}-{cell.key}-{cell.compression}-{number}-{system}"
            with Admin({"bootstrap.servers": cell.bootstrap_servers}) as admin:
                admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])
            measured[system].append({"system": system, **what, **run_system(cell.job(system, topic))})
            # Deleting keeps the disk from filling, and no later system pays for this one's data.
            with Admin({"bootstrap.servers": cell.bootstrap_servers}) as admin:
                admin.delete_topics([topic])
    return [sorted(rows, key=lambda row: row.get("records_per_s", 0.0))[len(rows) // 2] for rows in measured.values()]


def run_system(job: Job) -> Row:
    """Runs one system in a process of its own; the measured part of a row, or {"skipped": why}."""
    missing = not_installed(SYSTEMS[job.system][0])
    if missing:
        return {"skipped": missing}
    try:
        if job.system == "java":
            return _run_java(job)
    except Unavailable as error:
        return {"skipped": str(error)}
    result = run_client([sys.executable, "-m", "fairlead_kafka.lab.peers.run", job.to_json()], RUN_TIMEOUT_S)
    if "skipped" in result:
        return result
    return figures(job, result["acked"], result["seconds"], result["cpu_s"], result["rss_mb"])


def figures(job: Job, acked: int, seconds: float, cpu_s: float, rss_mb: int) -> Row:
    """The measured part of a row. MB per second are 10^6 bytes of values, those of memory 2^20."""
    row = {
        "records_per_s": round(acked / seconds),
        "mb_per_s": round(acked * job.size / seconds / 1e6, 1),
        "cpu_s_per_million": round(cpu_s / max(1, acked) * 1e6, 3),
        "acked": acked,
        "rss_mb": rss_mb,
    }
    if job.system.startswith(("fairlead.", "java")):
        row["rss_over_buffer_mb"] = round(rss_mb - BUFFER_MB)
    return row


def _run_java(job: Job) -> Row:
    """Kafka's own kafka-producer-perf-test. Raises Unavailable."""
    if job.keyed:
        return {"skipped": "kafka-producer-perf-test sends no keys"}
    with tempfile.NamedTemporaryFile(suffix=".txt") as values:
        values.write(b"\n".join(job.values(VALUES)) + b"\n")
        values.flush()
        settings = (f"bootstrap.servers={job.bootstrap_servers}", "acks=all", f"compression.type={job.compression}")
        command = java_command(
            "org.apache.kafka.tools.ProducerPerformance",
            "--topic", job.topic, "--num-records", str(job.records), "--payload-file", values.name, "--throughput", "-1",
            "--command-property", *settings,
        )  # fmt: skip
        try:
            ran = run_whole(command, RUN_TIMEOUT_S)
        except NotFinished as error:
            return {"skipped": str(error)}
    found = re.findall(r"(\d+) records sent, ([\d.]+) records/sec", ran.said)
    if ran.returncode != 0 or not found:
        return {"skipped": f"failed: {ran.said.strip()[-200:]}"}
    acked, per_second = int(found[-1][0]), float(found[-1][1])
    return figures(job, acked, acked / per_second, ran.cpu_s, ran.rss_mb)
