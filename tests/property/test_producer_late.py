"""Late binding, whatever brokers do: even at every moment, in order per key, every record settled
once, nothing acknowledged lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.records import BatchHeader
from tests.support.metrics import memory_is_free
from tests.support.producer_brokers import BREAK, IGNORE, IGNORE_WRITTEN, LOSE_ANSWER, FakeCluster, Fault
from tests.support.producer_rig import Rig

FAULTS: st.SearchStrategy[Fault] = st.one_of(
    st.none(), st.none(), st.none(), st.sampled_from([2, 6, 7, 19, 20, BREAK, LOSE_ANSWER])
)
CRUEL: st.SearchStrategy[Fault] = st.one_of(FAULTS, st.sampled_from([10, 45, 59, 87, IGNORE, IGNORE_WRITTEN]))
LATE: dict[str, Any] = {"partitioner.class": "late", "batch.size": 300}
UNKEYED, KEYED, EXPLICIT, TABLE, PAUSE = range(5)
actions = st.lists(st.tuples(st.integers(UNKEYED, PAUSE), st.integers(0, 60)), min_size=1, max_size=60)


class Sent:
    """What a test handed over: handles of single records with their values, and tables with
    theirs."""

    def __init__(self) -> None:
        self.singles: list[tuple[Any, bytes]] = []
        self.tables: list[tuple[Any, list[bytes]]] = []
        self.by_key: dict[bytes, list[bytes]] = {}
        self.count = 0

    def value(self, size: int) -> bytes:
        self.count += 1
        return b"%06d" % self.count + b"." * size


def act(rig: Rig, producer: Any, sent: Sent, kind: int, size: int) -> None:
    if kind == PAUSE:
        rig.host.advance(size / 4)
        return
    if kind == TABLE:
        values = [sent.value(size % 7) for _ in range(size)]
        keys = [b"%d" % (row % 3) if row % 2 else None for row in range(size)]
        for key, value in zip(keys, values, strict=True):
            if key is not None:
                sent.by_key.setdefault(key, []).append(value)
        table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
        sent.tables.append((producer.send_table("t", table), values))
        return
    value = sent.value(size)
    key = b"%d" % (size % 3) if kind == KEYED else None
    if key is not None:
        sent.by_key.setdefault(key, []).append(value)
    sent.singles.append(
        (producer.send("t", value, key=key, partition=size % 3 if kind == EXPLICIT else None), value)
    )


def quiesce(rig: Rig, producer: Any) -> None:
    """Flush, and see that nothing is left behind."""
    producer.core.check()
    producer.flush()
    rig.host.advance(0)
    producer.core.check()
    machine = rig.machine(producer)
    assert machine.records_open == 0
    assert not machine.accumulator.late
    assert not machine.schedule.active
    assert memory_is_free(producer)
    topic = machine.accumulator.topics.get("t")
    assert topic is None or all(
        queue.in_flight == 0 and not queue.sequences.outstanding for queue in topic.used()
    )


def slow(rig: Rig, service_ms: list[float]) -> None:
    for broker, each_ms in zip(rig.cluster.brokers, service_ms, strict=True):
        broker.service_ms = each_ms


@settings(max_examples=60)
@given(
    todo=actions,
    faults=st.lists(FAULTS, max_size=30),
    service_ms=st.lists(st.sampled_from([0.0, 1.0, 20.0]), min_size=2, max_size=2),
    linger_ms=st.sampled_from([0, 5]),
    in_flight=st.sampled_from([5, 2, 1]),
    skew_bytes=st.sampled_from([-1, 0, 2**63 - 1]),
    codec=st.sampled_from(["none", "lz4"]),
)
def test_every_record_is_written_once_and_in_order_per_key(
    todo: list[tuple[int, int]],
    faults: list[Fault],
    service_ms: list[float],
    linger_ms: int,
    in_flight: int,
    skew_bytes: int,
    codec: str,
) -> None:
    rig = Rig(brokers=2)
    rig.cluster.create("t", 3)
    slow(rig, service_ms)
    left = iter(faults)
    rig.cluster.on_produce = lambda *_: next(left, None)
    config = {
        "linger.ms": linger_ms,
        "max.in.flight.requests.per.connection": in_flight,
        "partitioner.max.skew.bytes": skew_bytes,
        "compression.type": codec,
    }
    producer, sent = rig.producer({**LATE, **config}), Sent()
    for kind, size in todo:
        act(rig, producer, sent, kind, size)
        producer.core.check()
    quiesce(rig, producer)
    written = rig.cluster.values("t")
    for ack, value in sent.singles:
        metadata = ack.result(timeout_s=0)
        assert metadata.offset < 0 or written[metadata.partition][metadata.offset] == value
    for handle, values in sent.tables:
        result = handle.result(timeout_s=0).to_pydict()
        for partition, offset, value in zip(result["partition"], result["offset"], values, strict=True):
            assert offset is None or written[partition][offset] == value
    everything = [value for partition in written for value in partition]
    assert sorted(everything) == sorted(set(everything))
    assert len(everything) == sent.count
    for values in sent.by_key.values():
        (partition,) = {index for index in range(3) if values[0] in written[index]}
        assert [value for value in written[partition] if value in set(values)] == values


@settings(max_examples=50)
@given(
    todo=actions,
    faults=st.lists(CRUEL, max_size=25),
    idempotent=st.booleans(),
    buffer_memory=st.sampled_from([900, 1 << 20]),
    moves=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.integers(-1, 1)), max_size=4),
)
def test_everything_is_settled_once_whatever_happens(
    todo: list[tuple[int, int]],
    faults: list[Fault],
    idempotent: bool,
    buffer_memory: int,
    moves: list[tuple[int, int, int]],
) -> None:
    rig = Rig(brokers=2)
    rig.cluster.create("t", 3)
    left = iter(faults)
    rig.cluster.on_produce = lambda *_: next(left, None)
    config = {
        "enable.idempotence": idempotent,
        "buffer.memory": buffer_memory,
        "delivery.timeout.ms": 4000,
        "request.timeout.ms": 1000,
        "linger.ms": 0,
    }
    producer, sent = rig.producer({**LATE, **config}), Sent()
    for number, (kind, size) in enumerate(todo):
        for when, partition, leader in moves:
            if when == number:
                rig.cluster.move("t", partition, leader)
        act(rig, producer, sent, kind, size)
        producer.core.check()
    quiesce(rig, producer)
    written = {value for partition in rig.cluster.values("t") for value in partition}
    for ack, value in sent.singles:
        try:
            ack.result(timeout_s=0)
        except Exception:
            continue
        assert value in written, "acknowledged and lost"
    for handle, values in sent.tables:
        errors = handle.result(timeout_s=0, raise_on_error=False).column("error").to_pylist()
        assert all(error is not None or value in written for error, value in zip(errors, values, strict=True))


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 500), min_size=1, max_size=80),
    service_ms=st.lists(st.sampled_from([0.0, 1.0, 20.0, 60.0]), min_size=3, max_size=3),
    skew_bytes=st.sampled_from([0, 300, 1000]),
    partitions=st.integers(1, 7),
    pause_ms=st.sampled_from([0, 1, 9]),
)
def test_brokers_are_even_to_what_each_may_be_behind_by(
    sizes: list[int], service_ms: list[float], skew_bytes: int, partitions: int, pause_ms: int
) -> None:
    """Bytes as they are written to the log, headers of batches included; what is sent in one step
    arrives at one moment."""
    rig = Rig(brokers=3)
    rig.cluster.create("t", partitions)
    slow(rig, service_ms)
    seen = Arrivals(rig.cluster, partitions)
    producer = rig.producer(
        {**LATE, "linger.ms": 0, "batch.size": 200, "partitioner.max.skew.bytes": skew_bytes}
    )
    for size in sizes:
        producer.send("t", b"." * size)
        rig.host.advance(pause_ms)
    producer.send_table("t", pa.table({"value": [b"." * size for size in sizes]}))
    quiesce(rig, producer)
    seen.compare()
    assert sum(seen.records) == 2 * len(sizes)
    account = rig.machine(producer).accumulator.topics["t"].late.policy.counter.placed_bytes
    assert account == seen.bytes
    assert seen.most_apart <= 3 * (skew_bytes + seen.largest)


class Arrivals:
    """Bytes per partition as brokers see them, moment by moment; virtual connections take equally
    long."""

    def __init__(self, cluster: FakeCluster, partitions: int) -> None:
        self.host = cluster.host
        self.at_ns = 0
        self.bytes = [0] * partitions
        self.records = [0] * partitions
        self.most_apart = self.largest = 0
        cluster.on_produce = self

    def __call__(self, node_id: int, topic: str, partition: int, header: BatchHeader) -> None:
        if self.host.now_ns() != self.at_ns:
            self.compare()
            self.at_ns = self.host.now_ns()
        self.bytes[partition] += header.size_bytes
        self.records[partition] += header.count
        self.largest = max(self.largest, header.size_bytes)

    def compare(self) -> None:
        """A moment is over."""
        self.most_apart = max(self.most_apart, max(self.bytes) - min(self.bytes))
