"""World `cluster`: real producers and real brokers, replicating, on networks and disks that fail.

Brokers are killed, stopped, cut from power between a write and its sync, cut from each other; their
clocks go wrong. Partitions have three replicas and `min.insync.replicas` is 2 (a world of one
broker has one of each, and flushes). One world in two flushes before it acknowledges
(`log.flush.interval.messages=1`), and nothing acknowledged may be lost whatever happens, but for
the topic "clicks", which is not flushed; the others flush nothing, and rely on replication.

In half of all worlds the brokers compact, often and much: the topic "states", and the internal
ones.

In two worlds of five, groups read what is sent (`groups`): consumers of both protocols, which die,
hang, are cut off, come back, and change protocol and subscription, while brokers fail.

In three worlds of ten, share groups read it (`shares`), and two topics that lose records: the
compacted one, and "jobs" (`share_jobs`), of which records are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead_kafka.broker.controller import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    CreateTopics,
    NewTopic,
)
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.simulation.checking import check_sometimes
from fairlead_kafka.simulation.cluster_faults import (
    ALONE,
    AMONG_THEM,
    APPEND_MS,
    CONFIGURING,
    DISTANT,
    ON_THE_CONTROLLER,
    SYNC_MS,
    TOGETHER,
    ClusterFaults,
)
from fairlead_kafka.simulation.committer import Committer
from fairlead_kafka.simulation.delivery_checks import contents_of
from fairlead_kafka.simulation.faults import Faults
from fairlead_kafka.simulation.former_lives import FormerLives
from fairlead_kafka.simulation.group_checks import check_group, check_log, check_output, visible_offsets
from fairlead_kafka.simulation.group_ledger import labels_in
from fairlead_kafka.simulation.group_story import draw_groups
from fairlead_kafka.simulation.groups import Groups
from fairlead_kafka.simulation.keyed_writer import CONFIGS, TOPIC, KeyedWriter
from fairlead_kafka.simulation.model_log import ModelLog
from fairlead_kafka.simulation.outcome import Outcome
from fairlead_kafka.simulation.process import Stage
from fairlead_kafka.simulation.real_cluster import RealCluster
from fairlead_kafka.simulation.replica_logs import converge, differences, parted, read_log
from fairlead_kafka.simulation.share_jobs import PARTITIONS as JOBS_PARTITIONS
from fairlead_kafka.simulation.share_jobs import TOPIC as JOBS
from fairlead_kafka.simulation.share_jobs import Jobs
from fairlead_kafka.simulation.share_story import draw_shares
from fairlead_kafka.simulation.shares import Shares, check_shares
from fairlead_kafka.simulation.transactional import TransactionalSender
from fairlead_kafka.simulation.watcher import Watcher
from fairlead_kafka.simulation.world import World

BROKERS = (1, 3, 3, 3, 3, 3, 4)
PARTITIONS_MAX = 3
IDLE_STEPS_MAX = 800
"""Steps that a broker takes in `IDLE_MS` without anything to do: followers and consumers fetch
again and again. With four brokers each answers three others, and some 490 were seen; one alone with
several groups took 718 (seed 358)."""
REPLICAS = 3
LAGS_MS = (150, 600, 3_000)
CONVERGENCE_MS = 15_000.0
"""Milliseconds within which every replica is in sync with its leader, once all is well."""
OFFSETS_PARTITIONS = 2
NEVER = str(2**63 - 1)
GROUPS_SALT, SHARES_SALT = 0x6707, 0x5A4E
"""Make the generators of a seed's groups, and of its share groups."""


class ClusterWorld(World):
    """One seed of world `cluster`."""

    name = "cluster"
    faults_max = 9
    kinds_among_them = (AMONG_THEM, ON_THE_CONTROLLER, CONFIGURING)
    producers_max = 2
    latencies_ms = (0.1, 1.0, 3.0)
    """Upper bounds of the latency one way, ms: a record goes back and forth twice before it is
    acknowledged, and some producers send a dozen one by one within half a second.
    """

    def build(self) -> int:
        """Start real brokers and create two topics, with a watcher and a committer."""
        rng = self.rng
        self.compacts = self.outcome.seed % 4 in (2, 3)
        brokers = rng.choice(BROKERS)
        self.idle_steps_max = IDLE_STEPS_MAX * brokers
        self._flushed = brokers == 1 or rng.random() < 0.5
        self.host.disk.sync_ms, self.host.disk.append_ms = SYNC_MS, APPEND_MS
        replicas = min(REPLICAS, brokers)
        config: dict[str, object] = {
            "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
            "transaction.state.log.num.partitions": 2,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": min(2, replicas),
            "default.replication.factor": replicas,
            "min.insync.replicas": min(2, replicas),
            "replica.lag.time.max.ms": rng.choice(LAGS_MS),
            # Replicas compact each in its own time, and are not equal to the last byte then.
            "log.cleaner.backoff.ms": 150 if self.compacts else 3_600_000,
            "log.cleaner.min.cleanable.ratio": 0.01,
            "broker.session.timeout.ms": 600,
            "broker.heartbeat.interval.ms": 150,
        }
        self._story = draw_groups(self.outcome.seed, self._until_ms, brokers, ("orders", "clicks"))
        config |= {} if self._story is None else self._story.config
        self._shares_story = draw_shares(self.outcome.seed, self._until_ms, brokers, self._read_together())
        config |= {} if self._shares_story is None else self._shares_story.config
        if self._flushed:
            config["log.flush.interval.messages"] = 1
        self._distant = brokers > 1 and rng.random() < 0.5
        self.cluster = RealCluster(self.host, brokers, config, self.new_rng, self._distant)
        self.cluster.start()
        self._partitions = {name: 1 + rng.randrange(PARTITIONS_MAX) for name in ("orders", "clicks")}
        for name, count in self._partitions.items():
            configs = {"flush.messages": NEVER} if name == "clicks" else {}
            self.cluster.controller.decide(
                CreateTopics([NewTopic(name, count, replicas, configs=configs)]), self._created
            )
        self.watcher = Watcher(
            self.script, self.cluster, self._partitions, self.durable_topics, self.outcome.violated
        )
        self.watcher.begin()
        addresses = [broker.address for broker in self.cluster.brokers]
        self.committer = Committer(self.host, self.script, addresses, self.new_rng())
        self.committer.begin()
        self.former_lives = FormerLives(self.host, addresses, self._coordinator, self.outcome.violated)
        self.writer: KeyedWriter | None = None
        if self.compacts:
            configs = CONFIGS | ({"flush.messages": "1"} if self._flushed else {})
            self.cluster.controller.decide(
                CreateTopics([NewTopic(TOPIC, 1, replicas, configs=configs)]), self._created
            )
            own_rng = Random(self.outcome.seed)  # so that the rest of the world stays the same
            self.writer = KeyedWriter(self.host, self.script, addresses, own_rng)
            self.writer.begin()
            self.writer.watch(self.cluster)
        self.groups = self._begin_groups(replicas)
        self.jobs: Jobs | None = None
        self.shares = self._begin_shares(replicas, addresses)
        if (self.groups is not None or self.shares is not None) and self.checks:
            check_sometimes(self.host)
        return brokers

    def _read_together(self) -> list[tuple[str, ...]]:
        """Tuples of topics, one of which each share group reads."""
        plain = [("orders", "clicks"), ("orders", JOBS), (JOBS, "orders", "clicks")]
        return [*plain, (TOPIC, JOBS), (TOPIC, "orders")] if self.compacts else plain

    def _begin_shares(self, replicas: int, addresses: Sequence[str]) -> Shares | None:
        if self._shares_story is None:
            return None
        own_rng = Random(self.outcome.seed ^ SHARES_SALT)
        self.cluster.controller.decide(
            CreateTopics([NewTopic(JOBS, JOBS_PARTITIONS, replicas)]), self._created
        )
        self.jobs = Jobs(self.host, self.script, addresses, Random(own_rng.getrandbits(64)))
        self.jobs.begin()
        stage = Stage(self.host, self.script, self.outcome.violated)
        partitions = {**self._partitions, JOBS: JOBS_PARTITIONS, TOPIC: 1}
        shares = Shares(self._shares_story, stage, self.cluster, partitions, self._shared_topics, own_rng)
        shares.begin()
        return shares

    def _shared_topics(self) -> Sequence[str]:
        """The topics of share groups that lost nothing."""
        return [*self.durable_topics(), JOBS, TOPIC]

    def run(self) -> Outcome:
        """Run the world, and note what leaders acquire if it has share groups; returns the
        outcome."""
        if self.shares is None:
            return super().run()
        with self.shares.watching():
            return super().run()

    def _coordinator(self, transactional_id: str) -> str | None:
        """The address of a transactional id's coordinator, as the controller knows it."""
        topic = self.cluster.controller.image.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[home_partition(transactional_id, len(topic.partitions))].leader
        return None if leader < 0 else self.cluster.brokers[leader].address

    def _begin_groups(self, replicas: int) -> Groups | None:
        if self._story is None:
            return None
        own_rng = Random(self.outcome.seed ^ GROUPS_SALT)
        stage = Stage(self.host, self.script, self.outcome.violated)
        groups = Groups(self._story, stage, self.cluster, self._partitions, own_rng)
        for name, count in groups.outputs().items():
            self.cluster.controller.decide(CreateTopics([NewTopic(name, count, replicas)]), self._created)
        groups.begin()
        return groups

    def add_producer(self, number: int) -> None:
        """Add a producer; a transactional one's fenced predecessors send requests too.

        See `World`.
        """
        super().add_producer(number)
        sender = self.senders[-1]
        if isinstance(sender, TransactionalSender):
            sender.former_speaks = self.former_lives.commit

    def _created(self, result: object, error: Exception | None) -> None:
        failed = error or next((one for one in result if isinstance(one, Exception)), None)  # type: ignore[attr-defined]
        if failed is not None:
            raise failed

    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for `bootstrap.servers`."""
        return self.cluster.bootstrap_servers

    def topics(self) -> Sequence[tuple[str, int]]:
        """Topics that producers send to, with the number of partitions of each."""
        return list(self._partitions.items())

    def faults(self) -> Faults:
        """The object that injects the faults of the plan."""
        return ClusterFaults(self.scene(), self.cluster, self._flushed)

    def kinds(self) -> Sequence[str]:
        """Kinds of faults that the plan is drawn from; one named twice comes twice as often."""
        if len(self.cluster.brokers) == 1:
            return ALONE
        return DISTANT if self._distant else TOGETHER

    def durable_topics(self) -> Sequence[str]:
        """The topics whose acknowledged records survive everything in the plan."""
        return ["orders"] if self._flushed and self.cluster.power_cuts else ["orders", "clicks"]

    def lasting_acks(self) -> Sequence[int]:
        """Values of `acks` whose acknowledged records are not lost with a leader: a leader that
        dies loses the records that no follower had yet."""
        return (-1, 1) if len(self.cluster.brokers) == 1 else (-1,)

    def _run_until_quiet(self) -> None:
        if self.writer is not None:
            self.writer.finish()
        if self.groups is not None:
            self.groups.calm()
        if self.jobs is not None:
            self.jobs.finish()
        if self.shares is not None:
            self.shares.calm()
        super()._run_until_quiet()

    def _idle(self) -> None:
        if self.groups is not None:
            self.groups.converge()
        if self.shares is not None:
            self.shares.converge()
        super()._idle()

    def _described(self) -> str:
        groups = () if self._story is None else self._story.groups
        shares = () if self._shares_story is None else self._shares_story.groups
        return "\n".join([super()._described(), *map(str, groups), *map(str, shares)])

    def log(self) -> ModelLog:
        """The log as the brokers have it on disk: they are killed and started again, so that
        nothing in memory counts.
        """
        self.committer.finish()
        self._converge("once all was well again")
        for broker in self.cluster.brokers:
            broker.kill()
        self.host.run_until(lambda: not self.cluster.controller.image.alive(), CONVERGENCE_MS)
        self.cluster.start()
        self._converge("after all brokers were killed and started once more")
        if self.shares is not None:
            self.shares.read_again()
            self._converge("after share groups read once more")
        pruned = () if self.shares is None else (SHARE_STATE_TOPIC, JOBS)
        compacted = (TOPIC, *INTERNAL_TOPICS) if self.compacts else ()
        found = differences(self.cluster, (*compacted, *pruned))
        for difference in [*found, *parted(self.cluster, pruned)]:
            self.outcome.violated(difference)
        for violation in () if self.writer is None else self.writer.violations(self.cluster):
            self.outcome.violated(violation)
        log = read_log(self.cluster, self._partitions)
        for violation in [*self.watcher.forgotten(log), *self.committer.violations()]:
            self.outcome.violated(violation)
        self.outcome.note(f"{self.watcher.read} {self.committer.acknowledged}")
        if self.groups is not None:
            self._check_groups(self.groups, log)
        for violation in (
            ()
            if self.shares is None
            else check_shares(self.shares, {} if self.jobs is None else self.jobs.deleted)
        ):
            self.outcome.violated(violation)
        for ledger in () if self.shares is None else self.shares.ledgers:
            self.outcome.note(f"{ledger.acquisitions} {[str(one) for one in ledger.said]}")
        return log

    def _check_groups(self, groups: Groups, log: ModelLog) -> None:
        outputs = read_log(self.cluster, groups.outputs())
        contents = {(topic, index): contents_of(partition) for topic, index, partition in outputs.each()}
        seen, durable = visible_offsets(outputs, committed_only=True), self.durable_topics()
        labels = labels_in(read_log(self.cluster, {OFFSETS_TOPIC: OFFSETS_PARTITIONS}))
        for violation in groups.former_members.violations():
            self.outcome.violated(violation)
        for ledger in groups.ledgers:
            visible = visible_offsets(log, ledger.committed_only)
            for place in visible:
                if place[0] in ledger.topics and place[0] in durable:
                    ledger.final[place] = self.committer.committed(ledger.group, place)
            found = check_group(ledger, visible, durable)
            if not self.compacts:
                found += check_log(ledger, labels)
            if ledger.output is not None:
                found += check_output(ledger, visible, contents, seen)
            for violation in found:
                self.outcome.violated(violation)
            for claim in ledger.claims:
                self.outcome.note(f"{claim} {claim.base} {claim.position}")
            for commit in ledger.commits:
                self.outcome.note(f"{commit} {commit.answered_ns} {commit.error}")

    def _converge(self, when: str) -> None:
        for apart in converge(self.host, self.cluster, CONVERGENCE_MS):
            self.outcome.violated(f"{CONVERGENCE_MS:g} ms {when}, {apart}")
        for difference in [*self.cluster.forgotten(), *self.cluster.outdated()]:
            self.outcome.violated(f"{when}, {difference}")

    def committed_offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        """Committed offsets at the coordinators, after a restart of all brokers; see `World`."""
        offsets = {}
        for sender in self.senders:
            if isinstance(sender, TransactionalSender):
                offset = self.committer.committed(sender.group)
                if offset is None:
                    self.outcome.violated(
                        f"the committed offset of group {sender.group!r} could not be read, though all is "
                        "well"
                    )
                else:
                    offsets[sender.group] = {("orders", 0): offset}
        return offsets


def run_seed(seed: int) -> Outcome:
    """Run one seed of world `cluster`."""
    return ClusterWorld(seed).run()
