"""Membership of a group: assignment of partitions and committed offsets, by the group coordinator.

Theory of operation. A `Member` is a part of the consumer machine with a `Network` of its own: a
JoinGroup waits for all other members, and as answers of a connection come in order, it would delay
fetches behind it. Requests to the coordinator are scripts (`calls`). There are two kinds, by
`group.protocol`. The states of a classic one (`Membership`) are a table (`states`):

    OUTSIDE ──subscribe──▶ JOINING ──assigned──▶ ADOPTING ──taken over──▶ STABLE
    STABLE ──rejoin──▶ GIVING_UP ──given up──▶ JOINING
    ADOPTING, STABLE, GIVING_UP ──lost: the group went on without it──▶ GIVING_UP
    any ──leave──▶ OUTSIDE
    any ──fail──▶ FAILED ──subscribe──▶ JOINING

The application's listener is called at two points, and only while the application polls: before
partitions are revoked (to commit, to finish records) and once new ones are assigned. So a change is
not made but announced (`gate.GroupChange`): the machine sets it at the `Gate`, ends the poll that
waits, and continues when the client class has called the listener and acknowledges. The gate is
also where the client class notes that it polls: a member that does not for `max.poll.interval.ms`
leaves the group.

With an eager assignor all partitions are revoked before a rebalance; with cooperative ones only
those that move to another member, after it, and a second rebalance follows that assigns them
(KIP-429). The leader assigns (`assignors`, `sticky`), and watches for new topics and partitions. A
static member (KIP-345) does not leave when it closes, and has its partitions again if it is back
within its session's time.

With `group.protocol=consumer` (KIP-848) the coordinator assigns, and answers heartbeats with what
each member should read (`ConsumerMembership`). Its states are Kafka's (`epochs`):

    UNSUBSCRIBED ──subscribe──▶ JOINING ──target──▶ RECONCILING ──taken──▶ ACKNOWLEDGING
    ACKNOWLEDGING ──sent──▶ STABLE ──target──▶ RECONCILING
    JOINING to STABLE ──fenced──▶ FENCED ──released──▶ JOINING
    JOINING to STABLE ──no poll──▶ STALE ──released, and polled──▶ JOINING

The coordinator revokes partitions from one member first, and assigns them to another once the
former has reported that it does not own them any more. So a member reports the partitions that it
owns, among them those of a change at the gate, since it may still read them. A member whose
assignment has changed asks soon again for what others give up (`heartbeats.beat_delay_ms`).
Assignments name topics by id; names come from metadata (`looking`), and topics without a known name
are taken over later.

Positions come from committed offsets where there are some, else by the reset policy. Commits are
sent with the member's generation or epoch; one with a stale epoch is sent again with the next. A
commit that the group refuses is an error for the application, because another member reads the
partitions now.

Sources: KIP-54, KIP-62, KIP-134, KIP-345, KIP-394, KIP-429, KIP-447, KIP-792, KIP-848, KIP-1082;
Kafka's `ConsumerCoordinator`, `AbstractCoordinator`, `ConsumerMembershipManager`,
`ConsumerHeartbeatRequestManager`.
"""

from fairlead_kafka.base.config import Settings
from fairlead_kafka.consumer.groups.assignors import ASSIGNORS, Assignor, assignors_named
from fairlead_kafka.consumer.groups.desk import NO_GROUP, GroupDesk
from fairlead_kafka.consumer.groups.epochs import EPOCH_TRANSITIONS, EpochSignal, EpochState
from fairlead_kafka.consumer.groups.gate import Gate, GroupChange
from fairlead_kafka.consumer.groups.member import Assignee, Member
from fairlead_kafka.consumer.groups.membership import Membership
from fairlead_kafka.consumer.groups.operations import (
    Acknowledge,
    Commit,
    FindCommitted,
    GetGroup,
    GetPositions,
    GetSubscription,
    GroupOperation,
    Subscribe,
    SubscriptionPattern,
    Unsubscribe,
)
from fairlead_kafka.consumer.groups.reconciling import ConsumerMembership
from fairlead_kafka.consumer.groups.settings import CONSUMER_PROTOCOL, check_group_settings
from fairlead_kafka.consumer.groups.states import TRANSITIONS, MemberSignal, MemberState
from fairlead_kafka.consumer.metrics import Recorder
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.network import Network

__all__ = [
    "ASSIGNORS",
    "Acknowledge",
    "Assignor",
    "Commit",
    "ConsumerMembership",
    "EPOCH_TRANSITIONS",
    "EpochSignal",
    "EpochState",
    "FindCommitted",
    "Gate",
    "GroupChange",
    "GroupDesk",
    "GroupOperation",
    "Member",
    "MemberSignal",
    "MemberState",
    "Membership",
    "NO_GROUP",
    "Subscribe",
    "SubscriptionPattern",
    "TRANSITIONS",
    "GetGroup",
    "GetPositions",
    "GetSubscription",
    "Unsubscribe",
    "assignors_named",
    "check_group_settings",
    "make_member",
]


def make_member(
    settings: Settings, rng: Rng, network: Network, gate: Gate, assignee: Assignee, recorder: Recorder
) -> Member:
    """The member that `group.protocol` asks for: by the classic protocol, or by that of KIP-848."""
    made = ConsumerMembership if settings["group.protocol"] == CONSUMER_PROTOCOL else Membership
    return made(settings, rng, network, gate, assignee, recorder)
