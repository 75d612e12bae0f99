"""The controller: the only one who changes the cluster's metadata. See the package for the theory."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from fairlead.base.codes import ErrorCode
from fairlead.base.config import Settings
from fairlead.base.errors import BrokerError
from fairlead.base.ids import NO_LEADER, Node
from fairlead.broker.controller.configs import (
    ConfigAlteration,
    Configs,
    DescribedConfig,
    alter,
    alter_topic,
    check_topic_configs,
)
from fairlead.broker.controller.fold import (
    MetadataRecord,
    apply,
    broker_record,
    partition_lists,
    snapshot_records,
    topic_record,
)
from fairlead.broker.controller.image import (
    CLUSTER_WIDE,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerConfigsChanged,
    Change,
    ClusterImage,
    PartitionsAdded,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead.broker.controller.log import decode_log, encode_decision
from fairlead.broker.controller.names import check_topic_name, collision_key
from fairlead.broker.controller.placement import Assignments, Placement
from fairlead.core.machine import Dice

PRODUCER_ID_BLOCK = 1_000
"""Producer ids handed to a broker at once (Kafka's `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`)."""

_INTERNAL_TOPIC_CONFIGS = {"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created; -1 means num.partitions and default.replication.factor."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)


class Controller:
    """One per cluster, called directly by its brokers, all of which live in one thread.

    `append` takes what is to be written to the metadata log, in order, before the answer that depends on it is sent.
    All methods that change something raise `BrokerError` with Kafka's code, and change nothing then. Once the log could not be written
    (KAFKA_STORAGE_ERROR) nothing can be changed any more: its end may be torn, and what came after would be lost with it.
    """

    def __init__(self, settings: Settings, dice: Dice, append: Callable[[bytes], None] | None = None) -> None:
        self.image = ClusterImage()
        self.configs = Configs(self.image, settings)
        self._placement = Placement(self.image)
        self._dice = dice
        self._append = append
        self._log_error: OSError | None = None
        self._listeners: list[Callable[[Change], None]] = []
        self._names_by_collision_key: dict[str, str] = {}

    # --- The log

    def replay(self, data: bytes) -> int:
        """Rebuild the image from a metadata log, before any broker starts; how many bytes of it are sound.

        The rest is a torn tail. The caller cuts it, or better, replaces the file by `snapshot()`, which is also its compaction.
        No broker is alive afterwards and no partition has a leader. DecodeError if the log is damaged before its end.
        """
        decisions, size_bytes = decode_log(data)
        for records in decisions:
            for record in records:
                self._note(apply(self.image, record))
        for broker in self.image.brokers.values():
            broker.alive = False
        for _, _, partition in self.image.partitions():
            if partition.leader != NO_LEADER:
                partition.leader, partition.leader_epoch = NO_LEADER, partition.leader_epoch + 1
        return size_bytes

    def snapshot(self) -> bytes:
        """A metadata log that replays to this image and holds nothing else."""
        self._ensure_cluster_id()
        return b"".join(encode_decision([record]) for record in snapshot_records(self.image))

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Have `listener` called after every change, in order; the function returned ends it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _commit(self, *records: MetadataRecord) -> None:
        """Write one decision, apply it, and tell the listeners."""
        if not self.image.cluster_id:
            self._ensure_cluster_id()
            records = ({"type": "cluster", "cluster_id": self.image.cluster_id}, *records)
        self._write(encode_decision(records))
        self._apply(records)

    def _write(self, line: bytes) -> None:
        try:
            if self._log_error is None and self._append is not None:
                self._append(line)
        except OSError as error:
            self._log_error = error
        if self._log_error is not None:
            raise BrokerError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the metadata log could not be written ({self._log_error}): make room, and restart the cluster",
            )

    def _apply(self, records: Sequence[MetadataRecord]) -> None:
        changes = [apply(self.image, record) for record in records]
        for change in changes:
            self._note(change)
        for change in changes:
            if change is not None:
                for listener in list(self._listeners):
                    listener(change)

    def _note(self, change: Change | None) -> None:
        """Keep what is derived from the image up to date."""
        if isinstance(change, TopicCreated):
            self._names_by_collision_key[collision_key(change.topic.name)] = change.topic.name
            self._placement.placed += len(change.topic.partitions)
        elif isinstance(change, PartitionsAdded):
            self._placement.placed += len(change.topic.partitions) - change.first
        elif isinstance(change, TopicDeleted):
            self._names_by_collision_key.pop(collision_key(change.topic.name), None)
            self.configs.forget(change.topic.name)
        elif isinstance(change, TopicConfigsChanged):
            self.configs.forget(change.topic.name)
        elif isinstance(change, BrokerConfigsChanged):
            self.configs.forget()

    # --- Brokers

    def broker_started(self, node: Node) -> None:
        """The broker listens. It leads again where no other replica in sync is alive, and wherever it did, in a new leader epoch."""
        changes = []
        for topic, number, partition in self.image.partitions():
            if node.node_id in partition.isr and partition.leader in (NO_LEADER, node.node_id):
                changes.append([topic.topic_id.hex, number, list(partition.isr), node.node_id, partition.leader_epoch + 1])
        self._commit(broker_record(node, True), *_leaders_records(changes))

    def broker_stopped(self, node_id: int) -> None:
        """The broker is gone: what it led goes to the next replica in sync that is alive, or has no leader until it is back."""
        broker = self.image.brokers.get(node_id)
        if broker is None or not broker.alive:
            return
        changes = []
        for topic, number, partition in self.image.partitions():
            if node_id not in partition.isr:
                continue
            isr = [replica for replica in partition.isr if replica != node_id] or [node_id]
            leader = partition.leader
            if leader == node_id:
                alive = [
                    replica for replica in partition.replicas if replica in isr and replica != node_id and self.image.is_alive(replica)
                ]
                leader = alive[0] if alive else NO_LEADER
            changes.append([topic.topic_id.hex, number, isr, leader, partition.leader_epoch + 1])
        records = [broker_record(broker.node, False), *_leaders_records(changes)]
        try:
            self._commit(*records)
        except BrokerError:
            self._apply(records)  # it is gone, whether that can be written or not; a replay takes every broker for gone

    def allocate_producer_ids(self, node_id: int) -> range:
        """A block of producer ids that no other broker, and none before a restart, is given."""
        if node_id not in self.image.brokers:
            raise BrokerError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {node_id} never started in this cluster")
        first = self.image.next_producer_id
        self._commit({"type": "producer_ids", "next": first + PRODUCER_ID_BLOCK})
        return range(first, first + PRODUCER_ID_BLOCK)

    # --- Topics

    def create_topics(self, wanted: Sequence[NewTopic], validate_only: bool = False) -> list[TopicImage | BrokerError]:
        """Create topics, in one decision; for each its image, or why it cannot be. With `validate_only`, what they would be."""
        results: list[TopicImage | BrokerError] = []
        planned: dict[str, TopicImage] = {}
        placed = self._placement.placed
        for new in wanted:
            try:
                topic = self._plan(new, planned)
            except BrokerError as error:
                results.append(error)
                continue
            planned[collision_key(topic.name)] = topic
            self._placement.placed += len(topic.partitions)
            results.append(topic)
        self._placement.placed = placed
        if planned and not validate_only:
            self._commit(*(topic_record(topic) for topic in planned.values()))
            return [result if isinstance(result, BrokerError) else self.image.topics[result.name] for result in results]
        return results

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignments: Assignments | None = None,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> TopicImage:
        """Create one topic; -1 means num.partitions and default.replication.factor."""
        (result,) = self.create_topics([NewTopic(name, partitions, replication_factor, assignments, configs or {})], validate_only)
        if isinstance(result, BrokerError):
            raise result
        return result

    def _plan(self, new: NewTopic, planned: Mapping[str, TopicImage]) -> TopicImage:
        if new.name in INTERNAL_TOPICS:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{new.name} is internal: brokers create it when they need it")
        self._check_new_name(new.name, planned)
        own = check_topic_configs(new.configs)
        defaults = self.configs.broker_settings()
        placed = self._placement.of_new_topic(new.partitions, new.replication_factor, new.assignments, defaults)
        return self._new_topic(new.name, placed, own)

    def create_offsets_topic(self) -> TopicImage:
        """The topic that keeps committed offsets, created if it is not there."""
        return self._create_internal(OFFSETS_TOPIC, "offsets.topic.")

    def create_transactions_topic(self) -> TopicImage:
        """The topic that keeps transactions, created if it is not there."""
        return self._create_internal(TRANSACTIONS_TOPIC, "transaction.state.log.")

    def _create_internal(self, name: str, config_prefix: str) -> TopicImage:
        existing = self.image.topics.get(name)
        if existing is not None:
            return existing
        settings = self.configs.broker_settings()
        placed = self._placement.ring(settings[config_prefix + "num.partitions"], settings[config_prefix + "replication.factor"])
        self._commit(topic_record(self._new_topic(name, placed, dict(_INTERNAL_TOPIC_CONFIGS))))
        return self.image.topics[name]

    def delete_topics(self, topics: Sequence[str | UUID]) -> list[TopicImage | BrokerError]:
        """Delete topics by name or id, in one decision; for each its last image, or why it cannot be."""
        results: list[TopicImage | BrokerError] = []
        gone: dict[UUID, MetadataRecord] = {}
        for topic in topics:
            try:
                image = self._deletable(topic)
            except BrokerError as error:
                results.append(error)
                continue
            gone[image.topic_id] = {"type": "topic_removed", "topic_id": image.topic_id.hex}
            results.append(image)
        if gone:
            self._commit(*gone.values())
        return results

    def delete_topic(self, topic: str | UUID) -> TopicImage:
        """Delete one topic by name or id; its last image."""
        (result,) = self.delete_topics([topic])
        if isinstance(result, BrokerError):
            raise result
        return result

    def _deletable(self, topic: str | UUID) -> TopicImage:
        image = self.topic(topic)
        if image.internal:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{image.name} is internal and cannot be deleted")
        if not self.configs.broker_settings()["delete.topic.enable"]:
            raise BrokerError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster")
        return image

    def create_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None, validate_only: bool = False
    ) -> None:
        """Grow a topic to `count` partitions in all; `assignments` are those of the new ones, in order."""
        topic = self.topic(name)
        if topic.internal:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal and cannot grow")
        placed = self._placement.of_more_partitions(topic, count, assignments)
        if not validate_only:
            lists = partition_lists([self._placement.new_partition(replicas) for replicas in placed])
            self._commit({"type": "partitions_added", "topic_id": topic.topic_id.hex, "partitions": lists})

    def topic(self, topic: str | UUID) -> TopicImage:
        """A topic's image by name or id. BrokerError: UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID."""
        if isinstance(topic, UUID):
            image = self.image.topics_by_id.get(topic)
            if image is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic}")
            return image
        image = self.image.topics.get(topic)
        if image is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
        return image

    # --- Configs

    def broker_settings(self, node_id: int) -> Settings:
        """Settings (scope "broker") of a broker, dynamic configs included."""
        return self.configs.broker_settings(str(node_id))

    def topic_settings(self, topic: str, node_id: int | None = None) -> Settings:
        """Settings (scope "topic") of a topic: its own over those of the broker, or over the cluster's without one."""
        return self.configs.topic_settings(self.topic(topic), CLUSTER_WIDE if node_id is None else str(node_id))

    def alter_topic_configs(self, name: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False) -> None:
        """Change a topic's own configs, all or none."""
        topic = self.topic(name)
        altered = alter_topic(topic, self.configs.topic_settings(topic), alterations)
        changed = _changed(topic.configs, altered)
        if changed and not validate_only:
            self._commit({"type": "topic_configs", "topic_id": topic.topic_id.hex, "configs": changed})

    def alter_broker_configs(self, name: str, alterations: Sequence[ConfigAlteration], validate_only: bool = False) -> None:
        """Change the dynamic configs of the broker `name` (a node id as text), or of all (CLUSTER_WIDE), all or none."""
        self.check_broker_name(name)
        current = self.image.broker_configs.get(name, {})
        altered = alter("broker", current, self.configs.broker_settings(name), alterations)
        changed = _changed(current, altered)
        if changed and not validate_only:
            self._commit({"type": "broker_configs", "name": name, "configs": changed})

    def describe_topic_configs(self, name: str, node_id: int) -> list[DescribedConfig]:
        """Every config of a topic, as broker `node_id` has it."""
        return self.configs.describe_topic(self.topic(name).configs, str(node_id))

    def describe_broker_configs(self, name: str) -> list[DescribedConfig]:
        """Every config of a broker; of CLUSTER_WIDE, only those set for the whole cluster (as Kafka does)."""
        self.check_broker_name(name)
        described = self.configs.describe_broker(name)
        if name != CLUSTER_WIDE:
            return described
        return [config for config in described if config.key.name in self.image.broker_configs.get(CLUSTER_WIDE, {})]

    def check_broker_name(self, name: str) -> None:
        """BrokerError(INVALID_REQUEST) unless `name` is a broker's id or CLUSTER_WIDE."""
        if name != CLUSTER_WIDE and not (name.isascii() and name.isdecimal() and int(name) in self.image.brokers):
            known = ", ".join(str(node_id) for node_id in sorted(self.image.brokers))
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"there is no broker {name!r}; there are {known}, and '' for all")

    # --- Inner parts

    def _ensure_cluster_id(self) -> None:
        if not self.image.cluster_id:
            self.image.cluster_id = base64.urlsafe_b64encode(self._new_id().bytes).decode().rstrip("=")

    def _check_new_name(self, name: str, planned: Mapping[str, TopicImage]) -> None:
        check_topic_name(name)
        key = collision_key(name)
        near = planned[key].name if key in planned else self._names_by_collision_key.get(key)
        if near == name:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"a topic {name!r} exists")
        if near is not None:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} collides with the topic {near!r}: '.' and '_' count as the same character"
            )

    def _new_topic(self, name: str, placed: Sequence[tuple[int, ...]], configs: dict[str, str]) -> TopicImage:
        return TopicImage(name, self._new_id(), [self._placement.new_partition(replicas) for replicas in placed], configs)

    def _new_id(self) -> UUID:
        number = 0
        for _ in range(4):
            number = number << 32 | self._dice.randrange(1 << 32)
        return UUID(int=number, version=4)


def _leaders_records(changes: list[list[object]]) -> list[MetadataRecord]:
    return [{"type": "leaders", "changes": changes}] if changes else []


def _changed(current: Mapping[str, str], altered: Mapping[str, str]) -> dict[str, str | None]:
    return {key: altered.get(key) for key in sorted({*current, *altered}) if current.get(key) != altered.get(key)}
