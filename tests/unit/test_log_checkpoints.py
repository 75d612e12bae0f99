"""Checkpoints: a start that reads little, whatever became of them; and files that go only when none
of them needs them."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.guard import SharedDamage
from fairlead_kafka.broker.log.recovery import CHECKPOINT_NAMES
from fairlead_kafka.records import scan
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

INTERVAL_MS = 60_000
INDEX_COPIES = tracemalloc.Filter(True, "*/broker/log/checkpoint.py")
A, B = (f"{FOLDER}/{name}" for name in CHECKPOINT_NAMES)
FIRST = f"{FOLDER}/000000000001.log"


def sequenced(first: int, **options: Any) -> bytes:
    return records(b"x", producer_id=9, producer_epoch=3, base_sequence=first, **options)


def stop(rig: LogRig) -> None:
    done: list[bool] = []
    rig.logs.close(lambda: done.append(True))
    rig.run()
    assert done


def view(rig: LogRig, number: int) -> tuple[Any, ...]:
    """All that is known of a partition."""
    one = rig.partition(number)
    producers = [
        (key, entry.epoch, entry.coordinator_epoch, list(entry.batches))
        for key, entry in one.producers.items()
    ]
    offsets = (
        one.log_start,
        one.high_watermark,
        one.written_end,
        one.log_end,
        one.last_stable_offset,
        one.size_bytes,
    )
    return (*offsets, one.epochs.items(), producers, one.aborted(0, 1 << 40), rig.data(number))


def filled() -> LogRig:
    rig = LogRig()
    for number in range(4):
        rig.append(sequenced(number), epoch=number // 2)
    rig.append(sequenced(0, transactional=True), number=1)
    rig.mark(9, committed=False, number=1)
    rig.append(sequenced(1, transactional=True), number=1)
    rig.append(records(b"a", b"b"), number=2)
    rig.logs.move_start(rig.partition(2), 1)
    rig.logs.restart(rig.partition(3), 70)
    rig.run()
    return rig


def test_after_a_stop_in_good_order_nothing_is_read_again() -> None:
    rig = filled()
    before = [view(rig, number) for number in range(5)]
    stop(rig)
    result = rig.crash()
    assert (result.entry_count, result.refused) == (0, None)
    assert [view(rig, number) for number in range(5)] == before


def test_what_a_checkpoint_gathered_is_not_kept_until_the_next_one() -> None:
    rig, data = LogRig(), records(b"x")
    for _each in range(2_000):
        rig.logs.append(rig.partition(), memoryview(data), scan(data)[0], 0, rig.wall_ms)
    rig.run()
    tracemalloc.start()
    try:
        rig.logs.checkpoints.write_if_due()
        rig.run()
        assert rig.disk.files.keys() & {A, B}
        gc.collect()
        copies = [
            trace.size
            for trace in tracemalloc.take_snapshot().filter_traces([INDEX_COPIES]).traces
            if trace.size >= 64 * 2_000
        ]
    finally:
        tracemalloc.stop()
    assert not copies


@pytest.fixture
def slices_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_kafka.broker.log.checkpoints.SLICE_PARTITIONS", 1)


@pytest.mark.usefixtures("slices_of_one")
def test_what_changes_while_a_checkpoint_is_gathered_slice_by_slice_is_in_it_as_it_was() -> None:
    rig = filled()
    for number in range(4, 12):
        rig.append(records(b"a", b"b", b"c"), number=number)
    rig.logs.checkpoints.write_if_due()
    while len(rig.logs.checkpoints.taking) > 9:  # until two or three are gathered
        rig.logs.flush()
        rig.step()
    assert rig.logs.checkpoints.taking
    for number in range(12):  # some gathered, some not
        rig.logs.append(
            rig.partition(number), memoryview(sequenced(0)), scan(sequenced(0))[0], 5, rig.wall_ms
        )
    rig.logs.truncate(rig.partition(11), 2)
    rig.logs.restart(rig.partition(10), 40)
    rig.logs.move_start(rig.partition(9), 1)
    rig.append(records(b"new"), number=20)
    assert not rig.logs.checkpoints.taking
    before = [view(rig, number) for number in range(21)]
    result = rig.crash()
    assert (result.refused, result.entry_count) == (None, 17), (
        "what came before the gathering is not read again"
    )
    assert [view(rig, number) for number in range(21)] == before


@pytest.mark.usefixtures("slices_of_one")
def test_a_stop_in_the_midst_of_gathering_finishes_it_though_no_timer_runs_any_more() -> None:
    rig = filled()
    rig.logs.checkpoints.write_if_due()
    while len(rig.logs.checkpoints.taking) > 3:
        rig.logs.flush()
        rig.step()
    rig.forget_timers()
    before = [view(rig, number) for number in range(5)]
    stop(rig)
    assert (rig.crash().entry_count, [view(rig, number) for number in range(5)]) == (0, before)


def test_what_came_behind_the_checkpoint_is_read() -> None:
    rig = filled()
    stop(rig)
    rig.crash()
    rig.append(sequenced(4), epoch=1)
    rig.logs.truncate(rig.partition(1), 1)
    rig.append(records(b"c"), number=5)
    before = [view(rig, number) for number in range(6)]
    result = rig.crash()
    assert result.entry_count == 3
    assert [view(rig, number) for number in range(6)] == before


def test_a_checkpoint_is_written_in_the_background_once_enough_is_new() -> None:
    rig = filled()
    rig.advance(INTERVAL_MS)
    assert rig.crash().entry_count == 0
    for _ in range(80):
        rig.append(records(b"a"))
    rig.advance(INTERVAL_MS)
    assert rig.crash().entry_count == 0
    rig.append(records(b"a"))
    rig.advance(INTERVAL_MS)
    assert rig.crash().entry_count == 1, "one new batch is not worth a checkpoint of eighty"


def test_the_high_watermark_outlives_a_restart() -> None:
    rig = LogRig()
    rig._written = lambda partition: None  # type: ignore[method-assign]  # it is for replication to raise it
    for text in (b"a", b"b", b"c"):
        rig.append(records(text))
    rig.partition().high_watermark = 1
    rig.advance(INTERVAL_MS)
    rig.crash()
    assert (rig.partition().high_watermark, rig.partition().written_end) == (1, 3)
    rig.partition().high_watermark = 2
    rig.advance(8 * INTERVAL_MS)
    rig.crash()
    assert rig.partition().high_watermark == 2, "nothing else was new, and it was noted all the same"
    rig.partition().high_watermark = 3
    stop(rig)
    rig.crash()
    assert rig.partition().high_watermark == 3


def test_it_waits_until_what_it_tells_of_is_synced() -> None:
    rig = filled()
    rig.disk.sync_ms = 10
    rig.advance(INTERVAL_MS + 9)
    assert A not in rig.disk.files
    assert B not in rig.disk.files
    rig.advance(11)
    assert (A in rig.disk.files) != (B in rig.disk.files)


@pytest.mark.parametrize("damage", ["torn", "garbage", "empty", "other version"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig = filled()
    stop(rig)
    older = A if A in rig.disk.files else B
    rig.crash()
    rig.append(sequenced(4), epoch=1)
    stop(rig)
    newer = B if older == A else A
    content = rig.disk.files[newer]
    if damage == "torn":
        del content[-9:]
    elif damage == "garbage":
        content[len(content) // 2] ^= 1
    elif damage == "empty":
        content.clear()
    else:
        content[7] ^= 3
    before = [view(rig, number) for number in range(5)]
    with caplog.at_level(logging.WARNING):
        assert rig.crash().entry_count == 1
    assert f"{newer}: not used: " in caplog.text
    assert [view(rig, number) for number in range(5)] == before


def test_without_any_checkpoint_everything_is_read_if_nothing_was_ever_deleted() -> None:
    rig = filled()
    before = [view(rig, number) for number in range(5)]
    stop(rig)
    for path in (A, B):
        rig.disk.files.pop(path, None)
    assert rig.crash().entry_count == 10
    assert [view(rig, number) for number in range(5)] == before


def rolled() -> LogRig:
    """The first of three files is deleted."""
    rig = LogRig(log_segment_bytes=1 << 20)
    for number in range(3):
        rig.append(records(b"x" * 700_000), number=number)
    rig.logs.move_start(rig.partition(0), 1)
    rig.run()
    assert FIRST not in rig.disk.files
    return rig


def test_without_any_checkpoint_a_log_that_lost_files_is_refused_with_advice() -> None:
    rig = rolled()
    rig.disk.files[A][20] ^= 1
    rig.disk.files.pop(B)
    refused = rig.crash().refused
    assert refused is not None
    for part in (FIRST, "missing", f"({A} cannot be used)", "restore", "number the log files from 1"):
        assert part in refused


def test_a_file_that_is_shorter_than_it_was_synced_is_refused_with_advice() -> None:
    rig = filled()
    stop(rig)
    size = len(rig.disk.files[FIRST])
    del rig.disk.files[FIRST][-5:]
    refused = rig.crash().refused
    assert refused is not None
    for part in (
        FIRST,
        f"ends at byte {size - 5}",
        f"{size} bytes of it were synced",
        "5 bytes",
        "delete checkpoint-a and checkpoint-b",
    ):
        assert part in refused
    for path in (A, B):
        rig.disk.files.pop(path, None)
    assert rig.crash().refused is None


def test_a_file_that_is_missing_is_refused() -> None:
    rig = rolled()
    del rig.disk.files[f"{FOLDER}/000000000002.log"]
    assert "000000000002.log: missing" in (rig.crash().refused or "")


def test_partitions_begin_where_they_ended_though_their_records_are_gone() -> None:
    rig = rolled()
    rig.crash()
    assert (rig.partition(0).log_start, rig.partition(0).log_end) == (1, 1)
    rig.append(records(b"y"))
    assert rig.values(0) == {1: b"y"}


def test_a_file_of_a_topic_that_is_gone_is_deleted_after_a_restart() -> None:
    other = TOPIC.__class__(int=8)
    rig = LogRig({TOPIC: ("events", limits()), other: ("gone", limits())}, log_segment_bytes=1 << 20)
    rig.append(records(b"x" * 700_000), topic=other)
    rig.append(records(b"x" * 700_000))
    stop(rig)
    del rig.topics[other]
    rig.crash()
    assert FIRST not in rig.disk.files
    rig.crash()
    assert len(rig.values()) == 1


def test_damage_below_the_checkpoint_is_found_when_it_is_read_and_not_given_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = LogRig()
    for text in (b"first", b"second", b"third"):
        rig.append(records(text))
    stop(rig)
    content = rig.disk.files[FIRST]
    content[content.index(b"second")] ^= 1
    assert rig.crash().refused is None
    index = rig.partition().index
    found: list[Any] = []
    for number in range(3):
        rig.logs.read([index.location(number)], found.append)
    rig.run()
    assert [batches[0] == ErrorCode.CORRUPT_MESSAGE for batches in found] == [False, True, False]
    assert f"{FIRST}: the batch at byte {index.location(1).position} is damaged" in caplog.text


def test_producers_are_unpacked_when_somebody_asks() -> None:
    rig = filled()
    stop(rig)
    rig.crash()
    states = rig.partition(0).producers
    assert states._packed
    stop(rig)
    assert states._packed, "a checkpoint takes them as they are"
    assert len(states) == 1
    assert not states._packed


@pytest.mark.parametrize("place", ["checkpoints.Place", "checkpoint.Encoder.content"])
def test_a_checkpoint_that_raises_ends_the_broker_and_is_not_waited_for(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else none would be written any more, no file deleted, and the stop would wait for it."""
    rig = filled()
    monkeypatch.setattr(f"fairlead_kafka.broker.log.{place}", lambda *_arguments: 1 / 0)

    def write() -> None:
        rig.logs.checkpoints.write_if_due()
        rig.run()

    with pytest.raises(SharedDamage, match="the checkpoints of the log"):
        rig.guard.call(None, write)
