"""A producer in virtual time: its client APIs run on the calling thread, and waiting for anything
lets virtual time go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead_kafka.client.handles import Ack
from fairlead_kafka.client.producer import Producer
from fairlead_kafka.client.producer_core import ProducerCore
from fairlead_kafka.runtime import VirtualHost
from tests.support.producer_brokers import FakeCluster
from tests.support.virtual_hosting import Opening


class RigProducer(Producer):
    """A producer whose core a test may check, and drive as its client APIs do."""

    @property
    def core(self) -> ProducerCore[Ack]:
        """The core."""
        return self._core


class Rig:
    """A virtual host, a fake cluster, and producers whose waits drive the host."""

    def __init__(self, brokers: int = 1, **host: Any) -> None:
        self.host = VirtualHost(**host)
        self.cluster = FakeCluster(self.host, brokers)
        self.opener = Opening(self.host)

    def producer(self, config: Mapping[str, Any] | None = None, **more: Any) -> RigProducer:
        """A producer of this cluster; `more` has underscores for dots."""
        dotted = {key.replace("_", "."): value for key, value in more.items()}
        return RigProducer(
            {"bootstrap.servers": self.cluster.bootstrap, **dotted, **(config or {})}, opener=self.opener
        )

    def machine(self, producer: RigProducer) -> Any:
        """The producer's machine."""
        return producer.core.host.machine
