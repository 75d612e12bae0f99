"""The share partitions that a broker leads, by group, topic and partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import (
    BrokerConfigsChanged,
    Change,
    ClusterView,
    GroupConfigsChanged,
    LeadersChanged,
    TopicDeleted,
)
from fairlead_kafka.broker.guard import Owner
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.share_groups.partition import (
    Done,
    SharePartition,
    SharePartitionHost,
    ShareSettings,
)
from fairlead_kafka.broker.share_groups.persister import StatePersister
from fairlead_kafka.broker.share_groups.share_state import ShareKey
from fairlead_kafka.broker.share_groups.window import Limits


class LeaderHost(SharePartitionHost, Protocol):
    """The parts of a broker that its share partitions use."""

    node_id: int
    controller: ClusterView


class ShareWaiter(Protocol):
    """A fetch request that waits for records of share partitions."""

    owner: Owner | None
    """The request, in whose name it is called."""

    def available(self) -> None:
        """Called when more records may be acquired, or a share partition is not led here any
        more."""


class SharePartitions:
    """All share partitions that one broker leads. A share partition is made with the first request
    for it, and dropped when another broker leads it, or when its group has no sessions here any
    more."""

    def __init__(self, host: LeaderHost, persister: StatePersister) -> None:
        self._host = host
        self._persister = persister
        self._led: dict[ShareKey, SharePartition] = {}
        self._waiters: dict[ShareKey, dict[ShareWaiter, None]] = {}
        self._settings: dict[str, ShareSettings] = {}
        """Configs of groups that have a share partition here: they are looked up with each
        fetch."""
        self._by_group: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._led)

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(list(self._led.values()))

    def find(self, key: ShareKey) -> SharePartition | None:
        """The share partition of a key, if it is in use here; else None."""
        found = self._led.get(key)
        return found if found is not None and found.active else None

    def of(self, key: ShareKey, partition: Partition, leader_epoch: int) -> SharePartition:
        """The share partition of a partition that is led here, made if need be."""
        found = self._led.get(key)
        if found is not None and found.leader_epoch != leader_epoch:
            found.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            found = None
        if found is None:
            settings = partial(self.settings, key.group_id)
            found = SharePartition(self._host, self._persister, key, partition, leader_epoch, settings)
            found.became_available = partial(self._wake, key)
            found.fenced = partial(self._gone, key, found)
            self._led[key] = found
            self._by_group[key.group_id] = self._by_group.get(key.group_id, 0) + 1
        found.use()
        return found

    def settings(self, group_id: str) -> ShareSettings:
        """The configs of a share group, as they are now."""
        found = self._settings.get(group_id)
        if found is None:
            own = self._host.controller.group_settings(group_id)
            found = ShareSettings(
                own["share.record.lock.duration.ms"],
                Limits(own["share.delivery.count.limit"], own["share.partition.max.record.locks"]),
                own["share.auto.offset.reset"],
                own["share.isolation.level"].lower() == "read_committed",
                own["share.renew.acknowledge.enable"],
            )
            if group_id in self._by_group:
                self._settings[group_id] = found
        return found

    # --- Waiting

    def watch(self, key: ShareKey, waiter: ShareWaiter) -> None:
        """Have `available` of `waiter` called when more of a share partition may be acquired."""
        self._waiters.setdefault(key, {})[waiter] = None

    def forget(self, key: ShareKey, waiter: ShareWaiter) -> None:
        """Do not call `waiter` for a share partition any more."""
        waiters = self._waiters.get(key)
        if waiters is not None:
            waiters.pop(waiter, None)
            if not waiters:
                del self._waiters[key]

    def _wake(self, key: ShareKey) -> None:
        for waiter in list(self._waiters.get(key, ())):
            self._host.guard.call(waiter.owner, waiter.available)

    def _gone(self, key: ShareKey, share: SharePartition, _error: int) -> None:
        if self._led.get(key) is share:
            del self._led[key]
            self._by_group[key.group_id] -= 1
            if not self._by_group[key.group_id]:
                del self._by_group[key.group_id]
                self._settings.pop(key.group_id, None)
        self._wake(key)

    # --- Members and leaders that go

    def release(self, group_id: str, member: str, done: Callable[[dict[ShareKey, int]], None]) -> None:
        """Release all records that a member, which has left, has acquired; done({key: error code})
        once that is written."""
        shares = [share for share in self if share.key.group_id == group_id]
        errors: dict[ShareKey, int] = {}

        def released(key: ShareKey, error: int) -> None:
            errors[key] = error
            if len(errors) == len(shares):
                done(errors)

        if not shares:
            done({})
        for share in shares:
            share.release(member, partial(released, share.key))

    def drop_group(self, group_id: str) -> None:
        """Called when a group has no sessions here any more: its share partitions are dropped once
        their writes have ended, and read again when it has sessions again."""
        for share in self:
            if share.key.group_id == group_id:
                share.drop_when_written()

    def changed(self, change: Change) -> None:
        """React to a change of the cluster: leaders, topics, and configs of groups."""
        if isinstance(change, LeadersChanged):
            self._leaders_changed()
        elif isinstance(change, TopicDeleted):
            for share in self:
                if share.key.topic_id == change.topic.topic_id:
                    share.fence(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif isinstance(change, GroupConfigsChanged):
            self._settings.pop(change.group_id, None)
        elif isinstance(change, BrokerConfigsChanged):
            self._settings.clear()

    def _leaders_changed(self) -> None:
        topics = self._host.controller.image.topics_by_id
        for share in self:
            topic = topics.get(share.key.topic_id)
            image = None if topic is None else topic.partitions[share.key.partition]
            led = image is not None and (image.leader, image.leader_epoch) == (
                self._host.node_id,
                share.leader_epoch,
            )
            if not led:
                share.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check(self) -> None:
        """Raise CheckFailed unless each share partition is kept under its key and passes its own
        check."""
        same("share partitions", list(self._led), [share.key for share in self])
        holds("a share partition is kept that nobody waits for", all(self._waiters.values()))
        counts: dict[str, int] = {}
        for share in self:
            share.check()
            counts[share.key.group_id] = counts.get(share.key.group_id, 0) + 1
        same("share partitions by group", self._by_group, counts)
        holds("configs are kept of a group that has nothing here", self._settings.keys() <= counts.keys())


def when_released(done: Done) -> Callable[[dict[ShareKey, int]], None]:
    """A function that calls `done` with the first error code of a release, 0 if there is none."""
    return lambda errors: done(next((error for error in errors.values() if error), ErrorCode.NONE))
