"""Brokers on one virtual clock that reach their controller over the network, as brokers in
processes of their own do."""

from __future__ import annotations

import random
from typing import Any

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker import Broker, Controller, Faults, KillBroker, SetFaults, StartBroker, StopBroker
from fairlead_kafka.broker.control import ControllerServer, OpenController, RemoteController
from fairlead_kafka.runtime import Completion, Handle, VirtualHost

CONTROLLER_PORT = 9000
FIRST_PORT = 9092
TOKEN = "a token"


class RemoteCluster:
    """A controller's server and `brokers` brokers, all started. `lines` is the metadata log as it
    was written."""

    def __init__(self, brokers: int = 3, config: dict[str, Any] | None = None) -> None:
        self.host = VirtualHost(latency_ms=1)
        self.settings = BROKER_CONFIGS.parse("broker", config or {})
        self.lines: list[bytes] = []
        self.controller = Controller(self.settings, random.Random(7), self.lines.append)
        self.server = ControllerServer(self.controller, TOKEN, port=CONTROLLER_PORT)
        self.serving = self.host.add(self.server)
        self.server.wake = lambda: self.host.wake(self.serving)
        self.views: dict[int, RemoteController] = {}
        self.brokers: dict[int, Broker] = {}
        self.handles: dict[int, Handle] = {}
        opened = Completion()
        self.host.submit(self.serving, OpenController(opened))
        self.host.run_until(opened.done)
        assert opened.result(0) == CONTROLLER_PORT
        for node_id in range(brokers):
            self.start(node_id).result(0)

    def start(self, node_id: int, token: str = TOKEN) -> Completion:
        """Start a broker, and wait until it has or could not."""
        view = self.views[node_id] = RemoteController(self.settings, "127.0.0.1", CONTROLLER_PORT, token)
        broker = self.brokers[node_id] = Broker(
            node_id, view, f"/data/{node_id}", random.Random(node_id), port=FIRST_PORT + node_id
        )
        handle = self.handles[node_id] = self.host.add(broker)
        broker.wake = lambda: self.host.wake(handle)
        return self.submit(node_id, StartBroker(Completion()))

    def submit(
        self, node_id: int, operation: StartBroker | StopBroker | KillBroker | SetFaults
    ) -> Completion:
        self.host.submit(self.handles[node_id], operation)
        completion: Completion = operation.completion
        self.host.run_until(completion.done)
        return completion

    def faults(self, node_id: int, faults: Faults) -> None:
        self.submit(node_id, SetFaults(faults, Completion())).result(0)

    def die(self, node_id: int) -> None:
        """As `kill -9`: the host closes its connections, and that is all that anybody hears."""
        self.host.remove(self.handles[node_id])

    def decide(self, node_id: int, decision: Any) -> Answer:
        """Have a broker ask for a decision, in a step of its own."""
        answer = Answer(self.views[node_id])
        broker = self.brokers[node_id]
        broker.call_at(broker.now_ns, lambda: self.views[node_id].decide(decision, answer))
        broker.wake()
        self.host.advance(0)
        return answer

    def decided(self, node_id: int, decision: Any) -> Answer:
        """The same, and wait for the answer."""
        answer = self.decide(node_id, decision)
        self.host.run_until(lambda: answer.told)
        return answer


class Answer:
    """What came of a decision, and what the broker's image held at that moment."""

    def __init__(self, view: RemoteController) -> None:
        self.told = 0
        self.result: Any = None
        self.error: BrokerError | None = None
        self.topics: list[str] = []
        self._view = view

    def __call__(self, result: Any, error: BrokerError | None) -> None:
        self.told += 1
        self.result, self.error, self.topics = result, error, list(self._view.image.topics)
