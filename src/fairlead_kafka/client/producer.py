"""`Producer`: sends records, blocking. `ProducerCore` does the work; this module only waits for
it."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

import numpy as np  # noqa: F401  # first of all: see the package's docstring

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.within import Seconds
from fairlead_kafka.client.delivery import OnDelivery
from fairlead_kafka.client.handles import Ack, TableAck
from fairlead_kafka.client.hosting import Opener, Steps, open_host, run_blocking
from fairlead_kafka.client.intake import Headers
from fairlead_kafka.client.offsets import Offsets
from fairlead_kafka.client.producer_core import ProducerCore
from fairlead_kafka.client.transactions import Transaction
from fairlead_kafka.core.group_offsets import GroupMetadata
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.producer.metrics import Metrics

T = TypeVar("T")


@checked("send", "send_table")
class Producer:
    """Sends records to Kafka. Safe to share among threads.

    `with` closes it: everything sent is delivered first, or failed by delivery.timeout.ms. After
    Ctrl-C it goes on for as long as anything is delivered within a second; what is left then fails,
    and the log says how many records of which topics, as it does at once after another Ctrl-C. A
    producer that nobody closed gives what it has five seconds at the end of the interpreter, and
    warns. A callback must not wait on the producer that calls it: UsageError.

    `acks` says what "delivered" promises. all: every replica in sync has the record; it is not lost
    while one of them survives. 1: the leader has it; lost if the leader dies before others have
    copied it. 0: it was written to the socket; nobody knows more, offsets are -1, and no error of a
    broker is ever reported.
    """

    def __init__(self, config: Mapping[str, object], *, opener: Opener = open_host) -> None:
        """Make a producer. `config` has Kafka's keys: `{"bootstrap.servers": "localhost:9092"}`.

        It begins to connect at once, on a thread of its own. ConfigError if a config is unknown,
        does not fit or contradicts another. `opener`: what runs the producer's machine
        (`client.hosting.Opener`), as a host in virtual time.
        """
        self._core = core = ProducerCore(config, Ack, opener)
        self._core.belongs_to(self)
        self._send = self._core.offering(lambda *without_room: self._run(core.offer_steps(*without_room)))
        if core.serializing is not None:
            self._send = core.serializing.around(self._send)
        if type(self).send is Producer.send:
            self.send = self._send  # type: ignore[method-assign]  # one call for each record instead of two
        if self._core.interceptors is not None:
            self.send = self._core.interceptors.around(self.send)  # type: ignore[method-assign]

    def _run(self, steps: Steps[T]) -> T:
        return run_blocking(steps, self._core.host)

    def send(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Ack:
        """Send one record; returns before it is delivered.

        `value` and `key`: bytes or None, or what `value.serializer` and `key.serializer` take.
        `headers`: pairs of a text and bytes or None, or a mapping. `partition`: None lets the key
        or the partitioner decide. `timestamp_ms`: ms since 1970, None for now.
        `on_delivery(metadata, error)` is called once, on the producer's thread (of an
        AsyncProducer: in its event loop), with a `RecordMetadata` or with what it failed with; the
        other one is None.

        Waits only if `buffer.memory` is used up: BufferExhausted after max.block.ms. InvalidRecord
        for a key or value that is not bytes (or bytearray, or memoryview) or that a serializer does
        not take, and for other arguments
        that do not fit, RecordTooLarge beyond max.request.size or buffer.memory, UsageError once
        closed, or with a transactional.id while no transaction is open. What goes wrong later comes
        through the handle returned.
        """
        handle: Ack = self._send(
            topic,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
            on_delivery=on_delivery,
        )
        return handle

    def send_table(self, topic: str, table: object) -> TableAck:
        """Send a table, a record for each row; returns before it is delivered.

        `table`: a `pyarrow.Table` or `RecordBatch`, or a stream of batches: a `RecordBatchReader`,
        or whatever has `__arrow_c_stream__` (Polars, DuckDB, ...). Rows are sent from Arrow's own
        memory, which must not change until they are delivered.

        Columns: `value` and optional `key` (binary or string, null allowed), optional `headers`
        (list of structs of key and value), `timestamp` (null or missing: now) and `partition`
        (int32; null or missing: the key or the partitioner decides). With `value.serializer` or
        `key.serializer`, `value` and `key` are columns of what they write; without a column `value`
        all columns but key, headers, timestamp and partition are the fields of one. InvalidRecord
        for rows that cannot be written; no row is sent then.

        A table larger than `buffer.memory` goes as room comes: BufferExhausted if none comes for
        max.block.ms, with the rows before on their way. InvalidRecord for columns that do not fit,
        RecordTooLarge for a row beyond max.request.size or buffer.memory (then no row is sent; of a
        stream, none of that batch and those after it), UsageError once closed, or with a
        transactional.id while no transaction is open.
        """
        return TableAck(self._run(self._core.table_steps(topic, table)))

    def flush(self, timeout_s: Seconds | None = None) -> None:
        """Deliver everything sent so far, without lingering; wait until it is delivered or failed.

        TimedOut after `timeout_s` seconds (None: no limit but delivery.timeout.ms), naming how many
        records remain; UsageError once closed.
        """
        self._run(self._core.flush_steps(timeout_s))

    def close(self, timeout_s: Seconds | None = None) -> dict[str, int]:
        """Flush, then stop. Returns how many records of which topics were given up, none as a rule.

        What is not delivered within `timeout_s` seconds (None: delivery.timeout.ms decides) fails
        with TimedOut, and is logged as a warning. A transaction that is open is aborted. Closing
        again waits until the first close is through, and cuts its time to `timeout_s`.
        """
        return self._run(self._core.close_steps(timeout_s))

    def connect(self, timeout_s: Seconds | None = None) -> None:
        """Wait until a broker is reached, to check `bootstrap.servers` at the start of a program.

        NoBrokerReached, naming each address and what is wrong with it, if none is reached within
        `timeout_s` seconds (None: bootstrap.connection.timeout.ms); the client goes on trying. Once
        a broker was reached, later calls return at once.
        """
        self._run(self._core.connect_steps(timeout_s))

    def client_instance_id(self, timeout_s: Seconds | None = None) -> UUID:
        """The id under which this client's metrics are pushed, which a broker gave it (KIP-714).

        TimedOut if none did within `timeout_s` seconds (None: max.block.ms): brokers give
        ids where the cluster takes clients' metrics. UsageError with enable.metrics.push=false.
        """
        return self._run(self._core.instance_id_steps(timeout_s))

    def partitions_for(self, topic: str, timeout_s: Seconds | None = None) -> list[PartitionMetadata]:
        """The topic's partitions, by number, with leader and replicas.

        TimedOut if that is not known within `timeout_s` seconds (None: max.block.ms, but
        NoBrokerReached after bootstrap.connection.timeout.ms if no broker was ever reached),
        BrokerError if the topic cannot be had.
        """
        return self._run(self._core.partitions_steps(topic, timeout_s))

    def init_transactions(self, timeout_s: Seconds | None = None) -> None:
        """Get the producer id of `transactional.id`; call it once, before the first transaction.

        Other producers of that id are fenced, and a transaction that one of them left open is
        aborted. TimedOut after `timeout_s` seconds (None: max.block.ms, but NoBrokerReached after
        bootstrap.connection.timeout.ms if no broker was ever reached); it goes on, and may be
        called again. BrokerError if the id may not be used; UsageError without `transactional.id`,
        once closed, or if it was called already. Kafka's counterpart:
        `KafkaProducer.initTransactions`.
        """
        self._run(self._core.transactions.init(timeout_s))

    def begin_transaction(self) -> None:
        """Begin a transaction: later sends belong to it. A producer has one at a time.

        UsageError before init_transactions or if a transaction is open; TransactionFailed if it
        failed and was not aborted yet; ProducerFenced, or another error that ended the producer. A
        call that Ctrl-C or a cancellation ended may be made again, as those to init, commit and
        abort may: it goes on with the one before.
        """
        self._run(self._core.transactions.begin())

    def send_offsets_to_transaction(self, offsets: Offsets, group: str | GroupMetadata) -> None:
        """Commit a consumer group's offsets with the open transaction, or not at all.

        For reading, transforming and writing exactly once. `offsets`: by partition, the offset of
        the next record to read, as an int or an OffsetAndMetadata. `group`: its id, or a
        GroupMetadata with member id and generation, so that a member that the group has replaced
        cannot commit any more (KIP-447).

        TransactionFailed if they were refused (its `__cause__` says why, such as
        ILLEGAL_GENERATION): abort then. TimedOut after max.block.ms; they may still be taken, so
        abort or commit as you like. UsageError if no transaction is open.
        """
        self._run(self._core.transactions.send_offsets(offsets, group))

    def prepare_transaction(self, timeout_s: Seconds | None = None) -> PreparedTransaction | None:
        """Deliver everything sent in the transaction and leave it open, for another process to end.

        `Admin.end_transactions` ends it, with what this call returns (None if nothing was sent in
        it). The coordinator still aborts it once it is older than transaction.timeout.ms, and when
        a producer with the same transactional.id calls init_transactions: do that here too before
        the next transaction, once this one has ended. TransactionFailed if anything could not be
        delivered: abort it then. TimedOut after `timeout_s` seconds (None: max.block.ms); it goes
        on, call it again to wait for the end. UsageError if no transaction is open. Kafka's
        counterpart: the prepareTransaction of KIP-939.
        """
        return self._run(self._core.transactions.prepare(timeout_s))

    def commit_transaction(self, timeout_s: Seconds | None = None) -> None:
        """Deliver everything sent in the transaction, and commit it as a whole.

        Only then readers of committed data see it. TransactionFailed if anything of it could not be
        delivered: nothing is committed, abort it. TimedOut after `timeout_s` seconds (None:
        max.block.ms): whether it is committed is not known then; call it again to wait for the end,
        nothing else is possible before. ProducerFenced if a newer producer has the transactional
        id, or the coordinator aborted the transaction because it took longer than
        transaction.timeout.ms. UsageError if no transaction is open.
        """
        self._run(self._core.transactions.end(True, timeout_s))

    def abort_transaction(self, timeout_s: Seconds | None = None) -> None:
        """Undo everything sent in the transaction. What was not sent yet fails with
        TransactionFailed.

        TimedOut after `timeout_s` seconds (None: max.block.ms); it goes on, call it again to wait
        for the end. ProducerFenced if a newer producer has the transactional id. UsageError if no
        transaction is open.
        """
        self._run(self._core.transactions.end(False, timeout_s))

    def transaction(self) -> Transaction:
        """A transaction for a `with` block: begun at its start, committed at its end.

        Aborted if the block raises, or the commit fails with TransactionFailed. Raises as
        begin_transaction and commit_transaction do.
        """
        return Transaction(self._core.transactions)

    def metrics(self) -> Metrics:
        """Metrics by Kafka's groups and names (docs/reference/metrics.md); on any thread, also once
        closed.

        {"producer-metrics": {name: number}, "producer-node-metrics": {"node-0": {name: number}},
        "producer-topic-metrics": {topic: ...}}. Totals are since the start; rates, averages and
        maxima over `metrics.sample.window.ms` times `metrics.num.samples`, NaN if there was
        nothing.
        """
        return self._core.metrics()

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return self._core.client_id

    def __enter__(self) -> Self:
        self._core.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._core.leave_steps(kind))
