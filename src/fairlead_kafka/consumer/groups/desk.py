"""Group operations of a consumer machine, submitted by its client class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.groups.member import Assignee, Member
from fairlead_kafka.consumer.groups.operations import (
    Acknowledge,
    Commit,
    FindCommitted,
    GetGroup,
    GetPositions,
    GetSubscription,
    Subscribe,
    Unsubscribe,
)
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.core.handlers import Handlers

T = TypeVar("T")
NO_GROUP = "this consumer has no group; set group.id"


class DeskHost(Assignee, Protocol):
    """The parts of the consumer machine that group operations use."""

    def answer(
        self, completion: Completion[T], value: T | None = None, error: Exception | None = None
    ) -> None:
        """Complete an operation with its value or its error."""

    def generations(self) -> dict[TopicPartition, int]:
        """The generation of each partition assigned."""

    def positions(self) -> Mapping[TopicPartition, Position]:
        """The position of each partition assigned that has one."""


class GroupDesk:
    """Serves the operations of `groups.operations`. Without a `membership` (no `group.id`) each
    fails with UsageError."""

    def __init__(self, host: DeskHost, membership: Member | None) -> None:
        self._host = host
        self._membership = membership
        self.handlers = Handlers()
        """The handler of each operation."""
        self.handlers.add(Subscribe, self._subscribe)
        self.handlers.add(Unsubscribe, self._unsubscribe)
        self.handlers.add(Acknowledge, self._acknowledge)
        self.handlers.add(Commit, self._commit)
        self.handlers.add(FindCommitted, self._find_committed)
        self.handlers.add(GetPositions, lambda operation: host.answer(operation.completion, host.positions()))
        self.handlers.add(
            GetGroup, lambda operation: host.answer(operation.completion, self._member().metadata())
        )
        self.handlers.add(
            GetSubscription,
            lambda operation: host.answer(
                operation.completion, () if membership is None else membership.topics()
            ),
        )

    def _member(self) -> Member:
        if self._membership is None:
            raise UsageError(NO_GROUP)
        return self._membership

    def _subscribe(self, operation: Subscribe) -> None:
        member = self._member()
        if not member.subscribed and self._host.assigned():
            raise UsageError("partitions are assigned by hand; assign([]) first, then subscribe")
        member.subscribe(operation.topics, operation.pattern)
        self._host.answer(operation.completion)

    def _unsubscribe(self, operation: Unsubscribe) -> None:
        if self._membership is None or not self._membership.subscribed:
            self._host.adopt([])
            self._host.answer(operation.completion)
        else:
            self._membership.leave(lambda: self._host.answer(operation.completion))

    def _acknowledge(self, operation: Acknowledge) -> None:
        stands = self._member().acknowledge(operation.number)
        self._host.answer(operation.completion, (stands, self._host.generations()))

    def _commit(self, operation: Commit) -> None:
        self._member().commit(
            operation.offsets,
            operation.deadline_ns,
            lambda value, error: self._host.answer(operation.completion, value, error),
        )

    def _find_committed(self, operation: FindCommitted) -> None:
        self._member().committed(
            operation.partitions,
            operation.deadline_ns,
            lambda value, error: self._host.answer(operation.completion, value, error),
        )
