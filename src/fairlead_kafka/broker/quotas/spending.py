"""The charge of a request that creates or deletes partitions to its client's
controller_mutation_rate (KIP-599)."""

from __future__ import annotations

from typing import Protocol, TypeVar

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.controller import Charged, ClusterView, Decision, DecisionDone, Spender
from fairlead_kafka.broker.quotas.quotas import Quotas

R = TypeVar("R")


class SpendingHost(Protocol):
    """The parts of a broker that the charge of a request uses."""

    now_ns: int
    controller: ClusterView
    quotas: Quotas


class Client(Protocol):
    """The session of the request that is charged."""

    principal: Principal
    client_id: str | None


class Spending:
    """Charge of one request against controller_mutation_rate. Decisions are charged to the
    request's client; `throttle_ms` says afterwards for how many milliseconds it is throttled.
    `strict`: partitions beyond the quota are refused (THROTTLING_QUOTA_EXCEEDED); else they are
    created, and the client is throttled."""

    def __init__(self, broker: SpendingHost, session: Client, *, strict: bool) -> None:
        self.throttle_ms = 0
        self._controller = broker.controller
        self._spender: Spender | None = None
        """The client that decisions are charged to; None: no client has such a quota."""
        if broker.quotas.limits_mutations:
            self._spender = Spender(session.principal.name, session.client_id, strict)
            broker.controller.tick(broker.now_ns)  # the time, where the controller has no step of its own

    def decide(self, decision: Decision[R], done: DecisionDone[R]) -> None:
        """Have the controller decide, in the name of the client: done(result, error) of
        `decision`."""
        if self._spender is None:
            self._controller.decide(decision, done)
            return

        def spent(result: tuple[R | BrokerError, int] | None, error: BrokerError | None) -> None:
            if result is None:
                done(None, error)
                return
            outcome, throttle_ms = result
            self.throttle_ms = max(self.throttle_ms, throttle_ms)
            if isinstance(outcome, BrokerError):
                done(None, outcome)
            else:
                done(outcome, None)

        self._controller.decide(Charged(decision, self._spender), spent)
