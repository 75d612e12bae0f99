"""A request that waits for its node, then for its answer."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.core.connection import Callback
from fairlead_kafka.core.peers import Peer
from fairlead_kafka.wire import ApiKey, ApiMessage, RequestMessage


@dataclass(slots=True, eq=False)
class Queued:
    """A request of `Network.request`: waiting for its node, then for its answer."""

    api_key: ApiKey
    message: RequestMessage[ApiMessage]
    on_done: Callback
    node_id: int | None
    deadline_ns: int
    timeout_ms: float | None
    version_max: int | None
    fails_fast: bool
    failing: bool = False
    sent_to: Peer | None = None
    done: bool = False

    def finish(self, response: ApiMessage | None, error: Exception | None) -> None:
        """Call `on_done`, unless that was done: an answer may come after the deadline."""
        if not self.done:
            self.done = True
            self.on_done(response, error)
