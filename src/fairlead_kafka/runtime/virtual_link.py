"""The link between two machines of a virtual host: its latency, its faults, and cuts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from typing import Protocol

from fairlead_kafka.base.units import NS_PER_MS, ms_to_ns
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.runtime.handle import Handle

RETRANSMISSION_MS = 200.0
"""TCP's least retransmission time-out (Linux); each further loss of the same segment doubles it."""
RETRANSMISSIONS_MAX = 5
"""Losses of one write at most; then it gets through: a lossy link is slow, a dead one is `cut`."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The speed and faults of a link, as TCP would show them: bytes of a connection are never lost
    or reordered, only late, or the connection ends.

    Connections of one link share nothing but these figures, so bytes sent on one may overtake bytes
    sent on another.
    """

    latency_ms: float = 0.0
    """Least latency, one way."""
    jitter_ms: float = 0.0
    """Mean of the latency added to each write, exponentially distributed."""
    loss: float = 0.0
    """Probability that a write, or its repetition, is lost and sent again later."""
    resets: float = 0.0
    """Probability that a write breaks its connection instead of being sent."""
    bytes_per_ms: float = 0.0
    """How fast each connection carries bytes; 0: at once."""


class LinkEnd(Protocol):
    """One side of a connection, as its link sees it."""

    handle: Handle
    held: bool
    open: bool

    def hold(self, held: bool) -> None:
        """Stop reading bytes that arrive, or go on reading."""

    def lose(self, reason: str) -> None:
        """Called when the connection breaks."""


class VirtualLink:
    """The link between two machines. Bytes of a connection stay in order in all conditions."""

    __slots__ = ("_conditions", "_cut", "_ends", "_held", "_rng", "latency_ns", "not_reading", "plain")

    def __init__(self, conditions: Conditions, rng: Callable[[], Rng]) -> None:
        self._rng = rng
        self._cut: list[Handle | None] = []
        self._held: list[tuple[Handle | None, Callable[..., None], tuple[object, ...]]] = []
        self._ends: list[LinkEnd] = []
        self.not_reading: set[Handle] = set()
        """Machines that read nothing of what arrives on this link: see `stop_reading`."""
        self.conditions = conditions

    @property
    def conditions(self) -> Conditions:
        """The conditions for everything sent from now on."""
        return self._conditions

    @conditions.setter
    def conditions(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self.latency_ns = ms_to_ns(conditions.latency_ms)
        self.plain = not (
            conditions.jitter_ms or conditions.loss or conditions.resets or conditions.bytes_per_ms
        )
        """True if nothing depends on the rng or on size: only `latency_ns` counts."""

    @property
    def latency_ms(self) -> float:
        """Latency one way, ms, for everything sent from now on."""
        return self._conditions.latency_ms

    @latency_ms.setter
    def latency_ms(self, latency_ms: float) -> None:
        self.conditions = replace(self._conditions, latency_ms=latency_ms)

    def cut(self, toward: Handle | None = None) -> None:
        """Let nothing through, or, with `toward`, nothing toward that machine. Bytes that are sent
        wait, as under TCP's retransmissions.

        Attempts to connect get no answer.
        """
        self._cut.append(toward)

    def heal(self, *, lost: bool = False) -> None:
        """Let everything through again, first the bytes that have waited. If these are `lost`, the
        connections are dead without either side being told."""
        self._cut.clear()
        held, self._held = self._held, []
        for _, function, arguments in () if lost else held:
            function(*arguments)

    def stop_reading(self, reader: Handle) -> None:
        """Let `reader` read nothing of this link: bytes wait, in the end at the sender.

        All else goes on: connections are made, and bytes that `reader` writes get through. When a
        connection ends, `reader` gets the bytes that had arrived.
        """
        self.not_reading.add(reader)

    def read_on(self, reader: Handle) -> None:
        """Let `reader` read again, first what has waited."""
        self.not_reading.discard(reader)
        for end in list(self._ends):
            if end.handle is reader and not end.held:
                end.hold(False)

    def reset(self) -> None:
        """Break every connection of the link: both sides get Disconnected, and bytes under way are
        lost."""
        ends, self._ends = self._ends, []
        for end in ends:
            end.lose("connection reset by peer")

    def carry(self, toward: Handle | None, function: Callable[..., None], *arguments: object) -> None:
        """Call `function(*arguments)`, which delivers something toward a machine; if the link is
        cut, once it is healed."""
        if self._cut and (None in self._cut or toward in self._cut):
            self._held.append((toward, function, arguments))
        else:
            function(*arguments)

    def attach(self, end: LinkEnd) -> None:
        """Remember one side of a connection."""
        self._ends = [each for each in self._ends if each.open]
        self._ends.append(end)

    # What chance and size do

    def resets(self) -> bool:
        """True if this write breaks its connection, at random by `Conditions.resets`."""
        resets = self._conditions.resets
        return bool(resets) and self._rng().random() < resets

    def sending_ns(self, size_bytes: int) -> int:
        """Nanoseconds that `size_bytes` take to leave, at the link's speed."""
        speed = self._conditions.bytes_per_ms
        return int(size_bytes * NS_PER_MS / speed) if speed else 0

    def delay_ns(self) -> int:
        """Nanoseconds that one write is under way once it has left."""
        conditions = self._conditions
        delay_ms = conditions.latency_ms
        if conditions.jitter_ms:
            delay_ms -= log(1.0 - self._rng().random()) * conditions.jitter_ms
        if conditions.loss:
            wait_ms, losses = RETRANSMISSION_MS, 0
            while losses < RETRANSMISSIONS_MAX and self._rng().random() < conditions.loss:
                delay_ms, wait_ms, losses = delay_ms + wait_ms, 2 * wait_ms, losses + 1
        return ms_to_ns(delay_ms)
