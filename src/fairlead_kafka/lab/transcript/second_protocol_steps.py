"""Transactions by the second protocol (KIP-890): an epoch for each, partitions added by their first
batch, group offsets by their commit."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.offset_steps import committed
from fairlead_kafka.lab.transcript.record_steps import fetch, produce
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, PREFIX, WARMING_UP, Seen, Step, ask, batch
from fairlead_kafka.lab.transcript.transaction_steps import describe, init
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

TOPIC = PREFIX + "second"
ID = PREFIX + "second-tx"
GROUP = PREFIX + "second-group"
_COMMITTED = 1
_ENDING = frozenset({*WARMING_UP, *JUST_CHANGED, ErrorCode.CONCURRENT_TRANSACTIONS})
_Offset = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


def end(
    name: str, kept: str, commit: bool, keep: str | None = None, version: int = 5, epoch: int = 0
) -> Step:
    """An EndTxn step; its answer has the identity of the next transaction."""
    return ask(
        name,
        ApiKey.END_TXN,
        (version,),
        transactional_id=ID,
        committed=commit,
        again_on=_ENDING,
        keep=keep,
        producer_id=lambda seen: seen[kept].producer_id,
        producer_epoch=lambda seen: seen[kept].producer_epoch + epoch,
    )


def write(
    name: str, kept: str, sequence: int = 0, partition: int = 0, epoch: int = 0, again: bool = True
) -> Step:
    """A Produce step of one record, which adds its partition."""

    def made(seen: Seen) -> bytes:
        return batch(
            b"%d" % sequence,
            base_sequence=sequence,
            producer_id=seen[kept].producer_id,
            producer_epoch=seen[kept].producer_epoch + epoch,
            transactional=True,
        )(seen)

    again_on = _ENDING if again else frozenset()
    return produce(name, made, (12,), TOPIC, partition, transactional_id=ID, again_on=again_on)


def offsets(name: str, kept: str, epoch: int = 0) -> Step:
    """A TxnOffsetCommit step, which adds the group's offsets."""
    row = _Offset(partition_index=0, committed_offset=7, committed_leader_epoch=-1, committed_metadata="")
    return ask(
        name,
        ApiKey.TXN_OFFSET_COMMIT,
        (5,),
        transactional_id=ID,
        group_id=GROUP,
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[row])],
        again_on=_ENDING,
        producer_id=lambda seen: seen[kept].producer_id,
        producer_epoch=lambda seen: seen[kept].producer_epoch + epoch,
    )


def add(name: str, kept: str, epoch: int = 0, verify_only: bool = False, partition: int = 0) -> Step:
    """An AddPartitionsToTxn step as brokers send it."""
    return ask(
        name,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (4, 5),
        transactions=lambda seen: [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=ID,
                producer_id=seen[kept].producer_id,
                producer_epoch=seen[kept].producer_epoch + epoch,
                verify_only=verify_only,
                topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])
                ],
            )
        ],
        again_on=_ENDING,
    )


def add_itself(name: str, kept: str, epoch: int = 0, partition: int = 0) -> Step:
    """An AddPartitionsToTxn step as producers send it, which the second protocol can do without."""
    topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[partition])]
    return ask(
        name,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (3,),
        v3_and_below_transactional_id=ID,
        v3_and_below_producer_id=lambda seen: seen[kept].producer_id,
        v3_and_below_producer_epoch=lambda seen: seen[kept].producer_epoch + epoch,
        v3_and_below_topics=topics,
        again_on=_ENDING,
    )


def marker(
    name: str, kept: str, epoch: int, versions: Iterable[int] = (2,), transaction_version: int = 2
) -> Step:
    """A WriteTxnMarkers step of partition 0."""
    return ask(
        name,
        ApiKey.WRITE_TXN_MARKERS,
        versions,
        markers=lambda seen: [
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=seen[kept].producer_id,
                producer_epoch=seen[kept].producer_epoch + epoch,
                transaction_result=False,
                coordinator_epoch=0,
                topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
                transaction_version=transaction_version,
            )
        ],
    )


def producers(name: str) -> Step:
    """A DescribeProducers step of both partitions."""
    rows = [DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0, 1])]
    return ask(name, ApiKey.DESCRIBE_PRODUCERS, (0,), topics=rows)


STEPS: list[Step] = [
    create("a topic for the second protocol", topic(TOPIC, 2, retention_ms="-1")),
    appears(TOPIC),
    init("the first time", ID, "p0"),
    end("nothing to commit", "p0", True),
    end("nothing to abort: a new epoch", "p0", False, "p1"),
    end("nothing aborted, again by the epoch before", "p0", False),
    end("committed instead, by the epoch before", "p0", True),
    write("the first record", "p1"),
    write("the second", "p1", 1),
    write("a duplicate", "p1", 1),
    write("in another partition", "p1", partition=1),
    describe("begun by writing", ID),
    producers("who writes"),
    offsets("offsets, not added before", "p1"),
    committed("not yet seen", GROUP, (9,), topics=((TOPIC, (0,)),)),
    fetch("committed: nothing yet", 0, (12,), to=TOPIC, isolation_level=_COMMITTED),
    end("committed", "p1", True, "p2"),
    end("committed again by its epoch", "p1", True),
    end("aborted after it was committed", "p1", False),
    end("committed by an older epoch", "p0", True),
    end("nothing to commit by the new epoch", "p2", True),
    committed("seen", GROUP, (9,), topics=((TOPIC, (0,)),), require_stable=True, again_on=(88,)),
    producers("who wrote"),
    write("late, by the epoch before", "p1", 2, again=False),
    offsets("late, by the epoch before", "p1"),
    add("verified: not begun", "p2", verify_only=True),
    write("the next transaction, from sequence 0", "p2"),
    add("verified: begun", "p2", verify_only=True),
    add("verified: another partition", "p2", verify_only=True, partition=1),
    add("added by a broker", "p2", partition=1),
    add("added by the epoch before", "p2", epoch=-1),
    end("aborted", "p2", False, "p3"),
    end("aborted again by its epoch", "p2", False),
    end("committed after it was aborted", "p2", True),
    end("nothing to abort after an abort", "p3", False, "p4"),
    fetch(
        "committed, with what was aborted",
        0,
        (12,),
        to=TOPIC,
        isolation_level=_COMMITTED,
        min_bytes=350,
        max_wait_ms=2000,
    ),
    write("ended as by the first protocol", "p4"),
    end("ended as by the first protocol", "p4", True, version=4),
    end("ended as by the first protocol, again", "p4", True, version=4),
    describe("ended as by the first protocol", ID),
    write("the same epoch goes on", "p4", 1),
    marker("a marker of the epoch that is open", "p4", 0),
    marker("a marker of an epoch before", "p4", -1),
    marker("a marker of the next epoch", "p4", 1),
    marker("it comes twice", "p4", 1),
    producers("after markers by hand"),
    init("while a transaction is open", ID, "p5"),
    end("by an epoch that was fenced", "p4", True),
    end("nothing to abort after that", "p5", False, "p6"),
    add("verified: the end is over", "p6", verify_only=True),
    add_itself("added by the producer itself", "p6"),
    write("what it has added", "p6"),
    write("what it has not added", "p6", partition=1),
    end("committed with partitions added both ways", "p6", True, "p7"),
    end("committed again by its epoch, with partitions added both ways", "p6", True),
    add_itself("added by the producer itself, in the epoch before", "p7", epoch=-1),
    add_itself("added by the producer itself, and never written to", "p7"),
    end("committed with partitions that the producer added", "p7", True, "p8"),
    end("committed again, with partitions that the producer added", "p7", True),
    add_itself("added by the producer itself, before another fences it", "p8"),
    init("while a transaction is open that the producer began", ID, "p9"),
    end("aborted, by the epoch that was fenced", "p8", False),
    describe("in the end", ID),
]
