"""Groups of the consumer protocol (KIP-848): the coordinator assigns partitions, members reconcile
one by one.

Theory of operation. Members send heartbeats and nothing else. A heartbeat has the member's
subscription (names, or an expression), the partitions it owns, and its epoch; the answer has the
partitions that it is to own. Three epochs order this:

    group epoch   is raised when members or topics change (`membership`)
    target epoch  the group epoch that the targets of all members were computed for (`assignors`)
    member epoch  the target epoch that the member has reached (`reconcile`)

    Empty ──join──▶ Assigning ──targets computed──▶ Reconciling ──all members have theirs──▶ Stable
                        ▲                               │                                      │
                        └──a member joins, leaves, is fenced or subscribes; a topic changes────┘

Each member has states too: it first revokes partitions that another member is to own and
acknowledges that (UnrevokedPartitions), moves to the target epoch, and waits for partitions that
others have not revoked yet (UnreleasedPartitions); then it is Stable. A partition is owned by one
member at most: `ConsumerGroup.owners` is the index, which `check()` compares with the members. A
member is fenced if it sends no heartbeat for its session time-out, if it does not revoke within its
rebalance time-out, or if it sends an epoch that the coordinator did not give it.

A group is the fold of its records in `__consumer_offsets` (`records`: Kafka's own; `group`: the
fold), one shard with the classic groups and the offsets of the `coordinator`. `membership` and
`classic_members` are functions that decide what a request changes, as entries; `service` writes
them, applies them once they are appended to the log, answers once they are committed, and keeps the
timers. Members of the classic protocol in a consumer group have their requests translated
(`classic_members`, `consumer_protocol`).

Expressions are RE2's, and matched in bounded time (`patterns`). `view` is all that a decision may
depend on besides group and request.

Everything runs in the broker's step: no clock, no rng, no thread of its own.
"""

from fairlead_kafka.broker.consumer_groups.assignors import ASSIGNORS, Target
from fairlead_kafka.broker.consumer_groups.classic_members import (
    ClassicJoin,
    protocol_of,
    written_assignment,
)
from fairlead_kafka.broker.consumer_groups.consumer_protocol import read_assignment, read_subscription
from fairlead_kafka.broker.consumer_groups.group import (
    FIRST_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    apply_entry,
)
from fairlead_kafka.broker.consumer_groups.membership import (
    COMMITS_FROM_VERSION,
    Committer,
    Heartbeat,
    HeartbeatResult,
    check_commit,
    check_fetch,
    check_heartbeat,
)
from fairlead_kafka.broker.consumer_groups.records import (
    About,
    ClassicAbout,
    Current,
    EpochKey,
    GroupsEntry,
    GroupsKey,
    GroupsValue,
    decode_groups_key,
    decode_groups_value,
    encode_groups_key,
    encode_groups_value,
)
from fairlead_kafka.broker.consumer_groups.service import ConsumerGroups, GroupsHost
from fairlead_kafka.broker.consumer_groups.states import ConsumerGroupState, MemberState
from fairlead_kafka.broker.consumer_groups.view import GroupSettings, Topics, TopicView, View, metadata_hash

__all__ = [
    "ASSIGNORS",
    "About",
    "HeartbeatResult",
    "COMMITS_FROM_VERSION",
    "ClassicAbout",
    "ClassicJoin",
    "Committer",
    "ConsumerGroup",
    "ConsumerGroupState",
    "ConsumerGroups",
    "ConsumerMember",
    "Current",
    "FIRST_EPOCH",
    "EpochKey",
    "GroupSettings",
    "GroupsEntry",
    "GroupsHost",
    "GroupsKey",
    "GroupsValue",
    "Heartbeat",
    "LEAVE_EPOCH",
    "LEAVE_STATIC_EPOCH",
    "MemberState",
    "Target",
    "TopicView",
    "Topics",
    "View",
    "apply_entry",
    "check_commit",
    "check_fetch",
    "check_heartbeat",
    "decode_groups_key",
    "decode_groups_value",
    "encode_groups_key",
    "encode_groups_value",
    "metadata_hash",
    "protocol_of",
    "read_assignment",
    "read_subscription",
    "written_assignment",
]
