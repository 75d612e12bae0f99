"""Checks and converts a valid batch of a producer by its topic's configs: timestamps within bounds,
keys if the topic is compacted, the topic's codec.

Kafka's `LogValidator.validateMessagesAndAssignOffsets`. A batch that is stored as it came costs one
comparison here.
"""

from __future__ import annotations

import numpy as np

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import LONG_MAX
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import BatchHeader, decode, recompress, scan


class RecordsRefused(BrokerError):
    """INVALID_RECORD for single records of a batch: `records` are their indexes in the batch, `why`
    is the reason, the same for all (KIP-467)."""

    def __init__(self, text: str, records: list[int], why: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, text)
        self.records = records
        self.why = why


def convert(
    partition: Partition, records: Buffer, header: BatchHeader, wall_ms: int
) -> tuple[Buffer, BatchHeader]:
    """The batch in `records` as it is to be stored, and its header; `records` and `header` have
    passed `check_batch`.

    Raises BrokerError: INVALID_TIMESTAMP, INVALID_RECORD (no key, in a compacted topic),
    MESSAGE_TOO_LARGE (after recompression).
    """
    limits = partition.limits
    if not limits.log_append_time:
        _check_timestamps(partition, records, header, wall_ms)
    if limits.compact:
        decoded = decode(records, want_headers=False, check_crcs=False)
        valid = np.zeros(decoded.count, np.bool_) if decoded.keys is None else decoded.keys.valid
        if valid is not None and not valid.all():
            text = (
                f"{partition}: a compacted topic takes no record without a key; record "
                f"{int(valid.argmin())} of the batch has none"
            )
            raise RecordsRefused(
                text, np.flatnonzero(~valid).tolist(), "a record in a compacted topic needs a key"
            )
    if limits.compression is None or limits.compression == header.codec:
        return records, header
    converted = recompress(records, header, limits.compression, limits.compression_level)
    if len(converted) > limits.max_message_bytes:
        text = (
            f"{partition}: a batch of {len(converted)} bytes, recompressed with the topic's compression.type "
            f"{limits.compression.name}, "
            f"exceeds max.message.bytes {limits.max_message_bytes}"
        )
        raise BrokerError(ErrorCode.MESSAGE_TOO_LARGE, text)
    return memoryview(converted), scan(converted)[0]


def _check_timestamps(partition: Partition, records: Buffer, header: BatchHeader, wall_ms: int) -> None:
    """Raise BrokerError if a timestamp of the batch is out of the topic's bounds. The newest
    timestamp is in the header, where a producer puts it; for the oldest, if it is bounded, the
    records are decoded."""
    limits = partition.limits
    newest_ms = header.max_timestamp_ms
    if newest_ms >= 0 and newest_ms - wall_ms > limits.timestamp_after_max_ms:
        raise _out_of_bounds(
            partition,
            newest_ms,
            wall_ms,
            f"more than message.timestamp.after.max.ms {limits.timestamp_after_max_ms} after",
        )
    if limits.timestamp_before_max_ms != LONG_MAX and newest_ms >= 0:
        oldest_ms = int(
            decode(records, want_keys=False, want_headers=False, check_crcs=False).timestamps_ms.min()
        )
        if wall_ms - oldest_ms > limits.timestamp_before_max_ms:
            before = f"more than message.timestamp.before.max.ms {limits.timestamp_before_max_ms} before"
            raise _out_of_bounds(partition, oldest_ms, wall_ms, before)


def _out_of_bounds(partition: Partition, timestamp_ms: int, wall_ms: int, how: str) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_TIMESTAMP,
        f"{partition}: timestamp {timestamp_ms} is {how} the broker's time {wall_ms}",
    )
