"""DescribeProducers (61): who writes to partitions led here with a producer id, and since where a
transaction is open (KIP-664).

Version 0. Needs READ on each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there or not).
Refused: names that no topic can have (INVALID_TOPIC_EXCEPTION).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import cut_short
from fairlead_kafka.base.ids import NO_OFFSET, NO_SEQUENCE
from fairlead_kafka.broker.api.common import distinct, name_error, reason
from fairlead_kafka.broker.api.rights import refusal
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeProducersRequest, DescribeProducersResponse

_Row = DescribeProducersResponse.PartitionResponse
_Producer = DescribeProducersResponse.ProducerState


@serves(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0))
def describe_producers(
    broker: Services, request: Request[DescribeProducersRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeProducers: describe the producers of each partition."""
    topics = []
    for asked in distinct(request.message.topics):
        numbers = dict.fromkeys(asked.partition_indexes)
        refused = name_error(asked.name)
        if refused is None and not session.may(AclOperation.READ, AclResourceType.TOPIC, asked.name):
            refused = refusal(session, AclOperation.READ, AclResourceType.TOPIC, asked.name)
        if refused is None:
            rows = [_describe(broker, asked.name, number) for number in numbers]
        else:
            rows = [_row(number, refused.code, reason(refused), []) for number in numbers]
        topics.append(DescribeProducersResponse.TopicResponse(name=asked.name, partitions=rows))
    reply(DescribeProducersResponse(throttle_time_ms=0, topics=topics))


def _describe(broker: Services, topic: str, number: int) -> _Row:
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        return _row(
            number, partition, cut_short(f"{topic}-{number} is not led by broker {broker.node_id}"), []
        )
    return _row(number, ErrorCode.NONE, None, _producers(partition))


def _row(number: int, error_code: int, text: str | None, active: list[_Producer]) -> _Row:
    return _Row(partition_index=number, error_code=error_code, error_message=text, active_producers=active)


def _producers(partition: Partition) -> list[_Producer]:
    open_transactions = partition.transactions.open if partition.transactions is not None else {}
    return [
        _Producer(
            producer_id=producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE,
            last_timestamp=partition.newest_timestamp_ms(producer_id, entry),
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=open_transactions.get(producer_id, NO_OFFSET),
        )
        for producer_id, entry in partition.producers.items()
    ]
