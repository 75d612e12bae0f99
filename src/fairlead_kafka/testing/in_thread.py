"""A broker hosted by the cluster's own thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead_kafka.broker import (
    Broker,
    CallInStep,
    Controller,
    Faults,
    KillBroker,
    SetFaults,
    StartBroker,
    StopBroker,
)
from fairlead_kafka.broker.dispatch import Interceptor
from fairlead_kafka.broker.telemetry import Pushed
from fairlead_kafka.runtime import Completion, Handle, SelectorHost, thread_work_ns
from fairlead_kafka.testing.brokers import broker_transport, make_broker
from fairlead_kafka.testing.handles import TIMEOUT_S, Begun, Runner, Where


class BrokerInThread(Runner):
    """A broker on the cluster's own loop; each start is another machine."""

    def __init__(
        self, loop: SelectorHost, controller: Controller, where: Where, interceptor: Interceptor
    ) -> None:
        self._loop = loop
        self._interceptor = interceptor
        self._controller = controller
        self._where = where
        self._handle: Handle | None = None
        self._broker: Broker | None = None

    @property
    def running(self) -> bool:
        """True as long as the machine is on the loop."""
        return self._handle is not None and not self._handle.ended

    def begin(self, ports: Mapping[str, int], faults: Faults) -> Begun:
        """Start a broker machine on `ports`."""
        where = self._where
        broker = self._broker = make_broker(where.node_id, self._controller, where.folder, where.host, ports)
        broker.rack = where.rack
        broker.faults = faults
        broker.interceptor = self._interceptor
        broker.handler_clock = thread_work_ns
        handle = self._handle = self._loop.add(broker, broker_transport(broker, self._controller))
        broker.wake = lambda: self._loop.wake(handle)
        completion: Completion[Mapping[str, int]] = Completion()
        self._loop.submit(handle, StartBroker(completion))
        return completion

    def set_faults(self, faults: Faults) -> None:
        """Send the faults to the machine."""
        self._submit(lambda completion: SetFaults(faults, completion))

    def call_in_step(self, function: Callable[[], object]) -> None:
        """Have `function` called within a step of the machine, soon; not at all if it has ended."""
        if self._handle is not None:
            self._loop.submit(self._handle, CallInStep(function, Completion()))

    def client_pushes(self) -> list[Pushed]:
        """The last push of metrics of each client (KIP-714); none if the machine has ended."""
        found: list[Pushed] = []
        broker, handle = self._broker, self._handle
        if broker is None or handle is None or not self.running:
            return found
        completion: Completion[None] = Completion()
        self._loop.submit(handle, CallInStep(lambda: found.extend(broker.telemetry.pushed), completion))
        completion.result(TIMEOUT_S)
        return found

    def memory_use(self) -> None:
        """Return None: the broker has no process of its own."""
        return

    def stop(self) -> None:
        """Stop the machine in good order."""
        self._submit(StopBroker)

    def kill(self) -> None:
        """Stop the machine as `kill -9` would."""
        self._submit(KillBroker)

    def drop(self) -> None:
        """Remove the machine from the loop."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._loop.remove(handle)

    def _submit(self, made: Callable[[Completion[None]], StopBroker | KillBroker | SetFaults]) -> None:
        assert self._handle is not None
        completion: Completion[None] = Completion()
        self._loop.submit(self._handle, made(completion))
        completion.result(TIMEOUT_S)
