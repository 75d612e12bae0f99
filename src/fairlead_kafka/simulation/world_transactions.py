"""World `transactions`: real brokers, and transactional producers that follow the rules of Kafka's
Java client (`java_producer`).

Their transactions follow one another without a pause, some abort before any batch is sent, and some
outlive `transaction.timeout.ms`; brokers die, stop, and are cut off meanwhile. The checks are about
such an application: no batch and no end is answered with an error that would fail it, all that was
committed is there once and in order, nothing that was aborted, and once all is well again a
transaction is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import CreateTopics, NewTopic
from fairlead_kafka.runtime import Conditions, Handle, VirtualHost
from fairlead_kafka.simulation.checking import begin_checking, check_all
from fairlead_kafka.simulation.cluster_faults import (
    AMONG_THEM,
    APPEND_MS,
    CONFIGURING,
    ON_THE_CONTROLLER,
    SYNC_MS,
    ClusterFaults,
)
from fairlead_kafka.simulation.delivery_checks import Contents, contents_of, identify
from fairlead_kafka.simulation.fault_plan import Drawing, Place, among_them, described
from fairlead_kafka.simulation.faults import Scene
from fairlead_kafka.simulation.java_producer import Ended, JavaProducer
from fairlead_kafka.simulation.outcome import Outcome
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.replica_logs import converge, differences, read_log
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.transaction_checks import committed_records

NAME = "transactions"
TOPIC = "orders"
BROKERS, PARTITIONS = 3, 3
FAULTS_MAX = 7
STEPS_MAX = 300_000
PRODUCERS_MAX = 3
KINDS = (
    "cut", "reset", "reset", "weather", "slow", "kill", "kill", "stop", "stop", "power", "torn", "disk",
    "between", "isolate", "bad line", "prefer", "prefer", "reassign",
)  # fmt: skip
"""Kinds of faults; one named twice comes twice as often."""
TIMEOUTS_MS = (60_000, 600)
"""Values of transaction.timeout.ms: no transaction lasts as long as the first."""
FINISHING_MS = 20_000.0
"""Milliseconds in which an open transaction has to end once all is well."""
LAST_MS = 3_000.0
"""Milliseconds in which one more transaction has to be committed then."""
CONVERGENCE_MS = 15_000.0


class _TransactionsFaults(ClusterFaults):
    """Injects the faults of the world: clients are its producers."""

    def __init__(self, scene: Scene, cluster: RealCluster, producers: Sequence[JavaProducer]) -> None:
        super().__init__(scene, cluster, flushed=True)
        self._producers = producers

    def client_handles(self) -> Sequence[Handle]:
        """Handles of the producers."""
        return [producer.handle for producer in self._producers]


class TransactionsWorld:
    """One seed of world `transactions`."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.outcome = Outcome(NAME, seed)
        calm = Conditions(latency_ms=round(rng.choice([0.1, 1.0, 3.0]) * rng.random(), 3))
        self.host = VirtualHost(latency_ms=calm.latency_ms, rng=Random(rng.getrandbits(64)))
        self.host.steps_max = STEPS_MAX
        self.host.disk.sync_ms, self.host.disk.append_ms = SYNC_MS, APPEND_MS
        begin_checking(self.host, seed)
        script = Script(self.host)
        stage = Stage(self.host, script, self.outcome.violated)
        self.cluster = self._started(rng)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        self.producers = [
            JavaProducer(
                number,
                stage,
                self.cluster,
                partitions,
                rng.choice(TIMEOUTS_MS),
                Random(rng.getrandbits(64)),
            )
            for number in range(1 + rng.randrange(PRODUCERS_MAX))
        ]
        self._until_ms = 500.0 + 2_500.0 * rng.random()
        self._faults = _TransactionsFaults(
            Scene(self.host, script, [], calm, Random(rng.getrandbits(64))), self.cluster, self.producers
        )
        place = Place(len(self.producers), BROKERS, [(of.topic, of.partition) for of in partitions])
        drawn = Drawing(Random(rng.getrandbits(64)), place, self._until_ms).plan(KINDS, FAULTS_MAX)
        drawn += among_them(seed, (AMONG_THEM, ON_THE_CONTROLLER, CONFIGURING), place, self._until_ms)
        self._plan = sorted(drawn, key=lambda fault: fault.at_ms)
        self.outcome.faults = len(self._plan)
        self.outcome.plan = "\n".join([f"  {len(self.producers)} producers, {calm}", described(self._plan)])

    def _started(self, rng: Random) -> RealCluster:
        config: dict[str, object] = {
            "transaction.state.log.num.partitions": 2,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
            "default.replication.factor": BROKERS,
            "min.insync.replicas": 2,
            "replica.lag.time.max.ms": rng.choice([150, 600]),
            "log.flush.interval.messages": 1,
            "broker.session.timeout.ms": 600,
            "broker.heartbeat.interval.ms": 150,
        }
        distant = rng.random() < 0.5
        cluster = RealCluster(self.host, BROKERS, config, lambda: Random(rng.getrandbits(64)), distant)
        cluster.start()
        cluster.controller.decide(CreateTopics([NewTopic(TOPIC, PARTITIONS, BROKERS)]), self._created)
        return cluster

    def _created(self, result: object, error: Exception | None) -> None:
        assert isinstance(result, Sequence), error
        failed = next((one for one in result if isinstance(one, Exception)), None)
        if failed is not None:
            raise failed

    def run(self) -> Outcome:
        """Run the world from its seed, and check it in the end; returns the outcome."""
        with self.outcome.watching():
            self._live()
            self._check()
            check_all(self.host)
        self.outcome.steps = self.host.steps
        transactions = [one for producer in self.producers for one in producer.transactions]
        self.outcome.records = sum(len(one.batches) for one in transactions)
        self.outcome.acknowledged = sum(
            len(one.batches) for one in transactions if one.ended is Ended.COMMITTED
        )
        return self.outcome

    def _live(self) -> None:
        self._faults.plan(self._plan, self.host.now_ns())
        for producer in self.producers:
            producer.begin()
        self.host.advance(self._until_ms)
        self._faults.heal()
        for producer in self.producers:
            producer.finish()
        self._finish(FINISHING_MS, "has not ended its transaction")
        for producer in self.producers:
            if producer.finished:
                producer.commit_last()
        self._finish(LAST_MS, "has not committed one more transaction")

    def _finish(self, limit_ms: float, what: str) -> None:
        with suppress(TimedOut):
            self.host.run_until(lambda: all(producer.finished for producer in self.producers), limit_ms)
        for producer in self.producers:
            if not producer.finished:
                self.outcome.violated(f"{producer.name} {what} within {limit_ms:g} ms, though all is well")

    def _check(self) -> None:
        violated = self.outcome.violated
        for when in ("once all was well again", "after all brokers were killed and started once more"):
            for apart in converge(self.host, self.cluster, CONVERGENCE_MS):
                violated(f"{CONVERGENCE_MS:g} ms {when}: {apart}")
            if when.startswith("once"):
                for broker in self.cluster.brokers:
                    broker.kill()
                self.host.run_until(lambda: not self.cluster.controller.image.alive(), CONVERGENCE_MS)
                self.cluster.start()
        log = read_log(self.cluster, {TOPIC: PARTITIONS})
        contents: Contents = {(topic, index): contents_of(one) for topic, index, one in log.each()}
        seen, found = committed_records(log, contents)
        for producer in self.producers:
            found += check_transactions(producer, seen)
        for violation in [*differences(self.cluster), *found, *out_of_order(contents)]:
            violated(violation)
        self.outcome.note(f"{self.host.steps} {self.host.now_ns()} {contents}")


def check_transactions(producer: JavaProducer, seen: set[tuple[int, int]]) -> list[str]:
    """Transactions of a producer, as texts, whose records readers do not see as the transaction
    ended; `seen`: (producer, serial) of the records that a read_committed reader is given."""
    found = []
    for one in producer.transactions:
        visible = [batch.serial for batch in one.batches if (producer.number, batch.serial) in seen]
        wanted = [batch.serial for batch in one.batches] if one.ended is Ended.COMMITTED else []
        if visible != wanted and one.ended is not Ended.OPEN:
            found.append(
                f"{producer.name}: transaction {one.number} ({one.ended.value}) shows records {visible} "
                f"where {wanted} are expected"
            )
    return found


def out_of_order(contents: Contents) -> list[str]:
    """Records of a producer, as texts, that are twice in a partition, or before one that was sent
    earlier."""
    found = []
    for (topic, index), values in contents.items():
        last: dict[int, int] = {}
        for producer, serial in _identified(values):
            if serial <= last.get(producer, -1):
                found.append(
                    f"{topic}-{index}: record {serial} of java-{producer} comes after {last[producer]}"
                )
            last[producer] = serial
    return found


def _identified(values: Sequence[bytes | None]) -> Iterable[tuple[int, int]]:
    return (identify(value) for value in values if value is not None)


def run_seed(seed: int) -> Outcome:
    """Run one seed of world `transactions`."""
    return TransactionsWorld(seed).run()
