"""Consumer groups of one broker: requests of members, their timers, and writing to the log.

A change is decided from the state in memory (`membership`, `classic_members`), written as one
batch, and applied to memory once it is appended, so that the next request sees it. A request is
answered only once all records that its answer depends on are committed, also those of other
requests.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.consumer_groups.classic_members import (
    ClassicJoin,
    assignment_of,
    check_classic_join,
    check_sync,
    join_classic,
    leaving,
    must_join_again,
    speaking_classic,
)
from fairlead_kafka.broker.consumer_groups.group import ConsumerGroup, ConsumerMember
from fairlead_kafka.broker.consumer_groups.membership import (
    Heartbeat,
    HeartbeatResult,
    Step,
    fence,
    heartbeat,
    leave,
    resolve_patterns,
)
from fairlead_kafka.broker.consumer_groups.records import GroupsEntry
from fairlead_kafka.broker.consumer_groups.states import MemberState
from fairlead_kafka.broker.consumer_groups.view import View
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.timers import Timer
from fairlead_kafka.core.machine import Rng

_logger = GuardedLogger("fairlead_kafka.broker")

_ID_BYTES = 16
Written = Callable[[int], None]
"""written(error code for a client, 0 if it stands) is called once the log has committed."""
Commit = Callable[[Sequence[GroupsEntry], Written], None]
"""commit(entries, written) writes entries; BrokerError if the log does not take them."""
Visible = Callable[[Iterable[str]], Container[str | None]]


class GroupsHost(Protocol):
    """The parts of a broker that consumer groups use."""

    now_ns: int
    rng: Rng

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""


class GroupsHome(Protocol):
    """The parts of the group coordinator that consumer groups use."""

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group of this id, if it is a consumer group and this broker coordinates it; else
        None."""

    def view(self, group_id: str) -> View:
        """The metadata and settings that a decision about a group depends on."""

    def owner_of_group(self, group_id: str) -> Owner:
        """Owner (`guard`) of work for a group."""

    def write_group(self, group_id: str, entries: Sequence[GroupsEntry], written: Written) -> None:
        """Write entries as one batch; `written` is called once they are. BrokerError if they cannot
        be written."""

    def when_committed(self, group_id: str, committed: Written) -> None:
        """Call `committed` once all entries written so far of the group are committed."""

    def downgrades(self, group: ConsumerGroup, gone: Sequence[ConsumerMember]) -> bool:
        """Turn a group whose last members of the consumer protocol (`gone`) leave into a classic
        group; True if that was done."""


@dataclass(slots=True)
class _Watch:
    """Timers of one member. The session's timer is not moved by each heartbeat: when it is due, it
    looks whether there was one."""

    deadline_ns: int = 0
    session: Timer | None = None
    rebalance: Timer | None = None
    join: Timer | None = None
    sync: Timer | None = None

    def cancel(self) -> None:
        """Cancel all timers of the watch."""
        for timer in (self.session, self.rebalance, self.join, self.sync):
            if timer is not None:
                timer.cancel()


class ConsumerGroups:
    """Members of all consumer groups of one broker. Methods raise BrokerError with the code to
    answer."""

    def __init__(self, host: GroupsHost, home: GroupsHome) -> None:
        self._host = host
        self._home = home
        self._watches: dict[str, dict[str, _Watch]] = {}

    # --- Members of the consumer protocol

    def heartbeat(
        self, group: ConsumerGroup, request: Heartbeat, reply: Callable[[int, HeartbeatResult], None]
    ) -> None:
        """Serve a heartbeat that joins or goes on; reply(error code, answer)."""
        self.begin(
            group, request, reply, lambda entries, written: self._commit(group.group_id, entries, written)
        )

    def begin(
        self,
        group: ConsumerGroup,
        request: Heartbeat,
        reply: Callable[[int, HeartbeatResult], None],
        commit: Commit,
    ) -> None:
        """Serve a heartbeat that creates a group: `commit` writes its entries, behind those that
        make the group."""
        member_id = request.member_id or self.new_id()
        view = self._home.view(group.group_id)
        try:
            step, answer = heartbeat(group, request, member_id, view)
            commit(step.entries, lambda error: reply(error, answer))
        except BrokerError:
            group.soft.topics_version = -1  # whatever was seen was not taken
            raise
        self._arm(group.group_id, step, request.visible)

    def leave(
        self, group: ConsumerGroup, request: Heartbeat, reply: Callable[[int, HeartbeatResult], None]
    ) -> None:
        """Serve a heartbeat that leaves; reply(error code, answer)."""
        answer = HeartbeatResult(request.member_id, request.member_epoch)
        member = group.speaker(request.member_id, request.instance_id)
        entries, gone = leave(group, request, self._home.view(group.group_id))
        if gone and self._home.downgrades(group, [member]):
            self._home.when_committed(group.group_id, lambda error: reply(error, answer))
            return
        self._commit(group.group_id, entries, lambda error: reply(error, answer))
        if gone:
            self.forget(group.group_id, member.member_id)

    def new_id(self) -> str:
        """An id for a member that has none (Kafka's `Uuid.toString`)."""
        data = b"".join(self._host.rng.randrange(256).to_bytes(1, "big") for _ in range(_ID_BYTES))
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    def _commit(self, group_id: str, entries: Sequence[GroupsEntry], written: Written) -> None:
        if entries:
            self._home.write_group(group_id, entries, written)
        else:
            self._home.when_committed(group_id, written)

    def _arm(self, group_id: str, step: Step, visible: Visible) -> None:
        """Set the timers that the member of a step needs, and have regular expressions resolved if
        need be."""
        self.touch(group_id, step.member)
        watch = self._watch(group_id, step.member.member_id)
        revoking = step.member.current.state is MemberState.UNREVOKED_PARTITIONS
        if step.moved or not revoking:
            self._stop(watch, "rebalance")
        waits = watch.rebalance is not None and watch.rebalance.pending
        if revoking and not step.member.classic and not waits:
            self._limit_rebalance(group_id, step.member)
        group = self._home.consumer_group(group_id)
        if step.resolve and group is not None:
            group.soft.resolving = True
            self._later(group_id, 0, lambda: self._resolve(group_id, visible))

    def _resolve(self, group_id: str, visible: Visible) -> None:
        group = self._home.consumer_group(group_id)
        if group is None:
            return
        group.soft.resolving = False
        entries = resolve_patterns(group, visible, self._home.view(group_id))
        if not self._write_by_itself(group_id, entries):
            group.soft.patterns_version = group.soft.topics_version = -1  # whatever was seen was not taken

    def _write_by_itself(self, group_id: str, entries: Sequence[GroupsEntry]) -> bool:
        """Write entries that are no part of a request; False if they cannot be written."""
        try:
            self._commit(group_id, entries, lambda _error: None)
        except BrokerError as error:
            _logger.warning("group %s: %s", group_id, error)
            return False
        return True

    # --- Members of the classic protocol

    def join_classic(
        self, group: ConsumerGroup, request: ClassicJoin, reply: Callable[[int, ConsumerMember], None]
    ) -> None:
        """Serve a JoinGroup of a classic member; reply(error code, member), whose epoch is its
        generation."""
        view = self._home.view(group.group_id)
        check_classic_join(group, request, view)
        try:
            step = join_classic(group, request, view)
            self._commit(group.group_id, step.entries, lambda error: reply(error, step.member))
        except BrokerError:
            group.soft.topics_version = -1
            raise
        self._arm(group.group_id, step, frozenset)
        watch = self._watch(group.group_id, step.member.member_id)
        self._stop(watch, "join")
        self._stop(watch, "sync")
        watch.sync = self._fence_later(group.group_id, step.member, "has not asked for its assignment")

    def sync_classic(
        self,
        group: ConsumerGroup,
        who: tuple[str, str | None, int],
        protocol: tuple[str | None, str | None],
        reply: Callable[[int, bytes], None],
    ) -> None:
        """Serve a SyncGroup; `who` is (member id, instance id, generation), `protocol` (type,
        name). Calls reply(error code, assignment)."""
        member = speaking_classic(group, *who)
        try:
            check_sync(group, member, *protocol)
        except BrokerError as error:
            if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._expect_join(group.group_id, member)
            raise
        self._stop(self._watch(group.group_id, member.member_id), "sync")
        self.touch(group.group_id, member)
        assignment = assignment_of(member, self._home.view(group.group_id))
        self._home.when_committed(group.group_id, lambda error: reply(error, assignment))

    def heartbeat_classic(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> int:
        """Note that a classic member is alive. Returns the error code to answer."""
        member = speaking_classic(group, member_id, instance_id, generation)
        self.touch(group.group_id, member)
        if not must_join_again(group, member):
            return ErrorCode.NONE
        self._expect_join(group.group_id, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def leave_classic(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """Remove one member that a LeaveGroup names, of either protocol."""
        member = leaving(group, member_id, instance_id)
        if self._home.downgrades(group, [member]):
            return
        entries = fence(group, [member], self._home.view(group.group_id))
        self._commit(group.group_id, entries, lambda _error: None)
        self.forget(group.group_id, member.member_id)

    def _expect_join(self, group_id: str, member: ConsumerMember) -> None:
        watch = self._watch(group_id, member.member_id)
        if watch.join is None or not watch.join.pending:
            watch.join = self._fence_later(group_id, member, "has not joined again")

    # --- Time

    def loaded(self, group: ConsumerGroup) -> None:
        """Called when a group was read from the log: each member's session time-out begins."""
        for member in group.members.values():
            self.touch(group.group_id, member)
            if member.current.state is MemberState.UNREVOKED_PARTITIONS and not member.classic:
                self._limit_rebalance(group.group_id, member)

    def touch(self, group_id: str, member: ConsumerMember) -> None:
        """Called when a request of the member came: restart its session time-out."""
        about = member.about
        timeout_ms = (
            self._home.view(group_id).settings.session_timeout_ms
            if about.classic is None
            else about.classic.session_timeout_ms
        )
        watch = self._watch(group_id, member.member_id)
        watch.deadline_ns = self._host.now_ns + ms_to_ns(timeout_ms)
        pending = watch.session is not None and watch.session.pending
        if not pending or (watch.session is not None and watch.session.deadline_ns > watch.deadline_ns):
            self._stop(watch, "session")
            self._watch_session(group_id, member.member_id, watch)

    def _watch_session(self, group_id: str, member_id: str, watch: _Watch) -> None:
        watch.session = self._host.call_at(
            watch.deadline_ns,
            lambda: self._session_due(group_id, member_id, watch),
            self._home.owner_of_group(group_id),
        )

    @hook("consumer groups: a session may be over")
    def _session_due(self, group_id: str, member_id: str, watch: _Watch) -> None:
        if watch.deadline_ns > self._host.now_ns:
            self._watch_session(group_id, member_id, watch)
        else:
            self._fence(group_id, member_id, "was not heard of for its session timeout")

    def _limit_rebalance(self, group_id: str, member: ConsumerMember) -> None:
        epoch = member.epoch
        watch = self._watch(group_id, member.member_id)

        def due() -> None:
            group = self._home.consumer_group(group_id)
            now = None if group is None else group.members.get(member.member_id)
            if now is not None and now.epoch == epoch:
                self._fence(group_id, member.member_id, "has not given partitions up in time")

        watch.rebalance = self._later(group_id, member.about.rebalance_timeout_ms, due)

    def _fence_later(self, group_id: str, member: ConsumerMember, why: str) -> Timer:
        return self._later(
            group_id,
            member.about.rebalance_timeout_ms,
            lambda: self._fence(group_id, member.member_id, why),
        )

    def _fence(self, group_id: str, member_id: str, why: str) -> None:
        group = self._home.consumer_group(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            self.forget(group_id, member_id)
            return
        _logger.info("group %s: member %s %s, and is fenced", group_id, member_id, why)
        try:
            if self._home.downgrades(group, [member]):
                return
        except BrokerError as error:  # it stays a group of both protocols
            _logger.warning("group %s: cannot become a classic one: %s", group_id, error)
        if self._write_by_itself(group_id, fence(group, [member], self._home.view(group_id))):
            self.forget(group_id, member_id)
        else:
            self.touch(group_id, member)  # the log takes nothing just now: try again in a session's time

    def _later(self, group_id: str, wait_ms: float, function: Callable[[], None]) -> Timer:
        owner = self._home.owner_of_group(group_id)
        return self._host.call_at(self._host.now_ns + ms_to_ns(max(wait_ms, 0)), function, owner)

    def _watch(self, group_id: str, member_id: str) -> _Watch:
        return self._watches.setdefault(group_id, {}).setdefault(member_id, _Watch())

    @staticmethod
    def _stop(watch: _Watch, name: str) -> None:
        timer = getattr(watch, name)
        if timer is not None:
            timer.cancel()
            setattr(watch, name, None)

    def forget(self, group_id: str, member_id: str | None = None) -> None:
        """Called when a member was removed, or (`member_id` None) the whole group: cancel the
        timers."""
        watches = self._watches.get(group_id, {})
        for one in [*watches] if member_id is None else [member_id]:
            watch = watches.pop(one, None)
            if watch is not None:
                watch.cancel()
        if not watches:
            self._watches.pop(group_id, None)

    def watched(self, group_id: str) -> Iterator[str]:
        """Members whose session is watched; for checks."""
        for member_id, watch in self._watches.get(group_id, {}).items():
            if watch.session is not None and watch.session.pending:
                yield member_id
