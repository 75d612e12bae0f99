"""Members of the consumer protocol (KIP-848) over a coordinator driven by hand, as good clients
are: they give up first, then say so, then take what is new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.consumer_groups import ConsumerGroup, Heartbeat, HeartbeatResult
from tests.support.group_rig import GROUP, GroupRig

Owned = dict[UUID, frozenset[int]]


def group_of(rig: GroupRig, group_id: str = GROUP) -> ConsumerGroup:
    """The consumer group; it must be there."""
    group = rig.coordinator.consumer.consumer_group(group_id)
    assert group is not None
    return group


class KipMember:
    """One member: what it was told, what it owns, and the last error it got."""

    def __init__(
        self,
        rig: GroupRig,
        member_id: str,
        topics: Iterable[str] = ("orders",),
        instance_id: str | None = None,
        **more: Any,
    ) -> None:
        self.rig = rig
        self.member_id = member_id
        self.instance_id = instance_id
        self.topics: frozenset[str] | None = frozenset(topics)
        self.more = {"rebalance_timeout_ms": 60_000} | more
        self.epoch = 0
        self.owned: Owned = {}
        self.told: Owned | None = None
        self.error = 0
        self.answered = True
        self.changed = False
        self.before = 0

    def beat(self, **fields: Any) -> int | None:
        """One heartbeat; the error code, or None if the answer is still to come."""
        joins = self.epoch <= 0
        if joins:
            self.owned = {}
        request = Heartbeat(
            GROUP,
            self.member_id,
            fields.pop("epoch", max(self.epoch, 0)),
            "client",
            "/127.0.0.1",
            self.instance_id,
            topics=self.topics if joins or self.changed else None,
            owned={} if joins else fields.pop("owned", dict(self.owned)),
            **(self.more | fields if joins else fields),
        )
        self.answered = False
        try:
            self.rig.coordinator.consumer.heartbeat(request, 1, self._answer)
        except BrokerError as error:
            self._answer(error.code, HeartbeatResult(self.member_id, 0))
        return self.error if self.answered else None

    def _answer(self, error: int, result: HeartbeatResult) -> None:
        self.answered, self.error = True, error
        if error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch, self.owned, self.told = 0, {}, None
        if error:
            return
        self.changed = False
        self.member_id, self.epoch = result.member_id, result.member_epoch
        if result.assignment is not None:
            self.told = {topic: frozenset(numbers) for topic, numbers in result.assignment.items()}

    def reconcile(self) -> None:
        """Do as told: what is not the member's any more is given up, what is new is taken."""
        if self.told is not None:
            self.owned, self.told = dict(self.told), None

    def subscribe(self, *topics: str) -> None:
        """Read other topics, from the next heartbeat on."""
        self.topics, self.changed = frozenset(topics), True

    def leave(self, epoch: int = -1) -> int:
        """Leave for good, or (-2, static members) for a while; the error code."""
        leaving = Heartbeat(GROUP, self.member_id, epoch, "client", "/127.0.0.1", self.instance_id)
        self.rig.coordinator.consumer.heartbeat(leaving, 1, lambda error, _: setattr(self, "error", error))
        self.owned, self.told, self.epoch = {}, None, 0
        return self.error

    @property
    def partitions(self) -> set[tuple[UUID, int]]:
        """What the member owns."""
        return {(topic, number) for topic, numbers in self.owned.items() for number in numbers}


def quiesce(*members: KipMember, rounds: int = 12) -> None:
    """All send heartbeats and do as they are told, until nothing is new."""
    for _ in range(rounds):
        for member in members:
            member.beat()
            member.reconcile()


def shares(*members: KipMember) -> list[int]:
    """How many partitions each owns."""
    return [len(member.partitions) for member in members]
