"""`ShareConsumer`: reads as a member of a share group, as records or as Arrow tables, blocking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import numpy as np  # noqa: F401  # first of all: see the package's docstring

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Offset, PartitionNumber, Seconds
from fairlead_kafka.client.hosting import Opener, Steps, end_with, open_host, run_blocking
from fairlead_kafka.client.one_at_a_time import close_blocking
from fairlead_kafka.client.share_consumer_calls import ShareConsumerCalls
from fairlead_kafka.client.share_consumer_exchange import AcknowledgementCommitCallback
from fairlead_kafka.consumer.share import AcknowledgeType, ShareRecord
from fairlead_kafka.consumer.share.metrics import ShareConsumerMetrics

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")


@checked()
class ShareConsumer:
    """A member of a share group (KIP-932): its topics' records are handed out one by one.

    Brokers lock a record for the member that they give it to, and give it to another if the lock
    ends first, or if the record is released. Several members may read one partition, and order is
    not kept. `config` has Kafka's keys (`bootstrap.servers`, `group.id`,
    `share.acknowledgement.mode`, ...; see docs/reference/configuration.md); ConfigError names all
    that is wrong with it. A group without history begins where its config `share.auto.offset.reset`
    says: at the end.

    `opener`: what runs the client's machine (`client.hosting.Opener`), as a host in virtual time.

    Time-outs are in seconds; where None is allowed it stands for `default.api.timeout.ms`. Calls
    raise BrokerError when a broker refused, UsageError when the consumer is closed or the call
    comes in the wrong order. One thread at a time, except for `close`. Kafka's counterpart:
    `org.apache.kafka.clients.consumer.KafkaShareConsumer`.
    """

    def __init__(self, config: Mapping[str, object], *, opener: Opener = open_host) -> None:
        self._calls = ShareConsumerCalls(config, opener=opener)
        end_with(self, self._calls.abandon)

    def _run(self, steps: Steps[T]) -> T:
        return run_blocking(steps, self._calls.host)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group `group.id`, and read these topics from now on; an empty list
        unsubscribes. Another call replaces the subscription."""
        self._run(self._calls.subscribe(topics))

    def unsubscribe(self) -> None:
        """Leave the group, and read nothing. What the last poll gave may still be acknowledged."""
        self._run(self._calls.unsubscribe())

    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        return self._calls.subscription()

    def poll(self, timeout_s: Seconds = 1.0) -> list[ShareRecord]:
        """Records as soon as there are any; empty if none came in time.

        In implicit mode this accepts the records of the poll before. In explicit mode all of them
        must be acknowledged (UsageError), and those whose lock was renewed come again, alone. About
        `max.poll.records` come, or more: whole batches, unless `share.acquire.mode` is
        record_limit. DecodeError for a batch that is damaged, once: it was rejected.
        """
        return self._run(self._calls.poll(timeout_s))

    def poll_table(self, timeout_s: Seconds = 1.0, columns: Sequence[str] | None = None) -> pa.Table:
        """Records as a `pyarrow.Table`, as soon as there are any; else no rows.

        Columns: those of `Consumer.poll_table`, and delivery_count int16; or only those named in
        `columns`. Not bound by `max.poll.records`, unless `share.acquire.mode` is record_limit:
        brokers give as much as they let be in flight. Acknowledges and raises as `poll`.
        """
        return self._run(self._calls.poll_table(timeout_s, columns))

    def acknowledge(self, record: ShareRecord, type: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Set the acknowledgement of a record of the last poll: accept, release, reject or renew.
        It is sent with the next poll or commit.

        Until then another type may be given. UsageError in implicit mode, and for a record that is
        not in flight.
        """
        self._calls.acknowledge(TopicPartition(record.topic, record.partition), record.offset, type)

    def acknowledge_offset(
        self, topic: str, partition: PartitionNumber, offset: Offset, type: AcknowledgeType
    ) -> None:
        """Say what became of the record of a partition at an offset, as `acknowledge` does for a
        record."""
        self._calls.acknowledge(TopicPartition(topic, partition), offset, type)

    def acknowledge_table(self, table: pa.Table, column: str = "acknowledge_type") -> None:
        """Acknowledge the rows of a table, all or none: each as `column` says.

        The table has topic, partition and offset as `poll_table` gives them. The column holds texts
        (accept, release, reject, renew, in any case) or integers (`AcknowledgeType`); rows where it
        is null stay as they are. Raises as `acknowledge`.
        """
        self._calls.acknowledge_table(table, column)

    def commit(self, timeout_s: Seconds | None = None) -> dict[TopicPartition, FairleadError | None]:
        """Send acknowledgements, in implicit mode of all records returned, and wait for the
        outcome.

        Answers for each partition: None if brokers have them, else an error, which is not raised:
        TimedOut, or BrokerError such as INVALID_RECORD_STATE, for records whose lock had ended.
        """
        return self._run(self._calls.commit(timeout_s))

    def commit_async(self) -> None:
        """Send acknowledgements as `commit`, without waiting; the acknowledgement commit callback
        is called with the outcome."""
        self._run(self._calls.commit_async())

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCommitCallback | None) -> None:
        """Have `callback({partition: offsets}, error)` called with outcomes of acknowledgements.

        It is called by later polls, commits and `close`, which raise what it raises. None: no
        more.
        """
        self._calls.exchange.callback = callback

    def acquisition_lock_timeout_ms(self) -> int | None:
        """Time for which brokers lock records that they give, ms; None before the first records
        have come."""
        return self._run(self._calls.acquisition_lock_timeout_ms())

    def connect(self, timeout_s: Seconds | None = None) -> None:
        """Wait until a broker is reached, to check `bootstrap.servers` at the start of a program.

        NoBrokerReached, naming each address and what is wrong with it, if none is reached within
        `timeout_s` seconds (None: bootstrap.connection.timeout.ms); the client goes on trying. Once
        a broker was reached, later calls return at once.
        """
        self._run(self._calls.connect(timeout_s))

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return self._calls.client_id

    @property
    def group_id(self) -> str:
        """The `group.id` of the config."""
        return self._calls.group_id

    def client_instance_id(self, timeout_s: Seconds | None = None) -> UUID:
        """The id under which this client's metrics are pushed, which a broker gave it (KIP-714).

        TimedOut if none did within `timeout_s` seconds (None: default.api.timeout.ms): brokers give
        ids where the cluster takes clients' metrics. UsageError with enable.metrics.push=false.
        """
        return self._run(self._calls.instance_id(timeout_s))

    def metrics(self) -> ShareConsumerMetrics:
        """Metrics by Kafka's groups and names (docs/reference/metrics.md); on any thread, also once
        closed.

        {"consumer-share-metrics": {name: number}, "consumer-share-node-metrics": {"node-0": ...},
        "consumer-share-coordinator-metrics": ..., "consumer-share-fetch-manager-metrics": ...}.
        Totals are since the start; rates, averages and maxima over `metrics.sample.window.ms` times
        `metrics.num.samples`, NaN if there was nothing.
        """
        return self._calls.metrics()

    def close(self) -> None:
        """Send what is acknowledged, release all other records, leave the group and close all
        connections.

        Records of the last poll that are not acknowledged, in implicit mode all of them, are
        released: call `commit` first if they were processed. A poll in another thread ends with
        UsageError. Closing again does nothing, also while the first close is under way.
        """
        close_blocking(self._calls, self._run)

    def __enter__(self) -> ShareConsumer:
        self._calls.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
