"""Injects the faults of a plan.

All worlds share those of the network between applications and brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.runtime import Conditions, Handle, VirtualHost, VirtualLink
from fairlead_kafka.simulation.application import Application
from fairlead_kafka.simulation.fault_plan import Fault
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Sender

End = Callable[[], None]
"""A function that ends a fault."""


class Scene(NamedTuple):
    """A world as faults need it: its host, script, senders and rng."""

    host: VirtualHost
    script: Script
    senders: Sequence[Sender]
    calm: Conditions
    """Conditions of the network without faults."""
    rng: Random


def conditions_of(fault: Fault) -> Conditions:
    """Conditions of a link in a fault of the kind "weather" or "bad line"."""
    what = fault.what
    return Conditions(
        latency_ms=what["latency_ms"],
        jitter_ms=what["jitter_ms"],
        loss=what["loss"],
        resets=what["resets"],
        bytes_per_ms=what["bytes_per_ms"],
    )


class Faults:
    """Injects the faults of a world.

    A fault of the kind "small batches" is begun by the method `_small_batches`, which returns the
    function that ends it.
    """

    def __init__(self, scene: Scene) -> None:
        self._host, self._script, self._senders, self._calm, self._rng = scene

    def broker_handles(self) -> Sequence[Handle]:
        """Handles of the brokers, as they are now."""
        raise AssertionError("each world has its own brokers")

    @property
    def applications(self) -> list[Application]:
        """The applications as they are now: some are replaced when they die."""
        return [sender.application for sender in self._senders if sender.application is not None]

    def client_handles(self) -> Sequence[Handle]:
        """Handles of the clients whose network may fail, as they are now."""
        return [application.handle for application in self.applications]

    def plan(self, faults: Sequence[Fault], begun_ns: int) -> None:
        """Plan the begin and the end of every fault; times count from `begun_ns` (ns, virtual
        clock)."""
        for fault in faults:
            self._script.at(begun_ns + ms_to_ns(fault.at_ms), self._begin, fault)

    def heal(self) -> None:
        """End all faults of the network."""
        for client in self.client_handles():
            for broker in self.broker_handles():
                link = self._host.link(client, broker)
                link.conditions = self._calm
                link.heal()

    def _begin(self, fault: Fault) -> None:
        end = getattr(self, f"_{fault.kind.replace(' ', '_')}")(fault)
        if end is not None:
            self._script.after(fault.lasts_ms, end)

    def _link(self, fault: Fault) -> VirtualLink:
        return self._host.link(
            self.client_handles()[fault.what["client"]], self.broker_handles()[fault.what["broker"]]
        )

    # The kinds: each begins a fault and returns the function that ends it

    def _cut(self, fault: Fault) -> End:
        toward = {
            "both": None,
            "to broker": self.broker_handles()[fault.what["broker"]],
            "to client": self.client_handles()[fault.what["client"]],
        }
        link = self._link(fault)
        link.cut(toward[fault.what["way"]])

        def end() -> None:
            if fault.what["lost"]:
                link.reset()  # TCP has given up: what was under way never arrives
            link.heal()

        return end

    def _reset(self, fault: Fault) -> None:
        self._link(fault).reset()

    def _weather(self, fault: Fault) -> End:
        link = self._link(fault)
        link.conditions = conditions_of(fault)
        return lambda: setattr(link, "conditions", self._calm)
