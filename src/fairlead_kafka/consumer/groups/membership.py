"""A consumer's membership of its group: join, heartbeats, commits, leave.

Part of the consumer machine's step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, BrokerError, ConfigError, FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.groups.assignors import assignors_named
from fairlead_kafka.consumer.groups.calls import CoordinatorCalls
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.joining import Joined, Joining
from fairlead_kafka.consumer.groups.states import BEATING, TRANSITIONS, MemberSignal, MemberState
from fairlead_kafka.consumer.groups.watch import Watch
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.group_offsets import NO_GENERATION, GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Done, Script, Scripts, Steps
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import HeartbeatRequest, LeaveGroupRequest

_FOR_EVER_NS = 2**63 - 1
_IN_FLIGHT_MAX = 8
_LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})


class Assignee(Protocol):
    """The machine whose assignment the group makes."""

    def assigned(self) -> Sequence[TopicPartition]:
        """The partitions assigned now."""

    def adopt(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these from now on; those assigned before keep their positions."""


class Membership:
    """A member, or none yet, of the group `group.id`.

    `gate` is shared with the client class; `network` is the consumer's other one.
    """

    def __init__(
        self, settings: Settings, rng: Rng, network: Network, gate: Gate, assignee: Assignee
    ) -> None:
        self._settings = settings
        self._assignee = assignee
        self._gate = gate
        group_id = settings["group.id"]
        assert group_id is not None, "a machine without group.id has no Membership"
        self.group_id = group_id
        self._instance_id: str | None = settings["group.instance.id"]
        self._network = Network(settings, rng, max_in_flight=_IN_FLIGHT_MAX, beside=network)
        self._scripts = Scripts(
            self._network, rng, Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"])
        )
        self._calls = CoordinatorCalls(settings, self._network.metadata, self.group_id)
        self._assignors = assignors_named(settings["partition.assignment.strategy"])
        self._cooperative = all(assignor.cooperative for assignor in self._assignors)
        self._joining = Joining(settings, self._calls, self._assignors, self._instance_id)
        self._watch = Watch(settings)
        self._state = MemberState.OUTSIDE
        self.generation = NO_GENERATION
        self.error: Exception | None = None
        """Error that every poll raises, until a new subscription."""
        self._attempt = 0
        self._under_way = False
        self._again = False
        """A rebalance is due as soon as the present one is over."""
        self._change_number = 0
        self._target: tuple[TopicPartition, ...] = ()
        """Partitions assigned once the change at the gate is made."""
        self._beat_at_ns = 0
        self._beating = False
        self._now_ns = 0

    # --- What the machine asks

    @property
    def subscribed(self) -> bool:
        """True if partitions come from the group."""
        return self._state is not MemberState.OUTSIDE

    def topics(self) -> tuple[str, ...]:
        """Topics subscribed to, as far as they are known."""
        return self._watch.topics or ()

    def subscribe(self, topics: Sequence[str], pattern: re.Pattern[str] | None) -> None:
        """Read these topics, or all whose whole name the pattern matches, from now on."""
        changed = self._watch.subscribe(topics, pattern)
        if self._state in (MemberState.OUTSIDE, MemberState.FAILED):
            self.error = None
            self._gate.polled_ns = max(self._gate.polled_ns, self._now_ns)
            self._signal(MemberSignal.SUBSCRIBE)
        elif changed:
            self._rejoin()

    def leave(self, done: Callable[[], None]) -> None:
        """Leave the group, if it is in one; a static member only stops its heartbeats.

        `done()` once the coordinator knows, or cannot be told.
        """
        member_id, node_id = self._joining.member_id, self._calls.node_id
        self._attempt += 1
        self._under_way = self._again = False
        self._gate.change = None
        self._signal(MemberSignal.LEAVE)
        self._forget()
        self._watch.subscribe((), None)
        self._assignee.adopt(())
        if not member_id or self._instance_id is not None or node_id is None:
            done()
            return
        self._tell_leaving(node_id, member_id, "the consumer is being closed", done)

    def acknowledge(self, number: int) -> bool:
        """Make change `number`, for which the client did its part; False if it was overtaken."""
        change = self._gate.change
        if change is None or change.number != number:
            return False
        self._gate.change = None
        self._taken(change)
        return True

    def who(self) -> GroupMetadata:
        """Sender of commits: this member in its generation, or only the group if not subscribed."""
        if not self.subscribed:
            return GroupMetadata(self.group_id)
        return GroupMetadata(self.group_id, self.generation, self._joining.member_id, self._instance_id)

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], deadline_ns: int, done: Done
    ) -> None:
        """Commit offsets; done(None, error).

        One commit at a time, in the order of the calls: one that is asked again must not set back
        what a later one has committed. It is made in the name of the generation that it was asked
        for in.
        """
        if self.error is not None:
            done(None, self.error)
            return
        if self.subscribed and self.generation == NO_GENERATION:
            error = self._calls.error(
                ApiKey.OFFSET_COMMIT,
                ErrorCode.UNKNOWN_MEMBER_ID,
                "this consumer is not in the group at present; poll",
            )
            done(None, error)
            return

        def told(value: Any, error: Exception | None) -> None:
            if isinstance(error, BrokerError) and self.subscribed:
                self._heard(error.code)
            done(value, error)

        script = self._calls.commit(self.who(), offsets)
        self._scripts.start(
            f"committing offsets of group {self.group_id!r}", script, deadline_ns, told, line="commits"
        )

    def committed(self, partitions: Sequence[TopicPartition], deadline_ns: int, done: Done) -> None:
        """Look up committed offsets; done({partition: OffsetAndMetadata | None}, error)."""
        self._scripts.start(
            f"reading offsets of group {self.group_id!r}",
            self._calls.committed(partitions),
            deadline_ns,
            done,
        )

    # --- The machine's step

    def handle(self, event: ConnectionEvent, now_ns: int, wall_ms: int) -> None:
        """An event of a connection, ours or not."""
        self._network.handle(event, now_ns, wall_ms)

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers and on what is due: heartbeat, join, watch of topics."""
        self._now_ns = now_ns
        self._network.advance(now_ns, wall_ms)
        self._scripts.advance(now_ns)
        if not self.subscribed:
            return
        if self._state in BEATING and self.generation != NO_GENERATION:
            if self._absent():
                self._left_by_silence()
            elif now_ns >= self._beat_at_ns and not self._beating:
                self._beat()
        if self._state is MemberState.JOINING and not self._under_way and not self._absent():
            self._join()
        if self._watch.due(now_ns) and self._state is not MemberState.FAILED:
            self._start("watching topics", self._watch.look(now_ns), self._watched)

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        times = [self._network.deadline_ns(), self._scripts.deadline_ns()]
        if self.subscribed and self._state is not MemberState.FAILED:
            times.append(self._watch.next_ns)
            if self._state in BEATING and self.generation != NO_GENERATION:
                times.append(self._absent_at_ns())
                times.append(None if self._beating else self._beat_at_ns)
        return min((at_ns for at_ns in times if at_ns is not None), default=None)

    def take_refusals(self) -> list[tuple[int | None, AuthenticationFailed]]:
        """Failed log-ins since the last call; see `Network.take_refusals`."""
        return self._network.take_refusals()

    def take_effects(self) -> list[Effect]:
        """The effects of this step."""
        return self._network.take_effects()

    def close(self, error: Exception) -> None:
        """Fail what is under way with `error`, and close the connections."""
        self._scripts.close(error)
        self._network.close()

    def check(self) -> None:
        """CheckFailed unless what is kept of the membership fits its state."""
        state, change = self._state, self._gate.change
        member = self.generation != NO_GENERATION
        holds(
            f"a member in state {state.name} has generation {self.generation}",
            not member or self._joining.member_id != "",
        )
        holds(f"a stable member has generation {self.generation}", member or state is not MemberState.STABLE)
        holds(f"an error in state {state.name}", (self.error is not None) == (state is MemberState.FAILED))
        tells = state in (MemberState.ADOPTING, MemberState.GIVING_UP)
        holds(f"the face has {change} to make in state {state.name}", (change is not None) == tells)
        holds(
            f"a join is under way in state {state.name}",
            not self._under_way or state in (MemberState.JOINING, MemberState.FAILED),
        )

    # --- Joining

    def _signal(self, signal: MemberSignal) -> None:
        self._state = TRANSITIONS[self._state, signal]

    def _start(self, what: str, script: Script, done: Done) -> None:
        self._scripts.start(f"{what} for group {self.group_id!r}", script, _FOR_EVER_NS, done)

    def _join(self) -> None:
        self._attempt += 1
        self._under_way = True
        attempt = self._attempt
        owned = tuple(self._assignee.assigned()) if self._cooperative else ()
        subscription = self._watch.topics
        if subscription is None:  # a pattern whose topics are not known yet
            self._under_way = False
            return

        def done(joined: Joined | None, error: Exception | None) -> None:
            if attempt != self._attempt:
                return
            self._under_way = False
            if error is not None:
                self._fail(error)
            elif joined is not None:
                self._joined(joined)

        script = self._joining.join(subscription, owned, lambda: attempt == self._attempt)
        self._start("joining", script, done)

    def _joined(self, joined: Joined) -> None:
        self.generation = joined.generation
        self._watch.shared(joined.counts)
        self._beat_at_ns = self._now_ns + ms_to_ns(self._settings["heartbeat.interval.ms"])
        self._signal(MemberSignal.ASSIGNED)
        owned = set(self._assignee.assigned())
        target = set(joined.partitions)
        self._tell(
            joined.partitions,
            revoked=tuple(sorted(owned - target)),
            added=tuple(sorted(target - owned)),
            complete=True,
        )

    def _tell(
        self,
        target: Sequence[TopicPartition],
        *,
        revoked: tuple[TopicPartition, ...],
        added: tuple[TopicPartition, ...] = (),
        lost: bool = False,
        complete: bool = False,
    ) -> None:
        """Have the client make a change; make it at once if the client has no part in it."""
        self._change_number += 1
        self._target = tuple(target)
        change = GroupChange(self._change_number, revoked, added, lost, complete)
        if revoked or complete:
            self._gate.change = change
        else:
            self._gate.change = None
            self._taken(change)

    def _taken(self, change: GroupChange) -> None:
        self._assignee.adopt(self._target)
        self._signal(MemberSignal.TAKEN)
        if change.complete and (
            change.revoked or self._again
        ):  # what was given up cooperatively is for others: they get it now
            self._rejoin()

    def _rejoin(self) -> None:
        """Rebalance, now or as soon as what is under way is over."""
        if self._state is not MemberState.STABLE:
            self._again = self._again or self._under_way or self._state is MemberState.ADOPTING
            return
        self._again = False
        self._signal(MemberSignal.REJOIN)
        owned = self._assignee.assigned()
        topics = set(self._watch.topics or ())
        kept = [of for of in owned if self._cooperative and of.topic in topics]
        self._tell(kept, revoked=tuple(sorted(set(owned) - set(kept))))

    def _forget(self) -> None:
        """Be no member any more: the next join is a new member's."""
        self.generation = NO_GENERATION
        self._joining.forget()

    def _lose(self) -> None:
        """Give up all partitions: the group has gone on without this member."""
        if self._state not in BEATING:
            return
        self._forget()
        self._signal(MemberSignal.LOST)
        self._tell((), revoked=tuple(sorted(self._assignee.assigned())), lost=True)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, FairleadError):
            raise error
        self._attempt += 1
        self._forget()
        self._gate.change = None
        self._signal(MemberSignal.FAIL)
        self.error = error

    # --- Heartbeats, and the application's polls

    def _beat(self) -> None:
        self._beating = True
        self._beat_at_ns = self._now_ns + ms_to_ns(self._settings["heartbeat.interval.ms"])
        attempt, member = self._attempt, self.who()
        message = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
        )

        def beaten(_answer: None, error: Exception | None) -> None:
            self._beating = False
            if isinstance(error, BrokerError) and attempt == self._attempt and self._state in BEATING:
                self._heard(error.code)

        def script() -> Steps[None]:
            _, code = yield from self._calls.ask(
                ApiKey.HEARTBEAT, lambda: message, lambda answer: [answer.error_code]
            )
            if code:
                raise self._calls.error(ApiKey.HEARTBEAT, code)

        deadline_ns = self._now_ns + ms_to_ns(self._settings["session.timeout.ms"])
        self._scripts.start("a heartbeat", script(), deadline_ns, beaten)

    def _heard(self, code: int) -> None:
        """React to an error in the answer to a heartbeat or commit."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self._state is not MemberState.GIVING_UP:
                self._rejoin()
        elif code in _LOST:
            self._lose()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            text = (
                f"group {self.group_id!r}: another consumer has taken group.instance.id "
                f"{self._instance_id!r}; give each its own"
            )
            self._fail(BrokerError(code, text))

    def _absent_at_ns(self) -> int:
        return self._gate.polled_ns + ms_to_ns(self._settings["max.poll.interval.ms"])

    def _absent(self) -> bool:
        return self._now_ns >= self._absent_at_ns()

    def _left_by_silence(self) -> None:
        """Leave the group: the application has not polled for max.poll.interval.ms."""
        member_id, node_id = self._joining.member_id, self._calls.node_id
        self._lose()
        if self._instance_id is None and node_id is not None:
            self._tell_leaving(
                node_id, member_id, "the consumer did not poll within max.poll.interval.ms", lambda: None
            )

    def _tell_leaving(self, node_id: int, member_id: str, reason: str, done: Callable[[], None]) -> None:
        member = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=reason)
        message = LeaveGroupRequest(group_id=self.group_id, member_id=member_id, members=[member])
        deadline_ns = self._now_ns + ms_to_ns(self._settings["request.timeout.ms"])
        self._network.request(
            ApiKey.LEAVE_GROUP,
            message,
            lambda _answer, _error: done(),
            node_id=node_id,
            deadline_ns=deadline_ns,
            fails_fast=True,
        )

    # --- Topics that come and grow

    def _watched(self, changed: bool, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)
        elif changed:
            self._rejoin()


def check_group_settings(settings: Settings) -> None:
    """ConfigError for configs of a group that contradict each other, or name an assignor that is
    not there."""
    if settings["group.id"] is None:
        if settings["enable.auto.commit"] and "enable.auto.commit" in settings.given:
            raise ConfigError(
                "enable.auto.commit: true needs a group.id, in whose name offsets are committed"
            )
        return
    assignors_named(settings["partition.assignment.strategy"])
    beat_ms, session_ms = settings["heartbeat.interval.ms"], settings["session.timeout.ms"]
    if beat_ms >= session_ms:
        raise ConfigError(
            f"heartbeat.interval.ms ({beat_ms}) must be less than session.timeout.ms ({session_ms}); a third "
            "of it is usual"
        )
