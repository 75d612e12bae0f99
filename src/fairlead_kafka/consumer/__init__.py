"""The consumer: reads partitions, assigned by hand or by a group (`groups`), ahead of polls.

Theory of operation. `ConsumerMachine` keeps one `PartitionState` per assigned partition: a phase
(`partition.TRANSITIONS` is the table) and the next offset to fetch. A partition without a position
gets one (`placing`): its group's committed offset, else its leader's answer to ListOffsets, by the
reset policy or a seek to an end. Partitions with a position are fetched (`fetcher`): one request
under way per node, for all fetchable partitions that are read there, sent again as soon as the
answer is in, whether or not the application polls.

Back-pressure is one number per node: while more than three quarters of `fetch.max.bytes` of fetched
data wait for a poll there, no request goes out, and a request never asks for more than what is left
of it. Since a request names every fetchable partition, none of them waits out the long poll of
another; since one that gave data goes to the end of the line, all get their turn.

The machine does not decode. It walks over the lengths of an answer's batches to know where to fetch
next, and passes the bytes on as `Chunk`s, each with the offsets wanted of it (`start` to `end`) and
the generation of its partition. The client class decodes (`decoding`) in the caller's thread: the
kernels run without the GIL, so that one core decodes while the other fetches.

Positions. The position of a partition is the offset of the next record that a poll returns: that of
the oldest chunk that waits in the client class, else in the machine, else the fetch position. A
seek or a new assignment gives the partition a new generation, and whatever was fetched under an
older one is dropped wherever it is met: as an answer under way, in the machine, in the client
class.

Isolation. With `isolation.level=read_committed` a broker answers up to its last stable offset only,
which is then also what `latest`, the end of a log and the lag mean, and names the aborted
transactions among what it sends; their records, and all markers, are left out when a chunk is
decoded, and positions go over them (KIP-98).

Errors. Where the leader moved, or is not known, metadata is asked for and the partition rests for a
back-off that grows; polls just go on. OFFSET_OUT_OF_RANGE resets the position by policy; without a
policy, and for a range, the bounds of the log are looked up (a new leader may only be behind) and
`OffsetOutOfRange` names them. Errors that only the application can resolve are raised by the poll
that finds them, once the records before are returned, and until a seek by every poll that gets no
records of other partitions. A topic missing for a second is an error of a poll that found nothing.

Logs that were cut. Each fetch names the leader epoch of the last record read. A leader elected
uncleanly, which does not have that record, answers with the offset where the two logs diverge
(KIP-320): reading continues there, with a warning, or ends with `LogTruncated` where positions are
not reset.

A batch's way, by modules, from the request to the table that `poll_table` returns:

    asked      fetcher, fetch_session, `core.network`, `core.connections`, `wire`
    answered   `core.connections`, `wire`, fetcher, fetch_session, partition (up to which offset),
               waiting
    taken      `client`: consumer_reading, consumer_taking; then machine, waiting; consumer_fetched
    decoded    consumer_taking, tables, decoding, `records`, consumer_fetched, tables,
               consumer_reading

Visited twice are: fetcher, fetch_session and the connection, which the answer comes back to;
waiting, which takes chunks as answers come and gives them as polls ask, for the bytes in it are the
back-pressure; consumer_fetched, which keeps records until a poll's last step, so that an
interrupted poll loses none; tables, which makes a batch of each chunk, and at last one table of the
batches; consumer_taking and consumer_reading, which wait in between.

Sources: KIP-74 (a whole batch at least), KIP-227 (fetch sessions), KIP-320, KIP-392 (replicas in
the rack), KIP-516 (topic ids), KIP-951 (new leaders in answers), Kafka's `FetchCollector`,
`OffsetFetcher` and `SubscriptionState`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.consumer.decoding import (
        ALL_COLUMNS,
        OpenChunk,
        check_columns,
        decode_chunk,
    )
    from fairlead_kafka.consumer.machine import ConsumerMachine
    from fairlead_kafka.consumer.operations import (
        Assign,
        AssignRange,
        DescribeTopics,
        FindOffsets,
        GetPosition,
        Seek,
        SetPaused,
        Shut,
        Take,
    )
    from fairlead_kafka.consumer.partition import NO_END, TRANSITIONS, Chunk, Phase, Signal
    from fairlead_kafka.consumer.record import Record
    from fairlead_kafka.consumer.tables import (
        BATCH_SCHEMA,
        chunk_batch,
        chunk_headers,
        headers_table,
        table_of,
        to_batch,
    )
    from fairlead_kafka.core.partition_offsets import EARLIEST, LATEST, OffsetAndTimestamp

__all__ = [
    "ALL_COLUMNS",
    "BATCH_SCHEMA",
    "EARLIEST",
    "LATEST",
    "NO_END",
    "TRANSITIONS",
    "Assign",
    "AssignRange",
    "Chunk",
    "ConsumerMachine",
    "DescribeTopics",
    "FindOffsets",
    "OffsetAndTimestamp",
    "OpenChunk",
    "Phase",
    "Record",
    "Seek",
    "SetPaused",
    "Shut",
    "Signal",
    "Take",
    "GetPosition",
    "check_columns",
    "chunk_batch",
    "chunk_headers",
    "decode_chunk",
    "headers_table",
    "table_of",
    "to_batch",
]

_HOMES = {
    "fairlead_kafka.consumer.decoding": (
        "ALL_COLUMNS",
        "OpenChunk",
        "check_columns",
        "decode_chunk",
    ),
    "fairlead_kafka.consumer.machine": ("ConsumerMachine",),
    "fairlead_kafka.consumer.operations": (
        "Assign",
        "AssignRange",
        "DescribeTopics",
        "FindOffsets",
        "Seek",
        "SetPaused",
        "Shut",
        "Take",
        "GetPosition",
    ),
    "fairlead_kafka.consumer.partition": (
        "NO_END",
        "TRANSITIONS",
        "Chunk",
        "Phase",
        "Signal",
    ),
    "fairlead_kafka.consumer.record": ("Record",),
    "fairlead_kafka.consumer.tables": (
        "BATCH_SCHEMA",
        "chunk_batch",
        "chunk_headers",
        "headers_table",
        "table_of",
        "to_batch",
    ),
    "fairlead_kafka.core.partition_offsets": (
        "EARLIEST",
        "LATEST",
        "OffsetAndTimestamp",
    ),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
