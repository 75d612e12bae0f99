"""Producer: from records submitted to batches acknowledged.

Theory of operation. `ProducerMachine` is one machine (see `core`). In each step it handles the
answers that arrived, takes the submissions in its intake, handles expired deadlines, and sends the
requests that can be sent. A submission is a set of columns: a chunk of single sends, or a piece of
a table. From there on the unit of work is the run, the batch, the request; no code here looks at
one record.

    Submission      columns, the `Delivery` of their results, and their bytes of buffer.memory
    Accumulator   a topic's unbound submissions, then its records by partition: explicit, by key, or
                  by policy (`partitioning`)
    SpanQueue     records that wait, as rows of submissions with prefix sums of their sizes; only
                  `cut` makes batches of them
    TopicBuffer   a topic's `PartitionQueue`s, and its records that get their partition only when a
                  broker is ready (policy `late`)
    Schedule      which partitions' records linger, back off, are ready, are parked; by node, so
                  that idle nodes cost nothing
    Drain         what goes into the next requests: ready partitions in rotation, one batch each
    Binder        and batches cut from unbound records, for the brokers that can take one
    Batch         what was cut: encoded once, sent until it is completed (`BatchState`)
    Nodes         of each broker: its `Window` of requests in flight, and whether it answers
    Sender        sends requests, and classifies the answers (`classification`)
    Identity      producer id and epoch; `PartitionSequences`: sequence numbers of partitions
    Transactions  when what may be sent, and its outcome: begun, committed, aborted, fenced
    Ledger        completes every row exactly once: memory, flushes, callbacks
    Remainders    copies out what waits of submissions that are mostly sent, to bound memory
    Recorder      counts batches, requests, bytes and times, by Kafka's names (`metric_names`); once
                  for each batch or request, never for a record

Binding. A submission waits in its topic's buffer until metadata is there, which is mostly at once.
Then every record with a key or an explicit partition is bound, and under the policies of the KIPs
every other one too: a span of its rows, `order[start:stop]`, waits in the partition's queue.
Nothing is copied until it is cut to go out with a request, when it is encoded (all batches of one
table in a request by one kernel call), numbered, and sent.

Cutting. batch.size is what policies count by and what linger.ms waits for: what waits for a
partition is so many whole batches and one that is open, or what the policy left there, which does
not linger (`PartitionQueue.closed_bytes`). But a request carries one batch of a partition, so with
16 KB in each a broker that takes five requests in each half second would set the pace. So a batch
is cut of all that is due: whole batches' worth, and what is open too once it has lingered; up to
batch.max.size, to a part of max.request.size, and to half of what a broker found too large. Under a
light load no more than one batch waits, and batches are Kafka's. Under `late` too. What comes at
once and is several quanta of `uniform` or `adaptive` for each partition is placed as one run of
rows for each.

Late binding. Under `late` records without partition go on waiting, submission by submission, each
with the prefix sum of its sizes. Once they hold batch.size, or the first has waited linger.ms, or
someone flushes, `partitioning.LatePolicy.quotas` says what each broker with room in its window may
take: all that need not be kept for those that are busy, and lack it. It takes a batch for each of
its partitions that are furthest behind, of one size, until its request is full. A batch is cut by
binary search, from the end of one submission and the beginning of the next if need be, and goes to
its broker in the same step: nothing is ever bound and unsent, so there is nothing to bind again.
What was sent and failed is repeated to the same partition, for it may have been written. What keys
have bound to that partition goes in the same batch, before them, for a request carries one batch of
a partition; nothing is promised about the order of keyed and unkeyed records. The byte counter
counts bytes as they are sent, compressed and with headers. In a transaction a partition has to join
first: as many join as there are batches that those in it do not take. Unbound records come first in
a request, and leave half of it where bound ones are ready; topics take turns.

For whom records are kept. A broker that does not answer must not count: one whose connection failed
or cannot be made, that left requests unanswered for too long, or whose last answer took too long,
is not counted; so is a partition with a batch that has to be repeated. They get batches as others
do while they can take any (a silent broker cannot), and count again, put level, when the broker
answers in time. Too long is partitioner.availability.timeout.ms; if that is 0, `tuning.SILENCE_NS`,
or ten times what the quickest broker takes if that is more.

The window. Requests beyond what a broker serves at once wait where nothing can join them any more.
`Window` finds that number from the latency of the answers, between 1 and
max.in.flight.requests.per.connection.

The share. With buffer.memory.per.broker.ratio below 1 what is bound to one broker may hold so much
of buffer.memory and no more (`Share`).

Order. A partition's batches leave first in, first out. What is sent again goes back before all that
was drained after it (`Batch.serial`), and with sequence numbers only the first outstanding batch
may be repeated. Without them, order under retries holds for one request in flight, as in Kafka. A
partition's very first batch under a producer id goes alone: a broker that knows nothing of a
producer takes any sequence, and would write a second batch before a first one that it refused.

Exactly once. A batch keeps its bytes and sequence through retries, so brokers recognise it. Three
things can break the chain. A batch is refused for good: its sequence will never come, everything
behind it is renumbered under the next epoch. A batch is given up and may have been written: nothing
new is numbered until the answers still out tell (`give_up`, `resolve`). A broker has lost its
state: new epoch. Renumbering waits until nothing of the partition is on the wire, so an answer
always means the numbers that its batch carries. Rules: KIP-98, KIP-360, Kafka's
`TransactionManager`; `classify` has them in one place.

Transactions. With a transactional id, `Transactions` has the states of KIP-98 as a table and runs
one script of requests at a time (`coordinators`); `reactions` says what each error code means for
the transaction. A batch goes out once its partition is part of the transaction, and the transaction
ends once every record is completed and nothing is on the wire, not even a batch that was given up.
Within it nothing is renumbered: any failure leaves it to be aborted, what was not sent fails at
once, what was sent and not answered is sent again until it is, and where a sequence is missing the
coordinator is asked for the next epoch after the abort (KIP-360). By both protocols partitions are
added by requests of their own; by the second (KIP-890) EndTxn answers with the next epoch. What a
coordinator is still busy with passes soon: it is asked again after `busy_wait_ms`.

Too large. A batch that a broker finds too large is split and its parts share its sequences
(KIP-126); a single record fails.

A record's way, by modules, from `send_table` to the socket:

    client     producer_core, tables, pieces, memory, intake; then the host is woken
    taken      machine, ledger (it is entered), accumulator, placing, `partitioning`
    waiting    spans, queues, schedule
    sent       sender, drain, nodes, binding (`late`), queues (`cut`), request, encoding, `records`
    framed     sender, `core.network`, `core.connections`, `wire`, and the effect Write of `runtime`

Three are visited twice, each for a reason. The intake is asked before memory is waited for, which
may take a minute, and again when the piece is put, for it may have been closed meanwhile. A queue
takes records when they are placed and gives them when a batch is cut, since nothing is a batch
until it is sent. The sender begins each round and gets its requests back: what is drained knows
nothing of answers, and what is answered nothing of rotation.

A timer's way: the host asks `machine.deadline_ns`, which is the least of network, schedule,
accumulator, drain, ledger and transactions. When that comes it steps the machine: accumulator and
sender fail what has expired, schedule moves what has lingered or backed off, and sender sends. Each
is asked before and worked after, because a deadline is pulled and never pushed: none is cancelled.

An error's way: `core.connections` gives an answer or a lost connection to sender; classification
says what it means for the batch. Either the batch goes back into its queue (`put_back`, after a new
numbering by identity if need be), or refusals words the error, identity closes the gap in the
sequences, ledger completes the rows (`Submission.complete`, `Delivery`) and tells transactions;
callbacks and freed memory leave as effects at the end of the step. The queue is visited again by a
retry alone.

Not as Kafka: a node with requests in flight is sent only what is full or has lingered, so that
batches fill while it is busy; an idle node also takes what lingers. An explicit partition that does
not exist fails alone, after one look at fresh metadata.
"""

from fairlead_kafka.producer.machine import ProducerMachine
from fairlead_kafka.producer.submission import (
    CompletedRows,
    Flush,
    Intake,
    PartitionsFor,
    ReportUndelivered,
    Stop,
    Submission,
    Undelivered,
    Wake,
)

__all__ = [
    "Flush",
    "Submission",
    "Intake",
    "PartitionsFor",
    "ProducerMachine",
    "CompletedRows",
    "Stop",
    "ReportUndelivered",
    "Undelivered",
    "Wake",
]
