"""The controller as a machine of its own: brokers of other processes join it, follow its decisions
and have theirs made.

    accepted ──join──▶ member ──BrokerStarted──▶ alive ──connection lost, or silent──▶ fenced
        └──wrong token, or silent──▶ closed

A broker is fenced when its connection ends, which `kill -9` causes at once; one that hangs, or is
cut off, when it has sent nothing for `broker.session.timeout.ms`. If it still runs, it joins and
starts again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed, DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.json_types import Json, json_object
from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S, ms_to_ns
from fairlead_kafka.broker.control import plain
from fairlead_kafka.broker.control.frames import FRAME_MAX_BYTES, Kind, frame
from fairlead_kafka.broker.controller import BrokerStarted, Controller, Decision
from fairlead_kafka.broker.guard import SharedDamage, Task
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Buffer, Close, Effect, Listen, Resolve, Write
from fairlead_kafka.core.events import Accepted, Disconnected, Event, Listening, Received, Submitted
from fairlead_kafka.wire import FrameReader

_logger = GuardedLogger("fairlead_kafka.broker")

_LISTENER = 1
_NOBODY = -1
JOIN_FRAME_MAX_BYTES = 1 << 20
"""Largest frame, in bytes, of a connection that has not joined."""
TICK_AGAIN_NS = NS_PER_S
"""How long the controller's timers wait after one has raised."""
_TIMERS = Task("the controller's timers")


R = TypeVar("R")


class OpenController(NamedTuple):
    """Operation: listen for brokers; answered with the port."""

    completion: Completion[int]


class Decide(NamedTuple, Generic[R]):
    """Operation of the launcher: have the controller make a decision; answered with its result."""

    decision: Decision[R]
    completion: Completion[R]


@dataclass(slots=True)
class _Member:
    """One connection: `node_id` once it has joined, `started` once its broker is alive in the
    image."""

    connection: int
    heard_ns: int
    node_id: int = _NOBODY
    started: bool = False
    frames: FrameReader = field(default_factory=FrameReader)
    outgoing: list[Buffer] = field(default_factory=list)


@dataclass(slots=True)
class _Asking:
    """The owner of a decision: if that raises, the broker or launcher that asked for it is told."""

    decision: Decision[object]
    done: Callable[[object, BrokerError | None], None]
    answered: bool = False

    def __str__(self) -> str:
        return f"the decision {type(self.decision).__name__}"

    def answer(self, result: object, error: BrokerError | None) -> None:
        """Answer with its result or error."""
        self.done(result, error)
        self.answered = True

    def failed(self, error: Exception) -> None:
        """Answer that the controller failed in it, unless it was answered."""
        if not self.answered:
            context = f"the controller failed in {self}: {type(error).__name__}, see its log"
            self.done(None, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, context))


class ControllerServer:
    """Serves one controller to the brokers that know the `token`, once it is opened, and to the
    launcher."""

    def __init__(self, controller: Controller, token: str, host: str = "127.0.0.1", port: int = 0) -> None:
        self._controller = controller
        self._token = token
        self._host, self._port = host, port
        self._inbox: deque[Event] = deque()
        self._outbox: list[Effect] = []
        self._members: dict[int, _Member] = {}
        self._gone_ids: dict[int, None] = {}
        """Brokers whose connection has ended, until they are fenced."""
        self._opening: OpenController | None = None
        self._now_ns = self._tick_again_ns = 0
        self.guard = controller.guard
        """A decision that raises is its asker's error, and a timer runs again later; `errors` are
        counted. What raises in the controller's state ends the controller."""
        self._unfollow = controller.follow(self._decided)
        self.wake: Callable[[], None] = lambda: None
        """Set by the launcher: has the host step this machine soon."""

    # --- The machine protocol

    def receive(self, event: Event) -> None:
        """Queue an event for the next step."""
        self._inbox.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Serve the events that arrived, and drop members that have been silent for too long."""
        self._now_ns = self.guard.now_ns = self._controller.now_ns = now_ns
        if now_ns >= self._tick_again_ns:
            self._tick_again_ns = now_ns + TICK_AGAIN_NS
            self.guard.call(_TIMERS, self._tick)
        for _ in range(len(self._inbox)):
            self._take(self._inbox[0])
            self._inbox.popleft()  # only now: `crashed` tells those whose operation was begun, too
        for member in list(self._members.values()):
            if now_ns >= member.heard_ns + self._patience_ns():
                self._end(member, f"it was silent for {(now_ns - member.heard_ns) // NS_PER_MS} ms")
        for member in self._members.values():
            if member.outgoing:
                self._outbox.append(Write(member.connection, member.outgoing))
                member.outgoing = []
        effects, self._outbox = self._outbox, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which the next member has been silent for too long, or the
        controller has something to do; None: neither."""
        deadlines = [member.heard_ns + self._patience_ns() for member in self._members.values()]
        due_ns = self._controller.deadline_ns()
        if due_ns is not None:
            deadlines.append(max(due_ns, self._tick_again_ns))
        if self._gone_ids:
            deadlines.append(self._tick_again_ns)
        return min(deadlines, default=None)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Fail every operation that waits with `error`: the host will not step the controller any
        more."""
        self._unfollow()
        waiting = [self._opening, *(event.operation for event in self._inbox if isinstance(event, Submitted))]
        return [Resolve(operation.completion, None, error) for operation in waiting if operation is not None]

    def _tick(self) -> None:
        """Do what is due at the controller, and note which brokers have gone."""
        for node_id in list(self._gone_ids):
            self.guard.call(_TIMERS, self._fence, node_id)
        self._controller.tick(self._now_ns)
        if not self._gone_ids:
            self._tick_again_ns = 0  # nothing was raised

    def _patience_ns(self) -> int:
        return ms_to_ns(self._controller.configs.broker_settings()["broker.session.timeout.ms"])

    def _take(self, event: Event) -> None:
        if isinstance(event, Accepted):
            self._members[event.connection] = _Member(
                event.connection, self._now_ns, frames=FrameReader(JOIN_FRAME_MAX_BYTES)
            )
        elif isinstance(event, Received):
            member = self._members.get(event.connection)
            if member is not None:
                self._received(member, event.data)
        elif isinstance(event, Disconnected):
            member = self._members.get(event.connection)
            if member is not None:
                self._gone(member)
        elif isinstance(event, Submitted):
            self._submitted(event.operation)
        elif isinstance(event, Listening) and self._opening is not None:
            error = (
                None
                if event.error is None
                else ConnectionFailed(f"the controller cannot listen on {self._host}: {event.error}")
            )
            self._outbox.append(Resolve(self._opening.completion, event.port, error))
            self._opening = None

    def _submitted(self, operation: OpenController | Decide[object]) -> None:
        if isinstance(operation, OpenController):
            self._opening = operation
            self._outbox.append(Listen(_LISTENER, self._host, self._port))
            return

        def done(result: object, error: BrokerError | None) -> None:
            self._outbox.append(Resolve(operation.completion, result, error))

        self._make(operation.decision, done)

    def _make(self, decision: Decision[object], done: Callable[[object, BrokerError | None], None]) -> None:
        asking = _Asking(decision, done)
        self.guard.call(asking, self._controller.decide, decision, asking.answer)

    # --- Members

    def _received(self, member: _Member, data: bytes | memoryview) -> None:
        member.heard_ns = self._now_ns
        try:
            for each in member.frames.feed(data):
                self._serve(member, Kind(each[0]) if each else None, bytes(each[1:]))
                if member.connection not in self._members:
                    return
        except SharedDamage:
            raise
        except Exception as error:  # of any kind: who has not joined yet may be anybody
            self._end(member, f"what it sent makes no sense: {error!r}")

    def _serve(self, member: _Member, kind: Kind | None, content: bytes) -> None:
        if member.node_id == _NOBODY:
            self._join(member, json_object(content) if kind is Kind.JOIN else {})
        elif kind is Kind.DECIDE:
            asked = plain.load(content, self._controller)
            match asked:
                case [int(number), Decision() as decision]:
                    self._decide(member, number, decision)
                case _:
                    raise DecodeError(f"no decision: {asked!r}", 0)
        elif kind is Kind.BEAT:
            member.outgoing += frame(Kind.BEAT)

    def _join(self, member: _Member, wanted: Mapping[str, Json]) -> None:
        if wanted.get("token") != self._token:
            _logger.warning("the controller refuses a connection that does not know its token")
            self._outbox.append(
                Write(
                    member.connection,
                    frame(Kind.REFUSAL, b"the token is wrong: it belongs to another cluster"),
                )
            )
            self._outbox.append(Close(member.connection, drain=True))
            del self._members[member.connection]
            return
        node_id = wanted.get("node_id")
        if not isinstance(node_id, int):
            raise DecodeError(f"no node id: {node_id!r}", 0)
        for other in list(self._members.values()):
            if other.node_id == node_id:
                self._end(other, "it joined again")
        member.node_id = node_id
        member.frames = FrameReader(FRAME_MAX_BYTES)
        member.outgoing += frame(Kind.IMAGE, self._controller.snapshot())

    def _decide(self, member: _Member, number: int, decision: Decision[object]) -> None:
        if isinstance(decision, BrokerStarted):
            member.started = True
            self._gone_ids.pop(member.node_id, None)

        def done(result: object, error: BrokerError | None) -> None:
            if member.connection in self._members:
                member.outgoing += frame(Kind.ANSWER, plain.dump([number, result, error], self._controller))
                self.wake()

        self._make(decision, done)

    def _decided(self, line: bytes) -> None:
        """Send the line of a decision to all members that have joined. Without any it is stepped,
        too: what the controller has to do next may be due at another time now."""
        if self._members:
            sent = frame(Kind.LINE, line)
            for member in self._members.values():
                if member.node_id != _NOBODY:
                    member.outgoing += sent
        self.wake()

    def _end(self, member: _Member, reason: str) -> None:
        _logger.info("the controller ends the connection of broker %d: %s", member.node_id, reason)
        self._outbox.append(Close(member.connection))
        self._gone(member)

    def _gone(self, member: _Member) -> None:
        self._members.pop(member.connection, None)
        if member.started:
            self._gone_ids[member.node_id] = None
            self.guard.call(_TIMERS, self._fence, member.node_id)

    def _fence(self, node_id: int) -> None:
        self._controller.detach(node_id)
        del self._gone_ids[node_id]
