"""Records produced per second and CPU seconds per million, acks=all, 12 partitions, one broker: ours beside the peers.

`raw` sends batches that were built beforehand: what the broker lets through, the ceiling for any client. Each system runs in a
process of its own, one after another within a round, so that what the machine does to one it does to all; a row is the median round.
CPU is that of the client alone; for Java it includes starting the JVM.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from fairlead.client import Admin, NewTopic
from fairlead.lab.apache_kafka import Unavailable, java_command
from fairlead.lab.experiment import Row, Status
from fairlead.lab.targets import TARGETS, target

PARTITIONS = 12
RUN_TIMEOUT_S = 300.0
"""A system that has not finished by then is stopped, and its row says so."""

SYSTEMS: dict[str, tuple[str | None, float]] = {
    "raw": (None, 1.0),
    "fairlead.send": (None, 1.0),
    "fairlead.send_table": (None, 1.0),
    "confluent-kafka.produce": ("confluent_kafka", 1.0),
    "confluent-kafka.produce_batch": ("confluent_kafka", 1.0),
    "java": (None, 0.5),
    "kafka-python": ("kafka", 0.05),
    "aiokafka": ("aiokafka", 0.15),
}
"""Each system with the module it needs, and its share of the records: the slow ones would take minutes for a figure no better."""

PROFILES: dict[str, dict[str, Any]] = {
    "quick": {"records": 1_000_000, "record_sizes": (100,), "rounds": 1},
    "full": {"records": 3_000_000, "record_sizes": (100, 512, 1024), "rounds": 3},
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = tuple(SYSTEMS),
    records: int | None = None,
    record_sizes: Sequence[int] = (),
    compression: str = "none",
) -> list[Row]:
    """Rows {system, target, record_size, records_per_s, mb_per_s, cpu_s_per_million, acked}, or {…, skipped}."""
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name) as bootstrap_servers:
                for size in record_sizes or chosen["record_sizes"]:
                    rows += _measure(
                        status, name, bootstrap_servers, size, records or chosen["records"], chosen["rounds"], peers, compression
                    )
        except Unavailable as error:
            rows += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return rows


def _measure(
    status: Status, name: str, bootstrap_servers: str, size: int, records: int, rounds: int, peers: Sequence[str], compression: str
) -> list[Row]:
    measured: dict[str, list[Row]] = {system: [] for system in peers}
    for number in range(rounds):
        for system in peers:
            status(f"{name}, {size} B, round {number + 1} of {rounds}: {system}")
            topic = f"throughput-{size}-{number}-{system}"
            with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
                admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])
            row = run_system(system, bootstrap_servers, topic, max(1000, int(records * SYSTEMS[system][1])), size, compression)
            measured[system].append({"system": system, "target": name, "record_size": size, **row})
            # Deleting keeps the disk from filling, and no later system pays for this one's data.
            with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
                admin.delete_topics([topic])
    return [sorted(rows, key=lambda row: row.get("records_per_s", 0.0))[len(rows) // 2] for rows in measured.values()]


def run_system(system: str, bootstrap_servers: str, topic: str, records: int, size: int, compression: str) -> Row:
    """Runs one system in a process of its own; the measured part of a row, or {"skipped": why}."""
    module = SYSTEMS[system][0]
    if module and find_spec(module) is None:
        return {"skipped": f"{module} is not installed; pip install 'fairlead[lab]'"}
    try:
        if system == "java":
            return _run_java(bootstrap_servers, topic, records, size, compression)
        command = [sys.executable, "-m", "fairlead.lab.peers.run", system, bootstrap_servers, topic, str(records), str(size), compression]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not finished within {RUN_TIMEOUT_S:g} s"}
    except Unavailable as error:
        return {"skipped": str(error)}
    if ran.returncode != 0:
        return {"skipped": f"failed: {ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else ran.returncode}"}
    result = json.loads(ran.stdout.splitlines()[-1])
    return figures(result["acked"], result["seconds"], result["cpu_s"], size)


def figures(acked: int, seconds: float, cpu_s: float, size: int) -> Row:
    """The measured part of a row. MB are 10^6 bytes of values."""
    return {
        "records_per_s": round(acked / seconds),
        "mb_per_s": round(acked * size / seconds / 1e6, 1),
        "cpu_s_per_million": round(cpu_s / max(1, acked) * 1e6, 3),
        "acked": acked,
    }


def _run_java(bootstrap_servers: str, topic: str, records: int, size: int, compression: str) -> Row:
    properties = ("--producer-props", f"bootstrap.servers={bootstrap_servers}", "acks=all", f"compression.type={compression}")
    command = java_command(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1", *properties,
    )  # fmt: skip
    before = os.times()
    ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    after = os.times()  # of children that were waited for: this one alone
    found = re.findall(r"(\d+) records sent, ([\d.]+) records/sec", ran.stdout)
    if ran.returncode != 0 or not found:
        return {"skipped": f"failed: {(ran.stderr or ran.stdout).strip()[-200:]}"}
    acked, per_second = int(found[-1][0]), float(found[-1][1])
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return figures(acked, acked / per_second, cpu_s, size)
