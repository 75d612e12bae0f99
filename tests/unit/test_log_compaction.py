"""Compaction: of each key the newest record stays, at its offset; and what else may go, and
when."""

from __future__ import annotations

import errno
from pkgutil import resolve_name
from typing import Any

import pytest

from fairlead_kafka.broker.log.cleaner import ASIDE_MS
from fairlead_kafka.records import Compression, decode, scan
from tests.support.log_rig import TOPIC, LogRig, limits, records

DAY_MS = 86_400_000
LOOK_MS = 15_000
Keyed = tuple[bytes | None, bytes | None]


def keyed(*pairs: Keyed, **options: Any) -> bytes:
    return records(*[value for _key, value in pairs], keys=[key for key, _value in pairs], **options)


def rig_with(broker: dict[str, Any] | None = None, **configs: Any) -> LogRig:
    given = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0, **configs}
    return LogRig({TOPIC: ("events", limits(**given))}, **(broker or {}))


def compacted(rig: LogRig) -> dict[int, bytes | None]:
    """The records after the cleaner had its time; a crash must not change them."""
    rig.advance(LOOK_MS + 1)
    after = rig.values()
    rig.crash()
    assert rig.values() == after
    return after


def test_of_each_key_the_newest_record_stays_at_its_offset() -> None:
    rig = rig_with()
    rig.append(keyed((b"a", b"1"), (b"b", b"2"), (b"a", b"3")))
    rig.append(keyed((b"b", b"4"), (b"c", b"5")))
    rig.append(keyed((b"c", b"6")))
    before = rig.data()
    assert compacted(rig) == {2: b"3", 3: b"4", 4: b"5", 5: b"6"}, "the newest batch counts for nothing yet"
    headers = scan(rig.data())
    assert [(header.base_offset, header.last_offset) for header in headers] == [(0, 2), (3, 4), (5, 5)]
    assert headers[0].count == 1
    assert len(rig.data()) < len(before)
    assert rig.partition().log_end == 6


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_keeps_its_codec_timestamps_and_headers_offsets(codec: str) -> None:
    rig = rig_with()
    rig.append(
        keyed((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), compression=Compression.named(codec), at_ms=1000)
    )
    rig.append(keyed((b"a", b"4")))
    rig.append(keyed((b"z", b"5")))
    assert compacted(rig) == {1: b"2", 2: b"3", 3: b"4", 4: b"5"}
    header = scan(rig.data())[0]
    assert header.compression == Compression.named(codec)
    assert decode(rig.data()).timestamps_ms.tolist()[:2] == [1000, 1000]


def test_records_without_a_key_go() -> None:
    rig = rig_with()
    rig.append(keyed((None, b"1"), (b"a", b"2")))
    rig.append(keyed((None, b"3")))
    rig.append(keyed((b"b", b"4")))
    assert compacted(rig) == {1: b"2", 3: b"4"}
    assert len(scan(rig.data())) == 2, "a batch without a record goes"


def test_a_tombstone_goes_a_while_after_compaction_came_to_it() -> None:
    rig = rig_with(delete_retention_ms=DAY_MS)
    rig.append(keyed((b"a", b"1")))
    rig.append(keyed((b"a", None), (b"b", b"2")))
    rig.append(keyed((b"c", b"3")))
    assert compacted(rig) == {1: None, 2: b"2", 3: b"3"}
    rig.append(keyed((b"c", b"4")))
    assert compacted(rig) == {1: None, 2: b"2", 3: b"3", 4: b"4"}
    rig.now_ms += DAY_MS
    rig.append(keyed((b"d", b"5")))
    assert compacted(rig) == {2: b"2", 4: b"4", 5: b"5"}


def test_a_tombstone_goes_though_its_partition_is_compacted_all_the_time() -> None:
    rig = rig_with(delete_retention_ms=DAY_MS)
    rig.append(keyed((b"a", None)))
    for _ in range(40):
        rig.append(keyed((b"b", b"x")))
        rig.advance(DAY_MS / 30)
        assert len(rig.partition().passes) < 12
    assert 0 not in rig.values()
    rig.crash()
    assert 0 not in rig.values()


def test_only_records_of_some_age_are_compacted() -> None:
    rig = rig_with(min_compaction_lag_ms=60_000)
    rig.append(keyed((b"a", b"1"), at_ms=rig.wall_ms))
    rig.append(keyed((b"a", b"2"), at_ms=rig.wall_ms))
    rig.append(keyed((b"b", b"3"), at_ms=rig.wall_ms))
    assert compacted(rig) == {0: b"1", 1: b"2", 2: b"3"}
    rig.advance(60_000)
    assert compacted(rig) == {1: b"2", 2: b"3"}


def test_a_partition_waits_until_enough_of_it_is_new_or_too_old() -> None:
    rig = rig_with(min_cleanable_dirty_ratio=0.5, max_compaction_lag_ms=3_600_000)
    for number in range(4):
        rig.append(keyed((b"%d" % number, b"x"), at_ms=rig.wall_ms))
    compacted(rig)
    rig.append(keyed((b"1", b"y"), at_ms=rig.wall_ms))
    rig.append(keyed((b"2", b"z"), at_ms=rig.wall_ms))
    assert len(compacted(rig)) == 6, "a third is new"
    rig.advance(3_600_000)
    assert sorted(compacted(rig)) == [0, 2, 3, 4, 5], "offset 5 is the newest batch and shadows nothing yet"


def test_retention_applies_only_where_the_policy_says_delete() -> None:
    for policy, start in (("compact", 0), ("compact,delete", 2), ("delete", 2)):
        rig = rig_with(cleanup_policy=policy, retention_ms=1000)
        rig.append(keyed((b"a", b"1")))
        rig.append(keyed((b"b", b"2")))
        rig.logs.retain(rig.wall_ms + 5000, DAY_MS)
        assert rig.partition().log_start == start, policy


def test_a_topic_that_is_not_compacted_is_left_alone() -> None:
    rig = rig_with(cleanup_policy="delete")
    for _ in range(3):
        rig.append(keyed((b"a", b"1")))
    assert len(compacted(rig)) == 3
    rig = rig_with({"log_cleaner_enable": False})
    for _ in range(3):
        rig.append(keyed((b"a", b"1")))
    assert len(compacted(rig)) == 3


def test_a_partition_with_more_keys_than_memory_is_compacted_in_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead_kafka.broker.log.cleaner.PIECE_BYTES", 300)
    rig = rig_with({"log_cleaner_dedupe_buffer_size": 1 << 20})
    monkeypatch.setattr("fairlead_kafka.broker.log.compaction.KEY_OVERHEAD_BYTES", 200_000)
    for text in (b"x", b"y"):
        for number in range(20):
            rig.append(keyed((b"%d" % number, text)))
    rig.append(keyed((b"end", b"z")))
    assert compacted(rig) == dict.fromkeys(range(20, 40), b"y") | {40: b"z"}


# --- Transactions and producers


def written(rig: LogRig, producer_id: int, sequence: int, *pairs: Keyed) -> None:
    rig.append(
        keyed(*pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    )


def test_aborted_records_go_and_shadow_nothing() -> None:
    rig = rig_with()
    written(rig, 1, 0, (b"a", b"kept"))
    rig.mark(1, committed=True)
    written(rig, 2, 0, (b"a", b"aborted"))
    rig.mark(2, committed=False)
    written(rig, 2, 1, (b"b", b"kept too"))
    rig.mark(2, committed=True)
    rig.append(keyed((b"z", b"end")))
    assert compacted(rig) == {0: b"kept", 4: b"kept too", 6: b"end"}
    assert rig.partition().last_stable_offset == 7


def test_what_belongs_to_an_open_transaction_is_not_touched() -> None:
    rig = rig_with()
    rig.append(keyed((b"a", b"1")))
    written(rig, 1, 0, (b"a", b"2"))
    rig.append(keyed((b"a", b"3")))
    rig.append(keyed((b"a", b"4")))
    assert compacted(rig) == {0: b"1", 1: b"2", 2: b"3", 3: b"4"}


def test_a_marker_goes_with_tombstones_once_nothing_of_its_transaction_is_left() -> None:
    rig = rig_with(delete_retention_ms=DAY_MS)
    written(rig, 1, 0, (b"a", b"1"))
    rig.mark(1, committed=True)
    written(rig, 1, 1, (b"b", b"2"))
    rig.mark(1, committed=True)
    rig.append(keyed((b"a", b"3")))
    rig.append(keyed((b"z", b"4")))
    compacted(rig)
    rig.now_ms += DAY_MS
    rig.append(keyed((b"y", b"5")))
    assert compacted(rig) == {2: b"2", 4: b"3", 5: b"4", 6: b"5"}
    assert [header.base_offset for header in scan(rig.data()) if header.control] == [3]


def aborted(rig: LogRig) -> list[tuple[int, int, int]]:
    """(producer id, first offset, marker's offset) of what a reader of everything is told."""
    partition = rig.partition()
    return [one[:3] for one in partition.aborted(partition.log_start, partition.log_end)]


def test_what_was_aborted_ends_with_its_last_batch_and_hides_nothing_of_its_producer_after() -> None:
    """Fault 1 of issue 16: the marker goes, and with it what a Fetch says of its transaction."""
    rig = rig_with(delete_retention_ms=DAY_MS)
    written(rig, 1, 0, (b"a", b"bad"))
    rig.mark(1, committed=False)
    for number in range(3):
        written(rig, 1, number + 1, (b"k%d" % number, b"good"))
        rig.mark(1, committed=True)
    rig.append(keyed((b"z", b"1")))
    assert aborted(rig) == [(1, 0, 1)]
    for _ in range(3):
        rig.append(keyed((b"z", b"2")))
        rig.advance(LOOK_MS + 1)
        assert aborted(rig) == []
        running = aborted(rig)
        rig.now_ms += DAY_MS
        rig.crash()
        assert aborted(rig) == running
    control = [header.base_offset for header in scan(rig.data()) if header.control]
    assert 1 not in control, "the marker is gone"
    assert control, "others are not"


def test_an_aborted_batch_that_stays_for_its_sequence_stays_aborted() -> None:
    rig = rig_with(delete_retention_ms=1)
    written(rig, 1, 0, (b"a", b"1"))
    written(rig, 1, 1, (b"a", b"2"))
    rig.mark(1, committed=False)
    for number in range(4):
        rig.append(keyed((b"z", b"%d" % number)))
        rig.advance(LOOK_MS + 1)
        assert aborted(rig) in ([(1, 0, 2)], [(1, 1, 2)])
    assert aborted(rig) == [(1, 1, 2)], "the first batch is gone, the newest is empty"
    assert [(header.base_offset, header.count) for header in scan(rig.data())][:2] == [(1, 0), (2, 1)]
    rig.crash()
    assert aborted(rig) == [(1, 1, 2)]


def test_another_replica_learns_a_transactional_producers_next_sequence_from_what_compaction_left() -> None:
    rig = rig_with()
    for sequence in range(3):
        written(rig, 1, sequence, (b"a", b"x"))
        rig.mark(1, committed=True)
    rig.append(keyed((b"a", b"y")))
    rig.append(keyed((b"z", b"z")))
    compacted(rig)
    follower = LogRig({TOPIC: ("events", limits())})
    for header in scan(rig.data()):
        one = rig.data()[header.position : header.stop]
        follower.logs.append_replica(follower.partition(), memoryview(one), scan(one)[0], 0, follower.wall_ms)
    entry = follower.partition().producers.get(1)
    assert entry is not None
    assert [batch.last_sequence for batch in entry.batches] == [2]


def test_retention_and_truncation_leave_what_the_batches_say() -> None:
    rig = LogRig()
    written(rig, 1, 0, (b"a", b"1"))
    written(rig, 2, 0, (b"b", b"1"))
    written(rig, 1, 1, (b"a", b"2"))
    rig.mark(1, committed=False)
    written(rig, 2, 1, (b"b", b"2"))
    rig.logs.move_start(rig.partition(), 2)
    rig.run()
    partition = rig.partition()
    assert aborted(rig) == [(1, 2, 3)]
    assert partition.transactions is not None
    assert partition.transactions.open == {2: 4}
    rig.run()
    rig.crash()
    assert (aborted(rig), rig.partition().last_stable_offset) == ([(1, 2, 3)], 4)
    rig.logs.truncate(rig.partition(), 3)
    assert aborted(rig) == []
    assert rig.partition().last_stable_offset == 2
    rig.run()
    rig.crash()
    assert (aborted(rig), rig.partition().last_stable_offset) == ([], 2)
    rig.logs.restart(rig.partition(), 9)
    assert rig.partition().last_stable_offset == 9


def test_a_batch_written_where_one_was_cut_is_not_taken_for_the_one_that_was_being_moved() -> None:
    rig = LogRig(log_segment_bytes=1 << 20)
    rig.append(records(b"stays"), number=1)
    rig.append(records(b"old"))
    rig.append(records(b"x" * 900_000), number=2)
    rig.append(records(b"y" * 300_000), number=2)
    rig.logs.move_start(rig.partition(2), 1)
    rig.disk.append_ms = 5
    rig.disk.sync_ms = 5
    rig.advance(LOOK_MS + 6)
    rig.logs.truncate(rig.partition(), 0)
    rig.append(records(b"new"), epoch=1)
    rig.advance(100)
    assert rig.values() == {0: b"new"}
    rig.crash()
    assert rig.values() == {0: b"new"}


def test_the_newest_batch_of_a_producer_stays_though_it_is_empty() -> None:
    rig = rig_with()
    for sequence in range(3):
        rig.append(keyed((b"a", b"x"), producer_id=9, producer_epoch=4, base_sequence=sequence))
    rig.append(keyed((b"a", b"y")))
    rig.append(keyed((b"z", b"z")))
    assert compacted(rig) == {3: b"y", 4: b"z"}
    headers = scan(rig.data())
    assert [(header.base_offset, header.base_sequence, header.count) for header in headers] == [
        (2, 2, 0),
        (3, -1, 1),
        (4, -1, 1),
    ]
    follower = LogRig({TOPIC: ("events", limits())})
    for header in headers:
        one = rig.data()[header.position : header.stop]
        follower.logs.append_replica(follower.partition(), memoryview(one), scan(one)[0], 0, follower.wall_ms)
    entry = follower.partition().producers.get(9)
    assert entry is not None
    assert (entry.epoch, entry.batches[-1].last_sequence) == (4, 2)
    rig.append(keyed((b"a", b"w"), producer_id=9, producer_epoch=4, base_sequence=3))
    rig.append(keyed((b"b", b"end")))
    rig.append(keyed((b"c", b"end")))
    compacted(rig)
    assert [header.base_offset for header in scan(rig.data())] == [4, 5, 6, 7]


# --- Work that is interrupted


def test_a_disk_that_fails_leaves_everything_as_it_was() -> None:
    rig = rig_with()
    for _ in range(3):
        rig.append(keyed((b"a", b"x")))
    rig.disk.faults.fail("/log", errno.ENOSPC)
    rig.advance(LOOK_MS + 10)
    assert sorted(rig.values()) == [0, 1, 2]
    rig.disk.faults.heal("/log")
    rig.advance(2_000)
    assert sorted(compacted(rig)) == [1, 2]


def test_a_file_of_which_little_is_alive_is_rewritten_and_goes() -> None:
    rig = LogRig(log_segment_bytes=1 << 20)
    rig.append(records(b"small"), number=1)
    rig.append(records(b"x" * 900_000))
    rig.append(records(b"y" * 300_000))
    rig.logs.move_start(rig.partition(), 1)
    rig.run()
    first = "/log/000000000001.log"
    assert first in rig.disk.files
    rig.advance(LOOK_MS + 10)
    assert first not in rig.disk.files
    for _ in range(2):
        assert rig.values(1) == {0: b"small"}
        assert [len(value or b"") for value in rig.values().values()] == [300_000]
        rig.crash()


def test_what_is_found_damaged_is_left_alone_and_the_rest_is_cleaned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig = rig_with()
    for number in (1, 0):
        for value in (b"first", b"second", b"third"):
            rig.append(keyed((b"a", value)), number=number)
    path = "/log/000000000001.log"
    rig.logs.cache._limit_bytes = 0
    rig.logs.cache.rewind(0, 0)
    rig.append(keyed((b"z", b"z")), number=2)
    position = rig.disk.files[path].index(b"second")
    rig.disk.files[path][position] ^= 1
    rig.advance(2 * LOOK_MS + 1)
    assert "events-1: old records cannot be cleaned" in caplog.text
    assert caplog.text.count("cannot be cleaned") == 1
    assert sorted(rig.values()) == [1, 2]
    assert len(rig.partition(1).index) == 3


# --- What raises


def fail_once(patch: pytest.MonkeyPatch, place: str) -> None:
    """The function at `place` in the log raises at its first call."""
    path = f"fairlead_kafka.broker.log.{place}"
    sound, raised = resolve_name(path), list[bool]()

    def function(*arguments: Any) -> Any:
        if raised:
            return sound(*arguments)
        raised.append(True)
        raise ZeroDivisionError

    patch.setattr(path, function)


@pytest.mark.parametrize(
    "place",
    [
        "cleaner.Latest.add",
        "cleaner.BatchCompactor.batch",
        "cleaner.Cleaner.move",
        "cleaner.passes_after",
        "moving.pack_note",
    ],
)
def test_a_partition_whose_compaction_raises_is_put_aside_and_others_are_compacted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    rig = rig_with()
    rig.errors_allowed = 1
    for number in (0, 1):
        for value in (b"first", b"second", b"third"):
            rig.append(keyed((b"a", value)), number=number)
    with monkeypatch.context() as patch:
        fail_once(patch, place)
        rig.advance(LOOK_MS + 100)
    assert "events-0: old records cannot be cleaned" in caplog.text
    assert sorted(rig.values(1)) == [1, 2], "at once"
    rig.append(keyed((b"a", b"fourth")))
    rig.advance(LOOK_MS)
    assert 2 in rig.values()
    rig.advance(ASIDE_MS)
    assert sorted(rig.values()) == [2, 3]
    assert rig.guard.errors == 1


def test_what_comes_round_comes_again_after_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = rig_with(
        {"log_flush_offset_checkpoint_interval_ms": LOOK_MS},
    )
    rig.errors_allowed = 2
    for value in (b"first", b"second", b"third"):
        rig.append(keyed((b"a", value)))
    with monkeypatch.context() as patch:
        fail_once(patch, "cleaner.due")
        fail_once(patch, "checkpoints.Checkpoints._marks")
        rig.advance(LOOK_MS + 1)
    assert rig.guard.errors == 2
    before = rig.disk.files.copy()
    rig.advance(LOOK_MS)
    assert sorted(rig.values()) == [1, 2]
    assert any("checkpoint" in path for path in rig.disk.files.keys() - before.keys())
