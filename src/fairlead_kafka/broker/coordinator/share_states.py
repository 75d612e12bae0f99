"""Requests of the group coordinator to the share coordinator: to initialize, alter and delete
states of share partitions.

A request is written to the group's record before it is sent, and its outcome after the answer, so
the next coordinator knows which states may exist. Each request has as its state epoch the group's
epoch at the time it was written. So it does not affect a later state, even of a new group with the
same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.coordinator.group import Group
from fairlead_kafka.broker.coordinator.share_records import Done, ShareRecords
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.share_groups import (
    NO_OFFSET,
    Alteration,
    Alterations,
    Question,
    ShareEpoch,
    ShareEpochKey,
    ShareGroup,
    ShareGroupEntry,
    ShareKey,
    StatePartitionsKey,
    StatePersister,
    TopicState,
    begun,
    deleting,
    forgotten,
    merged,
)
from fairlead_kafka.broker.timers import Timer

Places = Mapping[UUID, TopicState]
"""Topic id → its name, and partitions."""


class ShareStatesHost(Protocol):
    """The parts of a broker that the states of share groups use."""

    now_ns: int
    wall_ms: int

    @property
    def share_persister(self) -> StatePersister:
        """The way to share coordinators."""

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""


class ShareStates:
    """Keeps the states of one group coordinator's share groups at the share coordinators: begins,
    alters and deletes them. Methods raise BrokerError with the code to answer."""

    def __init__(
        self, broker: ShareStatesHost, records: ShareRecords, owner_of: Callable[[Group], Owner]
    ) -> None:
        self._broker = broker
        self._records = records
        self._owner_of = owner_of
        self._open: dict[str, list[Callable[[], None]]] = {}
        """Group → what ends each round of questions under way, for when the group is not at home
        here any more."""

    def dropped(self, group_id: str) -> None:
        """Called when another broker coordinates the group: requests to share coordinators end with
        NOT_COORDINATOR, and are not repeated."""
        for end in self._open.pop(group_id, []):
            end()

    def begin(self, group_id: str, epoch: int, places: Places) -> None:
        """Have the share coordinator begin the states of partitions at the group's epoch that was
        written with them, and note those that it has begun. It is asked once the log has committed
        that they are being begun: otherwise a group coordinator that is replaced would leave states
        that no group knows of."""
        found = self._records.find(group_id)
        if found is None:
            return

        def asked(errors: dict[ShareKey, int]) -> None:
            there = _grouped(places, (key for key, error in errors.items() if not error))
            if there and self._records.find(group_id) is found:
                self._records.write_by_itself(group_id, begun(found, there))

        self._each(
            found,
            places,
            lambda key, done: self._broker.share_persister.initialize(key, epoch, NO_OFFSET, done),
            asked,
        )

    def _each(
        self,
        group: ShareGroup,
        places: Places,
        ask: Callable[[ShareKey, Done], Question],
        asked: Callable[[dict[ShareKey, int]], None],
    ) -> None:
        """Ask the share coordinator, by `ask`, about each share partition; asked({key: error code})
        once all are answered. Until then the group has them in `asked`: no other request about them
        is sent, and they are not assigned."""
        keys = [
            ShareKey(group.group_id, topic, number)
            for topic, state in places.items()
            for number in sorted(state.partitions)
        ]
        if not keys:
            asked({})
            return
        pairs = Counter((key.topic_id, key.partition) for key in keys)
        group.asked += pairs
        errors: dict[ShareKey, int] = {}
        questions: dict[ShareKey, Question] = {}
        open_here = self._open.setdefault(group.group_id, [])

        def answered(key: ShareKey, error: int) -> None:
            errors[key] = error
            if len(errors) == len(keys):
                group.asked -= pairs
                if end in open_here:
                    open_here.remove(end)
                    if not open_here and self._open.get(group.group_id) is open_here:
                        del self._open[group.group_id]
                asked(errors)

        def end() -> None:
            for key in [key for key in questions if key not in errors]:
                questions[key].cancel()
                answered(key, ErrorCode.NOT_COORDINATOR)

        open_here.append(end)
        for key in keys:
            questions[key] = ask(key, partial(answered, key))

    def loaded(self, group: ShareGroup) -> None:
        """Called when a group was read from the log: deleted topics are forgotten, and alterations
        that another coordinator had begun are carried out."""
        states = group.states
        topics = {*states.initializing, *states.initialized, *states.deleting}
        gone = {topic for topic in topics if self._records.topics.by_id(topic) is None}
        self._records.write_by_itself(group.group_id, forgotten(group, gone))
        altering = group.states.altering
        if altering:
            keys = [ShareKey(group.group_id, topic, number) for topic, number in altering]
            places = _grouped(group.states.initializing, keys)
            self._alter(group, places, altering, lambda _errors: None)

    def topic_deleted(self, topic_id: UUID) -> None:
        """Called when a topic was deleted: the groups forget it. (The share coordinator learns of
        that by itself.)"""
        for group in self._records.loaded():
            if forgotten(group, [topic_id]):
                self._forget_later(group.group_id, topic_id)

    def _forget_later(self, group_id: str, topic_id: UUID) -> None:
        """Forget a topic of a group in a later step of this broker, in which its files may be
        written."""

        def forget() -> None:
            found = self._records.find(group_id)
            if found is not None:
                self._records.write_by_itself(group_id, forgotten(found, [topic_id]))

        self._broker.call_at(self._broker.now_ns, forget, self._owner_of(Group(group_id)))

    def delete_group(self, group: ShareGroup, reply: Done) -> None:
        """Delete a share group without members: first the states of its partitions, then the group
        itself. Calls reply(error code)."""
        states = group.states
        places = merged(self._left_over(group), merged(states.initializing, states.initialized))
        epoch = group.epoch

        def noted(error: int) -> None:
            now = self._still_empty(group.group_id, error)
            if isinstance(now, int):
                reply(now)
            else:
                self._each(now, places, self._deletion(epoch), forgotten_there)

        def forgotten_there(errors: dict[ShareKey, int]) -> None:
            failed = next((error for error in errors.values() if error), ErrorCode.NONE)
            if failed or self._records.find(group.group_id) is not group:
                reply(failed or ErrorCode.GROUP_ID_NOT_FOUND)
            elif group.members:
                reply(ErrorCode.NON_EMPTY_GROUP)
            else:
                try:
                    self._records.take_back(group, reply)
                except BrokerError as error:
                    reply(error.code)

        self._records.note(group.group_id, lambda now: deleting(now, places), noted)

    def _deletion(self, epoch: int) -> Callable[[ShareKey, Done], Question]:
        """A function that asks to forget the state of a share partition, if the state is of this
        epoch or an earlier one."""
        return lambda key, done: self._broker.share_persister.delete(key, epoch, done)

    # --- Offsets

    def places(self, group_id: str) -> Places:
        """The partitions of which a group has a state; none for a group that does not exist."""
        group = self._records.get(group_id)
        return {} if group is None else group.states.initialized

    def alter(
        self,
        group_id: str,
        offsets: Mapping[UUID, Mapping[int, int]],
        reply: Callable[[dict[ShareKey, int]], None],
    ) -> None:
        """Serve AlterShareGroupOffsets: set the start offsets of a group without members, which is
        made if there is none; reply({key: error code}). BrokerError: NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND for one of another kind.

        The group's epoch grows by one, and is the state epoch of the new states (KIP-932), so that
        a request that is repeated after a lost answer does not begin them a second time.
        """
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        group, new = self._records.existing_or_new(group_id)
        _empty(group)
        places: dict[UUID, TopicState] = {}
        for topic_id, numbers in offsets.items():
            topic = self._records.topics.by_id(topic_id)
            if topic is not None:
                places[topic_id] = TopicState(topic.name, frozenset(numbers))
        epoch = group.epoch + 1
        altering = {
            (topic, number): Alteration(epoch, offsets[topic][number])
            for topic, one in places.items()
            for number in one.partitions
        }

        def noted(error: int) -> None:
            now = self._still_empty(group_id, error)
            if isinstance(now, int):
                keys = (ShareKey(group_id, topic, number) for topic, one in offsets.items() for number in one)
                reply(dict.fromkeys(keys, now))
            else:
                self._alter(now, places, altering, reply)

        entries: list[ShareGroupEntry] = []
        if places or new:
            states = group.states._replace(
                initializing=merged(group.states.initializing, places),
                altering={**group.states.altering, **altering},
            )
            entries.append((ShareEpochKey(group_id), ShareEpoch(epoch, group.metadata_hash)))
            entries.append((StatePartitionsKey(group_id), states))
        self._records.write(group_id, entries, noted)

    def _alter(
        self,
        group: ShareGroup,
        places: Places,
        altering: Alterations,
        reply: Callable[[dict[ShareKey, int]], None],
    ) -> None:
        """Have the share coordinator set the offsets that an admin wants. The group's record has
        them, so that the next group coordinator continues if this one fails meanwhile."""

        def begin(key: ShareKey, done: Done) -> Question:
            return self._broker.share_persister.initialize(key, *altering[key[1:]], done)

        def began(errors: dict[ShareKey, int]) -> None:
            there = _grouped(places, (key for key, error in errors.items() if not error))

            def entries(now: ShareGroup) -> list[ShareGroupEntry]:
                if now is not group:  # it was deleted meanwhile: this is the next one of that name
                    return []
                return begun(now, there, {key[1:]: altering[key[1:]] for key in errors})

            self._records.note(group.group_id, entries, lambda error: reply(_with(errors, error)))

        self._each(group, places, begin, began)

    def delete_offsets(
        self, group_id: str, topics: Iterable[UUID], reply: Callable[[dict[UUID, int]], None]
    ) -> None:
        """Serve DeleteShareGroupOffsets: forget the offsets that a group without members has in
        topics; reply({topic id: error code}). BrokerError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
        if not group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        group = _empty(self._records.existing(group_id))
        wanted = [topic for topic in topics if topic in group.states.initialized]
        places = {topic: group.states.initialized[topic] for topic in wanted}
        epoch = group.epoch

        def forget(error: int) -> None:
            now = self._still_empty(group_id, error)
            if isinstance(now, int):
                reply(dict.fromkeys(wanted, now))
            else:
                self._each(now, places, self._deletion(epoch), gone)

        def gone(errors: dict[ShareKey, int]) -> None:
            by_topic = dict.fromkeys(wanted, 0)
            for key, error in errors.items():
                by_topic[key.topic_id] = by_topic[key.topic_id] or error
            done = [topic for topic, error in by_topic.items() if not error]
            self._records.note(
                group_id,
                lambda now: forgotten(now, done) if now is group else [],
                lambda error: reply({topic: one or error for topic, one in by_topic.items()}),
            )

        self._records.note(group_id, lambda now: deleting(now, places), forget)

    def _still_empty(self, group_id: str, error: int) -> ShareGroup | int:
        """The group, if its records are written (`error` 0) and no member has joined meanwhile;
        else the error code to answer."""
        try:
            return error or _empty(self._records.existing(group_id))
        except BrokerError as refused:
            return refused.code

    def _left_over(self, group: ShareGroup) -> Places:
        """All partitions of topics whose state was to be forgotten, and may still exist."""
        topics = (self._records.topics.by_id(topic_id) for topic_id in group.states.deleting)
        return {
            topic.topic_id: TopicState(topic.name, frozenset(range(topic.partitions)))
            for topic in topics
            if topic is not None
        }


def _empty(group: ShareGroup) -> ShareGroup:
    """The share group `group` itself. BrokerError NON_EMPTY_GROUP if it has members."""
    if group.members:
        raise BrokerError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    return group


def _with(errors: dict[ShareKey, int], error: int) -> dict[ShareKey, int]:
    return {key: one or error for key, one in errors.items()}


def _grouped(places: Places, keys: Iterable[ShareKey]) -> dict[UUID, TopicState]:
    """The partitions of the share partitions `keys`, by topic id."""
    numbers: dict[UUID, set[int]] = {}
    for key in keys:
        numbers.setdefault(key.topic_id, set()).add(key.partition)
    return {topic: TopicState(places[topic].name, frozenset(found)) for topic, found in numbers.items()}
