"""Clients that misbehave: connections that send nothing, and one that sends requests and never
reads an answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core.effects import Close, Connect, Effect, Hold, Write
from fairlead_kafka.core.events import Connected, Disconnected, Event
from fairlead_kafka.runtime import Handle, VirtualHost
from fairlead_kafka.simulation.reader import Place
from fairlead_kafka.wire import ApiKey, encode_request
from fairlead_kafka.wire.messages import FetchRequest

FETCH_VERSION = 11
AT_ONCE = 20
"""Connections that a `Crowd` opens within a millisecond."""


class Crowd:
    """Opens `connections` connections to one broker and never sends anything on them.

    At most AT_ONCE connections are opened per millisecond: a host accepts no more in one go.
    """

    def __init__(self, host: VirtualHost, address: str, connections: int) -> None:
        self._host = host
        self._name, port = address.rsplit(":", 1)
        self._port = int(port)
        self._wanted = connections
        self._begun = 0
        self._next_ns: int | None = 0
        self.handle: Handle = host.add(self)

    def disperse(self) -> None:
        """Close all connections, and open no more."""
        self._wanted = 0
        self._host.wake(self.handle)

    def receive(self, event: Event) -> None:
        """Ignore every event."""

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived and on what is due; returns the effects for the host.
        `now_ns` is monotonic, `wall_ms` milliseconds since 1970."""
        first, stop = self._begun + 1, min(self._begun + AT_ONCE, self._wanted) + 1
        if not self._wanted:
            self._next_ns = None
            return [Close(number) for number in range(1, first)]
        self._begun = max(self._begun, stop - 1)
        self._next_ns = now_ns + NS_PER_MS if self._begun < self._wanted else None
        return [Connect(number, self._name, self._port) for number in range(first, stop)]

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return self._next_ns


class Deaf:
    """Sends `requests` Fetches of some partitions on one connection, and reads no answer."""

    def __init__(self, host: VirtualHost, address: str, places: Sequence[Place], requests: int) -> None:
        self._host = host
        name, port = address.rsplit(":", 1)
        self._effects: list[Effect] = [Connect(1, name, int(port))]
        self._places = places
        self._requests = requests
        self.left = False
        self.handle: Handle = host.add(self)

    def unread_bytes(self) -> int:
        """Bytes that were sent to this client and that it has not read."""
        end = self.handle.links.get(1)
        return 0 if end is None else sum(map(len, end.kept))

    def leave(self) -> None:
        """Close the connection."""
        self.left = True
        self._effects.append(Close(1))
        self._host.wake(self.handle)

    def receive(self, event: Event) -> None:
        """Send all requests at once when connected."""
        if isinstance(event, Connected):
            self._effects.append(Hold(1, True))
            for number in range(self._requests):
                self._effects.append(
                    Write(
                        1, encode_request(ApiKey.FETCH, FETCH_VERSION, number, "deaf", _fetch(self._places))
                    )
                )
        elif isinstance(event, Disconnected):
            self._effects.clear()

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived and on what is due; returns the effects for the host.
        `now_ns` is monotonic, `wall_ms` milliseconds since 1970."""
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return None


def _fetch(places: Sequence[Place]) -> FetchRequest:
    rows = [FetchRequest.FetchTopic(topic=topic, partitions=[_partition(index)]) for topic, index in places]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 24,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=rows,
        forgotten_topics_data=[],
        rack_id="",
    )


def _partition(index: int) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=index,
        current_leader_epoch=-1,
        fetch_offset=0,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1 << 24,
    )
