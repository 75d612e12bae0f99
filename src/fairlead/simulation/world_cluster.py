"""World `cluster`: real producers and real brokers, on a network and a disk that fail: kills, power cuts, restarts, slowness, cuts.

Everything is flushed before it is acknowledged (`log.flush.interval.messages=1`), the coordinators' own topics too, and nothing of it
may be lost whatever happens; only the topic "clicks" is not flushed, and must survive everything but a power cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead.runtime import Conditions, Handle, VirtualHost
from fairlead.simulation.fault_plan import Fault
from fairlead.simulation.faults import End, Faults
from fairlead.simulation.model_log import ModelLog
from fairlead.simulation.outcome import Outcome
from fairlead.simulation.real_cluster import RealBroker, RealCluster
from fairlead.simulation.script import Script
from fairlead.simulation.workload import Sender
from fairlead.simulation.world import World

KINDS = ("cut", "reset", "weather", "slow", "kill", "kill", "power", "power", "disk", "disk")
BROKERS_MAX = 3
PARTITIONS_MAX = 4
CONFIG = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2, "log.flush.interval.messages": 1}
SYNC_MS = 3.0
APPEND_MS = 0.05
"""How long a healthy disk takes."""
UNFLUSHED = {"flush.messages": str(2**63 - 1)}


class ClusterFaults(Faults):
    """The ill will of world `cluster`."""

    def __init__(
        self, host: VirtualHost, script: Script, cluster: RealCluster, senders: Sequence[Sender], calm: Conditions, dice: Random
    ) -> None:
        super().__init__(host, script, senders, calm, dice)
        self._cluster = cluster

    def broker_handles(self) -> Sequence[Handle]:
        """The brokers in their present lives."""
        return [broker.handle for broker in self._cluster.brokers]

    def heal(self) -> None:
        """Everything is well again."""
        super().heal()
        self._disk_heals()
        for broker in self._cluster.brokers:
            broker.slow()
            broker.start()

    def _broker(self, fault: Fault) -> RealBroker:
        number: int = fault["broker"]
        return self._cluster.brokers[number]

    def _slow(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.slow(*((fault["ms"], 0.0) if fault["fault"] == "serial" else (0.0, fault["ms"])))
        return broker.slow

    def _kill(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.kill()
        return broker.start

    def _power(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.kill(power=True)
        return broker.start

    def _disk(self, fault: Fault) -> End:
        disk = self._host.disk
        disk.sync_ms, disk.append_ms = fault["sync_ms"], fault["append_ms"]
        return self._disk_heals

    def _disk_heals(self) -> None:
        self._host.disk.sync_ms, self._host.disk.append_ms = SYNC_MS, APPEND_MS


class ClusterWorld(World):
    """One seed of the world."""

    name = "cluster"
    faults_max = 8
    producers_max = 2

    def build(self) -> int:
        """Real brokers, running, and two topics."""
        brokers = 1 + self.dice.randrange(BROKERS_MAX)
        self.host.disk.sync_ms, self.host.disk.append_ms = SYNC_MS, APPEND_MS
        self.cluster = RealCluster(self.host, brokers, CONFIG, self.new_dice)
        self.cluster.start()
        self._partitions = {name: 1 + self.dice.randrange(PARTITIONS_MAX) for name in ("orders", "clicks")}
        for name, count in self._partitions.items():
            self.cluster.controller.create_topic(name, count, configs=UNFLUSHED if name == "clicks" else {})
        return brokers

    def bootstrap_servers(self) -> str:
        """See `World`."""
        return self.cluster.bootstrap_servers

    def topics(self) -> Sequence[tuple[str, int]]:
        """See `World`."""
        return list(self._partitions.items())

    def faults(self) -> Faults:
        """See `World`."""
        return ClusterFaults(self.host, self.script, self.cluster, self.senders, self.calm, self.new_dice())

    def kinds(self) -> Sequence[str]:
        """See `World`."""
        return KINDS

    def durable_topics(self) -> Sequence[str]:
        """See `World`."""
        return ["orders"] if any(fault.kind == "power" for fault in self.plan) else ["orders", "clicks"]

    def log(self) -> ModelLog:
        """What the brokers have on disk: they are killed and started once more, so nothing they only remember counts."""
        for broker in self.cluster.brokers:
            broker.kill()
        self.host.advance(1.0)
        self.cluster.start()
        return self.cluster.read(self._partitions)


def run_seed(seed: int) -> Outcome:
    """Run one seed of world `cluster`."""
    return ClusterWorld(seed).run()
