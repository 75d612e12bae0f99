"""Stories of groups, drawn from a world's seed: the number, protocols and behaviour of members, and
when they die, hang, leave, are cut off and change their subscriptions.

They have a generator of their own, so that seeds of worlds without groups give the same runs as
before there were groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from fairlead_kafka.simulation.member import Habits

SHARE = 0.4
"""Share of worlds that have groups."""
SALT = 0x6828
"""Makes another generator of a seed. With this one, the seeds that tests and canaries name have no
groups.
"""
SEATS_MAX = 4
EVENTS_MAX = 5
"""Most events of one member's story, less one."""
MIGRATIONS = ("disabled", "upgrade", "downgrade", "bidirectional")
CLASSIC, CONSUMER = "classic", "consumer"
PROTOCOLS = (
    (CLASSIC, CLASSIC),
    (CONSUMER, CONSUMER),
    (CONSUMER, CONSUMER),
    (CLASSIC, CONSUMER),
    (CONSUMER, CLASSIC),
)
"""The protocol of a group's members in the beginning and in the end."""
KINDS = ("kill", "kill", "close", "nap", "hang", "hang", "cut", "cut", "subscribe", "retire")
"""Kinds of events; one named twice comes twice as often."""


class Happening(NamedTuple):
    """One event of a member's story; times in ms since the world began."""

    at_ms: float
    kind: str
    ms: float
    """Duration of the fault, or time until a process that ended is started again, ms."""
    broker: int
    """The broker that is cut off; -1: all of them."""
    lost: bool
    """Whether what was under way on a cut link never arrives."""
    topics: Sequence[str]

    def __str__(self) -> str:
        where = {
            "cut": f", broker {self.broker}" if self.broker >= 0 else ", all brokers",
            "subscribe": f", {', '.join(self.topics)}",
        }
        return f"+{self.at_ms:.0f} ms: {self.kind}{where.get(self.kind, '')}, {self.ms:.0f} ms"


@dataclass(frozen=True)
class Seat:
    """The story of one member, through all its processes."""

    joins_ms: float
    habits: Habits
    happenings: Sequence[Happening]


@dataclass(frozen=True)
class GroupStory:
    """The story of one group."""

    name: str
    protocols: tuple[str, str]
    """The protocol that its members begin with, and the one that they are rolled to."""
    assignor: str
    """partition.assignment.strategy of classic members."""
    static: bool
    processes: bool
    """Whether its members write what they read to an output topic, in transactions."""
    committed_only: bool
    topics: Sequence[str]
    session_ms: int
    max_poll_ms: int
    seats: Sequence[Seat]

    def __str__(self) -> str:
        kind = " to ".join(dict.fromkeys(self.protocols))
        words = [kind, self.assignor if CLASSIC in self.protocols else "", "static" if self.static else ""]
        words += ["transactions" if self.processes else "", "committed" if self.committed_only else ""]
        lines = [f"  group {self.name}: {', '.join(filter(None, words))}, reads {', '.join(self.topics)}"]
        for number, seat in enumerate(self.seats):
            happenings = "; ".join(map(str, seat.happenings))
            lines.append(f"    member {number} joins at +{seat.joins_ms:.0f} ms. {happenings}")
        return "\n".join(lines)


@dataclass(frozen=True)
class GroupsStory:
    """The groups of one world."""

    config: dict[str, object]
    """Configs of the brokers."""
    groups: Sequence[GroupStory]


def draw_groups(seed: int, until_ms: float, brokers: int, topics: Sequence[str]) -> GroupsStory | None:
    """The groups of a world of this seed; None for one without any."""
    rng = Random(seed ^ SALT)
    if rng.random() >= SHARE:
        return None
    session_ms = rng.choice([400, 700])
    config: dict[str, object] = {
        "group.min.session.timeout.ms": 100,
        "group.consumer.min.session.timeout.ms": 100,
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.min.heartbeat.interval.ms": 10,
        "group.consumer.heartbeat.interval.ms": rng.choice([60, 150]),
        "group.consumer.assignment.interval.ms": rng.choice([0, 0, 200]),
        "group.consumer.migration.policy": rng.choice(MIGRATIONS),
        "group.initial.rebalance.delay.ms": rng.choice([0, 100]),
        "offsets.commit.timeout.ms": rng.choice([500, 5_000]),
    }
    drawing = _Drawing(rng, until_ms, brokers, topics, session_ms)
    return GroupsStory(config, [drawing.group(number) for number in range(rng.choice([1, 1, 2]))])


class _Drawing:
    def __init__(
        self, rng: Random, until_ms: float, brokers: int, topics: Sequence[str], session_ms: int
    ) -> None:
        self._rng = rng
        self._until_ms = until_ms
        self._brokers = brokers
        self._topics = topics
        self._session_ms = session_ms

    def group(self, number: int) -> GroupStory:
        rng = self._rng
        protocols = rng.choice(PROTOCOLS)
        processes = rng.random() < 0.4
        every = [self._topics[0]] if processes else list(self._topics)
        story = GroupStory(
            name=f"readers-{number}",
            protocols=protocols,
            assignor=rng.choice(["range", "cooperative-sticky"]),
            static=rng.random() < 0.3,
            processes=processes,
            committed_only=processes or rng.random() < 0.5,
            topics=every,
            session_ms=self._session_ms,
            max_poll_ms=rng.choice([900, 2_500]),
            seats=(),
        )
        rolls = protocols[0] != protocols[1]
        seats = [self._seat(seat, every, rolls) for seat in range(2 + rng.randrange(SEATS_MAX - 1))]
        return GroupStory(**{**vars(story), "seats": seats})

    def _seat(self, number: int, topics: Sequence[str], rolls: bool) -> Seat:
        rng = self._rng
        habits = Habits(
            poll_ms=rng.choice([20.0, 150.0]),
            work_ms=rng.choice([2.0, 30.0, 120.0]),
            commit_share=rng.choice([0.2, 0.6, 1.0]),
            waits_share=rng.choice([0.0, 0.5, 1.0]),
            commits_when_revoked=rng.random() < 0.7,
        )
        happenings = [
            draw_happening(rng, KINDS, self._until_ms, self._brokers, topics, number)
            for _ in range(rng.randrange(EVENTS_MAX))
        ]
        if rolls:
            at_ms = (0.2 + 0.7 * rng.random()) * self._until_ms
            happenings.append(Happening(at_ms, "roll", rng.choice([5.0, 100.0]), -1, False, ()))
        joins_ms = rng.choice([0.0, rng.random() * 0.6 * self._until_ms])
        return Seat(joins_ms, habits, sorted(happenings))


def draw_happening(
    rng: Random, kinds: Sequence[str], until_ms: float, brokers: int, topics: Sequence[str], number: int
) -> Happening:
    """A random event, of one of `kinds`, in the story of member `number` of a group of either
    kind."""
    kind = rng.choice(kinds)
    if kind == "retire" and not number:
        kind = "close"  # somebody has to be there in the end
    at_ms = rng.random() * until_ms
    ms = rng.choice([50.0, 400.0, 1_500.0]) * (0.5 + rng.random())
    return Happening(
        at_ms=round(at_ms, 1),
        kind=kind,
        ms=round(min(ms, max(until_ms - at_ms, 1.0)), 1),
        broker=rng.choice([-1, -1, rng.randrange(brokers)]),
        lost=rng.random() < 0.5,
        topics=list(topics[: 1 + rng.randrange(len(topics))]),
    )
