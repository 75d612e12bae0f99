"""Clusters whose brokers can be made slow or dead while a client produces: Fairlead's in this
process, or Apache Kafka behind proxies."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Protocol

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.client import Admin
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.lab.slow_proxy import SlowProxies
from fairlead_kafka.testing import Cluster

FAULTS = ("none", "serial", "latency", "dead")
"""Kinds of faults: none; each Produce answered late, one after another (KIP-794); every answer
late, all concurrently; a dead broker.
"""
_FENCED_WITHIN_S = 30.0


class FaultyTarget(Protocol):
    """A cluster of brokers 0 and on."""

    bootstrap_servers: str

    def slow(self, node_id: int, produce_service_time_ms: float = 0, latency_ms: float = 0) -> None:
        """Slow a broker down, as `testing.Cluster`'s `broker(i).slow` does."""

    def kill(self, node_id: int) -> None:
        """Kill a broker by `kill -9`."""

    def start(self, node_id: int) -> None:
        """Start a killed broker again."""


class _Embedded:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers

    def slow(self, node_id: int, produce_service_time_ms: float = 0, latency_ms: float = 0) -> None:
        self._cluster.broker(node_id).slow(produce_service_time_ms, latency_ms)

    def kill(self, node_id: int) -> None:
        self._cluster.broker(node_id).kill()

    def start(self, node_id: int) -> None:
        self._cluster.broker(node_id).start()


class _Apache:
    def __init__(self, kafka: ApacheKafka, proxies: SlowProxies) -> None:
        self._kafka = kafka
        self.bootstrap_servers = kafka.bootstrap_servers
        self.slow = proxies.slow
        self.kill = kafka.kill
        self.start = kafka.start


@contextmanager
def faulty_target(
    name: str, brokers: int = 3, slowable: Collection[int] = (0,), heap: str = "512m"
) -> Iterator[FaultyTarget]:
    """A fresh cluster, "fairlead" or "apache-kafka", stopped and removed at the end.

    `slowable`: the brokers that `slow` will be called for; of Apache Kafka they stand behind a
    proxy. `heap`: of each of its JVMs. Raises `apache_kafka.Unavailable` if Apache Kafka cannot be
    had here.
    """
    if name == "fairlead":
        with Cluster(brokers) as cluster:
            yield _Embedded(cluster)
        return
    with SlowProxies() as proxies:

        def advertise(node_id: int, port: int) -> int:
            return proxies.open(node_id, port) if node_id in slowable else port

        with ApacheKafka(heap, brokers, advertise) as kafka:
            yield _Apache(kafka, proxies)


@contextmanager
def fault(target: FaultyTarget, kind: str, delay_ms: float, node_id: int = 0) -> Iterator[None]:
    """Give broker `node_id` the fault, one of FAULTS, while the block runs; a dead broker is known
    to be dead when the block begins.
    """
    if kind == "dead":
        target.kill(node_id)
        _wait_until_known(target, node_id, there=False)
    else:
        target.slow(
            node_id,
            produce_service_time_ms=delay_ms if kind == "serial" else 0,
            latency_ms=delay_ms if kind == "latency" else 0,
        )
    try:
        yield
    finally:
        if kind == "dead":
            target.start(node_id)
            _wait_until_known(target, node_id, there=True)
        else:
            target.slow(node_id)


def _wait_until_known(target: FaultyTarget, node_id: int, there: bool) -> None:
    """Wait until the cluster's metadata have the broker, or no longer have it: Apache Kafka's
    controller takes 9 s to notice. TimedOut if that takes too long."""
    deadline_s = time.monotonic() + _FENCED_WITHIN_S
    with Admin({"bootstrap.servers": target.bootstrap_servers}) as admin:
        while (node_id in {node.node_id for node in admin.describe_cluster().nodes}) != there:
            if time.monotonic() > deadline_s:
                raise TimedOut(
                    f"broker {node_id} was not known to be {'there' if there else 'gone'} within "
                    f"{_FENCED_WITHIN_S:g} s"
                )
            time.sleep(0.05)
