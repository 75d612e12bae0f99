"""The end of a consumer's fetch sessions (KIP-227): brokers keep a thousand, and would keep those
of readers that are gone.

A session is closed by a last fetch. The connections that were read over are held by fetches that
wait for data, up to `fetch.max.wait.ms`; so that closing does not wait for them, the last fetches
go over connections of their own. It is a courtesy: a broker that does not answer within CLOSE_MS is
left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.fetch_session import FINAL_EPOCH
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.network import Network
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import FetchRequest, FetchResponse

CLOSE_MS = 1_000


class Parting:
    """Closes `sessions` (node id → session id) over `network`, which is closed with the last of
    them; then `done` is called."""

    def __init__(
        self, network: Network, sessions: Mapping[int, int], now_ns: int, done: Callable[[], None]
    ) -> None:
        self._network = network
        self._done = done
        self._open = len(sessions)
        self._over = False
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
            deadline_ns = now_ns + ms_to_ns(CLOSE_MS)
            network.request(
                ApiKey.FETCH, last, self._answered, node_id=node_id, deadline_ns=deadline_ns, fails_fast=True
            )

    def _answered(self, _response: FetchResponse | None, _error: Exception | None) -> None:
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
