"""Counts the traffic of a client: for each broker, for the whole client, and by kind of request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, NamedTuple, TypeVar

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.meters import Meter, Meters, Sampling, combined
from fairlead_kafka.core.metric_table import Metric, named
from fairlead_kafka.wire import ApiKey


class NodeMeter(Meter):
    """Counters of one broker, or one bootstrap server, whose node id is negative."""

    TOTALS: ClassVar[tuple[str, ...]] = (
        "requests", "request_bytes", "responses", "response_bytes", "answers", "latency_ns",
    )  # fmt: skip
    MAXIMA: ClassVar[tuple[str, ...]] = ("request_max_bytes", "latency_max_ns")
    __slots__ = (
        "answers", "latency_max_ns", "latency_ns", "request_bytes", "request_max_bytes", "requests",
        "response_bytes", "responses",
    )  # fmt: skip
    requests: int
    request_bytes: int
    responses: int
    response_bytes: int
    answers: int
    latency_ns: int
    request_max_bytes: int
    latency_max_ns: int


class ClientMeter(NodeMeter):
    """Counters of a client as a whole."""

    TOTALS = (*NodeMeter.TOTALS, "connections_made", "connections_ended")
    __slots__ = ("connections_ended", "connections_made")
    connections_made: int
    connections_ended: int

    def spend(self, kind: str, count: int, duration_ns: int) -> None:
        """Count `count` events that took `duration_ns`: in the attributes `<kind>s`, `<kind>_ns`
        and `<kind>_max_ns`. For events that are rare."""
        total, spent, largest = f"{kind}s", f"{kind}_ns", f"{kind}_max_ns"
        setattr(self, total, getattr(self, total) + count)
        setattr(self, spent, getattr(self, spent) + duration_ns)
        setattr(self, largest, max(getattr(self, largest), duration_ns))


M = TypeVar("M", bound=ClientMeter)


class Kinds(NamedTuple):
    """Which requests are measured, and as what."""

    timed: frozenset[ApiKey]
    """Requests whose latency counts as the client's `request-latency`."""
    counted: Mapping[ApiKey, str] = {}
    """Requests that are counted by themselves: the `kind` for `ClientMeter.spend`."""


class TrafficRecorder(Generic[M]):
    """Implements `core.traffic.Traffic`. Its methods run in the machine's step; `nodes_named` may
    run on any thread."""

    def __init__(self, whole: M, sampling: Sampling, kinds: Kinds) -> None:
        self.whole = whole
        self.sampling = sampling
        self.now_ns = 0
        self.nodes: Meters[int, NodeMeter] = Meters(lambda: NodeMeter(sampling))
        self._timed, self._counted = kinds

    def tick(self, now_ns: int) -> None:
        """Set the time of this step, ns."""
        self.now_ns = now_ns
        if now_ns >= self.whole.rolls_ns:
            self.whole.roll(now_ns)

    def wrote(self, node_id: int, size_bytes: int) -> None:
        """Count a request that was written to a broker."""
        for meter in (self.nodes.of(node_id, self.now_ns), self.whole):
            meter.requests += 1
            meter.request_bytes += size_bytes
            if size_bytes > meter.request_max_bytes:
                meter.request_max_bytes = size_bytes

    def read_bytes(self, node_id: int, size_bytes: int, answers: int) -> None:
        """Count bytes that came from a broker, and the whole answers in them."""
        for meter in (self.nodes.of(node_id, self.now_ns), self.whole):
            meter.responses += answers
            meter.response_bytes += size_bytes

    def connected(self, node_id: int) -> None:
        """Count a connection that was made to a broker."""
        self.whole.connections_made += 1

    def disconnected(self, node_id: int) -> None:
        """Called when a connection that had been made ended."""
        self.whole.connections_ended += 1

    def served(self, node_id: int, api_key: ApiKey, latency_ns: int) -> None:
        """Called when a request was answered, `latency_ns` after it was written."""
        if api_key in self._timed:
            self.timed(node_id, latency_ns)
        kind = self._counted.get(api_key)
        if kind is not None:
            self.whole.spend(kind, 1, latency_ns)

    def timed(self, node_id: int, latency_ns: int) -> None:
        """Count an answer whose latency is the client's `request-latency`."""
        for meter in (self.nodes.of(node_id, self.now_ns), self.whole):
            meter.answers += 1
            meter.latency_ns += latency_ns
            if latency_ns > meter.latency_max_ns:
                meter.latency_max_ns = latency_ns

    def nodes_named(
        self, rows: tuple[Metric, ...], now_ns: int, gauges: Callable[[int], Mapping[str, float]]
    ) -> dict[str, dict[str, float]]:
        """The metrics of each broker, by "node-<id>"; `gauges(node id)` gives a node's present
        values."""
        return {
            f"node-{node_id}": named(rows, combined([meter.read(now_ns)], gauges(node_id)))
            for node_id, meter in list(self.nodes.items())
        }


def sampling_of(settings: Settings) -> Sampling:
    """The windows that a client's settings ask for."""
    return Sampling(ms_to_ns(settings["metrics.sample.window.ms"]), settings["metrics.num.samples"])
