"""What goes wrong in world `readers`: what does in world `cluster`, and what befalls disks and connections beyond that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from errno import EIO, ENOSPC
from random import Random

from fairlead_kafka.base.limits import OUTBOUND_MAX_BYTES
from fairlead_kafka.runtime import Conditions, VirtualHost
from fairlead_kafka.runtime.virtual_network import SOCKET_BUFFER_BYTES
from fairlead_kafka.simulation.bad_clients import Crowd, Deaf
from fairlead_kafka.simulation.cluster_faults import ClusterFaults
from fairlead_kafka.simulation.fault_plan import Fault
from fairlead_kafka.simulation.faults import End
from fairlead_kafka.simulation.long_ids import LongIds
from fairlead_kafka.simulation.reader import Place
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.rot import Rot
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Sender

ANYWHERE = ("reset", "kill", "torn", "disk", "full", "clock", "hiccup", "hiccup", "hiccup", "pages", "rot", "crowd", "deaf", "long ids")
"""What may happen to a broker that has no others."""
TOGETHER = (*ANYWHERE, "stop", "kill", "power", "between", "isolate", "prefer", "prefer", "blackout")
"""And to several."""
PERIOD_MS = 50.0
"""How often it is looked how much waits for those that do not read."""
ANSWER_MAX_BYTES = 1 << 19
"""More than all that the partitions of a world hold."""
UNREAD_MAX_BYTES = OUTBOUND_MAX_BYTES + SOCKET_BUFFER_BYTES + ANSWER_MAX_BYTES
"""So much may wait for one of them: an answer is begun while no more than the bound is on its way."""


class ReadersFaults(ClusterFaults):
    """The ill will of world `readers`. `places`: partitions that rot, and that are asked for."""

    def __init__(
        self,
        host: VirtualHost,
        script: Script,
        cluster: RealCluster,
        senders: Sequence[Sender],
        calm: Conditions,
        rng: Random,
        flushed: bool,
        places: Sequence[Place],
        violated: Callable[[str], None],
    ) -> None:
        super().__init__(host, script, cluster, senders, calm, rng, flushed)
        self.places = places
        self._violated = violated
        self._long_named = LongIds(host, [broker.address for broker in cluster.brokers])
        self.rot = Rot(host, cluster, tuple({topic: None for topic, _ in places}), rng)

    def _hiccup(self, fault: Fault) -> None:
        """One broker's writes fail, midway, and soon succeed again."""
        faults, folder = self._host.disk.faults, self._broker(fault).folder
        faults.fail(folder, {"full": ENOSPC, "broken": EIO}[fault["how"]])
        self._script.after(fault["ms"], faults.heal, folder)

    def _pages(self, fault: Fault) -> End:
        """A power cut after which some pages are there and earlier ones are not."""
        broker = self._broker(fault)
        broker.kill(power=self.may_lose_power(broker), pages=True)
        return broker.start

    def _rot(self, fault: Fault) -> End:
        """A byte of an old batch is another one when the broker starts again."""
        broker = self._broker(fault)
        broker.kill()

        def end() -> None:
            if not broker.running:
                self.rot.begin(broker)
            broker.start()

        return end

    def _crowd(self, fault: Fault) -> End:
        """Connections come that nobody uses."""
        return Crowd(self._host, self._broker(fault).address, fault["connections"]).disperse

    def _deaf(self, fault: Fault) -> End:
        """Somebody asks and does not read."""
        broker = self._broker(fault)
        deaf = Deaf(self._host, broker.address, self.places, fault["requests"])
        self._listen(deaf)
        return deaf.leave

    def _listen(self, deaf: Deaf) -> None:
        unread_bytes = deaf.unread_bytes()
        if unread_bytes > UNREAD_MAX_BYTES:
            self._violated(f"{unread_bytes} bytes wait for a client that does not read")
        elif not deaf.left:
            self._script.after(PERIOD_MS, self._listen, deaf)

    def _long_ids(self, fault: Fault) -> None:
        """Somebody has names of such a length for everything."""
        self._long_named.begin(fault["length"])
