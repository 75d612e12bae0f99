"""Consumer and admin faces in virtual time, over a fake cluster: waiting for anything lets virtual
time go on."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairlead_kafka.runtime import Completion, VirtualHost
from tests.support.checked import checked
from tests.support.fake_fetch_broker import FakeCluster


class VirtualHosted:
    """A stand-in for `client.hosting.Hosted` on a virtual host."""

    inside = forked = reached = False

    def __init__(self, host: VirtualHost, machine: Any) -> None:
        self.host = host
        self.machine = machine
        self.now_ns = host.now_ns
        self.now_ms = host.now_ms
        self._handle = host.add(machine)

    def submit(self, operation: object) -> None:
        """Deliver an operation."""
        self.host.submit(self._handle, operation)

    def close(self, timeout_s: float | None = None) -> None:
        """End the machine."""
        self.host.remove(self._handle)


def drive_clients(monkeypatch: Any, host: VirtualHost) -> None:
    """Have blocking faces put their machines on `host`, and their waits let its time go on."""

    def result(completion: Completion, timeout_s: float | None = None) -> Any:
        if not completion.done():
            host.run_until(completion.done, 600_000 if timeout_s is None else max(timeout_s, 0) * 1000)
        if completion.error() is not None:
            raise completion.error()  # type: ignore[misc]
        return completion._value

    def open_host(make: Callable[[Any], Any], _settings: object, name: str = "") -> VirtualHosted:
        return VirtualHosted(host, checked(make(random.Random(1))))

    monkeypatch.setattr(Completion, "result", result)
    for module in ("consumer_reading", "share_consumer_calls", "admin_calls"):
        monkeypatch.setattr(f"fairlead_kafka.client.{module}.open_host", open_host)


class Rig:
    """A virtual host with a fake cluster, and faces whose waits let virtual time go on.

    Their steps are driven as `run_blocking` drives them, so what is tested is the calls, the
    machine and the wire together.
    """

    def __init__(self, monkeypatch: Any, nodes: int = 1, latency_ms: float = 1.0) -> None:
        self.host = VirtualHost(latency_ms=latency_ms)
        self.cluster = FakeCluster(self.host, nodes)
        drive_clients(monkeypatch, self.host)

    def config(self, **configs: Any) -> dict[str, Any]:
        """Configs with underscores for dots."""
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            **{name.replace("_", "."): value for name, value in configs.items()},
        }
