"""State of each broker that the producer sends to: its window, and whether it answers."""

from __future__ import annotations

from collections import deque

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.core.network import Network
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.tuning import SILENCE_LATENCIES, SILENCE_NS, SMOOTHING
from fairlead_kafka.producer.window import Window


class NodeState:
    """State of one broker: its window, the requests in flight, and when it last answered."""

    __slots__ = (
        "average_ns", "connecting_ns", "heard_ns", "held_up_ns", "in_flight", "latency_ns", "lost", "pressed",
        "sent_ns", "window",
    )  # fmt: skip

    def __init__(self, window: Window) -> None:
        self.window = window
        self.in_flight = 0
        """Produce requests sent and not answered."""
        self.sent_ns: deque[int] = deque()
        """When each request in flight was sent; at most max.in.flight.requests.per.connection."""
        self.pressed = False
        """Since the last answer something was held back because the window was full."""
        self.heard_ns = 0
        """When it last answered, or was sent a request while none was in flight."""
        self.latency_ns = 0
        """Latency of the last answer, ns; 0: none yet."""
        self.average_ns = 0
        """Latency of its answers, smoothed (`SMOOTHING`), ns; 0: none yet."""
        self.lost = False
        """Its connection failed, and there is no new one."""
        self.connecting_ns = 0
        """Since when it has been connected to for records that wait, or is throttled with nothing
        under way; 0: it is not."""
        self.held_up_ns: int | None = None
        """Since when batches were ready for it and it took none (`Nodes.look`); None: it takes
        them."""


class Nodes:
    """All brokers, by id. `sent` and `answered` are to be called for every produce request that
    expects an answer."""

    def __init__(self, settings: ProducerSettings, network: Network) -> None:
        self._settings = settings
        self._network = network
        self._states: dict[int, NodeState] = {}
        self.unready: set[int] = set()
        """Brokers that took nothing for longer than partitioner.availability.timeout.ms, by `look`;
        none if that is 0."""
        self._patience_ns = settings.availability_timeout_ns or SILENCE_NS
        self._quickest_ns = 0
        self._answered = False  # one, since the last `plan`

    def state(self, node_id: int) -> NodeState:
        """The state of a broker, made if there is none."""
        state = self._states.get(node_id)
        if state is None:
            window = Window(self._settings.max_in_flight, adaptive=self._settings.adaptive_window)
            state = self._states[node_id] = NodeState(window)
        return state

    def limit(self, node_id: int) -> int:
        """Number of requests that a node may have in flight now; from any thread."""
        state = self._states.get(node_id)
        return self._settings.max_in_flight if state is None else state.window.limit

    def can_take(self, node_id: int, *, full: bool = False) -> bool:
        """True if a request can be sent to the broker now: it is connected, and its window has
        room. If only the window has none, that is noted for it. `full`: the request would carry
        nothing but full batches."""
        state = self.state(node_id)
        if state.in_flight >= state.window.limit:
            state.pressed = True
            if not full or state.in_flight >= state.window.full_limit:
                return False
        return self._network.ready(node_id)

    def look(self, node_id: int, now_ns: int) -> bool:
        """True if the broker can take a batch (`can_take`); also marks the broker as unready, or
        not. Call it for a broker that a batch is ready for, and for each broker in `unready`.
        Source: Kafka's `RecordAccumulator.updateNodeLatencyStats` and its readyTimeMs - drainTimeMs
        > timeout. But there an idle partition of a broker that takes nothing is still chosen, and
        its next batch shows that the broker is back. Here such a partition is passed over."""
        state, can_take = self.state(node_id), self.can_take(node_id)
        if can_take:
            self._took(node_id, state)
        elif self._settings.availability_timeout_ns:
            if state.held_up_ns is None:
                state.held_up_ns = now_ns
            if now_ns - state.held_up_ns > self._settings.availability_timeout_ns:
                self.unready.add(node_id)
        return can_take

    def _took(self, node_id: int, state: NodeState) -> None:
        state.held_up_ns = None
        self.unready.discard(node_id)

    def sent(self, node_id: int, now_ns: int) -> int:
        """Note that a request was sent; returns how many are in flight with it."""
        state = self.state(node_id)
        self._took(node_id, state)
        if not state.in_flight:
            state.heard_ns = now_ns
        state.in_flight += 1
        state.sent_ns.append(now_ns)
        state.window.sent(state.in_flight)
        return state.in_flight

    def answered(
        self, node_id: int, depth: int, latency_ns: int, size_bytes: int, now_ns: int, *, failed: bool
    ) -> None:
        """Note that a request sent at `depth` was answered, or (`failed`) its connection failed."""
        state = self.state(node_id)
        state.in_flight -= 1
        state.sent_ns.popleft()
        if failed:
            state.lost = True
            state.window.reset()
            return
        state.heard_ns, state.latency_ns = now_ns, latency_ns
        state.average_ns += (latency_ns - state.average_ns) // (SMOOTHING if state.average_ns else 1)
        self._answered = True
        state.window.answered(latency_ns, depth, size_bytes, pressed=state.pressed)
        state.pressed = False

    def check(self) -> None:
        """Raise CheckFailed unless the count of requests in flight to each broker fits the times at
        which they were sent, its window and the network."""
        for node_id, state in self._states.items():
            same(f"requests in flight to broker {node_id}", state.in_flight, len(state.sent_ns))
            holds(f"broker {node_id}: requests out of order", list(state.sent_ns) == sorted(state.sent_ns))
            holds(
                f"broker {node_id}: {state.in_flight} requests in flight",
                0 <= state.in_flight <= state.window.most,
            )
            on_wire = self._network.in_flight(node_id)
            holds(
                f"broker {node_id}: {state.in_flight} requests in flight, {on_wire} on the wire",
                state.in_flight <= on_wire,
            )
            state.window.check()

    # For late binding: who is waited for, and how long

    def plan(self) -> None:
        """Update how long the quickest broker takes, and how long to wait for an answer.

        Call it before brokers are asked about in a step.
        """
        if not self._answered:
            return
        self._answered = False
        self._quickest_ns = min(
            (state.latency_ns for state in self._states.values() if state.latency_ns), default=0
        )
        if not self._settings.availability_timeout_ns:
            self._patience_ns = max(SILENCE_NS, SILENCE_LATENCIES * self._quickest_ns)

    def wait_ns(self, node_id: int, now_ns: int) -> int:
        """Nanoseconds until a request that is not full should leave for it; 0: now.

        Such a request leaves when the broker is expected to have room. Requests are also spread
        evenly over the time that an answer takes: those that left together are answered together,
        and so would leave together again, each with next to nothing, and none for as long as an
        answer takes. While more than half of the places are free there is no such wait.
        """
        state = self.state(node_id)
        places, at_ns = state.window.partial_limit, now_ns
        if state.in_flight and 2 * state.in_flight >= places:
            at_ns = state.sent_ns[-1] + state.average_ns // places
        if state.in_flight >= places:
            at_ns = max(at_ns, state.sent_ns[state.in_flight - places] + state.average_ns)
        return max(at_ns - now_ns, 0)

    def silent(self, state: NodeState, now_ns: int) -> bool:
        """True if a broker has requests and did not answer any of them for too long: no more is
        sent to it until it answers."""
        return state.in_flight > 0 and now_ns - state.heard_ns > self._patience_ns

    def responds(self, node_id: int, now_ns: int) -> bool:
        """True if records may be kept for this broker: it is not known to be dead, nor too slow to
        connect, to answer now, or in its last answer. A broker that throttles this client counts as
        too slow only once it does so for as long. Begins to connect if need be."""
        state, network = self.state(node_id), self._network
        if network.ready(node_id):
            state.lost, state.connecting_ns = False, 0
        elif not state.in_flight:
            if network.blocked(node_id):
                state.lost = True
            else:
                network.connect(node_id)
                state.connecting_ns = state.connecting_ns or now_ns
                if now_ns - state.connecting_ns > self._patience_ns:
                    return False
        return not (state.lost or state.latency_ns > self._patience_ns or self.silent(state, now_ns))

    def next_ns(self, now_ns: int) -> int | None:
        """When `responds` may change by time alone."""
        dues = [state.heard_ns for state in self._states.values() if state.in_flight]
        dues += [state.connecting_ns for state in self._states.values() if state.connecting_ns]
        return min(
            (due + self._patience_ns + 1 for due in dues if due + self._patience_ns >= now_ns), default=None
        )
