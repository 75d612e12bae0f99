"""Creation, growth and deletion of topics: a request is checked and placed against the image, and
becomes one decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.configs import check_topic_configs
from fairlead_kafka.broker.controller.decisions import NewTopic
from fairlead_kafka.broker.controller.fold import MetadataRecord, partitions_added_record, topic_record
from fairlead_kafka.broker.controller.image import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    Change,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.controller.journal import Journal
from fairlead_kafka.broker.controller.limits import Limits
from fairlead_kafka.broker.controller.mutations import Mutations
from fairlead_kafka.broker.controller.names import check_topic_name, collision_key
from fairlead_kafka.broker.controller.placement import Placement, Replicas, check_batch_size

_INTERNAL_TOPIC_CONFIGS = {"cleanup.policy": "compact", "retention.ms": "-1", "retention.bytes": "-1"}
_SHARE_STATE_CONFIGS = _INTERNAL_TOPIC_CONFIGS | {"cleanup.policy": "delete"}
"""All changes of a share partition's state since its snapshot have one key, and each counts: none
may be compacted away. The share coordinator deletes what it does not need (KIP-932)."""
_MIN_ISR_KEYS = {
    TRANSACTIONS_TOPIC: "transaction.state.log.min.isr",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.min.isr",
}
_INTERNAL_TOPIC_KEYS = {
    OFFSETS_TOPIC: "offsets.topic.",
    TRANSACTIONS_TOPIC: "transaction.state.log.",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.",
}
"""The prefix of the broker configs that say what an internal topic is like."""


class Topics:
    """Decides on creating, growing and deleting topics. All methods raise BrokerError with Kafka's
    code, and change nothing then."""

    def __init__(self, journal: Journal, limits: Limits, mutations: Mutations) -> None:
        self._journal = journal
        self._image = journal.image
        self._limits = limits
        self._mutations = mutations
        self._placement = Placement(journal.image, limits)
        self._names_by_collision_key: dict[str, str] = {}

    @property
    def placement(self) -> Placement:
        """The placement of new partitions on brokers."""
        return self._placement

    def note(self, change: Change | None) -> None:
        """Update names and placement after a change of the image."""
        if isinstance(change, TopicCreated):
            self._names_by_collision_key[collision_key(change.topic.name)] = change.topic.name
            self._placement.placed += len(change.topic.partitions)
        elif isinstance(change, PartitionsAdded):
            self._placement.placed += len(change.topic.partitions) - change.first
        elif isinstance(change, TopicDeleted):
            self._names_by_collision_key.pop(collision_key(change.topic.name), None)

    # --- Coming

    def create(self, wanted: Sequence[NewTopic], validate_only: bool) -> list[TopicImage | BrokerError]:
        """Create topics, in one decision; for each its image, or why it cannot be. With
        `validate_only`, what they would be."""
        default = self._journal.configs.broker_settings().integer("num.partitions")
        check_batch_size(
            len(new.assignments) if new.assignments else default if new.partitions == -1 else new.partitions
            for new in wanted
        )
        results: list[TopicImage | BrokerError] = []
        planned: dict[str, TopicImage] = {}
        start = self._placement.placed
        try:
            for new in wanted:
                try:
                    topic = self._planned(new, planned)
                except BrokerError as error:
                    results.append(error)
                    continue
                planned[collision_key(topic.name)] = topic
                results.append(topic)
        finally:
            self._placement.placed = start
            self._limits.planned_all()
        if planned and not validate_only:
            self._journal.commit([topic_record(topic) for topic in planned.values()])
            return [
                result if isinstance(result, BrokerError) else self._image.topics[result.name]
                for result in results
            ]
        return results

    def _planned(self, new: NewTopic, planned: Mapping[str, TopicImage]) -> TopicImage:
        if new.name in INTERNAL_TOPICS:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{new.name} is internal: brokers create it when they need it",
            )
        if new.name == METADATA_TOPIC:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {new.name} is prohibited."
            )
        self._check_new_name(new.name, planned)
        own = check_topic_configs(new.configs or {})
        defaults = self._journal.configs.broker_settings()
        placed = self._placement.of_new_topic(
            new.name, new.partitions, new.replication_factor, new.assignments, defaults
        )
        self._mutations.spend(len(placed))
        self._limits.plan(placed)
        self._placement.placed += len(placed)
        return self._new_topic(new.name, placed, own)

    def create_internal(self, name: str) -> TopicImage:
        """The image of one of INTERNAL_TOPICS, created if it does not exist.

        BrokerError: INVALID_TOPIC_EXCEPTION for another name; COORDINATOR_NOT_AVAILABLE while
        brokers that are to have its replicas are starting.
        """
        prefix = _INTERNAL_TOPIC_KEYS.get(name)
        if prefix is None:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is not an internal topic")
        existing = self._image.topics.get(name)
        if existing is not None:
            return existing
        settings = self._journal.configs.broker_settings()
        factor_key = prefix + "replication.factor"
        factor = settings.integer(factor_key)
        if factor_key not in settings.given:
            if self._journal.awaited and len(self._image.eligible()) < factor:
                raise BrokerError(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"{name} is for brokers {sorted(self._journal.awaited)} too, which are starting: ask "
                    "again in a moment",
                )
            factor = max(1, min(factor, len(self._image.eligible())))
        configs = dict(_SHARE_STATE_CONFIGS if name == SHARE_STATE_TOPIC else _INTERNAL_TOPIC_CONFIGS)
        if name in _MIN_ISR_KEYS:
            configs["min.insync.replicas"] = str(min(factor, _min_isr(settings, _MIN_ISR_KEYS[name], factor)))
            # Nobody else has it: an epoch must not be given twice after a power cut.
            if factor == 1 and name == TRANSACTIONS_TOPIC:
                configs["flush.messages"] = "1"
        placed = self._placement.of_internal_topic(settings.integer(prefix + "num.partitions"), factor)
        self._journal.commit([topic_record(self._new_topic(name, placed, configs))])
        return self._image.topics[name]

    # --- Growing

    def grow(
        self, name: str, count: int, assignments: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> None:
        """Grow a topic to `count` partitions; `assignments` are those of the new ones, in order.
        BrokerError for an internal topic, or if the number or the assignments are invalid."""
        topic = self._journal.view.topic(name)
        if topic.internal:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal and cannot grow")
        placed = self._placement.of_more_partitions(topic, count, assignments)
        self._mutations.spend(len(placed))
        if not validate_only:
            self._journal.commit([partitions_added_record(topic, self._placement.new_partitions(placed))])

    # --- Going

    def delete(self, topics: Sequence[str | UUID]) -> list[TopicImage | BrokerError]:
        """Delete topics by name or id, in one decision; for each its last image, or why it cannot
        be."""
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
            self._journal.commit(gone.values())
        return results

    def _deletable(self, topic: str | UUID) -> TopicImage:
        image = self._journal.view.topic(topic)
        if image.internal:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{image.name} is internal and cannot be deleted"
            )
        if not self._journal.configs.broker_settings()["delete.topic.enable"]:
            raise BrokerError(
                ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false on this cluster"
            )
        self._mutations.spend(len(image.partitions))
        return image

    # --- Inner parts

    def _check_new_name(self, name: str, planned: Mapping[str, TopicImage]) -> None:
        check_topic_name(name)
        key = collision_key(name)
        near = planned[key].name if key in planned else self._names_by_collision_key.get(key)
        if near == name:
            raise BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
        if near is not None:
            raise BrokerError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{name!r} collides with the topic {near!r}: '.' and '_' count as the same character",
            )

    def _new_topic(self, name: str, placed: Sequence[Replicas], configs: dict[str, str]) -> TopicImage:
        return TopicImage(name, self._journal.new_id(), self._placement.new_partitions(placed), configs)


def _min_isr(settings: Settings, key: str, factor: int) -> int:
    """`min.insync.replicas` of an internal topic with `factor` replicas: config `key` if it is set;
    else at most one less than it has replicas, so that a cluster too small for Kafka's 2 of 3 can
    lose a broker all the same."""
    wanted = settings.integer(key)
    return wanted if key in settings.given else min(wanted, max(1, factor - 1))
