"""`AsyncConsumer`: reads partitions, as records or as Arrow tables, on an event loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import numpy as np  # noqa: F401  # first of all: see the package's docstring

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int64, Offset, Seconds
from fairlead_kafka.client.consumer_calls import ConsumerCalls
from fairlead_kafka.client.consumer_group import RebalanceListener
from fairlead_kafka.client.hosting import Opener, Steps, end_with, offload, open_host, run_async
from fairlead_kafka.client.one_at_a_time import close_async
from fairlead_kafka.consumer import EARLIEST, LATEST, OffsetAndTimestamp, Record
from fairlead_kafka.consumer.groups import SubscriptionPattern
from fairlead_kafka.consumer.metrics import ConsumerMetrics
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.runtime import Completion

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
ITERATION_S = 1.0
"""Seconds that one wait of an iteration lasts; only then does it notice `close`."""


def await_user(coroutine: Awaitable[T]) -> Completion[T]:
    """Run a coroutine of the application's on the running loop; the completion has its result or
    error."""
    completion: Completion[T] = Completion()

    async def run() -> None:
        try:
            completion.set_result(await coroutine)
        except Exception as error:
            completion.set_error(error)
        except asyncio.CancelledError:  # of a task that it awaited: no error that poll could raise
            completion.set_error(UsageError("a coroutine of a listener ended in CancelledError: catch it"))
        except BaseException as error:  # which ends the event loop
            completion.set_error(UsageError(f"a coroutine of a listener ended in {error!r}"))
            raise

    task = asyncio.ensure_future(run())
    _running.add(task)
    task.add_done_callback(_running.discard)
    return completion


_running: set[asyncio.Future[None]] = set()
"""Tasks of `await_user` in progress, kept here because an event loop does not keep them alive."""


@checked()
class AsyncConsumer:
    """A Kafka consumer with the methods of `Consumer`, as coroutines.

    `config` has Kafka's keys (`bootstrap.servers`, `auto.offset.reset`, ...; see
    docs/reference/configuration.md); ConfigError names all that is wrong with it. `opener`: what
    runs the client's machine (`client.hosting.Opener`), as a host in virtual time. Data is fetched
    ahead on a thread of its own, at most `fetch.max.bytes` per broker; large pieces are decoded on
    the loop's default executor, so that the loop goes on.

    Time-outs are in seconds; where None is allowed it stands for `default.api.timeout.ms`. If no
    broker was ever reached, a call without a time-out raises NoBrokerReached after
    `bootstrap.connection.timeout.ms` at the latest. Calls raise TimedOut when no answer came in
    time, BrokerError when a broker refused, UsageError when the consumer is closed or a partition
    is not assigned. A poll that is cancelled loses nothing. One poll at a time. Kafka's
    counterpart: `org.apache.kafka.clients.consumer.KafkaConsumer`.
    """

    def __init__(self, config: Mapping[str, object], *, opener: Opener = open_host) -> None:
        self._calls = ConsumerCalls(config, offload, await_user, opener)
        end_with(self, self._calls.abandon)

    def _run(self, steps: Steps[T]) -> Coroutine[object, None, T]:
        return run_async(steps, self._calls.host)

    async def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions from now on; an empty list stops reading.

        Partitions assigned before keep their positions. UsageError while subscribed.
        """
        await self._run(self._calls.positions.assign(partitions))

    async def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics: the group `group.id` assigns partitions of them to this consumer.

        `topics`: names, or a compiled pattern for all topics whose whole name it matches, or, with
        `group.protocol=consumer`, a SubscriptionPattern that brokers match. Partitions come, and
        go, in later polls, and `listener` is called. Reading begins at the committed offset, else
        as `auto.offset.reset` says. Polls raise errors of the group. Another call replaces the
        subscription. UsageError without `group.id`, or while partitions are assigned by hand.
        """
        await self._run(self._calls.group.subscribe(topics, listener))

    async def unsubscribe(self) -> None:
        """Leave the group, after the listener was called, and read nothing.

        Partitions that were assigned by hand are given up, too. Without a subscription or
        assignment it does nothing.
        """
        await self._run(self._calls.group.unsubscribe())

    async def subscription(self) -> list[str]:
        """The topics subscribed to; for a pattern those found so far."""
        return await self._run(self._calls.group.subscription())

    async def commit(
        self,
        offsets: Mapping[TopicPartition, Offset | OffsetAndMetadata] | None = None,
        timeout_s: Seconds | None = None,
    ) -> None:
        """Commit offsets for the group (None: all positions); returns once its log has them.

        An offset is that of the next record to read: where the group goes on reading. BrokerError
        if the group has gone on without this consumer (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
        FENCED_MEMBER_EPOCH), or is rebalancing (REBALANCE_IN_PROGRESS: poll, and commit again).
        UsageError without `group.id`.
        """
        await self._run(self._calls.group.commit(offsets, timeout_s))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Committed offset of each partition; None where the group has committed none."""
        return await self._run(self._calls.group.committed(partitions, timeout_s))

    async def group_metadata(self) -> GroupMetadata:
        """Group, generation and member id, for `send_offsets_to_transaction` of a producer."""
        return await self._run(self._calls.group.group_metadata())

    def assignment(self) -> list[TopicPartition]:
        """The partitions assigned to this consumer, in the order given."""
        return self._calls.positions.assignment()

    async def seek(self, partition: TopicPartition, offset: Int64) -> None:
        """Read on from `offset`; what was fetched of the partition is dropped. An offset out of
        range shows at the next poll."""
        await self._run(self._calls.positions.seek_offset(partition, offset))

    async def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read on from the first offset there is, looked up at the next poll; None: of all assigned
        partitions."""
        await self._run(self._calls.positions.seek_to(partitions, EARLIEST))

    async def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read on from the end, looked up at the next poll, so that only what is written later
        comes; None: all assigned."""
        await self._run(self._calls.positions.seek_to(partitions, LATEST))

    async def position(self, partition: TopicPartition, timeout_s: Seconds | None = None) -> int:
        """Offset of the next record that a poll returns; looked up if there is no position yet."""
        return await self._run(self._calls.positions.position(partition, timeout_s))

    async def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`.

        What was fetched of them is kept, up to max.partition.fetch.bytes of each.
        """
        await self._run(self._calls.positions.pause(partitions, True))

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again, after `pause`."""
        await self._run(self._calls.positions.pause(partitions, False))

    def paused(self) -> list[TopicPartition]:
        """The partitions of which polls return no records (`pause`)."""
        return self._calls.positions.paused()

    async def poll(self, timeout_s: Seconds = 1.0, max_records: int | None = None) -> list[Record]:
        """Records as soon as there are any, at most `max_records` (None: `max.poll.records`); empty
        if none came in time.

        Records of one partition come in offset order. With `key.deserializer` or
        `value.deserializer` their keys and values are objects; one that does not parse ends a poll
        before it, and is the next poll's DeserializationFailed, until a seek past it. Raises
        OffsetOutOfRange if the position is gone and `auto.offset.reset` is none, DecodeError for
        damaged batches (again at every poll, until a seek), and BrokerError for a topic that is
        still missing.
        """
        return await self._run(self._calls.reading.poll(timeout_s, max_records))

    async def poll_table(
        self, timeout_s: Seconds = 1.0, max_records: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Fetched records as a `pyarrow.Table`, as soon as there are any; else no rows.

        Columns: topic string, partition int32, offset int64, timestamp timestamp[us, UTC],
        timestampType int32, key binary, value binary, headers list<struct<key: string, value:
        binary>>; or only those named in `columns` (keys and headers not named are not decoded).
        With `key.deserializer` or `value.deserializer`, key and value have types of their own, and
        there is a column rescued struct<key: binary, value: binary, reason: string>: null but for
        rows that do not parse, of which it has the bytes and why (docs/how-to/formats.md).
        Rows of one partition are in offset order. A table holds at most 8 MiB of fetched data (more
        if one piece is larger), or `max_records`. Raises as `poll`.
        """
        return await self._run(self._calls.reading.poll_table(timeout_s, max_records, columns))

    async def read_range(
        self,
        partition: TopicPartition,
        start: Offset,
        end: Offset,
        columns: Sequence[str] | None = None,
        timeout_s: Seconds | None = None,
    ) -> AsyncIterator[pa.Table]:
        """Tables of the records of one partition with offsets `start` to `end` (excluded). Replaces
        the assignment.

        Ends when the position reaches `end`, also if the last offsets hold no records (compaction,
        control records). Raises OffsetOutOfRange if an offset asked for is not there, whatever
        `auto.offset.reset` says, BrokerError (UNKNOWN_TOPIC_OR_PARTITION) once the topic has been
        missing for 10 s, and TimedOut if nothing came for `timeout_s` (None:
        `default.api.timeout.ms`).
        """
        names = await self._run(self._calls.ranges.begin(partition, start, end, columns))
        while (
            table := await self._run(self._calls.ranges.go_on(partition, end, names, timeout_s))
        ) is not None:
            yield table

    async def read_batches(
        self,
        partition: TopicPartition,
        start: Offset,
        end: Offset,
        timeout_s: Seconds | None = None,
        measure_ratio: bool = False,
    ) -> AsyncIterator[pa.Table]:
        """Tables with a row per record batch of one partition, by what its header says; no record
        is decoded. Replaces the assignment.

        Of the batches whose last offset is `start` to `end` (excluded), so that ranges side by side
        give each batch once. Columns: topic, partition, base_offset, last_offset, records (after
        compaction fewer than offsets), size_bytes, uncompressed_bytes (null for a compressed batch
        unless `measure_ratio` has it inflated), codec, base_timestamp, max_timestamp,
        timestamp_type, leader_epoch, producer_id, producer_epoch, base_sequence, is_transactional,
        is_control (a transaction's marker); types: `records.HEADER_SCHEMA`. With `read_committed`,
        batches up to the last stable offset, those of aborted transactions among them. Raises as
        `read_range`.
        """
        await self._run(self._calls.ranges.begin_batches(partition, start, end))
        while (
            table := await self._run(
                self._calls.ranges.go_on_batches(partition, end, measure_ratio, timeout_s)
            )
        ) is not None:
            yield table

    async def __aiter__(self) -> AsyncIterator[Record]:
        """Records, one by one, without end, until the consumer is closed.

        Positions move with each record; with interceptors or deserializers, with each
        block of up to max.poll.records.
        """
        while not self._calls.closed:
            try:
                if self._calls.reading.by_polls:
                    for record in await self._run(self._calls.reading.poll(ITERATION_S, None)):
                        yield record
                    continue
                block = await self._run(self._calls.reading.block(ITERATION_S))
            except UsageError:
                if self._calls.closed:
                    return
                raise
            if block is not None:
                for record in self._calls.reading.one_by_one(block):
                    yield record

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition; they need not be assigned."""
        return await self._run(self._calls.lookups.end_of_logs(partitions, EARLIEST, timeout_s))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition (its high watermark); they need not be
        assigned."""
        return await self._run(self._calls.lookups.end_of_logs(partitions, LATEST, timeout_s))

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, Int64], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset whose timestamp is the one given (ms since 1970) or later; None where
        there is none."""
        return await self._run(self._calls.lookups.offsets_for_times(times_ms, timeout_s))

    async def connect(self, timeout_s: Seconds | None = None) -> None:
        """Wait until a broker is reached, to check `bootstrap.servers` at the start of a program.

        NoBrokerReached, naming each address and what is wrong with it, if none is reached within
        `timeout_s` seconds (None: bootstrap.connection.timeout.ms); the client goes on trying. Once
        a broker was reached, later calls return at once.
        """
        await self._run(self._calls.connect(timeout_s))

    async def client_instance_id(self, timeout_s: Seconds | None = None) -> UUID:
        """The id under which this client's metrics are pushed, which a broker gave it (KIP-714).

        TimedOut if none did within `timeout_s` seconds (None: default.api.timeout.ms): brokers give
        ids where the cluster takes clients' metrics. UsageError with enable.metrics.push=false.
        """
        return await self._run(self._calls.instance_id(timeout_s))

    async def partitions_for(self, topic: str, timeout_s: Seconds | None = None) -> list[PartitionMetadata]:
        """The topic's partitions, by number, with leader and replicas. A topic missing until the
        time is up: BrokerError."""
        return await self._run(self._calls.lookups.partitions_for(topic, timeout_s))

    async def list_topics(self, timeout_s: Seconds | None = None) -> dict[str, list[PartitionMetadata]]:
        """Every topic of the cluster with its partitions (leader, replicas, in-sync replicas), by
        number."""
        return await self._run(self._calls.lookups.topics(None, timeout_s))

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return self._calls.client_id

    @property
    def group_id(self) -> str | None:
        """The `group.id` of the config; None if there is none."""
        return self._calls.group_id

    def metrics(self) -> ConsumerMetrics:
        """Metrics by Kafka's groups and names (docs/reference/metrics.md); on any thread, also once
        closed.

        {"consumer-metrics": {name: number}, "consumer-node-metrics": {"node-0": {name: number}},
        "consumer-coordinator-metrics": ..., "consumer-fetch-manager-metrics": ...,
        "consumer-fetch-manager-topic-metrics": {topic: ...},
        "consumer-fetch-manager-partition-metrics": {TopicPartition: {"records-lag": ...}}}. Totals
        are since the start; rates, averages and maxima over `metrics.sample.window.ms` times
        `metrics.num.samples`, NaN if there was nothing.
        """
        return self._calls.metrics()

    async def close(self) -> None:
        """Leave the group, after a last commit where `enable.auto.commit` says so, stop fetching
        and close all connections.

        A poll in another thread ends with UsageError; the consumer does not leave its group then.
        Closing again does nothing, also while the first close is under way.
        """
        await close_async(self._calls, self._run)

    async def __aenter__(self) -> AsyncConsumer:
        self._calls.check_open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
