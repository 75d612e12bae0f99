"""Answers of one connection that are not sent yet: written at once or with a delay, and counted
until they are sent."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.limits import OUTBOUND_MAX_BYTES
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.timers import TimerHost
from fairlead_kafka.core.effects import AwaitSent, Buffer, Effect, Write


class Outbound(Protocol):
    """The bytes of answers that have not been sent, counted together for all sessions of a
    broker."""

    outbound_bytes: int
    """Bytes of answers that have not left, of sessions with more than OUTBOUND_MAX_BYTES."""


class AnswersHost(TimerHost, Protocol):
    """The parts of a broker that a session's answers use."""

    faults: Faults

    @property
    def clients(self) -> Outbound:
        """All sessions of the broker, which count their bytes together."""

    def emit(self, effect: Effect) -> None:
        """Ask the host for `effect` at the end of this step."""


class Answers:
    """Writes the answers of one session, and counts the bytes that have not been sent. While those
    are more than OUTBOUND_MAX_BYTES, it asks the host to report when they are sent."""

    def __init__(self, broker: AnswersHost, connection: int, owner: Owner) -> None:
        self._broker = broker
        self._connection = connection
        self._owner = owner
        self._departing: deque[tuple[int, list[Buffer]]] = deque()
        self._written_bytes = 0
        self._sent_bytes = 0
        self._awaits_sent = False

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers not known to have been sent; the host is not asked about few bytes."""
        return self._written_bytes - self._sent_bytes

    @property
    def awaited_bytes(self) -> int:
        """Bytes of answers that this session counts in `Clients.outbound_bytes`."""
        return self.unsent_bytes if self._awaits_sent else 0

    def depart(self, buffers: list[Buffer]) -> None:
        """Write an answer made of `buffers`, or write it later if the fault `latency_ms` is set
        (`faults`)."""
        broker = self._broker
        size_bytes = sum(map(len, buffers))
        self._written_bytes += size_bytes
        if self._awaits_sent:
            broker.clients.outbound_bytes += size_bytes
        if self._departing or broker.faults.latency_ms > 0:
            self._delay(buffers)
        else:
            broker.emit(Write(self._connection, buffers))
        if self.unsent_bytes > OUTBOUND_MAX_BYTES:
            self._await_sent()

    def sent(self, position: int) -> None:
        """Note that `position` of all bytes ever written to the connection have been sent by the
        host."""
        self._awaits_sent = False
        self._broker.clients.outbound_bytes -= self.unsent_bytes
        self._sent_bytes = position
        self._await_sent()

    def ended(self) -> None:
        """Called when the connection has ended."""
        self._departing.clear()
        if self._awaits_sent:
            self._broker.clients.outbound_bytes -= self.unsent_bytes

    def check(self) -> None:
        """Check that the counts of bytes fit together, between two steps; CheckFailed if not."""
        holds(f"{self._owner}: more has left than was written", 0 <= self._sent_bytes <= self._written_bytes)
        holds(
            f"{self._owner}: much waits to be sent, and it does not ask",
            self._awaits_sent == (self.unsent_bytes > OUTBOUND_MAX_BYTES),
        )

    def _delay(self, buffers: list[Buffer]) -> None:
        broker = self._broker
        due_ns = broker.now_ns + ms_to_ns(broker.faults.latency_ms)
        if self._departing:
            due_ns = max(due_ns, self._departing[-1][0])
        self._departing.append((due_ns, buffers))
        broker.call_at(due_ns, self._send_departing, self._owner)

    def _await_sent(self) -> None:
        """Ask the host to report when the next part is sent, if more than OUTBOUND_MAX_BYTES are
        not."""
        if not self._awaits_sent and self.unsent_bytes > OUTBOUND_MAX_BYTES:
            self._awaits_sent = True
            self._broker.clients.outbound_bytes += self.unsent_bytes
            self._broker.emit(AwaitSent(self._connection, self._sent_bytes + OUTBOUND_MAX_BYTES))

    def _send_departing(self) -> None:
        while self._departing and self._departing[0][0] <= self._broker.now_ns:
            self._broker.emit(Write(self._connection, self._departing.popleft()[1]))
