"""A consumer's membership of a KIP-848 group: heartbeats, and reconciliation with the assignments
in their answers.

Part of the consumer machine's step. Kafka's counterpart: `ConsumerMembershipManager`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, FairleadError, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.absent import AbsentTopics
from fairlead_kafka.consumer.groups.epochs import BEATING, EPOCH_TRANSITIONS, EpochSignal, EpochState
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.heartbeats import JOIN_EPOCH, Heartbeats, Owned, Status, beat_delay_ms
from fairlead_kafka.consumer.groups.looking import find_topics, topic_names
from fairlead_kafka.consumer.groups.member import Assignee, Member
from fairlead_kafka.consumer.groups.operations import SubscriptionPattern
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.core.group_offsets import NO_GENERATION, GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Steps
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MetadataResponse,
)

_REGEX_VERSION = 1
"""Version of ConsumerGroupHeartbeat that has regular expressions, since Kafka 4.0."""
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_CLASSIC_ONLY = "this cluster serves classic groups only; set group.protocol=classic"
_NO_REGEX = (
    "its brokers are too old for a SubscriptionPattern (Kafka 4.0 has them); give re.compile(...) instead"
)
_ADVICE: dict[int, str] = {
    ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as group.consumer.max.size allows",
    ErrorCode.UNSUPPORTED_ASSIGNOR: "brokers do not have the assignor; check group.remote.assignor",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "brokers do not understand the SubscriptionPattern, which is to "
    "have the form of RE2",
    ErrorCode.UNRELEASED_INSTANCE_ID: "another consumer is in the group with this group.instance.id; give "
    "each its own, or, if it died, start again once its session has timed out",
    ErrorCode.GROUP_ID_NOT_FOUND: "the group is not one of the protocol consumer, and its members do not "
    "let it become one",
}
"""Code → what is wrong in our words; the coordinator's own follow."""


class ConsumerMembership(Member):
    """A member, or none yet, of the group `group.id`, by the protocol of KIP-848.

    The coordinator assigns, and the answers to heartbeats say what. Three assignments are kept:
    what the member reads (`_current`), what it will read once the client class has made the change
    at the gate (`_coming`), and what the coordinator wants in the end (`_target`).
    """

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        network: Network,
        gate: Gate,
        assignee: Assignee,
        recorder: Recorder,
    ) -> None:
        super().__init__(settings, rng, network, gate, assignee, recorder)
        self._heartbeats = Heartbeats(settings, self.group_id, make_member_id(rng))
        self._absent_topics = AbsentTopics(settings["allow.auto.create.topics"])
        self._state = EpochState.UNSUBSCRIBED
        self._topics: tuple[str, ...] = ()
        self._regex = ""
        self._current: Owned | None = None
        """Partitions read; None: nothing was assigned since the member joined."""
        self._coming: Owned | None = None
        self._target: Owned | None = None
        self._names: dict[UUID, str] = {}
        self._resolving = False
        self._sent_ns = 0
        self._unchanged = 0
        """Answers in a row that left the assignment as it was."""

    # --- What the machine asks

    @property
    def subscribed(self) -> bool:
        """True if partitions come from the group."""
        return self._state is not EpochState.UNSUBSCRIBED

    def topics(self) -> tuple[str, ...]:
        """Topics subscribed to; for a pattern, those known by now."""
        if not self._regex:
            return super().topics()
        return tuple(sorted(self._names[topic_id] for topic_id in self._current or ()))

    def subscribe(self, topics: Sequence[str], pattern: re.Pattern[str] | SubscriptionPattern | None) -> None:
        """Read these topics, or all whose whole name the pattern matches, from now on."""
        self._regex = pattern.pattern if isinstance(pattern, SubscriptionPattern) else ""
        self._watch.subscribe(topics, None if isinstance(pattern, SubscriptionPattern) else pattern)
        if self._watch.topics is not None:
            self._topics = self._watch.topics
        if pattern is None:
            self._start("looking for topics", find_topics(self._absent_topics, self._topics), self._found)
        if self._state in (EpochState.UNSUBSCRIBED, EpochState.FATAL):
            self.error = None
            self._polled()
            self._signal(EpochSignal.SUBSCRIBE)
            self._release()

    def leave(self, done: Callable[[], None]) -> None:
        """Leave the group, if it is in one; a static member's place is kept.

        `done()` is called once the coordinator knows that, or cannot be reached.
        """
        member = self._state in BEATING
        self._log_left()
        self._out(EpochSignal.LEAVE)
        self._last = None
        self._gate.change = None
        self._current = None
        self._watch.subscribe((), None)
        self._topics, self._regex, self.error = (), "", None
        self._assignee.adopt(())
        if member:
            self._bid_farewell(done)
        else:
            done()

    def who(self) -> GroupMetadata:
        """Sender of commits: this member with its epoch, or only the group if not subscribed."""
        if not self.subscribed:
            return GroupMetadata(self.group_id)
        return GroupMetadata(self.group_id, self.generation, self._heartbeats.member_id, self._instance_id)

    def _commit_script(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Steps[None]:
        attempt = self._attempt

        def member() -> GroupMetadata:
            if attempt != self._attempt:
                raise self._calls.moved_on(ErrorCode.FENCED_MEMBER_EPOCH)
            return self.who()

        return self._calls.commit(member, offsets)

    def _committed_script(
        self, partitions: Sequence[TopicPartition]
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        return self._calls.committed(
            partitions, lambda: None if self.generation == NO_GENERATION else self.who()
        )

    def _refused(self, code: int) -> None:
        if code in _FENCED and self._state in BEATING:
            self._fence(code)

    # --- The machine's step

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers and on what is due: heartbeats, a new assignment, a look at topics."""
        self.now_ns = now_ns
        self._network.advance(now_ns, wall_ms)
        self._scripts.advance(now_ns)
        if not self.subscribed:
            return
        if self._state in BEATING and self._absent():
            self._bid_farewell(lambda: None)
            self._log_silence()
            self._lose(EpochSignal.SILENT)
        if self._state is EpochState.STALE and self._gate.change is None and not self._absent():
            self._signal(EpochSignal.RELEASED)
        if self._state is EpochState.RECONCILING and self._gate.change is None:
            self._reconcile()
        if self._beat_is_due():
            self._beat()
        if self._watch.due(now_ns) and self._state is not EpochState.FATAL:
            self._start("watching topics", self._watch.look(now_ns), self._watched)

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        if not self.subscribed or self._state is EpochState.FATAL:
            return self._next_ns()
        if self._state not in BEATING:
            return self._next_ns(self._watch.next_ns)
        beat_at_ns = None if self._beating or not self._knows_topics() else self._beat_at_ns
        return self._next_ns(self._watch.next_ns, self._absent_at_ns(), beat_at_ns)

    def check(self) -> None:
        """Raise CheckFailed unless what is kept of the membership fits its state."""
        state, change = self._state, self._gate.change
        member = state in BEATING and state is not EpochState.JOINING
        holds(
            f"a member in state {state.name} has epoch {self.generation}",
            (self.generation > JOIN_EPOCH) == member,
        )
        holds(f"an error in state {state.name}", (self.error is not None) == (state is EpochState.FATAL))
        coming = self._coming is not None
        holds(
            f"the client has {change} to make in state {state.name}",
            (state is EpochState.RECONCILING and change is not None) == coming,
        )
        quiet = state in (EpochState.UNSUBSCRIBED, EpochState.JOINING, EpochState.STABLE)
        holds(f"the client has {change} to make in state {state.name}", change is None or not quiet)
        holds(
            f"in state {state.name} it reads {self._current}, of {self._target}",
            state is not EpochState.STABLE or self._current == self._target,
        )
        if member:
            reads = set(self._assignee.assigned())
            holds(f"it reads {reads}, and says {self._current}", reads == set(self._named(self._current)))

    # --- States

    def _signal(self, signal: EpochSignal) -> None:
        before, self._state = self._state, EPOCH_TRANSITIONS[self._state, signal]
        rebalanced, rebalances = (state is EpochState.RECONCILING for state in (before, self._state))
        if rebalances:
            self._recorder.rebalance_began()
        elif rebalanced:  # as in Kafka's `AbstractMembershipManager.transitionTo`
            made = self._state in (EpochState.ACKNOWLEDGING, EpochState.STABLE)
            self._recorder.rebalance_ended(failed=not made)

    def _out(self, signal: EpochSignal) -> None:
        """End this membership, by `signal`: answers to requests under way are ignored from now
        on."""
        self._attempt += 1
        self._beating = False
        self._parted()
        self._target = self._coming = None
        self._heartbeats.forget()
        self._beat_at_ns = 0
        self._signal(signal)

    def _fence(self, code: int) -> None:
        """Give up all partitions: by the error `code` the group has gone on without this member.
        The member joins again."""
        self._log_fenced(code)
        self._lose(EpochSignal.FENCE)

    def _lose(self, signal: EpochSignal) -> None:
        self._out(signal)
        self._announce(revoked=tuple(sorted(self._assignee.assigned())), lost=True)

    def _release(self) -> None:
        """Join again after a fence, once the client class has given up the partitions that were
        lost."""
        if self._state is EpochState.FENCED and self._gate.change is None:
            self._signal(EpochSignal.RELEASED)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, FairleadError):
            raise error
        self._log_failed(error)
        self._lose(EpochSignal.FAIL)
        self.error = error

    def _taken(self, change: GroupChange) -> None:
        if change.lost:
            self._assignee.adopt(())
            self._current = None
            self._release()
            return
        coming = self._coming or {}
        if set(change.revoked) & set(change.added):  # a topic was made again: it is another, of the same name
            self._assignee.adopt([of for of in self._assignee.assigned() if of not in change.revoked])
        self._assignee.adopt(self._named(coming))
        self._current, self._coming = coming, None
        self._signal(EpochSignal.TAKEN)

    # --- Reconciling

    def _assigned(self, target: Owned) -> None:
        """Take note of an assignment in a heartbeat's answer; it has to be acknowledged to the
        coordinator."""
        self._target = target
        self._coming = self._gate.change = None
        self._signal(EpochSignal.REACHED if target == self._current else EpochSignal.TARGET)

    def _reconcile(self) -> None:
        """Begin to change the assignment to the target, as far as the names of its topics are
        known."""
        target, current = self._target or {}, self._current or {}
        self._names = {
            topic_id: name
            for topic_id, name in self._names.items()
            if topic_id in target or topic_id in current or name in self._topics
        }
        unnamed = [topic_id for topic_id in target if topic_id not in self._names]
        if unnamed and not self._resolving:
            self._resolving = True
            self._start("looking for topics by id", topic_names(unnamed), self._resolved)
        coming = {topic_id: numbers for topic_id, numbers in target.items() if topic_id in self._names}
        if coming == self._current:
            return
        self._coming = coming
        self._announce(
            revoked=tuple(sorted(self._named(_without(current, coming)))),
            added=tuple(sorted(self._named(_without(coming, current)))),
            complete=True,
        )

    def _named(self, owned: Owned | None) -> list[TopicPartition]:
        return [
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in (owned or {}).items()
            for number in sorted(numbers)
        ]

    def _found(
        self, topics: Mapping[str, MetadataResponse.MetadataResponseTopic] | None, error: Exception | None
    ) -> None:
        self._named_now({topic.topic_id: name for name, topic in (topics or {}).items()}, error)

    def _resolved(self, names: Mapping[UUID, str] | None, error: Exception | None) -> None:
        self._resolving = False
        self._named_now(names or {}, error)

    def _named_now(self, names: Mapping[UUID, str], error: Exception | None) -> None:
        if not self.subscribed:
            return
        self._names |= names
        if error is not None:
            self._fail(error)

    def _watched(self, _changed: bool | None, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)
        elif self._watch.topics is not None:
            self._topics = self._watch.topics

    # --- Heartbeats

    def _knows_topics(self) -> bool:
        return self._state is not EpochState.JOINING or self._watch.topics is not None

    def _status(self, *, coming: bool) -> Status:
        """The fields to send to the coordinator. `coming`: the partitions owned include those that
        the client class may begin to read at any moment."""
        owned = dict(self._current or {})
        for topic_id, numbers in (self._coming or {}).items() if coming else ():
            owned[topic_id] = owned.get(topic_id, frozenset()) | numbers
        return Status(self._topics, self._regex, owned)

    def _beat_is_due(self) -> bool:
        if self._beating or self._state not in BEATING or not self._knows_topics():
            return False
        if self.now_ns >= self._beat_at_ns or self._state is EpochState.ACKNOWLEDGING:
            return True
        return not self._heartbeats.knows(self._status(coming=False), self._status(coming=True))

    def _beat(self) -> None:
        self._beating = True
        attempt = self._attempt

        def script() -> Steps[ConsumerGroupHeartbeatResponse]:
            answer, code = yield from self._calls.ask(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                lambda: self._heartbeat(attempt),
                lambda answer: [answer.error_code],
            )
            if code:
                raise self._problem(code, answer.error_message)
            return answer

        def done(answer: ConsumerGroupHeartbeatResponse | None, error: Exception | None) -> None:
            if attempt != self._attempt:
                return
            self._beating = False
            if answer is not None:
                self._heard(answer)
            elif isinstance(error, BrokerError) and self._fences(error.code):
                self._fence(error.code)
            elif isinstance(error, UnsupportedVersion):
                self._fail(UnsupportedVersion(f"group {self.group_id!r}: {_CLASSIC_ONLY}"))
            elif error is not None:
                self._fail(error)

        self._start("a heartbeat", script(), done)

    def _heartbeat(self, attempt: int) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat to send; BrokerError if a new membership began since `attempt`."""
        if attempt != self._attempt:
            raise self._calls.moved_on(ErrorCode.FENCED_MEMBER_EPOCH)
        acknowledges = self._state is EpochState.ACKNOWLEDGING
        if acknowledges:
            self._signal(EpochSignal.SENT)
            if self._current != self._target:  # a part of it had no names yet
                self._signal(EpochSignal.TARGET)
        self._sent_ns = self.now_ns
        epoch = JOIN_EPOCH if self.generation == NO_GENERATION else self.generation
        return self._heartbeats.message(epoch, self._status(coming=True), acknowledges=acknowledges)

    def _heard(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        node_id = self._calls.node_id
        if self._regex and node_id is not None:
            version = self._network.known_version(node_id, ApiKey.CONSUMER_GROUP_HEARTBEAT)
            if version is not None and version < _REGEX_VERSION:
                self._fail(UnsupportedVersion(f"group {self.group_id!r}: {_NO_REGEX}"))
                return
        self._heartbeats.answered()
        joined = self.generation == NO_GENERATION
        self.generation = answer.member_epoch
        if joined:
            self._log_joined()
        before = self._target
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self._assigned({row.topic_id: frozenset(row.partitions) for row in rows if row.partitions})
        elif self._state is EpochState.JOINING:
            self._assigned({})
        self._unchanged = 0 if joined or self._target != before else self._unchanged + 1
        delay_ms = beat_delay_ms(answer.heartbeat_interval_ms, self._unchanged)
        self._beat_at_ns = self._sent_ns + ms_to_ns(delay_ms)

    def _fences(self, code: int) -> bool:
        """True if `code` says that the group went on without this member."""
        gone = code == ErrorCode.GROUP_ID_NOT_FOUND and self.generation != NO_GENERATION
        return code in _FENCED or gone

    def _problem(self, code: int, said: str | None) -> FairleadError:
        """The error for `code`, with the coordinator's own words."""
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return self._instance_taken(code)
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return UnsupportedVersion(f"group {self.group_id!r}: {_CLASSIC_ONLY}")
        advice = _ADVICE.get(code)
        if advice is None and code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
            return self._calls.error(ApiKey.CONSUMER_GROUP_HEARTBEAT, code)
        words = "; ".join(filter(None, [advice or policy(code).meaning, said]))
        return self._calls.error(ApiKey.CONSUMER_GROUP_HEARTBEAT, code, words)

    def _bid_farewell(self, done: Callable[[], None]) -> None:
        """Report to the coordinator, if it is known, that this member leaves."""
        node_id = self._calls.node_id
        if node_id is None:
            done()
            return
        self._network.request(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            self._heartbeats.farewell(),
            lambda _answer, _error: done(),
            node_id=node_id,
            deadline_ns=self.now_ns + ms_to_ns(self._settings["request.timeout.ms"]),
            fails_fast=True,
        )


def make_member_id(rng: Rng) -> str:
    """A new member id (KIP-1082): 16 random bytes in Kafka's base64, as its `Uuid`; the first is no
    dash, which command lines would take for an option."""
    while True:
        drawn = bytes(rng.randrange(256) for _ in range(16))
        made = base64.urlsafe_b64encode(drawn).rstrip(b"=").decode()
        if not made.startswith("-"):
            return made


def _without(owned: Owned, others: Owned) -> Owned:
    """Partitions of `owned` that are not among the others."""
    return {topic_id: numbers - others.get(topic_id, frozenset()) for topic_id, numbers in owned.items()}
