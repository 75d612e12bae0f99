"""Asks the coordinator whether a partition belongs to a producer's open transaction before its
first batch is appended, or has the coordinator add the partition (KIP-890).

Without that a late batch could arrive after its transaction's end, and open a transaction that is
never ended. A producer of the second protocol does not add partitions itself: its first batch does.
Once a batch is appended the partition itself knows the transaction, and the coordinator is not
asked again.

    first batch ─▶ waiting ──coordinator: yes──▶ appended, with the partition's later batches
                      ├──coordinator: no, or it does not answer──▶ refused
                      └──a marker came first──▶ refused: the transaction is over
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import TRANSACTIONS_TOPIC, ClusterView
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.broker.internal import Marker, ProducerIdentity
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.log.transactions import EPOCH_PER_TRANSACTION
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_logger = GuardedLogger("fairlead_kafka.broker")

VERIFY_VERSION = 5
VERIFICATION = "transaction.partition.verification.enable"
Verified = Callable[[int], None]
"""Called once with an error code: 0, the partition is in the transaction."""
_Key = tuple[TopicPartition, ProducerIdentity, bool]
"""A partition, the producer that writes to it, and whether it is to be added."""


class Transactions(Protocol):
    """The transactions that are coordinated here."""

    def verify(
        self, transactional_id: str, producer: ProducerIdentity, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Whether partitions are in the producer's open transaction: an error code for each, 0 if
        it is."""

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        done: Callable[[int], None],
        client_version: int,
    ) -> None:
        """Add partitions that the producer is going to write to; done(error code)."""


class VerifierHost(Protocol):
    """The parts of a broker that the verifier uses."""

    node_id: int
    controller: ClusterView
    links: Links

    @property
    def transactions(self) -> Transactions:
        """The coordinator of this broker."""


class Verifier:
    """Asks coordinators whether partitions are in transactions (KIP-890), and keeps the questions
    of one broker that are not answered yet."""

    def __init__(self, broker: VerifierHost) -> None:
        self._broker = broker
        self._waiting: dict[_Key, list[Verified]] = {}

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        wanted: Sequence[tuple[TopicPartition, Verified]],
        add: bool = False,
    ) -> None:
        """Have each function of `wanted` called once it is known whether its partition is in the
        transaction, perhaps at once. With `add` a partition that is not is added."""
        asked: list[TopicPartition] = []
        for of, verified in wanted:
            waiting = self._waiting.setdefault((of, producer, add), [])
            if not waiting:
                asked.append(of)
            waiting.append(verified)
        if asked:
            self._ask(transactional_id, producer, asked, add)

    def ended(self, of: TopicPartition, marker: Marker) -> None:
        """Called when a marker was appended: questions about the transaction that it ends, or an
        earlier one, are refused. If each transaction has an epoch of its own, the marker has the
        next epoch; questions in that epoch are about the next transaction, and go on waiting."""
        if not self._waiting:
            return
        brings_epoch = marker.transaction_version >= EPOCH_PER_TRANSACTION
        last_epoch = marker.producer_epoch - 1 if brings_epoch else marker.producer_epoch
        over = [
            key
            for key in self._waiting
            if key[0] == of and key[1].producer_id == marker.producer_id and key[1].epoch <= last_epoch
        ]
        for key in over:
            for verified in self._waiting.pop(key):
                verified(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _ask(
        self, transactional_id: str, producer: ProducerIdentity, partitions: list[TopicPartition], add: bool
    ) -> None:
        asked = {of: self._waiting[of, producer, add] for of in partitions}

        def answered(errors: dict[TopicPartition, int]) -> None:
            for of, waiting in asked.items():
                if self._waiting.get((of, producer, add)) is waiting:
                    del self._waiting[of, producer, add]
                    error = errors.get(of, ErrorCode.NETWORK_EXCEPTION)
                    # Who produces or commits offsets is told of a fence in the older word, as in
                    # Kafka.
                    error = ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED else error
                    for verified in waiting:
                        verified(error)

        leader = self._coordinator_of(transactional_id)
        if leader is None:
            answered(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif leader != self._broker.node_id:
            self._ask_leader(leader, transactional_id, producer, partitions, add, answered)
        elif add:
            self._add(transactional_id, producer, partitions, answered)
        else:
            answered(self._broker.transactions.verify(transactional_id, producer, partitions))

    def _add(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: list[TopicPartition],
        answered: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        def added(error: int) -> None:
            answered(dict.fromkeys(partitions, error))

        try:
            self._broker.transactions.add_partitions(
                transactional_id, producer, partitions, added, EPOCH_PER_TRANSACTION
            )
        except BrokerError as error:
            added(error.code)

    def _coordinator_of(self, transactional_id: str) -> int | None:
        image = self._broker.controller.image
        topic = image.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        leader = topic.partitions[home_partition(transactional_id, len(topic.partitions))].leader
        return leader if image.is_alive(leader) else None

    def _ask_leader(
        self,
        leader: int,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: list[TopicPartition],
        add: bool,
        answered: Callable[[dict[TopicPartition, int]], None],
    ) -> None:
        topics: dict[str, list[int]] = {}
        for topic, number in partitions:
            topics.setdefault(topic, []).append(number)
        node = self._broker.node_id
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                    transactional_id=transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    verify_only=not add,
                    topics=[
                        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=numbers)
                        for name, numbers in topics.items()
                    ],
                )
            ]
        )

        def done(response: AddPartitionsToTxnResponse | None, _error: Exception | None) -> None:
            errors: dict[TopicPartition, int] = {}
            if response is not None and response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                # This broker may not ask, which is no affair of its clients; told as Kafka's
                # `AddPartitionsToTxnManager` does.
                _logger.error(
                    "broker %d refuses to verify transactions for broker %d: it has no CLUSTER_ACTION on the "
                    "cluster",
                    leader,
                    node,
                )
                errors = dict.fromkeys(partitions, ErrorCode.INVALID_TXN_STATE)
            for result in response.results_by_transaction if response is not None else ():
                for topic in result.topic_results:
                    for one in topic.results_by_partition:
                        errors[TopicPartition(topic.name, one.partition_index)] = one.partition_error_code
            answered(errors)

        self._broker.links.ask(leader, ApiKey.ADD_PARTITIONS_TO_TXN, VERIFY_VERSION, request, done)
