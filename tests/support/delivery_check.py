"""Sends records in every way there is, and judges afterwards: nothing lost, nothing twice, in
order, each where its ack says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

import fairlead_kafka
from fairlead_kafka import Producer, RecordMetadata, TopicPartition
from fairlead_kafka.client.handles import Ack, TableAck
from tests.support.cutting_proxy import CuttingProxy, Fault, every
from tests.support.waiting import PATIENCE_S

Place = tuple[int, int]
KEYS = 7
PARTITIONS = 3
QUICK = {
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 50,
}
"""Settings that keep a test with many faults short."""


@dataclass
class Sent:
    """What was handed over to one topic: values are numbered, so order shows."""

    topic: str
    partitions: int
    count: int = 0
    singles: list[tuple[bytes, Ack]] = field(default_factory=list)
    tables: list[tuple[list[bytes], TableAck]] = field(default_factory=list)

    def values(self, count: int) -> list[bytes]:
        """The next `count` values."""
        first, self.count = self.count, self.count + count
        return [b"%07d" % number for number in range(first, first + count)]

    def send_all_ways(self, producer: Producer, rows: int = 60) -> None:
        """Singles with key, without, and with an explicit partition; tables likewise."""
        for place, value in enumerate(self.values(rows)):
            key = b"key-%d" % (place % KEYS)
            if place % 3 == 0:
                ack = producer.send(self.topic, value, key=key, headers=[("n", value)])
            elif place % 3 == 1:
                ack = producer.send(self.topic, value)
            else:
                ack = producer.send(self.topic, value, partition=place % self.partitions)
            self.singles.append((value, ack))
        for shape in ("keyed", "unkeyed", "explicit"):
            self.send_table(producer, shape, rows)

    def send_table(self, producer: Producer, shape: str, rows: int) -> None:
        """A table: "keyed", "unkeyed" or with "explicit" partitions."""
        values = self.values(rows)
        columns = {"value": pa.array(values, pa.binary())}
        if shape == "keyed":
            columns["key"] = pa.array([b"key-%d" % (place % KEYS) for place in range(rows)], pa.binary())
        if shape == "explicit":
            columns["partition"] = pa.array([place % self.partitions for place in range(rows)], pa.int32())
        self.tables.append((values, producer.send_table(self.topic, pa.table(columns))))

    def acknowledged(self, timeout_s: float = 30) -> dict[Place, bytes]:
        """Every record's value by the place that its ack names; raises what any of them failed
        with."""
        placed: dict[Place, bytes] = {}
        for value, ack in self.singles:
            enter(placed, ack.result(timeout_s), value)
        for values, ack in self.tables:
            result = ack.result(timeout_s).to_pydict()
            for value, partition, offset in zip(values, result["partition"], result["offset"], strict=True):
                assert offset is not None, "an acknowledged record without an offset"
                enter(placed, RecordMetadata(self.topic, partition, offset, 0), value)
        return placed


def enter(placed: dict[Place, bytes], metadata: RecordMetadata, value: bytes) -> None:
    """Note where a record went; two records in one place are a fault."""
    place = (metadata.partition, metadata.offset)
    assert metadata.offset >= 0
    assert place not in placed, f"{value!r} and {placed[place]!r} are both said to be at {place}"
    placed[place] = value


def read_back(servers: str, topic: str, partitions: int) -> dict[Place, tuple[bytes | None, bytes]]:
    """Key and value of everything in a topic, by place."""
    found: dict[Place, tuple[bytes | None, bytes]] = {}
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        ends = consumer.end_offsets(numbers)
        for partition in numbers:
            for table in consumer.read_range(
                partition, 0, ends[partition], columns=["offset", "key", "value"], timeout_s=PATIENCE_S
            ):
                for row in table.to_pylist():
                    place = (partition.partition, row["offset"])
                    assert place not in found
                    found[place] = (row["key"], row["value"])
        assert len(found) == sum(ends.values())
    return found


def check_delivered(
    placed: dict[Place, bytes],
    found: dict[Place, tuple[bytes | None, bytes]],
    *,
    all_acknowledged: bool = True,
) -> None:
    """Acknowledged records are there, exactly once, where their acks say; keys and partitions keep
    their order."""
    for place, value in placed.items():
        assert place in found, f"{value!r} was acknowledged at {place} and is not there"
        assert found[place][1] == value, (
            f"{value!r} was acknowledged at {place}, where {found[place][1]!r} is"
        )
    values = [value for _, value in found.values()]
    assert len(set(values)) == len(values), "records are there twice"
    if all_acknowledged:
        assert len(found) == len(placed), "records are there that nobody sent"
    in_order(found.items())


def in_order(found: Iterable[tuple[Place, tuple[bytes | None, bytes]]]) -> None:
    """Each key's values rise with the offset, within its one partition."""
    last: dict[tuple[int, bytes], bytes] = {}
    homes: dict[bytes, int] = {}
    for (partition, _), (key, value) in sorted(found):
        if key is not None:
            assert homes.setdefault(key, partition) == partition
            assert last.get((partition, key), b"") < value, (
                f"{value!r} of {key!r} came after {last[partition, key]!r}"
            )
            last[partition, key] = value


def run(
    servers: str, topic: str, faults: list[Fault], step: int = 3, rounds: int = 6, **config: object
) -> None:
    """Send through a proxy that spoils every `step`-th request, read back past it, and judge."""
    sent = Sent(topic, PARTITIONS)
    settings = {
        **QUICK,
        "batch.size": 700,
        "linger.ms": 1,
        **{key.replace("_", "."): value for key, value in config.items()},
    }
    with CuttingProxy(servers, every(step, faults)) as proxy:
        with fairlead_kafka.Producer({"bootstrap.servers": proxy.bootstrap_servers, **settings}) as producer:
            for _ in range(rounds):
                sent.send_all_ways(producer)
                producer.flush(timeout_s=PATIENCE_S)
            while sum(proxy.spoiled.values()) < len(faults):
                sent.send_all_ways(producer)
                producer.flush(timeout_s=PATIENCE_S)
            placed = sent.acknowledged()
            metrics = producer.metrics()["producer-metrics"]
        assert sum(proxy.spoiled.values()) == len(faults)
    assert metrics["record-delivered-total"] == sent.count
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    assert (metrics["records-open"], metrics["record-error-total"]) == (0, 0)
    check_delivered(placed, read_back(servers, topic, PARTITIONS))
