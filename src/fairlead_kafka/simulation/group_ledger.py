"""Ledger of a group in a world: the owners of each partition over time, the records that each
member got, and the outcome of each commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.simulation.delivery_checks import contents_of
from fairlead_kafka.simulation.model_log import ModelLog

LABEL = re.compile(rb"\[[a-z]+-\d+ \d+/\d+\]")
Place = tuple[str, int]
"""A partition: topic and number."""
OPEN_NS = 1 << 61
"""The end of what has not ended."""


def place_of(partition: TopicPartition) -> Place:
    """The partition as (topic, number), as ledgers have it."""
    return partition.topic, partition.partition


def partition_of(place: Place) -> TopicPartition:
    """The partition as a TopicPartition, as clients have it."""
    return TopicPartition(*place)


def label_of(group: str, process: int, number: int) -> str:
    """The metadata text that a process gives its commit number `number`."""
    return f"[{group} {process}/{number}]"


def labels_in(log: ModelLog) -> set[str]:
    """The metadata of all commits in a log of `__consumer_offsets`, in whatever form it has
    them."""
    found: set[str] = set()
    for _, _, partition in log.each():
        for value in contents_of(partition):
            found.update(label.decode() for label in LABEL.findall(value or b""))
    return found


class Session(NamedTuple):
    """One stay of a process in its group: from a join to the next loss.

    `losses` counts how often the process was told that the group went on without it: a member of
    the consumer protocol keeps its id when it joins again.
    """

    process: int
    member_id: str
    losses: int


class Given(NamedTuple):
    """A record that a member was given."""

    offset: int
    at_ns: int


@dataclass(eq=False)
class Claim:
    """A partition with one process, from being assigned to being given up."""

    place: Place
    session: Session
    epoch: int
    """Generation or member epoch when it was assigned."""
    begun_ns: int
    ended_ns: int = OPEN_NS
    subscribed: bool = True
    """False if its member had ceased to read the topic when it gave it up."""
    how: str = "held"
    """How it ended: "revoked", "lost", "left" or "died"."""
    base: int = -1
    """The offset at which reading began; -1: it has not."""
    position: int = -1
    """The offset of the next record; -1: none yet."""
    runs: list[list[Given]] = field(default_factory=lambda: [[]])
    """Records given, a list for each time that reading began: an abort goes back to the last
    commit.
    """

    def __str__(self) -> str:
        end = "" if self.ended_ns == OPEN_NS else f" to {self.ended_ns / 1e6:.1f} ms ({self.how})"
        return (
            f"{self.place[0]}-{self.place[1]} of process {self.session.process} at epoch {self.epoch}, from "
            f"{self.begun_ns / 1e6:.1f}{end}"
        )


@dataclass(eq=False)
class CommitResult:
    """One offset that a member asked to be committed, and the answer."""

    claim: Claim
    session: Session
    epoch: int
    """Generation or member epoch when it was asked."""
    offset: int
    label: str
    """Its metadata, which no other commit of the world has."""
    asked_ns: int
    answered_ns: int = OPEN_NS
    error: Exception | None = None
    never: bool = False
    """True if it is known to have no effect: its transaction was aborted."""

    @property
    def acknowledged(self) -> bool:
        """True if the member was told that it stands."""
        return self.answered_ns != OPEN_NS and self.error is None and not self.never

    def __str__(self) -> str:
        return (
            f"commit of {self.offset} for {self.claim.place[0]}-{self.claim.place[1]} by process "
            f"{self.session.process} at epoch {self.epoch}, asked at {self.asked_ns / 1e6:.1f} ms"
        )


@dataclass
class GroupLedger:
    """All answers that the members of one group got in a world."""

    group: str
    topics: Sequence[str]
    """Topics that it reads in the end."""
    committed_only: bool
    """True if its members read with isolation.level=read_committed."""
    request_timeout_ms: float
    """Milliseconds after which a member asks again, so that the first request may still arrive."""
    mixed: bool = False
    """True if its members change from one protocol to the other."""
    claims: list[Claim] = field(default_factory=list)
    commits: list[CommitResult] = field(default_factory=list)
    final: dict[Place, int | None] = field(default_factory=dict)
    """Committed offsets in the end, -1: none; None: they could not be read."""
    on_claimed: Callable[[GroupLedger, Claim], None] = lambda ledger, claim: None
    """Called with each new claim, before it is among the others."""
    output: str | None = None
    """The topic that its members write to, a record for each that they read, in transactions."""

    def is_proven(self, claim: Claim) -> bool:
        """True if the claim's member was in the group since it knew of the assignment: a commit of
        it was taken."""
        return any(
            commit.acknowledged and commit.session == claim.session and commit.asked_ns > claim.begun_ns
            for commit in self.commits
        )

    def claimed(self, claim: Claim) -> None:
        """Note that a member was assigned a partition."""
        self.on_claimed(self, claim)
        self.claims.append(claim)
