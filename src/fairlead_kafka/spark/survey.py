"""Asks a cluster about the topics of a read: ids, partitions, start and end offsets."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import (
    BrokerError,
    ConfigError,
    ConnectionFailed,
    ItemsFailed,
    NoBrokerReached,
    OffsetOutOfRange,
    TimedOut,
)
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, Consumer
from fairlead_kafka.spark.clients import NO_NEW_TOPICS
from fairlead_kafka.spark.offsets import OffsetsByPartition
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.shipped import with_shipped_files
from fairlead_kafka.spark.topics import did_you_mean
from fairlead_kafka.spark.volume import Sample

T = TypeVar("T")
LOGGER = GuardedLogger("fairlead_kafka.spark")
ONE_BATCH = {"max.partition.fetch.bytes": "1", "fetch.max.bytes": "1"}
"""Settings for a fetch of one batch: a broker sends a whole batch however small the limit (KIP-74),
and with this limit no more."""
_ADMIN_KEYS = frozenset(key.name for key in CLIENT_CONFIGS.scope("admin"))


@dataclass(frozen=True)
class Found:
    """The partitions that a read finds, sorted; the ids of their topics; and the topics that were
    named and do not exist, with their errors."""

    partitions: list[TopicPartition]
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    missing: Mapping[str, BrokerError] = field(default_factory=dict)


class Survey:
    """Asks the cluster about a read's topics, with clients that are made when first needed and
    kept. For one thread at a time."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._looker: Consumer | None = None
        self._admin: Admin | None = None

    @property
    def consumer(self) -> Consumer:
        """The client that looks up offsets, as `isolation.level` has them; it joins no group."""
        if self._consumer is None:
            self._consumer = Consumer({**NO_NEW_TOPICS, **with_shipped_files(self._options.client)})
        return self._consumer

    def find(self) -> Found:
        """The topics that `assign`, `subscribe` or `subscribePattern` name, as they are now.

        Never creates a topic.
        """
        options = self._options
        if options.pattern is not None:
            pattern = compile_pattern(options.pattern)
            names = [name for name in self._topics().list_topics() if pattern.fullmatch(name)]
        else:
            names = sorted(set(options.topics or options.assignment or ()))
        missing: dict[str, BrokerError] = {}
        try:
            described = self._topics().describe_topics(names)
        except ItemsFailed as error:
            described, missing = error.results, dict(error.errors)
        partitions = []
        for name, topic in described.items():
            there = [each.partition for each in topic.partitions]
            wanted = there if options.assignment is None else options.assignment[name]
            partitions += [TopicPartition(name, number) for number in wanted if number in there]
            absent = [number for number in wanted if number not in there]
            if absent:
                shown = f"{name}, partition {', '.join(map(str, absent))}"
                missing[shown] = BrokerError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} has {len(there)} partitions"
                )
        return Found(sorted(partitions), {name: topic.topic_id for name, topic in described.items()}, missing)

    def refuse_missing(self, found: Found) -> None:
        """Raise BrokerError, which names the first topic that does not exist, and one that may have
        been meant, if any is missing."""
        for name, error in found.missing.items():
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise BrokerError(
                    error.code, f"topic {name}: {error.context or error.policy.meaning}"
                ) from error
            hint = f" ({error.context})" if "," in name else did_you_mean(name, self._topics().list_topics())
            raise BrokerError(
                error.code, f"topic {name} is not in the cluster{hint or '; create it, or check its name'}"
            ) from error

    def earliest(self, partitions: Iterable[TopicPartition]) -> OffsetsByPartition:
        """First offset of each partition's log."""
        return self.consumer.beginning_offsets(partitions)

    def latest(self, partitions: Iterable[TopicPartition]) -> OffsetsByPartition:
        """End offset of each partition's log; with `read_committed` its last stable offset. That is
        where its first open transaction begins, if there is one."""
        return self.consumer.end_offsets(partitions)

    def look(self, partition: TopicPartition, offset: int, end: int) -> Sample | None:
        """The first record batch that reaches to `offset` or beyond, if it begins before `end`;
        little more than that batch is fetched. None if there is no such batch.

        Where the log begins later by now, it is the log's first batch: whether records may be gone
        is for the read to say.
        """
        begin = offset
        while begin < end:
            try:
                return self._first_batch(partition, offset, begin, end)
            except OffsetOutOfRange as error:
                earliest = self.earliest([partition])[partition]
                if earliest <= error.offset:
                    return None  # the log ends before
                begin = earliest
        return None

    def _first_batch(self, partition: TopicPartition, offset: int, begin: int, end: int) -> Sample | None:
        """The first record batch that reaches to `begin` or beyond, as what a look at `offset`
        found."""
        if self._looker is None:
            settings = {**NO_NEW_TOPICS, **with_shipped_files(self._options.client), **ONE_BATCH}
            self._looker = Consumer(settings)
        for table in self._looker.read_batches(partition, begin, end, self._options.poll_timeout_ms / 1000):
            if not table.num_rows:
                continue
            first, last, size_bytes = (
                table[name][0].as_py() for name in ("base_offset", "last_offset", "size_bytes")
            )
            return Sample(offset, first, last, size_bytes)
        return None

    def attempt(self, ask: Callable[[], T]) -> T:
        """The result of `ask()`, which is repeated after errors of brokers, as often as
        `fetchOffset.numRetries` says. ConfigError and NoBrokerReached are raised at once."""
        for attempt in range(self._options.offset_attempts):
            try:
                return ask()
            except NoBrokerReached:
                raise  # nothing has ever answered there: to ask again would only take longer
            except (BrokerError, ConnectionFailed, TimedOut) as error:
                if attempt == self._options.offset_attempts - 1:
                    raise
                LOGGER.info("looking up offsets failed, asking again: %s", error)
                self.wait()
        raise AssertionError("fetchOffset.numRetries is at least 1")

    def wait(self) -> None:
        """Wait for `fetchOffset.retryIntervalMs` before asking again."""
        time.sleep(self._options.offset_retry_ms / 1000)

    def close(self) -> None:
        """Close the clients."""
        for client in (self._consumer, self._looker, self._admin):
            if client is not None:
                client.close()
        self._consumer = self._looker = self._admin = None

    def __enter__(self) -> Survey:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _topics(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(
                {
                    name: value
                    for name, value in with_shipped_files(self._options.client).items()
                    if name in _ADMIN_KEYS
                }
            )
        return self._admin


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression `pattern`. ConfigError if it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"subscribePattern: {pattern!r} is not a regular expression ({error})") from None
