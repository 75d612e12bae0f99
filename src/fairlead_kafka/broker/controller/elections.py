"""Elections: the leader and the replicas in sync of a partition after a broker joined or left. Pure
functions from one image of a partition to the next.

- A broker leaves and others are in sync: it is not in sync any more; the leader stays, or the first
  replica that is in sync and eligible leads.
- The last one in sync leaves: it alone stays in sync, so that no replica with less comes first;
  there is no leader, unless unclean election is on.
- A broker comes: the replicas in sync stay as they are (it catches up first, then its leader asks
  for it); it leads if it is in sync and there is no leader.
- No replica in sync is alive and unclean election is on: the first eligible replica leads and is in
  sync alone; records that it lacks are lost.

A new leader is a new leader epoch; every change is a new partition epoch (Kafka's
`PartitionChangeBuilder`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller.image import PartitionImage


@dataclass(frozen=True, slots=True)
class Electorate:
    """The brokers that count in elections. Those `alive` may go on leading; those `eligible` may
    begin to (not those about to stop). Those `awaited` were alive when the controller itself ended,
    and have not come back yet: no other leader is elected in their place meanwhile. Those that have
    `resigned` and whose resignation could not be written yet may begin to lead where they are in
    sync and nobody eligible is."""

    alive: Collection[int]
    eligible: Collection[int]
    awaited: Collection[int] = frozenset()
    resigned: Collection[int] = frozenset()


def changed(
    before: PartitionImage,
    *,
    leader: int | None = None,
    isr: tuple[int, ...] | None = None,
    replicas: tuple[int, ...] | None = None,
    adding: tuple[int, ...] | None = None,
    removing: tuple[int, ...] | None = None,
    new_reign: bool = False,
) -> PartitionImage | None:
    """The partition `before` with the fields that are given, and the epochs that follow from that;
    None if nothing changes.

    `new_reign`: a new leader epoch even under the same leader, so that requests of replicas that
    left are fenced.
    """
    after = PartitionImage(
        before.replicas if replicas is None else replicas,
        before.isr if isr is None else isr,
        before.leader if leader is None else leader,
        before.leader_epoch,
        before.partition_epoch,
        before.adding if adding is None else adding,
        before.removing if removing is None else removing,
    )
    if after == before:
        return None
    after.partition_epoch += 1
    if new_reign or after.leader != before.leader:
        after.leader_epoch += 1
    return after


def grown(before: PartitionImage, change: PartitionImage) -> PartitionImage:
    """The partition `change`, which was decided for one like `before` with epochs of 0, with the
    epochs that follow from those of `before`."""
    return PartitionImage(
        change.replicas,
        change.isr,
        change.leader,
        before.leader_epoch + change.leader_epoch,
        before.partition_epoch + change.partition_epoch,
        change.adding,
        change.removing,
    )


def choose(replicas: Sequence[int], isr: Sequence[int], electorate: Electorate) -> int:
    """The leader: the first of the replicas that is in sync and eligible, else the first that has
    resigned.

    NO_LEADER if there is none, or while an earlier replica in sync is awaited.
    """
    for candidates in (electorate.eligible, electorate.resigned):
        for replica in replicas:
            if replica in isr and replica in candidates:
                return replica
            if replica in isr and replica in electorate.awaited:
                break
    return NO_LEADER


def after_leaving(
    before: PartitionImage, leaving: int, electorate: Electorate, unclean: bool
) -> PartitionImage | None:
    """The partition after the broker `leaving` was taken off its leader and replicas in sync; None
    if that changes nothing."""
    isr = before.isr
    if leaving in isr and len(isr) > 1:
        isr = tuple(replica for replica in isr if replica != leaving)
    return _elected(before, isr, electorate, unclean)


def after_coming(
    before: PartitionImage, electorate: Electorate, unclean: bool, last: int = NO_LEADER
) -> PartitionImage | None:
    """The partition after a broker has started: with a leader, if it had none and one can be
    elected now; None if nothing changes. `last`: the leader before all replicas were lost. It is
    preferred to the others in sync, for it may have records that they had not fetched."""
    return None if before.leader != NO_LEADER else _elected(before, before.isr, electorate, unclean, last)


def preferred(before: PartitionImage, electorate: Electorate) -> PartitionImage | None:
    """The partition under its preferred leader, the first of its replicas; None if that one leads
    already, or cannot lead."""
    first = before.target_replicas[0]
    return changed(before, leader=first) if first in before.isr and first in electorate.eligible else None


def _elected(
    before: PartitionImage, isr: tuple[int, ...], electorate: Electorate, unclean: bool, last: int = NO_LEADER
) -> PartitionImage | None:
    if before.leader in isr and before.leader in electorate.alive:
        return changed(before, isr=isr)
    leader = choose((last, *before.target_replicas, *before.removing), isr, electorate)
    if leader == NO_LEADER and unclean and not any(replica in electorate.awaited for replica in isr):
        for replica in before.replicas:
            if replica in electorate.eligible:
                return changed(before, leader=replica, isr=(replica,))
    return changed(before, leader=leader, isr=isr)
