"""Every bound of Fairlead in one place, each with its reason, and assertions on how they relate."""

from __future__ import annotations

from fairlead_kafka.base.units import GIB, KIB, MIB

FRAME_SIZE_MAX_BYTES = 100 * MIB
"""Largest frame accepted from a peer; Kafka's `socket.request.max.bytes` is 100 MiB."""
BATCH_OVERHEAD_BYTES = 61
"""Header of a record batch v2 (Kafka's `DefaultRecordBatch.RECORD_BATCH_OVERHEAD`)."""
LOG_OVERHEAD_BYTES = 12
"""Base offset and length, the part of the batch header that the length does not count."""
INFLATED_BATCH_MAX_BYTES = 128 * MIB
"""Bytes of a batch that are decompressed at once. Brokers refuse a batch that is larger after
decompression (MESSAGE_TOO_LARGE, upon which producers split it), so that checking, compacting and
recompressing need no more memory than this. A reader goes through a larger one in parts, because
Apache Kafka bounds only the compressed size; a single record must fit."""
INFLATED_IN_PARTS_MAX_BYTES = 2 * GIB
"""Largest batch that a reader goes through in parts. Java holds no more in one array, so no Java
client makes a larger batch in its memory; what inflates further is a compression bomb, and would
cost time without end."""
RECORD_OVERHEAD_MAX_BYTES = 21
"""Upper bound of a record's length, attributes, deltas and lengths (Kafka's
`DefaultRecord.MAX_RECORD_OVERHEAD`)."""
HEADERS_PER_RECORD_MAX = 100_000
"""Headers in one record; more are taken for garbage."""
SEQUENCE_MAX = 2**31 - 1
"""Sequence numbers wrap from here to 0 (Kafka's `DefaultRecordBatch.incrementSequence`)."""
BROKER_BATCH_WINDOW = 5
"""Batches per producer and partition a broker remembers; more in flight could not be told from
duplicates."""
RECEIVE_CHUNK_BYTES = 256 * KIB
"""Bytes asked of a socket in one call."""
ITERATION_READ_MAX_BYTES = 8 * MIB
"""Bytes that a host reads from all its connections before it steps their machines, which may hold
some of them then."""
TAIL_CACHE_MAX_BYTES = 32 * MIB
"""Newest batches a broker keeps in memory beside its log, so that a consumer at the tail never
reads the file."""
DAMAGE_REPORTED_MAX = 1000
"""Damaged batches that a broker remembers to have logged; with more than these some are logged
again, which costs lines and no more."""
PENDING_REQUESTS_MAX = 1000
"""Requests of one connection that may wait for the one before them, after which a broker reads no
more from it. Kafka's clients send 5, librdkafka up to a million."""
PENDING_REQUESTS_MAX_BYTES = 4 * MIB
"""Bytes of requests of one connection that may wait for the one before them: a few requests, since
no time is lost between two. A request that is larger is accepted all the same, alone."""
BEGUN_REQUESTS_MAX_BYTES = 64 * MIB
"""Memory, as accounted, of the Produce requests of one connection that are appended and not
answered. Kafka begins one at a time, and librdkafka sends up to a million: 13,000 of one partition
each are begun here."""
BEGUN_REQUEST_BYTES = 4 * KIB
"""Memory of a begun request beside its frame and elements: its handler's state, and what waits."""
OUTBOUND_MAX_BYTES = MIB
"""Answers of one connection that have not left, after which none of its further requests is begun:
as much as keeps a quick reader busy. The answer that passes the bound is the last, so a reader that
does not read holds this and one answer."""
OUTBOUND_BROKER_MAX_BYTES = 256 * MIB
"""Answers of all connections of a broker that have not left. What is left of this bound caps a
Fetch, which still gets one batch at least."""
REQUEST_ELEMENTS_MAX = 250_000
"""Elements of all arrays of one request: an element of 2 bytes is 300 in memory, and a frame of 100
MiB would be many GB. A request for each of 100,000 partitions still gets through."""
REQUEST_ELEMENT_BYTES = 400
"""Memory of one array element of a decoded request: an object, its dictionary and what is in them
(measured: 372 at most)."""
DESCRIPTORS_RESERVED_FOR_FILES = 8
"""File descriptors that each disk keeps open, and gives up when there is no other: more than its
two threads need at once (a file, its folder, a listing)."""
DESCRIPTORS_KEPT_FROM_CONNECTIONS = 64
"""File descriptors of a process that accepted connections do not get: they are for files (128 are
kept open at most, and far fewer as a rule), and for connections that brokers make. A quarter of all
where there are few."""
QUOTA_RATES_MAX = 10_000
"""Clients whose use of a quota a broker measures at once; the one measured longest ago is forgotten
first, and its rate begins again from zero. A rate takes 2 KB."""
DELAYED_CLOSES_MAX = 1_000
"""Connections above an address' connection_creation_rate that a broker keeps open for a while, to
slow their client down; others are closed at once, for each takes a descriptor."""
LOGGED_FAULTS_MAX = 100
"""Places in the code whose exceptions a broker remembers to have logged."""
STRING_MAX_BYTES = 2**15 - 1
"""Longest string of any message, in UTF-8: what an int16 can say. A compact length could say more,
but Kafka's own readers and writers refuse that (`MessageDataGenerator`), because records of groups
and transactions keep the same strings behind an int16."""
TOPIC_NAME_MAX_LENGTH = 249
"""Kafka's limit on a topic's name."""
ERROR_TEXT_MAX_LENGTH = 2000
"""Characters of an error's words in a broker's answer, far below what a string can hold in UTF-8
(32,767 bytes)."""
ACL_DECISIONS_KEPT_MAX = 10_000
"""Decisions that a broker's authorizer keeps, so as not to decide again: some MB, and more than
busy clients ask for in turn."""

assert DESCRIPTORS_RESERVED_FOR_FILES < DESCRIPTORS_KEPT_FROM_CONNECTIONS
assert FRAME_SIZE_MAX_BYTES <= INFLATED_BATCH_MAX_BYTES, "an uncompressed batch that fits a frame must decode"
assert INFLATED_BATCH_MAX_BYTES < INFLATED_IN_PARTS_MAX_BYTES
assert BATCH_OVERHEAD_BYTES > LOG_OVERHEAD_BYTES
