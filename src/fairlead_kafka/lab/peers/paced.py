"""Runs one client under a paced load: `python -m fairlead_kafka.lab.peers.paced JSON`, JSON being a
`Task`; prints one line of JSON.

Garbage that the imports left is collected and set aside before the load starts; the collector then
runs as in any program. `lab.pacing` defines a record's latency. `requests` is null if a client does
not report its requests.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.lab.bounded import report_where_on_request
from fairlead_kafka.lab.pacing import Journal, Load
from fairlead_kafka.lab.peers.program import value_of

MODULES = {
    "fairlead": "fairlead_kafka.lab.peers.paced_ours",
    "confluent-kafka": "fairlead_kafka.lab.peers.paced_confluent",
    "kafka-python": "fairlead_kafka.lab.peers.paced_pure_python",
    "aiokafka": "fairlead_kafka.lab.peers.paced_pure_python",
}
DRAIN_S = 10.0
"""Least time that submitted records have to be acknowledged, s; the load's limit may leave more."""


@dataclass(frozen=True)
class Task:
    """One client's run: `config` has Kafka's keys, with dots, beside `bootstrap.servers` and
    `acks=all`.
    """

    system: str
    bootstrap_servers: str
    topic: str
    load: Load
    config: JsonObject = field(default_factory=dict)

    def to_json(self) -> str:
        """The task as JSON, for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task that `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "load": Load(**fields["load"])})


class Run:
    """One run of a client under a paced load: the value to send, the journal, CPU seconds."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.value = value_of(task.load.record_size)
        self.journal = Journal(task.load, time.perf_counter_ns)
        self.requests: int | None = None
        """Number of requests, set by a client that knows it."""
        self._cpu_s = self._started_s = 0.0

    def begin(self) -> None:
        """Note that the client is connected and warm: from here on its CPU seconds count."""
        gc.collect()
        gc.freeze()
        self._cpu_s, self._started_s = time.process_time(), time.perf_counter()

    def end(self) -> None:
        """Note that every record is acknowledged or given up."""
        self.journal.end()
        self.cpu_s = time.process_time() - self._cpu_s

    def left_s(self) -> float:
        """Seconds that acknowledgements may still be waited for."""
        return max(DRAIN_S, self.task.load.limit_s - (time.perf_counter() - self._started_s))

    def submit_due(self, send: Callable[[int], None], flush: Callable[[], object]) -> None:
        """Call `send` with each record's number when it is due, and `flush` after each period if
        the load says so."""
        for pause_s, numbers in self.task.load.steps(time.perf_counter_ns):
            if pause_s:
                time.sleep(pause_s)
                continue
            for number in numbers:
                send(number)
            if self.task.load.flush:
                flush()

    def figures(self) -> JsonObject:
        """The run's figures, as they are printed."""
        return {**self.journal.figures(), "requests": self.requests, "cpu_s": round(self.cpu_s, 3)}


def main(text: str) -> None:
    """Run the client and print its figures."""
    run = Run(Task.from_json(text))
    system = run.task.system
    getattr(import_module(MODULES[system]), f"paced_{system.replace('-', '_')}")(run)
    print(json.dumps(run.figures()), flush=True)


if __name__ == "__main__":
    report_where_on_request()
    main(sys.argv[1])
