"""Faults of world `cluster`: brokers die, stop, lose power or the time of day, and are cut off from
each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from errno import EIO, ENOSPC

from fairlead_kafka.broker.controller import (
    CLUSTER_WIDE,
    AlterBrokerConfigs,
    AlterOperation,
    AlterReassignments,
    AlterTopicConfigs,
    ConfigAlteration,
    ElectLeaders,
    Reassignment,
)
from fairlead_kafka.runtime import Handle
from fairlead_kafka.simulation.fault_plan import Fault
from fairlead_kafka.simulation.faults import End, Faults, Scene, conditions_of
from fairlead_kafka.simulation.real_cluster import HERE, RealBroker, RealCluster

ALONE = (
    "cut",
    "reset",
    "weather",
    "slow",
    "kill",
    "kill",
    "power",
    "power",
    "torn",
    "disk",
    "disk",
    "full",
    "clock",
)
"""Kinds of faults for a cluster of one broker. A kind that is named twice comes twice as often."""
TOGETHER = (
    *ALONE,
    "stop",
    "stop",
    "kill",
    "torn",
    "between",
    "between",
    "isolate",
    "isolate",
    "bad line",
    "blackout",
    "prefer",
    "reassign",
    "reassign",
)
"""Kinds of faults for a cluster of several brokers."""
DISTANT = (*TOGETHER, "cut off", "cut off")
"""Kinds of faults for several brokers whose controller is in another process."""
AMONG_THEM = ("held syncs", "held syncs", "read again")
"""Kinds of faults that some worlds have besides (`fault_plan.among_them`)."""
ON_THE_CONTROLLER = ("full metadata",)
"""Kinds of faults of the controller, which some worlds have besides."""
CONFIGURING = ("topic config", "broker config")
"""Kinds of changes of configs, which some worlds have besides."""
SYNC_MS = 3.0
APPEND_MS = 0.05
"""Milliseconds that an append takes on a healthy disk."""


def _heedless(_result: object, _error: Exception | None) -> None:
    """Ignore the result: a request may be refused, since brokers may be gone."""


class ClusterFaults(Faults):
    """Injects the faults of world `cluster`.

    `flushed`: every acknowledged record is synced, so any broker may lose power at any time.
    Otherwise a record is safe while one in-sync replica keeps its power: then a broker loses power
    only if each of its in-sync partitions has another in-sync replica; else it is merely killed.
    """

    def __init__(self, scene: Scene, cluster: RealCluster, flushed: bool) -> None:
        super().__init__(scene)
        self._cluster = cluster
        self._flushed = flushed
        self._to_end: list[Callable[[], None]] = []
        """Ends of what may be refused while the metadata log is full."""
        cluster.may_lose_power = self.may_lose_power

    def broker_handles(self) -> Sequence[Handle]:
        """Handles of the brokers as they run now."""
        return [broker.handle for broker in self._cluster.brokers]

    def heal(self) -> None:
        """End all faults."""
        super().heal()
        self._disk_heals()
        self._cluster.make_room()
        for end in self._to_end:
            end()
        self._cluster.heal_all()
        for one in self._cluster.brokers:
            for other in self._cluster.brokers[: one.node_id]:
                self._cluster.link(one.node_id, other.node_id).conditions = self._calm
            one.lose_power_after(0)
            self._host.disk.faults.heal(one.folder)
            self._host.disk.release_syncs(one.handle)
            one.slow()
            one.set_clock(0)
            one.start()

    def may_lose_power(self, broker: RealBroker) -> bool:
        """True if no promise is broken when the memory of `broker` is lost."""
        if self._flushed:
            return True
        in_sync = [
            image.isr
            for _, _, image in self._cluster.controller.image.partitions()
            if broker.node_id in image.isr
        ]
        return all(
            any(self._cluster.brokers[other].running for other in isr if other != broker.node_id)
            for isr in in_sync
        )

    def _broker(self, fault: Fault) -> RealBroker:
        number = fault.what["broker"]
        return self._cluster.brokers[number]

    # The kinds: each begins a fault and returns the function that ends it

    def _slow(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.slow(
            *((fault.what["ms"], 0.0) if fault.what["fault"] == "serial" else (0.0, fault.what["ms"]))
        )
        return broker.slow

    def _kill(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.kill()
        return broker.start

    def _stop(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.stop()
        return broker.start

    def _power(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.kill(power=self.may_lose_power(broker))
        return broker.start

    def _torn(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.lose_power_after(fault.what["effects"])

        def end() -> None:
            broker.lose_power_after(0)
            broker.start()

        return end

    def _blackout(self, fault: Fault) -> End:
        for broker in self._cluster.brokers:
            broker.kill(power=self._flushed)

        def end() -> None:
            for broker in self._cluster.brokers:
                broker.start()

        return end

    def _between(self, fault: Fault) -> End:
        one, other = fault.what["broker"], fault.what["other"]
        self._cluster.cut(one, other, {"both": None, "to one": one, "to other": other}[fault.what["way"]])

        return lambda: self._rejoin(one, [other], fault.what["lost"])

    def _isolate(self, fault: Fault) -> End:
        """Cut a broker off from all other brokers, and maybe from the controller."""
        alone = fault.what["broker"]
        others = [broker.node_id for broker in self._cluster.brokers if broker.node_id != alone]
        if fault.what["from controller"] and self._cluster.server is not None:
            others.append(HERE)
        for other in others:
            self._cluster.cut(alone, other)
        return lambda: self._rejoin(alone, others, fault.what["lost"])

    def _cut_off(self, fault: Fault) -> End:
        """Cut a broker off from the controller alone."""
        alone = fault.what["broker"]
        self._cluster.cut(
            alone, HERE, {"both": None, "to broker": alone, "to controller": HERE}[fault.what["way"]]
        )
        return lambda: self._rejoin(alone, [HERE], fault.what["lost"])

    def _rejoin(self, alone: int, others: Sequence[int], lost: bool) -> None:
        for other in others:
            if lost:
                self._cluster.link(alone, other).reset()  # TCP has given up: what was under way never arrives
            self._cluster.heal(alone, other)

    def _bad_line(self, fault: Fault) -> End:
        """Make the network between two brokers slow and lossy."""
        link = self._cluster.link(fault.what["broker"], fault.what["other"])
        link.conditions = conditions_of(fault)
        return lambda: setattr(link, "conditions", self._calm)

    def _prefer(self, fault: Fault) -> None:
        """Have every partition led by its preferred replica, where possible."""
        self._cluster.controller.decide(ElectLeaders(0, None), _heedless)

    def _reassign(self, fault: Fault) -> None:
        """Reassign a partition to as many brokers as it has: in another order, or other brokers."""
        controller = self._cluster.controller
        order = list(range(len(self._cluster.brokers)))
        self._rng.shuffle(order)
        image = controller.image.topics[fault.what["topic"]].partitions[fault.what["partition"]]
        move = Reassignment(fault.what["topic"], fault.what["partition"], order[: len(image.target_replicas)])
        controller.decide(AlterReassignments([move]), _heedless)

    def _clock(self, fault: Fault) -> End:
        broker = self._broker(fault)
        broker.set_clock(int(fault.what["ms"]))
        return lambda: broker.set_clock(0)

    def _disk(self, fault: Fault) -> End:
        disk = self._host.disk
        disk.sync_ms, disk.append_ms = fault.what["sync_ms"], fault.what["append_ms"]
        return self._disk_heals

    def _full(self, fault: Fault) -> End:
        """Fill one broker's disk: no space left."""
        faults, folder = self._host.disk.faults, self._broker(fault).folder
        faults.fail(folder, ENOSPC)
        return lambda: faults.heal(folder)

    def _full_metadata(self, fault: Fault) -> End:
        """Fill the disk of the metadata log: the controller can decide nothing."""
        self._cluster.metadata.full = True
        return self._cluster.make_room

    def _topic_config(self, fault: Fault) -> End:
        """Give a topic a config, and take it away when the fault ends."""
        return self._configure(AlterTopicConfigs, fault.what["topic"], fault.what["config"])

    def _broker_config(self, fault: Fault) -> End:
        """Give a broker, or all, a config, and take it away when the fault ends."""
        broker = fault.what["broker"]
        return self._configure(
            AlterBrokerConfigs, CLUSTER_WIDE if broker < 0 else str(broker), fault.what["config"]
        )

    def _configure(
        self, decision: type[AlterTopicConfigs] | type[AlterBrokerConfigs], name: str, config: str
    ) -> End:
        key, _equals, value = config.partition("=")
        decide = self._cluster.controller.decide

        def end() -> None:
            decide(decision(name, [ConfigAlteration(key, AlterOperation.DELETE)]), _heedless)

        decide(decision(name, [ConfigAlteration(key, AlterOperation.SET, value)]), _heedless)
        self._to_end.append(end)
        return end

    def _held_syncs(self, fault: Fault) -> End:
        """Let one broker's syncs wait until the fault ends, and at times fail then: what others
        were told meanwhile of the end of its log was not kept."""
        disk, handle = self._host.disk, self._broker(fault).handle
        disk.hold_syncs(handle)
        return lambda: disk.release_syncs(handle, EIO if fault.what["lost"] else None)

    def _read_again(self, fault: Fault) -> None:
        """Have a broker's coordinators read their logs again, as when their work raised."""
        self._broker(fault).read_again()

    def _disk_heals(self) -> None:
        self._host.disk.sync_ms, self._host.disk.append_ms = SYNC_MS, APPEND_MS
