"""Reads the records of all replicas of a partition, and compares the replicas with each other."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.broker.controller import PartitionImage, TopicImage
from fairlead_kafka.broker.log import Partition, ReadBatch, readable
from fairlead_kafka.broker.log.index import BASE, LAST, MARK, PRODUCER, SIZE, TIMESTAMP
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import BatchHeader, end_marker, scan
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.simulation.model_log import ModelLog, StoredBatch
from fairlead_kafka.simulation.real_cluster import START_MS, RealBroker, RealCluster

READ_MAX_BYTES = 1 << 22
COLUMNS = (BASE, LAST, SIZE, TIMESTAMP, PRODUCER, MARK)
"""Columns of a batch index that are equal on all replicas; a batch's place in files is each
broker's own.
"""


def whole(partition: PartitionImage) -> bool:
    """True if the partition has a leader, every replica is in sync, and no reassignment is under
    way.
    """
    return (
        partition.leader >= 0
        and set(partition.isr) == set(partition.replicas)
        and not partition.adding
        and not partition.removing
    )


def read_log(cluster: RealCluster, topics: Mapping[str, int]) -> ModelLog:
    """All that consumers could read of `topics` (name → partitions), from the leaders."""
    log = ModelLog()
    for name in topics:
        images = cluster.controller.image.topics[name].partitions
        topic = log.create(name, [image.leader for image in images])
        for index, partition in enumerate(topic.partitions):
            data = _read_to_end(cluster, cluster.brokers[images[index].leader], name, index)
            partition.batches = [_stored(data, header) for header in scan(data)] if data else []
            partition.end_offset = partition.batches[-1].end_offset if partition.batches else 0
    return log


def read_held(cluster: RealCluster, topics: Mapping[str, int]) -> ModelLog:
    """All batches that the leaders of `topics` (name → partitions) hold, from where their files
    begin: also batches that no consumer is given, of aborted transactions and before the log start
    offset."""
    log = ModelLog()
    for name in topics:
        image = cluster.controller.image.topics[name]
        topic = log.create(name, [one.leader for one in image.partitions])
        for index, partition in enumerate(topic.partitions):
            broker = cluster.brokers[partition.leader]
            data = held(cluster, broker, _known(broker, image, index))
            partition.batches = [_stored(data, header) for header in scan(data)] if data else []
            partition.end_offset = partition.batches[-1].end_offset if partition.batches else 0
    return log


def ends_apart(cluster: RealCluster, besides: Container[tuple[str, int]] = ()) -> list[str]:
    """Partitions, internal ones too, whose replicas do not all end at the same offset, which is the
    high watermark of each. `besides` are left out."""
    found = []
    for topic, index, image in cluster.controller.image.partitions():
        if (topic.name, index) in besides:
            continue
        logs = [_known(cluster.brokers[node_id], topic, index) for node_id in image.replicas]
        ends = [0 if log is None else log.log_end for log in logs]
        marks = [0 if log is None else log.high_watermark for log in logs]
        if len({*ends, *marks}) > 1:
            found.append(
                f"{topic.name}-{index}: the replicas {image.replicas} end at {ends}, their high watermarks "
                f"are {marks}"
            )
    return found


def converge(
    host: VirtualHost, cluster: RealCluster, limit_ms: float, besides: Container[tuple[str, int]] = ()
) -> list[str]:
    """Let time go on until every replica is in sync and has the same log as the others. Returns the
    differences that are left after `limit_ms` milliseconds, as texts.

    Partitions in `besides` are left out.
    """
    waited_ms = 0.0
    while apart := _apart(cluster, besides):
        if waited_ms >= limit_ms:
            return [f"replicas are apart: {'; '.join(apart[:4])}"]
        host.advance(100.0)
        waited_ms += 100.0
    return []


def _apart(cluster: RealCluster, besides: Container[tuple[str, int]]) -> list[str]:
    images = [one for one in cluster.controller.image.partitions() if (one[0].name, one[1]) not in besides]
    return [
        f"{topic.name}-{number}: {image}" for topic, number, image in images if not whole(image)
    ] or ends_apart(cluster, besides)


def differences(cluster: RealCluster, compacted: Container[str] = ()) -> list[str]:
    """Differences, as texts, in any byte between the replicas of each partition, internal ones too,
    which all have to end at the same offset.

    Topics in `compacted` are left out: replicas compact each in its own time.
    """
    found = []
    for topic, index, image in cluster.controller.image.partitions():
        if topic.name in compacted:
            continue
        brokers = [cluster.brokers[node_id] for node_id in image.replicas]
        first, *others = (held(cluster, broker, _known(broker, topic, index)) for broker in brokers)
        found += [
            f"{topic.name}-{index}: broker {broker.node_id} holds other bytes than broker "
            f"{brokers[0].node_id} ({_where(first, own)})"
            for broker, own in zip(brokers[1:], others, strict=True)
            if own != first
        ]
    return found


def parted(cluster: RealCluster, trimmed: Container[str]) -> list[str]:
    """Differences, as texts, between the replicas of partitions of which records are deleted, at
    the offsets that all of them have: a replica that did not learn of a deletion before its leader
    died has more, as in Kafka."""
    found = []
    for topic, index, image in cluster.controller.image.partitions():
        if topic.name not in trimmed:
            continue
        logs = [_known(cluster.brokers[node_id], topic, index) for node_id in image.replicas]
        known = [log for log in logs if log is not None]
        offsets = (diverged(known[0], other) for other in known[1:])
        found += [
            f"{topic.name}-{index}: its replicas differ from offset {offset} on"
            for offset in offsets
            if offset is not None
        ]
    return found


def diverged(one: Partition, other: Partition) -> int | None:
    """Offset of the first batch that differs between two replicas below the lower high watermark;
    None: they agree.
    """
    start, stop = max(one.log_start, other.log_start), min(one.high_watermark, other.high_watermark)
    if start >= stop:
        return None
    first, second = _rows(one, start, stop), _rows(other, start, stop)
    if first == second:
        return None
    unlike = next(((here, there) for here, there in zip(first, second, strict=False) if here != there), None)
    return start if unlike is None else min(unlike[0][0], unlike[1][0])


def _rows(partition: Partition, start: int, stop: int) -> list[list[int]]:
    index = partition.index
    rows = (index.row(number) for number in range(index.first_reaching(start), index.below(stop)))
    return [[row[column] for column in COLUMNS] for row in rows]


def _known(broker: RealBroker, topic: TopicImage, index: int) -> Partition | None:
    return broker.machine.logs.known(topic.topic_id, index)


def held(cluster: RealCluster, broker: RealBroker, partition: Partition | None) -> bytes:
    """All batches of a replica, whether it leads or not. UsageError if they cannot be read back."""
    if partition is None or not len(partition.index):
        return b""
    locations = partition.select(partition.log_start, partition.log_end, 1 << 40, at_least_one=True)
    answers: list[list[ReadBatch]] = []
    broker.machine.logs.read(locations, answers.append)
    broker.machine.wake()
    cluster.host.run_until(lambda: answers, START_MS)
    batches, error = readable(answers[0])
    if error:
        raise UsageError(f"{partition} cannot be read back from broker {broker.node_id}")
    return b"".join(bytes(batch) for batch in batches)


def _where(one: bytes, other: bytes) -> str:
    if len(one) != len(other):
        return f"{len(one)} and {len(other)} bytes"
    position = next(place for place in range(len(one)) if one[place] != other[place])
    batch = max(
        (header for header in scan(one) if header.position <= position), key=lambda header: header.position
    )
    return f"from byte {position - batch.position} of the batch at offset {batch.base_offset}"


def _read_to_end(cluster: RealCluster, broker: RealBroker, topic: str, index: int) -> bytes:
    """All batches of a partition below the high watermark, read from its leader. A broker that does
    not know yet that it leads is given some time. UsageError for any other error code."""
    data, offset, patience_ms = b"", 0, START_MS
    while True:
        answers: list[tuple[int, list[bytes], int]] = []
        broker.machine.read_internal(topic, index, offset, _noting(answers), READ_MAX_BYTES)
        broker.machine.wake()
        cluster.host.run_until(lambda: answers, START_MS)  # noqa: B023  (called before the loop goes on)
        code, found, offset = answers[0]
        if code and patience_ms > 0:
            cluster.host.advance(100.0)
            patience_ms -= 100.0
        elif code:
            raise UsageError(
                f"{topic}-{index} cannot be read back from broker {broker.node_id}: error {code}"
            )
        elif not found:
            return data
        data += b"".join(found)


def _noting(answers: list[tuple[int, list[bytes], int]]) -> Callable[[int, Sequence[Buffer], int], None]:
    return lambda code, found, after: answers.append((code, [bytes(each) for each in found], after))


def _stored(data: bytes, header: BatchHeader) -> StoredBatch:
    own = data[header.position : header.stop]
    if not header.control:
        return StoredBatch(header.base_offset, header, own)
    marker = end_marker(data, header)
    return StoredBatch(header.base_offset, header, None, None if marker is None else marker.committed)
