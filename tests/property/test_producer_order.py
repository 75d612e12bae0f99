"""Whatever brokers do, within the rules: order per partition holds, every record is settled once,
memory comes back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.producer_brokers import BREAK, IGNORE, IGNORE_WRITTEN, LOSE_ANSWER, FakeCluster, Fault
from tests.support.producer_rig import Rig

RETRIABLE = [2, 6, 7, 19, 20, BREAK, LOSE_ANSWER]
FAULTS: st.SearchStrategy[Fault] = st.one_of(st.none(), st.none(), st.sampled_from(RETRIABLE))
CRUEL: st.SearchStrategy[Fault] = st.one_of(FAULTS, st.sampled_from([10, 45, 59, 87, IGNORE, IGNORE_WRITTEN]))


def sequences_are_contiguous(cluster: FakeCluster) -> bool:
    for partitions in cluster.topics.values():
        for partition in partitions:
            expected: dict[tuple[int, int], int] = {}
            for header in partition.headers:
                key = (header.producer_id, header.producer_epoch)
                if header.base_sequence != expected.get(key, 0):
                    return False
                expected[key] = header.base_sequence + header.count
    return True


def run(
    rig: Rig, faults: list[Fault], records: list[tuple[int, int]], config: dict[str, Any], pause_ms: float
) -> list[Any]:
    """Send records (partition, size), a table in their midst, and wait for all; gives the handles
    of the single ones."""
    rig.cluster.create("t", 3)
    left = iter(faults)
    rig.cluster.on_produce = lambda *_: next(left, None)
    calls: list[int] = []
    producer = rig.producer(config)
    acks = []
    for number, (partition, size) in enumerate(records):
        value = b"%06d" % number + b"." * size
        acks.append(
            producer.send(
                "t", value, partition=partition, on_delivery=lambda *_, number=number: calls.append(number)
            )
        )
        if number % 7 == 3:
            rig.host.advance(pause_ms)
        producer.core.check()
    table = producer.send_table(
        "t",
        pa.table(
            {"value": [b"table %d" % i for i in range(40)], "key": [b"%d" % (i % 5) for i in range(40)]}
        ),
    )
    producer.core.check()
    producer.flush()
    rig.host.advance(0)
    producer.core.check()
    assert all(ack.done() for ack in acks)
    assert table.done()
    assert sorted(calls) == list(range(len(records)))
    metrics = producer.metrics()["producer-metrics"]
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    assert metrics["records-open"] == 0
    assert metrics["record-delivered-total"] + metrics["record-error-total"] == len(records) + 40
    machine = rig.machine(producer)
    assert not machine.schedule.active
    assert all(
        queue.in_flight == 0 and not queue.sequences.outstanding
        for queue in machine.accumulator.topics["t"].used()
    )
    return acks


records_sent = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), min_size=1, max_size=120)


@settings(max_examples=40)
@given(
    faults=st.lists(FAULTS, min_size=20, max_size=60),
    records=records_sent,
    linger_ms=st.sampled_from([0, 5]),
    in_flight=st.sampled_from([5, 2, 1]),
    service_ms=st.sampled_from([0.0, 3.0]),
    chunk=st.sampled_from([None, 7]),
)
def test_order_and_exactly_once_hold_under_retries(
    faults: list[Fault],
    records: list[tuple[int, int]],
    linger_ms: int,
    in_flight: int,
    service_ms: float,
    chunk: int | None,
) -> None:
    rig = Rig(brokers=2, chunk_bytes=chunk)
    for broker in rig.cluster.brokers:
        broker.service_ms = service_ms
    config = {
        "batch.size": 200,
        "linger.ms": linger_ms,
        "max.in.flight.requests.per.connection": in_flight,
    }
    acks = run(rig, faults, records, config, 2)
    values = rig.cluster.values("t")
    for partition in range(3):
        expected = [
            b"%06d" % number + b"." * size
            for number, (asked, size) in enumerate(records)
            if asked == partition
        ]
        assert [value for value in values[partition] if not value.startswith(b"table")] == expected
    for number, ack in enumerate(acks):
        metadata = ack.result(timeout_s=0)
        if metadata.offset >= 0:
            assert values[metadata.partition][metadata.offset].startswith(b"%06d" % number)
    assert sequences_are_contiguous(rig.cluster)


@settings(max_examples=40)
@given(
    faults=st.lists(CRUEL, max_size=25),
    records=records_sent,
    idempotent=st.booleans(),
    codec=st.sampled_from(["none", "lz4"]),
    buffer_memory=st.sampled_from([600, 1 << 20]),
)
def test_everything_is_settled_once_whatever_happens(
    faults: list[Fault], records: list[tuple[int, int]], idempotent: bool, codec: str, buffer_memory: int
) -> None:
    rig = Rig(brokers=2)
    config = {
        "batch.size": 200,
        "enable.idempotence": idempotent,
        "compression.type": codec,
        "buffer.memory": buffer_memory,
        "delivery.timeout.ms": 4000,
        "request.timeout.ms": 1000,
        "max.block.ms": 60_000,
    }
    acks = run(rig, faults, records, config, 30)
    values = [value for partition in rig.cluster.values("t") for value in partition]
    for number, ack in enumerate(acks):
        try:
            ack.result(timeout_s=0)
        except Exception:
            continue
        written = [value for value in values if value.startswith(b"%06d" % number)]
        assert written, "acknowledged and lost"
        # A broker that denies a batch it has written (45, 59) makes the producer write it again
        # under a new epoch.
        assert len(written) == 1 or not idempotent or 45 in faults or 59 in faults


@settings(max_examples=25)
@given(
    faults=st.lists(st.sampled_from([None, None, None, 87, 7, LOSE_ANSWER]), min_size=10, max_size=40),
    count=st.integers(20, 200),
)
def test_order_holds_also_around_failed_batches_and_new_epochs(faults: list[Fault], count: int) -> None:
    rig = Rig(brokers=1)
    rig.cluster.brokers[0].service_ms = 1
    run(rig, faults, [(0, 10)] * count, {"batch.size": 150}, 1)
    singles = [value for value in rig.cluster.values("t")[0] if not value.startswith(b"table")]
    assert singles == sorted(set(singles))
