"""The consumer machine: operations in, chunks of fetched data out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, FairleadError, UsageError
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, NO_OFFSET, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.consumer.absent import AbsentTopics
from fairlead_kafka.consumer.fetcher import Fetcher
from fairlead_kafka.consumer.gauges import Gauges, of_partitions
from fairlead_kafka.consumer.groups import Gate, GroupDesk, Member, make_member
from fairlead_kafka.consumer.metric_names import GROUPS
from fairlead_kafka.consumer.metrics import ConsumerMetrics, PollRecorder, Recorder, read
from fairlead_kafka.consumer.operations import (
    Assign,
    AssignRange,
    DescribeTopics,
    FindOffsets,
    GetPosition,
    Operation,
    Seek,
    SetPaused,
    Shut,
    Take,
)
from fairlead_kafka.consumer.parting import Parting
from fairlead_kafka.consumer.partition import (
    NO_END,
    RANGE_MISSING_GRACE_MS,
    Chunk,
    PartitionState,
    Phase,
    Signal,
    failure_to_report,
    missing,
)
from fairlead_kafka.consumer.placing import Placing
from fairlead_kafka.consumer.position_lookup import first_names, position_error
from fairlead_kafka.consumer.topics import describe_topics
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.closing import close_each
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Effect, Resolve
from fairlead_kafka.core.events import ConnectionEvent, Event, Submitted
from fairlead_kafka.core.group_offsets import Position
from fairlead_kafka.core.handlers import Handlers
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import AwaitConnection, Network
from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST, OffsetAndTimestamp, leader_problem
from fairlead_kafka.core.pushing import GetInstanceId
from fairlead_kafka.core.script import Scripts
from fairlead_kafka.core.telemetry_report import Report, labels_of, report_of
from fairlead_kafka.core.traffic_meter import sampling_of

T = TypeVar("T")


class ConsumerMachine:
    """Reads partitions ahead of polls; serves `consumer.operations` and `groups.operations`.

    `gate`: shared with the client class of a consumer that has a group.
    """

    def __init__(self, settings: Settings, rng: Rng, gate: Gate | None = None) -> None:
        self._settings, self._rng = settings, rng
        self.recorder = Recorder(sampling_of(settings))
        # One fetch, and room for look-ups beside it.
        self.network = Network(settings, rng, max_in_flight=3, traffic=self.recorder)
        self._gate = gate or Gate()
        self._group = (
            None
            if settings["group.id"] is None
            else make_member(settings, rng, self.network, self._gate, self, self.recorder)
        )
        self.client_metrics: Callable[[int], ConsumerMetrics] | None = None
        """Set by the client class: gives `metrics` with its counters, to be pushed (KIP-714)."""
        self.network.pushing.report = self._report
        self._gauges = Gauges([self.network, *([] if self._group is None else [self._group.network])])
        self._talkers: list[Network | Member | Parting] = [self.network, *filter(None, [self._group])]
        """Everything with connections; an event goes to each, which ignores those of others."""
        self._scripts = Scripts(
            self.network, rng, Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        )
        self._partitions: dict[TopicPartition, PartitionState] = {}
        committed = None if self._group is None else self._group.committed
        self._placing = Placing(
            settings,
            self.network.metadata,
            self._scripts,
            self._partition,
            lambda state: self._fetcher.back_off(state),
            committed,
        )
        self._fetcher = Fetcher(
            settings, self.network, rng, self.recorder, self._placing.out_of_range, self._placing.truncated
        )
        self._generation = 0
        self._moved: list[PartitionState] = []
        self._failed: list[PartitionState] = []
        self._absent = AbsentTopics(settings["allow.auto.create.topics"])
        self._ranged = False
        self._events: list[Event] = []
        self._stepping: list[Event] = []
        self._effects: list[Effect] = []
        self._takes: deque[Take] = deque()
        self._askers: list[GetPosition] = []
        self._looked_up: Counter[str] = Counter()
        self._now_ns = 0
        self._metadata_version = -1
        self._closed = False
        self._handlers = self._make_handlers()

    def _make_handlers(self) -> Handlers:
        handlers = Handlers()
        handlers.add(Assign, self._assign)
        handlers.add(AssignRange, self._assign_range)
        handlers.add(Seek, self._seek)
        handlers.add(SetPaused, self._set_paused)
        handlers.add(Take, self._take)
        handlers.add(GetPosition, self._get_position)
        handlers.add(FindOffsets, self._find_offsets)
        handlers.add(DescribeTopics, self._describe_topics)
        handlers.add(
            AwaitConnection,
            lambda operation: self.network.await_connection(
                operation.deadline_ns, partial(self.answer, operation.completion)
            ),
        )
        handlers.add(GetInstanceId, self._get_instance_id)
        handlers.add(Shut, self._shut)
        handlers.update(GroupDesk(self, self._group).handlers)
        return handlers

    def receive(self, event: Event) -> None:
        """Queue `event` for the next step."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on events: answers, then operations, then what follows. Returns the effects."""
        self._now_ns = self._fetcher.now_ns = self._placing.now_ns = now_ns
        if self._group is not None:
            self._group.now_ns = now_ns
        self.recorder.tick(now_ns)
        self._stepping, self._events = self._events, []
        for event in self._stepping:
            if isinstance(event, Submitted):
                self._submitted(event.operation)
            elif isinstance(event, ConnectionEvent):
                for talker in self._talkers:
                    talker.handle(event, now_ns, wall_ms)
        for talker in self._talkers:
            talker.advance(now_ns, wall_ms)
        self._fail_refused()
        self._watch_metadata()
        self._place()
        self._scripts.advance(now_ns)
        self._place()
        self._answer_takes()
        self._answer_askers()
        self._fetcher.advance()
        for talker in self._talkers:
            self._effects.extend(talker.take_effects())
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        times = [
            self._scripts.deadline_ns(),
            self._fetcher.deadline_ns(),
            *(talker.deadline_ns() for talker in self._talkers),
            *(take.deadline_ns for take in self._takes),
            *(asker.deadline_ns for asker in self._askers),
        ]
        return min((at_ns for at_ns in times if at_ns is not None), default=None)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Fail all operations with `error`: the host will not step this machine any more."""
        self._closed = True
        events = (*self._stepping, *self._events)
        submitted = [event.operation for event in events if isinstance(event, Submitted)]
        for completion in [each.completion for each in (*submitted, *self._takes, *self._askers)]:
            self.answer(completion, error=error)
        close_each(partial(self._scripts.close, error), partial(self.network.close, error))
        if self._group is not None:
            close_each(partial(self._group.close, error))
        effects, self._effects = self._effects, []
        return [effect for effect in effects if isinstance(effect, Resolve)]

    def metrics(
        self, now_ns: int, polls: PollRecorder, held: Callable[[], Mapping[TopicPartition, Position]]
    ) -> ConsumerMetrics:
        """All metrics by Kafka's names (`metric_names`). May be called from any thread.

        `polls` are the counters of the client class; `held()` gives the positions of the chunks
        that it holds. It is called after the machine's own chunks are looked at, so that a chunk
        which moves in between is not missed.
        """
        recorder, partitions = self.recorder, self._partitions
        own = self._gauges.of_client(now_ns, list(recorder.nodes))
        own["bytes-waiting"] = self._fetcher.waiting.size_bytes()
        own["assigned-partitions"] = len(partitions)
        found = of_partitions(partitions, {**self.positions(), **held()})
        return read(recorder, polls, now_ns, own, self._gauges.in_flight, found)

    def _report(self, now_ns: int) -> Report:
        """The report that is pushed to a cluster that asks for metrics (KIP-714)."""
        found = None if self.client_metrics is None else self.client_metrics(now_ns)
        return report_of(found, GROUPS, labels_of(self._settings))

    def check(self) -> None:
        """Raise CheckFailed if copies of state differ. Called between two steps, by tests and the
        simulator."""
        if not self._closed:
            self._fetcher.check(self._partitions)
            self.network.metadata.check()
            failed = [state for state in self._partitions.values() if state.error is not None]
            holds(
                "a partition failed and no poll will report it", bool(self._moved) or failed == self._failed
            )
            if self._group is not None:  # one that was shut reads nothing, and may not have left
                self._group.check()

    # Operations

    def _submitted(self, operation: Operation) -> None:
        if self._closed:
            self.answer(operation.completion, error=UsageError("this consumer is closed; make a new one"))
            return
        try:
            self._handlers.handle(operation)
        except FairleadError as error:
            self.answer(operation.completion, error=error)

    def answer(
        self, completion: Completion[T], value: T | None = None, error: Exception | None = None
    ) -> None:
        """Complete an operation with its value or its error."""
        self._effects.append(Resolve(completion, value, error))

    def _assign(self, operation: Assign) -> None:
        self._check_unsubscribed()
        self.adopt(operation.partitions)
        self.answer(operation.completion, self.generations())

    def _check_unsubscribed(self) -> None:
        if self._group is not None and self._group.subscribed:
            raise UsageError("the group assigns the partitions; call unsubscribe first")

    def _assign_range(self, operation: AssignRange) -> None:
        self._check_unsubscribed()
        if not 0 <= operation.start <= operation.end:
            raise UsageError(
                f"range {operation.start} to {operation.end} of {operation.partition}: needs 0 <= start <= "
                "end"
            )
        state = self._new(operation.partition)
        state.resets = False
        state.end = operation.end
        state.position = operation.start
        state.signal(Signal.SEEK)
        self._replace({operation.partition: state})
        self._ranged = True
        self.answer(operation.completion, self.generations())

    def _seek(self, operation: Seek) -> None:
        states = [self._state(partition) for partition in operation.positions]
        for state, position in zip(states, operation.positions.values(), strict=True):
            self._generation += 1
            state.generation = self._generation
            state.error, state.last_epoch, state.topic_id = None, NO_LEADER_EPOCH, NO_TOPIC_ID
            state.retry_at_ns = state.failures = 0
            if position in (EARLIEST, LATEST):
                state.position, state.target = NO_OFFSET, position
                state.signal(Signal.SEEK_END)
            else:
                state.position = position
                state.signal(Signal.SEEK)
        self._fetcher.drop_stale()
        self.answer(operation.completion, self.generations())

    def _set_paused(self, operation: SetPaused) -> None:
        waiting = self._fetcher.waiting
        for state in [self._state(partition) for partition in operation.partitions]:
            if state.paused != operation.paused:
                state.paused = operation.paused
                (waiting.park if operation.paused else waiting.unpark)(state)
        self.answer(operation.completion)

    def _take(self, operation: Take) -> None:
        if not self._partitions and (self._group is None or not self._group.subscribed):
            raise UsageError("no partition is assigned; call assign first, or subscribe")
        again = any(take.completion is operation.completion for take in self._takes)
        if not again and not operation.completion.done():
            self._takes.append(operation)

    def _get_position(self, operation: GetPosition) -> None:
        self._state(operation.partition)
        self._askers.append(operation)

    def _get_instance_id(self, operation: GetInstanceId) -> None:
        self.network.pushing.await_id(operation.deadline_ns, partial(self.answer, operation.completion))
        self.network.stir()

    def _find_offsets(self, operation: FindOffsets) -> None:
        def done(
            found: dict[TopicPartition, OffsetAndTimestamp | BrokerError | None] | None,
            error: Exception | None,
        ) -> None:
            results = found or {}
            wrong = next((value for value in results.values() if isinstance(value, BrokerError)), error)
            offsets = {
                partition: value for partition, value in results.items() if not isinstance(value, BrokerError)
            }
            self.answer(operation.completion, offsets, wrong)
            self._looked_up -= asked
            self._forget(asked)

        asked = Counter(dict.fromkeys((partition.topic for partition in operation.targets), 1))
        self._looked_up += asked
        for topic in asked:
            self.network.metadata.want(topic, self._now_ns)
        self._scripts.start(
            f"looking up offsets of {first_names(operation.targets)}",
            self._placing.list_offsets(operation.targets),
            operation.deadline_ns,
            done,
        )

    def _describe_topics(self, operation: DescribeTopics) -> None:
        create = bool(self._settings["allow.auto.create.topics"])
        self._scripts.start(
            "listing topics" if operation.topics is None else f"describing {', '.join(operation.topics)}",
            describe_topics(operation.topics, allow_auto_topic_creation=create),
            operation.deadline_ns,
            lambda value, error: self.answer(operation.completion, value, error),
        )

    def _shut(self, operation: Shut) -> None:
        self._closed = True
        closed = UsageError("the consumer was closed")
        waiting: list[Operation] = [*self._takes, *self._askers]
        for other in waiting:
            self.answer(other.completion, error=closed)
        self._takes.clear()
        self._askers.clear()
        self._replace({})
        self._scripts.close(closed)
        last_push = self.network.pushing.last_push(self._now_ns)
        self.network.close()
        if self._group is not None:
            self._group.close(closed)
        parting = Network(self._settings, self._rng, max_in_flight=1, beside=self.network)
        parting.metadata.saw_nodes(self.network.metadata.nodes.values())
        last = Parting(parting, self._now_ns, lambda: self.answer(operation.completion))
        last.end_sessions(self._fetcher.open_sessions())
        if last_push is not None:
            last.push(*last_push)
        self._talkers.append(last)

    # The assignment, for the group and for ourselves

    def assigned(self) -> Sequence[TopicPartition]:
        """The partitions assigned now."""
        return list(self._partitions)

    def adopt(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these partitions from now on; those assigned before keep their positions."""
        kept = {partition: self._partitions.get(partition) for partition in partitions}
        self._replace({partition: state or self._new(partition) for partition, state in kept.items()})
        for state in self._partitions.values():
            if state.end != NO_END or not state.resets:  # it was a range: an ordinary partition again
                state.end, state.resets = NO_END, True

    def generations(self) -> dict[TopicPartition, int]:
        """The generation of each partition assigned."""
        return {partition: state.generation for partition, state in self._partitions.items()}

    def positions(self) -> dict[TopicPartition, Position]:
        """Position of the next record to return, of each assigned partition that has one."""
        waiting = self._fetcher.waiting.positions()
        return {
            partition: waiting.get(partition) or Position(state.position, state.last_epoch)
            for partition, state in list(self._partitions.items())
            if state.position != NO_OFFSET
        }

    def _new(self, partition: TopicPartition) -> PartitionState:
        self._generation += 1
        return PartitionState(partition, self._generation, self._moved)

    def _partition(self, partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(partition)

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._partitions.get(partition)
        if state is None:
            raise UsageError(f"{partition} is not assigned; call assign first")
        return state

    def _replace(self, partitions: dict[TopicPartition, PartitionState]) -> None:
        before, self._partitions = self._partitions, partitions
        self._forget(dict.fromkeys(partition.topic for partition in before))
        self._fetcher.set_partitions(partitions)
        self.recorder.keep(partitions)
        self._metadata_version = -1
        self._ranged = False
        self._moved[:] = partitions.values()
        self._failed = []  # those that are still here are found again among the moved

    def _forget(self, topics: Iterable[str]) -> None:
        """Have metadata forget the topics that nothing needs any more."""
        needed = {partition.topic for partition in self._partitions}
        for topic in topics:
            if topic not in needed and self._looked_up[topic] <= 0:
                self.network.metadata.forget(topic)

    def _watch_metadata(self) -> None:
        """Keep the topics wanted, and note which partitions the cluster does not have."""
        metadata = self.network.metadata
        if self._metadata_version == metadata.version:
            return
        topics = {partition.topic: None for partition in self._partitions}
        for topic in topics:
            metadata.want(topic, self._now_ns)
        self._absent.look(metadata, topics)
        self._metadata_version = metadata.version
        for partition, state in self._partitions.items():
            problem = leader_problem(metadata, partition)
            if problem is None:
                state.missing_since_ns = None
            elif problem.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                state.missing_since_ns = (
                    self._now_ns if state.missing_since_ns is None else state.missing_since_ns
                )
            elif not problem.retriable:
                state.fail(problem)
            if problem is not None:
                metadata.request_update()

    def _place(self) -> None:
        """Look at partitions whose phase changed: ask for the positions of those that have none,
        and fail operations that wait for a partition which failed."""
        if not self._moved:
            return
        unplaced = [
            state
            for state in self._moved
            if state.phase is Phase.UNPLACED and self._partitions.get(state.partition) is state
        ]
        self._placing.place(unplaced)
        self._moved.clear()
        self._failed = [state for state in self._partitions.values() if state.error is not None]

    # Answers

    def _fail_refused(self) -> None:
        """Fail operations that wait, with AuthenticationFailed, if a broker refuses this client."""
        for node_id, error in self.network.take_refusals() + (
            [] if self._group is None else self._group.take_refusals()
        ):
            waiting: list[Take | GetPosition] = [*self._takes, *self._askers]
            for operation in waiting:
                self.answer(operation.completion, error=error)
            self._takes.clear()
            self._askers.clear()
            if node_id is None:
                self._scripts.refuse(error)

    def _answer_takes(self) -> None:
        no_chunks: list[Chunk] = []
        error = None if self._group is None else self._group.error
        while self._takes and (error is not None or self._gate.change is not None):  # that comes first
            self.answer(self._takes.popleft().completion, no_chunks, error)
        gone = partial(missing, self._partitions, self.network.metadata, self._now_ns)
        while self._takes:
            failed = self._failure()
            chunks = self._fetcher.waiting.take(self._takes[0].max_bytes) if failed is None else []
            if self._ranged and failed is None and not chunks:
                failed = gone(RANGE_MISSING_GRACE_MS)  # it was there before
            if failed is None and not chunks and not self._finished():
                break
            self.answer(self._takes.popleft().completion, chunks, failed)
        for take in [take for take in self._takes if self._now_ns >= take.deadline_ns]:
            self._takes.remove(take)
            self.answer(take.completion, no_chunks, self._failure(late=True) or gone())

    def _failure(self, late: bool = False) -> Exception | None:
        telling = [
            state
            for state in self._failed
            if not state.paused and not self._fetcher.waiting.of_partition(state.partition)
        ]
        return failure_to_report(telling, late or len(telling) == len(self._partitions))

    def _finished(self) -> bool:
        """True if a range is fetched to its end; not if paused: records may wait in the client."""
        return self._ranged and all(
            state.position >= state.end and not state.paused for state in self._partitions.values()
        )

    def _answer_askers(self) -> None:
        waiting: list[GetPosition] = []
        for asker in self._askers:
            state = self._partitions.get(asker.partition)
            error = position_error(asker, state, self.network, self._now_ns)
            if error is not None:
                self.answer(asker.completion, error=error)
            elif state is not None and state.position != NO_OFFSET:
                self.answer(asker.completion, self.positions()[asker.partition].offset)
            else:
                waiting.append(asker)
        self._askers = waiting
