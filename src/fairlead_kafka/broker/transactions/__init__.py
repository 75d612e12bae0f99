"""The transaction coordinator: which transactional id has which producer, and how its transactions
end.

Theory of operation (KIP-98, KIP-360, KIP-890). A transactional id lives in one partition of the
internal topic `__transaction_state`, found as a group's home is found; the leader of that partition
coordinates it. What is known of an id is an immutable image (`image`) and the state it is in
(`states`: the tables from which every answer comes). A change is the next image, written to the log
in Kafka's own format (`records`) and true once it is written (`log`); replay and life are the same.

    Empty ──partitions added──▶ Ongoing ──EndTxn──▶ PrepareCommit ──all written──▶ CompleteCommit ─┐
      ▲                          │  │  └──EndTxn──▶ PrepareAbort ───all written──▶ CompleteAbort ──┤
      │                          │  └─new producer, time-out─▶ (PrepareEpochFence) ─▶ PrepareAbort │
      └──InitProducerId──────────┼─────────────────────────────────────────────────────────────────┤
                                 └◀─partitions added───────────────────────────────────────────────┘

The moment `PrepareCommit` or `PrepareAbort` is in the log the outcome stands; the client is
answered, and the rest is bringing markers to the partitions (`markers`): appended here where they
are led here, and by a WriteTxnMarkers request to other brokers (`broker.links`). Until all are
finished the id takes nothing new: partitions of the next transaction wait for that a little, and
then are answered CONCURRENT_TRANSACTIONS. A coordinator that finds such a state when it reads its
log goes on from there.

On the other side, a partition takes the first batch of a transaction only after its coordinator has
said that the partition is in it (`verifier`), keeps the last stable offset until the marker comes
(`broker.log.transactions`), and the group coordinator keeps the offsets committed in a transaction
aside until then.

A producer speaks one of two protocols, as its requests' versions say. In the first it adds
partitions and keeps its epoch. In the second (`transaction.version` 2) the first batch of a
partition adds it, and each end raises the epoch: EndTxn answers with the identity of the next
transaction, markers carry that epoch, and whatever comes late has an older one.

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
