"""World `readers`: records are read in every way that clients have, while they are compacted,
deleted, damaged and lost.

Topic "states" is compacted, often and much, and markers and tombstones are removed within the
world's time; topic "events" is deleted from the front, at offsets within batches. All records have
keys, and timestamps of clocks that differ by minutes; most come in transactions. Readers of both
isolation levels read from offsets and ask for offsets by time all along and in the end; the checks
have the results that applications got.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead_kafka.broker.controller import CreateTopics, NewTopic
from fairlead_kafka.simulation.checking import check_all
from fairlead_kafka.simulation.cluster_faults import AMONG_THEM, APPEND_MS, ON_THE_CONTROLLER, SYNC_MS
from fairlead_kafka.simulation.delivery_checks import incomplete_or_late
from fairlead_kafka.simulation.drawing import draw_config
from fairlead_kafka.simulation.facts import Facts
from fairlead_kafka.simulation.faults import Faults
from fairlead_kafka.simulation.keyed_sender import COMPACTED, SKEWS_MS, KeyedSender, KeyedTransactionalSender
from fairlead_kafka.simulation.outcome import Outcome
from fairlead_kafka.simulation.reader import Look, Place, Reader
from fairlead_kafka.simulation.readers_faults import ANYWHERE, TOGETHER, ReadersFaults
from fairlead_kafka.simulation.reading_checks import check_final_looks, check_look
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.remade_topic import RemadeTopic
from fairlead_kafka.simulation.replica_logs import converge
from fairlead_kafka.simulation.trimmer import Trimmer
from fairlead_kafka.simulation.workload import RecordResult
from fairlead_kafka.simulation.world import World, unreleased_memory

EVENTS = "events"
BROKERS = (1, 2, 3, 3)
CONVERGENCE_MS = 15_000.0
LOOK_MS = 150.0
"""Mean time between two looks of one reader, ms."""
PATIENCE_MS = 2_500.0
TIMES_PER_LOOK = 2
TIMES_IN_THE_END = 10
TRANSACTIONAL_SHARE = 0.6
CONNECTIONS_MAX, DESCRIPTORS_MAX = 100, 150
"""Limits of one broker: connections that it accepts, and open descriptors of its process.

The difference is for files, and for its own connections to other brokers.
"""
REMADE_SEEDS = (3, 7, 9)
"""Last digits of seeds with a topic that is made again; canaries of other parts name other
seeds."""
REMADE_SALT = 0x4E3A
"""Makes the generator of that topic from the seed, so that the rest is drawn as without it."""
STILL_MS = 800.0
"""Milliseconds without a write within which everything is compacted that will be."""


class ReadersWorld(World):
    """One seed of world `readers`."""

    name = "readers"
    faults_max = 8
    kinds_among_them = (AMONG_THEM, ON_THE_CONTROLLER)
    producers_max = 4
    latencies_ms = (0.1, 1.0, 3.0)
    idle_steps_max = 2_000

    def build(self) -> int:
        """Start real brokers and create two topics, with readers."""
        rng = self.rng
        brokers = rng.choice(BROKERS)
        self.flushed = brokers == 1 or rng.random() < 0.5
        self.host.disk.sync_ms, self.host.disk.append_ms = SYNC_MS, APPEND_MS
        config = {
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.num.partitions": 1,
            "offsets.topic.replication.factor": brokers,
            "transaction.state.log.replication.factor": brokers,
            "transaction.state.log.min.isr": min(2, brokers),
            "default.replication.factor": brokers,
            "min.insync.replicas": min(2, brokers),
            "replica.lag.time.max.ms": rng.choice([150, 600]),
            "log.cleaner.backoff.ms": rng.choice([60, 150]),
            "log.cleaner.min.cleanable.ratio": 0.01,
            "log.flush.offset.checkpoint.interval.ms": 300,
            "broker.session.timeout.ms": 600,
            "broker.heartbeat.interval.ms": 150,
            "group.min.session.timeout.ms": 100,
            "group.initial.rebalance.delay.ms": 0,
            "max.connections": CONNECTIONS_MAX,
        }
        if self.flushed:
            config["log.flush.interval.messages"] = 1
        self.cluster = RealCluster(self.host, brokers, config, self.new_rng)
        self.host.disk.descriptors_max = DESCRIPTORS_MAX
        self.cluster.start()
        compacting = {"cleanup.policy": "compact", "delete.retention.ms": rng.choice(["100", "400"])}
        self._create(COMPACTED, 1, brokers, compacting)
        self._create(EVENTS, 2, brokers, {})
        self.addresses = [broker.address for broker in self.cluster.brokers]
        self.readers = [
            Reader(self.host, self.bootstrap_servers(), committed, self.new_rng())
            for committed in (False, True)
        ]
        self._reading = self.new_rng()
        self._looks_on = True
        self.trimmer = Trimmer(self.host, self.script, self.addresses, self.new_rng(), self._to_trim)
        self.remade: RemadeTopic | None = None
        if self.outcome.seed % 10 in REMADE_SEEDS:
            own_rng = Random(self.outcome.seed ^ REMADE_SALT)
            self.remade = RemadeTopic(self.host, self.script, self.cluster, own_rng, brokers)
        return brokers

    def _create(self, name: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        def created(result: Sequence[object] | None, error: Exception | None) -> None:
            failed = error or next((one for one in result or () if isinstance(one, Exception)), None)
            if failed is not None:
                raise failed

        self.cluster.controller.decide(
            CreateTopics([NewTopic(name, partitions, replicas, configs=configs)]), created
        )

    def add_producer(self, number: int) -> None:
        """Add a producer whose records have keys, with a config drawn from the rng."""
        rng = self.rng
        config = draw_config(rng) | {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": 30_000}
        config["bootstrap.servers"] = self.bootstrap_servers()
        sender: KeyedSender
        if rng.random() < TRANSACTIONAL_SHARE:
            config |= {
                "transactional.id": f"id-{number}",
                "transaction.timeout.ms": rng.choice([60_000, 60_000, 900]),
            }
            violated = self.outcome.violated
            sender = KeyedTransactionalSender(
                number, self.script, self.new_rng(), violated, self._start, self._draw_for
            )
            sender.offsets_topic = EVENTS
        else:
            sender = KeyedSender(number, self.script, self.new_rng(), self.outcome.violated)
        sender.skew_ms = rng.choice(SKEWS_MS)
        self.enter(sender, config)

    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for `bootstrap.servers`."""
        return self.cluster.bootstrap_servers

    def topics(self) -> Sequence[tuple[str, int]]:
        """Topics that producers send to, with the number of partitions of each."""
        return [(COMPACTED, 1), (EVENTS, 2)]

    def faults(self) -> Faults:
        """The object that injects the faults of the plan."""
        places, violated = (
            [(topic, index) for topic, count in self.topics() for index in range(count)],
            self.outcome.violated,
        )
        self.ills = ReadersFaults(
            self.scene(),
            self.cluster,
            self.flushed,
            places,
            violated,
        )
        return self.ills

    def kinds(self) -> Sequence[str]:
        """Kinds of faults that the plan is drawn from; one named twice comes twice as often."""
        return ANYWHERE if len(self.cluster.brokers) == 1 else TOGETHER

    # Life

    def _live(self) -> None:
        for reader in self.readers:
            self._look(reader)
        self.trimmer.begin()
        if self.remade is not None:
            self.remade.begin()
        super()._live()

    def _run_until_quiet(self) -> None:
        self._looks_on = False
        self.trimmer.finish()
        if self.remade is not None:
            self.remade.finish()
        super()._run_until_quiet()

    def _look(self, reader: Reader) -> None:
        """Have a reader look at some partition, and again a little later."""
        rng = self._reading
        if self._looks_on and reader.idle:
            topic, partitions = rng.choice(list(self.topics()))
            place = (topic, rng.randrange(partitions))
            newest = max((result.offset for result in self._results(place)), default=0)
            seek = 0 if rng.random() < 0.5 else rng.randrange(newest + 1)
            reader.look(place, seek, self._times(place, rng, TIMES_PER_LOOK), PATIENCE_MS)
        if self._looks_on:
            self.script.after(LOOK_MS * (0.5 + rng.random()), self._look, reader)

    def _results(self, place: Place) -> list[RecordResult]:
        """Results of all records that were acknowledged in this partition."""
        result = (result for sender in self.senders for result in sender.results)
        return [
            one
            for one in result
            if one.acknowledged and one.offset >= 0 and (one.topic, one.partition) == place
        ]

    def _times(self, place: Place, rng: Random, count: int) -> list[int]:
        """Times to ask for, ms: those of records that were written to the topic, or a little beside
        them.
        """
        written = [
            wrote.timestamp_ms
            for sender in self._keyed()
            for result, wrote in zip(sender.results, sender.wrote.values(), strict=False)
            if result.topic == place[0]
        ]
        return [rng.choice(written) + rng.choice([-1, 0, 1]) for _ in range(count)] if written else []

    def _keyed(self) -> list[KeyedSender]:
        return [sender for sender in self.senders if isinstance(sender, KeyedSender)]

    def _to_trim(self, rng: Random) -> tuple[Place, int] | None:
        place = (EVENTS, rng.randrange(2))
        offsets = sorted(result.offset for result in self._results(place))
        return (place, rng.choice(offsets[: 1 + len(offsets) // 2])) if offsets else None

    # Judgement

    def _check(self) -> None:
        violated = self.outcome.violated
        remade = [] if self.remade is None else self.remade.live_calmly()
        still = []
        for when in ("once all was well again", "after all brokers were killed and started once more"):
            for apart in converge(self.host, self.cluster, CONVERGENCE_MS, self.ills.rot.places()):
                violated(f"{CONVERGENCE_MS:g} ms {when}: {apart}")
            self.host.advance(STILL_MS)
            check_all(self.host)
            still += [self._look_at(place) for place in self.ills.places]
            for broker in self.cluster.brokers:
                broker.kill()
            self.host.run_until(lambda: not self.cluster.controller.image.alive(), CONVERGENCE_MS)
            self.cluster.start()
        facts = Facts(self._keyed(), self.trimmer.asked)
        found = [*facts.twice, *remade] + [
            what
            for looks in still
            for what in check_final_looks(looks, self.ills.rot.in_place(looks[0].place))
        ]
        found += [
            what for reader in self.readers for look in reader.looks for what in check_look(look, facts)
        ]
        found += [what for looks in still for what in self._untrimmed(looks[0])]
        if self.remade is not None:
            found += self.remade.violations(self._may_have_lost())
        for sender, promise in zip(self.senders, self._promises, strict=True):
            found += [*incomplete_or_late(sender, promise), *unreleased_memory(sender)]
        found += [
            f"broker {one.node_id} outlived {one.outlived} exceptions"
            for one in self.cluster.brokers
            if one.outlived
        ]
        if self.host.disk.without_descriptor:
            found.append(
                f"{self.host.disk.without_descriptor} times a broker had no descriptor left for a file"
            )
        for what in found:
            violated(what)
        looks = [look for reader in self.readers for look in reader.looks]
        self.outcome.note(
            f"{self.host.steps} {self.host.now_ns()} "
            f"{[(str(look), look.found, look.records) for look in looks]} {self.remade}"
        )

    def _look_at(self, place: Place) -> list[Look]:
        """Look at a partition from its start, with both isolation levels, and from behind each
        damaged batch."""
        rotten = self.ills.rot.in_place(place)
        looks = []
        for seek in (0, *(one.last_offset + 1 for one in rotten)):
            times = None if rotten else self._times(place, self._reading, TIMES_IN_THE_END)
            looks += [reader.look(place, seek, times, CONVERGENCE_MS) for reader in self.readers]
            self.host.run_until(lambda: all(reader.idle for reader in self.readers), 2 * CONVERGENCE_MS)
            for look in looks[-len(self.readers) :]:
                look.damage = (
                    not look.whole and look.position >= 0 and self.ills.rot.met(place, look.position)
                )
        return looks

    def _untrimmed(self, look: Look) -> list[str]:
        # That the log starts later is noted in the log; a broker that dies before the note is
        # written begins where it did before.
        done = 0 if self._may_have_lost() else self.trimmer.done.get(look.place, 0)
        return (
            [f"{look}: it was told that the log starts at {look.start}, but all before {done} was deleted"]
            if look.start < done
            else []
        )

    def _may_have_lost(self) -> bool:
        """Whether a disk may have lost what was written to it."""
        return bool(self.cluster.power_cuts) or any(fault.kind in ("hiccup", "full") for fault in self.plan)


def run_seed(seed: int) -> Outcome:
    """Run one seed of world `readers`."""
    return ReadersWorld(seed).run()
