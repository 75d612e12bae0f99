"""What topics there are, asked once: the Metadata request as a script. For calls of an application; `Metadata` is the standing copy."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from fairlead_kafka.base.errors import UnsupportedVersion
from fairlead_kafka.core.metadata import NO_TOPIC_ID, PartitionMetadata
from fairlead_kafka.core.script import Answer, Ask, Pause
from fairlead_kafka.wire import ApiKey, Message


def ask_metadata(
    topics: Sequence[str] | None, *, allow_auto_topic_creation: bool = False, include_topic_authorized_operations: bool = False
) -> Generator[Sequence[Ask] | Pause, list[Answer], Message]:
    """A script: the Metadata answer about `topics` (None: all), from any broker; asked again while none answers."""
    request = Message(
        topics=None if topics is None else [Message(name=name, topic_id=NO_TOPIC_ID) for name in topics],
        allow_auto_topic_creation=allow_auto_topic_creation,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=include_topic_authorized_operations,
    )
    while True:
        answer = (yield [Ask(ApiKey.METADATA, request)])[0]
        if isinstance(answer, UnsupportedVersion):
            raise answer
        if not isinstance(answer, Exception):
            return answer
        yield Pause(answer)


def partitions_of(topic: Message) -> list[PartitionMetadata]:
    """The partitions of one topic of a Metadata answer, by number."""
    items = [
        PartitionMetadata(
            item.partition_index, item.leader_id, item.leader_epoch, tuple(item.replica_nodes), tuple(item.isr_nodes), item.error_code
        )
        for item in topic.partitions
    ]
    return sorted(items, key=lambda item: item.partition)
