"""Who leads a partition and who is in sync after a broker came or went: pure functions from one
image of a partition to the next.

| what happened | replicas in sync | leader | |---|---|---| | a broker leaves, others are in sync |
without it | as before, or the first replica in sync that is eligible | | the last one in sync
leaves | it alone: who comes back first must not be somebody with less | none, unless unclean
election is on | | a broker comes | as before: it catches up first, then its leader asks for it |
itself, if it is in sync and nobody leads | | nobody in sync is alive, unclean election is on | the
new leader alone | the first eligible replica: what it lacks is lost |

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
    """Which brokers count. `alive` may go on leading; `eligible` may begin to (not those about to
    stop).

    `awaited` were alive when the controller itself ended and have not come back yet: nobody is put
    in their place meanwhile.
    """

    alive: Collection[int]
    eligible: Collection[int]
    awaited: Collection[int] = frozenset()


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
    """`before` with what is given, and the epochs that go with it; None if that changes nothing.

    `new_reign`: a new leader epoch even under the same leader, so that replicas that are gone
    cannot speak any more.
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
    """`change`, decided for a partition that looks like `before` but has epochs of 0, with the
    epochs that go with it here."""
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
    """The leader: the first of the replicas that is in sync and eligible.

    NO_LEADER if there is none, or while one before it, in sync, is awaited.
    """
    for replica in replicas:
        if replica in isr and replica in electorate.eligible:
            return replica
        if replica in isr and replica in electorate.awaited:
            break
    return NO_LEADER


def after_leaving(
    before: PartitionImage, leaving: int, electorate: Electorate, unclean: bool
) -> PartitionImage | None:
    """The partition once broker `leaving` is not to lead it or be in sync; None if that changes
    nothing."""
    isr = before.isr
    if leaving in isr and len(isr) > 1:
        isr = tuple(replica for replica in isr if replica != leaving)
    return _elected(before, isr, electorate, unclean)


def after_coming(
    before: PartitionImage, electorate: Electorate, unclean: bool, last: int = NO_LEADER
) -> PartitionImage | None:
    """The partition once a broker is there that was not: led, if nobody led it and somebody now
    may; None if that changes nothing.

    `last`: who led it before everybody went. It goes before the others in sync, for it may have
    records that they had not got yet.
    """
    return None if before.leader != NO_LEADER else _elected(before, before.isr, electorate, unclean, last)


def preferred(before: PartitionImage, electorate: Electorate) -> PartitionImage | None:
    """The partition under its preferred leader, the first of its replicas; None if that one leads,
    or cannot."""
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
