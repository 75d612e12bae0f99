"""Kafka's own `ProducerPerformance` under a paced load: its throttle saves pauses up to 2 ms;
latencies are whole milliseconds."""

from __future__ import annotations

import os
import re
import subprocess

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.lab.apache_kafka import java_command
from fairlead_kafka.lab.pacing import rates
from fairlead_kafka.lab.peers.paced import DRAIN_S, Task

_SUMMARY = re.compile(
    r"(?P<count>\d+)(?: steady state)? records sent, (?P<per_s>[\d.]+) records/sec \([\d.]+ MB/sec\), "
    r"(?P<avg>[\d.]+) ms avg latency, "
    r"(?P<max>[\d.]+) ms max latency, (?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, "
    r"(?P<p999>\d+) ms 99.9th\."
)
_REQUESTS = re.compile(r"^producer-metrics:request-total:\S+\s*:\s*([\d.]+)", re.MULTILINE)


def paced_java(task: Task) -> JsonObject:
    """Run Apache Kafka's Java producer at a pace. Returns figures as `peers.paced` prints them, or
    {"skipped": why}. CPU includes the start of the JVM. Raises Unavailable."""
    load = task.load
    if load.flush or load.period_ms != 1:
        return {"skipped": "kafka-producer-perf-test neither flushes nor sends in bursts"}
    config = {"bootstrap.servers": task.bootstrap_servers, "acks": "all", **task.config}
    # Warm-up and the rest are one stream; the summary of the steady state leaves the warm-up out
    # (KIP-1052).
    warm_up = ("--warmup-records", str(load.warmup_records)) if load.warmup_records else ()
    command = java_command(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic", task.topic, "--num-records", str(load.total), "--record-size", str(load.record_size),
        "--throughput", str(load.rate), *warm_up, "--print-metrics",
        "--producer-props", *(f"{key}={value}" for key, value in config.items()),
    )  # fmt: skip
    before = os.times()
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=load.limit_s + 2 * DRAIN_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"not finished within {load.limit_s + 2 * DRAIN_S:g} s"}
    after = os.times()  # of children that were waited for: this one alone
    if ran.returncode != 0:
        return {"skipped": f"failed: {(ran.stderr or ran.stdout).strip()[-200:]}"}
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return {**java_figures(ran.stdout, load.record_size), "cpu_s": round(cpu_s, 3)}


def java_figures(said: str, record_size: int) -> JsonObject:
    """Figures from the tool's output; {"skipped": why} if it has no summary."""
    summaries = list(_SUMMARY.finditer(said))
    if not summaries:
        return {"skipped": f"no summary in what it printed: {said.strip()[-200:]}"}
    last = summaries[-1]
    requests = _REQUESTS.search(said)
    return {
        **rates(float(last["per_s"]), record_size),
        **{f"{name}_ms": float(last[name]) for name in ("avg", "p50", "p95", "p99", "p999", "max")},
        # The first summary counts the warm-up too. Only records that were acknowledged are counted
        # at all.
        "acked": int(summaries[0]["count"]),
        "requests": int(float(requests[1])) if requests else None,
    }
