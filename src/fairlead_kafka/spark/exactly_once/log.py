"""The commit log: a compacted topic that keeps the last decision about each query, and lets one driver of a query write at a time.

`take_over` asks for the producer id of the driver's transactional id, which ends a transaction that an older driver has under way, one way
or the other, and shuts that driver out. What is in the log then is all there will be until this driver writes. A decision is written in a
transaction, so either it counts, for everybody, or it was never made.

All names share partition 0. Another one of them could break by its number: a topic may grow, and a name would then be looked for
where it never was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConfigError, ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, ConfigResource, Consumer, NewTopic, Producer
from fairlead_kafka.core.partition_offsets import LATEST
from fairlead_kafka.spark.exactly_once.parts import Decision
from fairlead_kafka.spark.exactly_once.settings import DRIVER_TIMEOUT_MS, Guarantee, settings_for

TAIL_RECORDS = 1000
"""How much of the log is read first: the last decision about a query at work is mostly among the last ones."""
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
"""Until another query's driver that died while it wrote is timed out, and its coordinator has looked."""


class CommitLog:
    """The log, open for one name; a context manager. Calls raise what the client raises, ProducerFenced once a newer driver took over."""

    def __init__(self, client: Mapping[str, str], guarantee: Guarantee, name: str, admin: Admin) -> None:
        self._client = client
        self._topic = guarantee.log_topic
        self._transactional_id = f"{guarantee.id_prefix}-{name}-driver"
        self._name = name
        self._admin = admin
        self._open = ExitStack()
        self._producer: Producer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.__exit__(kind, error, trace)

    def take_over(self) -> Decision | None:
        """Shut out every other driver of this name, and read the last decision about it; None if there is none."""
        self._see_to_topic()
        settings = {
            **self._client,
            "transactional.id": self._transactional_id,
            "transaction.timeout.ms": str(DRIVER_TIMEOUT_MS),
            "compression.type": "gzip",
            "linger.ms": "0",
            "max.request.size": TOPIC_CONFIGS["max.message.bytes"],
        }
        self._producer = self._open.enter_context(Producer(settings))
        self._producer.init_transactions()
        return self._last()

    def write(self, decision: Decision | None, sent: Callable[[], None] = lambda: None) -> None:
        """Make a decision; None has the log forget the name. If this raises TimedOut, only the next `take_over` tells whether it counts.

        `sent` is called when its record is in the log and does not count yet.
        """
        assert self._producer is not None, "take_over comes first"
        self._producer.begin_transaction()
        value = None if decision is None else decision.encode()
        record = self._producer.send(self._topic, value, key=self._name.encode(), partition=0)
        record.result(timeout_s=DRIVER_TIMEOUT_MS / 1000)
        sent()
        self._producer.commit_transaction()

    def _see_to_topic(self) -> None:
        if self._topic not in self._admin.list_topics(include_internal=True):
            brokers = len(self._admin.describe_cluster().nodes)
            made = NewTopic(self._topic, 1, min(REPLICATION_FACTOR, brokers), configs=TOPIC_CONFIGS)
            try:
                self._admin.create_topics([made])
            except ItemsFailed as failed:
                if failed.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another query's driver was quicker
                    raise BrokerError(
                        failed.code,
                        f"exactly-once writes need the topic {self._topic}, and it could not be made; make it with 1 partition, "
                        f"{', '.join(f'{key}={value}' for key, value in TOPIC_CONFIGS.items())} ({failed})",
                    ) from failed
        resource = ConfigResource.topic(self._topic)
        policy = self._admin.describe_configs([resource])[resource]["cleanup.policy"].value or ""
        if policy != TOPIC_CONFIGS["cleanup.policy"]:
            raise ConfigError(
                f"the topic {self._topic} has cleanup.policy={policy}, so it would forget which batches are committed and they could be "
                "written twice; set cleanup.policy=compact, or name another topic with commitLogTopic"
            )

    def _last(self) -> Decision | None:
        """The last decision about the name; reads the end of the log first, and all of it only if that has none."""
        partition = TopicPartition(self._topic, 0)
        found = self._admin.list_offsets({partition: LATEST})[partition]
        end = 0 if found is None else found.offset
        settings = {**settings_for("consumer", self._client), "isolation.level": "read_committed"}
        with Consumer(settings) as consumer:
            begin = consumer.beginning_offsets([partition])[partition]
            for start in dict.fromkeys((max(begin, end - TAIL_RECORDS), begin)):
                value = self._last_between(consumer, partition, start, end)
                if value is not None:
                    return Decision.decode(self._name, value)
        return None

    def _last_between(self, consumer: Consumer, partition: TopicPartition, start: int, end: int) -> bytes | None:
        # Read to where the log ends, not to where committed data ends: there may be another query's open transaction before ours.
        key, value = self._name.encode(), None
        for table in consumer.read_range(partition, start, end, columns=["key", "value"], timeout_s=READ_TIMEOUT_S):
            for row_key, row_value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
                if row_key == key:
                    value = row_value
        return value
