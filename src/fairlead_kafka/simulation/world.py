"""Base of all worlds: producers send while faults begin and end; then calm, last records, and
checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer import Stop
from fairlead_kafka.runtime import Conditions, VirtualHost
from fairlead_kafka.simulation.application import Application
from fairlead_kafka.simulation.checking import begin_checking, check_all
from fairlead_kafka.simulation.delivery_checks import Contents, Promise, check_deliveries, contents_of
from fairlead_kafka.simulation.drawing import LATE, draw_config, draw_sending
from fairlead_kafka.simulation.fault_plan import Drawing, Fault, Place, among_them, described
from fairlead_kafka.simulation.faults import Faults, Scene
from fairlead_kafka.simulation.model_log import ModelLog
from fairlead_kafka.simulation.outcome import Outcome
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.transaction_checks import check_transactions, committed_records
from fairlead_kafka.simulation.transactional import TransactionalSender
from fairlead_kafka.simulation.workload import Completion, Sender, Sending

STEPS_MAX = 300_000
"""Steps that a seed may take at most; it takes some thousands."""
IDLE_MS = 3_000.0
BURST_MS = 20.0
TRANSACTIONAL_SHARE = 0.4
"""Share of idempotent producers that are transactional."""
FINISHING_MS = 20_000.0
"""Milliseconds in which an open transaction has to end once all is well."""
AFTERMATH_MS = 500.0


class World:
    """One seed of a world. Each world adds its cluster, its faults, and how its log is read."""

    name = ""
    faults_max = 14
    kinds_among_them: Sequence[Sequence[str]] = ()
    """Groups of kinds of faults that some worlds have besides (`fault_plan.among_them`)."""
    producers_max = 3
    latencies_ms = (0.1, 1.0, 10.0)
    """Upper bounds of a healthy network's latency one way, ms; a world draws one of these."""
    idle_steps_max = 200
    """Steps that all machines together may take in `IDLE_MS` without anything to do."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = Random(seed)
        self.outcome = Outcome(self.name, seed)
        self.calm = Conditions(latency_ms=round(rng.choice(self.latencies_ms) * rng.random(), 3))
        chunk_bytes = rng.choice([None, None, None, 37])
        self.host = VirtualHost(latency_ms=self.calm.latency_ms, chunk_bytes=chunk_bytes, rng=self.new_rng())
        self.host.steps_max = STEPS_MAX
        self.checks = begin_checking(self.host, seed)
        self.script = Script(self.host)
        self.senders: list[Sender] = []
        self.configs: list[dict[str, object]] = []
        self._promises: list[Promise] = []
        self._until_ms = 500.0 + 3_500.0 * rng.random()
        self.brokers = self.build()
        for number in range(1 + rng.randrange(self.producers_max)):
            self.add_producer(number)
        self._faults = self.faults()
        place = Place(
            len(self.senders),
            self.brokers,
            [(topic, index) for topic, count in self.topics() for index in range(count)],
        )
        drawn = Drawing(self.new_rng(), place, self._until_ms).plan(self.kinds(), self.faults_max)
        drawn += among_them(self.outcome.seed, self.kinds_among_them, place, self._until_ms)
        self.plan: list[Fault] = sorted(drawn, key=lambda fault: fault.at_ms)

    # What each world has of its own

    def build(self) -> int:
        """Make the cluster and its topics. Returns the number of brokers."""
        raise AssertionError("each world has its own cluster")

    def bootstrap_servers(self) -> str:
        """The cluster's `bootstrap.servers`, for the configurations of producers."""
        raise AssertionError("each world has its own cluster")

    def topics(self) -> Sequence[tuple[str, int]]:
        """Topics and the number of partitions that they have now."""
        raise AssertionError("each world has its own topics")

    def scene(self) -> Scene:
        """The parts of this world that faults use, with an rng of their own."""
        return Scene(self.host, self.script, self.senders, self.calm, self.new_rng())

    def faults(self) -> Faults:
        """The object that injects the faults of the plan."""
        raise AssertionError("each world has its own faults")

    def kinds(self) -> Sequence[str]:
        """Kinds of faults that this world may have."""
        raise AssertionError("each world has its own faults")

    def log(self) -> ModelLog:
        """The log of the world, to be read once the world has ended."""
        raise AssertionError("each world has its own log")

    def durable_topics(self) -> Sequence[str]:
        """The topics whose acknowledged records survive everything in the plan."""
        return [name for name, _ in self.topics()]

    def lasting_acks(self) -> Sequence[int]:
        """Values of `acks` whose acknowledged records are not lost with a leader, so that no offset
        is given out twice.
        """
        return (-1, 1)

    def committed_offsets(self) -> dict[str, dict[tuple[str, int], int]] | None:
        """Group → offsets of committed transactions; None: not checked."""
        return None

    def rest_ms(self) -> float:
        """Milliseconds without any record between the end of the plan and the last records."""
        return 0.0

    # Life

    def run(self) -> Outcome:
        """Run the world from its seed, and check it in the end; returns the outcome."""
        outcome = self.outcome
        outcome.faults, outcome.plan = len(self.plan), self._described()
        with outcome.watching():
            self._live()
            self._run_until_quiet()
            self._check()
            check_all(self.host)
        outcome.steps = self.host.steps
        outcome.records = sum(len(sender.results) for sender in self.senders)
        outcome.acknowledged = sum(
            result.acknowledged for sender in self.senders for result in sender.results
        )
        return outcome

    def new_rng(self) -> Random:
        """A new rng for one part of the world, so that a change elsewhere does not change its
        story.
        """
        return Random(self.rng.getrandbits(64))

    def add_producer(self, number: int) -> None:
        """Add a producer, with a config drawn from the rng."""
        rng = self.rng
        config = draw_config(rng)
        config["bootstrap.servers"] = self.bootstrap_servers()
        sender: Sender
        if config["enable.idempotence"] and rng.random() < TRANSACTIONAL_SHARE:
            config["transactional.id"] = f"id-{number}"
            config["transaction.timeout.ms"] = rng.choice([60_000, 60_000, 900])
            sender = TransactionalSender(
                number, self.script, self.new_rng(), self.outcome.violated, self._start, self._draw_for
            )
        else:
            sender = Sender(number, self.script, self.new_rng(), self.outcome.violated)
        self.enter(sender, config)

    def enter(self, sender: Sender, config: dict[str, object]) -> None:
        """Add a sender to the world, with a producer that has these configs."""
        self.senders.append(sender)
        self.configs.append(config)
        sender.attach(self._start(sender))
        settings = application_of(sender).machine.settings
        self._promises.append(
            Promise(
                completes_within_ms=settings.delivery_timeout_ms,
                durable=settings.acks == -1,
                once=settings.idempotent,
                ordered=settings.acks in self.lasting_acks() and settings.max_in_flight == 1,
                one_order=config["partitioner.class"] not in LATE,
            )
        )

    def _start(self, sender: Sender) -> Application:
        """Start a producer for `sender`: its first, or a new one."""
        application = Application(self.host, self.configs[sender.number], self.new_rng(), sender.completed)
        application.records = len(sender.results)
        return application

    def _draw_for(self, rng: Random, sender: Sender) -> Sending:
        return draw_sending(rng, self.topics(), int(0.8 * application_of(sender).memory.total_bytes))

    def _described(self) -> str:
        what = (
            f"  {self.brokers} brokers, topics "
            f"{', '.join(f'{name} ({count})' for name, count in self.topics())}, {self.calm}"
        )
        what += ", checked after every step" if self.checks else ""
        return "\n".join(
            [
                what,
                *(f"  producer {number}: {config}" for number, config in enumerate(self.configs)),
                described(self.plan),
            ]
        )

    def _live(self) -> None:
        begun_ns = self.host.now_ns()
        self._faults.plan(self.plan, begun_ns)
        for sender in self.senders:
            if isinstance(sender, TransactionalSender):
                sender.begin()
            else:
                self._plan_sendings(sender, begun_ns)
        self.host.advance(self._until_ms)
        self._faults.heal()

    def _plan_sendings(self, sender: Sender, begun_ns: int) -> None:
        rng, script = self.rng, self.script
        room = int(0.8 * application_of(sender).memory.total_bytes)
        for _ in range(3 + rng.randrange(30)):
            at_ns = begun_ns + ms_to_ns(rng.random() * self._until_ms)
            script.at(at_ns, sender.send, draw_sending(rng, self.topics(), room))
        burst_ms = rng.choice([0.0, rng.random() * self._until_ms])
        for _ in range(rng.choice([0, 12, 25])):
            sending = draw_sending(rng, self.topics()[:1], room)
            script.at(begun_ns + ms_to_ns(burst_ms + rng.random() * BURST_MS), sender.send, sending)
        for _ in range(rng.randrange(3)):
            script.at(begun_ns + ms_to_ns(rng.random() * self._until_ms), sender.flush)

    def _run_until_quiet(self) -> None:
        """Let incomplete records complete after all faults have ended, then send last records, all
        of which must be delivered."""
        violated = self.outcome.violated
        self.host.advance(max(_calming_ms(application_of(sender)) for sender in self.senders))
        for sender in self.senders:
            sender.finish()
        self._wait(lambda: all(sender.finished for sender in self.senders), FINISHING_MS)
        self.host.advance(self.rest_ms())
        last = [(sender, len(sender.results)) for sender in self.senders]
        for sender, _ in last:
            sender.send_last(draw_sending(self.rng, self.topics(), 1000))
        limit_ms = max(promise.completes_within_ms for promise in self._promises) + AFTERMATH_MS
        limit_ms += max(application_of(sender).settings["max.block.ms"] for sender in self.senders)
        self._wait(lambda: not any(sender.open for sender in self.senders), limit_ms)
        for sender, first in last:
            if not sender.finished:
                violated(
                    f"{sender.name}: is not done with what it does within {limit_ms:g} ms, though all is "
                    "well again"
                )
            for serial, result in enumerate(sender.results[first:], start=first):
                if result.error is not None:
                    violated(
                        f"{sender.name}: record {serial}, sent when all was well again, "
                        f"failed: {result.error}"
                    )
        self._idle()
        check_all(self.host)
        self._close()

    def _wait(self, done: Callable[[], bool], limit_ms: float) -> None:
        waited_ms = 0.0
        while waited_ms < limit_ms and not done():
            self.host.advance(50.0)
            waited_ms += 50.0

    def _idle(self) -> None:
        before = self.host.steps
        self.host.advance(IDLE_MS)
        taken = self.host.steps - before
        if taken > self.idle_steps_max:
            self.outcome.violated(f"{taken} steps were taken in {IDLE_MS:g} ms with nothing to do")

    def _close(self) -> None:
        ended: list[int] = []
        for sender in self.senders:
            application = application_of(sender)
            stop = Stop(Completion(_noting(ended, sender.number)), "the world ends")
            self.host.submit(application.handle, stop)
        self.host.advance(10.0)
        if len(ended) != len(self.senders):
            self.outcome.violated(f"of {len(self.senders)} producers only {sorted(ended)} could be closed")

    # Judgement

    def _check(self) -> None:
        outcome, log, durable = self.outcome, self.log(), self.durable_topics()
        contents: Contents = {
            (topic, index): contents_of(partition) for topic, index, partition in log.each()
        }
        seen, found = committed_records(log, contents)
        offsets = self.committed_offsets()
        for sender, promise in zip(self.senders, self._promises, strict=True):
            found += check_deliveries(sender, promise, contents, durable)
            if isinstance(sender, TransactionalSender):
                found += check_transactions(sender, seen, offsets, durable)
            found += unreleased_memory(sender)
            for result in sender.results:
                outcome.note(f"{result.completed_ns} {result.partition} {result.offset} {result.error}")
        for violation in found:
            outcome.violated(violation)
        outcome.note(f"{self.host.steps} {self.host.now_ns()} {contents}")


def application_of(sender: Sender) -> Application:
    """The sender's application as it is now."""
    assert sender.application is not None
    return sender.application


def unreleased_memory(sender: Sender) -> list[str]:
    """Violations, as texts: bytes of buffer.memory that a sender's producer did not give back, and
    counters that do not fit."""
    memory, machine = application_of(sender).memory, application_of(sender).machine
    found = []
    if memory.free_bytes != memory.total_bytes:
        found.append(
            f"{sender.name}: {memory.total_bytes - memory.free_bytes} bytes of buffer.memory never came back"
        )
    if machine.records_open:
        found.append(
            f"{sender.name}: counts {machine.records_open} records as open, though all are completed"
        )
    return found


def _noting(ended: list[int], number: int) -> Callable[[object, Exception | None], None]:
    return lambda _value, _error: ended.append(number)


def _calming_ms(application: Application) -> float:
    """Milliseconds after the last fault during which after-effects may still show."""
    settings = application.settings
    names = (
        "request.timeout.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.max.ms",
        "socket.connection.setup.timeout.max.ms",
    )
    return sum(settings.integer(name) for name in names) * 1.3 + AFTERMATH_MS
