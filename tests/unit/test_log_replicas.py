"""What replication needs of the log: batches as the leader has them, truncation, a new start, the
ends of epochs."""

from __future__ import annotations

import logging

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from tests.support.log_rig import TOPIC, WALL_MS, LogRig, limits, records


@pytest.fixture
def rig() -> LogRig:
    return LogRig()


def state(rig: LogRig) -> tuple[int, int, int, int]:
    partition = rig.partition()
    return partition.log_start, partition.high_watermark, partition.written_end, partition.log_end


def test_a_replica_keeps_offsets_and_epochs_of_its_leader(rig: LogRig) -> None:
    rig.replicate(records(b"a", b"b"), 0, epoch=3)
    rig.replicate(records(b"c"), 2, epoch=5)
    for _ in range(2):
        assert rig.values() == {0: b"a", 1: b"b", 2: b"c"}
        assert state(rig) == (0, 3, 3, 3)
        assert rig.partition().epochs.items() == [(3, 0), (5, 2)]
        rig.crash()


def test_a_replica_may_have_gaps_where_its_leader_compacted(rig: LogRig) -> None:
    rig.replicate(records(b"a"), 4)
    rig.replicate(records(b"b"), 9)
    rig.crash()
    assert rig.values() == {4: b"a", 9: b"b"}
    assert rig.partition().log_end == 10


@pytest.mark.parametrize(
    ("base_offset", "epoch", "leader_epoch", "damage", "code"),
    [
        (0, 0, 0, False, ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, 3, 2, False, ErrorCode.FENCED_LEADER_EPOCH),
        (1, 0, 0, True, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_a_batch_that_cannot_follow_is_refused(
    rig: LogRig, base_offset: int, epoch: int, leader_epoch: int, damage: bool, code: ErrorCode
) -> None:
    rig.replicate(records(b"a"), 0)
    data = bytearray(records(b"b"))
    data[-3] ^= damage
    with pytest.raises(BrokerError) as error:
        rig.replicate(bytes(data), base_offset, epoch, leader_epoch=leader_epoch)
    assert error.value.code == code
    assert rig.values() == {0: b"a"}


def test_no_more_leader_epochs_are_kept_than_the_log_has_records_of(rig: LogRig) -> None:
    for epoch in range(100):
        rig.append(records(b"%d" % epoch), epoch=epoch)
        rig.logs.move_start(rig.partition(), max(0, epoch - 2))
        assert len(rig.partition().epochs.items()) <= 3
    for _ in range(2):
        assert rig.partition().epochs.items() == [(offset, offset) for offset in rig.values()]
        rig.crash()


def test_a_truncation_is_done_again_at_recovery_in_its_turn(rig: LogRig) -> None:
    for number in range(4):
        rig.append(records(b"%d" % number), epoch=number)
    rig.append(records(b"other"), number=1)
    rig.logs.truncate(rig.partition(), 2)
    assert state(rig) == (0, 2, 2, 2)
    rig.append(records(b"new", b"newer"), epoch=7)
    for _ in range(2):
        assert rig.values() == {0: b"0", 1: b"1", 2: b"new", 3: b"newer"}
        assert rig.values(number=1) == {0: b"other"}
        assert state(rig) == (0, 4, 4, 4)
        assert rig.partition().epochs.items() == [(0, 0), (1, 1), (7, 2)]
        rig.crash()


def test_a_batch_that_holds_the_new_end_goes_whole(rig: LogRig) -> None:
    rig.append(records(b"a"))
    rig.append(records(b"b", b"c", b"d"))
    rig.logs.truncate(rig.partition(), 3)
    assert state(rig) == (0, 1, 1, 1)
    rig.logs.truncate(rig.partition(), 9)
    assert state(rig) == (0, 1, 1, 1), "beyond the end there is nothing to cut"


def test_a_cut_below_the_high_watermark_is_reported(rig: LogRig, caplog: pytest.LogCaptureFixture) -> None:
    rig.append(records(b"a"))
    rig.append(records(b"b"))
    rig.partition().high_watermark = 1
    with caplog.at_level(logging.ERROR):
        rig.logs.truncate(rig.partition(), 1)
        assert not caplog.records
        rig.logs.truncate(rig.partition(), 0)
    assert "events-0: cut to offset 0, below the high watermark 1" in caplog.text


def test_what_is_being_written_when_its_partition_is_cut_counts_as_far_as_it_stays(rig: LogRig) -> None:
    rig.disk.append_ms = 5
    rig.append(records(b"a"))
    rig.append(records(b"b"))
    rig.logs.truncate(rig.partition(), 1)
    rig.append(records(b"c"), epoch=1)
    rig.advance(6)
    assert rig.partition().written_end == 1, "c is still being written"
    rig.advance(20)
    assert rig.partition().written_end == 2
    assert rig.values() == {0: b"a", 1: b"c"}
    rig.crash()
    assert rig.values() == {0: b"a", 1: b"c"}


def test_a_restart_drops_everything_and_begins_elsewhere(rig: LogRig) -> None:
    rig.append(records(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
    rig.logs.restart(rig.partition(), 1000)
    assert state(rig) == (1000, 1000, 1000, 1000)
    assert len(rig.partition().producers) == 0
    rig.run()
    rig.crash()
    assert state(rig) == (1000, 1000, 1000, 1000)
    rig.replicate(records(b"b"), 1000)
    rig.crash()
    assert rig.values() == {1000: b"b"}


def test_a_restart_while_something_is_being_written_leaves_nothing_of_it(rig: LogRig) -> None:
    rig.disk.append_ms = 5
    rig.append(records(b"a"))
    rig.logs.restart(rig.partition(), 0)
    rig.advance(20)
    assert state(rig) == (0, 0, 0, 0)
    rig.crash()
    assert state(rig) == (0, 0, 0, 0)


def test_the_end_of_an_epoch_is_where_the_next_begins(rig: LogRig) -> None:
    partition = rig.partition()
    assert partition.epoch_end(0) == (-1, -1)
    rig.append(records(b"a", b"b"), epoch=2)
    rig.append(records(b"c"), epoch=5)
    assert [partition.epoch_end(epoch) for epoch in (1, 2, 4, 5, 6)] == [
        (1, 0),
        (2, 2),
        (2, 2),
        (5, 3),
        (-1, -1),
    ]
    rig.logs.truncate(partition, 2)
    assert [partition.epoch_end(epoch) for epoch in (2, 5)] == [(2, 2), (-1, -1)]


def sequenced(
    first: int, count: int = 1, epoch: int = 0, transactional: bool = False, at_ms: int = WALL_MS
) -> bytes:
    return records(
        *[b"x"] * count,
        at_ms=at_ms,
        producer_id=9,
        producer_epoch=epoch,
        base_sequence=first,
        transactional=transactional,
    )


def test_producers_are_what_the_rest_of_the_log_says_after_a_cut(rig: LogRig) -> None:
    for number in range(8):
        rig.append(sequenced(number))
    rig.append(sequenced(0, epoch=1))
    rig.logs.truncate(rig.partition(), 6)
    (producer_id, entry) = rig.partition().producers.items()[0]
    assert (producer_id, entry.epoch, [known.base_sequence for known in entry.batches]) == (
        9,
        0,
        [1, 2, 3, 4, 5],
    )
    rig.logs.truncate(rig.partition(), 0)
    assert rig.partition().producers.items() == []


def test_a_producers_newest_timestamp_is_its_records_while_they_are_in_the_log(rig: LogRig) -> None:
    def newest() -> int:
        partition = rig.partition()
        (entry,) = (entry for key, entry in partition.producers.items() if key == 9)
        return partition.newest_timestamp_ms(9, entry)

    rig.append(sequenced(0, transactional=True, at_ms=1_000))
    rig.append(sequenced(1, transactional=True, at_ms=500))
    rig.append(records(b"another's"))
    assert newest() == 500, "the newest batch's, though an older one has a later time"
    rig.logs.truncate(rig.partition(), 1)
    assert newest() == 1_000
    rig.run()
    rig.crash()
    assert newest() == 1_000
    rig.advance(7)
    rig.mark(9, committed=True)
    assert newest() == rig.wall_ms, "a marker's"
    rig.append(sequenced(1, at_ms=2_000))
    appended_ms = rig.wall_ms
    rig.advance(7)
    rig.logs.move_start(rig.partition(), rig.partition().log_end)
    assert newest() == appended_ms, "of what is gone from the log, when it was appended"


def test_a_transaction_whose_end_is_cut_off_is_open_again(rig: LogRig) -> None:
    partition = rig.partition()
    rig.append(sequenced(0, transactional=True))
    rig.mark(9, committed=True)
    rig.append(sequenced(1, transactional=True))
    rig.mark(9, committed=False)
    assert (partition.last_stable_offset, len(partition.aborted(0, 4))) == (4, 1)
    rig.logs.truncate(partition, 3)
    assert (partition.last_stable_offset, partition.aborted(0, 4)) == (2, [])
    rig.logs.truncate(partition, 1)
    assert partition.last_stable_offset == 0
    rig.logs.truncate(partition, 0)
    assert (partition.last_stable_offset, partition.in_transaction(9)) == (0, False)


def test_written_is_told_when_it_moves_and_after_the_sync_where_one_is_asked_for() -> None:
    rig = LogRig({TOPIC: ("events", limits(flush_messages=2))})
    rig.disk.sync_ms = 5
    rig.append(records(b"a"))
    assert rig.moved == [("events-0", 1)]
    told = rig.append(records(b"b"))
    assert (rig.partition().written_end, told) == (1, [])
    rig.advance(6)
    assert (rig.moved[-1], told) == (("events-0", 2), [True])


def test_what_is_written_is_synced_within_the_time_its_topic_gives() -> None:
    other = TOPIC.__class__(int=8)
    rig = LogRig({TOPIC: ("events", limits(flush_ms=500)), other: ("lazy", limits(flush_ms=1000))})
    path = "/log/000000000001.log"
    assert rig.append(records(b"a"), topic=other) == [True], "nobody waits for it"
    rig.advance(300)
    rig.append(records(b"b"))
    synced_bytes = len(rig.disk.files[path])
    rig.advance(499)
    rig.crash(power=True)
    assert path not in rig.disk.files
    rig.append(records(b"a"), topic=other)
    rig.advance(300)
    rig.append(records(b"b"))
    rig.advance(501)
    rig.crash(power=True)
    assert len(rig.disk.files[path]) == synced_bytes
    assert (rig.values(topic=other), rig.values()) == ({0: b"a"}, {0: b"b"})


def test_an_idle_partition_is_small(rig: LogRig) -> None:
    one, other = rig.partition(1), rig.partition(2)
    assert one.index is other.index
    assert one.producers._entries is other.producers._entries
    rig.append(records(b"a"), number=1)
    assert (len(one.index), len(other.index)) == (1, 0)
