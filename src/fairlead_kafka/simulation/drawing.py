"""Draws a world's producers from its seed: their configurations, and the records that they send."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead_kafka.partitioning import POLICY_NAMES
from fairlead_kafka.simulation.workload import STYLES, Sending

POLICIES = (*POLICY_NAMES, "late")
"""Every policy; "late", which has most to do in the engine, comes twice."""
LATE = ("late",)
"""Policies that bind unkeyed records when a broker is ready for them."""


def draw_config(rng: Random) -> dict[str, object]:
    """Configs of a producer, without bootstrap.servers.

    Values are small, so that limits and timeouts are often reached.
    """
    request_timeout_ms = rng.choice([150, 500, 1500])
    linger_ms = rng.choice([0, 0, 3, 40])
    config: dict[str, object] = {
        "acks": rng.choice(["all"] * 8 + ["1", "0"]),
        "linger.ms": linger_ms,
        "batch.size": rng.choice([0, 90, 90, 250, 250, 1000, 16_384]),
        "buffer.memory": rng.choice([3_000, 20_000, 1_000_000]),
        "max.block.ms": rng.choice([100, 300]),
        "max.request.size": rng.choice([900, 4_000, 1_048_576]),
        "max.in.flight.requests.per.connection": rng.choice([1, 1, 2, 5, 5, 5]),
        "compression.type": rng.choice(["none", "none", "none", "lz4", "zstd"]),
        "request.timeout.ms": request_timeout_ms,
        "delivery.timeout.ms": request_timeout_ms + linger_ms + rng.choice([300, 500, 2000, 6000]),
        "retry.backoff.ms": rng.choice([1, 20, 100]),
        "retry.backoff.max.ms": rng.choice([100, 400]),
        "reconnect.backoff.ms": rng.choice([1, 20, 50]),
        "reconnect.backoff.max.ms": rng.choice([50, 400]),
        "socket.connection.setup.timeout.ms": rng.choice([100, 600]),
        "socket.connection.setup.timeout.max.ms": 600,
        "metadata.max.age.ms": rng.choice([700, 300_000]),
        "metadata.max.idle.ms": 5_000,
        "max.in.flight.requests.adaptive.enable": rng.random() < 0.7,
        "partitioner.class": rng.choice(POLICIES),
        "partitioner.ignore.keys": rng.random() < 0.1,
        "partitioner.availability.timeout.ms": rng.choice([0, 0, 50]),
    }
    config["enable.idempotence"] = config["acks"] == "all" and rng.random() < 0.7
    if not config["enable.idempotence"] and rng.random() < 0.7:
        config["max.in.flight.requests.per.connection"] = 1  # what keeps order without sequences
    if config["partitioner.class"] in LATE:
        config["partitioner.max.skew.bytes"] = rng.choice([-1, -1, 0, 500, 2**63 - 1])
    return config


def draw_sending(rng: Random, topics: Sequence[tuple[str, int]], room_bytes: int) -> Sending:
    """A submission to one of `topics` (name, partitions) that fits `room_bytes` of
    buffer.memory."""
    rows = 1 if rng.random() < 0.6 else 1 + rng.randrange(24)
    size_bytes = 12 + rng.randrange(1 + min(200, max(0, room_bytes // rows - 60)))
    rows = max(1, min(rows, room_bytes // (size_bytes + 60)))
    topic, partitions = rng.choice(topics)
    return Sending(topic, rng.choice(STYLES), rows, size_bytes, partitions)
