"""Loads for a producer of policy `late`, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.producer_brokers import FakeCluster
from tests.support.producer_rig import Rig

LATE = {"partitioner.class": "late", "linger.ms": 0}


def warm(rig: Rig, producer: Any, partitions: int = 3) -> None:
    """Connect to all brokers, and have each partition's first batch, which goes alone, behind
    us."""
    while not all(partition.end_offset for partition in rig.cluster.topics["t"][:partitions]):
        producer.send("t", b"warm up")
        rig.host.advance(30)
    rig.cluster.produce_requests.clear()


def paced(
    rig: Rig, producer: Any, rate_per_s: int, for_ms: int, before: Callable[[], object] = lambda: None
) -> list[float]:
    """512-byte records at a pace; what each took, in ms, in the order of delivery. `before` each,
    that is called."""
    took: list[float] = []

    def on_delivery(at_ns: int) -> Any:
        return lambda metadata, error: took.append((rig.host.now_ns() - at_ns) / 1e6)

    start_ns = rig.host.now_ns()
    for number in range(rate_per_s * for_ms // 1000):
        due_ms = (start_ns - rig.host.now_ns()) / 1e6 + number * 1000 / rate_per_s
        if due_ms > 0:
            rig.host.advance(due_ms)
        before()
        producer.send("t", b"x" * 512, on_delivery=on_delivery(rig.host.now_ns()))
    return took


def log_bytes(cluster: FakeCluster, topic: str = "t") -> list[int]:
    return [sum(header.size_bytes for header in partition.headers) for partition in cluster.topics[topic]]
