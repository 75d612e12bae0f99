"""Control batches: the markers that end a transaction in a partition (KIP-98, Kafka's
`ControlRecordType`)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.records.columns import BinaryColumn, RecordColumns, Slice
from fairlead_kafka.records.decode_kernels import check_records, first_key
from fairlead_kafka.records.encoder import encode
from fairlead_kafka.records.layout import HEADER_SIZE_BYTES, BatchHeader, Data, EncodedBatch, as_array

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """Types of control records."""

    abort = 0
    commit = 1
    leader_change = 2
    snapshot_header = 3
    snapshot_footer = 4
    kraft_version = 5
    kraft_voters = 6


def control_batch(
    kind: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> EncodedBatch:
    """The transaction marker of `kind` as a batch of one record, as a broker writes it for
    WriteTxnMarkers."""
    columns = RecordColumns(
        1, _one(_KEY.pack(_VERSION, kind)), _one(_VALUE.pack(_VERSION, coordinator_epoch))
    )
    return encode(
        [Slice(columns, 0, 1)],
        create_time_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
    )


class EndMarker(NamedTuple):
    """A transaction's end marker: committed or aborted, and the epoch of its coordinator."""

    committed: bool
    coordinator_epoch: int


def end_marker(data: Data, header: BatchHeader) -> EndMarker | None:
    """The marker in a control batch; None if it is of another kind. DecodeError for garbage."""
    kind = control_type(data, header)
    if kind not in (ControlType.abort, ControlType.commit):
        return None
    # The batch is sound, so its record ends with the value and a count of headers, which is zero.
    value = as_array(data)[header.stop - _VALUE.size - 1 : header.stop - 1].tobytes()
    return EndMarker(kind == ControlType.commit, int(_VALUE.unpack(value)[1]))


def control_type(data: Data, header: BatchHeader) -> int:
    """The type of a control batch's record: a `ControlType`, or a number that Kafka added later.
    DecodeError for garbage."""
    begin = header.position + HEADER_SIZE_BYTES
    batch = as_array(data)[begin : header.stop]
    fault, position = check_records(batch, 0, len(batch), header.count)
    key = b"" if fault or not header.count or header.codec else first_key(batch)
    if len(key) < _KEY.size:
        raise DecodeError(
            "a control batch does not hold one record whose key is a version and a type",
            begin + (position if fault else 0),
        )
    return int(_KEY.unpack_from(key)[1])


def _one(item: bytes) -> BinaryColumn:
    return BinaryColumn(np.frombuffer(item, np.uint8), np.array([0, len(item)], np.int64))
