"""Stories of share groups, drawn from a world's seed: the number and behaviour of members, their
acknowledgements, and when they die, hang, leave, are cut off and change their subscriptions.

They have a generator of their own, so that seeds of worlds without share groups give the same runs
as before there were share groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from fairlead_kafka.simulation.group_story import Happening, draw_happening

SHARE = 0.3
"""Share of worlds that have share groups."""
SALT = 0x1134B
"""Makes another generator of a seed. With this one, the seeds that tests and canaries of other
parts name have no share groups."""
SEATS_MAX = 4
EVENTS_MAX = 5
"""Most events of one member's story, less one."""
LOCK_MS = 1_000
"""The shortest lock that `share.record.lock.duration.ms` allows."""
KINDS = ("kill", "kill", "close", "nap", "nap", "hang", "hang", "cut", "cut", "subscribe", "retire")
"""Kinds of events; one named twice comes twice as often."""


class ShareHabits(NamedTuple):
    """How a member's application behaves: how long it polls and works, and what it commits or
    acknowledges; times in ms. Shares are of records, or of polls, from 0 to 1."""

    poll_ms: float
    """Milliseconds that a poll waits."""
    work_ms: float
    """Most milliseconds between two polls."""
    slow_share: float
    """Share of polls with records that are worked on for longer than they are locked."""
    explicit: bool
    """Whether each record is acknowledged by itself; else the next poll accepts all."""
    released: float
    rejected: float
    renewed: float
    commit_share: float
    """Share of polls with records after which what is acknowledged is sent at once."""
    waits_share: float
    """Share of these that the application waits for."""
    records_max: int
    """max.poll.records."""
    record_limit: bool
    """share.acquire.mode is record_limit."""


class ShareSeat(NamedTuple):
    """The story of one member, through all its processes."""

    joins_ms: float
    habits: ShareHabits
    holds: bool
    """Whether it keeps the last records that it is given, without a word, longer than they are
    locked, and acknowledges them then."""
    happenings: Sequence[Happening]


@dataclass(frozen=True)
class ShareStory:
    """The story of one share group."""

    name: str
    topics: Sequence[str]
    committed_only: bool
    """share.isolation.level is read_committed."""
    limit: int
    """share.delivery.count.limit."""
    lock_ms: int
    session_ms: int
    seats: Sequence[ShareSeat]

    def __str__(self) -> str:
        words = f"limit {self.limit}, locks {self.lock_ms} ms{', committed' if self.committed_only else ''}"
        lines = [f"  share group {self.name}: {words}, reads {', '.join(self.topics)}"]
        for number, seat in enumerate(self.seats):
            happenings = "; ".join(map(str, seat.happenings))
            habits = "explicit" if seat.habits.explicit else "implicit"
            lines.append(
                f"    member {number} joins at +{seat.joins_ms:.0f} ms, {habits}"
                f"{', holds' if seat.holds else ''}. {happenings}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class SharesStory:
    """The share groups of one world."""

    config: dict[str, object]
    """Configs of the brokers."""
    groups: Sequence[ShareStory]


def draw_shares(
    seed: int, until_ms: float, brokers: int, topics: Sequence[Sequence[str]]
) -> SharesStory | None:
    """The share groups of a world of this seed; None for one without any. `topics`: what a group
    may read, one of these."""
    rng = Random(seed ^ SALT)
    if rng.random() >= SHARE:
        return None
    replicas = min(3, brokers)
    session_ms = rng.choice([400, 700])
    lock_ms = LOCK_MS + rng.choice([0, 500])
    limit = rng.choice([2, 3, 5])
    config: dict[str, object] = {
        "group.share.min.session.timeout.ms": 100,
        "group.share.session.timeout.ms": session_ms,
        "group.share.min.heartbeat.interval.ms": 10,
        "group.share.heartbeat.interval.ms": rng.choice([60, 150]),
        "group.share.min.record.lock.duration.ms": LOCK_MS,
        "group.share.record.lock.duration.ms": lock_ms,
        "group.share.delivery.count.limit": limit,
        "group.share.assignment.interval.ms": rng.choice([0, 0, 200]),
        "group.share.initialize.retry.interval.ms": 200,
        "group.share.partition.max.record.locks": rng.choice([100, 100, 2_000]),
        "share.coordinator.state.topic.num.partitions": 2,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": min(2, replicas),
        "share.coordinator.write.timeout.ms": rng.choice([300, 5_000]),
        "share.coordinator.snapshot.update.records.per.snapshot": rng.choice([0, 3, 500]),
        "share.coordinator.cold.partition.snapshot.interval.ms": rng.choice([1_000, 300_000]),
        "share.coordinator.state.topic.prune.interval.ms": rng.choice([500, 300_000]),
    }
    drawing = _Drawing(rng, until_ms, brokers, topics)
    groups = [drawing.group(number, limit, lock_ms, session_ms) for number in range(rng.choice([1, 1, 2]))]
    return SharesStory(config, groups)


class _Drawing:
    def __init__(self, rng: Random, until_ms: float, brokers: int, topics: Sequence[Sequence[str]]) -> None:
        self._rng = rng
        self._until_ms = until_ms
        self._brokers = brokers
        self._topics = topics

    def group(self, number: int, limit: int, lock_ms: int, session_ms: int) -> ShareStory:
        rng = self._rng
        topics = list(rng.choice(self._topics))
        return ShareStory(
            name=f"workers-{number}",
            topics=topics,
            committed_only=rng.random() < 0.5,
            limit=limit,
            lock_ms=lock_ms,
            session_ms=session_ms,
            seats=[self._seat(seat, topics) for seat in range(1 + rng.randrange(SEATS_MAX))],
        )

    def _seat(self, number: int, topics: Sequence[str]) -> ShareSeat:
        rng = self._rng
        explicit = rng.random() < 0.7
        habits = ShareHabits(
            poll_ms=rng.choice([20.0, 150.0]),
            work_ms=rng.choice([2.0, 30.0, 120.0]),
            slow_share=rng.choice([0.0, 0.1]),
            explicit=explicit,
            released=rng.choice([0.0, 0.1, 0.5]),
            rejected=rng.choice([0.0, 0.1]),
            renewed=rng.choice([0.0, 0.0, 0.1]),
            commit_share=rng.choice([0.0, 0.5, 1.0]),
            waits_share=rng.choice([0.0, 0.5, 1.0]),
            records_max=rng.choice([1, 7, 500]),
            record_limit=rng.random() < 0.3,
        )
        happenings = sorted(
            draw_happening(rng, KINDS, self._until_ms, self._brokers, topics, number)
            for _ in range(rng.randrange(EVENTS_MAX))
        )
        joins_ms = rng.choice([0.0, rng.random() * 0.6 * self._until_ms])
        return ShareSeat(joins_ms, habits, explicit and rng.random() < 0.5, happenings)
