"""A producer forgets topics that it does not send to any more, and what it then sends to them is
neither lost nor taken for a duplicate."""

from typing import Any

import pytest

from tests.support.metrics import metric
from tests.support.producer_brokers import LOSE_ANSWER
from tests.support.producer_rig import Rig
from tests.support.transaction_broker import FakeTransactions

IDLE_MS = 5_000
AGE_MS = 1_000
FORGOTTEN_MS = IDLE_MS + 2 * AGE_MS


@pytest.fixture
def rig() -> Rig:
    return Rig()


def forgetful(rig: Rig, **more: Any) -> Any:
    return rig.producer(metadata_max_idle_ms=IDLE_MS, metadata_max_age_ms=AGE_MS, linger_ms=0, **more)


def known(rig: Rig, producer: Any) -> tuple[set[str], set[str]]:
    """The topics in the accumulator, and those with a meter."""
    machine = rig.machine(producer)
    return set(machine.accumulator.topics), set(machine.recorder.topics)


@pytest.mark.parametrize("policy", ["uniform", "sticky", "adaptive", "late"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_topics_that_are_not_used_are_forgotten_and_come_back(
    rig: Rig, policy: str, idempotent: bool
) -> None:
    topics = [f"t{number}" for number in range(50)]
    for topic in topics:
        rig.cluster.create(topic, 3)
    producer = forgetful(rig, partitioner_class=policy, enable_idempotence=idempotent)
    for life in range(3):
        for topic in topics:
            producer.send(topic, b"unkeyed")
            for partition in range(3):
                producer.send(topic, b"%d" % life, partition=partition)
        producer.flush()
        rig.host.advance(FORGOTTEN_MS)
        assert known(rig, producer) == (set(), set())
    for topic in topics:
        kept = [[value for value in values if value != b"unkeyed"] for values in rig.cluster.values(topic)]
        assert kept == [[b"0", b"1", b"2"]] * 3
        assert sum(map(len, rig.cluster.values(topic))) == 12
    assert metric(producer, "epoch-bump-total") == (3 if idempotent else 0)


def test_a_topic_that_comes_back_has_a_newer_epoch(rig: Rig) -> None:
    rig.cluster.create("t", 1)
    rig.cluster.create("busy", 1)
    producer = forgetful(rig)
    for life in range(3):
        for _ in range(4):
            producer.send("t", b"%d" % life).result()
        for _ in range(10):
            producer.send("busy", b"b").result()
            rig.host.advance(FORGOTTEN_MS / 10)
        assert known(rig, producer) == ({"busy"}, {"busy"})
        assert rig.machine(producer).identity.epoch == life + 1
    assert rig.cluster.values("t") == [[b"0"] * 4 + [b"1"] * 4 + [b"2"] * 4]
    assert rig.cluster.values("busy") == [[b"b"] * 30]


def test_a_topic_with_open_records_is_not_forgotten(rig: Rig) -> None:
    rig.cluster.create("t", 1)
    producer = forgetful(rig, delivery_timeout_ms=600_000, request_timeout_ms=500)
    producer.send("t", b"1").result()
    rig.cluster.on_produce = lambda *_: LOSE_ANSWER
    ack = producer.send("t", b"2")
    rig.host.advance(3 * FORGOTTEN_MS)
    assert known(rig, producer) == ({"t"}, {"t"})
    rig.cluster.on_produce = lambda *_: None
    assert ack.result().offset == 1
    rig.host.advance(FORGOTTEN_MS)
    assert known(rig, producer) == (set(), set())
    assert rig.cluster.values("t") == [[b"1", b"2"]]


def test_a_leader_that_moves_is_followed_however_long_records_wait(
    rig: Rig,
) -> None:
    two = Rig(brokers=2)
    two.cluster.create("t", 1)
    producer = forgetful(two, delivery_timeout_ms=600_000, request_timeout_ms=500)
    producer.send("t", b"1").result()
    two.cluster.on_produce = lambda *_: 7
    ack = producer.send("t", b"2")
    two.host.advance(3 * FORGOTTEN_MS)
    two.cluster.move("t", 0, 1)
    two.cluster.on_produce = lambda *_: None
    assert ack.result(timeout_s=30).offset == 1


def test_within_a_transactional_ids_epoch_sequences_stay(rig: Rig) -> None:
    coordinator = rig.cluster.transactions = FakeTransactions(rig.cluster)
    rig.cluster.create("t", 1)
    producer = forgetful(rig, transactional_id="tid")
    producer.init_transactions()
    for life in range(2):
        with producer.transaction():
            producer.send("t", b"%d" % life)
        rig.host.advance(FORGOTTEN_MS)
        assert known(rig, producer)[0] == {"t"}
    assert rig.machine(producer).identity.epoch == 0
    assert coordinator.committed("t") == [[b"0", b"1"]]
