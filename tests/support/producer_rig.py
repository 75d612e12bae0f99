"""A producer in virtual time: its faces run on the calling thread, and waiting for anything lets
virtual time go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet

import pytest

import fairlead_kafka.client.hosting as hosting
import fairlead_kafka.client.producer_core as producer_module
from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.runtime import VirtualHost
from tests.support.checked import checked
from tests.support.producer_brokers import FakeCluster


class VirtualHosted:
    """Stands in for `hosting.Hosted`."""

    inside = forked = reached = False

    def __init__(self, host: VirtualHost, machine: Any) -> None:
        self.host = host
        self.machine = machine
        self.handle = host.add(machine)
        self.now_ns = host.now_ns
        self.now_ms = host.now_ms

    def submit(self, operation: object) -> None:
        self.host.submit(self.handle, operation)

    def close(self, timeout_s: float | None = None) -> None:
        self.host.remove(self.handle)


class Rig:
    """A virtual host, a fake cluster, and producers whose waits drive the host."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, brokers: int = 1, **host: Any) -> None:
        self.host = VirtualHost(**host)
        self.cluster = FakeCluster(self.host, brokers)
        self.seed = 1
        monkeypatch.setattr(producer_module, "open_host", self._open_host)
        monkeypatch.setattr(
            producer_module, "_cores", WeakSet()
        )  # none of them is looked for at the end of the interpreter
        monkeypatch.setattr(hosting.Completion, "result", self._patched(hosting.Completion.result))

    def _open_host(
        self, machine_factory: Callable[[Any], Any], _settings: object, name: str = ""
    ) -> VirtualHosted:
        return VirtualHosted(self.host, checked(machine_factory(random.Random(self.seed))))

    def _patched(self, original: Any) -> Any:
        def result(completion: Any, timeout_s: float | None = None) -> Any:
            if not completion.done() and timeout_s != 0:
                try:
                    self.host.run_until(completion.done, 600_000 if timeout_s is None else timeout_s * 1000)
                except TimedOut:
                    if timeout_s is None:
                        return original(completion, 5)  # it is for another thread to end
            return original(completion, 1.0 if completion.done() else 0)

        return result

    def producer(self, config: Mapping[str, Any] | None = None, **more: Any) -> Producer:
        """A producer of this cluster; `more` has underscores for dots."""
        dotted = {key.replace("_", "."): value for key, value in more.items()}
        return Producer({"bootstrap.servers": self.cluster.bootstrap, **dotted, **(config or {})})

    def machine(self, producer: Producer) -> Any:
        """The producer's machine."""
        return producer._core._hosted.machine
