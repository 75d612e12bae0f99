"""Policy `late`: records get their partition when a broker is ready to take them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, TimedOut
from tests.support.late_loads import LATE, log_bytes, paced, warm
from tests.support.metrics import memory_is_free
from tests.support.producer_brokers import IGNORE
from tests.support.producer_rig import Rig

RECORDS_PER_BATCH = 10
SMALL = {**LATE, "batch.size": 61 + 14 * RECORDS_PER_BATCH}
"""Batches of ten of `send`'s records."""
SKEWS = 4
"""Each of three brokers may be behind by a batch, and so the first ahead by two; and headers of
batches."""


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=3)
    made.cluster.create("t", 3)
    return made


def send(producer: Any, count: int, start: int = 0, topic: str = "t") -> list[Any]:
    return [producer.send(topic, b"%06d" % number) for number in range(start, start + count)]


def account(rig: Rig, producer: Any) -> list[int]:
    late = rig.machine(producer).accumulator.topics["t"].late
    return list(late.policy.counter.placed_bytes)


def batch_counts(rig: Rig) -> list[list[int]]:
    return [[header.count for _, _, header in request] for request in rig.cluster.produce_requests]


def test_records_sent_while_brokers_are_busy_share_batches_though_they_were_handed_over_apart(
    rig: Rig,
) -> None:
    for broker in rig.cluster.brokers:
        broker.service_ms = 20
    producer = rig.producer(SMALL, max_in_flight_requests_per_connection=1)
    warm(rig, producer)
    for number in range(13):
        send(producer, 1, number)
        rig.host.advance(1)
    producer.flush()
    assert batch_counts(rig) == [[1], [1], [1], [10]]


def test_a_batch_is_cut_where_it_is_full_and_the_rest_of_the_hand_over_goes_on_waiting(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "linger.ms": 50})
    warm(rig, producer)
    send(producer, 25)
    rig.host.advance(5)
    assert batch_counts(rig) == [
        [22]
    ]  # for one partition its part and a batch more; what is left is not full
    rig.host.advance(50)
    assert batch_counts(rig) == [[22], [3]]


def test_with_a_batch_size_of_nothing_each_record_is_a_batch_of_its_own(rig: Rig) -> None:
    producer = rig.producer({**LATE, "batch.size": 0})
    warm(rig, producer)
    send(producer, 7)
    producer.flush()
    assert sum(map(len, batch_counts(rig))) == 7


def test_what_is_not_full_waits_for_linger_ms_and_no_longer(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "linger.ms": 20})
    warm(rig, producer)
    rig.host.advance(100)
    send(producer, 2)
    rig.host.advance(12)
    send(producer, 2, 2)
    rig.host.advance(7)
    assert batch_counts(rig) == []
    rig.host.advance(2)
    assert batch_counts(rig) == [[4]]


def test_a_flush_does_not_linger(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "linger.ms": 5000})
    send(producer, 2)
    before_ns = rig.host.now_ns()
    producer.flush()
    assert rig.host.now_ns() - before_ns < 1e9


def test_who_waits_for_memory_makes_records_leave_without_lingering(rig: Rig) -> None:
    producer = rig.producer({**SMALL, "linger.ms": 5000, "buffer.memory": 300})
    acks = send(producer, 30)
    assert acks[0].done()
    producer.flush()
    assert sum(partition.end_offset for partition in rig.cluster.topics["t"]) == 30


def test_a_busy_producer_is_not_stepped_while_it_can_do_nothing(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: IGNORE
    producer = rig.producer(LATE)
    machine = rig.machine(producer)
    steps = 0
    step = machine.step

    def counted(now_ns: int, wall_ms: int) -> Any:
        nonlocal steps
        steps += 1
        return step(now_ns, wall_ms)

    send(producer, 1000)
    rig.host.advance(1000)
    machine.step = counted
    rig.host.advance(20_000)
    assert steps < 60


def test_a_large_table_is_bound_piece_by_piece_and_even(rig: Rig) -> None:
    producer = rig.producer(LATE)
    producer.send_table("t", pa.table({"value": [b"x" * 100] * 20_000}))
    producer.flush()
    sizes = log_bytes(rig.cluster)
    assert max(sizes) - min(sizes) <= SKEWS * 16_384
    headers = [header for partition in rig.cluster.topics["t"] for header in partition.headers]
    assert sum(header.count for header in headers) == 20_000
    assert len(headers) <= 20_000 * 110 // (16_384 - 61) + 5
    assert account(rig, producer) == sizes


def test_keyed_and_explicit_records_of_a_table_are_bound_at_once_and_keep_their_order(rig: Rig) -> None:
    producer = rig.producer(SMALL)
    rows = range(600)
    keys = [b"k%d" % (row % 4) if row % 3 == 0 else None for row in rows]
    partitions = pa.array([row % 2 if row % 3 == 1 else None for row in rows], pa.int32())
    values = [b"%06d" % row for row in rows]
    producer.send_table(
        "t", pa.table({"key": pa.array(keys, pa.binary()), "partition": partitions, "value": values})
    )
    producer.flush()
    written = rig.cluster.values("t")
    assert sorted(value for partition in written for value in partition) == values
    for key in set(keys) - {None}:
        mine = [values[row] for row in rows if keys[row] == key]
        assert any([value for value in partition if value in set(mine)] == mine for partition in written)
    for partition in (0, 1):
        mine = [values[row] for row in rows if row % 3 == 1 and row % 2 == partition]
        assert [value for value in written[partition] if value in set(mine)] == mine


def test_a_request_takes_a_batch_for_each_partition_of_its_broker(rig: Rig) -> None:
    rig.cluster.create("t", 12)
    producer = rig.producer(SMALL)
    warm(rig, producer, 12)
    producer.send_table("t", pa.table({"value": [b"%06d" % row for row in range(120)]}))
    producer.flush()
    assert max(len(request) for request in rig.cluster.produce_requests) == 4
    sizes = log_bytes(rig.cluster)
    assert max(sizes) - min(sizes) <= 2 * int(SMALL["batch.size"])


def test_a_request_holds_no_more_than_max_request_size(rig: Rig) -> None:
    rig.cluster.create("t", 12)
    producer = rig.producer(SMALL, max_request_size=450)
    warm(rig, producer, 12)
    producer.send_table("t", pa.table({"value": [b"%06d" % row for row in range(240)]}))
    producer.flush()
    assert (
        max(sum(header.size_bytes for _, _, header in request) for request in rig.cluster.produce_requests)
        <= 450
    )


def test_a_small_topic_is_not_starved_by_a_large_one(rig: Rig) -> None:
    rig.cluster.create("small", 3)
    for broker in rig.cluster.brokers:
        broker.service_ms = 10
    producer = rig.producer(SMALL, max_request_size=300)
    producer.send_table("t", pa.table({"value": [b"%06d" % row for row in range(3000)]}))
    rig.host.advance(100)
    ack = producer.send("small", b"me too")
    rig.host.advance(200)
    assert ack.done()
    assert rig.machine(producer).accumulator.late


def test_unkeyed_records_are_not_starved_by_keyed_ones_nor_these_by_them(rig: Rig) -> None:
    for broker in rig.cluster.brokers:
        broker.service_ms = 5
    producer = rig.producer(SMALL, batch_max_size=0)
    producer.send_table(
        "t", pa.table({"key": [b"%d" % row for row in range(3000)], "value": [b"keyed."] * 3000})
    )
    producer.send_table("t", pa.table({"value": [b"plain."] * 3000}))
    rig.host.advance(150)
    kinds = [value for partition in rig.cluster.values("t") for value in partition]
    assert 100 < kinds.count(b"plain.") < 3000
    assert 100 < kinds.count(b"keyed.") < 3000


def test_a_dead_broker_holds_nobody_up_and_comes_back_level(rig: Rig) -> None:
    producer = rig.producer(LATE)
    warm(rig, producer)
    rig.host.remove(rig.cluster.handles[0])
    rig.host.advance(50)
    took = paced(rig, producer, 1000, 1000)
    assert len(took) >= 990
    assert max(took) < 30
    sizes = log_bytes(rig.cluster)
    assert abs(sizes[1] - sizes[2]) <= 2 * 16_384 < sizes[1]
    behind = account(rig, producer)[0]
    assert behind < sizes[1] // 10
    rig.cluster.restart(0)
    paced(rig, producer, 1000, 1500)
    producer.flush()
    level = account(rig, producer)
    assert max(level) - min(level) <= 2 * 16_384
    later = log_bytes(rig.cluster)
    assert 0 < later[0] - sizes[0] < 1.5 * (later[1] - sizes[1])


def test_a_broker_that_goes_silent_is_waited_for_a_quarter_of_a_second_and_sent_no_more(rig: Rig) -> None:
    producer = rig.producer(LATE, partitioner_max_skew_bytes=0)
    warm(rig, producer)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    paced(rig, producer, 1000, 400)
    rig.cluster.produce_requests.clear()
    took = paced(rig, producer, 1000, 300)
    assert len(took) >= 290
    assert max(took) < 400
    assert not [entry for request in rig.cluster.produce_requests for entry in request if entry[1] == 0]


def test_the_availability_timeout_says_how_long_to_wait(rig: Rig) -> None:
    producer = rig.producer(LATE, partitioner_max_skew_bytes=0, partitioner_availability_timeout_ms=30)
    warm(rig, producer)
    rig.cluster.on_produce = lambda node_id, *_: IGNORE if node_id == 0 else None
    assert len(paced(rig, producer, 1000, 100)) > 50


def test_a_broker_at_half_a_second_does_not_set_the_pace(rig: Rig) -> None:
    for broker, service_ms in zip(rig.cluster.brokers, (500, 1, 1), strict=True):
        broker.service_ms = service_ms
    producer = rig.producer(LATE)
    warm(rig, producer)
    rig.host.advance(1000)
    took = paced(rig, producer, 2000, 2000)
    assert len([each for each in took if each < 30]) > 0.9 * 4000


def test_if_all_brokers_are_slow_all_are_waited_for(rig: Rig) -> None:
    for broker in rig.cluster.brokers:
        broker.service_ms = 400
    producer = rig.producer(SMALL)
    warm(rig, producer)
    send(producer, 300)
    producer.flush()
    sizes = log_bytes(rig.cluster)
    assert max(sizes) - min(sizes) <= SKEWS * int(SMALL["batch.size"])


def test_partitions_without_a_leader_are_passed_over(rig: Rig) -> None:
    producer = rig.producer(SMALL)
    rig.cluster.move("t", 1, -1)
    send(producer, 200)
    producer.flush()
    sizes = log_bytes(rig.cluster)
    assert sizes[1] == 0
    assert abs(sizes[0] - sizes[2]) <= SKEWS * int(SMALL["batch.size"])


def test_records_that_no_broker_takes_expire_with_the_reason(rig: Rig) -> None:
    for partition in range(3):
        rig.cluster.move("t", partition, -1)
    producer = rig.producer(LATE, delivery_timeout_ms=3000, request_timeout_ms=1000)
    ack = send(producer, 5)[0]
    table = producer.send_table("t", pa.table({"value": [b"a", b"b"]}))
    with pytest.raises(
        TimedOut,
        match=r"topic 't' were not delivered within delivery.timeout.ms=3000: no broker could take them "
        r"\(none of",
    ):
        ack.result(timeout_s=10)
    assert table.result(timeout_s=1, raise_on_error=False).column("error").null_count == 0
    rig.host.advance(0)
    assert memory_is_free(producer)


def test_records_of_a_topic_that_is_not_there_fail_after_max_block(rig: Rig) -> None:
    producer = rig.producer(LATE, max_block_ms=500)
    with pytest.raises(TimedOut, match=r"no metadata within max.block.ms=500"):
        producer.send("missing", b"x").result(timeout_s=5)


def test_close_says_how_many_records_it_gave_up_bound_and_unbound(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.cluster.on_produce = lambda *_: IGNORE
    producer = rig.producer(SMALL)
    acks = send(producer, 500)
    rig.host.advance(10)
    assert rig.machine(producer).accumulator.late
    producer.close(timeout_s=0.1)
    assert "500" in caplog.text
    assert all(ack.done() for ack in acks)


def test_a_producer_id_that_is_refused_fails_records_that_wait_too(rig: Rig) -> None:
    rig.cluster.on_init = lambda: 31
    producer = rig.producer(LATE)
    with pytest.raises(BrokerError, match=r"CLUSTER_AUTHORIZATION_FAILED"):
        producer.send("t", b"x").result(timeout_s=5)


def test_a_batch_that_is_too_large_is_split_and_counted_once(rig: Rig) -> None:
    rig.cluster.max_message_bytes = 300
    producer = rig.producer(LATE)
    acks = send(producer, 100)
    producer.flush()
    assert [ack.result().offset >= 0 for ack in acks] == [True] * 100
    queued = rig.machine(producer).accumulator.topics["t"]
    assert sum(account(rig, producer)) <= 61 * len(rig.cluster.produce_requests) + 100 * 20
    assert all(not queue.sequences.outstanding for queue in queued.used())


@pytest.mark.parametrize(("included", "even"), [(False, False), (True, True)])
def test_keyed_bytes_may_be_counted_so_that_unkeyed_ones_fill_the_valleys(
    rig: Rig, included: bool, even: bool
) -> None:
    producer = rig.producer(SMALL, partitioner_skew_include_keyed=included)
    for number in range(30):
        for _ in range(10):
            producer.send("t", b"keyed.", partition=0)
        send(producer, 30, 30 * number)
        producer.flush()
    sizes = log_bytes(rig.cluster)
    assert (max(sizes) - min(sizes) <= 4 * int(SMALL["batch.size"])) is even


def test_compressed_batches_are_cut_by_the_estimated_ratio_and_counted_as_they_are(rig: Rig) -> None:
    producer = rig.producer(LATE, compression_type="lz4")
    for _ in range(5):
        producer.send_table("t", pa.table({"value": [b"x" * 200] * 5000}))
        producer.flush()
    sizes = log_bytes(rig.cluster)
    assert account(rig, producer) == sizes
    largest = max(header.size_bytes for partition in rig.cluster.topics["t"] for header in partition.headers)
    assert max(sizes) - min(sizes) <= 16_384 + largest
    counts = [header.count for partition in rig.cluster.topics["t"] for header in partition.headers]
    assert max(counts) > 4 * 16_384 // 210


def test_without_answers_records_are_spread_all_the_same(rig: Rig) -> None:
    producer = rig.producer(SMALL, acks="0", enable_idempotence=False)
    send(producer, 300)
    producer.flush()
    rig.host.advance(10)
    assert min(partition.end_offset for partition in rig.cluster.topics["t"]) >= 80


def test_a_broker_whose_only_partition_failed_for_a_while_gets_its_part_again(rig: Rig) -> None:
    """Found by world cluster, seed 306: what was kept for it waited for ever."""
    producer = rig.producer(LATE, partitioner_max_skew_bytes=0)
    warm(rig, producer)
    fails = rig.cluster.on_produce
    rig.cluster.on_produce = lambda node_id, *_: ErrorCode.NOT_ENOUGH_REPLICAS if node_id == 0 else None
    paced(rig, producer, 1000, 100)
    late = rig.machine(producer).accumulator.topics["t"].late
    assert late.blocked == {0}
    rig.cluster.on_produce = fails
    rig.host.advance(3_000)
    took = paced(rig, producer, 20, 2_000)
    rig.host.advance(100)
    assert len(took) == 40
    assert late.blocked == set()
    level = account(rig, producer)
    assert max(level) - min(level) <= 2_000
