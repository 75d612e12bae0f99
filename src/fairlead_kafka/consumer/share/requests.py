"""ShareFetch and ShareAcknowledge requests, from partitions and acknowledgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

from fairlead_kafka.consumer.share.acknowledging import AckBatch, Acks, Place, batches_of
from fairlead_kafka.wire.messages import ShareAcknowledgeRequest, ShareFetchRequest

Batches: TypeAlias = Mapping[Place, list[AckBatch]]


def by_place(acks: Sequence[Acks]) -> dict[Place, list[AckBatch]]:
    """Acknowledgements as requests have them: ranges of each partition."""
    found: dict[Place, list[Acks]] = {}
    for each in acks:
        found.setdefault(each.place, []).append(each)
    return {place: list(batches_of(items)) for place, items in found.items()}


def fetch_topics(named: Sequence[Place], batches: Batches) -> list[ShareFetchRequest.FetchTopic]:
    """Rows of a ShareFetch: partitions new to the session, and those with acknowledgements."""
    topics: dict[UUID, ShareFetchRequest.FetchTopic] = {}
    for topic_id, number in dict.fromkeys((*named, *batches)):
        row = topics.setdefault(topic_id, ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[]))
        made = [
            ShareFetchRequest.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            for first, last, types in batches.get((topic_id, number), ())
        ]
        row.partitions.append(
            ShareFetchRequest.FetchPartition(partition_index=number, acknowledgement_batches=made)
        )
    return list(topics.values())


def forgotten_topics(places: Sequence[Place]) -> list[ShareFetchRequest.ForgottenTopic]:
    """Rows of a ShareFetch: partitions that leave the session."""
    topics: dict[UUID, ShareFetchRequest.ForgottenTopic] = {}
    for topic_id, number in places:
        row = topics.setdefault(topic_id, ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[]))
        row.partitions.append(number)
    return list(topics.values())


def acknowledge_topics(batches: Batches) -> list[ShareAcknowledgeRequest.AcknowledgeTopic]:
    """The topics of a ShareAcknowledge, with what is acknowledged."""
    topics: dict[UUID, ShareAcknowledgeRequest.AcknowledgeTopic] = {}
    for (topic_id, number), ranges in batches.items():
        row = topics.setdefault(
            topic_id, ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=topic_id, partitions=[])
        )
        made = [
            ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=types
            )
            for first, last, types in ranges
        ]
        row.partitions.append(
            ShareAcknowledgeRequest.AcknowledgePartition(partition_index=number, acknowledgement_batches=made)
        )
    return list(topics.values())
