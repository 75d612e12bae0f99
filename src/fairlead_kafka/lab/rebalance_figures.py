"""Figures of `lab rebalance`, from the lines that members print of records read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.json_types import JsonObject

LATE_MS = 1_000
"""A record that is read so long after it was written had to wait for a rebalance: members that read
on get it within two polls."""


CALM_MS = 7_000
"""A group is calm when for so long each partition was read by one member and without a wait: longer
than the five seconds between two heartbeats of a member (KIP-848), by which partitions move, and
than the six for which a member of ours asks oftener behind a change."""


PAUSE_MS = 5_000
"""A calm group is left alone for up to so long: the next event comes at any moment of its members'
heartbeat intervals, and not always so long after the one before."""


ROLLED_MAX = 30
"""Members that are rolled at most: more show the same."""


class Reading(NamedTuple):
    """Records of one partition that one poll gave to one member."""

    member: int
    read_ms: int
    partition: int
    first: int
    last: int
    written_ms: int
    """Timestamp of the first of them."""

    @classmethod
    def parse(cls, member: int, line: str) -> Reading:
        """A member's line. ValueError if it is none."""
        read_ms, partition, first, last, written_ms = map(int, line.split())
        return cls(member, read_ms, partition, first, last, written_ms)


def members_before(event: str, members: int) -> int:
    """How many members a group of `members` has when an event comes: one leaves that has joined."""
    return members + 1 if event == "leave" else members


def figures(readings: Sequence[Reading], since_ms: int, until_ms: int) -> JsonObject:
    """The figures of one event, which began at `since_ms` and was over at `until_ms` (ms since
    1970).

    `again_s`: until the last record was read that had waited for more than a second. `twice`:
    records read more than once. `moved`: partitions that another member reads in the end.
    `kept_wait_ms`: the longest that a record waited of a partition that the same member read all
    the time.
    """
    before = readers(one for one in readings if one.read_ms < since_ms)
    after = readers(one for one in readings if one.read_ms <= until_ms)
    window = [one for one in readings if since_ms <= one.read_ms <= until_ms]
    late = [one.read_ms for one in window if one.read_ms - one.written_ms > LATE_MS]
    there = {one.member for one in window}
    kept = {
        of
        for of, member in before.items()
        if after.get(of) == member and all(one.member == member for one in window if one.partition == of)
    }
    waits = [one.read_ms - one.written_ms for one in window if one.partition in kept]
    return {
        "again_s": round((max(late) - since_ms) / 1000, 2) if late else 0.0,
        "twice": twice(readings, since_ms, until_ms),
        "moved": sum(after.get(of) != member for of, member in before.items()),
        "kept": len(kept),
        "kept_wait_ms": max(waits, default=0),
        "readers": len(there),
    }


def is_calm(readings: Sequence[Reading], now_ms: int, partitions: int, calm_ms: int = CALM_MS) -> bool:
    """True if for `calm_ms` every partition was read by one member alone, and nothing was read
    late.

    `readings` in the order of their times.
    """
    owners: dict[int, int] = {}
    for one in reversed(readings):
        if one.read_ms < now_ms - calm_ms:
            break
        if (
            one.read_ms - one.written_ms > LATE_MS
            or owners.setdefault(one.partition, one.member) != one.member
        ):
            return False
    return len(owners) == partitions


def readers(readings: Iterable[Reading]) -> Mapping[int, int]:
    """The member that read each partition last."""
    last: dict[int, tuple[int, int]] = {}
    for one in readings:
        if one.read_ms >= last.get(one.partition, (0, 0))[0]:
            last[one.partition] = (one.read_ms, one.member)
    return {of: member for of, (_, member) in last.items()}


def twice(readings: Iterable[Reading], since_ms: int, until_ms: int) -> int:
    """Number of records that were read again between two times (ms since 1970).

    Partitions are read forwards, so a record below the last one read was read before.
    """
    last: dict[int, int] = {}
    again = 0
    for one in sorted(readings, key=lambda one: one.read_ms):
        top = last.get(one.partition, one.first - 1)
        if since_ms <= one.read_ms <= until_ms:
            again += max(0, min(one.last, top) - one.first + 1)
        last[one.partition] = max(one.last, top)
    return again
