"""Share groups (KIP-932) of a coordinator: heartbeats and sessions of their members.

A heartbeat is decided from the state in memory (`share_groups.membership`), written as one batch,
and applied to memory once it is appended. It may find partitions without a state: they are recorded
as initializing, the share coordinator is asked once that is committed (`share_states`), and once it
has them they are recorded as initialized; with the next heartbeat they are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.consumer_groups import HeartbeatResult
from fairlead_kafka.broker.coordinator.cluster_topics import ClusterTopics
from fairlead_kafka.broker.coordinator.group import Group
from fairlead_kafka.broker.coordinator.shard import Shard
from fairlead_kafka.broker.coordinator.shard_log import ShardLog
from fairlead_kafka.broker.coordinator.share_records import ShareRecords, ShareRecordsHost
from fairlead_kafka.broker.coordinator.share_states import ShareStates, ShareStatesHost
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.shards import Shards
from fairlead_kafka.broker.share_groups import (
    ShareGroup,
    ShareHeartbeat,
    check_share_heartbeat,
    note_begun,
    share_heartbeat,
    share_leave,
)
from fairlead_kafka.broker.timers import Timer

_logger = GuardedLogger("fairlead_kafka.broker")


class ShareSideHost(ShareRecordsHost, ShareStatesHost, Protocol):
    """The parts of a broker that share groups use."""


@dataclass(slots=True)
class _Watch:
    """The session of one member. Its timer is not moved by each heartbeat: when it is due, it looks
    whether there was one."""

    deadline_ns: int = 0
    timer: Timer | None = None


class ShareSide:
    """The share groups of one coordinator. Methods raise BrokerError with the code to answer."""

    def __init__(
        self,
        broker: ShareSideHost,
        shards: Shards[Shard],
        log: ShardLog,
        topics: ClusterTopics,
        owner_of: Callable[[Group], Owner],
    ) -> None:
        self._broker = broker
        self.records = ShareRecords(broker, shards, log, topics)
        """The groups, and their log."""
        self.states = ShareStates(broker, self.records, owner_of)
        """The states of their partitions at the share coordinator."""
        self._owner_of = owner_of
        self._watches: dict[str, dict[str, _Watch]] = {}

    # --- Members

    def heartbeat(self, request: ShareHeartbeat, reply: Callable[[int, HeartbeatResult], None]) -> None:
        """Serve a ShareGroupHeartbeat; reply(error code, answer) once the records that the answer
        depends on are written."""
        check_share_heartbeat(request)
        if request.member_epoch < 0:
            self._leave(request, reply)
            return
        if request.member_epoch == 0:
            group, new = self.records.existing_or_new(request.group_id)
        else:
            group, new = self.records.existing(request.group_id), False
        try:
            step, answer = share_heartbeat(group, request, self.records.view(request.group_id))

            def written(error: int) -> None:
                reply(error, answer)
                if not error and step.begin:
                    self.states.begin(request.group_id, step.epoch, step.begin)

            self.records.write(request.group_id, step.entries, written)
        except BrokerError:
            group.topics_version = -1  # whatever was seen was not taken
            if new:
                self.records.forget_made(request.group_id)
            raise
        if step.begin:
            note_begun(
                self.records.existing(request.group_id), step.begin, self.records.view(request.group_id)
            )
        self._touch(request.group_id, request.member_id)

    def _leave(self, request: ShareHeartbeat, reply: Callable[[int, HeartbeatResult], None]) -> None:
        group_id = request.group_id
        answer = HeartbeatResult(request.member_id, request.member_epoch)
        group = self.records.existing(group_id)
        entries = share_leave(group, request.member_id, self.records.view(group_id))
        self.records.write(group_id, entries, lambda error: reply(error, answer))
        self.forget(group_id, request.member_id)

    # --- Sessions

    def loaded(self, group: ShareGroup) -> None:
        """Called when a group was read from the log: the session time-out of each member starts
        again."""
        for member_id in group.members:
            self._touch(group.group_id, member_id)
        self.states.loaded(group)

    def forget(self, group_id: str, member_id: str | None = None) -> None:
        """Called when a member was removed, or (`member_id` None) the whole group: end the
        sessions."""
        watches = self._watches.get(group_id, {})
        for one in [*watches] if member_id is None else [member_id]:
            watch = watches.pop(one, None)
            if watch is not None and watch.timer is not None:
                watch.timer.cancel()
        if not watches:
            self._watches.pop(group_id, None)

    def _touch(self, group_id: str, member_id: str) -> None:
        timeout_ms = self._broker.controller.group_settings(group_id)["share.session.timeout.ms"]
        watch = self._watches.setdefault(group_id, {}).setdefault(member_id, _Watch())
        watch.deadline_ns = self._broker.now_ns + ms_to_ns(timeout_ms)
        timer = watch.timer
        if timer is None or not timer.pending or timer.deadline_ns > watch.deadline_ns:
            if timer is not None:
                timer.cancel()
            self._arm(group_id, member_id, watch)

    def _arm(self, group_id: str, member_id: str, watch: _Watch) -> None:
        watch.timer = self._broker.call_at(
            watch.deadline_ns,
            lambda: self._session_due(group_id, member_id, watch),
            self._owner_of(Group(group_id)),
        )

    def _session_due(self, group_id: str, member_id: str, watch: _Watch) -> None:
        if watch.deadline_ns > self._broker.now_ns:
            self._arm(group_id, member_id, watch)
            return
        group = self.records.find(group_id)
        if group is None or member_id not in group.members:
            self.forget(group_id, member_id)
            return
        _logger.info(
            "share group %s: member %s was not heard of for its session timeout", group_id, member_id
        )
        gone = share_leave(group, member_id, self.records.view(group_id))
        if self.records.write_by_itself(group_id, gone):
            self.forget(group_id, member_id)
        else:
            self._touch(group_id, member_id)  # the log takes nothing just now: again in a session's time
