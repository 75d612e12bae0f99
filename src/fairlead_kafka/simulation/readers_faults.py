"""Faults of world `readers`: those of world `cluster`, and more of disks and connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from errno import EIO, ENOSPC

from fairlead_kafka.base.limits import OUTBOUND_MAX_BYTES
from fairlead_kafka.runtime.virtual_network import SOCKET_BUFFER_BYTES
from fairlead_kafka.simulation.bad_clients import Crowd, Deaf
from fairlead_kafka.simulation.cluster_faults import ClusterFaults
from fairlead_kafka.simulation.fault_plan import Fault
from fairlead_kafka.simulation.faults import End, Scene
from fairlead_kafka.simulation.long_ids import LongIds
from fairlead_kafka.simulation.reader import Place
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.rot import Rot

ANYWHERE = (
    "reset",
    "kill",
    "torn",
    "disk",
    "full",
    "clock",
    "hiccup",
    "hiccup",
    "hiccup",
    "pages",
    "rot",
    "crowd",
    "deaf",
    "long ids",
)
"""Kinds of faults for a cluster of one broker. A kind that is named twice comes twice as often."""
TOGETHER = (*ANYWHERE, "stop", "kill", "power", "between", "isolate", "prefer", "prefer", "blackout")
"""Kinds of faults for a cluster of several brokers."""
PERIOD_MS = 50.0
"""Milliseconds between checks of how many bytes wait for clients that do not read."""
ANSWER_MAX_BYTES = 1 << 19
"""Bytes of an answer at most: more than all that the partitions of a world hold."""
UNREAD_MAX_BYTES = OUTBOUND_MAX_BYTES + SOCKET_BUFFER_BYTES + ANSWER_MAX_BYTES
"""Bytes that may wait for one client that does not read: an answer is begun while no more than
OUTBOUND_MAX_BYTES are on their way."""


class ReadersFaults(ClusterFaults):
    """Injects the faults of world `readers`.

    `places`: partitions whose batches rot, and that `Deaf` clients fetch.
    """

    def __init__(
        self,
        scene: Scene,
        cluster: RealCluster,
        flushed: bool,
        places: Sequence[Place],
        violated: Callable[[str], None],
    ) -> None:
        super().__init__(scene, cluster, flushed)
        self.places = places
        self._violated = violated
        self._long_named = LongIds(scene.host, [broker.address for broker in cluster.brokers])
        self.rot = Rot(scene.host, cluster, tuple({topic: None for topic, _ in places}), scene.rng)

    def _hiccup(self, fault: Fault) -> None:
        """Make one broker's writes fail midway, and succeed again soon after."""
        faults, folder = self._host.disk.faults, self._broker(fault).folder
        faults.fail(folder, {"full": ENOSPC, "broken": EIO}[fault.what["how"]])
        self._script.after(fault.what["ms"], faults.heal, folder)

    def _pages(self, fault: Fault) -> End:
        """Cut the power so that some pages are on disk and earlier ones are not."""
        broker = self._broker(fault)
        broker.kill(power=self.may_lose_power(broker), pages=True)
        return broker.start

    def _rot(self, fault: Fault) -> End:
        """Change one byte of an old batch before the broker starts again."""
        broker = self._broker(fault)
        broker.kill()

        def end() -> None:
            if not broker.running:
                self.rot.begin(broker)
            broker.start()

        return end

    def _crowd(self, fault: Fault) -> End:
        """Open connections that nobody uses."""
        return Crowd(self._host, self._broker(fault).address, fault.what["connections"]).disperse

    def _deaf(self, fault: Fault) -> End:
        """Send requests from a client that does not read the answers."""
        broker = self._broker(fault)
        deaf = Deaf(self._host, broker.address, self.places, fault.what["requests"])
        self._listen(deaf)
        return deaf.leave

    def _listen(self, deaf: Deaf) -> None:
        unread_bytes = deaf.unread_bytes()
        if unread_bytes > UNREAD_MAX_BYTES:
            self._violated(f"{unread_bytes} bytes wait for a client that does not read")
        elif not deaf.left:
            self._script.after(PERIOD_MS, self._listen, deaf)

    def _long_ids(self, fault: Fault) -> None:
        """Use names of the length that the fault says for groups, transactions and topics."""
        self._long_named.begin(fault.what["length"])
