"""A disk that fails: what is refused, what is not lost, and service again once it works."""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.core.effects import FileEffect, FileSync
from fairlead_kafka.records import scan
from fairlead_kafka.runtime.virtual_disk import PAGE_BYTES
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

FIRST = f"{FOLDER}/000000000001.log"
SECOND = f"{FOLDER}/000000000002.log"
A, B = f"{FOLDER}/checkpoint-a", f"{FOLDER}/checkpoint-b"
MEND_MS = 1000


def refused(rig: LogRig, data: bytes) -> None:
    with pytest.raises(BrokerError) as error:
        rig.append(data)
    assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_failed_append_is_taken_back_and_the_log_goes_on_once_the_disk_works(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    rig = LogRig()
    assert rig.append(records(b"a")) == [True]
    rig.disk.faults.fail(FOLDER, code)
    assert rig.append(records(b"lost", producer_id=9, producer_epoch=0, base_sequence=0)) == [False]
    assert "appends are refused" in caplog.text
    partition = rig.partition()
    assert (partition.log_end, partition.written_end, partition.high_watermark, len(partition.producers)) == (
        1,
        1,
        1,
        0,
    )
    refused(rig, records(b"b"))
    rig.advance(3 * MEND_MS)
    refused(rig, records(b"b"))
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS)
    assert rig.append(records(b"c")) == [True]
    for _ in range(2):
        assert rig.values() == {0: b"a", 1: b"c"}
        assert rig.crash(power=False).refused is None


def test_a_crash_with_a_failed_append_in_the_file_leaves_a_torn_tail_and_no_more() -> None:
    rig = LogRig()
    rig.append(records(b"a"))
    rig.disk.faults.fail(FOLDER, errno.ENOSPC)
    rig.append(records(b"torn"))
    rig.disk.faults.heal(FOLDER)
    assert rig.crash().cut_bytes > 0
    assert rig.values() == {0: b"a"}


def test_what_was_done_in_memory_is_said_in_the_log_once_it_can_be() -> None:
    rig = LogRig()
    for number in range(3):
        for text in (b"a", b"b", b"c"):
            rig.append(records(text), number=number)
    rig.disk.faults.fail(FOLDER, errno.ENOSPC)
    rig.logs.truncate(rig.partition(0), 1)
    rig.run()
    rig.logs.move_start(rig.partition(1), 2)
    rig.logs.restart(rig.partition(2), 50)
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS)
    for _ in range(2):
        assert [rig.values(number) for number in range(3)] == [{0: b"a"}, {2: b"c"}, {}]
        assert [rig.partition(number).log_end for number in range(3)] == [1, 3, 50]
        rig.crash()


def test_a_cut_and_what_followed_it_fail_together() -> None:
    rig = LogRig()
    for text in (b"a", b"b", b"c"):
        rig.append(records(text))
    rig.disk.faults.fail(FOLDER, errno.EIO)
    partition = rig.partition()
    data = records(b"never")
    rig.logs.append(partition, memoryview(data), scan(data)[0], 0, rig.wall_ms)
    rig.logs.truncate(partition, 1)
    rig.logs.append(partition, memoryview(data), scan(data)[0], 1, rig.wall_ms)
    rig.run()
    assert (partition.log_end, partition.written_end) == (1, 1)
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS)
    rig.append(records(b"d"), epoch=2)
    for _ in range(2):
        assert rig.values() == {0: b"a", 1: b"d"}
        rig.crash()


def test_a_failed_sync_loses_who_waited_for_it_and_nobody_else() -> None:
    safe = TOPIC.__class__(int=8)
    rig = LogRig({TOPIC: ("events", limits()), safe: ("safe", limits(flush_messages=1))})
    rig.disk.sync_ms = 5
    assert rig.append(records(b"a")) == [True]
    told = rig.append(records(b"b"), topic=safe)
    behind = rig.append(records(b"c"))
    rig.advance(0)
    rig.disk.faults.fail(FOLDER, errno.EIO)
    later = rig.append(records(b"d"), topic=safe)
    rig.advance(20)
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS + 20)
    assert (told, behind) == ([True], [True]), "their sync was under way"
    assert later == [False]
    assert rig.values(topic=safe) == {0: b"b"}
    told = rig.append(records(b"e"), topic=safe)
    rig.advance(10)
    assert told == [True]
    rig.crash(power=True)
    assert rig.values(topic=safe) == {0: b"b", 1: b"e"}


def test_what_a_killed_broker_had_written_and_not_synced_is_synced_before_anybody_is_told_of_it() -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))})
    rig.disk.sync_ms = 5
    assert rig.append(records(b"a", producer_id=9, producer_epoch=0, base_sequence=0)) == []
    rig.crash()  # between the write and its sync
    assert rig.partition().written_end == 1, "a consumer may read it, and a retry is told that it is there"
    rig.crash(power=True)
    assert rig.values() == {0: b"a"}


def test_rot_in_what_a_start_found_and_synced_is_no_torn_write() -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))})
    rig.disk.sync_ms = 5
    rig.append(records(b"a"))
    rig.crash()
    rig.append(records(b"b"))
    rig.advance(10)
    rig.disk.files[FIRST][100] ^= 1
    assert rig.crash().refused is not None


def test_a_log_that_cannot_be_synced_does_not_start() -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))})
    rig.disk.sync_ms = 5
    rig.append(records(b"a"))
    read = rig.disk.faults.check

    def syncs_fail(effect: FileEffect) -> None:
        read(effect)
        if isinstance(effect, FileSync):
            raise OSError(errno.EIO, "broken")

    rig.disk.faults.check = syncs_fail  # type: ignore[method-assign]
    refused_for = rig.crash().refused
    assert refused_for is not None
    assert "cannot be synced" in refused_for
    rig.disk.faults.check = read  # type: ignore[method-assign]
    assert rig.crash().refused is None
    assert rig.values() == {0: b"a"}


def test_a_sync_that_fails_takes_back_groups_in_flight() -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=1))})
    rig.append(records(b"a"))
    rig.disk.append_ms = 3
    told = [rig.append(records(text)) for text in (b"b", b"c")]
    rig.disk.faults.fail(FOLDER, errno.EIO)
    rig.advance(2)
    rig.disk.faults.heal(FOLDER)
    rig.disk.faults.fail(FIRST, errno.EIO)
    rig.advance(30)
    assert told == [[False], [False]]
    assert rig.partition().log_end == 1
    rig.disk.faults.heal(FIRST)
    rig.advance(MEND_MS + 10)
    rig.append(records(b"d"))
    rig.advance(10)
    assert rig.values() == {0: b"a", 1: b"d"}
    assert rig.crash(power=True).refused is None
    assert rig.values() == {0: b"a", 1: b"d"}


def test_a_new_file_that_cannot_be_begun_is_begun_later() -> None:
    rig = LogRig(log_segment_bytes=1 << 20)
    rig.append(records(b"x" * 700_000))
    second = f"{FOLDER}/000000000002.log"
    rig.disk.faults.fail(second, errno.ENOSPC)
    assert rig.append(records(b"y" * 700_000)) == [False]
    rig.disk.faults.heal(second)
    rig.advance(MEND_MS)
    assert rig.append(records(b"z" * 700_000)) == [True]
    rig.crash()
    assert [value[:1] for value in rig.values().values() if value] == [b"x", b"z"]


def test_what_a_failed_write_left_is_served_to_nobody_when_a_moved_batch_takes_its_place() -> None:
    """Fault 2 of issue 16: the write was taken back, but not out of the cache of the newest
    batches."""
    secret = TOPIC.__class__(int=8)
    rig = LogRig(
        {
            TOPIC: ("events", limits(cleanup_policy="compact", min_cleanable_dirty_ratio=0)),
            secret: ("secret", limits()),
        }
    )
    rig.append(records(b"1", b"2", b"3", keys=[b"a", b"b", b"a"]))
    rig.append(records(b"4", b"5", keys=[b"b", b"c"]))
    rig.append(records(b"6", keys=[b"c"]))
    rig.disk.faults.fail(FOLDER, errno.ENOSPC)
    assert rig.append(records(b"of another topic, never written"), topic=secret) == [False]
    rig.disk.faults.heal(FOLDER)
    rig.advance(16_000)
    for _ in range(2):
        assert rig.values() == {2: b"3", 3: b"4", 4: b"5", 5: b"6"}
        rig.crash()


def test_a_failed_write_over_two_files_leaves_the_cache_whole() -> None:
    rig = LogRig(log_segment_bytes=1 << 20)
    rig.append(records(b"x" * 700_000))
    rig.disk.faults.fail(FOLDER, errno.ENOSPC)
    partition, data = rig.partition(), records(b"y" * 300_000)
    for _ in range(3):
        rig.logs.append(partition, memoryview(data), scan(data)[0], 0, rig.wall_ms)
    rig.run()
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS)
    for text in (b"z", b"w"):
        rig.append(records(text * 300_000))
    rig.logs.cache.check()
    for _ in range(2):
        assert [value[:1] for value in rig.values().values() if value] == [b"x", b"z", b"w"]
        rig.crash()


def test_a_checkpoint_that_cannot_be_written_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    rig = LogRig()
    rig.append(records(b"a"))
    for name in ("checkpoint-a", "checkpoint-b"):
        rig.disk.faults.fail(f"{FOLDER}/{name}", errno.ENOSPC)
    with caplog.at_level(logging.WARNING):
        rig.advance(60_000)
    assert "no checkpoint could be written" in caplog.text
    assert rig.append(records(b"b")) == [True]
    rig.crash()
    assert rig.values() == {0: b"a", 1: b"b"}


def test_a_torn_tail_on_a_read_only_disk_is_a_reason_not_to_start() -> None:
    rig = LogRig()
    rig.append(records(b"a"))
    rig.disk.files[FIRST] += b"torn"
    rig.disk.faults.fail(FOLDER, errno.EROFS)
    assert "the torn tail cannot be cut" in (rig.crash().refused or "")
    rig.disk.faults.heal(FOLDER)
    assert rig.crash().refused is None


def test_a_clock_that_goes_back_deletes_nothing_and_stops_nothing() -> None:
    rig = LogRig({TOPIC: ("events", limits(retention_ms=5000))})
    rig.append(records(b"a"))
    rig.wall_skew_ms = -3_600_000
    rig.append(records(b"b", producer_id=9, producer_epoch=0, base_sequence=0))
    rig.logs.retain(rig.wall_ms, 1000)
    assert rig.values() == {0: b"a", 1: b"b"}
    assert len(rig.partition().producers) == 1
    rig.crash()
    assert rig.values() == {0: b"a", 1: b"b"}


def synced_topic_rig(**configs: object) -> tuple[LogRig, uuid.UUID]:
    """A topic whose appends wait for no sync, and the id of one whose appends do."""
    safe = uuid.UUID(int=8)
    rig = LogRig({TOPIC: ("events", limits()), safe: ("safe", limits(flush_messages=1))}, **configs)
    rig.disk.sync_ms = 5
    return rig, safe


@contextmanager
def failing_syncs(rig: LogRig, path: str) -> Iterator[None]:
    """All is written, and this file cannot be synced."""
    checked = rig.disk.faults.check

    def check(effect: FileEffect) -> None:
        checked(effect)
        if isinstance(effect, FileSync) and effect.path == path:
            raise OSError(errno.EIO, "broken", path)

    rig.disk.faults.check = check  # type: ignore[method-assign]
    yield
    rig.disk.faults.check = checked  # type: ignore[method-assign]


def write_checkpoint(rig: LogRig) -> None:
    """Write one, without a failure."""
    failures = rig.logs.failures
    rig.logs.checkpoints.write_if_due()
    rig.run()
    rig.advance(20)
    assert (rig.logs.failures, rig.logs.error) == (failures, None)
    assert {A, B} & rig.disk.files.keys()


def lose_pages(rig: LogRig, *lost: int) -> None:
    """Cut the power: of what was not synced all is there but these pages of the first file."""
    pages = iter(range(rig.disk._durable_bytes[FIRST] // PAGE_BYTES, 1 << 30))
    rig.disk.cut_power(FOLDER, lambda size_bytes: size_bytes, lambda: next(pages) not in lost)


def test_a_checkpoint_after_a_failed_sync_notes_no_more_as_synced_than_the_file_has() -> None:
    rig, safe = synced_topic_rig()
    rig.append(records(b"a"))
    with failing_syncs(rig, FIRST):
        told = rig.append(records(b"x" * 5_000), topic=safe)
        rig.advance(10)
    assert told == [False]
    rig.advance(MEND_MS + 20)
    size_bytes = len(rig.disk.files[FIRST])
    write_checkpoint(rig)
    rig.append(records(b"y" * 1_000))  # not synced; behind it the note of what is
    rig.append(records(b"z"))
    lose_pages(rig, size_bytes // PAGE_BYTES + 1)
    assert rig.crash().refused is None
    assert rig.values() == {0: b"a"}


def test_a_checkpoint_after_a_failed_sync_syncs_no_file_that_was_taken_back() -> None:
    rig, safe = synced_topic_rig(log_segment_bytes=1 << 20)
    rig.append(records(b"a" * 700_000))
    with failing_syncs(rig, SECOND):
        partition, data = rig.partition(topic=safe), records(b"x" * 200_000)
        for _ in range(2):  # in one write: what of it is in the first file is synced before the second
            rig.logs.append(partition, memoryview(data), scan(data)[0], 0, rig.wall_ms)
        rig.run()
        rig.advance(20)
        assert SECOND in rig.disk.files
    rig.advance(MEND_MS + 20)
    assert SECOND not in rig.disk.files
    write_checkpoint(rig)
    assert rig.append(records(b"b")) == [True]


def test_a_file_that_could_not_be_begun_leaves_the_one_before_to_be_synced_at_the_stop() -> None:
    rig = LogRig(log_segment_bytes=1 << 20)
    rig.append(records(b"a" * 700_000))
    with failing_syncs(rig, FIRST):
        assert rig.append(records(b"b" * 700_000)) == [False]
    rig.advance(MEND_MS)
    assert rig.logs.error is None
    rig.logs.close(lambda: None)
    rig.run()
    assert rig.crash(power=True).refused is None
    assert list(rig.values()) == [0]


def test_a_stop_whose_last_sync_fails_writes_no_checkpoint_of_what_a_power_cut_takes() -> None:
    rig = LogRig()
    rig.append(records(b"a"))
    closed: list[bool] = []
    with failing_syncs(rig, FIRST):
        rig.logs.close(lambda: closed.append(True))
        rig.run()
    assert closed
    assert rig.crash(power=True).refused is None


def test_a_sync_that_fails_while_the_log_is_being_mended_is_mended_too() -> None:
    """Its bytes are cut off the file as well before appends are taken."""
    rig, safe = synced_topic_rig()
    rig.append(records(b"a"))
    rig.disk.sync_ms = MEND_MS + 200
    with failing_syncs(rig, FIRST):
        synced = rig.append(records(b"b"), topic=safe)
    rig.disk.faults.fail(FOLDER, errno.ENOSPC)
    assert rig.append(records(b"c")) == [False]
    rig.disk.faults.heal(FOLDER)
    rig.advance(MEND_MS)
    assert synced == [], "the mending is under way"
    rig.advance(10 * MEND_MS)
    assert (synced, rig.logs.error) == ([False], None)
    assert rig.append(records(b"d")) == [True]
    assert (rig.values(), rig.values(topic=safe)) == ({0: b"a", 1: b"d"}, {})
