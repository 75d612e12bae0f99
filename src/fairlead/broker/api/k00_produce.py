"""Produce (0): append one record batch per partition.

Versions 3-12; 0 is advertised as the lowest, or older librdkafka silently stops compressing (KAFKA-18659), but 0-2 (message
formats before batch v2) end the connection as in Kafka 4. Not served: 13 (topic ids).
acks: -1 and 1 are answered once the batch is written (and synced, where `flush.messages` asks); 0 never, and an error then ends
the connection, as it does in Kafka. The broker's checks are in `broker.produced`. Refused: internal topics (INVALID_TOPIC_EXCEPTION).

The first batch of a transaction in a partition waits until the transaction's coordinator has said that the partition is in it
(`transactions.verifier`); what the coordinator cannot say now is NOT_ENOUGH_REPLICAS, which every client retries, and a partition that
is not in the transaction is TRANSACTION_ABORTABLE, below version 11 INVALID_TXN_STATE (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.base.ids import TopicPartition
from fairlead.broker.api.common import Gathering
from fairlead.broker.controller import INTERNAL_TOPICS, TopicImage
from fairlead.broker.dispatch import Reply, serves
from fairlead.broker.internal import ProducerIdentity
from fairlead.broker.log import Partition
from fairlead.broker.produced import check_batch
from fairlead.broker.transactions.verifier import VERIFICATION, Verified
from fairlead.records import BatchHeader
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


_ABORTABLE_FROM_VERSION = 11
_VERIFY_ERRORS: dict[int, int] = dict.fromkeys(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""What the coordinator said → what is told (Kafka's `ReplicaManager.handleProduceAppend`)."""


@serves(ApiKey.PRODUCE, versions=(3, 12), advertised_low=0, pipelined=True)
def produce(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Append, and answer when all is written."""
    message = request.message
    refusal = _refuse_all(message)
    topics = broker.controller.image.topics
    responses: list[Message] = []
    to_verify: list[_Unverified] = []
    for topic_data in message.topic_data:
        topic = topics.get(topic_data.name)
        wrong = refusal or _refuse_topic(topic_data.name)
        rows = [_append(broker, topic, data, request, wrong, to_verify) for data in topic_data.partition_data]
        responses.append(Message(name=topic_data.name, partition_responses=rows))
    if to_verify:
        _verify(broker, request, to_verify, lambda: _finish(broker, message.acks, responses, session, reply))
    else:
        _finish(broker, message.acks, responses, session, reply)


def _finish(broker: Broker, acks: int, responses: list[Message], session: Session, reply: Reply) -> None:
    """Everything is appended, or refused: answer when it is written."""
    hints: list[Message] = []
    failed = False
    for response in responses:
        for row in response.partition_responses:
            if row.error_code:
                failed = True
                if row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    row.current_leader = broker.partitions.leader_hint(broker.controller.image.topics.get(response.name), row.index)
                    hints.append(row.current_leader)
    if acks == 0:
        reply(None)
        if failed:
            session.close("a Produce request with acks=0 failed, which only the end of the connection can tell its client")
        return

    def written(success: bool) -> None:
        if not success:
            for response in responses:
                _fail_rows(response.partition_responses)
        answer = Message(responses=responses, throttle_time_ms=0)
        if hints:
            answer.node_endpoints = broker.partitions.endpoints(hints)
        reply(answer)

    broker.logs.when_written(written)


def _refuse_all(message: Message) -> BrokerError | None:
    """An error that every partition of the request gets."""
    if message.acks not in (-1, 0, 1):
        return BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {message.acks}; it must be -1, 0 or 1")
    return None


def _refuse_topic(name: str) -> BrokerError | None:
    """Internal topics are written by brokers alone: a stranger's record there would be taken for what a coordinator knows."""
    if name in INTERNAL_TOPICS:
        return BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal: brokers alone write to it")
    return None


def _check_named(header: BatchHeader, transactional_id: str | None) -> None:
    """BrokerError with Kafka's code for a transactional batch in a request that does not say whose it is."""
    if transactional_id is None:
        text = f"a transactional batch of producer {header.producer_id} needs a transactional id in its request"
        raise BrokerError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, text)


class _Unverified(NamedTuple):
    """A checked batch that its coordinator must be asked about, and the row that tells what became of it."""

    partition: Partition
    records: Any
    header: BatchHeader
    row: Message


def _append(
    broker: Broker, topic: TopicImage | None, data: Any, request: Request, refusal: BrokerError | None, to_verify: list[_Unverified]
) -> Message:
    """Append one partition's batch; its row of the answer, which is filled in later if the batch has `to_verify`."""
    number = data.index
    if refusal is not None:
        return _error_row(number, refusal.code, str(refusal))
    partition = broker.partitions.find(topic, number)
    if isinstance(partition, int):
        return _error_row(number, partition, None)
    try:
        header = check_batch(partition, data.records, request.version)
        if header.transactional:
            _check_named(header, request.message.transactional_id)
            if not partition.in_transaction(header.producer_id) and broker.settings[VERIFICATION]:
                row = _error_row(number, ErrorCode.NONE, None)
                to_verify.append(_Unverified(partition, data.records, header, row))
                return row
        return _append_checked(broker, partition, data.records, header, number)
    except BrokerError as error:
        return _error_row(number, error.code, str(error))


def _append_checked(broker: Broker, partition: Partition, records: Any, header: BatchHeader, number: int) -> Message:
    append_time_ms = -1
    duplicate = partition.check_producer(header) if header.producer_id >= 0 else None
    if duplicate is None:
        base_offset = broker.logs.append(partition, records, header, broker.partitions.leader_epoch(partition), broker.wall_ms)
        if partition.limits.log_append_time:
            append_time_ms = broker.wall_ms
    else:
        base_offset, append_time_ms = duplicate.base_offset, duplicate.log_append_time_ms
    return Message(
        index=number,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=partition.log_start,
        record_errors=[],
        error_message=None,
    )


def _verify(broker: Broker, request: Request, to_verify: list[_Unverified], complete: Callable[[], None]) -> None:
    """Append each batch once its coordinator has said yes; then `complete`."""
    gathering = Gathering(complete)
    transactional_id = request.message.transactional_id
    by_producer: dict[ProducerIdentity, list[tuple[TopicPartition, Verified]]] = {}
    for one in to_verify:
        gathering.begin()

        def verified(error: int, one: _Unverified = one) -> None:
            one.row.__dict__.update(_verified_row(broker, one, error, request.version).__dict__)
            gathering.done()

        producer = ProducerIdentity(one.header.producer_id, one.header.producer_epoch)
        of = TopicPartition(one.partition.topic, one.partition.partition)
        by_producer.setdefault(producer, []).append((of, verified))
    for producer, wanted in by_producer.items():
        broker.verifier.verify(transactional_id, producer, wanted)
    gathering.done()


def _verified_row(broker: Broker, one: _Unverified, error: int, version: int) -> Message:
    number = one.partition.partition
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_FROM_VERSION:
        error = ErrorCode.INVALID_TXN_STATE
    if error:
        text = f"{one.partition} is not known to be in the transaction of producer {one.header.producer_id}"
        return _error_row(number, _VERIFY_ERRORS.get(error, error), text)
    found = broker.log_of(one.partition.topic, number)  # it may have gone while the coordinator was asked
    if isinstance(found, int):
        return _error_row(number, found, None)
    try:
        return _append_checked(broker, found, one.records, one.header, number)
    except BrokerError as refused:
        return _error_row(number, refused.code, str(refused))


def _error_row(number: int, error_code: int, text: str | None) -> Message:
    return Message(
        index=number,
        error_code=error_code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[],
        error_message=text,
    )


def _fail_rows(rows: list[Message]) -> None:
    """The disk failed: what was appended is not there."""
    for row in rows:
        if not row.error_code:
            row.error_code, row.base_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1
            row.log_append_time_ms = row.log_start_offset = -1
