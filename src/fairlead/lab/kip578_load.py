"""Load for KIP-578's experiments: the same records from Kafka's own ProducerPerformance and from our producer, on either system."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from fairlead.lab.apache_kafka import java_command
from fairlead.lab.peers.paced_java import java_figures

RECORD_SIZE = 512
GENERATORS = ("java", "fairlead")
TIMEOUT_S = 180.0
"""A run that has not ended by then is stopped, and its row says so."""
TOOL = "org.apache.kafka.tools.ProducerPerformance"


def load(generator: str, bootstrap_servers: str, topic: str, records: int) -> dict[str, Any]:
    """{mb_per_s, p99_ms, max_ms, acked} of `records` values of 512 bytes without keys, acks=all, as fast as they go; or {skipped: why}.

    Both print the same lines: `fairlead perf produce` is made after ProducerPerformance. MB are 10^6 bytes. Raises Unavailable.
    """
    asked = (
        "--topic", topic, "--num-records", str(records), "--record-size", str(RECORD_SIZE), "--throughput", "-1",
        "--command-property", f"bootstrap.servers={bootstrap_servers}", "acks=all",
    )  # fmt: skip
    command = java_command(TOOL, *asked) if generator == "java" else [sys.executable, "-m", "fairlead.cli.main", "perf", "produce", *asked]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"skipped": f"{records:,} records were not sent within {TIMEOUT_S:g} s"}
    if ran.returncode != 0:
        return {"skipped": f"failed: {(ran.stderr or ran.stdout).strip()[-300:]}"}
    figures = java_figures(ran.stdout, RECORD_SIZE)
    if "skipped" in figures:
        return figures
    if figures["acked"] != records:
        return {"skipped": f"only {figures['acked']:,} of {records:,} records were acknowledged"}
    return {name: figures[name] for name in ("mb_per_s", "p99_ms", "max_ms", "acked")}
