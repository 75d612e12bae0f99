"""The group coordinator: who reads which partition together, and how far they have come.

Theory of operation. A group lives in one partition of the internal topic `__consumer_offsets`:
|hash of its name| modulo the number of partitions (`home`). The leader of that partition
coordinates the group; FindCoordinator says which broker that is. Each broker has one
`GroupCoordinator`, which follows the controller: when it comes to lead a partition it reads its
records into a shard, when it ceases to, the shard is dropped and everyone who waits is told
NOT_COORDINATOR.

Members (`group` is the data, `rebalance` the rules, `states` the tables, `attendance` their
sessions) follow Kafka's classic protocol:

    Empty ──join──▶ PreparingRebalance ──all joined, or late──▶ CompletingRebalance ──sync──▶ Stable
      ▲                 │        ▲                                    │                          │
      └─no members left─┘        └──join, leave, session ended────────┴──────────────────────────┘

A join is answered when all members have joined (or the longest rebalance time-out among them is
over), a sync when the leader has brought the assignment and the log has it; until then the reply
function waits in the member. Answers are given only once the group is as it is to be (`answers`),
for each lets its connection's next request in. Sessions end by one timer per member that is not
moved by each heartbeat but looks again when it is due. A group that had no members does not wait
for more unless `group.initial.rebalance.delay.ms` says so.

What a shard's log holds (`shard`: the fold of its records; `shard_log`: writing them) is in Kafka's
own format, so that Kafka's tools can read it: committed offsets (`offset_records`), and each
generation of a group with its members and their assignments (`group_records`). Who coordinates a
group next, on this broker or another, goes on with that generation: members that send their next
heartbeat to it notice nothing, and who does not within a session's time is missed. A generation
that was joined and not assigned is gone with its coordinator; its members are told and join again.

An offset (`offsets`) is answered, and can be fetched, once its record is committed: written here
and by the replicas in sync. A commit for which that takes longer than `offsets.commit.timeout.ms`
is told to have timed out, and may stand. Replay and life share one `apply`. The log is compacted as
any with `cleanup.policy=compact`; offsets nobody has committed for `offsets.retention.minutes` to a
group without members are taken back, and with the last of them the group.

Everything runs in the broker's step: no clock, no rng, no thread of its own.
"""

from fairlead_kafka.broker.coordinator.coordinator import CoordinatorHost, GroupCoordinator
from fairlead_kafka.broker.coordinator.group import (
    CommittedOffset,
    Group,
    JoinOutcome,
    JoinRequest,
    Member,
    SyncOutcome,
)
from fairlead_kafka.broker.coordinator.offsets import GroupOffsets
from fairlead_kafka.broker.coordinator.states import TRANSITIONS, GroupState
from fairlead_kafka.broker.home import home_partition, java_hash

__all__ = [
    "CommittedOffset",
    "CoordinatorHost",
    "Group",
    "GroupCoordinator",
    "GroupOffsets",
    "GroupState",
    "JoinOutcome",
    "JoinRequest",
    "Member",
    "SyncOutcome",
    "TRANSITIONS",
    "home_partition",
    "java_hash",
]
