"""The Metadata request as a script, for calls that ask once; `Metadata` is the copy that a client
keeps up to date."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import NO_TOPIC_ID
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.script import Ask, Pause, Steps, ask_one
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import MetadataRequest, MetadataResponse


def ask_metadata(
    topics: Sequence[str] | None,
    *,
    topic_ids: Sequence[UUID] = (),
    allow_auto_topic_creation: bool = False,
    include_topic_authorized_operations: bool = False,
) -> Steps[MetadataResponse]:
    """A script: the Metadata answer about `topics` (None: all), from any broker; which is asked
    again while no broker answers.

    `topic_ids`: topics by their ids as well, for brokers since Kafka 3.0.
    """
    rows = [MetadataRequest.MetadataRequestTopic(name=name, topic_id=NO_TOPIC_ID) for name in topics or ()]
    rows += [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in topic_ids]
    request = MetadataRequest(
        topics=None if topics is None else rows,
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    while True:
        answer = yield from ask_one(Ask(ApiKey.METADATA, request))
        if isinstance(answer, UnsupportedVersion):
            raise answer
        if isinstance(answer, Exception):
            yield Pause(answer)
        elif answer.error_code:  # no broker in it: newer metadata say whom to ask
            yield Pause(BrokerError(answer.error_code, "METADATA"), refresh=True)
        else:
            return answer


def partitions_of(topic: MetadataResponse.MetadataResponseTopic) -> list[PartitionMetadata]:
    """The partitions of one topic of a Metadata answer, by number."""
    items = [
        PartitionMetadata(
            item.partition_index,
            item.leader_id,
            item.leader_epoch,
            tuple(item.replica_nodes),
            tuple(item.isr_nodes),
            item.error_code,
        )
        for item in topic.partitions
    ]
    return sorted(items, key=lambda item: item.partition)
