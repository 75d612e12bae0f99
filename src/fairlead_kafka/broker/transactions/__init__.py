"""The transaction coordinator: producers of transactional ids, and their transactions.

Theory of operation (KIP-98, KIP-360, KIP-890). A transactional id lives in one partition of the
internal topic `__transaction_state`, found as for a group (`home`); the leader of that partition
coordinates the id. The state of an id is an immutable image (`image`) and a state of the diagram
(`states`: the tables from which every answer comes). A change is the next image, written to the log
in Kafka's own format (`records`) and applied once it is written (`log`), as on replay.

    Empty ──partitions added──▶ Ongoing ──EndTxn──▶ PrepareCommit ──all written──▶ CompleteCommit ─┐
      ▲                          │  │  └──EndTxn──▶ PrepareAbort ───all written──▶ CompleteAbort ──┤
      │                          │  └─new producer, time-out─▶ (PrepareEpochFence) ─▶ PrepareAbort │
      └──InitProducerId──────────┼─────────────────────────────────────────────────────────────────┤
                                 └◀─partitions added───────────────────────────────────────────────┘

The moment `PrepareCommit` or `PrepareAbort` is in the log the outcome is decided; the client is
answered, and markers are then written to the partitions (`markers`): appended if the partition is
led here, else by a WriteTxnMarkers request to its leader (`broker.links`). Until all are written
the id accepts no new transaction: requests to add partitions of the next one wait for that a
little, and are then answered with CONCURRENT_TRANSACTIONS. A coordinator that finds such a state
when it reads its log continues from there.

On the other side, a partition appends the first batch of a transaction only after the coordinator
has confirmed that the partition is in it (`verifier`), holds the last stable offset back until the
marker is appended (`broker.log.transactions`), and the group coordinator keeps the offsets
committed in a transaction pending until then.

A producer uses one of two protocols, according to its requests' versions. In the first it adds
partitions and keeps its epoch. In the second (`transaction.version` 2) the first batch of a
partition adds it, and each end raises the epoch: EndTxn answers with the identity of the next
transaction, markers have that epoch, and late requests have an older one.

Everything runs in the broker's step: no clock, no rng, no thread of its own. Two-phase commit
(KIP-939) is not served.
"""

from fairlead_kafka.broker.transactions.coordinator import TransactionCoordinator
from fairlead_kafka.broker.transactions.image import EPOCH_MAX, TransactionImage
from fairlead_kafka.broker.transactions.log import Transaction
from fairlead_kafka.broker.transactions.states import TRANSITIONS, TransactionState
from fairlead_kafka.broker.transactions.verifier import Verifier

__all__ = [
    "EPOCH_MAX",
    "TRANSITIONS",
    "Transaction",
    "TransactionCoordinator",
    "TransactionImage",
    "TransactionState",
    "Verifier",
]
