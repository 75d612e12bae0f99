"""What each setting of acks promises, shown on brokers that keep or lose what they were given."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BrokerError
from tests.support.metrics import metric
from tests.support.producer_brokers import BREAK, LOSE_ANSWER
from tests.support.producer_rig import Rig

NOT_ENOUGH_REPLICAS, INVALID_RECORD = 19, 87


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 1)
    return made


def test_acks_0_is_done_when_written_and_knows_no_offset(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 60_000
    producer = rig.producer(acks="0")
    assert producer.send("t", b"v").result(timeout_s=1).offset == -1
    found = producer.send_table("t", pa.table({"value": [b"w", b"x"]})).result(timeout_s=1)
    assert found["offset"].to_pylist() == [None, None]
    assert found["partition"].to_pylist() == [0, 0]
    assert found["error"].null_count == 2
    rig.host.advance(10)
    assert rig.cluster.values("t") == [[b"v", b"w", b"x"]]


def test_acks_0_never_hears_that_a_broker_refused(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: INVALID_RECORD
    producer = rig.producer(acks="0")
    assert producer.send("t", b"v").result().offset == -1
    rig.host.advance(10)
    assert rig.cluster.values("t") == [[]]
    assert metric(producer, "record-error-total") == 0


def test_acks_0_loses_what_was_on_the_way_when_a_connection_breaks(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: BREAK
    producer = rig.producer(acks="0")
    assert producer.send("t", b"v").result().offset == -1
    rig.host.advance(500)
    rig.cluster.on_produce = lambda *_: None
    producer.flush()
    assert rig.cluster.values("t") == [[]]


@pytest.mark.parametrize(("acks", "sent"), [("0", 0), ("1", 1), ("all", -1), ("-1", -1)])
def test_the_broker_is_told_what_is_promised(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, acks: str, sent: int
) -> None:
    asked: list[int] = []
    broker: Any = rig.cluster.brokers[0]
    original = broker._produce
    monkeypatch.setattr(
        broker,
        "_produce",
        lambda connection, request: (asked.append(request.message.acks), original(connection, request))[1],
    )
    rig.producer(acks=acks).send("t", b"v").result()
    rig.host.advance(10)
    assert asked == [sent]


def test_acks_1_may_write_twice_after_a_lost_answer_for_it_has_no_sequences(rig: Rig) -> None:
    faults = iter([LOSE_ANSWER])
    rig.cluster.on_produce = lambda *_: next(faults, None)
    assert rig.producer(acks="1").send("t", b"v").result().offset == 1
    assert rig.cluster.values("t") == [[b"v", b"v"]]
    assert rig.cluster.topics["t"][0].headers[0].producer_id == -1


def test_acks_all_writes_once_through_lost_answers(rig: Rig) -> None:
    faults = iter([LOSE_ANSWER, LOSE_ANSWER])
    rig.cluster.on_produce = lambda *_: next(faults, None)
    assert rig.producer().send("t", b"v").result().offset == 0
    assert rig.cluster.values("t") == [[b"v"]]


def test_acks_all_is_not_done_while_too_few_replicas_are_in_sync(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: NOT_ENOUGH_REPLICAS
    producer = rig.producer(delivery_timeout_ms=60_000)
    ack = producer.send("t", b"v")
    rig.host.advance(30_000)
    assert not ack.done()
    rig.cluster.on_produce = lambda *_: None
    assert ack.result().offset == 0


def test_with_acks_1_and_all_a_refusal_is_heard(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: INVALID_RECORD
    for acks in ("1", "all"):
        with pytest.raises(BrokerError, match="INVALID_RECORD"):
            rig.producer(acks=acks).send("t", b"v").result()
