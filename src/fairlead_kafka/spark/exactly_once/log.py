"""The commit log: a compacted topic that keeps the last decision about each query, and lets one
driver of a query write at a time.

`take_over` asks for the producer id of the driver's transactional id, which commits or aborts an
older driver's open transaction, and fences that driver. No other driver can write to the log after
that. A decision is written in a transaction, so it is either committed, for all readers, or was
never made.

All queries share partition 0. A partition by the hash of the name would change when the topic gets
more partitions, and old decisions would not be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConfigError, ItemsFailed, TransactionFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, ConfigResource, Consumer, NewTopic, Producer
from fairlead_kafka.core.partition_offsets import LATEST
from fairlead_kafka.spark.exactly_once.parts import Decision
from fairlead_kafka.spark.exactly_once.settings import DRIVER_TIMEOUT_MS, Guarantee, settings_for
from fairlead_kafka.spark.shipped import with_shipped_files

TAIL_RECORDS = 1000
"""Records of the log that are read first: the last decision about a query at work is mostly among
them."""
REPLICATION_FACTOR = 3
TOPIC_CONFIGS = {
    "cleanup.policy": "compact",
    # Many small records about few names: segments that are closed soon can be compacted soon.
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    # A decision names every transaction of a batch: about 100 bytes each before compression.
    "max.message.bytes": str(16 * 1024 * 1024),
}
READ_TIMEOUT_S = 2 * DRIVER_TIMEOUT_MS / 1000 + 30
"""Seconds until the transaction of another query's driver that died has timed out, and its
coordinator has noticed."""


class CommitLog:
    """The log, open for one name; a context manager. Calls raise what the client raises,
    ProducerFenced once a newer driver took over."""

    def __init__(self, client: Mapping[str, str], guarantee: Guarantee, name: str, admin: Admin) -> None:
        self._client = client
        self._topic = guarantee.log_topic
        self._transactional_id = f"{guarantee.id_prefix}-{name}-driver"
        self._name = name
        self._former_name = guarantee.app_id
        """Release 0.1.0 knew batch writes by their application alone. What it has decided counts
        until there is a decision about the name; nothing is written under it any more."""
        self._admin = admin
        self._open = ExitStack()
        self._producer: Producer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def take_over(self, *, to_write: bool = True) -> Decision | None:
        """Fence every other driver of this name, and read the last decision about the name; None if
        there is none. `to_write` False: only the decision is wanted, so the topic's configs are not
        checked, and a missing topic has none."""
        if to_write:
            see_to_log_topic(self._admin, self._topic)
        elif self._topic not in self._admin.list_topics(include_internal=True):
            return None
        settings = {
            **with_shipped_files(self._client),
            "transactional.id": self._transactional_id,
            "transaction.timeout.ms": str(DRIVER_TIMEOUT_MS),
            "compression.type": "gzip",
            "linger.ms": "0",
            "max.request.size": TOPIC_CONFIGS["max.message.bytes"],
        }
        self._producer = self._open.enter_context(Producer(settings))
        self._producer.init_transactions()
        return self._last()

    def write(self, decision: Decision | None) -> None:
        """Write a decision to the log, where it counts once it is committed by `commit`; None: the
        log forgets the name. If this raises, the decision was never made."""
        assert self._producer is not None, "take_over comes first"
        self._producer.begin_transaction()
        value = None if decision is None else decision.encode()
        record = self._producer.send(self._topic, value, key=self._name.encode(), partition=0)
        try:
            record.result(timeout_s=DRIVER_TIMEOUT_MS / 1000)
        except (BrokerError, TransactionFailed) as error:
            if isinstance(error, TransactionFailed) or error.code == ErrorCode.INVALID_PRODUCER_EPOCH:
                # The coordinator or the partition may have seen a later epoch. If that is a newer
                # driver's, the abort says so (KIP-588).
                self._producer.abort_transaction()
            raise

    def commit(self) -> None:
        """Commit what was written. TimedOut: whether it counts is not known; call this again, or
        the next `take_over` shows it."""
        assert self._producer is not None, "take_over comes first"
        self._producer.commit_transaction()

    def _last(self) -> Decision | None:
        """The last decision about the name; reads the end of the log first, and all of it only if
        none is there."""
        partition = TopicPartition(self._topic, 0)
        found = self._admin.list_offsets({partition: LATEST})[partition]
        end = 0 if found is None else found.offset
        settings = {**settings_for("consumer", self._client), "isolation.level": "read_committed"}
        with Consumer(settings) as consumer:
            begin = consumer.beginning_offsets([partition])[partition]
            found_values: dict[bytes, bytes | None] = {}
            for start in dict.fromkeys((max(begin, end - TAIL_RECORDS), begin)):
                found_values = self._last_between(consumer, partition, start, end)
                if (value := found_values.get(self._name.encode())) is not None:
                    return Decision.decode(self._name, value)
        former = None if self._former_name is None else found_values.get(self._former_name.encode())
        return None if former is None else Decision.decode(self._name, former)

    def _last_between(
        self, consumer: Consumer, partition: TopicPartition, start: int, end: int
    ) -> dict[bytes, bytes | None]:
        """The last value of the name, and of the former name, among these records."""
        # Read to where the log ends, not to where committed data ends: there may be another query's
        # open transaction before ours.
        keys = {each.encode() for each in (self._name, self._former_name) if each is not None}
        values: dict[bytes, bytes | None] = {}
        for table in consumer.read_range(
            partition, start, end, columns=["key", "value"], timeout_s=READ_TIMEOUT_S
        ):
            rows = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
            values.update((key, value) for key, value in rows if key in keys)
        return values


def see_to_log_topic(admin: Admin, topic: str) -> None:
    """Create the topic of the commit log if it does not exist. BrokerError if it cannot be created,
    ConfigError for a topic that deletes old records."""
    if topic not in admin.list_topics(include_internal=True):
        _make(admin, topic)
    resource = ConfigResource.topic(topic)
    try:
        policy = admin.describe_configs([resource])[resource]["cleanup.policy"].value or ""
    except ItemsFailed as failed:
        raise BrokerError(
            failed.code,
            f"exactly-once writes have to look at cleanup.policy of the topic {topic}, and the brokers do "
            "not show it; allow Describe and "
            "DescribeConfigs on it, or name another topic with commitLogTopic",
        ) from failed
    if policy != TOPIC_CONFIGS["cleanup.policy"]:
        raise ConfigError(
            f"commitLogTopic: the topic {topic} has cleanup.policy={policy}, so it would forget which "
            "batches are committed and they could "
            "be written twice; set cleanup.policy=compact, or name another topic with commitLogTopic"
        )


def _make(admin: Admin, topic: str) -> None:
    brokers = len(admin.describe_cluster().nodes)
    try:
        admin.create_topics([NewTopic(topic, 1, min(REPLICATION_FACTOR, brokers), configs=TOPIC_CONFIGS)])
    except ItemsFailed as failed:
        if failed.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another query's driver was quicker
            raise BrokerError(
                failed.code,
                f"exactly-once writes need the topic {topic}, and it could not be made; make it with 1 "
                "partition, "
                f"{', '.join(f'{key}={value}' for key, value in TOPIC_CONFIGS.items())}",
            ) from failed
