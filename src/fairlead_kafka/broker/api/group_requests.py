"""Helpers that the handlers of consumer groups' requests (KIP-848) and of share groups' (KIP-932)
share: both have the same fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import NO_OPERATIONS, demand, operations, permitted, refusal
from fairlead_kafka.broker.consumer_groups import HeartbeatResult
from fairlead_kafka.broker.requester import Requester
from fairlead_kafka.broker.services import Services

R = TypeVar("R")
T = TypeVar("T")


def demand_topics(session: Requester, names: Iterable[str]) -> None:
    """Raise BrokerError TOPIC_AUTHORIZATION_FAILED, naming the first topic that may not be
    described."""
    wanted = list(names)
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, wanted)
    for name in wanted:
        if name not in seen:
            raise refusal(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)


# --- Heartbeats


@dataclass(frozen=True, slots=True)
class HeartbeatAnswers(Generic[R]):
    """Makes the answers to one kind of heartbeat out of its message's classes. `interval`: the name
    of the group's config that has the milliseconds until the next heartbeat."""

    response: Callable[..., R]
    assignment: Callable[..., object]
    partitions: Callable[..., object]
    interval: str

    def served(self, broker: Services, group_id: str, result: HeartbeatResult) -> R:
        """The answer without an error to a member that stays or, with a negative epoch, leaves."""
        assignment = None
        if result.assignment is not None:
            rows = [
                self.partitions(topic_id=topic, partitions=sorted(result.assignment[topic]))
                for topic in sorted(result.assignment)
            ]
            assignment = self.assignment(topic_partitions=rows)
        leaving = result.member_epoch < 0
        return self.response(
            throttle_time_ms=0,
            error_code=ErrorCode.NONE,
            error_message=None,
            member_id=result.member_id,
            member_epoch=result.member_epoch,
            heartbeat_interval_ms=0 if leaving else broker.controller.group_settings(group_id)[self.interval],
            assignment=assignment,
        )

    def refused(self, code: int, text: str | None = None) -> R:
        """The answer with an error code, and a text if there is one."""
        return self.response(
            throttle_time_ms=0,
            error_code=code,
            error_message=text,
            member_id=None,
            member_epoch=0,
            heartbeat_interval_ms=0,
            assignment=None,
        )


# --- Descriptions


class TopicRow(Protocol):
    """Partitions of a topic, as a row of an answer that describes a group."""

    topic_name: str


class DescribeRequest(Protocol):
    """A request to describe consumer groups or share groups."""

    group_ids: list[str]
    include_authorized_operations: bool


class Described(Protocol):
    """A group's row in an answer to a request for descriptions."""

    error_code: int
    group_id: str
    authorized_operations: int


G = TypeVar("G", bound=Described)


@dataclass(frozen=True, slots=True)
class Descriptions(Generic[G]):
    """The answers to one kind of request for descriptions.

    `check` raises BrokerError if groups of this kind are switched off. `describe` gives a group's
    row, and all rows of topics in it; it raises BrokerError if there is no such group. `group` is
    the row's class.
    """

    check: Callable[[Services], None]
    describe: Callable[[Services, str], tuple[G, Iterable[TopicRow]]]
    group: Callable[..., G]

    def answered(self, broker: Services, session: Requester, request: DescribeRequest) -> list[G]:
        """A row for each group. The session needs the right to DESCRIBE on it, and on all topics
        in its row; without, and for a BrokerError, the row is an error."""
        rows = [self._row(broker, session, group_id) for group_id in dict.fromkeys(request.group_ids)]
        if request.include_authorized_operations:
            for row in rows:
                if not row.error_code:
                    row.authorized_operations = operations(session, AclResourceType.GROUP, row.group_id)
        return rows

    def _row(self, broker: Services, session: Requester, group_id: str) -> G:
        try:
            self.check(broker)
            demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)
            row, topics = self.describe(broker, group_id)
            names = {topic.topic_name for topic in topics}
            seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
            if any(name not in seen for name in names):
                raise BrokerError(
                    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    "The group has described topic(s) that the client is not authorized to describe.",
                )
        except BrokerError as error:
            return self.group(
                error_code=error.code,
                error_message=reason(error),
                group_id=group_id,
                group_state="",
                group_epoch=0,
                assignment_epoch=0,
                assignor_name="",
                members=[],
                authorized_operations=NO_OPERATIONS,
            )
        return row


def topic_rows(
    broker: Services, partitions: Mapping[UUID, Iterable[int]], row_class: Callable[..., T]
) -> list[T]:
    """A row for each topic of `partitions` that still exists, in the order of the topics' ids."""
    by_id = broker.controller.image.topics_by_id
    return [
        row_class(topic_id=topic, topic_name=by_id[topic].name, partitions=sorted(partitions[topic]))
        for topic in sorted(partitions)
        if topic in by_id
    ]
