"""Late binding within transactions: a partition joins the transaction when it is the one to bind
to, and no other does."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import FairleadError
from tests.support.producer_brokers import IGNORE
from tests.support.transaction_rig import Scene

LATE = {"partitioner_class": "late", "batch_size": 200}


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.producer.close()
    made.cluster.create("t", 6)
    made.producer = made.another(**LATE)
    made.producer.init_transactions()
    return made


def added(scene: Scene) -> int:
    """Partitions added to transactions so far."""
    return sum(
        len(topic.partitions)
        for _, _, request in scene.coordinator.asked
        for topic in getattr(request, "v3_and_below_topics", None) or ()
    )


def test_one_record_adds_one_partition_and_is_committed(scene: Scene) -> None:
    with scene.producer.transaction():
        ack = scene.producer.send("t", b"only")
    assert ack.result(0).offset == 0
    assert sorted(value for partition in scene.committed() for value in partition) == [b"only"]
    assert scene.coordinator.kinds().count("ADD_PARTITIONS_TO_TXN") == 1
    assert added(scene) == 1


def test_many_records_use_many_partitions_and_every_one_is_committed(scene: Scene) -> None:
    values = [b"%04d" % number for number in range(300)]
    for start in range(0, 300, 100):
        with scene.producer.transaction():
            for value in values[start : start + 100]:
                scene.producer.send("t", value)
    assert sorted(value for partition in scene.committed() for value in partition) == values
    counts = [len(partition) for partition in scene.committed()]
    assert max(counts) - min(counts) < 60


def test_an_abort_fails_what_waits_for_a_broker(scene: Scene) -> None:
    scene.cluster.on_produce = lambda *_: IGNORE
    scene.producer.begin_transaction()
    acks = [scene.producer.send("t", b"%04d" % number) for number in range(500)]
    scene.rig.host.advance(100)
    assert scene.rig.machine(scene.producer).accumulator.late
    scene.cluster.on_produce = lambda *_: None
    scene.producer.abort_transaction()
    assert all(ack.done() for ack in acks)
    with pytest.raises(FairleadError, match="aborted"):
        acks[-1].result(0)
    assert scene.committed() == [[]] * 6
    with scene.producer.transaction():
        scene.producer.send("t", b"next")
    assert sorted(value for partition in scene.committed() for value in partition) == [b"next"]
