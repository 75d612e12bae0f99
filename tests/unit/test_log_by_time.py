"""Records found by their time: over batches that compaction emptied, a log start within a batch,
and what producers claim."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.log import TimedRecord
from fairlead_kafka.records import columns_from_lists, encode, scan
from fairlead_kafka.records.columns import Slice
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

LOOK_MS = 15_000
Answer = tuple[int, TimedRecord | None]


def at(*stamps_ms: int, key: bytes = b"k", **options: Any) -> bytes:
    """A batch of records with these timestamps."""
    columns = columns_from_lists(
        [key] * len(stamps_ms), [b"x"] * len(stamps_ms), timestamps_ms=list(stamps_ms)
    )
    return bytes(encode([Slice(columns, 0, len(stamps_ms), None)], create_time_ms=0, **options).buffer)


def first_at(rig: LogRig, timestamp_ms: int, end: int | None = None) -> Answer:
    found: list[Answer] = []
    partition = rig.partition()
    rig.logs.first_at(
        partition,
        timestamp_ms,
        partition.high_watermark if end is None else end,
        lambda *one: found.append(one),
    )
    rig.run()
    assert len(found) == 1
    return found[0]


def newest(rig: LogRig, end: int | None = None) -> Answer:
    found: list[Answer] = []
    partition = rig.partition()
    rig.logs.newest(
        partition, partition.high_watermark if end is None else end, lambda *one: found.append(one)
    )
    rig.run()
    assert len(found) == 1
    return found[0]


def compacted_rig() -> LogRig:
    """Producers' newest batches at offsets 0 and 2 are emptied; 1, 3 and 4 have records."""
    rig = LogRig({TOPIC: ("events", limits(cleanup_policy="compact", min_cleanable_dirty_ratio=0))})
    rig.append(at(9000, producer_id=1, producer_epoch=0, base_sequence=0))
    rig.append(at(100, key=b"other"))
    rig.append(at(8000, producer_id=2, producer_epoch=0, base_sequence=0))
    rig.append(at(300))
    rig.append(at(200, key=b"end"), epoch=4)
    rig.advance(LOOK_MS + 1)
    assert [(header.base_offset, header.count) for header in scan(rig.data())] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
        (4, 1),
    ]
    return rig


def test_a_search_goes_on_past_batches_that_compaction_emptied() -> None:
    """Faults 3 and 4 of issue 16: the newest of no records raised, and the first at a time was
    given up."""
    rig = compacted_rig()
    for _ in range(2):
        assert newest(rig) == (0, TimedRecord(3, 300, 0))
        assert first_at(rig, 50) == (0, TimedRecord(1, 100, 0))
        assert first_at(rig, 101) == (0, TimedRecord(3, 300, 0))
        assert first_at(rig, 301) == (0, None)
        rig.crash()


def test_a_search_ends_where_the_readers_view_does() -> None:
    rig = compacted_rig()
    assert newest(rig, end=3) == (0, TimedRecord(1, 100, 0))
    assert newest(rig, end=1) == (0, None)
    assert newest(rig, end=0) == (0, None)
    assert first_at(rig, 101, end=3) == (0, None)
    assert first_at(rig, 200) == (0, TimedRecord(3, 300, 0))
    rig.logs.move_start(rig.partition(), 4)
    assert first_at(rig, 50) == (0, TimedRecord(4, 200, 4))


def test_records_below_a_log_start_within_a_batch_are_not_found() -> None:
    """Fault 4 of issue 16: its own newest record may be among those that are deleted."""
    rig = LogRig()
    rig.append(at(900, 10, 20, 30))
    rig.append(at(40, 25))
    rig.logs.move_start(rig.partition(), 2)
    assert first_at(rig, 100) == (0, None)
    assert first_at(rig, 35) == (0, TimedRecord(4, 40, 0))
    assert first_at(rig, 15) == (0, TimedRecord(2, 20, 0))
    assert newest(rig) == (0, TimedRecord(4, 40, 0))


def test_of_records_that_are_equally_new_the_first_is_found_whatever_their_batches_claim() -> None:
    rig = LogRig()
    rig.append(at(50))
    rig.append(at(900, 50))
    rig.append(at(50, 50))
    assert newest(rig) == (0, TimedRecord(1, 900, 0))
    rig.logs.move_start(rig.partition(), 2)
    assert newest(rig) == (0, TimedRecord(2, 50, 0))


def test_nothing_is_found_in_a_log_without_records() -> None:
    rig = LogRig()
    rig.partition()
    assert newest(rig) == (0, None)
    assert first_at(rig, 0) == (0, None)


def test_a_search_that_meets_a_damaged_batch_says_so() -> None:
    rig = LogRig()
    for stamp in (10, 20, 30):
        rig.append(at(stamp))
    rig.logs.cache.rewind(0, 0)
    path = f"{FOLDER}/000000000001.log"
    rig.disk.files[path][rig.partition().index.location(1).position + 65] ^= 1
    assert first_at(rig, 15) == (ErrorCode.CORRUPT_MESSAGE, None)
    assert first_at(rig, 25) == (0, TimedRecord(2, 30, 0))
    assert newest(rig) == (0, TimedRecord(2, 30, 0))


def test_a_long_row_of_batches_without_the_time_they_claim_is_gone_through() -> None:
    """Batches in the cache are given within the call: a search must not go deeper for each, nor
    keep the broker from its other work."""
    rig = LogRig()
    for _ in range(400):
        rig.append(records(b"a", b"b", at_ms=-1))
    found: list[Answer] = []
    rig.logs.newest(rig.partition(), 1 << 40, lambda *one: found.append(one))
    assert not found, "the rest is for later steps"
    rig.run()
    assert found == [(0, TimedRecord(0, -1, 0))]
    assert first_at(rig, 5) == (0, None)


def test_a_log_that_is_cut_while_it_is_searched_is_searched_as_far_as_it_goes() -> None:
    rig = LogRig()
    for stamp in (10, 20, 30):
        rig.append(at(stamp))
    rig.logs.cache.rewind(0, 0)
    found: list[Answer] = []
    rig.logs.newest(rig.partition(), 3, lambda *one: found.append(one))
    rig.logs.truncate(rig.partition(), 0)
    rig.run()
    assert found == [(0, TimedRecord(2, 30, 0))]
    assert newest(rig) == (0, None)
