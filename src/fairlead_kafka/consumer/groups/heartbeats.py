"""Heartbeats of a KIP-848 member: all fields once, and later only those that have changed.

Kafka's counterpart: `ConsumerHeartbeatRequestManager.HeartbeatState`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.config import Settings
from fairlead_kafka.wire.messages import ConsumerGroupHeartbeatRequest

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_FOR_A_WHILE_EPOCH = -2
"""A static member leaves with it: its partitions wait for it, as long as a session may last."""
_UNCHANGED_MS = -1
SOON_PARTS = 10
"""A member that may be given more asks so many times in one interval. Others give up what it waits
for at any moment of an interval, each when its own heartbeat is due: so the steps are even, and do
not grow. What is free waits for a twentieth of the interval on average, a quarter of a second of
5 s."""
SOON_ANSWERS = 12
"""It is back to the interval after so many answers in a row that change nothing: within one
interval every other member has heard of the change, and the two steps more are for the last of them
to finish its poll, commit and report it. That bounds the heartbeats that a change costs each member
it concerns."""
SOON_LEAST_MS = 100
"""A step is no shorter, however short the interval is: to give up takes others a poll and a commit,
so that asking oftener would show nothing."""

Owned = Mapping[UUID, frozenset[int]]
"""Partitions by topic id."""


class Status(NamedTuple):
    """The fields of a heartbeat that are left out while they stay the same (KIP-848)."""

    topics: tuple[str, ...]
    regex: str
    """Regular expression that the coordinator is to match; "": none."""
    owned: Owned
    """Partitions that the member reads, or may read at any moment."""


def beat_delay_ms(interval_ms: int, unchanged: int) -> int:
    """Milliseconds from one heartbeat of a member to the next.

    `interval_ms`: the heartbeat interval that the coordinator answered.

    `unchanged`: answers in a row that left the member's assignment as it was; 0 behind a join or an
    answer with another assignment, when others may be about to give up what is to come. The
    protocol lets a member ask sooner: KIP-848 says when it is missed, not how often it may speak.
    """
    if unchanged >= SOON_ANSWERS:
        return interval_ms
    return min(interval_ms, max(SOON_LEAST_MS, interval_ms // SOON_PARTS))


class Heartbeats:
    """Makes the heartbeats of one member, which has the same id until its consumer is closed.

    Changed fields are sent with every heartbeat until one is answered, since it is not known which
    of them the coordinator got. The partitions owned are sent whenever the member acknowledges an
    assignment, even if that changed nothing: the coordinator waits for it before it gives
    partitions to another.
    """

    def __init__(self, settings: Settings, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._instance_id: str | None = settings["group.instance.id"]
        self._rack_id: str | None = settings["client.rack"] or None
        self._rebalance_timeout_ms: int = settings["max.poll.interval.ms"]
        self._assignor: str | None = settings["group.remote.assignor"]
        self.member_id = member_id
        self._known: Status | None = None
        """Status that the coordinator knows; None: the next heartbeat has all of it."""
        self._sending: Status | None = None

    def forget(self) -> None:
        """Start from scratch: send all fields next, since the coordinator knows nothing of this
        member."""
        self._known = self._sending = None

    def knows(self, *statuses: Status) -> bool:
        """True if one of these is what was sent to the coordinator last."""
        return self._known in statuses

    def message(self, epoch: int, status: Status, *, acknowledges: bool) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat to send now; one that `acknowledges` an assignment says what is owned."""
        known, self._known, self._sending = self._known, None, status
        whole = known is None
        named = whole or (known is not None and (known.topics, known.regex) != (status.topics, status.regex))
        owning = whole or acknowledges or (known is not None and known.owned != status.owned)
        dropped = "" if known is not None and known.regex else None  # "" ends the match of the one before
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self._instance_id,
            rack_id=self._rack_id if whole else None,
            rebalance_timeout_ms=self._rebalance_timeout_ms if whole else _UNCHANGED_MS,
            subscribed_topic_names=sorted(status.topics) if named else None,
            subscribed_topic_regex=(status.regex or dropped) if named else None,
            server_assignor=self._assignor if whole else None,
            topic_partitions=_rows(status.owned) if owning else None,
        )

    def answered(self) -> None:
        """Called when the coordinator has answered the last heartbeat."""
        self._known = self._sending

    def farewell(self) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat that leaves the group; a static member's keeps its place."""
        static = self._instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=LEAVE_FOR_A_WHILE_EPOCH if static else LEAVE_EPOCH,
            instance_id=self._instance_id,
            rack_id=None,
            rebalance_timeout_ms=_UNCHANGED_MS,
            subscribed_topic_names=None,
            subscribed_topic_regex=None,
            server_assignor=None,
            topic_partitions=None,
        )


def _rows(owned: Owned) -> list[ConsumerGroupHeartbeatRequest.TopicPartitions]:
    made = ConsumerGroupHeartbeatRequest.TopicPartitions
    return [made(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in owned.items()]
