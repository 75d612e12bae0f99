"""Records: Arrow columns to record batch v2 bytes and back.

Theory of operation. A set of records is a handful of flat arrays (`RecordColumns`): the bytes of
all keys in one array with offsets into it, the same for values and headers, and timestamps.
`columns_from_arrow` lays them over Arrow's own buffers, `columns_from_lists` joins them from lists.
A name of this package is loaded when it is first used, and Arrow with the first that needs it
(`arrow`, `buffers`, `headers`). Nothing here holds a Python object per record.

On the way out, `sizes_bytes` measures every record at once; `cut` turns a limit in bytes into
positions where batches end; `encode_many` writes all those batches in one kernel call into one
buffer, then fills in each CRC. `encode` writes one batch out of slices of several column sets, and
compresses. A record that brings no timestamp (-1) gets the create time. `restamp` gives a finished
batch another producer id, epoch and sequence; `assign` stamps offset, leader epoch and append time
as a broker does; `recompress` and `keep` make a batch of another, compressed otherwise or with
fewer records.

On the way in, `scan` reads batch headers and no record: it is what a broker needs; `headers_of`
gives them as Arrow columns. `decode` turns all batches of a fetch answer into one set of columns:
it scans, checks the CRCs, drops control batches and aborted transactions, inflates, and runs a
kernel that walks over the records and gathers keys and values as Arrow wants them. Headers are
counted in that walk and gathered in a second one, only where there are any.

Kernels. Functions that touch every record are kernels (`encode_kernels`, `decode_kernels`; see
`base.kernel`): machine code, with a reference implementation in Python that is the oracle of its
tests.

Garbage. Bytes from a peer may be invalid. Kernels check every length against the bytes that are
left before they use it and return a fault with its position, which becomes a `DecodeError` that
names the byte. Memory taken follows from bytes received, never from a count or a size that they
claim; a batch that inflates beyond `INFLATED_BATCH_MAX_BYTES` is decoded in parts (`parts`), and
beyond `INFLATED_IN_PARTS_MAX_BYTES` refused. A last batch that is cut short is no error: brokers
cut fetch answers anywhere, so it is left out.

Sources: KIP-98 and Kafka's `DefaultRecordBatch` (layout), KIP-32 (timestamp types),
`CompletedFetch` (which batches a consumer sees), xerial's `SnappyOutputStream`, Kafka's
`Lz4BlockOutputStream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.records.arrow import MESSAGE_SCHEMA, columns_from_arrow, pooled
    from fairlead_kafka.records.batch import assign, check_produced, restamp, scan, verify
    from fairlead_kafka.records.buffers import arrow_array, repeated_text
    from fairlead_kafka.records.codecs import compress, decompress
    from fairlead_kafka.records.columns import BinaryColumn, HeaderColumns, RecordColumns, Slice
    from fairlead_kafka.records.control import ControlType, EndMarker, control_batch, control_type, end_marker
    from fairlead_kafka.records.crc import crc32c
    from fairlead_kafka.records.decoder import DecodedRecords, Room, decode
    from fairlead_kafka.records.encoder import bounds_of, cut, encode, encode_many
    from fairlead_kafka.records.faults import InflatesTooFar
    from fairlead_kafka.records.headers import HEADER_SCHEMA, headers_of
    from fairlead_kafka.records.layout import (
        MESSAGE_COLUMNS,
        AbortedTransaction,
        BatchHeader,
        Compression,
        Data,
        EncodedBatch,
        TimestampType,
    )
    from fairlead_kafka.records.lists import columns_from_lists, headers_from_lists
    from fairlead_kafka.records.rewrite import keep, recompress
    from fairlead_kafka.records.selection import take_rows

__all__ = [
    "HEADER_SCHEMA",
    "MESSAGE_COLUMNS",
    "MESSAGE_SCHEMA",
    "AbortedTransaction",
    "BatchHeader",
    "BinaryColumn",
    "Compression",
    "ControlType",
    "Data",
    "DecodedRecords",
    "EncodedBatch",
    "EndMarker",
    "HeaderColumns",
    "InflatesTooFar",
    "RecordColumns",
    "Room",
    "Slice",
    "TimestampType",
    "arrow_array",
    "assign",
    "bounds_of",
    "check_produced",
    "columns_from_arrow",
    "columns_from_lists",
    "compress",
    "control_batch",
    "control_type",
    "crc32c",
    "cut",
    "decode",
    "decompress",
    "encode",
    "encode_many",
    "end_marker",
    "take_rows",
    "headers_of",
    "keep",
    "pooled",
    "recompress",
    "repeated_text",
    "restamp",
    "scan",
    "verify",
    "headers_from_lists",
]

_HOMES = {
    "fairlead_kafka.records.arrow": (
        "MESSAGE_SCHEMA",
        "columns_from_arrow",
        "pooled",
    ),
    "fairlead_kafka.records.batch": (
        "assign",
        "check_produced",
        "restamp",
        "scan",
        "verify",
    ),
    "fairlead_kafka.records.buffers": ("arrow_array", "repeated_text"),
    "fairlead_kafka.records.codecs": (
        "compress",
        "decompress",
    ),
    "fairlead_kafka.records.columns": (
        "BinaryColumn",
        "HeaderColumns",
        "RecordColumns",
        "Slice",
    ),
    "fairlead_kafka.records.control": (
        "ControlType",
        "EndMarker",
        "control_batch",
        "control_type",
        "end_marker",
    ),
    "fairlead_kafka.records.crc": ("crc32c",),
    "fairlead_kafka.records.decoder": (
        "DecodedRecords",
        "Room",
        "decode",
    ),
    "fairlead_kafka.records.encoder": (
        "bounds_of",
        "cut",
        "encode",
        "encode_many",
    ),
    "fairlead_kafka.records.faults": ("InflatesTooFar",),
    "fairlead_kafka.records.lists": ("columns_from_lists", "headers_from_lists"),
    "fairlead_kafka.records.selection": ("take_rows",),
    "fairlead_kafka.records.headers": (
        "HEADER_SCHEMA",
        "headers_of",
    ),
    "fairlead_kafka.records.layout": (
        "AbortedTransaction",
        "BatchHeader",
        "Compression",
        "MESSAGE_COLUMNS",
        "Data",
        "EncodedBatch",
        "TimestampType",
    ),
    "fairlead_kafka.records.rewrite": (
        "keep",
        "recompress",
    ),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
