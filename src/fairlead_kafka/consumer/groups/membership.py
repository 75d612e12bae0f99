"""A consumer's membership of its group: join, heartbeats, commits, leave.

Part of the consumer machine's step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError, FairleadError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.consumer.groups.assignors import assignors_named
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.joining import Joined, Joining
from fairlead_kafka.consumer.groups.member import Assignee, Member
from fairlead_kafka.consumer.groups.operations import SubscriptionPattern
from fairlead_kafka.consumer.groups.states import BEATING, TRANSITIONS, MemberSignal, MemberState
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.core.group_offsets import NO_GENERATION, GroupMetadata, OffsetAndMetadata
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.script import Steps
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import HeartbeatRequest, LeaveGroupRequest

_LOST = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND})


class Membership(Member):
    """A member, or none yet, of the group `group.id`, by the classic protocol."""

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
        self._assignors = assignors_named(settings["partition.assignment.strategy"])
        self._cooperative = all(assignor.cooperative for assignor in self._assignors)
        self._joining = Joining(settings, self._calls, self._assignors, self._instance_id)
        self._state = MemberState.OUTSIDE
        self._under_way = False
        self._again = False
        """A rebalance is due as soon as the present one is over."""
        self._target: tuple[TopicPartition, ...] = ()
        """Partitions assigned once the change at the gate is made."""

    # --- What the machine asks

    @property
    def subscribed(self) -> bool:
        """True if partitions come from the group."""
        return self._state is not MemberState.OUTSIDE

    def subscribe(self, topics: Sequence[str], pattern: re.Pattern[str] | SubscriptionPattern | None) -> None:
        """Read these topics, or all whose whole name the pattern matches, from now on. UsageError
        for a SubscriptionPattern, which only group.protocol=consumer has."""
        if isinstance(pattern, SubscriptionPattern):
            raise UsageError(
                "subscribe: a SubscriptionPattern is for brokers to match, which they do with "
                "group.protocol=consumer alone; set that, or give re.compile(...)"
            )
        changed = self._watch.subscribe(topics, pattern)
        if self._state in (MemberState.OUTSIDE, MemberState.FAILED):
            self.error = None
            self._polled()
            self._signal(MemberSignal.SUBSCRIBE)
        elif changed:
            self._rejoin()

    def leave(self, done: Callable[[], None]) -> None:
        """Leave the group, if it is in one; a static member only stops its heartbeats.

        `done()` is called once the coordinator knows that, or cannot be reached.
        """
        member_id, node_id = self._joining.member_id, self._calls.node_id
        self._log_left()
        self._attempt += 1
        self._under_way = self._again = False
        self._gate.change = None
        self._signal(MemberSignal.LEAVE)
        self._forget()
        self._last = None
        self._watch.subscribe((), None)
        self._assignee.adopt(())
        if not member_id or self._instance_id is not None or node_id is None:
            done()
            return
        self._send_leave(node_id, member_id, "the consumer is being closed", done)

    def who(self) -> GroupMetadata:
        """Sender of commits: this member in its generation, or only the group if not subscribed."""
        if not self.subscribed:
            return GroupMetadata(self.group_id)
        return GroupMetadata(self.group_id, self.generation, self._joining.member_id, self._instance_id)

    def _commit_script(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Steps[None]:
        who = self.who()
        return self._calls.commit(lambda: who, offsets)

    def _committed_script(
        self, partitions: Sequence[TopicPartition]
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        return self._calls.committed(partitions, lambda: None)

    def _refused(self, code: int) -> None:
        self._heard(code)

    # --- The machine's step

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Work on answers and on what is due: heartbeat, join, watch of topics."""
        self.now_ns = now_ns
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
        if not self.subscribed or self._state is MemberState.FAILED:
            return self._next_ns()
        if self._state not in BEATING or self.generation == NO_GENERATION:
            return self._next_ns(self._watch.next_ns)
        beat_at_ns = None if self._beating else self._beat_at_ns
        return self._next_ns(self._watch.next_ns, self._absent_at_ns(), beat_at_ns)

    def check(self) -> None:
        """Raise CheckFailed unless what is kept of the membership fits its state."""
        state, change = self._state, self._gate.change
        member = self.generation != NO_GENERATION
        holds(
            f"a member in state {state.name} has generation {self.generation}",
            not member or self._joining.member_id != "",
        )
        holds(f"a stable member has generation {self.generation}", member or state is not MemberState.STABLE)
        holds(f"an error in state {state.name}", (self.error is not None) == (state is MemberState.FAILED))
        expected = state in (MemberState.ADOPTING, MemberState.GIVING_UP)
        holds(f"the client has {change} to make in state {state.name}", (change is not None) == expected)
        holds(
            f"a join is under way in state {state.name}",
            not self._under_way or state in (MemberState.JOINING, MemberState.FAILED),
        )

    # --- Joining

    def _signal(self, signal: MemberSignal) -> None:
        self._state = TRANSITIONS[self._state, signal]

    def _join(self) -> None:
        self._attempt += 1
        self._under_way = True
        attempt = self._attempt
        owned = tuple(self._assignee.assigned()) if self._cooperative else ()
        subscription = self._watch.topics
        if subscription is None:  # a pattern whose topics are not known yet
            self._under_way = False
            return
        self._recorder.rebalance_began()

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
        self._log_joined()
        self._recorder.rebalance_ended()
        self._watch.shared(joined.counts)
        self._beat_at_ns = self.now_ns + ms_to_ns(self._settings["heartbeat.interval.ms"])
        self._signal(MemberSignal.ASSIGNED)
        owned = set(self._assignee.assigned())
        target = set(joined.partitions)
        self._target = joined.partitions
        self._announce(
            revoked=tuple(sorted(owned - target)),
            added=tuple(sorted(target - owned)),
            complete=True,
        )

    def _taken(self, change: GroupChange) -> None:
        self._assignee.adopt(self._target)
        self._signal(MemberSignal.TAKEN)
        if change.complete and (
            change.revoked or self._again
        ):  # what was given up cooperatively is for others: they get it now
            self._rejoin()

    def _rejoin(self) -> None:
        """Join the group again, for a rebalance, now or as soon as the request under way is
        answered."""
        if self._state is not MemberState.STABLE:
            self._again = self._again or self._under_way or self._state is MemberState.ADOPTING
            return
        self._again = False
        self._signal(MemberSignal.REJOIN)
        self._recorder.rebalance_began()
        owned = self._assignee.assigned()
        topics = set(self._watch.topics or ())
        kept = [of for of in owned if self._cooperative and of.topic in topics]
        self._target = tuple(kept)
        self._announce(revoked=tuple(sorted(set(owned) - set(kept))))

    def _forget(self) -> None:
        """Forget member id and generation: the next join is a new member's."""
        self._parted()
        self._recorder.rebalance_ended(failed=True)
        self._joining.forget()

    def _lose(self) -> None:
        """Give up all partitions: the group has gone on without this member."""
        if self._state not in BEATING:
            return
        self._forget()
        self._signal(MemberSignal.LOST)
        self._target = ()
        self._announce(revoked=tuple(sorted(self._assignee.assigned())), lost=True)

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, FairleadError):
            raise error
        self._attempt += 1
        self._forget()
        self._gate.change = None
        self._signal(MemberSignal.FAIL)
        self._log_failed(error)
        self.error = error

    # --- Heartbeats, and the application's polls

    def _beat(self) -> None:
        self._beating = True
        self._beat_at_ns = self.now_ns + ms_to_ns(self._settings["heartbeat.interval.ms"])
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

        deadline_ns = self.now_ns + ms_to_ns(self._settings["session.timeout.ms"])
        self._scripts.start("a heartbeat", script(), deadline_ns, beaten)

    def _heard(self, code: int) -> None:
        """React to an error in the answer to a heartbeat or commit."""
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            if self._state is not MemberState.GIVING_UP:
                self._rejoin()
        elif code in _LOST:
            self._log_fenced(code)
            self._lose()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._fail(self._instance_taken(code))

    def _left_by_silence(self) -> None:
        """Leave the group: the application has not polled for max.poll.interval.ms."""
        member_id, node_id = self._joining.member_id, self._calls.node_id
        self._log_silence()
        self._lose()
        if self._instance_id is None and node_id is not None:
            self._send_leave(
                node_id, member_id, "the consumer did not poll within max.poll.interval.ms", lambda: None
            )

    def _send_leave(self, node_id: int, member_id: str, reason: str, done: Callable[[], None]) -> None:
        member = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None, reason=reason)
        message = LeaveGroupRequest(group_id=self.group_id, member_id=member_id, members=[member])
        deadline_ns = self.now_ns + ms_to_ns(self._settings["request.timeout.ms"])
        self._network.request(
            ApiKey.LEAVE_GROUP,
            message,
            lambda _answer, _error: done(),
            node_id=node_id,
            deadline_ns=deadline_ns,
            fails_fast=True,
        )

    # --- Topics that come and grow

    def _watched(self, changed: bool | None, error: Exception | None) -> None:
        if error is not None:
            self._fail(error)
        elif changed:
            self._rejoin()
