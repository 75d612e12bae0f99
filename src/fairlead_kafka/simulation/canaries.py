"""Canaries: bugs planted on purpose. A simulation that does not notice them would not notice real
ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.hooks import Method
from fairlead_kafka.base.ids import NO_SEQUENCE
from fairlead_kafka.broker.consumer_groups import Committer, ConsumerGroup
from fairlead_kafka.broker.coordinator.offset_records import OffsetKey
from fairlead_kafka.broker.coordinator.shard import Entry
from fairlead_kafka.broker.internal import ProducerIdentity
from fairlead_kafka.broker.log.compaction import Latest
from fairlead_kafka.broker.replication.rules import UNKNOWN_EPOCH
from fairlead_kafka.broker.transactions.coordinator import TransactionCoordinator
from fairlead_kafka.producer.queues import Batch, PartitionQueue
from fairlead_kafka.producer.sender import Sender
from fairlead_kafka.producer.submission import Calls, Submission
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.simulation.canary import Canary
from fairlead_kafka.simulation.model_broker import ModelBroker
from fairlead_kafka.simulation.model_log import NOWHERE, ModelPartition
from fairlead_kafka.simulation.share_canaries import SHARE_CANARIES
from fairlead_kafka.simulation.transaction_canaries import TRANSACTION_CANARIES
from fairlead_kafka.wire import Buffer
from fairlead_kafka.wire.codec import forget
from fairlead_kafka.wire.messages import ProduceResponse


def _joining_what_is_ending(in_transaction: Method) -> Method:
    """Plant: a batch of the next epoch counts as one of the transaction that still waits for its
    marker."""

    def planted(partition: object, producer_id: int, epoch: int | None = None) -> bool:
        return bool(in_transaction(partition, producer_id))

    return planted


def _renumbering(put_back: Method) -> Method:
    def planted(queue: PartitionQueue, batch: Batch) -> None:
        if batch.base_sequence != NO_SEQUENCE:
            queue.sequences.drop(batch)
            batch.base_sequence, batch.serial, batch.buffer = NO_SEQUENCE, 0, None
        put_back(queue, batch)

    return planted


def _acknowledging_what_was_lost(lost: Method) -> Method:
    def planted(sender: Sender, batch: Batch, error: Exception) -> None:
        sender._delivered(batch, -1, -1)

    return planted


def _retrying_last_first(put_back: Method) -> Method:
    def planted(queue: PartitionQueue, batch: Batch) -> None:
        put_back(queue, batch)
        queue.retries.remove(batch)
        queue.retries.appendleft(batch)

    return planted


def _acknowledging_what_expired(complete: Method) -> Method:
    def planted(submission: Submission, *arguments: object) -> tuple[int, Calls | None]:
        *others, error = arguments
        freed, call = complete(submission, *others, None if isinstance(error, TimedOut) else error)
        return freed, call

    return planted


def _losing_what_moved(refused: Method) -> Method:
    def planted(sender: Sender, batch: Batch, entry: ProduceResponse.PartitionProduceResponse) -> None:
        if entry.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            sender._ledger.split(batch, [])
        else:
            refused(sender, batch, entry)

    return planted


def _keeping_memory(complete: Method) -> Method:
    def planted(submission: Submission, *arguments: object) -> tuple[int, Calls | None]:
        freed, call = complete(submission, *arguments)
        return (0 if arguments[-1] is not None else freed), call

    return planted


def _never_starting_again(_: Method) -> Method:
    return lambda sequences, identity: None


def _promising_at_once(_: Method) -> Method:
    return lambda recovery: recovery._done(recovery._result)


def _never_waiting(_: Method) -> Method:
    return lambda machine: True


def _forgetting_failures(_: Method) -> Method:
    return lambda machine, error: None


def _always_committing(end: Method) -> Method:
    return lambda coordinators, commit: end(coordinators, True)


def _taking_duplicates(check_sequence: Method) -> Method:
    def planted(partition: ModelPartition, header: BatchHeader, *, forgetful: bool) -> tuple[int, int]:
        code, offset = check_sequence(partition, header, forgetful=forgetful)
        return code, (NOWHERE if not code else offset)

    return planted


def _answering_without_writing(append: Method) -> Method:
    def planted(
        broker: ModelBroker, topic: str, index: int, partition: ModelPartition | None, records: Buffer | None
    ) -> object:
        if partition is None:
            return append(broker, topic, index, partition, records)
        before = (partition.end_offset, partition.size_bytes)
        outcome: object = append(broker, topic, index, partition, records)
        if (
            partition is not None
            and before is not None
            and partition.end_offset > before[0]
            and broker.requests % 7 == 0
        ):
            partition.batches.pop()
            partition.end_offset, partition.size_bytes = before
        return outcome

    return planted


def _acknowledging_before_writing(_: Method) -> Method:
    return lambda writer, done: done(True)


def _never_syncing(append: Method) -> Method:
    def planted(
        writer: object,
        entry: object,
        partition: object,
        end_offset: int,
        wants_sync: bool,
        file_limit_bytes: int,
    ) -> object:
        return append(writer, entry, partition, end_offset, False, file_limit_bytes)

    return planted


def _forgetting_producers(_: Method) -> Method:
    return lambda states, *arguments: None


def _ignoring_epochs(match: Method) -> Method:
    """Compare logs as Kafka did before KIP-101: a follower is cut where its leader's log ends,
    whatever the epochs of its own last records.
    """
    return lambda feed, led, meeting: match(feed, led, meeting._replace(last_epoch=UNKNOWN_EPOCH))


def _counting_only_the_leader(_: Method) -> Method:
    return lambda led, now_ns, lag_max_ns: max(led.partition.high_watermark, led.partition.written_end)


def _hearing_former_lives(of_producer: Method) -> Method:
    def planted(
        coordinator: TransactionCoordinator, transactional_id: str, producer: ProducerIdentity
    ) -> object:
        transaction = coordinator._find(transactional_id)[1]
        known = None if transaction is None else transaction.image.epoch
        return of_producer(
            coordinator, transactional_id, producer if known is None else producer._replace(epoch=known)
        )

    return planted


def _off_by_one(add: Method) -> Method:
    def planted(latest: Latest, *arguments: object) -> None:
        add(latest, *arguments)
        latest.offsets.update({key: offset + 1 for key, offset in latest.offsets.items()})

    return planted


def _doing_nothing(_: Method) -> Method:
    return lambda *arguments: None


def _forgetting_where_the_log_starts(_: Method) -> Method:
    return lambda search: 0


def _always(_: Method) -> Method:
    return lambda *arguments: True


def _taking_any_topic(_: Method) -> Method:
    return lambda fetcher, state, topic_id, code: False


def _giving_up(_: Method) -> Method:
    return lambda search: False


def _taking_what_is_not_there(_: Method) -> Method:
    return lambda search, stamps: int(stamps.argmax())


def _taking_any_string(_: Method) -> Method:
    return lambda writer: 2**31 - 1


def _failing_together(finish: Method) -> Method:
    def planted(reader: object, found: Sequence[object], done: object) -> None:
        wrong = next((one for one in found if isinstance(one, int)), None)
        finish(reader, found if wrong is None else [wrong] * len(found), done)

    return planted


def _forgetting_epochs(check_commit: Method) -> Method:
    def planted(side: object, group: ConsumerGroup, who: Committer, offsets: object) -> None:
        member = group.members.get(who.member_id)
        check_commit(side, group, who if member is None else who._replace(epoch=member.epoch), offsets)

    return planted


def _answering_offsets_at_once(within: Method) -> Method:
    def planted(log: object, entries: Sequence[Entry], written: Callable[..., None]) -> object:
        if not all(isinstance(key, OffsetKey) for key, _ in entries):
            return within(log, entries, written)
        written({key: ErrorCode.NONE for key, _ in entries})
        return lambda _errors: None

    return planted


CANARIES = (
    Canary(
        "retry renumbers sequences",
        "producer",
        "producer: a batch goes back into its queue",
        _renumbering,
        first_seed=10,
        seeds_max=20,
    ),
    Canary(
        "ack without an answer",
        "producer",
        "producer: a request was lost",
        _acknowledging_what_was_lost,
        first_seed=19,
        seeds_max=40,
    ),
    Canary(
        "retry goes before earlier batches",
        "producer",
        "producer: a batch goes back into its queue",
        _retrying_last_first,
        first_seed=8,
        seeds_max=20,
    ),
    Canary(
        "expired batch acked",
        "producer",
        "producer: a submission gives memory back",
        _acknowledging_what_expired,
        first_seed=15,
        seeds_max=40,
    ),
    Canary(
        "lost submission on leader move", "producer", "producer: a broker refused a batch", _losing_what_moved
    ),
    Canary(
        "memory of failed records never comes back",
        "producer",
        "producer: a submission gives memory back",
        _keeping_memory,
    ),
    Canary(
        "a gap in the sequences is never closed",
        "producer",
        "producer: sequences start again",
        _never_starting_again,
        first_seed=5,
    ),
    Canary(
        "a forgotten topic starts again in the same epoch",
        "producer",
        "producer: sequences are forgotten",
        _doing_nothing,
        first_seed=63,
    ),
    Canary("commit without waiting for batches", "producer", "producer: all is complete", _never_waiting),
    Canary(
        "commit in spite of a failed batch",
        "producer",
        "producer: records failed",
        _forgetting_failures,
        first_seed=24,
        seeds_max=50,
    ),
    Canary("abort commits", "producer", "producer: a transaction is ended", _always_committing),
    Canary(
        "broker takes duplicates",
        "producer",
        "model broker: sequences are checked",
        _taking_duplicates,
        first_seed=10,
        seeds_max=20,
    ),
    Canary(
        "broker answers without writing",
        "producer",
        "model broker: a batch is appended",
        _answering_without_writing,
    ),
    Canary(
        "broker acknowledges before it has written",
        "cluster",
        "log: what waits for a write",
        _acknowledging_before_writing,
        first_seed=5,
    ),
    Canary(
        "broker forgets to flush",
        "cluster",
        "log: a batch is taken for writing",
        _never_syncing,
        first_seed=4,
    ),
    Canary(
        "follower is not cut by epoch",
        "cluster",
        "replication: where a follower's log parts from its leader's",
        _ignoring_epochs,
        first_seed=16,
    ),
    Canary(
        "acknowledged before it is replicated",
        "cluster",
        "replication: how far the high watermark may go",
        _counting_only_the_leader,
        first_seed=32,
    ),
    Canary(
        "broker remembers no producers",
        "cluster",
        "log: a producer's batch is remembered",
        _forgetting_producers,
        first_seed=8,
    ),
    Canary(
        "commits are not fenced",
        "cluster",
        "transactions: who may end one",
        _hearing_former_lives,
        first_seed=30,
    ),
    Canary(
        "the next transaction joins the one that is ending",
        "cluster",
        "log: which epoch a transaction is open in",
        _joining_what_is_ending,
        first_seed=4,
    ),
    Canary(
        "a commit at an epoch that is past is taken",
        "cluster",
        "consumer groups: may this member commit",
        _forgetting_epochs,
        first_seed=7,
    ),
    Canary(
        "a commit of a fenced member is taken",
        "cluster",
        "groups: may this member commit",
        _doing_nothing,
        first_seed=10,
    ),
    Canary(
        "a dead member keeps its place",
        "cluster",
        "groups: a session may be over",
        _doing_nothing,
        first_seed=10,
    ),
    Canary(
        "a dead member of the consumer protocol keeps its place",
        "cluster",
        "consumer groups: a session may be over",
        _doing_nothing,
        first_seed=13,
    ),
    Canary(
        "a partition is given away before it is given up",
        "cluster",
        "consumer groups: nobody else has a partition",
        _always,
        first_seed=7,
    ),
    Canary(
        "an offset is acknowledged before it is replicated",
        "cluster",
        "groups: entries are told once they are committed",
        _answering_offsets_at_once,
        first_seed=85,
    ),
    Canary(
        "compaction lets the newest record of a key go",
        "cluster",
        "compaction: the newest offset of each key",
        _off_by_one,
        first_seed=2,
    ),
    Canary(
        "a start promises what it found and did not sync",
        "cluster",
        "recovery: what was found is synced",
        _promising_at_once,
        first_seed=250,
    ),
    Canary(
        "lost requests count as delivered",
        "cluster",
        "producer: a request was lost",
        _acknowledging_what_was_lost,
        first_seed=67,
    ),
    Canary(
        "aborted transactions outlive their marker",
        "readers",
        "log: what compaction removed ends what was aborted",
        _doing_nothing,
    ),
    Canary(
        "a failed write stays in the cache",
        "readers",
        "log: a rewound write leaves the cache",
        _doing_nothing,
        first_seed=15,
    ),
    Canary(
        "the newest of no records",
        "readers",
        "ListOffsets: the newest record of a batch, if it has one",
        _taking_what_is_not_there,
    ),
    Canary(
        "a search by time ends at an emptied batch",
        "readers",
        "ListOffsets: go on past an emptied batch",
        _giving_up,
    ),
    Canary(
        "a search by time before the log's start",
        "readers",
        "log: a log start within a batch",
        _forgetting_where_the_log_starts,
    ),
    Canary(
        "ids too long to be kept",
        "readers",
        "wire: no string is longer than an int16 can say",
        _taking_any_string,
        reset=forget,
        first_seed=55,
    ),
    Canary(
        "a damaged batch fails all that is read with it",
        "readers",
        "reader: one damaged batch fails itself alone",
        _failing_together,
        first_seed=45,
    ),
    Canary(
        "answers pile up for who does not read",
        "readers",
        "sessions: no request is begun while answers wait to be sent",
        _always,
        first_seed=8,
    ),
    Canary(
        "idle connections take all descriptors",
        "readers",
        "clients: no more connections than max.connections",
        _doing_nothing,
        first_seed=10,
    ),
    Canary(
        "a topic that was made again is read where the old one was",
        "readers",
        "consumer: a topic that was made again",
        _taking_any_topic,
        first_seed=3,
    ),
    *SHARE_CANARIES,
    *TRANSACTION_CANARIES,
)
"""All planted bugs, each with its world and hook."""


def canaries_of(world: str) -> list[Canary]:
    """The planted bugs that a world must notice."""
    return [canary for canary in CANARIES if canary.world == world]
