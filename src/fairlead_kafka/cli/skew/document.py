"""Keys of the report of `fairlead skew`, with the types of their values: sizes in bytes, times in
ms since 1970, waits in ms, shares from 0 to 1."""

from __future__ import annotations

from typing import TypedDict

from fairlead_kafka.cli.skew.spread import SpreadFigures

Step = TypedDict("Step", {"from": int, "to": int, "batches": int})
"""A bar of a histogram: batches with `from` up to, but not including, `to`."""


class LookedAt(TypedDict):
    """The part of the topic that was read."""

    whole_topic: bool
    offsets: int
    offsets_in_topic: int
    records: int
    batches: int
    markers: int
    size_bytes: int
    uncompressed_bytes: int
    from_ms: int | None
    to_ms: int | None
    records_per_s: float | None
    timestamps: str


class Balance(TypedDict):
    """How evenly bytes and records are spread over the partitions."""

    size_bytes: SpreadFigures
    records: SpreadFigures


class PartitionRow(TypedDict):
    """One partition. `leader` None: it has none."""

    partition: int
    leader: int | None
    records: int
    batches: int
    markers: int
    size_bytes: int
    uncompressed_bytes: int
    share: float
    records_per_batch: float


class Histogram(TypedDict):
    """A distribution over batches. `median` None: there are no batches."""

    mean: float
    median: int | None
    histogram: list[Step]


class Batches(TypedDict):
    """The batches. `fill_percent`: of batch.size; `ratio`: compressed by uncompressed bytes."""

    records_per_batch: Histogram
    fill_percent: Histogram
    codecs: dict[str, int]
    ratio: float


class HotKeyRow(TypedDict):
    """One of the keys with most records. `partition` None: it is in several."""

    key: str
    records: int
    share: float
    size_bytes: int
    partition: int | None


class Keys(TypedDict):
    """The keys. `distinct` None: there are more than were counted, and each of `hottest` may have
    up to `error_records` more than it says."""

    records: int
    unkeyed_records: int
    distinct: int | None
    error_records: int
    hottest: list[HotKeyRow]


class Waits(TypedDict):
    """Waits from submission to acknowledgement, ms; None: nothing was acknowledged."""

    p50_ms: float | None
    p99_ms: float | None
    failed: int


class ReplayRow(SpreadFigures, Waits):
    """One producer's settings, and the batches they would have made of the records. `fill`: share
    of batch.size, 0 to 1 and more."""

    policy: str
    batch_size: int
    linger_ms: int
    batches: int
    records_per_batch: float
    fill: float
    size_bytes: int
    requests: int
    partition_bytes: list[int]


class Replay(TypedDict):
    """The replay. `records_per_s` None: as the timestamps say."""

    records: int
    seconds: float
    records_per_s: float | None
    codec: str
    seed: int
    rows: list[ReplayRow]


class Report(TypedDict):
    """The whole report. `replay` None: none was asked for."""

    topic: str
    batch_size: int
    looked_at: LookedAt
    balance: Balance
    partitions: list[PartitionRow]
    batches: Batches
    keys: Keys
    replay: Replay | None
