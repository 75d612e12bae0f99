"""The share consumer's machine: operations in, chunks of acquired records out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from typing import TypeVar

import numpy as np

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.kernel import MACHINE_CODE
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns
from fairlead_kafka.consumer.share.acknowledging import AcknowledgeType, Acks, offsets_of
from fairlead_kafka.consumer.share.chunk import ShareChunk
from fairlead_kafka.consumer.share.fetcher import ShareFetcher
from fairlead_kafka.consumer.share.membership import ShareMembership
from fairlead_kafka.consumer.share.metric_names import GROUPS
from fairlead_kafka.consumer.share.metrics import KINDS, ShareConsumerMetrics, ShareMeter
from fairlead_kafka.consumer.share.operations import (
    Acknowledge,
    GetLockTimeout,
    Operation,
    Shut,
    Subscribe,
    Take,
    Taken,
    Unsubscribe,
)
from fairlead_kafka.core.closing import close_each
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Effect, Resolve
from fairlead_kafka.core.events import ConnectionEvent, Event, Submitted
from fairlead_kafka.core.handlers import Handlers
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.meters import combined
from fairlead_kafka.core.metric_table import named
from fairlead_kafka.core.network import AwaitConnection, Network
from fairlead_kafka.core.pushing import LAST_PUSH_MS, GetInstanceId
from fairlead_kafka.core.telemetry_report import Report, labels_of, report_of
from fairlead_kafka.core.traffic_meter import TrafficRecorder, sampling_of

CLOSE_MS = 4_000
"""Ms that closing waits for brokers: a second less than client classes wait for the machine."""
NOBODYS = 0
"""The number of acknowledgements that the machine makes by itself."""

T = TypeVar("T")


class ShareConsumerMachine:
    """Acquires records for polls, and reports to brokers what became of them; serves
    `share.operations`."""

    def __init__(self, settings: Settings, rng: Rng) -> None:
        sampling = sampling_of(settings)
        self.recorder = TrafficRecorder(ShareMeter(sampling), sampling, KINDS)
        self._network = Network(settings, rng, max_in_flight=1, traffic=self.recorder)
        self._group = ShareMembership(settings, rng, self._network)
        self._fetcher = ShareFetcher(
            settings,
            self._network,
            rng,
            (self._group.group_id, self._group.member_id),
            self.recorder.whole,
        )
        self.client_metrics: Callable[[int], ShareConsumerMetrics] | None = None
        """Set by the client class: gives `metrics` with its own counters, for those that are
        pushed."""
        self._network.pushing.report = self._report
        self._labels = labels_of(settings)
        self._talkers: tuple[Network | ShareMembership, ...] = (self._network, self._group)
        self._api_timeout_ns = ms_to_ns(settings["default.api.timeout.ms"])
        self._events: list[Event] = []
        self._stepping: list[Event] = []
        self._effects: list[Effect] = []
        self._takes: deque[Take] = deque()
        self._heard = NOBODYS
        """Greatest number of acknowledgements that were submitted."""
        self._waiting: list[tuple[int, Acknowledge]] = []
        self._shutting: Shut | None = None
        self._shut_by_ns = self._push_by_ns = 0
        self._leaving = self._left = False
        self._now_ns = 0
        self._closed = False
        self._handlers = Handlers()
        self._handlers.add(Subscribe, self._subscribe)
        self._handlers.add(Unsubscribe, self._unsubscribe)
        self._handlers.add(Take, self._take)
        self._handlers.add(Acknowledge, self._acknowledge)
        self._handlers.add(
            AwaitConnection,
            lambda operation: self._network.await_connection(
                operation.deadline_ns, partial(self._answer, operation.completion)
            ),
        )
        self._handlers.add(
            GetLockTimeout,
            lambda operation: self._answer(operation.completion, self._fetcher.lock_timeout_ms),
        )
        self._handlers.add(GetInstanceId, self._get_instance_id)
        self._handlers.add(Shut, self._shut)

    def receive(self, event: Event) -> None:
        """Queue `event` for the next step."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on what arrived: answers first, then operations, then what follows from both."""
        self._now_ns = self._fetcher.now_ns = self._group.now_ns = now_ns
        self.recorder.tick(now_ns)
        self._stepping, self._events = self._events, []
        for event in self._stepping:
            if isinstance(event, ConnectionEvent):
                for talker in self._talkers:
                    talker.handle(event, now_ns, wall_ms)
        for event in self._stepping:
            if isinstance(event, Submitted):
                self._submitted(event.operation)
        for talker in self._talkers:
            talker.advance(now_ns, wall_ms)
        self._fail_refused()
        self._answer_takes()
        self._fetcher.max_records = max((take.max_records for take in self._takes), default=0)
        self._fetcher.advance(self._group.assigned, self._group.version)
        self._answer_takes()
        self._answer_waiting()
        self._end()
        for talker in self._talkers:
            self._effects.extend(talker.take_effects())
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        times = [self._fetcher.deadline_ns(), *(talker.deadline_ns() for talker in self._talkers)]
        times += [take.deadline_ns for take in self._takes]
        times += [deadline_ns for deadline_ns, _ in self._waiting]
        if self._shutting is not None:
            times.append(self._push_by_ns if self._left else self._shut_by_ns)
        return min((at_ns for at_ns in times if at_ns is not None), default=None)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Fail what callers wait for: the host will not step this machine any more."""
        self._closed = True
        submitted = [
            event.operation for event in (*self._stepping, *self._events) if isinstance(event, Submitted)
        ]
        waiting = [operation for _, operation in self._waiting]
        shutting = [] if self._shutting is None else [self._shutting]
        for operation in [*submitted, *self._takes, *waiting, *shutting]:
            self._answer(operation.completion, error=error)
        close_each(partial(self._network.close, error), partial(self._group.close, error))
        effects, self._effects = self._effects, []
        return [effect for effect in effects if isinstance(effect, Resolve)]

    def metrics(self, now_ns: int, polls: ShareMeter) -> ShareConsumerMetrics:
        """All metrics by Kafka's names (`metric_names`). May be called from any thread.

        `polls`: counters of the client class.
        """
        networks, recorder = (self._network, self._group.network), self.recorder
        age_ns = self._network.metadata.age_ns(now_ns)

        def in_flight(node_id: int) -> int:
            return sum(network.in_flight(node_id) for network in networks)

        gauges = {
            "connection-count": sum(network.open_connections() for network in networks),
            "metadata-age": nan if age_ns is None else age_ns / NS_PER_S,
            "requests-in-flight": sum(map(in_flight, list(recorder.nodes))),
            "bytes-waiting": self._fetcher.undelivered_bytes(),
            "assigned-partitions": len(self._group.assigned),
            "machine-code": int(MACHINE_CODE),
        }
        whole = combined([recorder.whole.read(now_ns), polls.read(now_ns)], gauges)
        client, nodes, coordinator, fetches = GROUPS
        return {
            "consumer-share-metrics": named(client.rows, whole),
            "consumer-share-node-metrics": recorder.nodes_named(
                nodes.rows, now_ns, lambda node_id: {"requests-in-flight": in_flight(node_id)}
            ),
            "consumer-share-coordinator-metrics": named(coordinator.rows, whole),
            "consumer-share-fetch-manager-metrics": named(fetches.rows, whole),
        }

    def _report(self, now_ns: int) -> Report:
        """The report that is pushed to a cluster that asks for metrics (KIP-714)."""
        found = None if self.client_metrics is None else self.client_metrics(now_ns)
        return report_of(found, GROUPS, self._labels)

    def check(self) -> None:
        """Raise CheckFailed if copies of state differ. Called between two steps, by tests."""
        if not self._closed:
            self._fetcher.check()
            self._group.check()
            self._network.metadata.check()

    # Operations

    def _submitted(self, operation: Operation) -> None:
        if self._closed:
            self._answer(
                operation.completion, error=UsageError("this share consumer is closed; make a new one")
            )
            return
        try:
            self._handlers.handle(operation)
        except FairleadError as error:
            self._answer(operation.completion, error=error)

    def _answer(
        self, completion: Completion[T], value: T | None = None, error: Exception | None = None
    ) -> None:
        self._effects.append(Resolve(completion, value, error))

    def _subscribe(self, operation: Subscribe) -> None:
        self._group.subscribe(operation.topics)
        self._answer(operation.completion)

    def _unsubscribe(self, operation: Unsubscribe) -> None:
        self._release(self._fetcher.give_back())
        if self._group.subscribed:
            self._group.leave(lambda: self._answer(operation.completion))
        else:
            self._answer(operation.completion)

    def _release(self, chunks: Sequence[ShareChunk]) -> None:
        """Release the records of `chunks`, which no poll will take."""
        acks = []
        for chunk in chunks:
            offsets = offsets_of(chunk.acquired)
            types = np.full(len(offsets), AcknowledgeType.RELEASE, np.int8)
            acks.append(
                Acks(NOBODYS, chunk.partition, chunk.topic_id, chunk.node_id, chunk.session, offsets, types)
            )
        self._fetcher.acknowledge(acks, self._now_ns + self._api_timeout_ns)

    def _hear(self, acks: Sequence[Acks], deadline_ns: int) -> None:
        """Send the acknowledgements that were not submitted before, until `deadline_ns`
        (monotonic)."""
        fresh = [each for each in acks if each.number > self._heard]
        self._heard = max((each.number for each in fresh), default=self._heard)
        self._fetcher.acknowledge(fresh, deadline_ns)

    def _get_instance_id(self, operation: GetInstanceId) -> None:
        self._network.pushing.await_id(operation.deadline_ns, partial(self._answer, operation.completion))
        self._network.stir()

    def _take(self, operation: Take) -> None:
        self._hear(operation.acks, operation.acks_deadline_ns)
        if not self._group.subscribed:
            raise UsageError("no topic is subscribed to; call subscribe first")
        self._group.polled()
        again = any(take.completion is operation.completion for take in self._takes)
        if not again and not operation.completion.done():
            self._takes.append(operation)

    def _acknowledge(self, operation: Acknowledge) -> None:
        self._hear(operation.acks, operation.acks_deadline_ns)
        if operation.deadline_ns is None:
            self._answer(operation.completion, [])
        else:
            self._waiting.append((operation.deadline_ns, operation))

    def _shut(self, operation: Shut) -> None:
        self._closed = True
        for take in self._takes:
            self._answer(take.completion, error=UsageError("the share consumer was closed"))
        self._takes.clear()
        self._shutting = operation
        self._shut_by_ns = self._now_ns + ms_to_ns(CLOSE_MS)
        self._hear(operation.acks, self._shut_by_ns)
        self._fetcher.closing = True
        self._push_by_ns = self._now_ns + ms_to_ns(LAST_PUSH_MS)
        self._network.pushing.part(self._now_ns)
        self._network.stir()

    def _end(self) -> None:
        """Go on closing: once the sessions are over, leave the group; then close the connections,
        if the last push of metrics is answered or its time over."""
        if self._shutting is None:
            return
        late = self._now_ns >= self._shut_by_ns
        if not self._leaving and (late or self._fetcher.over()):
            self._leaving = True
            self._group.leave(self._left_group)
        elif late:
            self._left = True
        if self._left and (late or self._network.pushing.parted or self._now_ns >= self._push_by_ns):
            self._ended()

    def _left_group(self) -> None:
        self._left = True

    def _ended(self) -> None:
        shutting, self._shutting = self._shutting, None
        assert shutting is not None
        closed = UsageError("the share consumer was closed")
        self._fetcher.close(closed)
        self._answer_waiting()
        self._answer(shutting.completion, self._fetcher.outcomes.take())
        self._network.close()
        self._group.close(closed)

    # Answers

    def _fail_refused(self) -> None:
        """Fail polls that wait if a broker refuses this client (AuthenticationFailed). A later poll
        gets the outcome of a later attempt."""
        for _, error in (*self._network.take_refusals(), *self._group.take_refusals()):
            for take in self._takes:
                self._answer(take.completion, error=error)
            self._takes.clear()

    def _answer_takes(self) -> None:
        while self._takes:
            take = self._takes[0]
            error = self._group.error
            chunks = self._fetcher.take(take.max_records) if error is None else []
            if error is None and not chunks and self._fetcher.errors:
                error = self._fetcher.errors.popleft()
            if error is None and not chunks and self._now_ns < take.deadline_ns:
                return
            self._takes.popleft()
            self._group.polled()
            if error is None:
                self._answer(take.completion, Taken(chunks, self._fetcher.outcomes.take()))
            else:
                self._answer(take.completion, error=error)

    def _answer_waiting(self) -> None:
        """Answer operations that wait for acknowledgements, once all are answered or their time is
        up."""
        waiting: list[tuple[int, Acknowledge]] = []
        for deadline_ns, operation in self._waiting:
            if self._fetcher.outcomes.open == 0 or self._now_ns >= deadline_ns or self._closed:
                self._answer(operation.completion, self._fetcher.outcomes.take())
            else:
                waiting.append((deadline_ns, operation))
        self._waiting = waiting
