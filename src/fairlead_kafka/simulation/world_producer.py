"""World `producer`: real producer machines against model brokers whose leaders move, that refuse,
and that lose unacknowledged records.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.simulation.faults import Faults
from fairlead_kafka.simulation.model_log import ModelLog
from fairlead_kafka.simulation.outcome import Outcome
from fairlead_kafka.simulation.produce_cluster import ProduceCluster
from fairlead_kafka.simulation.producer_faults import KINDS, ProducerFaults
from fairlead_kafka.simulation.world import World

BROKERS_MAX = 4
PARTITIONS_MAX = 5
REST_EVERY = 3
REST_MS = 8_000.0
"""Milliseconds that every third world rests, so that topics are forgotten: metadata.max.idle.ms,
and some times metadata.max.age.ms.
"""


class ProducerWorld(World):
    """One seed of world `producer`."""

    name = "producer"

    def rest_ms(self) -> float:
        """Milliseconds without any record before the last ones: in every third world, so that
        topics are forgotten."""
        return REST_MS if self.outcome.seed % REST_EVERY == 0 else 0.0

    def build(self) -> int:
        """Start model brokers, with one topic or two."""
        rng = self.rng
        brokers = 1 + rng.randrange(BROKERS_MAX)
        self.cluster = ProduceCluster(
            self.host, brokers, keeps_records=True, forgetful=rng.random() < 0.2, rng=self.new_rng()
        )
        self.cluster.first_epoch = rng.choice([0, 0, 32_766])
        for name in ("orders", "clicks")[: 1 + rng.randrange(2)]:
            self.cluster.create_topic(name, 1 + rng.randrange(PARTITIONS_MAX))
        return brokers

    def bootstrap_servers(self) -> str:
        """Addresses of the brokers, for `bootstrap.servers`."""
        return self.cluster.bootstrap_servers

    def topics(self) -> Sequence[tuple[str, int]]:
        """Topics that producers send to, with the number of partitions of each."""
        return [(topic.name, len(topic.partitions)) for topic in self.cluster.log.topics.values()]

    def faults(self) -> Faults:
        """The object that injects the faults of the plan."""
        return ProducerFaults(self.scene(), self.cluster)

    def kinds(self) -> Sequence[str]:
        """Kinds of faults that the plan is drawn from; one named twice comes twice as often."""
        return KINDS

    def log(self) -> ModelLog:
        """The log that all brokers share."""
        return self.cluster.log

    def committed_offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        """Offsets that committed transactions have committed, by group."""
        return self.cluster.apis.transactions.committed_offsets


def run_seed(seed: int) -> Outcome:
    """Run one seed of world `producer`."""
    return ProducerWorld(seed).run()
