"""Membership of a group: agree on who reads what, and keep offsets, with the coordinator.

Theory of operation. `Membership` is a part of the consumer machine with a `Network` of its own: a
JoinGroup waits for all other members, and on a connection where answers come in order it would hold
up the fetches behind it. Requests to the coordinator are scripts (`calls`); the states of a member
are a table (`states`):

    OUTSIDE ──subscribe──▶ JOINING ──assigned──▶ ADOPTING ──taken over──▶ STABLE
    STABLE ──rejoin──▶ GIVING_UP ──given up──▶ JOINING
    ADOPTING, STABLE, GIVING_UP ──lost: the group went on without it──▶ GIVING_UP
    any ──leave──▶ OUTSIDE          any ──fail──▶ FAILED ──subscribe──▶ JOINING

The application has a say at two points, and only while it polls: before partitions are given up (to
commit, to finish what it holds) and once new ones are there. So a change is not made but told
(`gate.GroupChange`): the machine sets it at the `Gate`, ends the poll that waits, and goes on when
the client class has called the application's listener and acknowledges. The gate is also where the
client class notes that it polls: a member that does not for `max.poll.interval.ms` leaves the
group.

With an eager assignor everything is given up before a rebalance; with cooperative ones only what
goes to another member, after it, and a second rebalance follows that assigns this (KIP-429). The
leader assigns (`assignors`, `sticky`), and watches whether topics come or grow. A static member
(KIP-345) does not leave when it closes, and has its partitions again if it is back within its
session's time.

Positions come from committed offsets where there are some, else by the reset policy. Commits go out
with the member's generation: what a group that has moved on refuses is told to the application,
because another member reads its partitions now.

Sources: KIP-54, KIP-62, KIP-134, KIP-345, KIP-394, KIP-429, KIP-447, KIP-792; Kafka's
`ConsumerCoordinator`, `AbstractCoordinator`.
"""

from fairlead_kafka.consumer.groups.assignors import ASSIGNORS, Assignor, assignors_named
from fairlead_kafka.consumer.groups.desk import NO_GROUP, GroupDesk
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.membership import Membership, check_group_settings
from fairlead_kafka.consumer.groups.operations import (
    Acknowledge,
    Commit,
    FindCommitted,
    GroupOperation,
    Subscribe,
    TellGroup,
    TellPositions,
    TellSubscription,
    Unsubscribe,
)
from fairlead_kafka.consumer.groups.states import TRANSITIONS, MemberSignal, MemberState

__all__ = [
    "ASSIGNORS",
    "Acknowledge",
    "Assignor",
    "Commit",
    "FindCommitted",
    "Gate",
    "GroupChange",
    "GroupDesk",
    "GroupOperation",
    "MemberSignal",
    "MemberState",
    "Membership",
    "NO_GROUP",
    "Subscribe",
    "TRANSITIONS",
    "TellGroup",
    "TellPositions",
    "TellSubscription",
    "Unsubscribe",
    "assignors_named",
    "check_group_settings",
]
