"""Partitions of topics, for `partitions_for` and `list_topics`."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.script import Pause, Steps
from fairlead_kafka.core.topic_listing import ask_metadata, partitions_of


def describe_topics(
    topics: Sequence[str] | None, *, allow_auto_topic_creation: bool
) -> Steps[dict[str, list[PartitionMetadata]]]:
    """A script: {topic: its partitions by number}, of the topics named or of all.

    A topic that is missing, or about to be created, is asked for again until the script's time is
    up. BrokerError for any other error.
    """
    while True:
        answer = yield from ask_metadata(topics, allow_auto_topic_creation=allow_auto_topic_creation)
        problem: BrokerError | None = None
        for topic in answer.topics:
            if topic.error_code and topics is not None:
                missing = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                what = (
                    "is not in the cluster; create it, or check its name"
                    if missing
                    else "cannot be described"
                )
                problem = BrokerError(topic.error_code, f"topic {topic.name} {what}")
                if not problem.retriable:
                    raise problem
        if problem is None:
            return {
                topic.name: partitions_of(topic)
                for topic in answer.topics
                if topic.name and not topic.error_code
            }
        yield Pause(problem)
