"""A paced load in virtual time: Fairlead's real producer machine against the simulator's model
brokers, many simulated seconds in one.

Partitioner, batches, window and retries are real. The network is modelled, and so are a healthy
broker, which serves one request of a connection after another, and the client's own work, by the
constants below. So there is no noise, and a seed gives the same figures on every run; what a busy
machine adds to latencies is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from operator import attrgetter
from os import cpu_count
from random import Random

from fairlead_kafka.base.errors import ConfigError, TimedOut
from fairlead_kafka.base.json_types import Json, JsonObject
from fairlead_kafka.base.units import ms_to_ns, ns_to_ms
from fairlead_kafka.lab.held import Held, by_broker
from fairlead_kafka.lab.paced import split_figures
from fairlead_kafka.lab.pacing import Journal, Load
from fairlead_kafka.lab.peers.program import value_of
from fairlead_kafka.producer import Flush, ProducerMachine
from fairlead_kafka.runtime import Completion, VirtualHost
from fairlead_kafka.simulation import Application, ProduceCluster, SubmittedRecords

NETWORK_MS = 0.1
"""Network latency one way, ms."""
BROKER_REQUEST_MS, BROKER_BATCH_MS = 0.25, 0.015
"""Service time of a request and of each batch in it, ms; measured with Apache Kafka 4.3, warm,
acks=all, one request at a time on loopback.

Medians: 350 us for one batch, 430 for 6, 560 for 16, 1,010 for 43 and 2,500 for 128, of which some
50 are the network. Batches of 1 and of 6 records of 512 bytes differ by a tenth.
"""
CLIENT_REQUEST_MS, CLIENT_BATCH_MS, CLIENT_ANSWER_MS = 0.15, 0.025, 0.07
"""CPU time of our machine's steps, ms, fitted over loads of 1 to 128 batches a request; records
themselves do not show.
"""
POOL_PAYS_RECORDS = 20_000
"""Records from which on other processes pay: fewer are done before these have started."""
_REQUEST_NS, _BATCH_NS, _ANSWER_NS = (
    ms_to_ns(CLIENT_REQUEST_MS),
    ms_to_ns(CLIENT_BATCH_MS),
    ms_to_ns(CLIENT_ANSWER_MS),
)
_NOWHERE = -1
_READY_MS = 100.0
"""Milliseconds that connecting and learning the metadata take at most."""


DEAD, STARTED = "dead", "started"
"""Kinds of `BrokerEvent` beside the model broker's faults."""
KEYS = 3_000
"""Number of different keys of keyed records."""


@dataclass(frozen=True)
class BrokerEvent:
    """An event of a broker, `at_ms` after the load's start: it answers `delay_ms` late (serial,
    latency), or is dead or started.
    """

    at_ms: float
    broker: int
    kind: str
    delay_ms: float = 0.0


@dataclass(frozen=True)
class Stall:
    """A share of all Produce requests that take `duration_ms` longer, on any broker: a garbage
    collection, a page that is written.
    """

    share: float
    duration_ms: float


@dataclass(frozen=True)
class VirtualTask:
    """One virtual run: `config` of our producer, and broker 0 with a fault (one of
    `faulty_targets.FAULTS`) of `delay_ms`.

    Records go to `topics` topics in turn, of `partitions` each; `keyed_share` of them have keys.
    `events` are in the order of time, on any broker.
    """

    load: Load
    config: Mapping[str, Json]
    brokers: int = 3
    partitions: int = 3
    fault: str = "none"
    delay_ms: float = 0.0
    seed: int = 1
    topics: int = 1
    keyed_share: float = 0.0
    events: Sequence[BrokerEvent] = ()
    stall: Stall | None = None


class _Work:
    """Computes how long a producer's last step took, by the requests that it sent and the answers
    that it handled (`Handle.work_ns`)."""

    def __init__(self, machine: ProducerMachine) -> None:
        self._counted = machine.recorder.whole
        self._total_ns = 0

    def __call__(self) -> int:
        counted, before_ns = self._counted, self._total_ns
        self._total_ns = (
            counted.produce_requests * _REQUEST_NS
            + counted.batches_sent * _BATCH_NS
            + counted.answers * _ANSWER_NS
        )
        return self._total_ns - before_ns


class _Loaded:
    """A producer's application on a virtual host, which submits a load."""

    def __init__(self, task: VirtualTask) -> None:
        self._load = task.load
        self.host = VirtualHost(latency_ms=NETWORK_MS)
        self.cluster = ProduceCluster(self.host, task.brokers)
        self._topics = [f"load-{number}" for number in range(task.topics)]
        for topic in self._topics:
            self.cluster.create_topic(topic, task.partitions)
        for broker in self.cluster.brokers:
            broker.takes(BROKER_REQUEST_MS, BROKER_BATCH_MS)
            if task.stall is not None:
                broker.stalls(
                    task.stall.share, task.stall.duration_ms, Random(f"stalls {task.seed} {broker.node_id}")
                )
        if task.fault == "dead":
            self._bury(task)
        elif task.fault != "none":
            self.cluster.broker(0).slow(task.delay_ms, task.fault)
        config = {"bootstrap.servers": self.cluster.bootstrap_servers, **task.config}
        self.application = Application(self.host, config, Random(task.seed), self._completed)
        self.application.handle.work_ns = _Work(self.application.machine)
        self.journal = Journal(task.load, self.host.now_ns)
        self._value = value_of(task.load.record_size)
        self._keyed_share = task.keyed_share
        self._keys = [b"key-%d" % number for number in range(KEYS)]
        self._keys_rng = Random(f"keys {task.seed}")
        self._events = deque(sorted(task.events, key=attrgetter("at_ms")))
        self._started_ms = 0.0

    def _bury(self, task: VirtualTask) -> None:
        """Kill broker 0, so that its partitions, which have no other replica, have no leader."""
        self.cluster.broker(0).kill(elect=False)
        for partition in range(0, task.partitions, task.brokers):
            for topic in self._topics:
                self.cluster.move(topic, partition, _NOWHERE)

    def run(self) -> None:
        """Submit all records, and wait for them as long as the load allows."""
        self.host.advance(_READY_MS)
        self._started_ms = ns_to_ms(self.host.now_ns())
        self._advance(0)
        for pause_s, numbers in self._load.steps(self.host.now_ns):
            if pause_s:
                self._advance(pause_s * 1000)
                continue
            for number in numbers:
                self.journal.sent(number)
            topics = len(self._topics)
            for first in numbers[:topics]:
                self._submit(self._topics[first % topics], len(numbers[first - numbers[0] :: topics]))
            if self._load.flush:
                self._flush()
        with suppress(TimedOut):
            self._flush()  # as closing a producer does
        self.journal.end()

    def _submit(self, topic: str, count: int) -> None:
        """Submit `count` records, once there is memory for them.

        (Their order does not matter: those of one period are submitted at one time.)
        """
        keys = self._some_keys(count) if self._keyed_share else None
        while self.application.submit(topic, [self._value] * count, keys) is None:
            self.application.memory.wanted = True
            self._advance(1)
        self.application.memory.wanted = False

    def _some_keys(self, count: int) -> list[bytes | None]:
        rng = self._keys_rng
        return [rng.choice(self._keys) if rng.random() < self._keyed_share else None for _ in range(count)]

    def _advance(self, duration_ms: float) -> None:
        """Let `duration_ms` milliseconds pass, and apply the brokers' events that are due in
        them."""
        until_ms = ns_to_ms(self.host.now_ns()) + duration_ms
        while self._events and self._started_ms + self._events[0].at_ms <= until_ms:
            event = self._events.popleft()
            self.host.advance(max(self._started_ms + event.at_ms - ns_to_ms(self.host.now_ns()), 0))
            broker = self.cluster.broker(event.broker)
            if event.kind == DEAD:
                broker.kill()
            elif event.kind == STARTED:
                broker.start()
            else:
                broker.slow(event.delay_ms, event.kind)
        self.host.advance(max(until_ms - ns_to_ms(self.host.now_ns()), 0))

    def _flush(self) -> None:
        completion: Completion[None] = Completion()
        self.host.submit(self.application.handle, Flush(completion))
        self.host.run_until(completion.done, self._load.limit_s * 1000)

    def _completed(
        self,
        submission: SubmittedRecords,
        rows: Sequence[int],
        partition: int,
        base_offset: int,
        error: Exception | None,
    ) -> None:
        for row in rows:
            if error is None:
                self.journal.acked(submission.serial + row)
            else:
                self.journal.failed(submission.serial + row, error)

    def figures(self) -> JsonObject:
        """Figures with the keys of `peers.paced` and `paced.split_figures`, without CPU seconds."""
        partitions = [
            Held(one.leader, one.end_offset, len(one.batches), one.size_bytes)
            for topic in self._topics
            for one in self.cluster.log.topics[topic].partitions
        ]
        return {
            **self.journal.figures(),
            "requests": sum(machine.requests for machine in self.cluster.machines),
            **split_figures(by_broker(partitions, len(self.cluster.machines))),
        }


def virtual_load(task: VirtualTask) -> JsonObject:
    """Figures of one run, or {"skipped": why} if the config does not fit; requests are Produce
    requests served.
    """
    try:
        loaded = _Loaded(task)
    except ConfigError as error:
        return {"skipped": str(error)}
    loaded.run()
    return loaded.figures()


def virtual_loads(
    tasks: Sequence[VirtualTask], done: Callable[[int], None] = lambda count: None
) -> list[JsonObject]:
    """Figures of all runs, in their order, several at a time on as many processes as there are
    cores; `done` is called with the number done.
    """
    workers = min(cpu_count() or 1, len(tasks))
    if workers < 2 or sum(task.load.total for task in tasks) < POOL_PAYS_RECORDS:
        return [virtual_load(task) for task in tasks]
    found = []
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for figures in pool.map(virtual_load, tasks):
            found.append(figures)
            done(len(found))
    return found
