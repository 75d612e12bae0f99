"""Sessions of members: a member that sends no heartbeat for its session time-out is removed.

One timer per member. It is not moved when the deadline moves away, as it does with each heartbeat:
when due, it looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.coordinator.group import Group, Member
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.timers import Timer


class AttendanceHost(Protocol):
    """The parts of a broker that the sessions of groups' members use."""

    now_ns: int

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""


OwnerOf = Callable[[Group], Owner]
"""Gives the owner (`guard`) of work for a group: its shard's."""


class Attendance:
    """The session time-outs of all members of one broker's groups.

    `gone(group, member)` is called once for each member whose session has expired.
    """

    def __init__(
        self, host: AttendanceHost, gone: Callable[[Group, Member], None], owner_of: OwnerOf
    ) -> None:
        self._host = host
        self._owner_of = owner_of
        self._gone = gone

    def touch(self, group: Group, member: Member) -> None:
        """Called when a request of the member came: restart its session time-out."""
        self.expect(group, member, member.session_timeout_ms)

    def expect(self, group: Group, member: Member, timeout_ms: int) -> None:
        """Let the member's session expire `timeout_ms` milliseconds from now, unless this is called
        again before."""
        member.deadline_ns = self._host.now_ns + ms_to_ns(timeout_ms)
        self._arm(group, member)

    def _arm(self, group: Group, member: Member) -> None:
        if member.timer is None or not member.timer.pending or member.timer.deadline_ns > member.deadline_ns:
            if member.timer is not None:
                member.timer.cancel()
            member.timer = self._host.call_at(
                member.deadline_ns, lambda: self._due(group, member), self._owner_of(group)
            )

    @hook("groups: a session may be over")
    def _due(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is not member:
            return
        waiting = (member.join_reply is not None and not member.new) or member.sync_reply is not None
        if waiting:  # it cannot be heard of while it waits for us
            member.deadline_ns = self._host.now_ns + ms_to_ns(member.session_timeout_ms)
        if member.deadline_ns > self._host.now_ns:
            self._arm(group, member)
        else:
            self._gone(group, member)
