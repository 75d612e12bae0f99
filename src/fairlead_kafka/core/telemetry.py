"""Pushes a client's metrics to the cluster if the cluster asks for them (KIP-714).

A broker that accepts metrics offers the API. Then `Telemetry` asks it which metrics are wanted, and
how often; pushes them; and pushes once more when the client closes. The states and the waits are
those of Kafka's `ClientTelemetryReporter`. Nothing is done, and nothing is imported, as long as no
broker offers the API.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol
from uuid import UUID

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.connection import NEVER_NS, OnDone, R
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.telemetry_report import Labelled, Point, Report, Sample
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

LOGGER = GuardedLogger("fairlead_kafka.telemetry")
INTERVAL_DEFAULT_MS = 300_000
"""The wait where no broker named one (Kafka's `DEFAULT_PUSH_INTERVAL_MS`)."""
FIRST_PUSH_JITTER = (0.5, 1.5)
"""The first push comes after so many intervals, drawn between the two: clients that began together
do not push together (KIP-714)."""
ASKERS_MAX = 1_000
"""Calls of `client_instance_id` that may wait at a time."""
EVERY_METRIC = "*"
_NO_ID = UUID(int=0)


class State(Enum):
    """Kafka's `ClientTelemetryState`; see TRANSITIONS."""

    SUBSCRIPTION_NEEDED = "subscription needed"
    SUBSCRIPTION_IN_PROGRESS = "subscription in progress"
    PUSH_NEEDED = "push needed"
    PUSH_IN_PROGRESS = "push in progress"
    TERMINATING_PUSH_NEEDED = "terminating push needed"
    TERMINATING_PUSH_IN_PROGRESS = "terminating push in progress"
    TERMINATED = "terminated"


class Trigger(Enum):
    """Events that change the state; see TRANSITIONS."""

    SENT = "sent"
    """The request that was needed is written."""
    SUBSCRIBED = "subscribed"
    """The broker named metrics that it wants."""
    PUSHED = "pushed"
    """The broker took the metrics."""
    AGAIN = "again"
    """No metric is wanted, or the request failed: ask again which are, later."""
    CLOSING = "closing"
    """The client closes."""
    ENDED = "ended"
    """There is nothing more to push, or an error that no later attempt mends."""


_S, _T = State, Trigger
TRANSITIONS: dict[tuple[State, Trigger], State] = {
    (_S.SUBSCRIPTION_NEEDED, _T.SENT): _S.SUBSCRIPTION_IN_PROGRESS,
    (_S.SUBSCRIPTION_IN_PROGRESS, _T.SUBSCRIBED): _S.PUSH_NEEDED,
    (_S.SUBSCRIPTION_IN_PROGRESS, _T.AGAIN): _S.SUBSCRIPTION_NEEDED,
    (_S.PUSH_NEEDED, _T.SENT): _S.PUSH_IN_PROGRESS,
    (_S.PUSH_IN_PROGRESS, _T.PUSHED): _S.PUSH_NEEDED,
    (_S.PUSH_IN_PROGRESS, _T.AGAIN): _S.SUBSCRIPTION_NEEDED,
    # Without a subscription nobody asked for a last push.
    (_S.SUBSCRIPTION_NEEDED, _T.CLOSING): _S.TERMINATED,
    (_S.SUBSCRIPTION_IN_PROGRESS, _T.CLOSING): _S.TERMINATED,
    (_S.PUSH_NEEDED, _T.CLOSING): _S.TERMINATING_PUSH_NEEDED,
    (_S.PUSH_IN_PROGRESS, _T.CLOSING): _S.TERMINATING_PUSH_NEEDED,
    (_S.TERMINATING_PUSH_NEEDED, _T.SENT): _S.TERMINATING_PUSH_IN_PROGRESS,
    (_S.TERMINATING_PUSH_IN_PROGRESS, _T.PUSHED): _S.TERMINATED,
    (_S.TERMINATING_PUSH_IN_PROGRESS, _T.AGAIN): _S.TERMINATED,
    **{(state, _T.ENDED): _S.TERMINATED for state in State},
}
"""Pairs that are not here change nothing: an answer that comes late, a second close."""

_WAITS_AGAIN: dict[int, bool] = {
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: False,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: False,
    ErrorCode.TELEMETRY_TOO_LARGE: True,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: True,
}
"""Errors after which a client asks again what is wanted: whether an interval later, or at once.
After any other it pushes no more (Kafka's `ClientTelemetryUtils.maybeFetchErrorIntervalMs`)."""


class Subscription(NamedTuple):
    """Which metrics a broker wants of this client, how often and how encoded."""

    instance_id: UUID
    subscription_id: int
    interval_ms: int
    compression_types: Sequence[int]
    delta: bool
    prefixes: Sequence[str]
    max_bytes: int

    def takes(self, name: str) -> bool:
        """Whether a metric of this name was asked for."""
        return list(self.prefixes) == [EVERY_METRIC] or name.startswith(tuple(self.prefixes))


class Brokers(Protocol):
    """The parts of a `Network` that pushing metrics uses: the nodes that can be asked, and
    sending."""

    def offering(self, api_key: ApiKey) -> list[int]:
        """Nodes that are connected and serve the API."""

    def ready(self, node_id: int) -> bool:
        """Whether a request can be sent to the node now."""

    def send(self, node_id: int, api_key: ApiKey, message: RequestMessage[R], on_done: OnDone[R]) -> None:
        """Send now, to a node that is ready."""


class Telemetry:
    """A part of a client's `Network`, which calls `advance`.

    `report` gives what is pushed; without one, nothing is asked for. Times as `now_ns` are
    monotonic, `wall_ms` are since 1970.
    """

    def __init__(self, brokers: Brokers, rng: Rng, report: Callable[[int], Report] | None) -> None:
        self._report = report
        self.state = State.SUBSCRIPTION_NEEDED
        self.due_ns = 0
        """When the request that is needed may go; NEVER_NS while one is under way."""
        self.waits_for_broker = False
        """A request is due, and no broker could take it."""
        self._brokers = brokers
        self._rng = rng
        self._now_ns = self._wall_ms = 0
        self._subscription: Subscription | None = None
        self._node_id: int | None = None
        self._refused_codecs: set[int] = set()
        self._totals_taken: dict[Labelled, tuple[float, int]] = {}
        """Metrics that were reported last, their sums as a broker took them, and when."""
        self._totals_sent: dict[Labelled, tuple[float, int]] = {}
        """Totals that `_totals_taken` becomes once the push that is under way is taken."""
        self._began_ms = 0
        self._askers: list[tuple[int, Callable[[UUID | None, Exception | None], object]]] = []

    def fire(self, trigger: Trigger) -> bool:
        """Change the state by TRANSITIONS. False, and nothing changed, if the table has no row for
        the present state and `trigger`."""
        target = TRANSITIONS.get((self.state, trigger))
        if target is not None:
            self.state = target
        return target is not None

    @property
    def idle(self) -> bool:
        """True if no broker has asked for metrics: none is connected to for their sake."""
        return self._subscription is None

    @property
    def over(self) -> bool:
        """True if nothing more will be pushed."""
        return self.state is State.TERMINATED

    def next_ns(self) -> int:
        """When `advance` has something to do if nothing happens before; NEVER_NS: not by itself."""
        due_ns = NEVER_NS if self.waits_for_broker or self.over else self.due_ns
        return min([due_ns, *(at_ns for at_ns, _ in self._askers)])

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Send what is due, if a broker can take it."""
        self._now_ns, self._wall_ms = now_ns, wall_ms
        self._began_ms = self._began_ms or wall_ms
        self._answer_askers()
        self.waits_for_broker = False
        if now_ns < self.due_ns or self.over or self._report is None:
            return
        node_id = self._node()
        if node_id is None:
            self.waits_for_broker = True
        elif self.state is State.SUBSCRIPTION_NEEDED:
            self._ask(node_id)
        else:
            self._push(node_id)

    def close(self, now_ns: int) -> bool:
        """Begin the last push, for the client closes. True if one is due; `over` says when it is
        done."""
        if self.fire(Trigger.CLOSING) and not self.over:
            self.due_ns = now_ns
        return not self.over

    def last_push(self, now_ns: int, wall_ms: int) -> tuple[int | None, PushTelemetryRequest] | None:
        """The last push, for a caller that sends it over a connection of its own: the node that
        took the earlier ones (None: any), and the request. None if none is due."""
        self._now_ns, self._wall_ms = now_ns, wall_ms
        message = self._message(terminating=True) if self.close(now_ns) else None
        self.end()
        return None if message is None else (self._node_id, message)

    def end(self, error: Exception | None = None) -> None:
        """Push nothing more; calls that wait for the id fail with `error`."""
        self.fire(Trigger.ENDED)
        askers, self._askers = self._askers, []
        for _, done in askers:
            done(None, error or UsageError("this client is closed"))

    def await_id(self, deadline_ns: int, done: Callable[[UUID | None, Exception | None], object]) -> None:
        """Call `done` with this client's instance id, once a broker gave it; TimedOut at
        `deadline_ns`."""
        if self._subscription is not None:
            done(self._subscription.instance_id, None)
        elif self.over:
            done(
                None, UsageError("the brokers gave no client instance id: they refused this client's metrics")
            )
        elif len(self._askers) >= ASKERS_MAX:
            done(None, UsageError(f"{ASKERS_MAX} calls of client_instance_id are waiting already"))
        else:
            self._askers.append((deadline_ns, done))

    def check(self) -> None:
        """Raise CheckFailed if the state does not fit the other fields."""
        pushing = self.state not in (
            State.SUBSCRIPTION_NEEDED,
            State.SUBSCRIPTION_IN_PROGRESS,
            State.TERMINATED,
        )
        holds("who pushes was asked for metrics", not pushing or self._subscription is not None)
        under_way = self.state in (
            State.SUBSCRIPTION_IN_PROGRESS,
            State.PUSH_IN_PROGRESS,
            State.TERMINATING_PUSH_IN_PROGRESS,
        )
        holds("one request is under way at a time", not under_way or self.due_ns == NEVER_NS)

    # Inside

    def _node(self) -> int | None:
        """The broker that took the last request, for as long as it can (KIP-714); else another."""
        offering = self._brokers.offering(ApiKey.PUSH_TELEMETRY)
        if self._node_id not in offering:
            self._node_id = offering[self._rng.randrange(len(offering))] if offering else None
        node_id = self._node_id
        return node_id if node_id is not None and self._brokers.ready(node_id) else None

    def _ask(self, node_id: int) -> None:
        self.fire(Trigger.SENT)
        self.due_ns = NEVER_NS
        known = _NO_ID if self._subscription is None else self._subscription.instance_id
        message = GetTelemetrySubscriptionsRequest(client_instance_id=known)
        self._brokers.send(node_id, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, message, self._subscribed)

    def _subscribed(self, answer: GetTelemetrySubscriptionsResponse | None, error: Exception | None) -> None:
        if self.state is not State.SUBSCRIPTION_IN_PROGRESS:
            return
        if answer is None or answer.error_code != ErrorCode.NONE:
            self._failed("GetTelemetrySubscriptions", None if answer is None else answer.error_code, error)
            return
        interval_ms = answer.push_interval_ms if answer.push_interval_ms > 0 else INTERVAL_DEFAULT_MS
        before = self._subscription
        self._subscription = Subscription(
            answer.client_instance_id,
            answer.subscription_id,
            interval_ms,
            tuple(answer.accepted_compression_types),
            answer.delta_temporality,
            tuple(answer.requested_metrics),
            answer.telemetry_max_bytes,
        )
        if before is not None and before.delta != answer.delta_temporality:
            self._totals_taken.clear()
        if not answer.requested_metrics:
            self.fire(Trigger.AGAIN)
            self._wait(interval_ms)
        else:
            self.fire(Trigger.SUBSCRIBED)
            low, high = FIRST_PUSH_JITTER
            self._wait(interval_ms * (low + (high - low) * self._rng.random()))
        self._answer_askers()

    def _push(self, node_id: int) -> None:
        message = self._message(terminating=self.state is State.TERMINATING_PUSH_NEEDED)
        if message is None:
            self.fire(Trigger.SENT)
            self._failed("PushTelemetry", ErrorCode.TELEMETRY_TOO_LARGE, None)
            return
        self.fire(Trigger.SENT)
        self.due_ns = NEVER_NS
        codec = message.compression_type

        def pushed(answer: PushTelemetryResponse | None, error: Exception | None) -> None:
            self._pushed(codec, answer, error, message.terminating)

        self._brokers.send(node_id, ApiKey.PUSH_TELEMETRY, message, pushed)

    def _pushed(
        self, codec: int, answer: PushTelemetryResponse | None, error: Exception | None, last: bool
    ) -> None:
        if self.state is not (State.TERMINATING_PUSH_IN_PROGRESS if last else State.PUSH_IN_PROGRESS):
            return
        if answer is None or answer.error_code != ErrorCode.NONE:
            if answer is not None and answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self._refused_codecs.add(codec)
            self._failed("PushTelemetry", None if answer is None else answer.error_code, error)
            return
        self.fire(Trigger.PUSHED)
        self._totals_taken = self._totals_sent
        self._wait(self._interval_ms())

    def _failed(self, api: str, code: int | None, error: Exception | None) -> None:
        """React to a refused or failed request: ask again later or at once, or never. After a lost
        connection another broker is asked."""
        if code is not None and code not in _WAITS_AGAIN:
            LOGGER.warning(
                "%s was refused (%s); this client pushes no more metrics", api, policy(code).meaning
            )
            self.end(UsageError(f"the broker refused this client's metrics: {policy(code).meaning}"))
            return
        LOGGER.debug("%s failed: %s", api, error if code is None else policy(code).meaning)
        self.fire(Trigger.AGAIN)
        self._wait(self._interval_ms() if code is None or _WAITS_AGAIN[code] else 0)

    def _interval_ms(self) -> int:
        return INTERVAL_DEFAULT_MS if self._subscription is None else self._subscription.interval_ms

    def _wait(self, interval_ms: float) -> None:
        self.due_ns = self._now_ns + ms_to_ns(interval_ms)

    def _answer_askers(self) -> None:
        askers, self._askers = self._askers, []
        for deadline_ns, done in askers:
            if self._subscription is not None:
                done(self._subscription.instance_id, None)
            elif deadline_ns <= self._now_ns:
                done(None, TimedOut("client_instance_id: no broker gave this client an id in time"))
            else:
                self._askers.append((deadline_ns, done))

    def _message(self, *, terminating: bool) -> PushTelemetryRequest | None:
        """The push of all metrics that are wanted; None: they are more than the broker takes."""
        from fairlead_kafka.core.telemetry_bytes import encoded  # only where a cluster asks for metrics

        subscription = self._subscription
        assert subscription is not None
        assert self._report is not None
        report = self._report(self._now_ns)
        self._totals_sent = {}
        points = []
        for sample in report.samples:
            if subscription.takes(sample.name):
                points.append(self._point(sample))
            elif sample.labelled in self._totals_taken:  # it may be asked for again
                self._totals_sent[sample.labelled] = self._totals_taken[sample.labelled]
        accepted = [each for each in subscription.compression_types if each not in self._refused_codecs]
        codec, data = encoded(report.labels, points, self._wall_ms, subscription.delta, accepted)
        if 0 < subscription.max_bytes < len(data):
            return None
        return PushTelemetryRequest(
            client_instance_id=subscription.instance_id,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=data,
        )

    def _point(self, sample: Sample) -> Point:
        """A sample as the subscription wants it: sums since the last push that was taken, or since
        the client began."""
        if not sample.counts:
            return Point(sample.name, sample.value, sample.attributes, None)
        assert self._subscription is not None
        if not self._subscription.delta:
            return Point(sample.name, sample.value, sample.attributes, self._began_ms)
        value, since_ms = self._totals_taken.get(sample.labelled, (0.0, self._began_ms))
        if sample.value < value:  # its topic was forgotten, and counted from 0 again
            value = 0.0
        self._totals_sent[sample.labelled] = (sample.value, self._wall_ms)
        return Point(sample.name, sample.value - value, sample.attributes, since_ms)
