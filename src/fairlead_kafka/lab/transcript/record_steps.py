"""Records: produced well and badly, fetched, looked up, deleted; with producer ids and without."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import TypedDict, Unpack
from uuid import UUID

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.steps import (
    JUST_CHANGED,
    PREFIX,
    UNKNOWN_ID,
    WARMING_UP,
    Body,
    Given,
    Seen,
    Step,
    ask,
    batch,
    given,
    request,
    silent,
)
from fairlead_kafka.records import crc32c
from fairlead_kafka.records.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BATCH_LENGTH,
    CRC,
    LAST_OFFSET_DELTA,
    MAGIC_BYTE,
    RECORD_COUNT,
)
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    DeleteRecordsRequest,
    DescribeProducersRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)

_FetchTopic = FetchRequest.FetchTopic
_ListOffsetsPartition = ListOffsetsRequest.ListOffsetsPartition
_ListOffsetsTopic = ListOffsetsRequest.ListOffsetsTopic
_PartitionProduceData = ProduceRequest.PartitionProduceData
_TopicProduceData = ProduceRequest.TopicProduceData
_TopicRequest = DescribeProducersRequest.TopicRequest
MAIN = PREFIX + "records"
STAMPED = PREFIX + "stamped"
"""A topic whose broker sets the timestamps."""
COMPACT = PREFIX + "compact"
SMALL = PREFIX + "small"
"""A topic that takes batches of 200 bytes at most."""
CLAIMED = PREFIX + "claimed"
ZIPPED = PREFIX + "zipped"
"""A topic whose compression.type is gzip."""
_INT16, _INT32, _INT64 = (struct.Struct(code) for code in (">h", ">i", ">q"))
_COMMITTED = 1

Made = Callable[[Seen], bytes]


def produce(
    name: str,
    records: Given[bytes | None],
    versions: Iterable[int] = (9,),
    to: str = MAIN,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    again_on: Iterable[int] = (),
) -> Step:
    """A Produce step of one batch; `records` is a function of `Seen`, or bytes."""

    def rows(seen: Seen) -> list[_TopicProduceData]:
        data = given(records, seen)
        return [
            _TopicProduceData(
                name=to,
                topic_id=seen.id(to),
                partition_data=[_PartitionProduceData(index=partition, records=data)],
            )
        ]

    fields: dict[str, Body] = {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout_ms": 5_000,
        "topic_data": rows,
    }
    if acks == 0:
        return silent(name, ApiKey.PRODUCE, versions, on="a", **fields)
    return request(name, ApiKey.PRODUCE, versions, fields, again_on=again_on)


def changed(made: Made, *changes: tuple[int, struct.Struct, int], stamp: bool = True) -> Made:
    """A function that makes a batch with other numbers in its header, (position, format, value)
    each, and a correct checksum."""

    def make(seen: Seen) -> bytes:
        data = bytearray(made(seen))
        for position, form, value in changes:
            form.pack_into(data, position, value)
        if stamp:
            struct.pack_into(">I", data, CRC, crc32c(bytes(data[ATTRIBUTES:])))
        return bytes(data)

    return make


def cut(made: Made, size_bytes: int) -> Made:
    """A function that makes the first `size_bytes` bytes of a batch."""
    return lambda seen: made(seen)[:size_bytes]


def twice(made: Made) -> Made:
    """A function that makes two batches, where one is allowed."""
    return lambda seen: made(seen) * 2


_ONE = batch(b"one")
_CREATED = [
    create(
        "topics for records",
        topic(MAIN, 2, retention_ms="-1"),
        topic(STAMPED, message_timestamp_type="LogAppendTime"),
        topic(COMPACT, cleanup_policy="compact"),
        topic(SMALL, max_message_bytes="200"),
        topic(ZIPPED, compression_type="gzip"),
        topic(CLAIMED),
    ),
    appears(MAIN, STAMPED, COMPACT, SMALL, ZIPPED, CLAIMED),
]

_PRODUCED = [
    produce("the first", _ONE, again_on=JUST_CHANGED),
    produce("in each version", batch(b"a", b"b", key=b"k"), range(3, 14)),
    produce("by one replica", _ONE, acks=1),
    produce("by none", _ONE, (3, 9), acks=0),
    produce("seen after those by none", batch(b"after"), (9,)),
    produce("by two", _ONE, (3, 9), acks=2),
    *(
        produce(codec, batch(b"x" * 100, b"x" * 100, codec=codec), (9,), partition=1)
        for codec in ("gzip", "snappy", "lz4", "zstd")
    ),
    produce("zstd before it was", batch(b"x" * 100, codec="zstd"), (6, 7), partition=1),
    produce("nulls", batch(None, None), (9,), partition=1),
    produce("to a topic that is not there", _ONE, (3, 7, 9, 12, 13), to=PREFIX + "missing"),
    produce("to a partition that is not there", _ONE, (3, 9, 12, 13), partition=7),
    produce("to a partition below zero", _ONE, (9,), partition=-1),
    produce("to a name that cannot be", _ONE, (9,), to="a/b"),
    produce("no records", b"", (3, 9)),
    produce("what is no batch", b"\x00" * 80, (9,)),
    produce("a batch cut short", cut(_ONE, 70), (9,)),
    produce("half a header", cut(_ONE, 30), (3, 9)),
    produce("two batches", twice(_ONE), (9,)),
    produce("magic 1", changed(_ONE, (MAGIC_BYTE, struct.Struct("b"), 1)), (9,)),
    produce("magic 9", changed(_ONE, (MAGIC_BYTE, struct.Struct("b"), 9)), (9,)),
    produce("a wrong checksum", changed(_ONE, (CRC, _INT32, 1), stamp=False), (3, 8, 9)),
    produce("a base offset", changed(_ONE, (BASE_OFFSET, _INT64, 5)), (9,)),
    produce("a wrong count", changed(_ONE, (RECORD_COUNT, _INT32, 2)), (9,)),
    produce("a wrong last offset", changed(_ONE, (LAST_OFFSET_DELTA, _INT32, 3)), (9,)),
    produce("no record", changed(_ONE, (RECORD_COUNT, _INT32, 0), (LAST_OFFSET_DELTA, _INT32, -1)), (9,)),
    produce("a length too large", changed(_ONE, (BATCH_LENGTH, _INT32, 4000)), (9,)),
    produce("a length below zero", changed(_ONE, (BATCH_LENGTH, _INT32, -1)), (9,)),
    produce("a codec that is none", changed(_ONE, (ATTRIBUTES, _INT16, 7)), (9,)),
    produce("a codec that it is not", changed(_ONE, (ATTRIBUTES, _INT16, 1)), (9,)),
    produce("log append time claimed", changed(_ONE, (ATTRIBUTES, _INT16, 8)), (9,), to=CLAIMED),
    produce("control", changed(_ONE, (ATTRIBUTES, _INT16, 0x20)), (9,)),
    produce("transactional without a producer", changed(_ONE, (ATTRIBUTES, _INT16, 0x10)), (9,)),
    produce("to where the broker stamps", batch(b"s"), (3, 9), to=STAMPED),
    produce("a record without key to a compacted topic", batch(b"v"), (3, 7, 8, 9), to=COMPACT),
    produce("one with a key", batch(b"v", key=b"k"), (9,), to=COMPACT),
    produce("too large", batch(b"x" * 300), (3, 9), to=SMALL),
    produce(
        "too large, and its checksum wrong",
        changed(batch(b"x" * 300), (CRC, _INT32, 1), stamp=False),
        (9,),
        to=SMALL,
    ),
    produce("small enough when zipped", batch(b"x" * 300, codec="gzip"), (9,), to=SMALL),
    produce("to where gzip is wanted", batch(b"x" * 300), (9,), to=ZIPPED),
    ask("nothing at all", ApiKey.PRODUCE, (3, 9), acks=-1, timeout_ms=1000, topic_data=[]),
    ask(
        "one good, one bad",
        ApiKey.PRODUCE,
        (9,),
        acks=-1,
        timeout_ms=1000,
        topic_data=lambda seen: [
            _TopicProduceData(
                name=MAIN,
                partition_data=[
                    _PartitionProduceData(index=0, records=_ONE(seen)),
                    _PartitionProduceData(index=9, records=_ONE(seen)),
                ],
            ),
            _TopicProduceData(
                name=PREFIX + "missing", partition_data=[_PartitionProduceData(index=0, records=_ONE(seen))]
            ),
        ],
    ),
]


def _numbered(producer: str, sequence: int, *values: bytes, epoch: int | None = None) -> Made:
    """A function that makes a batch of the idempotent producer whose id the answer kept as
    `producer` gave."""

    def make(seen: Seen) -> bytes:
        producer_ids = seen[producer]
        options = {
            "producer_id": producer_ids.producer_id,
            "producer_epoch": producer_ids.producer_epoch if epoch is None else epoch,
        }
        return batch(*values, base_sequence=sequence, **options)(seen)

    return make


IDEMPOTENT = PREFIX + "idempotent"
_IDEMPOTENT = [
    create("a topic for producers", topic(IDEMPOTENT, 2, retention_ms="-1")),
    appears(IDEMPOTENT),
    ask(
        "a producer id",
        ApiKey.INIT_PRODUCER_ID,
        range(6),
        transaction_timeout_ms=60_000,
        keep="producer",
        again_on=WARMING_UP,
    ),
    produce("sequence 0", _numbered("producer", 0, b"a", b"b"), to=IDEMPOTENT, again_on=JUST_CHANGED),
    produce("again: a duplicate", _numbered("producer", 0, b"a", b"b"), to=IDEMPOTENT),
    produce("the next", _numbered("producer", 2, b"c"), to=IDEMPOTENT),
    *(
        produce(f"and {sequence}", _numbered("producer", sequence, b"x"), to=IDEMPOTENT)
        for sequence in range(3, 9)
    ),
    produce("a duplicate of the fifth last", _numbered("producer", 4, b"x"), to=IDEMPOTENT),
    produce("a duplicate that is forgotten", _numbered("producer", 0, b"a", b"b"), to=IDEMPOTENT),
    produce("a gap", _numbered("producer", 12, b"x"), (3, 9), to=IDEMPOTENT),
    produce("half a duplicate", _numbered("producer", 8, b"x", b"y"), to=IDEMPOTENT),
    produce("a new epoch from 0", _numbered("producer", 0, b"n", epoch=1), to=IDEMPOTENT),
    produce("the old epoch", _numbered("producer", 9, b"x", epoch=0), (3, 9), to=IDEMPOTENT),
    produce("a new epoch not from 0", _numbered("producer", 5, b"x", epoch=2), to=IDEMPOTENT),
    produce("an unknown producer in the middle", _numbered("producer", 5, b"x"), to=IDEMPOTENT, partition=1),
    produce(
        "a sequence below zero",
        lambda seen: changed(_numbered("producer", 0, b"x"), (BASE_SEQUENCE, _INT32, -5))(seen),
        to=IDEMPOTENT,
    ),
    ask(
        "who writes",
        ApiKey.DESCRIBE_PRODUCERS,
        (0,),
        topics=[
            _TopicRequest(name=IDEMPOTENT, partition_indexes=[0, 1, 7]),
            _TopicRequest(name=PREFIX + "missing", partition_indexes=[0]),
        ],
    ),
]


class _Limits(TypedDict, total=False):
    """Arguments of a Fetch step beside partition and offset."""

    epoch: int
    last_fetched_epoch: int
    partition_max_bytes: int
    topic_id: UUID
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    again_on: Iterable[int]


def fetch(
    name: str,
    offset: int,
    versions: Iterable[int] = (12,),
    to: str = MAIN,
    partition: int = 0,
    **limits: Unpack[_Limits],
) -> Step:
    """A sessionless Fetch of one partition that does not wait."""

    def rows(seen: Seen) -> list[_FetchTopic]:
        row = FetchRequest.FetchPartition(
            partition=partition,
            current_leader_epoch=limits.get("epoch", -1),
            fetch_offset=offset,
            last_fetched_epoch=limits.get("last_fetched_epoch", -1),
            log_start_offset=-1,
            partition_max_bytes=limits.get("partition_max_bytes", 1 << 20),
        )
        return [_FetchTopic(topic=to, topic_id=limits.get("topic_id", seen.id(to)), partitions=[row])]

    return ask(
        name,
        ApiKey.FETCH,
        versions,
        replica_id=-1,
        max_wait_ms=limits.get("max_wait_ms", 0),
        min_bytes=limits.get("min_bytes", 1),
        max_bytes=limits.get("max_bytes", 50 << 20),
        isolation_level=limits.get("isolation_level", 0),
        session_id=0,
        session_epoch=-1,
        topics=rows,
        forgotten_topics_data=[],
        rack_id="",
        again_on=limits.get("again_on", ()),
    )


_FETCHED = [
    fetch("from the beginning", 0, range(4, 19)),
    fetch("from the middle of a batch", 2),
    fetch("committed only", 0, (4, 12, 17), isolation_level=_COMMITTED),
    fetch("the other partition", 0, partition=1),
    fetch("what the broker stamped", 0, to=STAMPED),
    fetch("what the broker zipped", 0, to=ZIPPED),
    fetch("one byte", 0, (4, 12), partition_max_bytes=1),
    fetch("one byte of all", 0, (4, 12), max_bytes=1),
    fetch("a batch and a half", 0, partition_max_bytes=100),
    fetch("at the end", 26),
    fetch("at the end, with patience", 26, min_bytes=1, max_wait_ms=5),
    fetch("beyond the end", 1000, (4, 12, 17)),
    fetch("below zero", -5),
    fetch("a topic that is not there", 0, (4, 12, 13, 17), to=PREFIX + "missing"),
    fetch("an id that is not there", 0, (13, 16, 18), topic_id=UNKNOWN_ID),
    fetch("a partition that is not there", 0, (4, 12, 13, 17), partition=7),
    fetch("the right epoch", 0, (9, 12, 17), epoch=0, partition_max_bytes=1),
    fetch("an epoch to come", 0, (9, 12, 17), epoch=5),
    fetch("the last epoch right", 2, (12, 17), last_fetched_epoch=0, partition_max_bytes=1),
    fetch("a last epoch to come", 2, (12, 17), last_fetched_epoch=4),
    ask(
        "nothing",
        ApiKey.FETCH,
        (4, 12, 17),
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        session_epoch=-1,
        topics=[],
        rack_id="",
    ),
    ask(
        "nothing, with patience",
        ApiKey.FETCH,
        (12,),
        replica_id=-1,
        max_wait_ms=50,
        min_bytes=1,
        session_epoch=-1,
        topics=[],
        rack_id="",
    ),
]


def list_offsets(
    name: str,
    timestamp: Given[int],
    versions: Iterable[int] = (8,),
    to: str = MAIN,
    partition: int = 0,
    epoch: int = -1,
    isolation_level: int = 0,
) -> Step:
    """A ListOffsets step of one partition."""

    def rows(seen: Seen) -> list[_ListOffsetsTopic]:
        at = given(timestamp, seen)
        row = _ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=at)
        return [_ListOffsetsTopic(name=to, partitions=[row])]

    return ask(
        name,
        ApiKey.LIST_OFFSETS,
        versions,
        replica_id=-1,
        isolation_level=isolation_level,
        topics=rows,
        timeout_ms=1000,
    )


_LISTED = [
    list_offsets("the end", -1, range(1, 11)),
    list_offsets("the committed end", -1, (2, 8), isolation_level=_COMMITTED),
    list_offsets("the beginning", -2, range(1, 11)),
    list_offsets("the greatest time", -3, (6, 7, 8, 10)),
    list_offsets("the local beginning", -4, (7, 8, 10)),
    list_offsets("the tiered end", -5, (8, 9, 10)),
    list_offsets("a time that is none", -9, (8,)),
    list_offsets("a time before all", 1, (1, 8)),
    list_offsets("the time of the second record", lambda seen: seen.base_ms + 1, (1, 8)),
    list_offsets("a time after all", lambda seen: seen.base_ms + 10**9, (1, 8)),
    list_offsets("in an empty partition", -1, (8,), to=PREFIX + "defaults"),
    list_offsets("a time in an empty partition", 5, (8,), to=PREFIX + "defaults"),
    list_offsets("the greatest time of nothing", -3, (8,), to=PREFIX + "defaults"),
    list_offsets("of a topic that is not there", -1, (1, 8), to=PREFIX + "missing"),
    list_offsets("of a partition that is not there", -1, (1, 8), partition=9),
    list_offsets("in the right epoch", -1, (4, 8), epoch=0),
    list_offsets("in an epoch to come", -1, (4, 8), epoch=3),
    ask(
        "of a partition twice",
        ApiKey.LIST_OFFSETS,
        (8,),
        replica_id=-1,
        topics=[
            _ListOffsetsTopic(
                name=MAIN,
                partitions=[
                    _ListOffsetsPartition(partition_index=0, timestamp=-1),
                    _ListOffsetsPartition(partition_index=0, timestamp=-2),
                ],
            )
        ],
    ),
]


def epochs(
    name: str,
    leader_epoch: int,
    versions: Iterable[int] = (2, 3, 4),
    to: str = MAIN,
    partition: int = 0,
    epoch: int = -1,
) -> Step:
    """An OffsetForLeaderEpoch step of one partition, from a client that is in `epoch`."""
    row = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=epoch, leader_epoch=leader_epoch
    )
    return ask(
        name,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        versions,
        replica_id=-1,
        topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=to, partitions=[row])],
    )


_EPOCHS = [
    epochs("the present epoch", 0),
    epochs("an epoch to come", 3),
    epochs("no epoch", -1),
    epochs("below", -5, (4,)),
    epochs("of a topic that is not there", 0, to=PREFIX + "missing"),
    epochs("of a partition that is not there", 0, (4,), partition=9),
    epochs("in the right epoch", 0, (4,), epoch=0),
    epochs("in an epoch that is to come", 0, (4,), epoch=2),
]


def cut_records(
    name: str, offset: int, versions: Iterable[int] = (2,), to: str = MAIN, partition: int = 0
) -> Step:
    """A DeleteRecords step of one partition."""
    rows = [
        DeleteRecordsRequest.DeleteRecordsTopic(
            name=to,
            partitions=[
                DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
            ],
        )
    ]
    return ask(name, ApiKey.DELETE_RECORDS, versions, topics=rows, timeout_ms=5_000)


_DELETED = [
    cut_records("the first three", 3, range(3)),
    cut_records("what is gone already", 1),
    fetch("what was deleted", 0, (4, 12, 17)),
    fetch("what was not", 3, partition_max_bytes=1),
    list_offsets("the beginning now", -2),
    cut_records("beyond the end", 1000, (0, 2)),
    cut_records("below zero", -7),
    cut_records("of a topic that is not there", 0, (0, 2), to=PREFIX + "missing"),
    cut_records("of a partition that is not there", 0, partition=9),
    cut_records("of a compacted topic", 0, to=COMPACT),
    cut_records("all", -1, partition=1),
    fetch("of nothing left", 0, partition=1),
    list_offsets("the beginning of nothing", -2, partition=1),
    list_offsets("the greatest time of what is deleted", -3, partition=1),
    produce("after that", batch(b"new"), partition=1),
    epochs("after that", 0, (4,), partition=1),
]

STEPS: list[Step] = [*_CREATED, *_PRODUCED, *_IDEMPOTENT, *_FETCHED, *_LISTED, *_EPOCHS, *_DELETED]
