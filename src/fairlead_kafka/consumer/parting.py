"""The last requests of a consumer that closes: the end of its fetch sessions (KIP-227), of which
brokers keep a thousand, so that sessions of closed consumers would take the place of others; and
its last metrics.

A session is closed by a last fetch. The connections used for fetching are occupied by fetches that
wait for data, up to `fetch.max.wait.ms`; so that closing does not wait for them, the last fetches
use connections of their own. They are optional: a broker that does not answer within CLOSE_MS is
not waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.fetch_session import FINAL_EPOCH
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.pushing import LAST_PUSH_MS
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestMessage
from fairlead_kafka.wire.messages import FetchRequest, PushTelemetryRequest

CLOSE_MS = 1_000


class Parting:
    """The last requests of a consumer that closes, over `network`. After the last answer the
    network is closed and `done` called."""

    def __init__(self, network: Network, now_ns: int, done: Callable[[], None]) -> None:
        self._network = network
        self._done = done
        self._open = 0
        self._over = False
        self._now_ns = now_ns

    def end_sessions(self, sessions: Mapping[int, int]) -> None:
        """Close `sessions`: node id → session id."""
        for node_id, session_id in sessions.items():
            last = FetchRequest(
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=0,
                isolation_level=0,
                session_id=session_id,
                session_epoch=FINAL_EPOCH,
                topics=[],
                forgotten_topics_data=[],
                rack_id="",
            )
            self._ask(ApiKey.FETCH, last, node_id, CLOSE_MS)

    def push(self, node_id: int | None, last: PushTelemetryRequest) -> None:
        """Push metrics for the last time (KIP-714): to the node `node_id`, or, if that is None or
        gone, to any."""
        known = node_id if node_id in self._network.metadata.nodes else None
        self._ask(ApiKey.PUSH_TELEMETRY, last, known, LAST_PUSH_MS)

    def _ask(self, api_key: ApiKey, last: RequestMessage[R], node_id: int | None, within_ms: int) -> None:
        self._open += 1
        deadline_ns = self._now_ns + ms_to_ns(within_ms)
        self._network.request(
            api_key, last, self._answered, node_id=node_id, deadline_ns=deadline_ns, fails_fast=True
        )

    def _answered(self, _response: ApiMessage | None, _error: Exception | None) -> None:
        self._open -= 1

    def handle(self, event: ConnectionEvent, now_ns: int, wall_ms: int) -> None:
        """Handle an event of a connection; those of other parts' connections are ignored."""
        self._network.handle(event, now_ns, wall_ms)

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers and time-outs; when all sessions are closed, close the network."""
        if self._open:
            self._network.advance(now_ns, wall_ms)
        if not self._open and not self._over:
            self._over = True
            self._network.close()
            self._done()

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return self._network.deadline_ns()

    def take_effects(self) -> list[Effect]:
        """Take the effects of this step, which the host carries out."""
        return self._network.take_effects()
