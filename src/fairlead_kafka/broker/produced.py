"""Checks of a producer's batch before the broker appends it (Kafka's `LogValidator` and
`ProduceRequest`).

The order of the checks is Kafka's where two of them would give different codes: the size before the
CRC, the CRC before the records. Compressed batches are inflated and their records walked over as
well, as Kafka does: a batch that lies about what is inside would reach every consumer.
"""

from __future__ import annotations

import struct

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import (
    BatchHeader,
    Compression,
    InflatesTooFar,
    TimestampType,
    check_produced,
    scan,
    verify,
)
from fairlead_kafka.records.layout import BATCH_LENGTH, LAST_OFFSET_DELTA, LENGTH_PREFIX_BYTES, RECORD_COUNT

_MAGIC_POSITION = 16
_MAGIC = 2
_LENGTH = struct.Struct(">i")
_LENGTH_MIN = 14
"""Least length of any batch or message, of whatever magic (Kafka's
`LegacyRecord.RECORD_OVERHEAD_V0`)."""
_ZSTD = int(Compression.zstd)
_ZSTD_FROM_VERSION = 7
_UNUSUAL = 0x38
"""Attributes that need a closer look: timestamp type, transactional, control."""


def check_batch(partition: Partition, records: Buffer | None, version: int) -> BatchHeader:
    """The header of the one batch in `records` of a Produce request of `version`. Raises
    BrokerError with Kafka's code."""
    records = _whole_batch(partition, records)
    size_bytes = len(records)
    if size_bytes > partition.limits.max_message_bytes or size_bytes > partition.limits.segment_bytes:
        raise _too_large(partition, size_bytes)
    header = _single_header(partition, records)
    if header.base_offset or header.attributes & _UNUSUAL or header.codec == _ZSTD or header.producer_id >= 0:
        _check_header(partition, header, version)
    try:
        verify(records, header)
    except DecodeError as error:
        raise BrokerError(ErrorCode.CORRUPT_MESSAGE, f"{partition}: {error}") from None
    try:
        check_produced(records, header)
    except InflatesTooFar as error:  # a producer that has several records in it splits it
        raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, f"{partition}: {error}") from None
    except DecodeError as error:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{partition}: {error}") from None
    return header


def _too_large(partition: Partition, size_bytes: int) -> BrokerError:
    limits = partition.limits
    if size_bytes > limits.max_message_bytes:
        text = (
            f"{partition}: a batch of {size_bytes} bytes exceeds max.message.bytes {limits.max_message_bytes}"
        )
        return BrokerError(ErrorCode.MESSAGE_TOO_LARGE, text)
    text = f"{partition}: a batch of {size_bytes} bytes exceeds segment.bytes {limits.segment_bytes}"
    return BrokerError(ErrorCode.RECORD_LIST_TOO_LARGE, text)


def _whole_batch(partition: Partition, records: Buffer | None) -> Buffer:
    """The records, if one whole batch of magic 2 is in front (Kafka's `ByteBufferLogInputStream`,
    `ProduceRequest.validateRecords`). BrokerError INVALID_RECORD or CORRUPT_MESSAGE if not."""
    present_bytes = 0 if records is None else len(records)
    if records is not None and present_bytes > _MAGIC_POSITION:
        length = _LENGTH.unpack_from(records, BATCH_LENGTH)[0]
        magic = records[_MAGIC_POSITION]
        if length < _LENGTH_MIN or magic > _MAGIC:
            raise BrokerError(
                ErrorCode.CORRUPT_MESSAGE, f"{partition}: {length} bytes of magic {magic} are no record batch"
            )
        if magic != _MAGIC:
            raise BrokerError(
                ErrorCode.INVALID_RECORD, f"{partition}: record batches must have magic {_MAGIC}, not {magic}"
            )
        if length + LENGTH_PREFIX_BYTES <= present_bytes:
            return records
    text = (
        f"{partition}: a Produce request must carry one whole record batch per partition; there are "
        f"{present_bytes} bytes"
    )
    raise BrokerError(ErrorCode.INVALID_RECORD, text)


def _single_header(partition: Partition, records: Buffer) -> BatchHeader:
    try:
        headers = scan(records)
    except DecodeError as error:
        counts = error.offset in (RECORD_COUNT, LAST_OFFSET_DELTA)
        raise BrokerError(
            ErrorCode.INVALID_RECORD if counts else ErrorCode.CORRUPT_MESSAGE, f"{partition}: {error}"
        ) from None
    if len(headers) > 1:
        raise BrokerError(
            ErrorCode.INVALID_RECORD,
            f"{partition}: {len(headers)} record batches for one partition, where one is allowed",
        )
    if not headers or headers[0].size_bytes != len(records):
        raise BrokerError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{partition}: the batch's length is not that of the {len(records)} bytes it came in",
        )
    return headers[0]


def _check_header(partition: Partition, header: BatchHeader, version: int) -> None:
    if header.base_offset != 0:
        raise BrokerError(
            ErrorCode.INVALID_RECORD,
            f"{partition}: a producer's batch must begin at offset 0, not {header.base_offset}",
        )
    if header.control:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{partition}: clients may not write control batches")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise BrokerError(
            ErrorCode.INVALID_RECORD,
            f"{partition}: sequence {header.base_sequence}, epoch {header.producer_epoch} with producer id "
            f"{header.producer_id}",
        )
    if header.transactional and header.producer_id < 0:
        raise BrokerError(ErrorCode.INVALID_RECORD, f"{partition}: a transactional batch needs a producer id")
    if header.timestamp_type is TimestampType.log_append:
        raise BrokerError(
            ErrorCode.INVALID_TIMESTAMP, f"{partition}: a producer's batch may not claim log append time"
        )
    if header.codec == _ZSTD and version < _ZSTD_FROM_VERSION:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"{partition}: zstd needs Produce version 7, this one has {version}",
        )
