"""The brokers' view of the cluster: its image, to read and follow, and a way to change it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, FairleadError, UsageError
from fairlead_kafka.broker.controller.configs import Configs, DescribedConfig, describe_client_metrics
from fairlead_kafka.broker.controller.decisions import Decision, DecisionDone
from fairlead_kafka.broker.controller.fold import MetadataRecord, apply
from fairlead_kafka.broker.controller.image import (
    CLUSTER_WIDE,
    BrokerConfigsChanged,
    Change,
    ClusterImage,
    TopicConfigsChanged,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.timers import TimerHost
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import Connected, Disconnected, Received

_NOT_HOSTED = "This server does not host this topic-partition"
"""How Kafka begins what it says of a topic that is not there; tools look for it."""


R = TypeVar("R")


class Attached(TimerHost, Protocol):
    """The broker that has the view."""

    node_id: int

    def emit(self, effect: Effect) -> None:
        """Ask the host for an effect."""

    def bind(self, function: Callable[..., None]) -> Callable[..., None]:
        """Bind `function` to the owner of the work at hand, to be called later in its name."""


class ClusterView(ABC):
    """The image of the cluster, and what follows from it; the same for the controller itself and
    for a broker's copy far from it.

    Reading is at once. Whatever changes metadata goes through `decide`.
    """

    def __init__(self, settings: Settings) -> None:
        self.image = ClusterImage()
        self.configs = Configs(self.image, settings)
        self._listeners: list[Callable[[Change], None]] = []

    @abstractmethod
    def decide(self, decision: Decision[R], done: DecisionDone[R]) -> None:
        """Have a decision (`decisions`) made: done(result, error), within this call or later, once
        the image has it."""

    def attach(self, broker: Attached, joined: Callable[[FairleadError | None], None]) -> None:
        """Note that a broker begins: joined(None) is called each time the image is up to date,
        joined(error) if it never will be. Where the controller is in the broker's thread it always
        is."""
        joined(None)

    def handle(self, event: Connected | Disconnected | Received) -> None:
        """Take an event of a connection to the controller, where there is one. UsageError where
        not."""
        raise UsageError(f"no connection leads to this controller, yet this came: {event}")

    def cut(self, cut: bool) -> None:
        """Let nothing through between broker and controller, or let it through again. UsageError
        where nothing lies between them."""
        if cut:
            raise UsageError(
                "this broker and the controller live in one thread: cut it off from other brokers, or use "
                "processes=True"
            )

    @abstractmethod
    def detach(self, node_id: int) -> None:
        """Note that a broker takes no part any more, and may not be able to say so; nothing is
        decided for it after that."""

    def tick(self, now_ns: int) -> None:  # noqa: B027  (a copy has nothing to do)
        """Do what is due at `now_ns`; only the controller itself has anything to do."""

    def deadline_ns(self) -> int | None:
        """When `tick` is to be called next; None: there is no need."""
        return None

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Have `listener` called after every change, in order; the function returned ends it."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def apply(self, records: Sequence[MetadataRecord]) -> None:
        """Write the records of one decision into the image, then tell the listeners."""
        changes = [apply(self.image, record) for record in records]
        for change in changes:
            self.note(change)
        self.notify(changes)

    def notify(self, changes: Sequence[Change | None]) -> None:
        """Tell the listeners of changes that the image has."""
        for change in changes:
            if change is not None:
                for listener in list(self._listeners):
                    listener(change)

    def note(self, change: Change | None) -> None:
        """Keep what is derived from the image up to date."""
        if isinstance(change, TopicDeleted | TopicConfigsChanged):
            self.configs.forget(change.topic.name)
        elif isinstance(change, BrokerConfigsChanged):
            self.configs.forget()

    # --- Reading

    def topic(self, topic: str | UUID) -> TopicImage:
        """A topic's image by name or id. BrokerError: UNKNOWN_TOPIC_OR_PARTITION or
        UNKNOWN_TOPIC_ID."""
        if isinstance(topic, UUID):
            image = self.image.topics_by_id.get(topic)
            if image is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic}")
            return image
        image = self.image.topics.get(topic)
        if image is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{_NOT_HOSTED}: there is no topic {topic!r}"
            )
        return image

    def broker_settings(self, node_id: int) -> Settings:
        """Settings (scope "broker") of a broker, dynamic configs included."""
        return self.configs.broker_settings(str(node_id))

    def topic_settings(self, topic: str, node_id: int | None = None) -> Settings:
        """Settings (scope "topic") of a topic: its own over those of the broker, or over the
        cluster's without one."""
        return self.configs.topic_settings(
            self.topic(topic), CLUSTER_WIDE if node_id is None else str(node_id)
        )

    def describe_topic_configs(self, name: str, node_id: int) -> list[DescribedConfig]:
        """Every config of a topic, as broker `node_id` has it."""
        return self.configs.describe_topic(self.topic(name).configs, str(node_id))

    def describe_broker_configs(
        self, name: str, given: Mapping[str, str] | None = None
    ) -> list[DescribedConfig]:
        """Every config of a broker; of CLUSTER_WIDE, only those set for the whole cluster (as Kafka
        does). `given`: values that the broker itself knows."""
        self.check_broker_name(name)
        described = self.configs.describe_broker(name, given)
        if name != CLUSTER_WIDE:
            return described
        return [
            config
            for config in described
            if config.key.name in self.image.broker_configs.get(CLUSTER_WIDE, {})
        ]

    def describe_client_metrics(self, name: str) -> list[DescribedConfig]:
        """Every config of a subscription to clients' metrics; of one that is not there, the
        defaults."""
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(self.image.client_metrics.get(name, {}))

    def group_settings(self, group_id: str) -> Settings:
        """Settings (scope "group") of a group."""
        return self.configs.group_settings(group_id)

    def describe_group_configs(self, group_id: str) -> list[DescribedConfig]:
        """Every config of a group, whether it is there or not."""
        return self.configs.describe_group(group_id)

    def check_broker_name(self, name: str) -> None:
        """Raise BrokerError(INVALID_REQUEST) unless `name` is a broker's id or CLUSTER_WIDE."""
        known = [
            str(node_id) for node_id in sorted(self.image.brokers)
        ]  # compared as texts: thousands of digits make no int in Python
        if name != CLUSTER_WIDE and name not in known:
            raise BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"there is no broker {name!r}; there are {', '.join(known)}, and '' for all",
            )
