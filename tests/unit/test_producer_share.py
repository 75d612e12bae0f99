"""The bound on one broker's share of buffer.memory: a dead broker jams its own keyed records
only."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BufferExhausted
from tests.support.producer_brokers import IGNORE
from tests.support.producer_rig import Rig

MEMORY = 100_000


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=3)
    made.cluster.create("t", 3)
    return made


def producer_of(rig: Rig, **more: Any) -> Any:
    return rig.producer(buffer_memory=MEMORY, linger_ms=0, max_block_ms=1000, **more)


def outcomes(acks: list[Any]) -> list[str]:
    """What became of each record so far."""

    def outcome(ack: Any) -> str:
        if not ack.done():
            return "open"
        try:
            ack.result(timeout_s=0)
        except BufferExhausted:
            return "refused"
        return "delivered"

    return [outcome(ack) for ack in acks]


def send_to(rig: Rig, producer: Any, partition: int | None, count: int) -> list[Any]:
    """Records of 1,000 bytes and a bit."""
    acks = []
    for _ in range(count):
        acks.append(producer.send("t", b"x" * 1000, partition=partition))
        rig.host.advance(1)
    return acks


def test_beyond_its_share_records_for_a_silent_broker_fail_at_once_and_others_go_on(rig: Rig) -> None:
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.3)
    send_to(rig, producer, 1, 3)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    silent = outcomes(send_to(rig, producer, 0, 60))
    assert silent == ["open"] * silent.count("open") + ["refused"] * silent.count("refused")
    assert 27 <= silent.count("open") <= 30
    assert outcomes(send_to(rig, producer, 1, 200)) == ["delivered"] * 200


def test_the_error_says_who_holds_how_much_and_what_to_do(rig: Rig) -> None:
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.1)
    send_to(rig, producer, 1, 1)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    ack = send_to(rig, producer, 0, 20)[-1]
    expected = (
        r"topic 't': records bound to broker 0 hold \d+ bytes already, and may hold 10000 of "
        r"buffer.memory=100000 .*raise the ratio"
    )
    with pytest.raises(BufferExhausted, match=expected):
        ack.result(timeout_s=0)


def test_a_table_loses_only_the_rows_that_find_no_room(rig: Rig) -> None:
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.4)
    send_to(rig, producer, 1, 1)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    asked = [row % 6 if row % 6 < 3 else 0 for row in range(90)]
    partitions = pa.array(asked, pa.int32())
    table = producer.send_table("t", pa.table({"partition": partitions, "value": [b"x" * 1000] * 90}))
    rig.host.advance(50)
    machine = rig.machine(producer)
    assert machine.accumulator.share.held_bytes(0) <= 40_000
    rig.cluster.on_produce = lambda *_: None
    result = table.result(raise_on_error=False).to_pydict()
    failed = [row for row, error in enumerate(result["error"]) if error is not None]
    assert 20 <= len(failed) <= 25
    assert failed == [row for row in range(90) if asked[row] == 0][-len(failed) :]
    assert all("buffer.memory.per.broker.ratio" in result["error"][row] for row in failed)


def test_room_comes_back_with_deliveries(rig: Rig) -> None:
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.3)
    send_to(rig, producer, 1, 1)
    for partition in (0, 1, 2):
        assert outcomes(send_to(rig, producer, partition, 200)) == ["delivered"] * 200
    producer.flush()
    share = rig.machine(producer).accumulator.share
    assert [share.held_bytes(node_id) for node_id in range(3)] == [0, 0, 0]


def test_what_a_broker_holds_moves_with_its_partitions(rig: Rig) -> None:
    producer = producer_of(
        rig, buffer_memory_per_broker_ratio=0.3, metadata_max_age_ms=100, request_timeout_ms=500
    )
    send_to(rig, producer, 1, 1)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    acks = send_to(rig, producer, 0, 20)
    rig.cluster.move("t", 0, 2)
    rig.host.advance(150)
    share = rig.machine(producer).accumulator.share
    assert share.held_bytes(0) == 0
    assert share.held_bytes(2) > 15_000
    producer.flush()
    assert outcomes(acks) == ["delivered"] * 20
    assert share.held_bytes(2) == 0


def test_one_broker_alone_is_never_bound() -> None:
    rig = Rig(brokers=1)
    rig.cluster.create("t", 2)
    rig.cluster.on_produce = lambda *_: IGNORE
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.1)
    assert outcomes(send_to(rig, producer, 0, 60)) == ["open"] * 60


def test_records_that_wait_for_a_broker_do_not_count(rig: Rig) -> None:
    producer = producer_of(rig, buffer_memory_per_broker_ratio=0.1, partitioner_class="late")
    send_to(rig, producer, 1, 1)
    rig.cluster.on_produce = lambda *_: IGNORE
    acks = send_to(rig, producer, None, 60)
    assert outcomes(acks) == ["open"] * 60


def test_without_a_ratio_nothing_is_counted_nor_refused(rig: Rig) -> None:
    producer = producer_of(rig)
    send_to(rig, producer, 1, 1)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    assert outcomes(send_to(rig, producer, 0, 60)) == ["open"] * 60
    assert rig.machine(producer).accumulator.share.held_bytes(0) == 0
