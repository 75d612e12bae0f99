"""Brokers that replicate, in virtual time: what is acknowledged, what survives, and how logs that
parted come together again."""

from __future__ import annotations

import errno
import gc
from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.replica_rig import EVENTS, TOPIC, ReplicaRig

LAG_MS = 10_000
AWAITING_REPLICAS = {f"fairlead_kafka.broker.api.{name}" for name in ("k00_produce", "k21_delete_records")}
"""The modules of requests that wait for replicas."""


def delete_before(rig: ReplicaRig, offset: int) -> int:
    """DeleteRecords; the low watermark it answers."""
    asked = [Message(name=TOPIC, partitions=[Message(partition_index=0, offset=offset)])]
    answer = rig.ask(rig.image.leader, ApiKey.DELETE_RECORDS, 2, topics=asked, timeout_ms=1_000)
    return int(answer.topics[0].partitions[0].low_watermark)


@pytest.fixture
def rig() -> Iterator[ReplicaRig]:
    rig = ReplicaRig({"min.insync.replicas": "2"}, config={"replica.lag.time.max.ms": LAG_MS})
    yield rig
    rig.close()


def test_what_is_acknowledged_to_all_is_on_every_replica_in_sync(rig: ReplicaRig) -> None:
    rig.must_put(b"a", b"b")
    rig.must_put(b"c")
    assert rig.ends() == {0: 3, 1: 3, 2: 3}
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)


def test_acks_all_waits_for_the_replicas_in_sync_and_acks_one_does_not(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(0, 1)
    waiting = rig.sending(b"b", timeout_ms=60_000)
    assert rig.put(b"c", acks=1) == ErrorCode.NONE
    rig.host.advance(500)
    assert waiting.answer is None
    assert rig.values(EVENTS) == [b"a"], "nobody reads what could still be lost"
    rig.heal(0, 1)
    assert rig.answered(waiting).error_code == ErrorCode.NONE
    assert rig.values(EVENTS) == [b"a", b"b", b"c"]


def test_a_wait_for_replicas_ends_with_the_requests_time(rig: ReplicaRig) -> None:
    rig.cut(0, 1)
    waiting = rig.sending(b"a", timeout_ms=300)
    rig.host.advance(299)
    assert waiting.answer is None
    rig.host.advance(1)
    assert rig.answered(waiting).error_code == ErrorCode.REQUEST_TIMED_OUT
    rig.heal(0, 1)
    rig.until(lambda: rig.values(EVENTS) == [b"a"])


def test_an_answered_request_is_freed_at_once(rig: ReplicaRig) -> None:
    """What is in a cycle stays, with all that it holds, until the collector has walked over it."""
    rig.must_put(b"a")
    gc.collect()
    gc.disable()
    try:
        rig.must_put(b"b", b"c")
        assert rig.values(EVENTS) == [b"a", b"b", b"c"]
        assert delete_before(rig, 1) == 1
        rig.cut(0, 1)
        late = rig.sending(b"d", timeout_ms=300)
        rig.host.advance(300)
        assert rig.answered(late).error_code == ErrorCode.REQUEST_TIMED_OUT
        assert delete_before(rig, 2) == 1
        left = [type(each) for each in gc.get_objects() if type(each).__module__ in AWAITING_REPLICAS]
    finally:
        gc.enable()
    assert left == []


def test_the_high_watermark_reaches_the_followers(rig: ReplicaRig) -> None:
    rig.must_put(b"a", b"b")
    rig.until(lambda: [rig.replica(node_id).high_watermark for node_id in (0, 1, 2)] == [2, 2, 2], 100)


def test_a_leaders_death_costs_nothing_that_was_acknowledged(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.must_put(b"b")
    rig.kill(0)
    assert rig.image.leader in (1, 2)
    rig.must_put(b"c")
    assert rig.values(EVENTS) == [b"a", b"b", b"c"]
    rig.start(0)
    rig.until(rig.level)
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)


def test_what_only_a_dead_leader_had_is_cut_when_it_returns(rig: ReplicaRig) -> None:
    rig.must_put(b"kept")
    rig.cut(0, 1, 2)
    rig.put(b"lost", acks=1)
    rig.put(b"lost too", acks=1)
    rig.kill(0)
    rig.heal_all()
    rig.must_put(b"instead")
    rig.start(0)
    rig.until(rig.level)
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)
    assert rig.values(EVENTS) == [b"kept", b"instead"]


def test_a_deposed_leader_that_does_not_know_it_acknowledges_nothing(rig: ReplicaRig) -> None:
    """Its followers drop the partition when they hear of the next leader: they ask on, but what it
    sends does not count."""
    rig.must_put(b"a")
    waiting = rig.sending(b"b", timeout_ms=60_000)
    rig.kill(0)
    assert waiting.answer is None
    rig.until(lambda: waiting.lost)
    assert rig.put(b"c", node_id=1) == ErrorCode.NONE or rig.put(b"c", node_id=2) == ErrorCode.NONE


def test_too_few_replicas_in_sync_refuse_acks_all_and_hide_what_acks_one_writes(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.kill(1)
    rig.must_put(b"b")
    rig.kill(2)
    assert rig.sync() == {0}
    assert rig.put(b"refused") == ErrorCode.NOT_ENOUGH_REPLICAS
    assert rig.put(b"c", acks=1) == ErrorCode.NONE
    assert rig.values(EVENTS) == [b"a", b"b"]
    rig.start(1)
    rig.until(lambda: rig.values(EVENTS) == [b"a", b"b", b"c"])
    rig.must_put(b"d")


def test_replicas_lost_while_a_batch_waits_leave_it_waiting_until_others_join(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(0, 1, 2)
    waiting = rig.sending(b"b", timeout_ms=60_000)
    rig.host.advance(10)
    rig.kill(1)
    rig.kill(2)
    rig.host.advance(100)
    assert rig.sync() == {0}
    assert waiting.answer is None
    rig.heal_all()
    rig.start(2)
    assert rig.answered(waiting).error_code == ErrorCode.NONE


def test_a_lower_min_insync_replicas_lets_waiting_records_through(rig: ReplicaRig) -> None:
    rig.kill(1)
    rig.kill(2)
    rig.put(b"a", acks=1)
    assert rig.values(EVENTS) == []
    rig.controller.alter_topic_configs(
        TOPIC, [ConfigAlteration("min.insync.replicas", AlterOperation.SET, "1")]
    )
    rig.until(lambda: rig.values(EVENTS) == [b"a"])


def test_a_replica_that_lags_leaves_those_in_sync_and_returns_when_it_has_caught_up(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(0, 2)
    waiting = rig.sending(b"b", timeout_ms=60_000)
    rig.host.advance(LAG_MS * 0.9)
    assert rig.sync() == {0, 1, 2}
    rig.until(lambda: rig.sync() == {0, 1}, LAG_MS)
    assert rig.answered(waiting).error_code == ErrorCode.NONE
    rig.heal(0, 2)
    rig.until(rig.level)


def test_a_stream_that_died_without_a_word_is_missed_and_restarted_before_the_replica_is_out_of_sync(
    rig: ReplicaRig,
) -> None:
    rig.must_put(b"a")
    rig.cut(0, 2)
    rig.host.advance(1_000)
    rig.host.link(rig.handles[0], rig.handles[2]).heal(lost=True)
    waiting = rig.sending(b"b", timeout_ms=60_000)
    rig.until(lambda: waiting.answer is not None, LAG_MS * 0.7)
    assert rig.answered(waiting).error_code == ErrorCode.NONE
    assert rig.sync() == {0, 1, 2}


def test_a_leader_without_its_followers_stays_alone_while_they_are_silent(rig: ReplicaRig) -> None:
    """They have all that may be read, for nothing more may be: but nobody hears of them."""
    rig.must_put(b"a")
    rig.cut(0, 1)
    rig.cut(0, 2)
    waiting = rig.sending(b"b", timeout_ms=300_000)
    rig.until(lambda: rig.sync() == {0}, 2 * LAG_MS)
    for _ in range(30):
        rig.host.advance(LAG_MS / 10)
        assert rig.sync() == {0}
    assert waiting.answer is None
    rig.heal_all()
    rig.until(rig.level)
    assert rig.answered(waiting).error_code == ErrorCode.NONE


def test_a_replica_without_anything_to_fetch_stays_in_sync_however_silent(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(0, 2)
    rig.host.advance(3 * LAG_MS)
    assert rig.sync() == {0, 1, 2}


def test_a_replica_that_never_came_after_an_election_leaves_those_in_sync(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(1, 2)
    rig.kill(0)
    assert rig.sync() == {1, 2}
    rig.until(lambda: rig.sync() == {1}, 2 * LAG_MS)


def test_after_an_election_the_end_is_unknown_until_the_replicas_have_met(rig: ReplicaRig) -> None:
    def latest(version: int) -> Message:
        asked = [Message(partition_index=0, current_leader_epoch=-1, timestamp=-1)]
        fields = {"replica_id": -1, "isolation_level": 0, "topics": [Message(name=TOPIC, partitions=asked)]}
        row: Message = (
            rig.ask(rig.image.leader, ApiKey.LIST_OFFSETS, version, **fields).topics[0].partitions[0]
        )
        return row

    rig.must_put(b"a", b"b")  # the followers have it, and have not heard yet that all have
    rig.cut(1, 2)
    rig.kill(0)
    assert rig.replica(rig.image.leader).high_watermark == 0
    assert latest(5).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert latest(4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    rig.heal(1, 2)
    rig.until(lambda: latest(5).error_code == ErrorCode.NONE)
    assert latest(5).offset == 2


def test_an_offset_is_listed_with_the_leader_epoch_of_its_record(rig: ReplicaRig) -> None:
    """The earliest too, which was given the present leader's; the latest has no record, and has
    that one (Kafka's `UnifiedLog.fetchOffsetByTimestamp`)."""
    latest, earliest, newest, local, tiered, pending, by_time = -1, -2, -3, -4, -5, -6, 0

    def listed(timestamp: int) -> tuple[int, int]:
        asked = [Message(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)]
        fields = {"replica_id": -1, "isolation_level": 0, "topics": [Message(name=TOPIC, partitions=asked)]}
        row = rig.ask(rig.image.leader, ApiKey.LIST_OFFSETS, 11, **fields, timeout_ms=0).topics[0]
        assert row.partitions[0].error_code == ErrorCode.NONE
        return row.partitions[0].offset, row.partitions[0].leader_epoch

    def delete(before: int) -> None:
        asked = [Message(name=TOPIC, partitions=[Message(partition_index=0, offset=before)])]
        rig.ask(rig.image.leader, ApiKey.DELETE_RECORDS, 2, topics=asked, timeout_ms=1_000)

    def elect() -> int:
        before = rig.image.leader_epoch
        rig.kill(rig.image.leader)
        rig.until(lambda: rig.image.leader_epoch > before and rig.image.leader >= 0)
        rig.until(lambda: rig.replica(rig.image.leader).high_watermark == 3)
        return rig.image.leader_epoch

    first = rig.image.leader_epoch
    assert listed(earliest) == listed(latest) == (0, first), "nothing was ever written"
    rig.must_put(b"a", b"b")
    rig.kill(0)
    second = rig.image.leader_epoch
    rig.must_put(b"c")
    assert second > first
    assert listed(earliest) == listed(local) == listed(by_time) == (0, first)
    assert listed(newest)[1] in (first, second)
    assert listed(latest) == (3, second)
    assert listed(tiered) == listed(pending) == (-1, -1)
    delete(1)
    assert listed(earliest) == (1, first)
    delete(2)
    assert listed(earliest) == (2, second)
    third = elect()
    assert (listed(earliest), listed(latest)) == ((2, second), (3, third))
    delete(-1)
    assert listed(earliest) == listed(latest) == (3, third), "the log is empty"


def test_a_batch_sent_again_after_a_failover_is_known_and_answered_with_its_offset(rig: ReplicaRig) -> None:
    again = batch([b"b"], producer_id=7, producer_epoch=0, base_sequence=1)
    rig.must_put(b"a", producer_id=7, producer_epoch=0, base_sequence=0)
    rig.must_put(b"b", producer_id=7, producer_epoch=0, base_sequence=1)
    rig.kill(0)
    row = (
        rig.ask(rig.image.leader, ApiKey.PRODUCE, 9, **produce_fields({tuple(EVENTS): again}))
        .responses[0]
        .partition_responses[0]
    )
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 1)
    assert (
        rig.put(b"x", producer_id=7, producer_epoch=0, base_sequence=5)
        == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert rig.values(EVENTS) == [b"a", b"b"]


def test_a_batch_that_a_follower_has_not_synced_does_not_count_for_its_new_leader() -> None:
    """It said that it had it, lost it in a failed sync, and was in sync with a hole in its log."""
    rig = ReplicaRig({"flush.messages": "1"})
    rig.must_put(b"a")
    rig.host.advance(100)
    rig.host.disk.hold_syncs(rig.handles[2])
    rig.sending(b"b")
    rig.host.advance(50)
    rig.kill(0)
    rig.until(lambda: rig.image.leader == 1)
    rig.host.advance(200)
    rig.host.disk.release_syncs(rig.handles[2], errno.EIO)
    rig.host.advance(3_000)
    rig.must_put(b"c")
    rig.host.advance(1_000)
    assert rig.batches(2) == rig.batches(1)
    rig.kill(1)
    rig.until(lambda: rig.image.leader == 2)
    rig.until(lambda: rig.values(EVENTS) == [b"a", b"b", b"c"])
    rig.check()
    rig.close()


def test_a_replica_far_behind_is_given_everything_in_portions() -> None:
    rig = ReplicaRig(config={"replica.fetch.max.bytes": 500, "replica.fetch.response.max.bytes": 700})
    rig.kill(2)
    for number in range(40):
        rig.must_put(b"%d" % number * 30)
    rig.start(2)
    rig.until(rig.level)
    assert rig.batches(0) == rig.batches(2)
    rig.close()


def test_a_replica_whose_log_ends_before_its_leaders_begins_starts_there_anew(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.kill(2)
    for value in (b"b", b"c", b"d"):
        rig.must_put(value)
    assert delete_before(rig, 3) == 3
    rig.start(2)
    rig.until(rig.level)
    assert (rig.replica(2).log_start, rig.replica(2).log_end) == (3, 4)
    assert rig.batches(2) == rig.batches(0)


def test_the_start_of_the_log_moves_on_all_replicas(rig: ReplicaRig) -> None:
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    assert delete_before(rig, 2) == 2
    rig.until(lambda: [rig.replica(node_id).log_start for node_id in (0, 1, 2)] == [2, 2, 2], 1_000)


def test_an_unclean_leader_takes_the_others_back_to_what_it_has() -> None:
    rig = ReplicaRig({"unclean.leader.election.enable": "true"})
    rig.must_put(b"a")
    rig.kill(2)
    rig.must_put(b"b")
    rig.must_put(b"c")
    rig.kill(1)
    rig.kill(0)
    rig.start(2)
    assert rig.image.leader == 2
    rig.must_put(b"d")
    rig.start(0)
    rig.start(1)
    rig.until(rig.level)
    assert rig.values(EVENTS) == [b"a", b"d"]
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)
    rig.close()


def test_a_topic_that_grows_or_goes_takes_its_streams_along(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.controller.create_partitions(TOPIC, 4)
    fields = produce_fields({(TOPIC, 3): batch([b"x"])})
    partition = rig.controller.image.partition(TOPIC, 3)
    assert partition is not None
    assert (
        rig.ask(partition.leader, ApiKey.PRODUCE, 9, **fields).responses[0].partition_responses[0].error_code
        == ErrorCode.NONE
    )
    rig.controller.delete_topic(TOPIC)
    rig.controller.create_topic(TOPIC, assignments={0: [2, 1, 0]})
    rig.must_put(b"b")
    assert rig.values(EVENTS) == [b"b"]


def test_offsets_of_leader_epochs_survive_elections(rig: ReplicaRig) -> None:
    rig.must_put(b"a", b"b")
    rig.kill(0)
    rig.must_put(b"c")

    def end_of(epoch: int) -> tuple[int, int]:
        asked = [Message(partition=0, current_leader_epoch=-1, leader_epoch=epoch)]
        topics = [Message(topic=TOPIC, partitions=asked)]
        row = (
            rig.ask(rig.image.leader, ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, replica_id=-1, topics=topics)
            .topics[0]
            .partitions[0]
        )
        return row.leader_epoch, row.end_offset

    assert end_of(0) == (0, 2)
    assert end_of(rig.image.leader_epoch) == (rig.image.leader_epoch, 3)


def test_a_follower_is_not_fetched_from_by_kafkas_protocol(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    assert rig.fetch(EVENTS, 0, replica_id=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
