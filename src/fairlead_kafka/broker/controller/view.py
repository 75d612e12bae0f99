"""The brokers' view of the cluster: its image, which they read and follow, and `decide`, by which
they change it."""

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
    """The parts of a broker that its view of the cluster uses."""

    node_id: int

    def emit(self, effect: Effect) -> None:
        """Ask the host for an effect."""

    def bind(self, function: Callable[..., None]) -> Callable[..., None]:
        """Bind `function` to the owner of the work at hand, to be called later in its name."""


class ClusterView(ABC):
    """A broker's view of the cluster: its image, and settings that follow from it. The controller
    itself is one, and so is a copy in another process. Reads take no time; metadata are changed by
    `decide` alone."""

    def __init__(self, settings: Settings) -> None:
        self.image = ClusterImage()
        self.configs = Configs(self.image, settings)
        self._listeners: list[Callable[[Change], None]] = []
        self.now_ns = 0
        """Monotonic time, ns, of the step of the machine that uses it."""

    @abstractmethod
    def decide(self, decision: Decision[R], done: DecisionDone[R]) -> None:
        """Have a decision (`decisions`) made: done(result, error), within this call or later, once
        the image has it."""

    def attach(self, broker: Attached, joined: Callable[[FairleadError | None], None]) -> None:
        """Note that a broker begins: joined(None) is called each time the image is up to date,
        joined(error) if it never will be. If the controller is in the broker's thread, it always
        is."""
        joined(None)

    def handle(self, event: Connected | Disconnected | Received) -> None:
        """Take an event of a connection to the controller, if there is one; UsageError if not."""
        raise UsageError(f"no connection leads to this controller, yet this came: {event}")

    def cut(self, cut: bool) -> None:
        """Let nothing through between broker and controller, or let it through again. UsageError if
        there is no network between them."""
        if cut:
            raise UsageError(
                "this broker and the controller live in one thread: cut it off from other brokers, or use "
                "processes=True"
            )

    @abstractmethod
    def detach(self, node_id: int) -> None:
        """Note that a broker has ended, perhaps without saying so; its later decisions are
        ignored."""

    @property
    def errors(self) -> int:
        """Number of exceptions that the controller survived in this thread; a copy has none."""
        return 0

    def tick(self, now_ns: int) -> None:  # noqa: B027  (a copy has nothing to do)
        """Do the work that is due at `now_ns` (monotonic); only the controller itself has any."""

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which `tick` is to be called next; None: there is no need."""
        return None

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Have `listener` called after every change, in order; the function that is returned ends
        that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def apply(self, records: Sequence[MetadataRecord]) -> None:
        """Apply the records of one decision to the image, then call the listeners."""
        changes = [apply(self.image, record) for record in records]
        for change in changes:
            self.note(change)
        self.notify(changes)

    def notify(self, changes: Sequence[Change | None]) -> None:
        """Call the listeners with changes that the image has already."""
        for change in changes:
            if change is not None:
                for listener in list(self._listeners):
                    listener(change)

    def note(self, change: Change | None) -> None:
        """Update the state that is derived from the image, after `change`."""
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
        """Settings (scope "topic") of a topic: its own, else those of the broker `node_id`, or of
        the cluster without one."""
        return self.configs.topic_settings(
            self.topic(topic), CLUSTER_WIDE if node_id is None else str(node_id)
        )

    def describe_topic_configs(self, name: str, node_id: int) -> list[DescribedConfig]:
        """Every config of a topic, as broker `node_id` has it."""
        return self.configs.describe_topic(self.topic(name).configs, str(node_id))

    def describe_broker_configs(
        self, name: str, given: Mapping[str, str] | None = None
    ) -> list[DescribedConfig]:
        """Every config of a broker; for CLUSTER_WIDE only those set for the whole cluster, as in
        Kafka. `given`: values that the broker itself knows."""
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
        """Every config of a subscription to clients' metrics; of one that does not exist, the
        defaults. BrokerError if the name is empty."""
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return describe_client_metrics(self.image.client_metrics.get(name, {}))

    def group_settings(self, group_id: str) -> Settings:
        """Settings (scope "group") of a group."""
        return self.configs.group_settings(group_id)

    def describe_group_configs(self, group_id: str) -> list[DescribedConfig]:
        """Every config of a group, whether the group exists or not."""
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
