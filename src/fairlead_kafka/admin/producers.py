"""Producers of partitions, and those of transactional ids: describe, abort, fence. Sources:
KIP-664, KIP-699."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead_kafka.admin.by_leader import per_leader
from fairlead_kafka.admin.cluster_items import AbortTransaction, FencedProducer, ProducerState
from fairlead_kafka.admin.coordinated import per_coordinated
from fairlead_kafka.admin.moves import numbers_by_topic
from fairlead_kafka.admin.scripts import AdminScript, Outcome, outcome_of
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_NO_PRODUCER = -1


def describe_producers(
    metadata: Metadata, partitions: Sequence[TopicPartition]
) -> AdminScript[dict[TopicPartition, list[ProducerState]]]:
    """Producers that the leaders of partitions remember: {partition: states}. ItemsFailed names the
    partitions that failed."""

    def request(group: list[TopicPartition]) -> DescribeProducersRequest:
        made = DescribeProducersRequest.TopicRequest
        return DescribeProducersRequest(
            topics=[
                made(name=topic, partition_indexes=numbers)
                for topic, numbers in numbers_by_topic(group).items()
            ]
        )

    def read(answer: DescribeProducersResponse) -> dict[TopicPartition, Outcome[list[ProducerState]]]:
        return {
            TopicPartition(topic.name, one.partition_index): outcome_of(
                one.error_code, one.error_message, [_state(row) for row in one.active_producers]
            )
            for topic in answer.topics
            for one in topic.partitions
        }

    return per_leader(
        "describe_producers", metadata, list(partitions), ApiKey.DESCRIBE_PRODUCERS, request, read
    )


def _state(row: DescribeProducersResponse.ProducerState) -> ProducerState:
    return ProducerState(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch if row.coordinator_epoch >= 0 else None,
        row.current_txn_start_offset if row.current_txn_start_offset >= 0 else None,
    )


def abort_transaction(metadata: Metadata, one: AbortTransaction) -> AdminScript[None]:
    """Abort a transaction on its partition, without its coordinator. BrokerError if the leader
    refuses."""

    def request(group: list[TopicPartition]) -> WriteTxnMarkersRequest:
        topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(
            name=one.partition.topic, partition_indexes=[one.partition.partition]
        )
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=one.coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def read(answer: WriteTxnMarkersResponse) -> dict[TopicPartition, Outcome[None]]:
        return {
            TopicPartition(topic.name, row.partition_index): outcome_of(row.error_code, None, None)
            for marker in answer.markers
            for topic in marker.topics
            for row in topic.partitions
        }

    wanted = [TopicPartition(*one.partition)]
    try:
        yield from per_leader("abort_transaction", metadata, wanted, ApiKey.WRITE_TXN_MARKERS, request, read)
    except ItemsFailed as failed:
        raise failed.errors[wanted[0]] from None


def fence_producers(
    metadata: Metadata, transactional_ids: Sequence[str], *, timeout_ms: int
) -> AdminScript[dict[str, FencedProducer]]:
    """Fence the producers of transactional ids: {transactional id: producer id and epoch from now
    on}. ItemsFailed names the ids that failed."""

    def ask(wanted: list[str]) -> list[tuple[ApiKey, InitProducerIdRequest]]:
        return [
            (
                ApiKey.INIT_PRODUCER_ID,
                InitProducerIdRequest(
                    transactional_id=each,
                    transaction_timeout_ms=timeout_ms,
                    producer_id=_NO_PRODUCER,
                    producer_epoch=_NO_PRODUCER,
                ),
            )
            for each in wanted
        ]

    def read(_node_id: int, answer: InitProducerIdResponse) -> Iterable[tuple[str, Outcome[FencedProducer]]]:
        fenced = FencedProducer(answer.producer_id, answer.producer_epoch)
        yield "", outcome_of(answer.error_code, None, fenced)

    return per_coordinated("fence_producers", KeyType.TRANSACTION, metadata, transactional_ids, ask, read)
