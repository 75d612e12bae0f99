"""Transactions: committed, aborted, fenced, described; and requests that are not allowed in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, Unpack

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.group_steps import find
from fairlead_kafka.lab.transcript.offset_steps import committed
from fairlead_kafka.lab.transcript.record_steps import Made, fetch, produce
from fairlead_kafka.lab.transcript.steps import (
    JUST_CHANGED,
    PREFIX,
    WARMING_UP,
    Body,
    Given,
    Seen,
    Step,
    ask,
    batch,
    request,
)
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

_AddPartitionsToTxnTopic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
_AddPartitionsToTxnTransaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_WritableTxnMarkerTopic = WriteTxnMarkersRequest.WritableTxnMarkerTopic
TOPIC = PREFIX + "transactional"
ID = PREFIX + "tx"
GROUP = PREFIX + "tx-group"
_COMMITTED = 1
_OLD_END = range(5)
"""Versions of EndTxn; version 5 is of another version of transactions."""


def init(
    name: str,
    transactional_id: str | None,
    keep: str | None = None,
    versions: Iterable[int] = (5,),
    timeout_ms: int = 60_000,
    producer_id: Given[int] = -1,
    epoch: Given[int] = -1,
) -> Step:
    """An InitProducerId step of a transactional producer."""
    return ask(
        name,
        ApiKey.INIT_PRODUCER_ID,
        versions,
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        keep=keep,
        again_on=WARMING_UP,
    )


def _identity(kept: str, epoch: int = 0) -> dict[str, Body]:
    """Fields with the producer id and epoch of the InitProducerId answer that was kept as `kept`,
    `epoch` added to the epoch."""
    return {
        "producer_id": lambda seen: seen[kept].producer_id,
        "producer_epoch": lambda seen: seen[kept].producer_epoch + epoch,
    }


def add(
    name: str,
    kept: str,
    versions: Iterable[int] = (3,),
    to: str = TOPIC,
    partitions: Iterable[int] = (0,),
    epoch: int = 0,
    transactional_id: str = ID,
    again_on: Iterable[int] = WARMING_UP,
) -> Step:
    """An AddPartitionsToTxn step as clients send it."""
    identity = _identity(kept, epoch)
    return ask(
        name,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        versions,
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity["producer_id"],
        v3_and_below_producer_epoch=identity["producer_epoch"],
        v3_and_below_topics=[_AddPartitionsToTxnTopic(name=to, partitions=list(partitions))],
        again_on=again_on,
    )


def verify(
    name: str,
    kept: str,
    versions: Iterable[int] = (4, 5),
    to: str = TOPIC,
    partition: int = 0,
    epoch: int = 0,
) -> Step:
    """An AddPartitionsToTxn step as brokers send it, which only verifies."""

    def rows(seen: Seen) -> list[_AddPartitionsToTxnTransaction]:
        return [
            _AddPartitionsToTxnTransaction(
                transactional_id=ID,
                producer_id=seen[kept].producer_id,
                producer_epoch=seen[kept].producer_epoch + epoch,
                verify_only=True,
                topics=[_AddPartitionsToTxnTopic(name=to, partitions=[partition])],
            )
        ]

    return ask(name, ApiKey.ADD_PARTITIONS_TO_TXN, versions, transactions=rows)


def end(
    name: str,
    kept: str,
    commit: bool,
    versions: Iterable[int] = (3,),
    epoch: int = 0,
    transactional_id: str = ID,
) -> Step:
    """An EndTxn step."""
    identity = _identity(kept, epoch)
    fields = {"transactional_id": transactional_id, "committed": commit, **identity}
    return request(name, ApiKey.END_TXN, versions, fields, again_on=WARMING_UP)


def _written(kept: str, sequence: int, *values: bytes, epoch: int = 0) -> Made:
    def make(seen: Seen) -> bytes:
        producer_ids = seen[kept]
        made = batch(
            *values,
            producer_id=producer_ids.producer_id,
            producer_epoch=producer_ids.producer_epoch + epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return made(seen)

    return make


def write(
    name: str,
    kept: str,
    sequence: int,
    versions: Iterable[int] = (11,),
    partition: int = 0,
    epoch: int = 0,
    transactional_id: str = ID,
    again_on: Iterable[int] = WARMING_UP,
) -> Step:
    """A Produce step of one record in a transaction."""
    made = _written(kept, sequence, b"%d" % sequence, epoch=epoch)
    return produce(
        name,
        made,
        versions,
        TOPIC,
        partition,
        transactional_id=transactional_id,
        again_on=again_on,
    )


class _Offsets(TypedDict, total=False):
    """Arguments of a TxnOffsetCommit step beside the partition."""

    transactional_id: str
    group: str
    generation: int
    member: str
    epoch: int


def offsets(
    name: str,
    kept: str,
    versions: Iterable[int] = (3,),
    to: str = TOPIC,
    partition: int = 0,
    **more: Unpack[_Offsets],
) -> Step:
    """A TxnOffsetCommit step of one partition."""
    rows = [
        TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=to,
            partitions=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=5,
                    committed_leader_epoch=-1,
                    committed_metadata="tx",
                )
            ],
        )
    ]
    fields: dict[str, Body] = {
        "transactional_id": more.get("transactional_id", ID),
        "group_id": more.get("group", GROUP),
        "generation_id": more.get("generation", -1),
        "member_id": more.get("member", ""),
        "group_instance_id": None,
        "topics": rows,
        **_identity(kept, more.get("epoch", 0)),
    }
    return request(name, ApiKey.TXN_OFFSET_COMMIT, versions, fields, again_on=WARMING_UP)


def add_offsets(
    name: str,
    kept: str,
    versions: Iterable[int] = (3,),
    epoch: int = 0,
    transactional_id: str = ID,
    group: str = GROUP,
) -> Step:
    """An AddOffsetsToTxn step."""
    fields = {"transactional_id": transactional_id, "group_id": group, **_identity(kept, epoch)}
    return request(name, ApiKey.ADD_OFFSETS_TO_TXN, versions, fields, again_on=WARMING_UP)


def describe(name: str, *transactional_ids: str) -> Step:
    """A DescribeTransactions step."""
    return ask(name, ApiKey.DESCRIBE_TRANSACTIONS, (0,), transactional_ids=list(transactional_ids))


def listed(name: str, versions: Iterable[int] = (0, 1, 2), **filters: Body) -> Step:
    """A ListTransactions step."""
    fields = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1, **filters}
    return request(name, ApiKey.LIST_TRANSACTIONS, versions, fields, mine=True)


_BEGUN = [
    create("a topic for transactions", topic(TOPIC, 2, retention_ms="-1")),
    appears(TOPIC),
    find("of a transactional id", ID, kind=1),
    find("of a transactional id without a name", "", kind=1, versions=(3, 4)),
    init("the first time", ID, "tx"),
    describe("nothing begun", ID),
    end("nothing to commit", "tx", True, _OLD_END),
    end("nothing to abort", "tx", False, _OLD_END),
    add("the first partition", "tx", range(4), again_on={*WARMING_UP, *JUST_CHANGED}),
    add("two at once", "tx", partitions=(0, 1)),
    describe("begun", ID),
    listed("all"),
    listed("those under way", state_filters=["Ongoing"]),
    listed("in no known state", state_filters=["Tired"]),
    listed("of nobody", producer_id_filters=[10**9]),
    listed("that are old", (1, 2), duration_filter=10**8),
    listed("by a pattern", (2,), transactional_id_pattern=f"{ID[:3]}.*"),
    listed("by a pattern that takes none whole", (2,), transactional_id_pattern=ID[:3]),
    listed("by a pattern that is empty", (2,), transactional_id_pattern=""),
    listed("by a pattern that is none", (2,), transactional_id_pattern="a(b"),
    verify("a partition that is in it", "tx"),
    verify("a partition that is not", "tx", partition=9),
    verify("by another epoch", "tx", epoch=1),
    verify("of a topic that is not there", "tx", to=PREFIX + "missing"),
    write("the first record", "tx", 0),
    write("the second", "tx", 1),
    write("a duplicate", "tx", 1),
    fetch("uncommitted", 0, (4, 12, 17), to=TOPIC),
    fetch("committed: nothing yet", 0, (4, 12, 17), to=TOPIC, isolation_level=_COMMITTED),
    ask(
        "who writes",
        ApiKey.DESCRIBE_PRODUCERS,
        (0,),
        topics=[DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0, 1])],
    ),
    add_offsets("a group's offsets", "tx", range(5)),
    offsets("they are committed", "tx", range(5)),
    committed("not yet seen", GROUP, (8, 9), topics=((TOPIC, (0,)),)),
    committed("stable ones", GROUP, (7, 9), topics=((TOPIC, (0,)),), require_stable=True),
    end("committed", "tx", True),
    end("committed again", "tx", True, _OLD_END),
    end("aborted after it was committed", "tx", False, _OLD_END),
    describe("done", ID),
    committed("seen", GROUP, (9,), topics=((TOPIC, (0,)),), require_stable=True, again_on=(88,)),
    fetch("uncommitted, and the marker", 0, (12,), to=TOPIC, min_bytes=200, max_wait_ms=2000),
]

_ABORTED = [
    add("a second transaction", "tx"),
    write("to be aborted", "tx", 2),
    end("aborted", "tx", False),
    end("aborted again", "tx", False, _OLD_END),
    end("committed after it was aborted", "tx", True, _OLD_END),
    add("a third", "tx"),
    write("kept", "tx", 3),
    end("and committed", "tx", True),
    init("settled", ID + "-other", "other"),
    fetch(
        "committed, with what was aborted",
        0,
        (4, 12, 17),
        to=TOPIC,
        isolation_level=_COMMITTED,
        min_bytes=500,
        max_wait_ms=2000,
    ),
]

_REFUSED = [
    produce("to an internal topic", batch(b"x"), (9,), "__consumer_offsets"),
    write(
        "a partition that was not added",
        "tx",
        0,
        (9, 10, 11),
        partition=1,
        again_on=(ErrorCode.NOT_ENOUGH_REPLICAS,),
    ),
    produce("without saying whose it is", _written("tx", 4, b"x"), (9, 11), TOPIC),
    produce("as somebody else", _written("tx", 4, b"x"), (11,), TOPIC, transactional_id=ID + "-other"),
    add("as a stranger", "tx", range(4), transactional_id=PREFIX + "nobody"),
    add("as somebody else", "tx", range(4), transactional_id=ID + "-other"),
    add("by an epoch to come", "tx", range(4), epoch=1),
    add("of a topic that is not there", "tx", range(4), to=PREFIX + "missing"),
    add("of a partition that is not there", "tx", (3,), partitions=(0, 9)),
    add("of an internal topic", "tx", (3,), to="__consumer_offsets"),
    add("of nothing", "tx", (0, 3), partitions=()),
    add_offsets("as a stranger", "tx", (0, 3), transactional_id=PREFIX + "nobody"),
    add_offsets("by an epoch to come", "tx", (1, 3), epoch=1),
    add_offsets("of no group", "tx", (3,), group=""),
    offsets("that were not added", "tx", (2, 3, 4)),
    offsets("as a stranger", "tx", (3,), transactional_id=PREFIX + "nobody"),
    offsets("of a topic that is not there", "tx", (3,), to=PREFIX + "missing"),
    end("as a stranger", "tx", True, _OLD_END, transactional_id=PREFIX + "nobody"),
    end("by an epoch to come", "tx", True, _OLD_END, epoch=1),
    end("as somebody else", "tx", True, _OLD_END, transactional_id=ID + "-other"),
    describe("a stranger", PREFIX + "nobody", ID + "-other"),
    describe("an empty name", ""),
    describe("none"),
    init("with an empty id", "", versions=(0, 5)),
    init("with no time", ID, versions=(0, 5), timeout_ms=0),
    init("with too much time", ID, versions=(0, 5), timeout_ms=10**9),
    init("an id without an epoch", ID, versions=(3, 5), producer_id=5),
    init("an epoch without an id", ID, versions=(3, 5), epoch=5),
    init("as a producer that it is not", ID, versions=(3, 4, 5), producer_id=10**8, epoch=1),
]

_FENCED = [
    init("again: the epoch rises", ID, "again", range(6)),
    add("by the epoch before", "tx", range(4)),
    end("by the epoch before", "tx", True, _OLD_END),
    add("by the new epoch", "again"),
    write("by the epoch before", "again", 0, (9, 11), epoch=-1, again_on=()),
    write("by the new epoch", "again", 0),
    init("while a transaction is open", ID, "last"),
    end("by the epoch before that", "again", True, _OLD_END),
    describe("aborted by that", ID),
    ask(
        "a marker by hand",
        ApiKey.WRITE_TXN_MARKERS,
        (1,),
        markers=lambda seen: [
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=seen["last"].producer_id,
                producer_epoch=seen["last"].producer_epoch,
                transaction_result=False,
                coordinator_epoch=0,
                topics=[
                    _WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0, 9]),
                    _WritableTxnMarkerTopic(name=PREFIX + "missing", partition_indexes=[0]),
                ],
            )
        ],
    ),
    ask("no marker", ApiKey.WRITE_TXN_MARKERS, (1,), markers=[]),
]

STEPS: list[Step] = [*_BEGUN, *_ABORTED, *_REFUSED, *_FENCED]
