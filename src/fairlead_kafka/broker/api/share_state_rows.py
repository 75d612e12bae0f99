"""Helpers of the handlers of requests to the share coordinator: each row of an answer is a share
partition, asked for by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import PendingParts, reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareCoordinator, ShareKey, ShareState
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.wire import ApiMessage


class Asked(Protocol):
    """A share partition in a request to the share coordinator."""

    partition: int


P = TypeVar("P", bound=Asked)
P_co = TypeVar("P_co", bound=Asked, covariant=True)


class AskedTopic(Protocol[P_co]):
    """A topic in a request to the share coordinator."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> Sequence[P_co]: ...


class StateRequest(Protocol[P_co]):
    """A request to the share coordinator."""

    @property
    def group_id(self) -> str: ...
    @property
    def topics(self) -> Sequence[AskedTopic[P_co]]: ...


class StateRow(Protocol):
    """A share partition's row in an answer of the share coordinator."""

    error_code: int
    error_message: str | None


R = TypeVar("R", bound=StateRow)


def _nothing_more(_row: StateRow, _state: ShareState) -> None:
    """Leave the row as it is: the answer has no fields for the state."""


@dataclass(frozen=True, slots=True)
class StateApi(Generic[P, R]):
    """One API of the share coordinator. Needs CLUSTER_ACTION on the cluster.

    `response`, `topic`: classes of the answer and of a topic in it. `row` makes a partition's row
    of its number and error. `ask` has the coordinator do its work for a partition, and call its
    last argument with the state; `found` writes that state into the row.
    """

    response: Callable[..., ApiMessage]
    topic: Callable[..., object]
    row: Callable[..., R]
    ask: Callable[[ShareCoordinator, ShareKey, P, Stateful], None]
    found: Callable[[R, ShareState], None] = _nothing_more

    def serve(self, broker: Services, request: StateRequest[P], session: Requester, reply: Reply) -> None:
        """Ask the coordinator for each share partition of a request, and answer when all are
        done."""
        results: list[object] = []
        pending = PendingParts(lambda: reply(self.response(results=results)))
        refused = cluster_refusal(session, AclOperation.CLUSTER_ACTION)
        for topic in request.topics:
            rows: list[R] = []
            results.append(self.topic(topic_id=topic.topic_id, partitions=rows))
            for asked in topic.partitions:
                row = self.row(partition=asked.partition, error_code=ErrorCode.NONE, error_message=None)
                rows.append(row)
                if refused is not None:
                    _refuse(row, refused)
                    continue
                pending.begin()
                try:
                    key = ShareKey(request.group_id, topic.topic_id, asked.partition)
                    self.ask(broker.share_coordinator, key, asked, partial(self._done, pending, row))
                except BrokerError as error:
                    _refuse(row, error)
                    pending.done()
        pending.done()

    def _done(self, pending: PendingParts, row: R, error: int, state: ShareState | None) -> None:
        row.error_code = error
        if state is not None and not error:
            self.found(row, state)
        pending.done()


def _refuse(row: StateRow, error: BrokerError) -> None:
    row.error_code, row.error_message = error.code, reason(error)
