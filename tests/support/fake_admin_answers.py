"""The state of a fake cluster's topics, and how one of its brokers answers admin requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import ApiKey, Message, Request


@dataclass
class FakeLog:
    """One partition. `batches` are (base offset, last offset, bytes)."""

    leader: int
    epoch: int = 0
    start: int = 0
    end: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    times_ms: dict[int, int] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)
    """Producer id → first offset of its open transaction."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer id, first offset, offset of the marker)."""
    ended: dict[int, int] = field(default_factory=dict)
    """Leader epoch → where it ended, of those that another leader cut short."""

    def readable_end(self, isolation_level: int) -> int:
        """The offset after the last one that a reader of this level may see."""
        return min([self.end, *self.open.values()]) if isolation_level else self.end


@dataclass
class FakeTopic:
    """One topic."""

    topic_id: uuid.UUID
    logs: list[FakeLog]
    configs: dict[str, str] = field(default_factory=dict)


class AdminAnswers:
    """The admin half of `fake_fetch_broker.FakeNode`."""

    def __init__(self, cluster: Any, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id

    def admin_answers(self) -> dict[ApiKey, Callable[[Request], Message]]:
        """What answers each kind of request."""
        return {
            ApiKey.CREATE_TOPICS: self._create_topics,
            ApiKey.DELETE_TOPICS: self._delete_topics,
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
            ApiKey.DESCRIBE_CONFIGS: self._describe_configs,
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._alter_configs,
            ApiKey.DELETE_RECORDS: self._delete_records,
        }

    def _problem(self, api_key: ApiKey, partition: TopicPartition) -> int:
        injected = self.cluster.error(api_key, partition)
        topic = self.cluster.topics.get(partition.topic)
        if injected:
            return injected
        if topic is None or partition.partition >= len(topic.logs):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return (
            0 if topic.logs[partition.partition].leader == self.node_id else ErrorCode.NOT_LEADER_OR_FOLLOWER
        )

    def _controlled(self, api_key: ApiKey, name: str) -> int:
        return self.cluster.error(api_key, name) or (
            0 if self.node_id == self.cluster.controller else ErrorCode.NOT_CONTROLLER
        )

    def _create_topics(self, request: Request) -> Message:
        results = []
        for item in request.message.topics:
            code = self._controlled(ApiKey.CREATE_TOPICS, item.name)
            code = code or (ErrorCode.TOPIC_ALREADY_EXISTS if item.name in self.cluster.topics else 0)
            topic_id = uuid.UUID(int=0)
            if not code and not request.message.validate_only:
                topic = self.cluster.topic(item.name, len(item.assignments) or max(1, item.num_partitions))
                topic.configs = {config.name: config.value for config in item.configs}
                topic_id = topic.topic_id
            results.append(
                Message(
                    name=item.name,
                    topic_id=topic_id,
                    error_code=code,
                    error_message="it is so" if code else None,
                    topic_config_error_code=0,
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[],
                )
            )
        return Message(throttle_time_ms=0, topics=results)

    def _delete_topics(self, request: Request) -> Message:
        message = request.message
        results = []
        for name in [topic.name for topic in message.topics] if request.version >= 6 else message.topic_names:
            code = self._controlled(ApiKey.DELETE_TOPICS, name)
            code = code or (0 if name in self.cluster.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            gone = self.cluster.topics.pop(name) if not code else None
            topic_id = gone.topic_id if gone else uuid.UUID(int=0)
            results.append(Message(name=name, topic_id=topic_id, error_code=code, error_message=None))
        return Message(throttle_time_ms=0, responses=results)

    def _create_partitions(self, request: Request) -> Message:
        results = []
        for item in request.message.topics:
            code = self._controlled(ApiKey.CREATE_PARTITIONS, item.name)
            if not code:
                logs = self.cluster.topics[item.name].logs
                logs += [FakeLog(1) for _ in range(item.count - len(logs))]
            results.append(Message(name=item.name, error_code=code, error_message=None))
        return Message(throttle_time_ms=0, results=results)

    def _describe_configs(self, request: Request) -> Message:
        results = []
        for item in request.message.resources:
            code = self.cluster.error(ApiKey.DESCRIBE_CONFIGS, item.resource_name)
            configs = (
                self.cluster.topics[item.resource_name].configs
                if item.resource_type == 2
                else {"node.id": str(self.node_id)}
            )
            entries = [
                Message(
                    name=name,
                    value=value,
                    read_only=False,
                    config_source=1,
                    is_sensitive=False,
                    synonyms=[],
                    config_type=0,
                    documentation=None,
                )
                for name, value in configs.items()
            ]
            results.append(
                Message(
                    error_code=code,
                    error_message=None,
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                    configs=entries,
                )
            )
        return Message(throttle_time_ms=0, results=results)

    def _alter_configs(self, request: Request) -> Message:
        results = []
        for item in request.message.resources:
            configs = self.cluster.topics[item.resource_name].configs
            for change in item.configs:
                old = configs.get(change.name)
                values: dict[int, str | None] = {
                    0: change.value,
                    1: None,
                    2: f"{old},{change.value}",
                    3: (old or "").replace(f",{change.value}", ""),
                }
                configs.pop(change.name, None)
                value = values[change.config_operation]
                if value is not None:
                    configs[change.name] = value
            results.append(
                Message(
                    error_code=0,
                    error_message=None,
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                )
            )
        return Message(throttle_time_ms=0, responses=results)

    def _delete_records(self, request: Request) -> Message:
        topics = []
        for topic in request.message.topics:
            parts = []
            for item in topic.partitions:
                partition = TopicPartition(topic.name, item.partition_index)
                code = self._problem(ApiKey.DELETE_RECORDS, partition)
                if not code:
                    log = self.cluster.log(*partition)
                    log.start = log.end if item.offset == -1 else item.offset
                low = -1 if code else self.cluster.log(*partition).start
                parts.append(
                    Message(partition_index=item.partition_index, low_watermark=low, error_code=code)
                )
            topics.append(Message(name=topic.name, partitions=parts))
        return Message(throttle_time_ms=0, topics=topics)
