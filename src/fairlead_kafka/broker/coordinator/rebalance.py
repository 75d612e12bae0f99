"""Membership: how a group changes from one generation to the next (Kafka's classic group protocol).

All functions of `Rebalancer` work on one group at a time and run inside the broker's step. A
request that waits (a join until the others have joined, a sync until the leader has assigned) is a
reply function kept in the member; a time-out is a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.coordinator.answers import Answers
from fairlead_kafka.broker.coordinator.attendance import Attendance, AttendanceHost, OwnerOf
from fairlead_kafka.broker.coordinator.group import (
    CONSUMER_PROTOCOL,
    Group,
    JoinOutcome,
    JoinRequest,
    Member,
    SyncOutcome,
    member_id_of,
)
from fairlead_kafka.broker.coordinator.group_records import GroupRecord
from fairlead_kafka.broker.coordinator.states import HEARTBEAT_ERRORS, SYNC_ERRORS, GroupState
from fairlead_kafka.broker.timers import Timer
from fairlead_kafka.core.machine import Rng

WAIT_ON_MIN_MS = 1_000
"""Shortest wait for static members to come back: they may have asked for none."""
NEW_MEMBER_TIMEOUT_MS = 300_000
"""A member that has never been answered is given up after this long (Kafka's
`NewMemberJoinTimeoutMs`)."""


class RebalancerHost(AttendanceHost, Protocol):
    """The parts of a broker that the rebalancer uses."""

    wall_ms: int
    settings: Settings
    rng: Rng


Persist = Callable[[Group, GroupRecord, Callable[[int], None]], None]
"""persist(group, record, done) writes a generation to the log; done(error code for a client, 0 if
it stands)."""


class Rebalancer:
    """Members and rebalances of all classic groups of one broker."""

    def __init__(self, host: RebalancerHost, persist: Persist, owner_of: OwnerOf) -> None:
        self._host = host
        self._owner_of = owner_of
        self._persist = persist
        self._answers = Answers()
        self._attendance = Attendance(host, self._gone, owner_of)

    # --- Join

    def join(self, group: Group, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        """Let a member join, or join again; answered when the next generation is formed, or at once
        with an error. BrokerError INCONSISTENT_GROUP_PROTOCOL if it has no protocol in common with
        all members."""
        if not group.accepts(request.member_id, request.protocol_type, request.protocols):
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id}: no protocol in common with all members",
            )
        with self._answers.changing():
            if not request.member_id:
                self._join_unknown(group, request, reply)
            else:
                self._join_known(group, request, reply)

    def _join_unknown(self, group: Group, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        if request.instance_id is not None and request.instance_id in group.static:
            self._replace_static(group, request, reply)
            return
        self._check_room(group)
        member_id = self._new_member_id(request)
        if request.asks_for_id and request.instance_id is None:
            group.pending[member_id] = self._later(
                group, request.session_timeout_ms, lambda: self._pending_expired(group, member_id)
            )
            self._answers.give(reply, JoinOutcome(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        self._add_member(group, member_id, request, reply)

    def _join_known(self, group: Group, request: JoinRequest, reply: Callable[[JoinOutcome], None]) -> None:
        if request.member_id in group.pending and request.instance_id is None:
            self._check_room(group)
            group.pending.pop(request.member_id).cancel()
            self._add_member(group, request.member_id, request, reply)
            return
        member = group.check_member(request.member_id, request.instance_id)
        same = member.protocols == request.protocols
        leads = group.leader_id == member.member_id
        unchanged = same and (
            group.state is GroupState.COMPLETING_REBALANCE or (group.state is GroupState.STABLE and not leads)
        )
        member.update(request)
        if unchanged:  # a repeated join: it missed the answer, and nothing has changed since
            self.touch(group, member)
            self._answers.give(reply, self._joined(group, member))
            return
        self._await_join(member, reply)
        self._prepare(group)

    def _check_room(self, group: Group) -> None:
        """Raise BrokerError GROUP_MAX_SIZE_REACHED if the group has no room for one more member.
        During a rebalance the members count that have joined it, as in Kafka."""
        rebalancing = group.state is GroupState.PREPARING_REBALANCE
        count = sum(
            1 for member in group.members.values() if member.join_reply is not None or not rebalancing
        )
        if count >= self._host.settings["group.max.size"]:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"group {group.group_id} has group.max.size members"
            )

    def _new_member_id(self, request: JoinRequest) -> str:
        digits = "".join(f"{self._host.rng.randrange(1 << 32):08x}" for _ in range(4))
        unique = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
        return member_id_of(request.client_id if request.instance_id is None else request.instance_id, unique)

    def _add_member(
        self, group: Group, member_id: str, request: JoinRequest, reply: Callable[[JoinOutcome], None]
    ) -> None:
        member = Member(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
        )
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        group.grew = True
        self._await_join(member, reply)
        self._attendance.expect(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._prepare(group)

    def _replace_static(
        self, group: Group, request: JoinRequest, reply: Callable[[JoinOutcome], None]
    ) -> None:
        """Replace a static member whose process restarted (KIP-345); the old id is fenced."""
        assert request.instance_id is not None
        old_id = group.static[request.instance_id]
        led = group.leader_id == old_id
        old = group.members[old_id]
        topics = old.subscribed_topics()
        self._answer_waiting(old, ErrorCode.FENCED_INSTANCE_ID)
        if old.timer is not None:
            old.timer.cancel()
        member = Member(
            self._new_member_id(request),
            request.instance_id,
            request.client_id,
            request.client_host,
            request.session_timeout_ms,
            request.rebalance_timeout_ms,
            request.protocols,
            old.assignment,
            synced=old.synced,
        )
        group.replace(old_id, member)
        unchanged = group.state is GroupState.STABLE and group.elected_protocol() == group.protocol_name
        if (
            unchanged
            and group.protocol_type == CONSUMER_PROTOCOL
            and topics is not None
            and topics == member.subscribed_topics()
        ):
            member.new = False
            self.touch(group, member)
            outcome = self._joined(group, member)
            if led and not request.can_skip:
                outcome.leader_id, outcome.members = (
                    old_id,
                    [],
                )  # so that it does not assign: the assignment stands
            outcome.skip_assignment = led and request.can_skip
            written = self._answers.within
            self._persist(
                group,
                self._record(group),
                lambda error: written(lambda: self._replaced(group, old, member, error, reply, outcome))(),
            )
            return
        self._await_join(member, reply)
        self._attendance.expect(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._prepare(group)

    def _replaced(
        self,
        group: Group,
        old: Member,
        member: Member,
        error: int,
        reply: Callable[[JoinOutcome], None],
        outcome: JoinOutcome,
    ) -> None:
        """Called when a static member's new member id is written, or (`error`) could not be: then
        the old member is put back, as in Kafka."""
        if error and group.members.get(member.member_id) is member:
            if member.timer is not None:
                member.timer.cancel()
            self._answer_waiting(member, error)
            group.replace(member.member_id, old)
            self.touch(group, old)
        self._answers.give(reply, JoinOutcome(error, "") if error else outcome)

    def _await_join(self, member: Member, reply: Callable[[JoinOutcome], None]) -> None:
        if (
            member.join_reply is not None
        ):  # the member lost its connection and asks again: only the last question counts
            self._answers.give(member.join_reply, JoinOutcome(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        member.join_reply = reply

    def _joined(self, group: Group, member: Member) -> JoinOutcome:
        assert group.protocol_name is not None
        assert group.leader_id is not None
        members = []
        if member.member_id == group.leader_id:
            members = [
                (one.member_id, one.instance_id, one.metadata(group.protocol_name))
                for one in group.members.values()
            ]
        return JoinOutcome(
            ErrorCode.NONE,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol_name,
            group.leader_id,
            members=members,
        )

    # --- Rebalance

    def _prepare(self, group: Group) -> None:
        """Begin a rebalance if none is under way, and complete the join if no member is missing."""
        if group.state is not GroupState.PREPARING_REBALANCE:
            for member in group.members.values():
                # What a member was assigned last it may still have: an upgrade goes by that.
                member.synced = False
                self._answer_sync(member, SyncOutcome(ErrorCode.REBALANCE_IN_PROGRESS))
            was_empty = group.state is GroupState.EMPTY
            group.enter(GroupState.PREPARING_REBALANCE)
            self._stop_rebalance_timer(group)
            wait_ms = group.rebalance_timeout_ms()
            if was_empty and self._host.settings["group.initial.rebalance.delay.ms"] > 0:
                self._await_more(group, wait_ms)
                return
            self._set_rebalance_timer(group, wait_ms, lambda: self._complete_join(group))
            if was_empty:
                self._complete_join(group)
                return
        self._complete_if_all_joined(group)

    def _await_more(self, group: Group, remaining_ms: int) -> None:
        """Wait for more members of a new group, again each time one has joined, up to the rebalance
        time-out (KIP-134); `remaining_ms` milliseconds are left."""
        wait_ms = min(self._host.settings["group.initial.rebalance.delay.ms"], remaining_ms)
        group.delayed, group.grew = True, False

        def over() -> None:
            if group.grew and remaining_ms > wait_ms:
                self._await_more(group, remaining_ms - wait_ms)
            else:
                self._complete_join(group)

        self._set_rebalance_timer(group, wait_ms, over)

    def _complete_if_all_joined(self, group: Group) -> None:
        if (
            group.state is not GroupState.PREPARING_REBALANCE
            or group.pending
            or (group.delayed and group.members)
        ):
            return
        if all(member.join_reply is not None for member in group.members.values()):
            self._complete_join(group)

    def _complete_join(self, group: Group) -> None:
        """Complete the join with the members that have joined; static members may be late until
        their session ends (KIP-345)."""
        late = [member for member in group.members.values() if member.join_reply is None]
        for member in late:
            if member.instance_id is None:
                group.remove(member.member_id)
        self._stop_rebalance_timer(group)
        group.delayed = False
        joined = [member for member in group.members.values() if member.join_reply is not None]
        if group.members and not joined:  # only static members, none of them back yet: wait on
            wait_ms = max(group.rebalance_timeout_ms(), WAIT_ON_MIN_MS)
            self._set_rebalance_timer(group, wait_ms, lambda: self._complete_join(group))
            return
        group.generation += 1
        if not group.members:
            self._become_empty(group)
            return
        assert group.leader_id is not None
        if group.members[group.leader_id].join_reply is None:
            group.leader_id = joined[0].member_id
        group.protocol_name = group.elected_protocol()
        group.enter(GroupState.COMPLETING_REBALANCE)
        self._set_rebalance_timer(group, group.rebalance_timeout_ms(), lambda: self._sync_expired(group))
        for member in joined:
            reply, member.join_reply, member.new = member.join_reply, None, False
            self.touch(group, member)
            assert reply is not None
            self._answers.give(reply, self._joined(group, member))

    def _become_empty(self, group: Group) -> None:
        group.enter(GroupState.EMPTY)
        group.protocol_name, group.leader_id = None, None
        group.quiet_since_ms = self._host.wall_ms
        self._persist(
            group, self._record(group), lambda _error: None
        )  # if it fails, who reads the log drops the members in time

    def _sync_expired(self, group: Group) -> None:
        """Drop the members that have joined and never asked for their assignment."""
        missing = [member for member in group.members.values() if not member.synced]
        if not missing or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return
        for member in missing:
            group.remove(member.member_id)
        self._prepare(group)

    # --- Sync, heartbeat, leave

    def sync(
        self,
        group: Group,
        member: Member,
        assignments: Sequence[tuple[str, bytes]],
        reply: Callable[[SyncOutcome], None],
    ) -> None:
        """Serve a member of this generation that asks for its assignment; the leader's request has
        all of them, (member id, assignment). BrokerError if the group's state does not allow it."""
        error = SYNC_ERRORS[group.state]
        if error:
            raise BrokerError(error, f"group {group.group_id} is {group.state.value}")
        with self._answers.changing():
            self._sync(group, member, assignments, reply)

    def _sync(
        self,
        group: Group,
        member: Member,
        assignments: Sequence[tuple[str, bytes]],
        reply: Callable[[SyncOutcome], None],
    ) -> None:
        member.synced = True
        self.touch(group, member)
        if group.state is GroupState.STABLE:
            self._answers.give(reply, self._assigned(group, member))
            return
        self._answer_sync(member, SyncOutcome(ErrorCode.REBALANCE_IN_PROGRESS))
        member.sync_reply = reply
        generation = group.generation
        if member.member_id != group.leader_id or group.persisting == generation:
            return
        group.persisting = generation
        assigned = dict(assignments)
        record = group.generation_record(assigned, self._host.wall_ms)
        self._persist(
            group,
            record,
            lambda error: self._answers.within(
                lambda: self._assigned_written(group, generation, assigned, error)
            )(),
        )

    def _assigned_written(
        self, group: Group, generation: int, assigned: Mapping[str, bytes], error: int
    ) -> None:
        """Called when the generation's assignment is written; after an error all members rebalance.
        Does nothing if the group is at another generation by now."""
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return
        if error:
            for member in group.members.values():
                self._answer_sync(member, SyncOutcome(error))
            self._prepare(group)
            return
        group.enter(GroupState.STABLE)
        for member in list(group.members.values()):
            member.assignment = assigned.get(member.member_id, b"")
            self._answer_sync(member, self._assigned(group, member))

    def heartbeat(self, group: Group, member: Member) -> int:
        """Note that a member is alive. Returns the error code to answer: 0, or
        REBALANCE_IN_PROGRESS, for example."""
        self.touch(group, member)
        return HEARTBEAT_ERRORS[group.state]

    def leave(self, group: Group, member_id: str, instance_id: str | None) -> None:
        """Remove a member. A static one may be named by its instance id alone. BrokerError if there
        is no such member."""
        with self._answers.changing():
            if member_id in group.pending and instance_id is None:
                group.pending.pop(member_id).cancel()
                self._complete_if_all_joined(group)
                return
            if instance_id is not None and not member_id:
                member_id = group.static.get(instance_id, "")
            self._gone(group, group.check_member(member_id, instance_id))

    def restore(self, group: Group) -> None:
        """Called when a group was read from the log: it continues as the log has it, and each
        member's session time-out begins."""
        group.restore()
        for member in group.members.values():
            self.touch(group, member)

    def dissolve(self, group: Group, error_code: int) -> None:
        """Called when the group is coordinated elsewhere: members that wait are answered
        `error_code`, and all timers are cancelled."""
        with self._answers.changing():
            for timer in group.pending.values():
                timer.cancel()
            group.pending.clear()
            self._stop_rebalance_timer(group)
            for member in list(group.members.values()):
                self._answer_waiting(member, error_code)
                group.remove(member.member_id)
            group.enter(GroupState.DEAD)

    def retire(self, group: Group, error_code: int) -> None:
        """Remove the classic members of a group that becomes a consumer group: those that wait are
        answered `error_code`, and all timers are cancelled."""
        with self._answers.changing():
            self.dissolve(group, error_code)
            group.state = GroupState.EMPTY
            group.protocol_type = group.protocol_name = group.leader_id = None
            group.generation = 0

    def adopt(self, group: Group, new: Group) -> None:
        """Called when a consumer group has become the classic group `new`: its members
        rebalance."""
        with self._answers.changing():
            group.protocol_type, group.protocol_name = new.protocol_type, new.protocol_name
            group.generation, group.state = new.generation, GroupState.STABLE
            for member in new.members.values():
                group.add(member)
                self.touch(group, member)
            self._prepare(group)

    def _gone(self, group: Group, member: Member) -> None:
        """Called when a member has left, or its session has expired."""
        with self._answers.changing():
            self._answer_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
            group.remove(member.member_id)
            if group.state is GroupState.PREPARING_REBALANCE:
                self._complete_if_all_joined(group)
            else:
                self._prepare(group)

    def _record(self, group: Group) -> GroupRecord:
        assignments = {member.member_id: member.assignment for member in group.members.values()}
        return group.generation_record(assignments, self._host.wall_ms)

    def _assigned(self, group: Group, member: Member) -> SyncOutcome:
        return SyncOutcome(ErrorCode.NONE, group.protocol_type, group.protocol_name, member.assignment)

    def _answer_sync(self, member: Member, outcome: SyncOutcome) -> None:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            self._answers.give(reply, outcome)

    def _answer_waiting(self, member: Member, error_code: int) -> None:
        self._answer_sync(member, SyncOutcome(error_code))
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            self._answers.give(reply, JoinOutcome(error_code, member.member_id))

    # --- Time

    def touch(self, group: Group, member: Member) -> None:
        """Called when a request of the member came: restart its session time-out."""
        self._attendance.touch(group, member)

    def _pending_expired(self, group: Group, member_id: str) -> None:
        group.pending.pop(member_id, None)
        self._complete_if_all_joined(group)

    def _set_rebalance_timer(self, group: Group, wait_ms: int, function: Callable[[], None]) -> None:
        group.rebalance_timer = self._later(group, wait_ms, function)

    def _later(self, group: Group, wait_ms: int, function: Callable[[], None]) -> Timer:
        deadline_ns = self._host.now_ns + ms_to_ns(wait_ms)
        return self._host.call_at(deadline_ns, self._answers.within(function), self._owner_of(group))

    def _stop_rebalance_timer(self, group: Group) -> None:
        if group.rebalance_timer is not None:
            group.rebalance_timer.cancel()
            group.rebalance_timer = None
