"""A request that creates or deletes partitions, and the controller_mutation_rate of its client
(KIP-599)."""

from __future__ import annotations

from typing import Any, Protocol

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.controller import ClusterView, DecisionDone, Spender
from fairlead_kafka.broker.quotas.quotas import Quotas


class SpendingHost(Protocol):
    """The part of the broker that a charge needs."""

    now_ns: int
    controller: ClusterView
    quotas: Quotas


class Charged(Protocol):
    """The session whose request it is."""

    principal: Principal
    client_id: str | None


class Spending:
    """Charge of one request against controller_mutation_rate. Decisions are made in the name of
    `spender`; `throttle_ms` says in the end how long its client must be still.

    `strict`: partitions beyond the quota are refused (THROTTLING_QUOTA_EXCEEDED); else they are
    made, and the client is throttled.
    """

    def __init__(self, broker: SpendingHost, session: Charged, *, strict: bool) -> None:
        self.spender: Spender | None = None
        """The client that decisions are charged to; None: no client has such a quota."""
        self.throttle_ms = 0
        if broker.quotas.limits_mutations:
            self.spender = Spender(session.principal.name, session.client_id, strict)
            broker.controller.tick(broker.now_ns)  # the time, where the controller has no step of its own

    def told(self, done: DecisionDone) -> DecisionDone:
        """`done` for a decision in the name of `spender`: told what it would be without one."""
        if self.spender is None:
            return done

        def spent(result: Any, error: BrokerError | None) -> None:
            if error is not None:
                done(None, error)
                return
            outcome, throttle_ms = result
            self.throttle_ms = max(self.throttle_ms, throttle_ms)
            if isinstance(outcome, BrokerError):
                done(None, outcome)
            else:
                done(outcome, None)

        return spent
