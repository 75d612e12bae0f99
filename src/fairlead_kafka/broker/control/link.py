"""A broker's copy of the cluster, and its link to the controller in another process.

                attach             connected           image
    IDLE ────────▶ CONNECTING ────────▶ JOINING ────────▶ FOLLOWING
                     ▲   │ lost, silent     │ lost, silent     │
                     │   ▼                  │                  │
                   AWAY ◀──────────────────┴──────────────────┘        CLOSED: detached, or refused

Each time the link comes to FOLLOWING the image is the controller's, and its lines follow. Decisions
asked for before that wait for it, for broker.session.timeout.ms at most. Decisions without an
answer when a link is lost may have been made or not: they fail with NOT_CONTROLLER; the caller
looks at the image, and asks again if necessary.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, DecodeError, FairleadError, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.control import plain
from fairlead_kafka.broker.control.catch_up import catch_up
from fairlead_kafka.broker.control.frames import FRAME_MAX_BYTES, Kind, frame
from fairlead_kafka.broker.controller import ClusterImage, ClusterView, Decision, DecisionDone
from fairlead_kafka.broker.controller.fold import apply
from fairlead_kafka.broker.controller.log import decode_log
from fairlead_kafka.broker.controller.view import Attached
from fairlead_kafka.broker.timers import Timer
from fairlead_kafka.core.effects import Close, Connect, Write
from fairlead_kafka.core.events import Connected, Disconnected, Received
from fairlead_kafka.wire import FrameReader

_logger = GuardedLogger("fairlead_kafka.broker")

FIRST_CONNECTION = 1 << 40
"""Connections to the controller are numbered from here: a machine's numbers are its own, and the
others count from 1."""
RECONNECT_MS = 100
UNANSWERED_MAX = 10_000
"""Decisions asked for at once; more are refused, for the controller does not keep up."""


class LinkState(Enum):
    """State of a link to the controller."""

    IDLE = "idle"
    CONNECTING = "connecting"
    JOINING = "joining"
    FOLLOWING = "following"
    AWAY = "away"
    CLOSED = "closed"


class Trigger(Enum):
    """Event that changes the state of a link."""

    ATTACHED = "attached"
    CONNECTED = "connected"
    IMAGE = "image"
    LOST = "lost"
    DUE = "due"
    REFUSED = "refused"
    DETACHED = "detached"


TRANSITIONS: dict[tuple[LinkState, Trigger], LinkState] = {
    (LinkState.IDLE, Trigger.ATTACHED): LinkState.CONNECTING,
    (LinkState.CONNECTING, Trigger.CONNECTED): LinkState.JOINING,
    (LinkState.CONNECTING, Trigger.LOST): LinkState.AWAY,
    (LinkState.JOINING, Trigger.IMAGE): LinkState.FOLLOWING,
    (LinkState.JOINING, Trigger.LOST): LinkState.AWAY,
    (LinkState.JOINING, Trigger.REFUSED): LinkState.CLOSED,
    (LinkState.FOLLOWING, Trigger.LOST): LinkState.AWAY,
    (LinkState.AWAY, Trigger.DUE): LinkState.CONNECTING,
    (LinkState.IDLE, Trigger.DETACHED): LinkState.CLOSED,
    (LinkState.CONNECTING, Trigger.DETACHED): LinkState.CLOSED,
    (LinkState.JOINING, Trigger.DETACHED): LinkState.CLOSED,
    (LinkState.FOLLOWING, Trigger.DETACHED): LinkState.CLOSED,
    (LinkState.AWAY, Trigger.DETACHED): LinkState.CLOSED,
    (LinkState.CLOSED, Trigger.DETACHED): LinkState.CLOSED,
}
"""All transitions between states of a link; a pair that is not here is a defect."""


class _Waiting(NamedTuple):
    decision: Decision[object]
    done: Callable[..., None]
    """A `DecisionDone` of its result."""
    deadline_ns: int


R = TypeVar("R")
Joined = Callable[[FairleadError | None], None]


class RemoteController(ClusterView):
    """A broker's view of the cluster, when the controller is in another process. `token` proves to
    the controller that the broker belongs to the cluster."""

    def __init__(self, settings: Settings, host: str, port: int, token: str) -> None:
        super().__init__(settings)
        self.state = LinkState.IDLE
        self._settings = settings
        self._address = (host, port)
        self._token = token
        self._broker: Attached
        self._joined: Joined
        self._connection = FIRST_CONNECTION
        self._frames = FrameReader()
        self._asked: dict[int, Callable[..., None]] = {}
        self._waiting: deque[_Waiting] = deque()
        self._number = 0
        self._heard_ns = 0
        self._timer: Timer | None = None
        self._cut = False
        self._takers = {
            Kind.IMAGE: self._image,
            Kind.LINE: self._line,
            Kind.ANSWER: self._answer,
            Kind.REFUSAL: self._refusal,
        }

    def _fire(self, trigger: Trigger) -> None:
        target = TRANSITIONS.get((self.state, trigger))
        if target is None:
            raise UsageError(
                f"the link to the controller: {trigger.value} cannot happen while it is {self.state.value}"
            )
        self.state = target

    # --- For the broker

    def attach(self, broker: Attached, joined: Joined) -> None:
        """Connect to the controller, and again after each loss; joined(None) each time the image is
        up to date again, joined(error) if it never will be."""
        self._broker, self._joined = broker, joined
        self._fire(Trigger.ATTACHED)
        self._connect()

    def detach(self, node_id: int) -> None:
        """End the link; the controller then counts the broker as gone."""
        linked = self.state in (LinkState.CONNECTING, LinkState.JOINING, LinkState.FOLLOWING)
        self._fire(Trigger.DETACHED)
        self._set_timer(None)
        if linked:
            self._broker.emit(Close(self._connection, drain=True))
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.done(None, self._unreachable("the broker is stopping"))
        self._give_up("the broker is stopping")

    def decide(self, decision: Decision[R], done: DecisionDone[R]) -> None:
        """Have the controller make a decision; done(result, error). BrokerError NOT_CONTROLLER:
        there is no link, or it was lost meanwhile. THROTTLING_QUOTA_EXCEEDED: too many decisions
        wait."""
        if self.state in (LinkState.IDLE, LinkState.CLOSED):
            done(None, self._unreachable(f"it is {self.state.value}"))
        elif len(self._asked) + len(self._waiting) >= UNANSWERED_MAX:
            done(
                None,
                BrokerError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    "the controller does not keep up with what it is asked; ask later",
                ),
            )
        elif self.state is LinkState.FOLLOWING:
            self._ask(decision, done)
        else:
            patience_ns = ms_to_ns(self._settings["broker.session.timeout.ms"])
            self._waiting.append(
                _Waiting(decision, self._broker.bind(done), self._broker.now_ns + patience_ns)
            )

    def _ask(self, decision: Decision[object], done: Callable[..., None]) -> None:
        self._number += 1
        self._asked[self._number] = self._broker.bind(done)
        self._send(Kind.DECIDE, plain.dump([self._number, decision], self))

    def cut(self, cut: bool) -> None:
        """Let nothing through in either direction, as a network that is down, or (`cut` False) let
        everything through again."""
        if (
            self._cut
            and not cut
            and self.state in (LinkState.CONNECTING, LinkState.JOINING, LinkState.FOLLOWING)
        ):
            self._lose("bytes were lost on it", retry_ms=0)
        self._cut = cut

    def handle(self, event: Connected | Disconnected | Received) -> None:
        """Handle an event of a connection to the controller; does nothing if the link has ended or
        is cut."""
        if (
            event.connection != self._connection
            or self._cut
            or self.state in (LinkState.AWAY, LinkState.CLOSED)
        ):
            return
        if isinstance(event, Connected):
            self._fire(Trigger.CONNECTED)
            self._send(
                Kind.JOIN, json.dumps({"token": self._token, "node_id": self._broker.node_id}).encode()
            )
        elif isinstance(event, Disconnected):
            self._lose(event.reason, closed=True)
        else:
            self._received(event.data)

    # --- Frames

    def _received(self, data: bytes | memoryview) -> None:
        self._heard_ns = self._broker.now_ns
        connection = self._connection
        try:
            for each in self._frames.feed(data):
                taker = self._takers.get(Kind(each[0])) if each else None
                if taker is not None:
                    taker(bytes(each[1:]))
                if connection != self._connection or self.state in (LinkState.AWAY, LinkState.CLOSED):
                    return
        except (DecodeError, ValueError) as error:
            self._lose(f"what came from the controller makes no sense: {error}")

    def _image(self, content: bytes) -> None:
        image = ClusterImage()
        for records in decode_log(content)[0]:
            for record in records:
                apply(image, record)
        self._fire(Trigger.IMAGE)
        changes = catch_up(self.image, image)
        for change in changes:
            self.note(change)
        self.notify(changes)
        self._joined(None)  # who says first that the broker lives
        waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            self._ask(one.decision, one.done)

    def _line(self, content: bytes) -> None:
        for records in decode_log(content)[0]:
            self.apply(records)

    def _answer(self, content: bytes) -> None:
        answer = plain.load(content, self)
        if not isinstance(answer, list) or answer[0] not in self._asked:
            raise DecodeError("an answer to nothing that was asked", 0)
        number, result, error = answer
        self._asked.pop(number)(result, error)

    def _refusal(self, content: bytes) -> None:
        self._fire(Trigger.REFUSED)
        self._set_timer(None)
        self._broker.emit(Close(self._connection))
        self._joined(
            FairleadError(
                f"the controller does not let broker {self._broker.node_id} join: {content.decode()}"
            )
        )

    def _send(self, kind: Kind, content: bytes = b"") -> None:
        if not self._cut:
            self._broker.emit(Write(self._connection, frame(kind, content)))

    # --- Life

    def _connect(self) -> None:
        self._connection += 1
        self._frames = FrameReader(FRAME_MAX_BYTES)
        self._heard_ns = self._broker.now_ns
        if not self._cut:
            self._broker.emit(Connect(self._connection, *self._address, plain=True))
        self._set_timer(self._settings["broker.heartbeat.interval.ms"], self._beat)

    def _beat(self) -> None:
        """Send a heartbeat to the controller, and check that one has come from it."""
        self._expire()
        silent_ns = self._broker.now_ns - self._heard_ns
        if silent_ns >= ms_to_ns(self._settings["broker.session.timeout.ms"]):
            self._lose(f"nothing was heard for {silent_ns // 1_000_000} ms")
            return
        if self.state is LinkState.FOLLOWING:
            self._send(Kind.BEAT)
        self._set_timer(self._settings["broker.heartbeat.interval.ms"], self._beat)

    def _lose(self, reason: str, closed: bool = False, retry_ms: float = RECONNECT_MS) -> None:
        _logger.info("broker %d lost its link to the controller: %s", self._broker.node_id, reason)
        if not closed:
            self._broker.emit(Close(self._connection))
        self._fire(Trigger.LOST)
        self._set_timer(retry_ms, self._again)
        self._give_up(reason)

    def __str__(self) -> str:
        return "the link to the controller"

    def failed(self, error: Exception) -> None:
        """Called when a timer of this link raised: connect again."""
        if self.state in (LinkState.CONNECTING, LinkState.JOINING, LinkState.FOLLOWING):
            self._lose(f"it failed: {error!r}")
        elif self.state is LinkState.AWAY:
            self._set_timer(RECONNECT_MS, self._again)

    def _again(self) -> None:
        self._fire(Trigger.DUE)
        self._expire()
        self._connect()

    def _expire(self) -> None:
        while self._waiting and self._waiting[0].deadline_ns <= self._broker.now_ns:
            self._waiting.popleft().done(None, self._unreachable(f"it is {self.state.value}"))

    def _give_up(self, reason: str) -> None:
        asked, self._asked = self._asked, {}
        for done in asked.values():
            done(None, self._unreachable(reason))

    def _unreachable(self, reason: str) -> BrokerError:
        return BrokerError(
            ErrorCode.NOT_CONTROLLER,
            f"broker {self._broker.node_id} has no link to the controller ({reason}): look, and ask again",
        )

    def _set_timer(self, wait_ms: float | None, function: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if wait_ms is not None and function is not None:
            self._timer = self._broker.call_at(self._broker.now_ns + ms_to_ns(wait_ms), function, self)
