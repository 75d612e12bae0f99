"""The file that is being written to gives its room back as well: retention and compaction of idle
topics free the disk."""

from __future__ import annotations

from fairlead_kafka.broker.log.cleaner import ROLL_MIN_BYTES
from tests.support.log_rig import FOLDER, TOPIC, LogRig, limits, records

RETENTION_MS = 60_000
LOOK_MS = 15_000
PIECE_BYTES = ROLL_MIN_BYTES // 8
FIRST = f"{FOLDER}/000000000001.log"


def rig_with(**configs: object) -> LogRig:
    return LogRig({TOPIC: ("events", limits(**configs))})


def fill(rig: LogRig, batches: int, number: int = 0) -> None:
    for _ in range(batches):
        rig.append(records(b"x" * PIECE_BYTES, keys=[b"one key"], at_ms=rig.wall_ms), number=number)


def used_bytes(rig: LogRig) -> int:
    """What the log's files take on the disk, without its checkpoints."""
    return sum(len(data) for path, data in rig.disk.files.items() if path.endswith(".log"))


def expire(rig: LogRig) -> None:
    rig.advance(RETENTION_MS + 1)
    rig.logs.retain(rig.wall_ms, 86_400_000)
    rig.run()


def test_an_idle_topics_retention_frees_the_disk_though_no_file_was_ever_full() -> None:
    rig = rig_with(retention_ms=RETENTION_MS)
    fill(rig, 20)
    assert used_bytes(rig) > 2 * ROLL_MIN_BYTES
    expire(rig)
    rig.advance(2 * LOOK_MS)
    assert used_bytes(rig) < 1_000
    for _ in range(3):
        partition = rig.partition()
        assert (partition.log_start, partition.log_end, rig.values()) == (20, 20, {})
        assert rig.crash(power=True).refused is None
    assert rig.append(records(b"next")) == [True]
    assert rig.values() == {20: b"next"}


def test_what_little_lives_in_the_file_is_kept() -> None:
    rig = rig_with(retention_ms=RETENTION_MS)
    fill(rig, 20)
    rig.advance(RETENTION_MS)
    fill(rig, 1, number=1)
    expire_soon = rig.wall_ms + 1
    rig.logs.retain(expire_soon, 86_400_000)
    rig.run()
    rig.advance(3 * LOOK_MS)
    assert FIRST not in rig.disk.files
    assert used_bytes(rig) < 2 * PIECE_BYTES
    for _ in range(2):
        assert list(rig.values(1)) == [0]
        rig.crash(power=True)


def test_compaction_of_a_topic_that_fills_no_file_bounds_what_it_takes() -> None:
    rig = rig_with(cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)
    for _ in range(5):
        fill(rig, 12)
        rig.advance(3 * LOOK_MS)
    assert used_bytes(rig) < 2 * ROLL_MIN_BYTES, "60 batches came, and two of them count"
    assert max(rig.values()) == 59
    rig.crash(power=True)
    assert max(rig.values()) == 59


def test_a_file_that_is_small_or_mostly_alive_is_left_as_it_is() -> None:
    rig = rig_with(retention_ms=RETENTION_MS)
    fill(rig, 4)
    expire(rig)
    rig.advance(3 * LOOK_MS)
    assert list(rig.disk.files).count(FIRST) == 1
    fill(rig, 12)
    rig.advance(3 * LOOK_MS)
    assert FIRST in rig.disk.files


def test_a_disk_that_fails_meanwhile_loses_nothing() -> None:
    rig = rig_with(retention_ms=RETENTION_MS)
    fill(rig, 20)
    expire(rig)
    rig.disk.faults.fail(FOLDER, 28)
    rig.advance(2 * LOOK_MS)
    rig.disk.faults.heal(FOLDER)
    rig.advance(3 * LOOK_MS)
    assert used_bytes(rig) < 1_000
    assert rig.append(records(b"next")) == [True]
    rig.crash(power=True)
    assert rig.values() == {20: b"next"} or rig.partition().log_end == 20
