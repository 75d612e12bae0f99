"""Log directories: the disk space of each replica. Sources: KIP-113, KIP-827."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from fairlead_kafka.admin.items import LogDirDescription, ReplicaLog
from fairlead_kafka.admin.scripts import AdminScript
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.script import Ask, Pause, ask_all
from fairlead_kafka.core.topic_listing import ask_metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse


def describe_log_dirs(
    node_ids: Collection[int], partitions: Collection[TopicPartition] | None
) -> AdminScript[dict[int, dict[str, LogDirDescription]]]:
    """Describe log directories: {node id: {directory: description}}.

    `node_ids` empty: of all live brokers; `partitions` None: replicas of all partitions.
    BrokerError if a broker refuses.
    """
    waiting = set(node_ids)
    if not waiting:
        answer = yield from ask_metadata([])
        waiting = {broker.node_id for broker in answer.brokers}
    message = DescribeLogDirsRequest(topics=None if partitions is None else _topics(partitions))
    found: dict[int, dict[str, LogDirDescription]] = {}
    while waiting:
        nodes = sorted(waiting)
        trouble: Exception | None = None
        answers = yield from ask_all([Ask(ApiKey.DESCRIBE_LOG_DIRS, message, node_id) for node_id in nodes])
        for node_id, said in zip(nodes, answers, strict=True):
            if isinstance(said, UnsupportedVersion):
                raise said
            if isinstance(said, Exception):
                trouble = said
                continue
            code = said.error_code  # below version 3 there is none for the whole answer
            error = BrokerError(code, f"describing the log directories of broker {node_id}") if code else None
            if error is not None and not error.retriable:
                raise error
            trouble = error or trouble
            if error is None:
                waiting.discard(node_id)
                found[node_id] = {row.log_dir: _directory(node_id, row) for row in said.results}
        if trouble is not None:
            yield Pause(trouble, refresh=True)
    return dict(sorted(found.items()))


def _topics(partitions: Iterable[TopicPartition]) -> list[DescribeLogDirsRequest.DescribableLogDirTopic]:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    made = DescribeLogDirsRequest.DescribableLogDirTopic
    return [made(topic=topic, partitions=mine) for topic, mine in numbers.items()]


def _directory(node_id: int, row: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDirDescription:
    replicas: Mapping[TopicPartition, ReplicaLog] = {
        TopicPartition(topic.name, one.partition_index): ReplicaLog(
            one.partition_size, one.offset_lag, one.is_future_key
        )
        for topic in row.topics
        for one in topic.partitions
    }
    error = (
        BrokerError(row.error_code, f"log directory {row.log_dir} of broker {node_id}")
        if row.error_code
        else None
    )
    return LogDirDescription(replicas, error, _known(row.total_bytes), _known(row.usable_bytes))


def _known(size_bytes: int) -> int | None:
    """`size_bytes` as a broker reports it from version 4 on; None for -1, where the broker does not
    know."""
    return None if size_bytes < 0 else size_bytes
