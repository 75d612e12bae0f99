"""AddPartitionsToTxn (24): partitions that a transaction is going to write to; the first ones begin
it.

Versions 0-5: 0-3 by clients, one transaction each; 4 and 5 by brokers among themselves, several at
once, which may ask only whether the partitions are in the transaction (`verify_only`), or add what
a producer has sent that does not add partitions itself (KIP-890). If
one partition cannot be added none is: one that is not there gets UNKNOWN_TOPIC_OR_PARTITION, a
client's of an internal topic TOPIC_AUTHORIZATION_FAILED, the others OPERATION_NOT_ATTEMPTED. Below
version 2 PRODUCER_FENCED is answered as INVALID_PRODUCER_EPOCH.

A client needs WRITE on the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for all
partitions) and on each topic (TOPIC_AUTHORIZATION_FAILED, and then none is added); a broker
CLUSTER_ACTION on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.common import PendingParts, as_clients_know
from fairlead_kafka.broker.api.rights import may_cluster, permitted
from fairlead_kafka.broker.controller import INTERNAL_TOPICS
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.log.transactions import EPOCH_PER_TRANSACTION
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Row = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult

_SEVERAL_FROM_VERSION = 4


@serves(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5))
def add_partitions_to_txn(
    broker: Services, request: Request[AddPartitionsToTxnRequest], session: Requester, reply: Reply
) -> None:
    """Serve AddPartitionsToTxn: add partitions to transactions, or verify that they are in them;
    answered when that is written."""
    message, version = request.message, request.version
    if version >= _SEVERAL_FROM_VERSION:
        if not may_cluster(session, AclOperation.CLUSTER_ACTION):
            reply(
                AddPartitionsToTxnResponse(
                    throttle_time_ms=0,
                    error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    results_by_transaction=[],
                )
            )
            return
        results: list[_Result] = []
        parts_pending = PendingParts(
            lambda: reply(
                AddPartitionsToTxnResponse(
                    throttle_time_ms=0, error_code=ErrorCode.NONE, results_by_transaction=results
                )
            )
        )
        for one in message.transactions:
            result = _Result(transactional_id=one.transactional_id, topic_results=[])
            results.append(result)
            producer = ProducerIdentity(one.producer_id, one.producer_epoch)
            _serve(
                broker,
                session,
                one.transactional_id,
                producer,
                one.topics,
                one.verify_only,
                version,
                _taker(result, parts_pending),
            )
        parts_pending.done()
        return
    producer = ProducerIdentity(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)

    def answer(rows: list[_Topic]) -> None:
        reply(AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=rows))

    _serve(
        broker,
        session,
        message.v3_and_below_transactional_id,
        producer,
        message.v3_and_below_topics,
        False,
        version,
        answer,
    )


def _taker(result: _Result, parts_pending: PendingParts) -> Callable[[list[_Topic]], None]:
    parts_pending.begin()

    def take(rows: list[_Topic]) -> None:
        result.topic_results = rows
        parts_pending.done()

    return take


def _serve(
    broker: Services,
    session: Requester,
    transactional_id: str,
    producer: ProducerIdentity,
    topics: list[_Asked],
    verify_only: bool,
    version: int,
    answer: Callable[[list[_Topic]], None],
) -> None:
    """Add partitions to one transaction, or verify them; `answer` gets the rows by topic."""
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]

    def answer_all(error: int) -> None:
        answer(_rows(topics, dict.fromkeys(partitions, error), version))

    writable = {of.topic for of in partitions}
    if version < _SEVERAL_FROM_VERSION:
        if not session.may(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, transactional_id):
            answer_all(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return
        names = {of.topic for of in partitions} - INTERNAL_TOPICS
        allowed = permitted(session, AclOperation.WRITE, AclResourceType.TOPIC, names)
        writable = {name for name in names if name in allowed}
    wrong = {of: error for of in partitions if (error := _error_of(broker, of, writable))}
    if wrong:
        answer(
            _rows(topics, dict.fromkeys(partitions, int(ErrorCode.OPERATION_NOT_ATTEMPTED)) | wrong, version)
        )
    elif verify_only:
        answer(_rows(topics, broker.transactions.verify(transactional_id, producer, partitions), version))
    else:
        try:
            # Brokers add what a producer of the second protocol has sent (Kafka's
            # `TransactionVersion.transactionVersionForAddPartitionsToTxn`).
            client_version = EPOCH_PER_TRANSACTION if version >= _SEVERAL_FROM_VERSION else 0
            broker.transactions.add_partitions(
                transactional_id, producer, partitions, answer_all, client_version
            )
        except BrokerError as error:
            answer_all(error.code)


def _error_of(broker: Services, of: TopicPartition, writable: set[str]) -> int:
    if of.topic not in writable:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if broker.controller.image.partition(*of) is None
        else ErrorCode.NONE
    )


def _rows(topics: list[_Asked], errors: dict[TopicPartition, int], version: int) -> list[_Topic]:
    def code(topic: str, number: int) -> int:
        return as_clients_know(errors[TopicPartition(topic, number)], version >= 2)

    return [
        _Topic(
            name=topic.name,
            results_by_partition=[
                _Row(partition_index=number, partition_error_code=code(topic.name, number))
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]
