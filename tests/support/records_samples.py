"""Records for tests: a record as a tuple, columns of them, batches, and the same records out of
decoded columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.kernel import KERNELS, MACHINE_CODE
from fairlead_kafka.consumer import to_batch
from fairlead_kafka.records import (
    MESSAGE_COLUMNS,
    DecodedRecords,
    EncodedBatch,
    RecordColumns,
    Slice,
    columns_from_lists,
    encode,
)


class Sample(NamedTuple):
    key: bytes | None = None
    value: bytes | None = b""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1


VARIED = (
    Sample(b"key", b"value", (), 1_000),
    Sample(None, b"value without key", (), 990),
    Sample(b"", b"", (), -1),
    Sample(b"tombstone", None, (), 1_700_000_000_000),
    Sample(b"k" * 70, b"v" * 9_000, (("one", b"1"), ("null", None), ("", b""), ("é", b"\xff")), 0),
    Sample(None, None, (("only", b"header"),), -1),
)


def columns_of(samples: Sequence[Sample]) -> RecordColumns:
    return columns_from_lists(
        [each.key for each in samples],
        [each.value for each in samples],
        [list(each.headers) for each in samples],
        [each.timestamp_ms for each in samples],
    )


def encoded(samples: Sequence[Sample], **options: Any) -> EncodedBatch:
    return encode([Slice(columns_of(samples), 0, len(samples))], **({"create_time_ms": 5} | options))


def decoded(records: DecodedRecords) -> list[Sample]:
    headers = [records.headers.item(i) if records.headers else [] for i in range(records.count)]
    keys = [None] * records.count if records.keys is None else records.keys.to_list()
    rows = zip(keys, records.values.to_list(), headers, records.timestamps_ms.tolist(), strict=True)
    return [Sample(key, value, tuple(pairs), timestamp) for key, value, pairs, timestamp in rows]


def as_batch(records: DecodedRecords, topic: str = "t", partition: int = 0) -> Any:
    """Decoded records as the record batch that a consumer gives."""
    return to_batch(TopicPartition(topic, partition), records, MESSAGE_COLUMNS, 0, records.count)


def stamped(samples: Sequence[Sample], create_time_ms: int) -> list[Sample]:
    """The samples as a consumer sees them: with the create time where they brought none."""
    return [
        each._replace(timestamp_ms=create_time_ms) if each.timestamp_ms == -1 else each for each in samples
    ]


@contextmanager
def kernels_served_by(body: str) -> Iterator[None]:
    """Let every kernel be answered by its `reference` implementation, or by its `machine` code."""
    assert MACHINE_CODE
    try:
        if body == "reference":
            for kernel in KERNELS:
                kernel.serve(None)
        yield
    finally:
        for kernel in KERNELS:
            kernel.serve(kernel.machine_code)
