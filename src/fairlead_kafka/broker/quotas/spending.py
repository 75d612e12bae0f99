"""A request that creates or deletes partitions, and the controller_mutation_rate of its client
(KIP-599)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import DecisionDone, Spender

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session


class Spending:
    """Charge of one request against controller_mutation_rate. Decisions are made in the name of
    `spender`; `throttle_ms` says in the end how long its client must be still.

    `strict`: partitions beyond the quota are refused (THROTTLING_QUOTA_EXCEEDED); else they are
    made, and the client is throttled.
    """

    def __init__(self, broker: Broker, session: Session, *, strict: bool) -> None:
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
