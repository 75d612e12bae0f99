"""Reassignment of partitions to other brokers (KIP-455): replicas are added and catch up, and then
the old ones are removed.

    replicas [0, 1], wanted [1, 2]
        ──begun──▶ replicas [1, 2, 0], adding [2], removing [0]
        ──all wanted are in sync──▶ replicas [1, 2]

`completed` is called after every change of the replicas in sync. A move that adds no replica is
complete at once. A cancelled move returns to its original replicas. When replicas are removed, a
new leader epoch begins, so that their requests are fenced.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.brokers import Brokers
from fairlead_kafka.broker.controller.decisions import Reassignment
from fairlead_kafka.broker.controller.elections import Electorate, changed, choose
from fairlead_kafka.broker.controller.fold import ChangedPartition, changed_records
from fairlead_kafka.broker.controller.image import PartitionImage, TopicImage
from fairlead_kafka.broker.controller.journal import Journal
from fairlead_kafka.broker.controller.limits import Limits
from fairlead_kafka.broker.controller.placement import Placement


def completed(before: PartitionImage, electorate: Electorate) -> PartitionImage | None:
    """The partition after its reassignment is complete; None if that is not complete yet, or there
    is none."""
    if not (before.adding or before.removing):
        return None
    target = before.target_replicas
    isr = tuple(replica for replica in before.isr if replica not in before.removing)
    if not isr or not set(target) <= set(isr):
        return None
    return _moved(before, target, isr, electorate)


def _moved(
    before: PartitionImage, replicas: tuple[int, ...], isr: tuple[int, ...], electorate: Electorate
) -> PartitionImage | None:
    leader = (
        before.leader
        if before.leader in isr and before.leader in electorate.alive
        else choose(replicas, isr, electorate)
    )
    fewer = not set(before.replicas) <= set(replicas)
    return changed(before, replicas=replicas, isr=isr, leader=leader, adding=(), removing=(), new_reign=fewer)


def _moved_at_once(
    name: str, before: PartitionImage, replicas: tuple[int, ...], isr: tuple[int, ...], electorate: Electorate
) -> PartitionImage | None:
    """The partition with only these replicas. BrokerError ELIGIBLE_LEADERS_NOT_AVAILABLE if none of
    those in sync is alive and one that would be removed is: brokers that are awaited after a
    restart of the controller count as in sync, and may not come back."""
    alive = set(electorate.alive)
    if alive.isdisjoint(isr) and not alive.isdisjoint(before.isr):
        raise BrokerError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"{name} cannot be left to brokers {list(replicas)} now: none of them is alive and in sync, and "
            "another is; start one of them first",
        )
    return _moved(before, replicas, isr, electorate)


class Reassignments:
    """Decides on reassignments of partitions to other brokers."""

    def __init__(self, journal: Journal, brokers: Brokers, limits: Limits, placement: Placement) -> None:
        self._journal = journal
        self._brokers = brokers
        self._limits = limits
        self._placement = placement

    def alter(self, wanted: Sequence[Reassignment], may_change_factor: bool) -> list[BrokerError | None]:
        """Begin, change or cancel reassignments, in one decision; for each None, or the error."""
        self._brokers.write_ends()  # a replica that ended may count as in sync until then
        results: list[BrokerError | None] = []
        changes: dict[tuple[str, int], ChangedPartition] = {}
        electorate = self._brokers.electorate()
        try:
            for one in wanted:
                try:
                    change = self._change(one, may_change_factor, electorate)
                except BrokerError as error:
                    results.append(error)
                    continue
                results.append(None)
                if change is not None:
                    changes[one.topic, one.partition] = change
        finally:
            self._limits.planned_all()
        if changes:
            self._journal.commit(changed_records(changes.values()))
            self._limits.forget()
        return results

    def _change(
        self, wanted: Reassignment, may_change_factor: bool, electorate: Electorate
    ) -> ChangedPartition | None:
        topic = self._journal.image.topics.get(wanted.topic)
        if topic is None or not 0 <= wanted.partition < len(topic.partitions):
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"there is no partition {wanted.topic}-{wanted.partition}",
            )
        before = topic.partitions[wanted.partition]
        if wanted.replicas is None:
            after = self._cancelled(topic, wanted, before, electorate)
        else:
            after = self._begun(topic, wanted, before, may_change_factor, electorate)
        return None if after is None else (topic, wanted.partition, after)

    def _begun(
        self,
        topic: TopicImage,
        wanted: Reassignment,
        before: PartitionImage,
        may_change_factor: bool,
        electorate: Electorate,
    ) -> PartitionImage | None:
        assert wanted.replicas is not None
        name = f"{wanted.topic}-{wanted.partition}"
        target = self._placement.checked(name, wanted.replicas)
        factor = len(before.target_replicas)
        if not may_change_factor and len(target) != factor:
            raise BrokerError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{name} has {factor} replicas and was to have {len(target)}, and the request does not allow "
                "to change that",
            )
        if not topic.internal:
            self._limits.check_growth(before.replicas, target, f"moving {name} to brokers {list(target)}")
        removing = tuple(sorted(set(before.replicas) - set(target)))
        adding = tuple(
            sorted(
                replica for replica in target if replica not in before.replicas or replica in before.adding
            )
        )
        moving = changed(before, replicas=target + removing, adding=adding, removing=removing)
        over = completed(before if moving is None else moving, electorate)
        if over is not None:
            return _moved_at_once(name, before, over.replicas, over.isr, electorate)
        if adding and not topic.internal:
            self._limits.plan([[replica for replica in target if replica not in before.replicas]])
        return moving

    def _cancelled(
        self, topic: TopicImage, wanted: Reassignment, before: PartitionImage, electorate: Electorate
    ) -> PartitionImage | None:
        name = f"{wanted.topic}-{wanted.partition}"
        if not (before.adding or before.removing):
            raise BrokerError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
                f"{name} is not being moved: there is nothing to cancel",
            )
        replicas = tuple(replica for replica in before.replicas if replica not in before.adding)
        isr = tuple(replica for replica in before.isr if replica in replicas)
        if not isr:
            if not self._brokers.unclean(topic):
                raise BrokerError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{name} cannot go back to {list(replicas)}: none of them is in sync, so records would "
                    "be lost; wait until one is, "
                    "or set unclean.leader.election.enable",
                )
            isr = (next((replica for replica in replicas if replica in electorate.eligible), replicas[0]),)
            return _moved(before, replicas, isr, electorate)
        return _moved_at_once(name, before, replicas, isr, electorate)
