"""Load for KIP-578's experiments: the same records from Kafka's own ProducerPerformance and from
Fairlead's producer, on either system."""

from __future__ import annotations

import re
import subprocess
import sys

from fairlead_kafka.base.json_types import JsonObject, integer_at
from fairlead_kafka.lab.apache_kafka import java_command
from fairlead_kafka.lab.experiment import AS_KAFKA
from fairlead_kafka.lab.pacing import rates
from fairlead_kafka.lab.peers.paced_java import java_figures

RECORD_SIZE = 512
GENERATORS = ("java", "fairlead")
TIMEOUT_S = 180.0
"""Seconds after which a run is stopped; its figures are then those of what it had sent."""
TOOL = "org.apache.kafka.tools.ProducerPerformance"
_PROGRESS = re.compile(r"^(\d+) records sent, [\d.]+ records/sec", re.MULTILINE)
"""A line of progress, for some seconds each; the summary looks the same."""


def load(generator: str, bootstrap_servers: str, topic: str, records: int) -> JsonObject:
    """{mb_per_s, p99_ms, max_ms, acked, failed} of `records` values of 512 bytes without keys,
    acks=all, as fast as they go; or {skipped}.

    Both print the same lines: `fairlead perf produce` is made after ProducerPerformance. MB are
    2**20 bytes, of records that were acknowledged; `failed` are the others, expired or never sent
    within TIMEOUT_S. Raises Unavailable.
    """
    asked = (
        "--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_SIZE), "--throughput",
        "-1",
        "--command-property", f"bootstrap.servers={bootstrap_servers}", "acks=all",
    )  # fmt: skip
    if generator == "java":
        command = java_command(TOOL, *asked)
    else:
        # What partitions cost is the question, and not how large a batch becomes where there are
        # few of them.
        as_kafka = [f"{key}={value}" for key, value in AS_KAFKA.items()]
        command = [sys.executable, "-m", "fairlead_kafka.cli.main", "perf", "produce", *asked, *as_kafka]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        return unfinished(error.stdout, records)
    figures = java_figures(ran.stdout, RECORD_SIZE)
    if "skipped" in figures:
        return (
            {"skipped": f"failed: {(ran.stderr or ran.stdout).strip()[-300:]}"} if ran.returncode else figures
        )
    shown = {name: figures[name] for name in ("mb_per_s", "p99_ms", "max_ms", "acked")}
    return {**shown, "failed": records - integer_at(figures, "acked")}


def unfinished(said: str | bytes | None, records: int) -> JsonObject:
    """Figures of a run that was stopped, from its output so far."""
    text = said.decode() if isinstance(said, bytes) else said or ""
    acked = sum(int(count) for count in _PROGRESS.findall(text))
    mb_per_s = rates(acked / TIMEOUT_S, RECORD_SIZE)["mb_per_s"]
    return {"mb_per_s": mb_per_s, "p99_ms": None, "max_ms": None, "acked": acked, "failed": records - acked}
