"""Ledger of a share group in a world: the records that leaders locked for its members, those that
the members got, their acknowledgements, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.consumer.share import AcknowledgeType
from fairlead_kafka.simulation.group_ledger import OPEN_NS, Place

FINAL_TYPES = frozenset({AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})
"""Types of acknowledgements after which a record is not delivered any more."""


class Tenure(NamedTuple):
    """One broker's time as leader of a partition: from one change of leader, or start of the
    broker, to the next. Of two tenures the greater is the later one; a broker may not know yet that
    its own has ended."""

    leader_epoch: int
    life: int
    """Number of the broker's start."""
    node_id: int


class Acquisition(NamedTuple):
    """Offsets `first` to `last` that a leader locked for a member, each delivered `deliveries`
    times by then. Times are the broker's own, monotonic, in ns."""

    at_ns: int
    until_ns: int
    """When the lock is over, unless it is renewed."""
    member_id: str
    first: int
    last: int
    deliveries: int
    tenure: Tenure

    def __str__(self) -> str:
        return (
            f"delivery {self.deliveries} at {self.at_ns / 1e6:.1f} ms, by broker {self.tenure.node_id} in "
            f"leader epoch {self.tenure.leader_epoch}, to member {self.member_id}"
        )


@dataclass(slots=True)
class Connected:
    """A share session as its member knows it; times in ns."""

    begun_ns: int
    """When its first request was sent."""
    sent_ns: int
    """When its newest request was sent."""
    epoch: int
    """Epoch of that request."""
    busy: bool = True
    """Whether that request is not answered yet."""
    proven_ns: int = -1
    """When the newest request was sent that the broker took as one of this session: it was there
    then."""


@dataclass(slots=True, eq=False)
class Said:
    """An acknowledgement of one record by a member, and the broker's answer; times in ns."""

    process: int
    place: Place
    offset: int
    kind: int
    """An AcknowledgeType, or GAP."""
    acquisition: Acquisition
    """The delivery that it is about."""
    asked_ns: int
    answered_ns: int = OPEN_NS
    error: Exception | None = None

    @property
    def acknowledged(self) -> bool:
        """True if the member was told that it stands."""
        return self.answered_ns != OPEN_NS and self.error is None

    @property
    def refused(self) -> bool:
        """True if the acknowledgement is known to have no effect. After any other error it may
        count: the answer was lost, or the write was given up while it was under way."""
        return isinstance(self.error, BrokerError) and self.error.code == ErrorCode.INVALID_RECORD_STATE

    def __str__(self) -> str:
        name = AcknowledgeType(self.kind).name if self.kind else "GAP"
        return (
            f"{name} of {self.place[0]}-{self.place[1]}/{self.offset} by process {self.process}, asked at "
            f"{self.asked_ns / 1e6:.1f} ms and answered at {self.answered_ns / 1e6:.1f} ms, for "
            f"{self.acquisition}"
        )


class GivenRecord(NamedTuple):
    """A record that a member was given."""

    place: Place
    offset: int
    value: bytes | None
    process: int


@dataclass
class ShareLedger:
    """All locks, acknowledgements and answers of the brokers and members of one share group in a
    world."""

    group: str
    topics: Sequence[str]
    committed_only: bool
    """True if share.isolation.level is read_committed."""
    limit: int
    """share.delivery.count.limit."""
    lock_ns: int
    acquisitions: dict[Place, list[Acquisition]] = field(default_factory=dict)
    """Place → what was acquired there, in the order of time."""
    said: list[Said] = field(default_factory=list)
    given: list[GivenRecord] = field(default_factory=list)
    sessions: dict[str, dict[tuple[int, int], Connected]] = field(default_factory=dict)
    """Member id → (broker, number of the session at the member) → the session."""

    def acquired(self, place: Place, acquisition: Acquisition) -> None:
        """Note that a leader locked records."""
        self.acquisitions.setdefault(place, []).append(acquisition)

    def found(
        self, place: Place, member_id: str, node_id: int, first: int, deliveries: int
    ) -> Acquisition | None:
        """The newest acquisition that an answer of a broker to a member is about; None: there is
        none."""
        return next(
            (
                one
                for one in reversed(self.acquisitions.get(place, ()))
                if one.member_id == member_id
                and one.tenure.node_id == node_id
                and one.first <= first <= one.last
                and one.deliveries == deliveries
            ),
            None,
        )

    def was_connected(self, acquisition: Acquisition, until_ns: int) -> bool:
        """True if the share session in which records were acquired lasted beyond `until_ns`, so
        that its end cannot have released them before."""
        return any(
            node_id == acquisition.tenure.node_id
            and session.begun_ns <= acquisition.at_ns
            and session.proven_ns > until_ns
            for (node_id, _number), session in self.sessions.get(acquisition.member_id, {}).items()
        )
