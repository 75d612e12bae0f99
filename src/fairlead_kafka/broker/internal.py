"""Appending and reading without a client: how coordinators keep their state in partitions of this
broker's log, and end transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.log import Logs, Partition, ReadBatch, readable
from fairlead_kafka.broker.replication import Led, Replication
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import ControlType, EndMarker, RecordColumns, Slice, control_batch, encode, scan


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


NO_PRODUCER = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
"""Identity of a writer outside any transaction."""


class Marker(NamedTuple):
    """Transaction marker: it ends a producer's transaction in a partition, by commit or abort."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """2: the epoch is the one after that of the transaction (KIP-890, KIP-1228)."""


class InternalHost(Protocol):
    """The parts of a broker that appending and reading without a client use."""

    wall_ms: int
    guard: Guard
    logs: Logs
    replication: Replication

    def log_of(self, topic: str, number: int) -> Partition | int:
        """A partition led here, by topic name, or the error code to answer."""


class ProducersAsked(Protocol):
    """Producers whose transactions' coordinators are being asked (`transactions.verifier`)."""

    def ended(self, of: TopicPartition, marker: Marker) -> None:
        """Called when a marker was appended: batches that wait for an answer about the transaction
        that it ends are refused."""


class TransactionalOffsets(Protocol):
    """Offsets that are committed in transactions (`coordinator`)."""

    def transaction_ended(self, partition: int, producer_id: int, committed: bool) -> None:
        """Called when a marker is replicated in a partition of committed offsets."""


class TransactionalGroups(Protocol):
    """Groups whose offsets may be committed in transactions."""

    @property
    def offsets(self) -> TransactionalOffsets:
        """The committed offsets of these groups."""


class MarkerHost(InternalHost, Protocol):
    """The parts of a broker that the end of a transaction uses."""

    @property
    def verifier(self) -> ProducersAsked:
        """Producers that wait for an answer about this transaction."""

    @property
    def coordinator(self) -> TransactionalGroups:
        """Groups whose offsets the transaction commits."""


def append_internal(
    broker: InternalHost,
    topic: str,
    number: int,
    columns: RecordColumns,
    done: Callable[[int, int], None],
    producer: ProducerIdentity = NO_PRODUCER,
) -> None:
    """Append records to a partition led here; done(error_code, base_offset) once they are
    replicated (error 0) or refused.

    As acks=all: NOT_ENOUGH_REPLICAS with too few replicas in sync; NOT_LEADER_OR_FOLLOWER if
    leadership was lost while they were replicated, and then they may or may not be in the log.
    There is no time-out, so that any other answer is what the log has. With a `producer` they
    belong to its transaction; an older epoch than the partition has seen is INVALID_PRODUCER_EPOCH.
    """
    transactional = producer.producer_id >= 0
    batch = encode(
        [Slice(columns, 0, columns.count, None)],
        create_time_ms=broker.wall_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0
        if transactional
        else NO_SEQUENCE,  # as Kafka's coordinator: nobody checks these sequences
        transactional=transactional,
    ).buffer
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        done(partition, -1)
        return
    try:
        if transactional:
            partition.producers.check_epoch(producer.producer_id, producer.epoch)
        led = broker.replication.leading(partition)
        led.check_in_sync()
        base_offset = broker.logs.append(
            partition, memoryview(batch), scan(batch)[0], led.epoch, broker.wall_ms
        )
    except BrokerError as error:
        done(error.code, -1)
        return
    _when_replicated(broker, led, lambda error: done(error, -1 if error else base_offset))


def _when_replicated(broker: InternalHost, led: Led, done: Callable[[int], None]) -> None:
    """Call done(0) once all records appended to a partition so far are replicated, or done(error
    code); once."""
    reported = False

    def report(error: int) -> None:
        nonlocal reported
        if not reported:
            reported = True
            # Too few replicas in sync only now: it is replicated, and counts.
            done(ErrorCode.NONE if error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND else error)

    end_offset, replicated = led.partition.log_end, broker.guard.bind(report)

    def written(success: bool) -> None:
        if not success:
            led.waiting.forget(end_offset, replicated)
            report(ErrorCode.KAFKA_STORAGE_ERROR)

    led.when_replicated(end_offset, replicated)
    if not reported:
        broker.logs.when_written(written)


def append_marker(
    broker: MarkerHost, of: TopicPartition, marker: Marker, done: Callable[[int], None]
) -> None:
    """End a transaction in a partition led here; done(error code) once the marker is replicated (0)
    or refused, as in `append_internal`.

    The group coordinator is informed of the end of transactions in the partitions of committed
    offsets before `done` is called.
    """
    partition = broker.log_of(of.topic, of.partition)
    if isinstance(partition, int):
        done(partition)
        return
    batch = control_batch(
        ControlType.commit if marker.committed else ControlType.abort,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        timestamp_ms=broker.wall_ms,
        coordinator_epoch=marker.coordinator_epoch,
    ).buffer
    end = EndMarker(marker.committed, marker.coordinator_epoch)
    try:
        led = broker.replication.leading(partition)
        led.check_in_sync()
        partition.check_marker(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, marker.transaction_version
        )
        broker.logs.append(partition, memoryview(batch), scan(batch)[0], led.epoch, broker.wall_ms, end)
    except BrokerError as error:
        done(error.code)
        return
    broker.verifier.ended(of, marker)

    def replicated(error: int) -> None:
        if not error and of.topic == OFFSETS_TOPIC:
            broker.coordinator.offsets.transaction_ended(of.partition, marker.producer_id, marker.committed)
        done(error)

    _when_replicated(broker, led, replicated)


def when_log_replicated(broker: InternalHost, topic: str, number: int, done: Callable[[int], None]) -> None:
    """Call done(0) once all that is in the log of a partition led here is replicated, or done(error
    code); once.

    The high watermark may lie below what a former leader acknowledged, and below what this one
    appended and will acknowledge: who reads before it has passed both misses it.
    """
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        done(partition)
    else:
        _when_replicated(broker, broker.replication.leading(partition), done)


def read_internal(
    broker: InternalHost,
    topic: str,
    number: int,
    offset: int,
    done: Callable[[int, Sequence[Buffer], int], None],
    max_bytes: int,
) -> None:
    """Read whole batches from `offset` on: done(error_code, batches, next_offset). No batches: the
    end, which is the high watermark, was reached; see `when_log_replicated`."""
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        done(partition, (), offset)
        return
    start = max(offset, partition.log_start)
    locations = partition.select(start, partition.high_watermark, max_bytes, at_least_one=True)
    index = partition.index
    first = index.first_reaching(start)
    next_offset = index.last_offset(first + len(locations) - 1) + 1 if locations else start

    def read(found: list[ReadBatch]) -> None:
        batches, error = readable(found)
        if error:
            done(error, (), offset)
        else:
            done(ErrorCode.NONE, batches, next_offset)

    broker.logs.read(locations, read)
