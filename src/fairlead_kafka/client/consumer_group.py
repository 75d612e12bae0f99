"""A consumer's part in its group: rebalances, the listener and commits, for both client APIs.

The machine does not change an assignment while the application reads: it notes the change at the
gate (`consumer.groups.gate`), and the next poll makes it, with calls of the listener, before it
looks for records.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.client.consumer_asking import Asking
from fairlead_kafka.client.hosting import Steps, wait_for, wait_until
from fairlead_kafka.client.offsets import as_offsets
from fairlead_kafka.consumer.groups import (
    NO_GROUP,
    Acknowledge,
    Commit,
    FindCommitted,
    Gate,
    GetGroup,
    GetPositions,
    GetSubscription,
    GroupChange,
    Subscribe,
    SubscriptionPattern,
    Unsubscribe,
)
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata, Position
from fairlead_kafka.runtime import Completion

LOGGER = GuardedLogger("fairlead_kafka.consumer")
T = TypeVar("T")
Made = tuple[bool, Mapping[TopicPartition, int]]
"""Whether a change still stands, and the generations of what is assigned now."""


_LISTENING: ContextVar[bool] = ContextVar("listening", default=False)
"""True in a coroutine of a listener, and in the tasks that it begins: these cannot wait for it."""


@dataclass(slots=True)
class _Making:
    """A change that is being made, in as many polls as that takes, and how far it is."""

    change: GroupChange
    revoked: Completion[object] | None = None
    """The listener's call about partitions that go."""
    made: Completion[Made] | None = None
    """Answer of the machine, which was asked to make the change."""
    stands: bool | None = None
    """Whether the change still stood; None: it is not made."""
    assigned: Completion[object] | None = None
    """The listener's call about partitions that came."""


class RebalanceListener:
    """Called when partitions of a subscribed consumer change; methods of this base do nothing.

    Called within polls (and `unsubscribe`, `close`), on the caller's thread; of an AsyncConsumer
    the methods may be coroutines. An exception of a method is raised by the poll, once the change
    is made. Kafka's counterpart: `ConsumerRebalanceListener`.
    """

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> object:
        """Called with the partitions that were added, at the end of a rebalance. This is the place
        to seek."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> object:
        """Called with the partitions that are about to be taken away: the last moment to commit
        work on their records."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> object:
        """Called with partitions that are gone because the group went on without this consumer.

        Others may be reading them. Calls `on_revoked` unless overridden.
        """
        return self.on_revoked(partitions)


class AwaitUser(Protocol):
    """Runs a coroutine of the application's on the running event loop."""

    def __call__(self, coroutine: Awaitable[T]) -> Completion[T]:
        """Begin `coroutine`; the completion has its result or its error."""


class Holdings(Protocol):
    """Partitions assigned, and what is fetched of them (`consumer_fetched.Fetched`)."""

    assigned: dict[TopicPartition, int]

    def moved(self, generations: Mapping[TopicPartition, int], *, replaces: bool) -> None:
        """Note the generations of partitions, and drop chunks of older ones."""

    def held(self) -> dict[TopicPartition, Position]:
        """First positions, by partition, of chunks taken from the machine and not yet returned."""


class ConsumerGroup:
    """State and steps of a consumer that may have a group.

    Without `group.id` polls skip the group, and `subscribe`, `commit`, `committed` and
    `group_metadata` raise UsageError.
    """

    def __init__(self, asking: Asking, fetched: Holdings, gate: Gate, await_user: AwaitUser | None) -> None:
        settings = asking.settings
        self._asking = asking
        self._fetched = fetched
        self._gate = gate
        self._await_user = await_user
        self._has_group = settings["group.id"] is not None
        self._listener = RebalanceListener()
        self._subscribed = False
        self._auto_commits: bool = self._has_group and settings["enable.auto.commit"]
        self._auto_interval_ns = ms_to_ns(settings["auto.commit.interval.ms"])
        self._auto_at_ns: int | None = None
        self._auto_committing: Completion[None] | None = None
        self._last_committed: dict[TopicPartition, int] = {}
        self._making: _Making | None = None
        """Change that a poll began to make; if that is cancelled, the next poll goes on with it."""

    # Calls

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None,
    ) -> Steps[None]:
        """Subscribe to topics; see `Consumer.subscribe`."""
        self._check_group("subscribe", ", or assign partitions by hand")
        if isinstance(topics, str):
            raise UsageError(
                f"subscribe: expected several topics, got the text {topics!r}; put it into a list, or "
                "compile it for a pattern"
            )
        pattern = topics if isinstance(topics, re.Pattern | SubscriptionPattern) else None
        if isinstance(topics, re.Pattern) and not isinstance(topics.pattern, str):
            raise UsageError("subscribe: names of topics are text; compile a pattern of text, not of bytes")
        names = [] if isinstance(topics, re.Pattern | SubscriptionPattern) else list(topics)
        if not names and pattern is None:
            raise UsageError("subscribe: no topics; unsubscribe ends a subscription")
        yield from self._asking.ask(Subscribe, names, pattern)
        self._listener = listener or RebalanceListener()
        self._subscribed = True

    def unsubscribe(self) -> Steps[None]:
        """Leave the group, or give up what is assigned by hand; see `Consumer.unsubscribe`."""
        self._asking.check()
        if self._subscribed:
            yield from self._leave(None)
        else:
            yield from self._auto_commit_now(None)
            yield from self._asking.ask(Unsubscribe)
            self._fetched.moved({}, replaces=True)

    def subscription(self) -> Steps[list[str]]:
        """The topics subscribed to."""
        return list((yield from self._asking.ask(GetSubscription)))

    def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None, timeout_s: float | None
    ) -> Steps[None]:
        """Commit offsets, or all positions; see `Consumer.commit` for time-out and errors."""
        self._check_group("commit")
        given = None if offsets is None else as_offsets("commit", offsets)
        deadline_ns = self._asking.deadline_ns(timeout_s)
        yield from self._asking.connect_first(timeout_s)
        wanted = given
        if wanted is None:
            wanted = {of: position.to_commit() for of, position in (yield from self._positions()).items()}
        if wanted:
            with self._asking.polls.timed("commit_call_ns"):
                yield from self._asking.ask(Commit, deadline_ns, wanted)
            self._note_committed(wanted)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Committed offset of each partition; None where there is none. See
        `Consumer.committed`."""
        wanted = [TopicPartition(*each) for each in partitions]
        self._check_group("committed")
        if not wanted:
            return {}
        deadline_ns = self._asking.deadline_ns(timeout_s)
        yield from self._asking.connect_first(timeout_s)
        found: dict[TopicPartition, OffsetAndMetadata | None]
        with self._asking.polls.timed("committed_call_ns"):
            found = yield from self._asking.ask(FindCommitted, deadline_ns, wanted)
        return found

    def group_metadata(self) -> Steps[GroupMetadata]:
        """Group, generation and member id of this consumer."""
        self._check_group("group_metadata")
        return (yield from self._asking.ask(GetGroup))

    def _check_group(self, call: str, instead: str = "") -> None:
        self._asking.check()
        if not self._has_group:
            raise UsageError(f"{call}: {NO_GROUP}{instead}")

    # What polls owe the group

    def tend(self) -> Steps[None]:
        """Do what the group needs at a poll: note that the application polls, auto-commit if that
        is due, and make the changes of the assignment that the machine has noted."""
        if not self._has_group:
            return
        now_ns = self._asking.now_ns()
        self._gate.polled_ns = now_ns
        if self._auto_commits and now_ns >= (self._auto_at_ns or 0):
            if self._auto_at_ns is not None:
                yield from self._commit_in_background()
            self._auto_at_ns = now_ns + self._auto_interval_ns
        if self._making is not None:  # a poll was cancelled in the middle of a change
            yield from self._make(self._making)
        while (change := self._gate.change) is not None:
            self._making = _Making(change)
            yield from self._make(self._making)

    def called_away(self) -> bool:
        """True if a poll has to tend to its group before it goes on waiting."""
        return self._gate.change is not None

    def _make(self, making: _Making) -> Steps[None]:
        """Make a change, from where the last poll left it: call the listener, have the machine make
        it, and call the listener again, unless the change no longer holds. Raises what the listener
        raised."""
        change = making.change
        failure: Exception | None = None
        if change.revoked:
            if making.revoked is None:
                if not change.lost:
                    yield from self._auto_commit_now(None)
                heard = self._listener.on_lost if change.lost else self._listener.on_revoked
                kind = "lost_call" if change.lost else "revoked_call"
                making.revoked = self._call_listener(heard, change.revoked, kind)
            failure = yield from _failure_of(making.revoked)
        if making.made is None:
            made: Completion[Made] = Completion()
            self._asking.submit(Acknowledge(made, change.number))
            making.made = made
        if making.stands is None:
            stands, generations = yield from wait_for(making.made)
            self._fetched.moved(generations, replaces=True)
            making.stands = stands
            for of in change.revoked:
                self._last_committed.pop(of, None)
        if making.stands and change.complete:
            if making.assigned is None:
                making.assigned = self._call_listener(
                    self._listener.on_assigned, change.added, "assigned_call"
                )
            failure = (yield from _failure_of(making.assigned)) or failure
        self._making = None
        if failure is not None:
            raise failure

    def _call_listener(
        self,
        heard: Callable[[Sequence[TopicPartition]], object],
        partitions: Sequence[TopicPartition],
        kind: str,
    ) -> Completion[object]:
        """Call a method of the listener with partitions; the completion has what it raised. `kind`:
        the metric that its time is added to. UsageError if the method is a coroutine and the
        consumer blocks."""
        began_ns = self._asking.now_ns()
        ended: Completion[object] = Completion()
        try:
            result = heard(partitions)
            if not inspect.isawaitable(result):
                ended.set_result(result)
            elif self._await_user is None:
                raise UsageError("a listener of a blocking Consumer has coroutines; use AsyncConsumer")
            else:
                listening = _LISTENING.set(True)
                try:
                    ended = self._await_user(result)
                finally:
                    _LISTENING.reset(listening)
        except Exception as error:
            ended.set_error(error)
        ended.add_done_callback(lambda _: self._asking.polls.listened(kind, began_ns))
        return ended

    def _positions(self) -> Steps[dict[TopicPartition, Position]]:
        """Position after the last record returned, of each assigned partition that has one."""
        fetched_to = yield from self._asking.ask(GetPositions)
        return {
            of: position
            for of, position in {**fetched_to, **self._fetched.held()}.items()
            if of in self._fetched.assigned
        }

    def _news(self) -> Steps[dict[TopicPartition, OffsetAndMetadata]]:
        """Positions, as offsets to commit, that are not committed yet."""
        positions = yield from self._positions()
        return {
            of: one.to_commit() for of, one in positions.items() if self._last_committed.get(of) != one.offset
        }

    def _note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Remember what was committed of the partitions that are assigned, and of no others."""
        self._last_committed.update((of, one.offset) for of, one in offsets.items())
        for of in [of for of in list(self._last_committed) if of not in self._fetched.assigned]:
            self._last_committed.pop(of, None)

    def _commit_in_background(self) -> Steps[None]:
        if self._auto_committing is not None and not self._auto_committing.done():
            return
        wanted = yield from self._news()
        if not wanted:
            return
        completion = self._auto_committing = Completion()
        completion.add_done_callback(lambda done: self._auto_committed(wanted, done.error()))
        self._asking.submit(Commit(completion, self._asking.deadline_ns(None), wanted))

    def _auto_committed(
        self, wanted: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None
    ) -> None:
        if error is None:
            self._note_committed(wanted)
        elif not isinstance(error, UsageError):
            LOGGER.warning("offsets were not committed, which is tried again: %s", error)

    def _auto_commit_now(self, timeout_s: float | None) -> Steps[None]:
        """Auto-commit before partitions go: the positions after the records returned.

        A failure is logged: the records come again, to the consumer that reads the partitions next.
        """
        if not self._auto_commits:
            return
        try:
            wanted = yield from self._news()
            if wanted:
                deadline_ns = self._asking.deadline_ns(timeout_s)
                yield from self._asking.ask(Commit, deadline_ns, wanted)
                self._note_committed(wanted)
        except FairleadError as error:
            LOGGER.warning("offsets were not committed before partitions were given up: %s", error)

    def part(self, timeout_s: float) -> Steps[None]:
        """Commit and leave the group, when the consumer closes, within `timeout_s` seconds."""
        if self._subscribed:
            yield from self._leave(timeout_s)
        else:
            yield from self._auto_commit_now(timeout_s)

    def _leave(self, timeout_s: float | None) -> Steps[None]:
        """Auto-commit, call the listener and leave the group; a call of the listener that a
        cancelled poll left under way ends first, unless it is what leaves.

        Waits for the coordinator for `timeout_s` seconds at most (None: as long as a request may
        take).
        """
        self._subscribed = False
        failure: Exception | None = None
        revoked: tuple[TopicPartition, ...] = ()
        if self._making is not None:
            revoked = self._making.change.revoked if self._making.revoked else ()
            for ended in filter(None, (self._making.revoked, self._making.assigned)):
                if not _LISTENING.get():
                    failure = (yield from _failure_of(ended)) or failure
        yield from self._auto_commit_now(timeout_s)
        partitions = tuple(of for of in self._fetched.assigned if of not in revoked)
        if partitions:
            ended = self._call_listener(self._listener.on_revoked, partitions, "revoked_call")
            failure = (yield from _failure_of(ended)) or failure
        self._making = None
        completion: Completion[None] = Completion()
        self._asking.submit(Unsubscribe(completion))
        yield from wait_until(completion, timeout_s)
        self._fetched.moved({}, replaces=True)
        if failure is not None:
            raise failure


def _failure_of(ended: Completion[object]) -> Steps[Exception | None]:
    """The exception that a call of the listener raised, once it has ended; None for none."""
    try:
        yield from wait_for(ended)
    except Exception as error:
        return error
    return None
