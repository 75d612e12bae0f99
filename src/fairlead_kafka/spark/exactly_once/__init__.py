"""Exactly-once writes: a transaction for each task, one decision for all of them, in a log that
only one driver can write.

Theory of operation. Kafka commits one transaction atomically, not several, and a batch needs
several: tasks write at the same time, one that fails must leave no row behind, and sequence numbers
are counted by partition and producer. So the batch is committed as any set of transactions is, by
two phases, with the decision in a log (`docs/concepts/exactly-once.md` has the reasons).

    driver    `check_ready`, before the tasks: a write that could not be committed is refused while
              no transaction is open
    task      `prepare`: writes its rows in a transaction under an id that no other process uses,
              leaves it open, returns (transactional id, producer id, epoch) to the driver. An
              attempt that fails aborts its transaction; one that loses or dies leaves it open, and
              that is never committed
    driver    `Committer.commit`: 1 fence older drivers and read the last decision; 2 check that
              every transaction is open and has time left; 3 write the decision: the lists of
              transactions to commit and to abort; 4 commit and abort them; 5 note that this is
              done. The batch is committed once the decision of step 3 is committed; until then it
              would be written again. A failure before step 3 aborts the prepared transactions: no
              other process knows them. After it a driver that lives goes on until the end is clear
              (`patience`): nobody comes back to a write without a name
    log       `CommitLog`: a compacted topic, the name of the query as key. Written in transactions
              of the driver's own transactional id, so a decision counts or was never made, and a
              driver that takes over knows that the one before can decide nothing more
    parts     the messages between the two, and the records of the log

A driver that commits a batch first carries out the last decision if that is not done. If that one
is about the same batch, Spark repeats a batch that is decided: what is prepared now is aborted.
Transactions that were decided and that brokers had aborted by then (a driver that was away for
longer than transaction.timeout.ms, between 3 and 4) are replaced by those of the repeated batch
that hold the same rows, which a digest tells; a decision of its own says so. If there are none,
`RowsLost` says what is missing.

An end that is repeated is answered as done. By the first protocol (KIP-98) EndTxn leaves the epoch
as it is; by the second (KIP-890, transaction.version=2) it raises it, and the epoch before is known
as that of the transaction that ended.

Nothing here imports Spark but `writers` and the base class of `parts.TaskPrepared`; the lab drives
`task` and `driver` in processes of its own, and kills them at each `TaskStep` and `Step`.
"""
