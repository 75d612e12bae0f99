"""DeleteRecords: what it refuses, and that its answer waits for the replicas."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import versions
from tests.support.replica_rig import EVENTS, TOPIC, ReplicaRig
from tests.support.virtual_cluster import Asked


@pytest.fixture
def rig() -> Iterator[ReplicaRig]:
    rig = ReplicaRig({"min.insync.replicas": "2"})
    yield rig
    rig.close()


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_RECORDS))
def test_records_are_deleted_up_to_the_high_watermark(version: int) -> None:
    rig = ReplicaRig(brokers=1)
    for _ in range(10):
        rig.must_put(b"a")

    def delete(offset: int, topic: str = TOPIC) -> tuple[int, int]:
        topics = [Message(name=topic, partitions=[Message(partition_index=0, offset=offset)])]
        (row,) = (
            rig.ask(0, ApiKey.DELETE_RECORDS, version, topics=topics, timeout_ms=1000).topics[0].partitions
        )
        return row.error_code, row.low_watermark

    assert delete(4) == (ErrorCode.NONE, 4)
    assert delete(2) == (ErrorCode.NONE, 4)
    assert delete(11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(-2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(-1) == (ErrorCode.NONE, 10)
    assert delete(0, OFFSETS_TOPIC) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    rig.close()


def deleting(rig: ReplicaRig, offset: int, timeout_ms: int = 60_000) -> Asked:
    """A DeleteRecords request under way."""
    asked = [Message(name=TOPIC, partitions=[Message(partition_index=0, offset=offset)])]
    return rig.send(rig.image.leader, ApiKey.DELETE_RECORDS, 2, lane=77, topics=asked, timeout_ms=timeout_ms)


def deleted(asked: Asked) -> tuple[int, int]:
    """Its (error code, low watermark)."""
    assert asked.answer is not None
    row = asked.answer.topics[0].partitions[0]
    return row.error_code, row.low_watermark


def test_deleting_records_is_answered_once_all_replicas_that_live_have_deleted_them(rig: ReplicaRig) -> None:
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    asked = deleting(rig, 2)
    rig.until(lambda: asked.answer is not None, 1_000)
    assert deleted(asked) == (ErrorCode.NONE, 2)
    assert [rig.replica(node_id).log_start for node_id in (0, 1, 2)] == [2, 2, 2]


def test_deleting_records_waits_for_a_replica_that_is_not_heard_of_and_no_longer_than_asked(
    rig: ReplicaRig,
) -> None:
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    rig.cut(0, 2)
    asked = deleting(rig, 2, timeout_ms=500)
    rig.host.advance(499)
    assert asked.answer is None
    rig.host.advance(10)
    assert deleted(asked) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert rig.values(EVENTS, 2) == [b"c"]
    again = deleting(rig, 2)
    rig.host.advance(100)
    assert again.answer is None
    rig.heal(0, 2)
    rig.until(lambda: again.answer is not None)
    assert deleted(again) == (ErrorCode.NONE, 2)


def waiting(rig: ReplicaRig) -> int:
    """How many requests the leader keeps for the time when its replicas have followed."""
    led = rig.brokers[rig.image.leader].replication.led(rig.replica(rig.image.leader))
    assert led is not None
    return len(led.deleting) + len(led.waiting)


def test_requests_that_have_timed_out_wait_for_replicas_no_more(rig: ReplicaRig) -> None:
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    rig.cut(0, 2)
    asked = [deleting(rig, 2, timeout_ms=10) for _ in range(5)]
    rig.until(lambda: all(one.answer is not None for one in asked), 100)
    assert {deleted(one)[0] for one in asked} == {ErrorCode.REQUEST_TIMED_OUT}
    assert waiting(rig) == 0
    # A producer sends its batch again as long as it hears of no success.
    of = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    assert {rig.put(b"d", timeout_ms=10, **of) for _ in range(5)} == {ErrorCode.REQUEST_TIMED_OUT}
    assert waiting(rig) == 0
    rig.heal(0, 2)
    assert rig.put(b"d", **of) == ErrorCode.NONE


def test_a_request_whose_write_failed_waits_for_replicas_no_more() -> None:
    rig = ReplicaRig()
    rig.must_put(b"a")
    rig.kill(1)
    rig.kill(2)
    rig.until(lambda: rig.sync() == {0}, 60_000)  # so that the leader stays
    rig.host.disk.faults.fail("/data/0", errno.ENOSPC)
    assert rig.put(b"b") == ErrorCode.KAFKA_STORAGE_ERROR
    assert waiting(rig) == 0
    rig.close()


def test_deleting_records_does_not_wait_for_a_replica_whose_broker_is_gone(rig: ReplicaRig) -> None:
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    rig.cut(0, 2)
    asked = deleting(rig, 3)
    rig.host.advance(100)
    assert asked.answer is None
    rig.kill(2)
    rig.until(lambda: asked.answer is not None, 100)
    assert deleted(asked) == (ErrorCode.NONE, 3)
    rig.start(2)
    rig.until(rig.level)
    assert rig.replica(2).log_start == 3


def test_deleting_records_ends_with_the_leaders_reign(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.cut(0, 2)
    asked = deleting(rig, 1)
    rig.host.advance(100)
    rig.controller.broker_stopping(0)  # and another one leads
    rig.until(lambda: asked.answer is not None, 100)
    assert deleted(asked) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_replica_that_is_catching_up_when_all_is_deleted_begins_anew_where_the_log_begins() -> None:
    rig = ReplicaRig(config={"replica.fetch.max.bytes": 500, "replica.fetch.response.max.bytes": 700})
    rig.kill(2)
    for number in range(60):
        rig.must_put(b"%d" % number * 30)
    rig.host.disk.append_ms = 5.0
    rig.start(2)
    rig.until(lambda: 0 < rig.replica(2).log_end < 60)
    deleting(rig, -1)
    rig.until(rig.level)
    assert (rig.replica(2).log_start, rig.replica(2).log_end) == (60, 60)
    rig.close()
