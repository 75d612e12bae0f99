"""Consumer and admin clients in virtual time, over a fake cluster."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.client.admin import Admin
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.runtime import VirtualHost
from tests.support.checked_clients import CheckedConsumer
from tests.support.fake_fetch_broker import FakeCluster
from tests.support.virtual_hosting import Opening


class Rig:
    """A virtual host with a fake cluster, and clients whose waits let virtual time go on.

    Their steps are driven as in production, so what is tested is the calls, the machine and the
    wire together.
    """

    def __init__(self, nodes: int = 1, latency_ms: float = 1.0) -> None:
        self.host = VirtualHost(latency_ms=latency_ms)
        self.cluster = FakeCluster(self.host, nodes)
        self.opener = Opening(self.host)

    def config(self, **configs: Any) -> dict[str, Any]:
        """Configs with underscores for dots."""
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            **{name.replace("_", "."): value for name, value in configs.items()},
        }

    def consumer(self, **configs: Any) -> Consumer:
        """A consumer of the cluster; configs have underscores for dots."""
        return CheckedConsumer(self.config(**configs), opener=self.opener)

    def admin(self, **configs: Any) -> Admin:
        """An admin client of the cluster; configs have underscores for dots."""
        return Admin(self.config(**configs), opener=self.opener)
