"""The group coordinator: members of groups, their assignments, and committed offsets.

Theory of operation. A group lives in one partition of the internal topic `__consumer_offsets`: the
absolute value of its name's hash, modulo the number of partitions (`home`). The leader of that
partition coordinates the group; FindCoordinator says which broker that is. Each broker has one
`GroupCoordinator`, which follows the controller: when the broker becomes leader of a partition, the
partition's records are read into a shard; when it is leader no more, the shard is dropped and all
waiting requests are answered with NOT_COORDINATOR.

Members (`group` is the data, `rebalance` the rules, `states` the tables, `attendance` their
sessions) follow Kafka's classic protocol:

    Empty ──join──▶ PreparingRebalance ──all joined, or late──▶ CompletingRebalance ──sync──▶ Stable
      ▲                 │        ▲                                    │                          │
      └─no members left─┘        └──join, leave, session ended────────┴──────────────────────────┘

A join is answered when all members have joined (or the longest rebalance time-out among them is
over), a sync when the leader has sent the assignment and it is written to the log; until then the
reply function waits in the member. Answers are sent only once a change of the group is complete
(`answers`), because each admits its connection's next request. Sessions end by one timer per
member, which heartbeats do not move: when it is due, it looks at the deadline again. A group that
had no members waits for more for `group.initial.rebalance.delay.ms`.

What a shard's log holds (`shard`: the fold of its records; `shard_log`: writing them) is in Kafka's
own format, so that Kafka's tools can read it: committed offsets (`offset_records`), and each
generation of a group with its members and their assignments (`group_records`). The next coordinator
of a group, on this broker or another, continues with that generation: members that send their next
heartbeat to it notice nothing, and members that do not within the session time-out are removed. A
generation that was joined and not assigned is lost with its coordinator; its members get an error
and join again.

An offset (`offsets`) is answered, and can be fetched, once its record is committed: written here
and by the replicas in sync. A commit for which that takes longer than `offsets.commit.timeout.ms`
is answered with REQUEST_TIMED_OUT, and may be committed later. Replay and new records share one
`apply`. The log is compacted as any with `cleanup.policy=compact`; offsets of a group without
members that were not committed again for `offsets.retention.minutes` are deleted, and with the last
of them the group.

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
