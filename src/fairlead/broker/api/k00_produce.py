"""Produce (0): append one record batch per partition.

Versions 3-12; 0 is advertised as the lowest, or older librdkafka silently stops compressing (KAFKA-18659), but 0-2 (message
formats before batch v2) end the connection as in Kafka 4. Not served: 13 (topic ids). Refused: transactions (INVALID_TXN_STATE).
acks: -1 and 1 are answered once the batch is written (and synced, where `flush.messages` asks); 0 never, and an error then ends
the connection, as it does in Kafka. The broker's checks are in `broker.produced`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.broker.controller import TopicImage
from fairlead.broker.dispatch import Reply, serves
from fairlead.broker.produced import check_batch
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


@serves(ApiKey.PRODUCE, versions=(3, 12), advertised_low=0, pipelined=True)
def produce(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Append, and answer when all is written."""
    message = request.message
    refusal = _refuse_all(message)
    topics = broker.controller.image.topics
    responses, failed = [], False
    hints: list[Message] = []
    for topic_data in message.topic_data:
        topic = topics.get(topic_data.name)
        rows = []
        for data in topic_data.partition_data:
            row = _append(broker, topic, data, request.version, refusal)
            if row.error_code:
                failed = True
                if row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    row.current_leader = broker.partitions.leader_hint(topic, data.index)
                    hints.append(row.current_leader)
            rows.append(row)
        responses.append(Message(name=topic_data.name, partition_responses=rows))
    if message.acks == 0:
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
    if message.transactional_id is not None:
        return BrokerError(ErrorCode.INVALID_TXN_STATE, "transactions are not part of this release")
    return None


def _append(broker: Broker, topic: TopicImage | None, data: Any, version: int, refusal: BrokerError | None) -> Message:
    """Append one partition's batch; its row of the answer."""
    number = data.index
    if refusal is not None:
        return _error_row(number, refusal.code, str(refusal))
    partition = broker.partitions.find(topic, number)
    if isinstance(partition, int):
        return _error_row(number, partition, None)
    assert topic is not None
    append_time_ms = -1
    try:
        header = check_batch(partition, data.records, version)
        duplicate = partition.producers.check(header) if header.producer_id >= 0 else None
        if duplicate is None:
            base_offset = broker.logs.append(partition, data.records, header, topic.partitions[number].leader_epoch, broker.wall_ms)
            if partition.limits.log_append_time:
                append_time_ms = broker.wall_ms
        else:
            base_offset, append_time_ms = duplicate.base_offset, duplicate.log_append_time_ms
    except BrokerError as error:
        return _error_row(number, error.code, str(error))
    return Message(
        index=number,
        error_code=0,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=partition.log_start,
        record_errors=[],
        error_message=None,
    )


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
