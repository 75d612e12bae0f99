"""Group operations of a consumer machine, submitted by its client class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.groups.member import Assignee, Member
from fairlead_kafka.consumer.groups.operations import (
    Acknowledge,
    Commit,
    FindCommitted,
    Subscribe,
    TellGroup,
    TellPositions,
    TellSubscription,
    Unsubscribe,
)
from fairlead_kafka.core.group_offsets import Position

NO_GROUP = "this consumer has no group; set group.id"


class DeskHost(Assignee, Protocol):
    """The machine whose group operations are served."""

    def answer(self, operation: Any, value: Any = None, error: Exception | None = None) -> None:
        """Resolve an operation."""

    def generations(self) -> dict[TopicPartition, int]:
        """The generation of each partition assigned."""

    def positions(self) -> Mapping[TopicPartition, Position]:
        """The position of each partition assigned that has one."""


class GroupDesk:
    """Serves the operations of `groups.operations`; without a `membership` (no `group.id`) by
    UsageError."""

    def __init__(self, host: DeskHost, membership: Member | None) -> None:
        self._host = host
        self._membership = membership
        self.serve: dict[type, Callable[[Any], None]] = {
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Acknowledge: self._acknowledge,
            Commit: self._commit,
            FindCommitted: self._find_committed,
            TellPositions: lambda operation: host.answer(operation, host.positions()),
            TellGroup: lambda operation: host.answer(operation, self._member().metadata()),
            TellSubscription: lambda operation: host.answer(
                operation, () if membership is None else membership.topics()
            ),
        }

    def _member(self) -> Member:
        if self._membership is None:
            raise UsageError(NO_GROUP)
        return self._membership

    def _subscribe(self, operation: Subscribe) -> None:
        member = self._member()
        if not member.subscribed and self._host.assigned():
            raise UsageError("partitions are assigned by hand; assign([]) first, then subscribe")
        member.subscribe(operation.topics, operation.pattern)
        self._host.answer(operation)

    def _unsubscribe(self, operation: Unsubscribe) -> None:
        if self._membership is None or not self._membership.subscribed:
            self._host.answer(operation)
        else:
            self._membership.leave(lambda: self._host.answer(operation))

    def _acknowledge(self, operation: Acknowledge) -> None:
        stands = self._member().acknowledge(operation.number)
        self._host.answer(operation, (stands, self._host.generations()))

    def _commit(self, operation: Commit) -> None:
        self._member().commit(
            operation.offsets,
            operation.deadline_ns,
            lambda value, error: self._host.answer(operation, value, error),
        )

    def _find_committed(self, operation: FindCommitted) -> None:
        self._member().committed(
            operation.partitions,
            operation.deadline_ns,
            lambda value, error: self._host.answer(operation, value, error),
        )
