"""A broker whose disk fails gives up what it leads, and takes part again once the disk works."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import DecisionDone, DiskReported
from tests.support.replica_rig import EVENTS, ReplicaRig

LAG_MS = 10_000
MEND_MS = 1_000


@pytest.fixture
def rig() -> Iterator[ReplicaRig]:
    rig = ReplicaRig({"min.insync.replicas": "2"}, config={"replica.lag.time.max.ms": LAG_MS})
    yield rig
    rig.close()


def fail(rig: ReplicaRig, node_id: int) -> None:
    rig.host.disk.faults.fail(f"/data/{node_id}", errno.ENOSPC)


def heal(rig: ReplicaRig, node_id: int) -> None:
    rig.host.disk.faults.heal(f"/data/{node_id}")


def test_a_leader_whose_disk_fails_is_succeeded_and_comes_back_into_sync_when_it_works(
    rig: ReplicaRig,
) -> None:
    rig.must_put(b"a")
    assert rig.image.leader == 0
    fail(rig, 0)
    assert rig.put(b"refused") == ErrorCode.KAFKA_STORAGE_ERROR
    rig.until(lambda: rig.image.leader in (1, 2), 10)
    assert rig.sync() == {1, 2}
    rig.must_put(b"b")
    rig.host.advance(3 * MEND_MS)
    assert rig.sync() == {1, 2}, "a cut and a sync work on a full disk, which does not make room"
    heal(rig, 0)
    rig.until(rig.level)
    assert rig.values(EVENTS) == [b"a", b"b"]
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)


def test_a_follower_whose_disk_fails_is_out_of_sync_at_once(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    fail(rig, 2)
    before_ns = rig.host.now_ns()
    rig.must_put(b"b", timeout_ms=LAG_MS)
    assert (rig.host.now_ns() - before_ns) / 1e6 < LAG_MS / 10, "it was not waited for"
    assert rig.sync() == {0, 1}
    heal(rig, 2)
    rig.until(rig.level)


def test_the_only_replica_goes_on_leading_refuses_what_is_written_and_serves_what_was() -> None:
    rig = ReplicaRig(brokers=1)
    rig.must_put(b"a")
    fail(rig, 0)
    assert rig.put(b"b") == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.put(b"b") == ErrorCode.KAFKA_STORAGE_ERROR
    assert (rig.image.leader, rig.sync()) == (0, {0})
    assert rig.values(EVENTS) == [b"a"]
    heal(rig, 0)
    rig.host.advance(2 * MEND_MS)
    rig.must_put(b"c")
    assert rig.values(EVENTS) == [b"a", b"c"]
    rig.close()


def test_who_leads_on_a_failed_disk_for_want_of_others_hands_over_to_the_first_that_comes_into_sync(
    rig: ReplicaRig,
) -> None:
    rig.must_put(b"a")
    rig.kill(1)
    rig.kill(2)
    fail(rig, 0)
    assert rig.put(b"b", acks=1) == ErrorCode.KAFKA_STORAGE_ERROR
    assert rig.image.leader == 0
    rig.start(1)
    rig.until(lambda: rig.image.leader == 1)
    assert rig.sync() == {1}
    rig.start(2)
    rig.until(lambda: rig.values(EVENTS) == [b"a"])
    assert rig.sync() == {1, 2}


def test_what_the_controller_did_not_hear_it_is_told_again(
    rig: ReplicaRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide, told = rig.controller.decide, list[Any]()

    def deaf_at_first(decision: Any, done: DecisionDone) -> None:
        if isinstance(decision, DiskReported):
            told.append(decision)
            if len(told) < 3:
                done(None, BrokerError(ErrorCode.NOT_CONTROLLER, "no link"))
                return
        decide(decision, done)

    monkeypatch.setattr(rig.controller, "decide", deaf_at_first)
    rig.must_put(b"a")
    fail(rig, 0)
    assert rig.put(b"b") == ErrorCode.KAFKA_STORAGE_ERROR
    rig.until(lambda: rig.image.leader != 0)
    assert [one.works for one in told] == [False] * 3
    rig.must_put(b"c")


def test_a_new_life_of_a_broker_is_not_held_to_what_the_old_one_said(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    epoch = rig.controller.image.brokers[0].epoch
    rig.kill(0)
    rig.start(0)
    with pytest.raises(BrokerError, match="STALE_BROKER_EPOCH"):
        rig.controller.disk_reported(0, epoch, works=False)
    assert rig.controller.image.brokers[0].eligible


def test_a_follower_of_an_empty_partition_comes_back_into_sync_though_nobody_writes(rig: ReplicaRig) -> None:
    """Its leader has never looked at the partition, for nothing is in it (`simulate --world cluster
    --seed 542`)."""
    rig.until(lambda: rig.sync() == {0, 1, 2})
    epoch = rig.controller.image.brokers[2].epoch
    rig.controller.disk_reported(2, epoch, works=False)
    assert rig.sync() == {0, 1}
    rig.until(lambda: rig.sync() == {0, 1, 2})  # the broker says itself that its disk works
