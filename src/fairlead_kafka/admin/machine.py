"""The admin machine: runs the script of each call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from fairlead_kafka.admin.metric_names import GROUPS
from fairlead_kafka.admin.metrics import KINDS, AdminMetrics, read
from fairlead_kafka.admin.scripts import AdminScript
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.closing import close_each
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Effect, Resolve
from fairlead_kafka.core.events import ConnectionEvent, Event, Submitted
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.network import AwaitConnection, Network
from fairlead_kafka.core.pushing import LAST_PUSH_MS, GetInstanceId
from fairlead_kafka.core.script import Scripts
from fairlead_kafka.core.telemetry_report import report_of
from fairlead_kafka.core.traffic_meter import ClientMeter, TrafficRecorder, sampling_of

IN_FLIGHT_MAX = 8
"""Requests under way to one broker at most; answers come in order, and calls of several threads
should not wait for each other's connection."""

T = TypeVar("T")


@dataclass(slots=True)
class Perform(Generic[T]):
    """Event: begin a call. `make` builds its script, `what` names it in errors, `topics` have to be
    in the metadata while the script runs. `deadline_ns` is on the monotonic clock."""

    completion: Completion[T]
    deadline_ns: int
    what: str
    make: Callable[[Metadata], AdminScript[T]]
    topics: Sequence[str] = ()


@dataclass(slots=True)
class Shut:
    """Event: close the connections and fail what is under way. Completed with None."""

    completion: Completion[None]


class AdminMachine:
    """Runs admin calls; takes `Perform`, `AwaitConnection`, `GetInstanceId` and `Shut`."""

    def __init__(self, settings: Settings, rng: Rng) -> None:
        sampling = sampling_of(settings)
        self.recorder = TrafficRecorder(ClientMeter(sampling), sampling, KINDS)
        self.network = Network(settings, rng, max_in_flight=IN_FLIGHT_MAX, traffic=self.recorder)
        self.network.pushing.report = lambda now_ns: report_of(self.metrics(now_ns), GROUPS, {})
        self._scripts = Scripts(
            self.network, rng, Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        )
        self._events: list[Event] = []
        self._stepping: list[Event] = []
        self._effects: list[Effect] = []
        self._wanted: Counter[str] = Counter()
        self._closed = False
        self._parting: tuple[int, Shut] | None = None

    def receive(self, event: Event) -> None:
        """Queue `event` for the next step."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived, and return the effects to carry out. `now_ns` is the
        monotonic clock, `wall_ms` milliseconds since 1970."""
        self.recorder.tick(now_ns)
        self._stepping, self._events = self._events, []
        for event in self._stepping:
            if isinstance(event, Submitted):
                self._submitted(event.operation, now_ns)
            elif isinstance(event, ConnectionEvent):
                self.network.handle(event, now_ns, wall_ms)
        self.network.advance(now_ns, wall_ms)
        self._part(now_ns)
        for node_id, error in self.network.take_refusals():
            if node_id is None:
                self._scripts.refuse(error)
        self._scripts.advance(now_ns)
        self._effects.extend(self.network.take_effects())
        effects, self._effects = self._effects, []
        return effects

    def metrics(self, now_ns: int) -> AdminMetrics:
        """All metrics by Kafka's names (`metric_names`). May be called from any thread."""
        return read(self.recorder, self.network, now_ns)

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        times = [self.network.deadline_ns(), self._scripts.deadline_ns()]
        if self._parting is not None:
            times.append(self._parting[0])
        return min((at_ns for at_ns in times if at_ns is not None), default=None)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Complete all calls with `error`: the host will not step this machine any more."""
        self._closed = True
        close_each(partial(self._scripts.close, error), partial(self.network.close, error))
        if self._parting is not None:
            self._resolve(self._parting[1].completion, error=error)
            self._parting = None
        for event in [*self._stepping, *self._events]:
            if isinstance(event, Submitted):
                self._resolve(event.operation.completion, error=error)
        effects, self._effects = self._effects, []
        return [effect for effect in effects if isinstance(effect, Resolve)]

    def _part(self, now_ns: int) -> None:
        """While closing: close the connections, once the last push of metrics is answered or its
        time is over."""
        if self._parting is not None and (now_ns >= self._parting[0] or self.network.pushing.parted):
            (_, shut), self._parting = self._parting, None
            self.network.close()
            self._resolve(shut.completion)

    def _submitted(
        self, operation: Perform[object] | AwaitConnection | GetInstanceId | Shut, now_ns: int
    ) -> None:
        if self._closed:
            self._resolve(
                operation.completion, error=UsageError("this admin client is closed; make a new one")
            )
        elif isinstance(operation, Shut):
            self._closed = True
            self._scripts.close(UsageError("the admin client was closed"))
            self.network.pushing.part(now_ns)
            self.network.stir()
            self._parting = now_ns + ms_to_ns(LAST_PUSH_MS), operation
        elif isinstance(operation, GetInstanceId):
            self.network.pushing.await_id(operation.deadline_ns, partial(self._resolve, operation.completion))
            self.network.stir()
        elif isinstance(operation, AwaitConnection):
            self.network.await_connection(operation.deadline_ns, partial(self._resolve, operation.completion))
        else:
            self._perform(operation, now_ns)

    def _perform(self, operation: Perform[T], now_ns: int) -> None:
        def done(value: T | None, error: Exception | None) -> None:
            self._wanted -= Counter(operation.topics)
            for topic in operation.topics:
                if self._wanted[topic] <= 0:
                    self.network.metadata.forget(topic)
            self._resolve(operation.completion, value, error)

        try:
            script = operation.make(self.network.metadata)
        except Exception as error:  # an argument of no use is its caller's affair, as within the script
            self._resolve(operation.completion, error=error)
            return
        self._wanted.update(operation.topics)
        for topic in operation.topics:
            self.network.metadata.want(topic, now_ns)
        self._scripts.start(operation.what, script, operation.deadline_ns, done)

    def _resolve(
        self, completion: Completion[T], value: T | None = None, error: Exception | None = None
    ) -> None:
        self._effects.append(Resolve(completion, value, error))
