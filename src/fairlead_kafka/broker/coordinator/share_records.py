"""Records of share groups: finding a share group in this coordinator's shards, and writing the
entries that follow from a request, a timer, or an answer of a share coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.coordinator.cluster_topics import ClusterTopics
from fairlead_kafka.broker.coordinator.shard import Shard
from fairlead_kafka.broker.coordinator.shard_log import ShardLog, when_committed
from fairlead_kafka.broker.shards import Shards
from fairlead_kafka.broker.share_groups import (
    FIRST_EPOCH,
    RETIRED,
    ShareEpoch,
    ShareGroup,
    ShareGroupEntry,
    ShareView,
)

_logger = GuardedLogger("fairlead_kafka.broker")

Done = Callable[[int], None]
"""done(error code for a client, 0 if it stands) is called once."""


class ShareRecordsHost(Protocol):
    """The parts of a broker that the records of share groups use."""

    wall_ms: int
    settings: Settings

    @property
    def controller(self) -> ClusterView:
        """The cluster's image, and the way to change it."""


class ShareRecords:
    """The share groups of one coordinator, the topics that they may read, and their log."""

    def __init__(
        self, broker: ShareRecordsHost, shards: Shards[Shard], log: ShardLog, topics: ClusterTopics
    ) -> None:
        self._broker = broker
        self._shards = shards
        self._log = log
        self.topics = topics

    def get(self, group_id: str) -> ShareGroup | None:
        """The share group of this id; None if there is none, or one of another kind. BrokerError if
        another broker coordinates it."""
        group = self._shards.of(group_id).groups.get(group_id)
        return None if group is None else group.share

    def existing(self, group_id: str, kind: str = "Share group") -> ShareGroup:
        """The share group of this id. BrokerError GROUP_ID_NOT_FOUND, in Kafka's words, if there is
        none or it is of another kind; the text calls it a `kind`."""
        group = self._shards.of(group_id).groups.get(group_id)
        if group is None or (group.share is None and group.forgettable()):
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind} {group_id} not found.")
        if group.share is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group.share

    def existing_or_new(self, group_id: str) -> tuple[ShareGroup, bool]:
        """The share group of this id, and True if it is a new one, without a record yet.
        BrokerError GROUP_ID_NOT_FOUND for one of another kind."""
        shard = self._shards.of(group_id)
        made = shard.groups.get(group_id)
        new = made is None or made.forgettable()
        return (ShareGroup(group_id, self._first_epoch(shard)) if new else self.existing(group_id)), new

    @hook("share groups: no epoch comes again")
    def _first_epoch(self, shard: Shard) -> int:
        return max(FIRST_EPOCH, shard.retired_epoch)

    def loaded(self) -> Iterator[ShareGroup]:
        """All share groups that this broker coordinates."""
        for shard in self._shards.loaded():
            for group in shard.groups.values():
                if group.share is not None:
                    yield group.share

    def find(self, group_id: str) -> ShareGroup | None:
        """The share group, if this broker coordinates it; else None. For work that is no part of a
        request."""
        try:
            return self.existing(group_id)
        except BrokerError:
            return None

    def view(self, group_id: str) -> ShareView:
        """The metadata and settings that a decision about a share group depends on."""
        own = self._broker.controller.group_settings(group_id)
        settings = self._broker.settings
        return ShareView(
            self.topics,
            own["share.assignment.interval.ms"],
            settings["group.share.max.size"],
            settings["group.share.initialize.retry.interval.ms"],
            self._broker.wall_ms,
        )

    def write(self, group_id: str, entries: Sequence[ShareGroupEntry], written: Done) -> None:
        """Write entries of a group; `written` is called once they are. BrokerError if they cannot
        be appended. Without entries, `written` is called once all earlier ones are committed."""
        shard = self._shards.of(group_id)
        group = shard.group(group_id, self._broker.wall_ms)
        if entries:
            self._log.write_at_once(shard, group, entries, written)
        else:
            when_committed(group, written)

    def take_back(self, group: ShareGroup, written: Done) -> None:
        """Write tombstones of a group, and its last epoch, so that no epoch is used again.
        BrokerError if they cannot be appended."""
        retired = ShareEpoch(max(self._shards.of(group.group_id).retired_epoch, group.epoch), 0)
        self.write(group.group_id, [*group.tombstones(), (RETIRED, retired)], written)

    def forget_made(self, group_id: str) -> None:
        """Forget a group that was made in memory, if none of its records was written."""
        with suppress(BrokerError):  # its home is led elsewhere by now
            groups = self._shards.of(group_id).groups
            if group_id in groups and groups[group_id].forgettable():
                del groups[group_id]

    def write_by_itself(self, group_id: str, entries: Sequence[ShareGroupEntry]) -> bool:
        """Write entries that are no part of a request; False if they cannot be appended."""
        if not entries:
            return True
        try:
            self.write(group_id, entries, lambda _error: None)
        except BrokerError as error:
            _logger.warning("share group %s: %s", group_id, error)
            return False
        return True

    def note(
        self, group_id: str, entries: Callable[[ShareGroup], Sequence[ShareGroupEntry]], done: Done
    ) -> None:
        """Write the entries that follow from a share coordinator's answer; done(error code) once
        they are committed."""
        try:
            self.write(group_id, entries(self.existing(group_id)), done)
        except BrokerError as error:
            done(error.code)
