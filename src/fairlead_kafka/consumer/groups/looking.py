"""Looking topics up for a member: whether they exist, and the names of their ids."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.consumer.absent import AbsentTopics
from fairlead_kafka.core.script import Pause, Steps
from fairlead_kafka.core.topic_listing import ask_metadata
from fairlead_kafka.wire.messages import MetadataResponse

_Topic = MetadataResponse.MetadataResponseTopic


def find_topics(absent: AbsentTopics, topics: Sequence[str]) -> Steps[dict[str, _Topic]]:
    """The topics of `topics` that exist, by name. The others are logged, and created where
    `allow.auto.create.topics` allows it."""
    if not topics:
        return {}
    answer = yield from ask_metadata(sorted(topics))
    found = _there(answer)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    missing = sorted(topic.name for topic in answer.topics if topic.name and topic.error_code == unknown)
    for name in missing:
        absent.missing(name)
    if missing and absent.creates:
        found |= _there((yield from ask_metadata(missing, allow_auto_topic_creation=True)))
    absent.keep(topics)
    for name, topic in found.items():
        absent.there(name, len(topic.partitions))
    return found


def topic_names(topic_ids: Sequence[UUID]) -> Steps[dict[UUID, str]]:
    """Names by id, of those of the topics that have one, after a back-off if none of them does.

    A broker may not know yet of a topic that the coordinator assigns, and a topic may be gone by
    now.
    """
    answer = yield from ask_metadata((), topic_ids=topic_ids)
    found = {topic.topic_id: topic.name for topic in answer.topics if topic.name and not topic.error_code}
    if not found:
        yield Pause(BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "a topic that the group assigns"))
    return found


def _there(answer: MetadataResponse) -> dict[str, _Topic]:
    return {topic.name: topic for topic in answer.topics if topic.name and not topic.error_code}
