"""A client machine's interface to the pushing of metrics (KIP-714); `telemetry` is loaded when a
broker first offers the API, so that other clients pay nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.wire import ApiKey

if TYPE_CHECKING:
    from fairlead_kafka.core.telemetry import Brokers, Telemetry
    from fairlead_kafka.core.telemetry_report import Report
    from fairlead_kafka.wire.messages import PushTelemetryRequest

LAST_PUSH_MS = 500
"""Ms that closing waits for the answer to the last push, at most."""


class GetInstanceId(NamedTuple):
    """An operation of every client: answered with the id under which its metrics are pushed,
    TimedOut at `deadline_ns`, UsageError where `enable.metrics.push` is false."""

    completion: Completion[UUID]
    deadline_ns: int


class Pushing:
    """The `Telemetry` of one `Network`, which calls `advance`; `enabled`: `enable.metrics.push`.

    The machine sets `report`, which gives the metrics at a monotonic time.
    """

    def __init__(self, brokers: Brokers, rng: Rng, enabled: bool) -> None:
        self.report: Callable[[int], Report] | None = None
        self.enabled = enabled
        self._brokers = brokers
        self._rng = rng
        self._telemetry: Telemetry | None = None
        self._wall_ms = 0

    @property
    def begun(self) -> bool:
        """True once a broker has offered to take metrics, or a caller has asked for the id."""
        return self._telemetry is not None

    @property
    def waits_for_broker(self) -> bool:
        """True if a request is due and no broker could take it."""
        return self._telemetry is not None and self._telemetry.waits_for_broker

    @property
    def wanted(self) -> bool:
        """True if a broker has answered which metrics it wants: it is worth a connection."""
        return self._telemetry is not None and not self._telemetry.idle

    @property
    def parted(self) -> bool:
        """True if no push of metrics is due or under way, nor will be."""
        return self._telemetry is None or self._telemetry.over

    def next_ns(self) -> int:
        """Monotonic time, ns, at which `advance` has something to do if nothing happens before;
        NEVER_NS: not until an event."""
        return NEVER_NS if self._telemetry is None else self._telemetry.next_ns()

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Push metrics, or ask which are wanted, if that is due and a broker takes them."""
        self._wall_ms = wall_ms
        if self._telemetry is not None or (self.enabled and self._brokers.offering(ApiKey.PUSH_TELEMETRY)):
            self._begin().advance(now_ns, wall_ms)

    def part(self, now_ns: int) -> bool:
        """Begin the last push of metrics, for the client closes. True if a broker asked for
        metrics: the push is under way, and `parted` says when it is over."""
        return self._telemetry is not None and self._telemetry.close(now_ns)

    def last_push(self, now_ns: int) -> tuple[int | None, PushTelemetryRequest] | None:
        """The last push, for a caller that sends it over another `Network`, and the node to send it
        to (None: any); None: no broker asked for metrics."""
        return None if self._telemetry is None else self._telemetry.last_push(now_ns, self._wall_ms)

    def end(self, error: Exception) -> None:
        """Push no more metrics; calls that wait for the instance id fail with `error`."""
        self.enabled = False
        if self._telemetry is not None:
            self._telemetry.end(error)

    def await_id(self, deadline_ns: int, done: Callable[[UUID | None, Exception | None], object]) -> None:
        """Call `done(instance id, None)` or `done(None, error)`, as `GetInstanceId` is answered."""
        if self.enabled:
            self._begin().await_id(deadline_ns, done)
        else:
            done(
                None,
                UsageError("client_instance_id: this client pushes no metrics (enable.metrics.push=false)"),
            )

    def check(self) -> None:
        """Raise CheckFailed if the state does not fit the other fields."""
        if self._telemetry is not None:
            self._telemetry.check()

    def _begin(self) -> Telemetry:
        if self._telemetry is None:
            from fairlead_kafka.core.telemetry import Telemetry  # most clusters ask for no metrics

            self._telemetry = Telemetry(self._brokers, self._rng, self.report)
        return self._telemetry
