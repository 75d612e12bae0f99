"""Share groups (KIP-932) among the groups of a coordinator: heartbeats and sessions of members, and the
state of their partitions at the share coordinator.

A heartbeat is decided on what is in memory (`share_groups.membership`), written as one batch, and in
memory as soon as the log has taken it. It may find partitions without a state: these are noted as
initializing, the share coordinator is asked once that is committed, and once it has them they are
noted as initialized; with the next heartbeat they come into targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.consumer_groups import HeartbeatResult
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.coordinator.cluster_topics import ClusterTopics
from fairlead_kafka.broker.coordinator.group import Group
from fairlead_kafka.broker.coordinator.shard import Shard
from fairlead_kafka.broker.coordinator.shard_log import ShardLog, when_committed
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.shards import Shards
from fairlead_kafka.broker.share_groups import (
    NO_OFFSET,
    ShareEpoch,
    ShareEpochKey,
    ShareGroup,
    ShareGroupEntry,
    ShareHeartbeat,
    ShareKey,
    ShareView,
    StatePartitionsKey,
    StatePersister,
    TopicState,
    begun,
    check_share_heartbeat,
    deleting,
    forgotten,
    merged,
    share_heartbeat,
    share_leave,
)
from fairlead_kafka.broker.timers import Timer

_logger = GuardedLogger("fairlead_kafka.broker")

Done = Callable[[int], None]
"""done(error code for a client, 0 if it stands) is called once."""
Places = Mapping[UUID, TopicState]
"""Topic id → its name, and partitions."""


class ShareSideHost(Protocol):
    """The part of the broker that share groups need."""

    now_ns: int
    wall_ms: int
    settings: Settings

    @property
    def controller(self) -> ClusterView:
        """The cluster's image, and the way to change it."""

    @property
    def share_persister(self) -> StatePersister:
        """The way to share coordinators."""

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""


@dataclass(slots=True)
class _Watch:
    """Session of one member. Its timer is not moved by each heartbeat; when due it looks again."""

    deadline_ns: int = 0
    timer: Timer | None = None


class ShareSide:
    """The share groups of one coordinator. Methods raise BrokerError with what the client is told."""

    def __init__(
        self,
        broker: ShareSideHost,
        shards: Shards[Shard],
        log: ShardLog,
        topics: ClusterTopics,
        owner_of: Callable[[Group], Owner],
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._log = log
        self._topics = topics
        self._owner_of = owner_of
        self._watches: dict[str, dict[str, _Watch]] = {}

    # --- Members

    def heartbeat(self, request: ShareHeartbeat, reply: Callable[[int, HeartbeatResult], None]) -> None:
        """Serve a ShareGroupHeartbeat; reply(error code, answer) once the log has what the answer
        rests on."""
        check_share_heartbeat(request)
        shard = self._shards.of(request.group_id)
        if request.member_epoch < 0:
            self._leave(shard, self.existing(request.group_id), request, reply)
            return
        made = shard.groups.get(request.group_id)
        new = request.member_epoch == 0 and (made is None or made.forgettable())
        group = ShareGroup(request.group_id) if new else self.existing(request.group_id)
        try:
            step, answer = share_heartbeat(group, request, self._view(request.group_id))

            def written(error: int) -> None:
                reply(error, answer)
                if not error and step.begin:
                    self._begin_states(request.group_id, step.begin)

            self._write(shard, request.group_id, step.entries, written)
        except BrokerError:
            group.topics_version = -1  # whatever was seen was not taken
            if new:
                self._forget_made(shard, request.group_id)
            raise
        if step.begin:
            begun_ms = dict.fromkeys(step.begin, self._broker.wall_ms)
            self.existing(request.group_id).begun_ms.update(begun_ms)
        self._touch(request.group_id, request.member_id)

    def _leave(
        self,
        shard: Shard,
        group: ShareGroup,
        request: ShareHeartbeat,
        reply: Callable[[int, HeartbeatResult], None],
    ) -> None:
        answer = HeartbeatResult(request.member_id, request.member_epoch)
        entries = share_leave(group, request.member_id, self._view(group.group_id))
        self._write(shard, group.group_id, entries, lambda error: reply(error, answer))
        self.forget(group.group_id, request.member_id)

    def existing(self, group_id: str, kind: str = "Share group") -> ShareGroup:
        """The share group of this id. BrokerError GROUP_ID_NOT_FOUND, in Kafka's words, for one
        that is not there (as a `kind`), or of another kind."""
        group = self._shards.of(group_id).groups.get(group_id)
        if group is None or (group.share is None and group.forgettable()):
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")
        if group.share is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group.share

    def _find(self, group_id: str) -> tuple[Shard, ShareGroup] | None:
        """Shard and group, if the share group is at home here; else None. For work that nobody
        waits for."""
        try:
            return self._shards.of(group_id), self.existing(group_id)
        except BrokerError:
            return None

    def _view(self, group_id: str) -> ShareView:
        own = self._broker.controller.group_settings(group_id)
        settings = self._broker.settings
        return ShareView(
            self._topics,
            own["share.assignment.interval.ms"],
            settings["group.share.max.size"],
            settings["group.share.initialize.retry.interval.ms"],
            self._broker.wall_ms,
        )

    def _write(self, shard: Shard, group_id: str, entries: Sequence[ShareGroupEntry], written: Done) -> None:
        group = shard.group(group_id, self._broker.wall_ms)
        if entries:
            self._log.write_at_once(shard, group, entries, written)
        else:
            when_committed(group, written)

    def _forget_made(self, shard: Shard, group_id: str) -> None:
        group = shard.groups.get(group_id)
        if group is not None and group.forgettable():
            del shard.groups[group_id]

    def _write_by_itself(self, group_id: str, entries: Sequence[ShareGroupEntry]) -> bool:
        """Write entries that no request asked for; False if the log does not take them."""
        if not entries:
            return True
        try:
            self._write(self._shards.of(group_id), group_id, entries, lambda _error: None)
        except BrokerError as error:
            _logger.warning("share group %s: %s", group_id, error)
            return False
        return True

    # --- Sessions

    def loaded(self, group: ShareGroup) -> None:
        """Called when a group was read from the log: each member has a session's time to be heard
        of."""
        for member_id in group.members:
            self._touch(group.group_id, member_id)
        gone = {
            topic
            for topics in (group.states.initializing, group.states.initialized, group.states.deleting)
            for topic in topics
            if self._topics.by_id(topic) is None
        }
        self._write_by_itself(group.group_id, forgotten(group, gone))

    def forget(self, group_id: str, member_id: str | None = None) -> None:
        """Called when a member is gone, or (None) the whole group: sessions end."""
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
        found = self._find(group_id)
        if found is None or member_id not in found[1].members:
            self.forget(group_id, member_id)
            return
        _logger.info(
            "share group %s: member %s was not heard of for its session timeout", group_id, member_id
        )
        if self._write_by_itself(group_id, share_leave(found[1], member_id, self._view(group_id))):
            self.forget(group_id, member_id)
        else:
            self._touch(group_id, member_id)  # the log takes nothing just now: again in a session's time

    # --- States of partitions

    def _begin_states(self, group_id: str, places: Places) -> None:
        """Have the share coordinator begin the states of partitions, and note those that it has.

        It is asked once the log has committed that they are begun: a coordinator that is one no more
        would leave states that no group knows of."""
        found = self._find(group_id)
        if found is None:
            return
        group = found[1]
        epoch = group.epoch

        def asked(errors: dict[ShareKey, int]) -> None:
            there = _grouped(places, (key for key, error in errors.items() if not error))
            now = self._find(group_id)
            if now is not None and there:
                self._write_by_itself(group_id, begun(now[1], there))

        self._each(
            group,
            places,
            lambda key, done: self._broker.share_persister.initialize(key, epoch, NO_OFFSET, done),
            asked,
        )

    def _each(
        self,
        group: ShareGroup,
        places: Places,
        ask: Callable[[ShareKey, Done], None],
        asked: Callable[[dict[ShareKey, int]], None],
    ) -> None:
        """Ask for each share partition; asked(key → error code) once all are answered. Until then
        the group counts them among `asked`: no other question goes beside, and they are not
        assigned."""
        keys = [
            ShareKey(group.group_id, topic, number)
            for topic, state in places.items()
            for number in sorted(state.partitions)
        ]
        pairs = Counter((key.topic_id, key.partition) for key in keys)
        group.asked += pairs
        errors: dict[ShareKey, int] = {}

        def answered(key: ShareKey, error: int) -> None:
            errors[key] = error
            if len(errors) == len(keys):
                group.asked -= pairs
                asked(errors)

        if not keys:
            asked({})
        for key in keys:
            ask(key, partial(answered, key))

    def topic_deleted(self, topic_id: UUID) -> None:
        """Called when a topic is gone. The share coordinator hears of it by itself; here the groups
        forget it."""
        for shard in self._shards.loaded():
            for group in shard.groups.values():
                if group.share is not None and forgotten(group.share, [topic_id]):
                    self._forget_later(group, topic_id)

    def _forget_later(self, group: Group, topic_id: UUID) -> None:
        """Forget a topic of a group in a later step, since files are for a step of our own."""

        def forget() -> None:
            found = self._find(group.group_id)
            if found is not None:
                self._write_by_itself(group.group_id, forgotten(found[1], [topic_id]))

        self._broker.call_at(self._broker.now_ns, forget, self._owner_of(group))

    def delete_group(self, shard: Shard, group: Group, reply: Done) -> None:
        """Delete a share group without members: the states of its partitions, then itself. Calls
        reply(error code)."""
        share = group.share
        assert share is not None
        states = share.states
        places = merged(self._left_over(share), merged(states.initializing, states.initialized))

        def noted(error: int) -> None:
            now = self._still_empty(group.group_id, error)
            if isinstance(now, int):
                reply(now)
            else:
                self._each(now, places, self._broker.share_persister.delete, forgotten_there)

        def forgotten_there(errors: dict[ShareKey, int]) -> None:
            failed = next((error for error in errors.values() if error), ErrorCode.NONE)
            found = self._find(group.group_id)
            if failed or found is None:
                reply(failed or ErrorCode.GROUP_ID_NOT_FOUND)
            elif found[1].members:
                reply(ErrorCode.NON_EMPTY_GROUP)
            else:
                try:
                    self._write(found[0], group.group_id, list(found[1].tombstones()), reply)
                except BrokerError as error:
                    reply(error.code)

        self._note(group.group_id, lambda now: deleting(now, places), noted)

    # --- Offsets

    def places(self, group_id: str) -> Places:
        """The partitions of a group whose state there is; none for a group that is not there."""
        group = self._shards.of(group_id).groups.get(group_id)
        return {} if group is None or group.share is None else group.share.states.initialized

    def alter(
        self,
        group_id: str,
        offsets: Mapping[UUID, Mapping[int, int]],
        reply: Callable[[dict[ShareKey, int]], None],
    ) -> None:
        """Serve AlterShareGroupOffsets: a group without members, made if there is none, goes on
        from these offsets; reply(key → error code). BrokerError: NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND for one of another kind.

        The group's epoch goes up by one, and is the state epoch of the new states (KIP-932): a
        question that is asked again, since its answer was lost, does not begin them a second time.
        """
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        shard = self._shards.of(group_id)
        made = shard.groups.get(group_id)
        new = made is None or made.forgettable()
        group = ShareGroup(group_id) if new else self._empty(group_id)
        places: dict[UUID, TopicState] = {}
        for topic_id, numbers in offsets.items():
            topic = self._topics.by_id(topic_id)
            if topic is not None:
                places[topic_id] = TopicState(topic.name, frozenset(numbers))
        epoch = group.epoch + 1

        def begin(key: ShareKey, done: Done) -> None:
            start = offsets[key.topic_id][key.partition]
            self._broker.share_persister.initialize(key, epoch, start, done)

        def began(errors: dict[ShareKey, int]) -> None:
            there = _grouped(places, (key for key, error in errors.items() if not error))
            self._note(group_id, lambda now: begun(now, there), lambda error: reply(_with(errors, error)))

        def noted(error: int) -> None:
            now = self._still_empty(group_id, error)
            if isinstance(now, int):
                keys = (ShareKey(group_id, topic, number) for topic, one in offsets.items() for number in one)
                reply(dict.fromkeys(keys, now))
            else:
                self._each(now, places, begin, began)

        entries: list[ShareGroupEntry] = []
        if places or new:
            states = group.states._replace(initializing=merged(group.states.initializing, places))
            entries.append((ShareEpochKey(group_id), ShareEpoch(epoch, group.metadata_hash)))
            entries.append((StatePartitionsKey(group_id), states))
        self._write(shard, group_id, entries, noted)

    def delete_offsets(
        self, group_id: str, topics: Iterable[UUID], reply: Callable[[dict[UUID, int]], None]
    ) -> None:
        """Serve DeleteShareGroupOffsets: a group without members forgets where it is in topics;
        reply(topic id → error code). BrokerError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        group = self._empty(group_id)
        wanted = [topic for topic in topics if topic in group.states.initialized]
        places = {topic: group.states.initialized[topic] for topic in wanted}

        def forget(error: int) -> None:
            now = self._still_empty(group_id, error)
            if isinstance(now, int):
                reply(dict.fromkeys(wanted, now))
            else:
                self._each(now, places, self._broker.share_persister.delete, gone)

        def gone(errors: dict[ShareKey, int]) -> None:
            by_topic = dict.fromkeys(wanted, 0)
            for key, error in errors.items():
                by_topic[key.topic_id] = by_topic[key.topic_id] or error
            done = [topic for topic, error in by_topic.items() if not error]
            self._note(
                group_id,
                lambda now: forgotten(now, done),
                lambda error: reply({topic: one or error for topic, one in by_topic.items()}),
            )

        self._note(group_id, lambda now: deleting(now, places), forget)

    def _empty(self, group_id: str) -> ShareGroup:
        group = self.existing(group_id)
        if group.members:
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        return group

    def _still_empty(self, group_id: str, error: int) -> ShareGroup | int:
        """The group, if what was to be written stands and no member has joined meanwhile; if not, the
        error code for the client."""
        try:
            return error or self._empty(group_id)
        except BrokerError as refused:
            return refused.code

    def _left_over(self, group: ShareGroup) -> Places:
        """All partitions of topics whose state was to be forgotten before, and may be there still."""
        topics = (self._topics.by_id(topic_id) for topic_id in group.states.deleting)
        return {
            topic.topic_id: TopicState(topic.name, frozenset(range(topic.partitions)))
            for topic in topics
            if topic is not None
        }

    def _note(
        self, group_id: str, entries: Callable[[ShareGroup], Sequence[ShareGroupEntry]], done: Done
    ) -> None:
        """Write what follows from what was asked elsewhere; done(error code) once it stands."""
        try:
            shard, group = self._shards.of(group_id), self.existing(group_id)
            self._write(shard, group_id, entries(group), done)
        except BrokerError as error:
            done(error.code)


def _with(errors: dict[ShareKey, int], error: int) -> dict[ShareKey, int]:
    return {key: one or error for key, one in errors.items()}


def _grouped(places: Places, keys: Iterable[ShareKey]) -> dict[UUID, TopicState]:
    """Partitions of share partitions, by topic."""
    numbers: dict[UUID, set[int]] = {}
    for key in keys:
        numbers.setdefault(key.topic_id, set()).add(key.partition)
    return {topic: TopicState(places[topic].name, frozenset(found)) for topic, found in numbers.items()}
