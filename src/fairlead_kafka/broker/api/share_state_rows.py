"""Helper of the handlers of requests to the share coordinator: each row of an answer is a share
partition, asked for by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import PendingParts, reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.requester import Requester
from fairlead_kafka.broker.share_groups import ShareState


class StateRow(Protocol):
    """A share partition in an answer."""

    error_code: int
    error_message: str | None


class StateRows:
    """Fills the rows of one request; its `PendingParts` answers when the last is filled. Needs
    CLUSTER_ACTION on the cluster."""

    def __init__(self, session: Requester, pending: PendingParts) -> None:
        self._refusal = cluster_refusal(session, AclOperation.CLUSTER_ACTION)
        self._pending = pending

    def fill(
        self,
        row: StateRow,
        ask: Callable[[Callable[[int, ShareState | None], None]], None],
        found: Callable[[ShareState], None] = lambda _state: None,
    ) -> None:
        """Have `ask` called with what it is to call; the state goes to `found`, an error to the
        row."""
        if self._refusal is not None:
            _refuse(row, self._refusal)
            return
        self._pending.begin()

        def done(error: int, state: ShareState | None) -> None:
            row.error_code = error
            if state is not None and not error:
                found(state)
            self._pending.done()

        try:
            ask(done)
        except BrokerError as error:
            _refuse(row, error)
            self._pending.done()


def _refuse(row: StateRow, error: BrokerError) -> None:
    row.error_code, row.error_message = error.code, reason(error)
