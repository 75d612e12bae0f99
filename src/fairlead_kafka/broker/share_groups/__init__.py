"""Share groups (KIP-932): members share the records of a partition one by one, as a queue's readers
do.

Theory of operation. Three parts of a broker serve share groups, as in Kafka.

    group coordinator         the group's members, and the partitions that each fetches
        │ initialize,             (`membership`, `assignor`, `group`)
        ▼ delete, summary
    share coordinator         the state of each share partition, in `__share_group_state`
        ▲                         (`share_coordinator`)
        │ read, write
    leader of the partition   the records in flight, and the member that has each
                                  (`leader`, `partition`, `window`)

A *share partition* is the state that one group has in one partition (`ShareKey`). Its leader is the
partition's. It keeps a `Window` from the start offset to the last offset that was ever acquired;
each record there is available, acquired by a member for a time, acknowledged, or archived
(`states`: the table). A fetch acquires records by the index of the log (`delivery`), and the answer
brings the batches that hold them. An acknowledgement changes states at once, but counts, and is
answered, when the share coordinator has it; if that fails it is undone. Locks that expire release
their records. Records that were delivered `share.delivery.count.limit` times are archived.

`partition` writes one change at a time, and changes that came meanwhile with the next. `persister`
is the way to the share coordinator, here or on another broker, and retries errors that may pass. A
state has two fences: the leader epoch of the partition, which a new leader raises by reading, and
the state epoch, which is the group's epoch when a group coordinator began the state or set its
offset. Epochs grow from one group of a name to the next (`group_records.RETIRED`), so late requests
of an earlier coordinator neither initialize nor delete a later state. `share_state` has the
records, `state_shard` their fold.

`sessions` are what members fetch (epochs, as fetch sessions have them); a session ends with its
connection, and its member's records are released. A share partition is dropped when its group has
no session here, when another broker leads, or when it was fenced; the next fetch reads its state
again.

The group's side: a group is the fold of its records in `__consumer_offsets` (`group_records`), one
shard with all other groups; `coordinator.share_records` writes them. Partitions come into targets
when the share coordinator has a state for them.

Simpler than Kafka's: no throttling of records that were delivered often. Everything runs in the
broker's step: no clock, no rng, no thread of its own.
"""

from fairlead_kafka.broker.share_groups.delivery import Delivery, available_bytes, cut, deliver
from fairlead_kafka.broker.share_groups.group import (
    ASSIGNOR,
    FIRST_EPOCH,
    SHARE_TYPE,
    ShareGroup,
    ShareMember,
    apply_share_entry,
    merged,
)
from fairlead_kafka.broker.share_groups.group_records import (
    RETIRED,
    SHARE_KEYS,
    SHARE_VALUES,
    Alteration,
    Alterations,
    ShareEpoch,
    ShareEpochKey,
    ShareGroupEntry,
    ShareGroupKey,
    ShareGroupValue,
    StatePartitions,
    StatePartitionsKey,
    TopicState,
    decode_share_key,
    decode_share_value,
    encode_share_key,
    encode_share_value,
)
from fairlead_kafka.broker.share_groups.leader import SharePartitions, ShareWaiter
from fairlead_kafka.broker.share_groups.membership import (
    ShareHeartbeat,
    ShareView,
    begun,
    check_share_heartbeat,
    deleting,
    forgotten,
    note_begun,
    share_heartbeat,
    share_leave,
    to_begin,
)
from fairlead_kafka.broker.share_groups.partition import SharePartition
from fairlead_kafka.broker.share_groups.persister import Question, StatePersister
from fairlead_kafka.broker.share_groups.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    ShareSessions,
)
from fairlead_kafka.broker.share_groups.share_coordinator import ShareCoordinator
from fairlead_kafka.broker.share_groups.share_state import (
    NO_OFFSET,
    ShareKey,
    ShareState,
    StateUpdate,
    decode_deletion,
    encode_deleted,
)
from fairlead_kafka.broker.share_groups.states import EVENTS_BY_TYPE, RENEW_TYPE, RecordEvent, RecordState
from fairlead_kafka.broker.share_groups.window import OFFSET_MAX, Acquired, StateBatch, Wanted, Window

__all__ = [
    "ASSIGNOR",
    "Acquired",
    "Alteration",
    "Alterations",
    "Delivery",
    "EVENTS_BY_TYPE",
    "FINAL_EPOCH",
    "FIRST_EPOCH",
    "INITIAL_EPOCH",
    "NO_OFFSET",
    "OFFSET_MAX",
    "Question",
    "RENEW_TYPE",
    "RETIRED",
    "RecordEvent",
    "RecordState",
    "SHARE_KEYS",
    "SHARE_TYPE",
    "SHARE_VALUES",
    "SessionKey",
    "ShareCoordinator",
    "ShareEpoch",
    "ShareEpochKey",
    "ShareGroup",
    "ShareGroupEntry",
    "ShareGroupKey",
    "ShareGroupValue",
    "ShareHeartbeat",
    "ShareKey",
    "ShareMember",
    "SharePartition",
    "SharePartitions",
    "ShareSession",
    "ShareSessions",
    "ShareState",
    "ShareView",
    "ShareWaiter",
    "StateBatch",
    "StatePartitions",
    "StatePartitionsKey",
    "StatePersister",
    "StateUpdate",
    "TopicState",
    "Wanted",
    "Window",
    "apply_share_entry",
    "available_bytes",
    "begun",
    "check_share_heartbeat",
    "cut",
    "decode_deletion",
    "decode_share_key",
    "decode_share_value",
    "deleting",
    "deliver",
    "encode_deleted",
    "encode_share_key",
    "encode_share_value",
    "forgotten",
    "merged",
    "note_begun",
    "share_heartbeat",
    "share_leave",
    "to_begin",
]
