"""The transaction coordinator of model brokers: KIP-98 with KIP-360's epochs and KIP-890's check of
every batch, kept in one place.

One thing is better here than in Kafka's first protocol of transactions: a request that was held up
in the network on a connection that its producer has given up cannot act on a later transaction,
since the coordinator serves no connection that is older than one it has served. (In Kafka,
KIP-890's second protocol closes that gap, with an epoch for each transaction.)
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from zlib import crc32

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.core.connection import R
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.simulation.model_cluster import ModelCluster
from fairlead_kafka.simulation.model_log import NOWHERE
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

EPOCH_LAST = 2**15 - 2
"""The last epoch of a producer id; after it a transactional id gets another producer id, as in
Kafka.
"""
_FENCED_SINCE = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""The versions from which on a stale epoch is called PRODUCER_FENCED (KIP-588)."""


class TransactionState(Enum):
    """State of a transactional id."""

    EMPTY = "no transaction"
    ONGOING = "a transaction is open"
    ENDING = "the markers are being written"
    COMPLETE = "the last one was committed or aborted"


class ModelTransaction:
    """State that the coordinator keeps of one transactional id."""

    def __init__(self, transactional_id: str, producer_id: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = -1
        self.before: tuple[int, int] | None = None
        """Producer id and epoch that the present ones replaced: their request may come again."""
        self.state = TransactionState.EMPTY
        self.committed = False
        """True if the current or last transaction ends by a commit."""
        self.partitions: dict[tuple[str, int], None] = {}
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        """Group → offsets that become its committed offsets if the transaction commits."""
        self.timeout_ms = 0
        self.serial = 0
        """Number of the transaction; a timeout that was planned for an earlier one is ignored."""
        self.heard_ns = 0
        """Time when the newest connection that was served was accepted."""


class ModelTransactions:
    """The transactional ids of a cluster of model brokers, which all of them share."""

    def __init__(self, cluster: ModelCluster, new_producer_id: Callable[[], int]) -> None:
        self._cluster = cluster
        self._new_producer_id = new_producer_id
        self._by_id: dict[str, ModelTransaction] = {}
        self.committed_offsets: dict[str, dict[tuple[str, int], int]] = {}
        """Group → offsets, of committed transactions."""

    # Coordinators

    def coordinator(self, key: str) -> int:
        """The broker that coordinates a transactional id or group; NOWHERE if none is alive."""
        machines = self._cluster.machines
        first = crc32(key.encode()) % len(machines)
        nearest = [(first + step) % len(machines) for step in range(len(machines))]
        return next((node_id for node_id in nearest if machines[node_id].running), NOWHERE)

    def hears(self, key: str, accepted_ns: int) -> bool:
        """True if requests about this transactional id are served on a connection that was accepted
        at `accepted_ns`: no newer connection was served for it."""
        transaction = self._by_id.get(key)
        if transaction is None:
            return True
        if accepted_ns < transaction.heard_ns:
            return False
        transaction.heard_ns = accepted_ns
        return True

    # Requests; each returns an error code

    def initialize(self, request: Request[InitProducerIdRequest], accepted_ns: int) -> tuple[int, int, int]:
        """Serve InitProducerId with a transactional id. Returns error code, producer id and
        epoch."""
        message = request.message
        key = message.transactional_id
        assert key is not None
        transaction = self._by_id.get(key)
        if transaction is None:
            transaction = self._by_id[key] = ModelTransaction(key, self._new_producer_id())
            transaction.epoch, transaction.heard_ns = self._cluster.first_epoch - 1, accepted_ns
        asked = (message.producer_id, message.producer_epoch)
        if asked[0] >= 0 and asked != (transaction.producer_id, transaction.epoch):
            if asked == transaction.before and transaction.state is not TransactionState.ONGOING:
                return 0, transaction.producer_id, transaction.epoch
            return _fenced(request), -1, -1
        if transaction.state is TransactionState.ENDING:
            return ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1
        if transaction.state is TransactionState.ONGOING:
            self._fence(transaction)
            return ErrorCode.CONCURRENT_TRANSACTIONS, -1, -1
        transaction.timeout_ms = message.transaction_timeout_ms
        transaction.state = TransactionState.EMPTY
        before = (transaction.producer_id, transaction.epoch)
        self._bump(transaction)
        transaction.before = before if asked[0] >= 0 else None
        return 0, transaction.producer_id, transaction.epoch

    def add_partitions(
        self, request: Request[AddPartitionsToTxnRequest], partitions: list[tuple[str, int]]
    ) -> int:
        """Serve AddPartitionsToTxn. Returns the error code."""
        message = request.message
        transaction = self._by_id.get(message.v3_and_below_transactional_id)
        code = self._check(
            transaction, message.v3_and_below_producer_id, message.v3_and_below_producer_epoch, request
        )
        if not code and transaction is not None:
            self._open(transaction)
            transaction.partitions.update(dict.fromkeys(partitions))
        return code

    def add_offsets(self, request: Request[AddOffsetsToTxnRequest]) -> int:
        """Serve AddOffsetsToTxn. Returns the error code."""
        message = request.message
        transaction = self._by_id.get(message.transactional_id)
        code = self._check(transaction, message.producer_id, message.producer_epoch, request)
        if not code and transaction is not None:
            self._open(transaction)
            transaction.offsets.setdefault(message.group_id, {})
        return code

    def commit_offsets(self, request: Request[TxnOffsetCommitRequest]) -> int:
        """Serve TxnOffsetCommit. Returns the error code."""
        message = request.message
        transaction = self._by_id.get(message.transactional_id)
        if transaction is None or message.producer_id != transaction.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if message.producer_epoch != transaction.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if transaction.state is not TransactionState.ONGOING or message.group_id not in transaction.offsets:
            return ErrorCode.INVALID_TXN_STATE
        for topic in message.topics:
            for partition in topic.partitions:
                transaction.offsets[message.group_id][topic.name, partition.partition_index] = (
                    partition.committed_offset
                )
        return ErrorCode.NONE

    def end(self, request: Request[EndTxnRequest]) -> int:
        """Serve EndTxn. Returns the error code."""
        message = request.message
        transaction = self._by_id.get(message.transactional_id)
        if transaction is not None and transaction.state is TransactionState.ENDING:
            same = message.committed == transaction.committed
            return ErrorCode.CONCURRENT_TRANSACTIONS if same else ErrorCode.INVALID_TXN_STATE
        code = self._check(transaction, message.producer_id, message.producer_epoch, request)
        if code or transaction is None:
            return code
        if transaction.state is TransactionState.ONGOING:
            self._begin_end(transaction, message.committed)
            return ErrorCode.NONE
        repeated = (
            transaction.state is TransactionState.COMPLETE and transaction.committed == message.committed
        )
        return ErrorCode.NONE if repeated else ErrorCode.INVALID_TXN_STATE

    def admit(self, topic: str, index: int, header: BatchHeader) -> int:
        """The error code for a transactional batch. 0 only if it is part of an open transaction
        that includes the partition (KIP-890)."""
        transaction = next(
            (each for each in self._by_id.values() if each.producer_id == header.producer_id), None
        )
        if transaction is None or header.producer_epoch < transaction.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        open_there = (
            transaction.state is TransactionState.ONGOING and (topic, index) in transaction.partitions
        )
        return ErrorCode.NONE if open_there else ErrorCode.INVALID_TXN_STATE

    # Inside

    def _check(
        self, transaction: ModelTransaction | None, producer_id: int, epoch: int, request: Request[R]
    ) -> int:
        if transaction is None or producer_id != transaction.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if epoch != transaction.epoch:
            return _fenced(request)
        return (
            ErrorCode.CONCURRENT_TRANSACTIONS
            if transaction.state is TransactionState.ENDING
            else ErrorCode.NONE
        )

    def _open(self, transaction: ModelTransaction) -> None:
        if transaction.state is not TransactionState.ONGOING:
            transaction.state = TransactionState.ONGOING
            transaction.serial += 1
            self._cluster.script.after(
                transaction.timeout_ms, self._time_out, transaction, transaction.serial
            )

    def _time_out(self, transaction: ModelTransaction, serial: int) -> None:
        if transaction.serial == serial and transaction.state is TransactionState.ONGOING:
            self._fence(transaction)

    def _fence(self, transaction: ModelTransaction) -> None:
        """Abort the transaction, as the coordinator does by itself, in the next epoch, so that the
        producer's batches are refused from now on."""
        transaction.epoch += 1
        transaction.before = None
        self._begin_end(transaction, committed=False)

    def _bump(self, transaction: ModelTransaction) -> None:
        if transaction.epoch >= EPOCH_LAST:
            transaction.producer_id, transaction.epoch = self._new_producer_id(), -1
        transaction.epoch += 1

    def _begin_end(self, transaction: ModelTransaction, committed: bool) -> None:
        transaction.state, transaction.committed = TransactionState.ENDING, committed
        self._cluster.script.after(self._cluster.markers_ms(), self._finish, transaction)

    def _finish(self, transaction: ModelTransaction) -> None:
        """Write the markers, and take over the offsets if it commits."""
        for topic, index in transaction.partitions:
            partition = self._cluster.log.partition(topic, index)
            if partition is not None:
                partition.mark(transaction.producer_id, transaction.epoch, transaction.committed)
        if transaction.committed:
            for group, offsets in transaction.offsets.items():
                self.committed_offsets.setdefault(group, {}).update(offsets)
        transaction.partitions, transaction.offsets = {}, {}
        transaction.state = TransactionState.COMPLETE


def _fenced(request: Request[R]) -> int:
    since = _FENCED_SINCE.get(ApiKey(request.api_key))
    return (
        ErrorCode.PRODUCER_FENCED
        if since is not None and request.version >= since
        else ErrorCode.INVALID_PRODUCER_EPOCH
    )
