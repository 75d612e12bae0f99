"""The group coordinator: who reads which partition together, and how far they have come.

Theory of operation. A group lives in one partition of the internal topic `__consumer_offsets`: |hash of its name| modulo the
number of partitions (`home`). Whoever leads that partition coordinates the group; FindCoordinator says who that is. Each broker
has one `GroupCoordinator`, which follows the controller: when it comes to lead a partition it reads its records into a shard, when
it ceases to, the shard is dropped and everyone who waits is told NOT_COORDINATOR.

Members (`group` is the data, `rebalance` the rules, `states` the tables) follow Kafka's classic protocol:

    Empty ──join──▶ PreparingRebalance ──all joined, or time is up──▶ CompletingRebalance ──leader's sync──▶ Stable
      ▲                 │        ▲                                          │ join, leave, session ended         │
      └──nobody left────┘        └──────────────────────────────────────────┴────────────────────────────────────┘

A join is answered when all members have joined (or the longest rebalance time-out among them is over), a sync when the leader has
brought the assignment; until then the reply function waits in the member. Sessions end by one timer per member that is not moved
by each heartbeat but looks again when it is due. A group that had no members does not wait for more unless
`group.initial.rebalance.delay.ms` says so. Members are kept in memory only: when a coordinator starts again they are told
UNKNOWN_MEMBER_ID and join anew, and go on from their committed offsets.

Offsets (`offsets`, `offset_records`) are records in Kafka's own format. A commit is answered when its record is written, and only
then can it be fetched. Replay and life share one `apply`. The log of a shard is kept short by checkpoints, and offsets nobody has
committed for `offsets.retention.minutes` to a group without members are taken back.

Everything runs in the broker's step: no clock, no dice, no thread of its own.
"""

from fairlead.broker.coordinator.coordinator import CoordinatorHost, GroupCoordinator
from fairlead.broker.coordinator.group import CommittedOffset, Group, JoinOutcome, Member, SyncOutcome
from fairlead.broker.coordinator.rebalance import JoinRequest
from fairlead.broker.coordinator.states import TRANSITIONS, GroupState
from fairlead.broker.home import home_partition, java_hash

__all__ = [
    "CommittedOffset",
    "CoordinatorHost",
    "Group",
    "GroupCoordinator",
    "GroupState",
    "JoinOutcome",
    "JoinRequest",
    "Member",
    "SyncOutcome",
    "TRANSITIONS",
    "home_partition",
    "java_hash",
]
