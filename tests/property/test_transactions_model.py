"""Random interleavings of transactional producers, restarts and fences against a small model:
readers see what it says.

The model knows, per partition, the batches in the order they were taken, each with the transaction
it belongs to, and which transactions were committed. Whatever happens in between, a reader of
committed records gets exactly the batches of committed transactions, in order, and none that lies
behind one still open.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from tests.support.virtual_cluster import Transactor, VirtualCluster

PARTITIONS = [TopicPartition("events", number) for number in range(3)]
STEPS = 60
NAMES = ("payments", "stock", "invoices")


@dataclass(eq=False)
class Deal:
    """One transaction of the model: None as long as it is open."""

    committed: bool | None = None


@dataclass
class Model:
    """What was taken, by partition, in order."""

    taken: dict[TopicPartition, list[tuple[bytes, Deal]]] = field(
        default_factory=lambda: {of: [] for of in PARTITIONS}
    )

    def visible(self, of: TopicPartition) -> list[bytes]:
        seen = []
        for value, deal in self.taken[of]:
            if deal.committed is None:
                break
            if deal.committed:
                seen.append(value)
        return seen


class Actor:
    """One transactional id; a restarted producer takes it over from the one before."""

    def __init__(self, cluster: VirtualCluster, model: Model, name: str) -> None:
        self.cluster = cluster
        self.model = model
        self.name = name
        self.deal: Deal | None = None
        self.producer = Transactor(cluster, name).ready()

    def write(self, of: TopicPartition, value: bytes) -> None:
        error = self.producer.add(of)
        if error == ErrorCode.CONCURRENT_TRANSACTIONS:
            return
        assert error == 0
        self.deal = self.deal or Deal()
        assert self.producer.produce(of, value) == 0
        self.model.taken[of].append((value, self.deal))

    def end(self, committed: bool) -> None:
        if self.deal is not None:
            assert self.producer.end(committed) == 0
            self.deal.committed, self.deal = committed, None

    def take_over(self) -> None:
        """Another producer begins with the same id: what was open is aborted."""
        self.producer = Transactor(self.cluster, self.name).ready()
        if self.deal is not None:
            self.deal.committed, self.deal = False, None


def play(seed: int) -> None:
    rng = random.Random(seed)
    cluster = VirtualCluster(config={"transaction.state.log.num.partitions": 3}, latency_ms=1)
    cluster.topic()
    model = Model()
    actors = [Actor(cluster, model, name) for name in NAMES]
    for step in range(STEPS):
        actor = rng.choice(actors)
        what = rng.random()
        if what < 0.55:
            actor.write(rng.choice(PARTITIONS), b"%s %d" % (actor.name.encode(), step))
        elif what < 0.85:
            actor.end(committed=rng.random() < 0.6)
            cluster.quiesce(rng.choice([0, 0, 5, 500]))
        elif what < 0.92:
            actor.take_over()
        else:
            node_id = rng.randrange(3)
            cluster.quiesce(rng.choice([0, 0, 50]))
            cluster.kill(node_id)
            cluster.start(node_id)
            cluster.quiesce(200)
    cluster.quiesce(2_000)
    for of in PARTITIONS:
        assert cluster.values(of) == model.visible(of), (seed, of)
        assert cluster.values(of, committed=False) == [value for value, _deal in model.taken[of]], (seed, of)
    for actor in actors:
        actor.end(committed=True)
    cluster.quiesce(2_000)
    for of in PARTITIONS:
        assert cluster.values(of) == model.visible(of), (seed, of)
        assert cluster.end_offset(of, committed=True) == cluster.end_offset(of, committed=False), (seed, of)
    cluster.close()


@pytest.mark.parametrize("seed", range(12))
def test_readers_of_committed_records_see_what_the_model_says(seed: int) -> None:
    play(seed)
