"""The transactional side of `producer_brokers.FakeCluster`: a coordinator that keeps Kafka's rules,
and notes when a client breaks them.

`faults[api_key]` are met by the next requests of that kind, in turn: an error code, or BREAK,
LOSE_ANSWER, IGNORE. Markers are written into the logs, so that what is committed can be read back.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.records import BatchHeader, ControlType, assign, control_batch, decode, scan
from fairlead_kafka.wire import ApiKey, Message
from tests.support.producer_brokers import BREAK, IGNORE, LOSE_ANSWER, FakeCluster, Fault

VERSIONS = {
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.PRODUCE: (0, 13),
}
_EPOCH_MAX = 2**15 - 1


@dataclass
class Transaction:
    """What the coordinator keeps for one transactional id."""

    producer_id: int
    epoch: int = 0
    last_epoch: int = -1
    state: str = "empty"
    partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    pending: dict[str, dict[TopicPartition, int]] = field(default_factory=lambda: defaultdict(dict))


class FakeTransactions:
    """Attaches itself to a cluster, all of whose brokers then serve it."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.coordinator = 0
        """The node that FindCoordinator names."""
        self.faults: dict[ApiKey, deque[Fault]] = defaultdict(deque)
        self.asked: list[tuple[ApiKey, int, Message]] = []
        """Every request: what it is, its version, what it says."""
        self.transactions: dict[str, Transaction] = {}
        self.outcomes: list[bool] = []
        """True for each commit, False for each abort, in order."""
        self.offsets: dict[str, dict[TopicPartition, int]] = defaultdict(dict)
        self.aborted: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        self._begun: dict[tuple[TopicPartition, int], int] = {}
        self._answers = {
            ApiKey.FIND_COORDINATOR: self._find,
            ApiKey.INIT_PRODUCER_ID: self._init,
            ApiKey.ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ApiKey.ADD_OFFSETS_TO_TXN: self._add_offsets,
            ApiKey.TXN_OFFSET_COMMIT: self._commit_offsets,
            ApiKey.END_TXN: self._end,
        }
        cluster.versions.update(VERSIONS)
        cluster.transactions = self
        self.id_of: dict[int, str] = {}

    def kinds(self) -> list[str]:
        """The names of what was asked, in order."""
        return [api_key.name for api_key, _, _ in self.asked]

    def committed(self, topic: str) -> list[list[bytes | None]]:
        """Per partition, what a reader of committed data finds."""
        found: list[list[bytes | None]] = []
        for number, partition in enumerate(self.cluster.topics[topic]):
            records = decode(b"".join(partition.batches), aborted=self.aborted[TopicPartition(topic, number)])
            found.append(records.values.to_list())
        return found

    def serve(self, node_id: int, request: Any) -> tuple[Fault, Message | None]:
        """A fault that the connection meets, or None, and the answer."""
        api_key = ApiKey(request.api_key)
        self.asked.append((api_key, request.version, request.message))
        faults = self.faults[api_key]
        fault = faults.popleft() if faults else None
        if fault in (BREAK, IGNORE):
            return fault, None
        code = fault if isinstance(fault, int) else ErrorCode.NONE
        if not code and api_key is not ApiKey.FIND_COORDINATOR and node_id != self.coordinator:
            code = ErrorCode.NOT_COORDINATOR
        return (fault if fault == LOSE_ANSWER else None), self._answers[api_key](request.message, code)

    def check_produce(
        self, transactional_id: str | None, version: int, header: BatchHeader, where: TopicPartition
    ) -> int:
        """The error code that a leader has for a batch, by what the coordinator knows."""
        if not header.transactional:
            return ErrorCode.NONE
        transaction = self.transactions.get(transactional_id or "")
        if version > 11 or transaction is None or transaction.producer_id != header.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if header.producer_epoch < transaction.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if transaction.state != "ongoing" or where not in transaction.partitions:
            return ErrorCode.INVALID_TXN_STATE
        end_offset = self.cluster.topics[where.topic][where.partition].end_offset
        self._begun.setdefault((where, header.producer_id), end_offset)
        return ErrorCode.NONE

    def _find(self, message: Message, code: int) -> Message:
        fields = {
            "error_code": code,
            "error_message": None,
            "node_id": -1 if code else self.coordinator,
            "host": "" if code else f"broker-{self.coordinator}",
            "port": -1 if code else 9092,
        }
        keys = message.coordinator_keys or [message.key]
        return Message(
            throttle_time_ms=0, **fields, coordinators=[Message(key=key, **fields) for key in keys]
        )

    def _init(self, message: Message, code: int) -> Message:
        name, producer_id, epoch = message.transactional_id, message.producer_id, message.producer_epoch
        known = self.transactions.get(name)
        if not code and known is None:
            self.cluster.producer_ids += 1
            known = self.transactions[name] = Transaction(self.cluster.producer_ids, self.cluster.first_epoch)
        elif not code and known is not None:
            again = producer_id >= 0 and epoch == known.last_epoch
            if producer_id >= 0 and not again and (producer_id, epoch) != (known.producer_id, known.epoch):
                code = ErrorCode.PRODUCER_FENCED
            elif known.state == "ongoing":
                known.last_epoch, known.epoch = known.epoch, known.epoch + 1
                self._finish(known, False)
                code = ErrorCode.CONCURRENT_TRANSACTIONS
            elif not again and known.epoch == _EPOCH_MAX:
                self.cluster.producer_ids += 1
                known.producer_id, known.epoch, known.last_epoch = self.cluster.producer_ids, 0, -1
            elif not again:
                known.last_epoch, known.epoch = known.epoch, known.epoch + 1
        granted = (-1, -1) if code or known is None else (known.producer_id, known.epoch)
        return Message(throttle_time_ms=0, error_code=code, producer_id=granted[0], producer_epoch=granted[1])

    def _known(self, name: str, message: Any, code: int, prefix: str = "") -> tuple[Transaction, int]:
        transaction = self.transactions.get(name)
        producer_id, epoch = (
            getattr(message, f"{prefix}producer_id"),
            getattr(message, f"{prefix}producer_epoch"),
        )
        if transaction is None or transaction.producer_id != producer_id:
            return Transaction(-1), code or ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return transaction, code or (
            ErrorCode.NONE if transaction.epoch == epoch else ErrorCode.PRODUCER_FENCED
        )

    def _add_partitions(self, message: Message, code: int) -> Message:
        prefix = "v3_and_below_"
        transaction, code = self._known(message.v3_and_below_transactional_id, message, code, prefix)
        topics = message.v3_and_below_topics
        if not code:
            transaction.state = "ongoing"
            transaction.partitions |= {
                TopicPartition(topic.name, number) for topic in topics for number in topic.partitions
            }
        rows = [
            Message(
                name=topic.name,
                results_by_partition=[
                    Message(partition_index=number, partition_error_code=code) for number in topic.partitions
                ],
            )
            for topic in topics
        ]
        return Message(throttle_time_ms=0, results_by_topic_v3_and_below=rows)

    def _add_offsets(self, message: Message, code: int) -> Message:
        transaction, code = self._known(message.transactional_id, message, code)
        if not code:
            transaction.state = "ongoing"
            transaction.groups.add(message.group_id)
        return Message(throttle_time_ms=0, error_code=code)

    def _commit_offsets(self, message: Message, code: int) -> Message:
        transaction, code = self._known(message.transactional_id, message, code)
        if not code and message.group_id not in transaction.groups:
            code = ErrorCode.INVALID_TXN_STATE
        rows = []
        for topic in message.topics:
            for row in topic.partitions:
                if not code:
                    transaction.pending[message.group_id][TopicPartition(topic.name, row.partition_index)] = (
                        row.committed_offset
                    )
            errors = [
                Message(partition_index=row.partition_index, error_code=code) for row in topic.partitions
            ]
            rows.append(Message(name=topic.name, partitions=errors))
        return Message(throttle_time_ms=0, topics=rows)

    def _end(self, message: Message, code: int) -> Message:
        transaction, code = self._known(message.transactional_id, message, code)
        ended = "committed" if message.committed else "aborted"
        if code == ErrorCode.TRANSACTION_ABORTABLE and transaction.state != "ongoing":
            code = ErrorCode.NONE  # no coordinator asks for the abort of what it has ended already
        if not code and transaction.state == "ongoing":
            self._finish(transaction, message.committed)
        elif not code and transaction.state != ended:
            code = ErrorCode.INVALID_TXN_STATE
        return Message(throttle_time_ms=0, error_code=code)

    def _finish(self, transaction: Transaction, commit: bool) -> None:
        """Write the markers; offsets count from now on."""
        for where in sorted(transaction.partitions):
            partition = self.cluster.topics[where.topic][where.partition]
            kind = ControlType.commit if commit else ControlType.abort
            marker = control_batch(
                kind, producer_id=transaction.producer_id, producer_epoch=transaction.epoch, timestamp_ms=0
            )
            data = bytearray(marker.buffer)
            assign(data, base_offset=partition.end_offset, partition_leader_epoch=partition.leader_epoch)
            begun = self._begun.pop((where, transaction.producer_id), None)
            if begun is not None and not commit:
                self.aborted[where].append((transaction.producer_id, begun))
            partition.batches.append(bytes(data))
            partition.headers += scan(data)
            partition.end_offset += 1
        for group, offsets in transaction.pending.items():
            if commit:
                self.offsets[group].update(offsets)
        transaction.partitions.clear()
        transaction.groups.clear()
        transaction.pending.clear()
        transaction.state = "committed" if commit else "aborted"
        self.outcomes.append(commit)
