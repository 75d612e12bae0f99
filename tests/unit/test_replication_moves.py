"""Replicas that come, go and change places, and followers that say one thing and do another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import Reassignment
from fairlead_kafka.broker.replication.rules import Step
from fairlead_kafka.broker.replication.stream import (
    Answer,
    Meeting,
    Pull,
    decode_answer,
    encode_nudge,
    encode_pull,
    key_of,
)
from fairlead_kafka.wire import Message, PrivateApi
from tests.support.replica_rig import EVENTS, TOPIC, ReplicaRig
from tests.support.virtual_cluster import Asked

PREFERRED = 0


@pytest.fixture
def rig() -> Iterator[ReplicaRig]:
    rig = ReplicaRig({"min.insync.replicas": "2"}, config={"replica.lag.time.max.ms": 10_000})
    yield rig
    rig.close()


# --- Moves


def test_leadership_goes_back_to_the_preferred_replica_without_a_loss(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.kill(0)
    rig.must_put(b"b")
    rig.start(0)
    rig.until(rig.level)
    rig.controller.elect_leaders(PREFERRED, None)
    assert rig.image.leader == 0
    rig.must_put(b"c")
    rig.until(rig.level)
    assert rig.values(EVENTS) == [b"a", b"b", b"c"]
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)


def test_who_waits_when_leadership_moves_is_told_to_look_elsewhere(rig: ReplicaRig) -> None:
    rig.must_put(b"a")
    rig.kill(0)
    rig.start(0)
    rig.until(rig.level)
    leader = rig.image.leader
    rig.cut(0, 1, 2)
    waiting = rig.sending(b"b", timeout_ms=60_000)
    rig.host.advance(10)
    rig.controller.elect_leaders(PREFERRED, None)
    assert (leader, rig.image.leader) != (0, 0)
    assert rig.answered(waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    rig.heal_all()
    rig.must_put(b"c")
    rig.until(rig.level)
    assert rig.batches(0) == rig.batches(1) == rig.batches(2)
    assert rig.values(EVENTS) == [b"a", b"c"]


def test_a_partition_moves_to_another_broker_and_leaves_nothing_behind() -> None:
    rig = ReplicaRig(brokers=3)
    for value in (b"a", b"b", b"c"):
        rig.must_put(value)
    left = rig.replica(0)
    rig.start(3)
    assert rig.controller.alter_reassignments([Reassignment(TOPIC, 0, [3, 1, 2])]) == [None]
    rig.until(lambda: set(rig.image.replicas) == {1, 2, 3} and rig.sync() == {1, 2, 3})
    rig.must_put(b"d")
    assert rig.values(EVENTS) == [b"a", b"b", b"c", b"d"]
    rig.until(lambda: rig.replica(3).log_end == 4)
    assert rig.batches(3) == rig.batches(1)
    assert (left.log_end, len(left.index)) == (0, 0)
    rig.close()


# --- A follower driven by hand, in the place of broker 1


class Puppet:
    """Speaks for broker 1 on a stream of its own, while the real one is cut off."""

    def __init__(self, rig: ReplicaRig) -> None:
        self.rig = rig
        self.written = 0
        self.key = key_of(rig.controller.image.topics[TOPIC].topic_id.bytes, EVENTS.partition)
        rig.cut(0, 1)

    def meeting(self, log_end: int, last_epoch: int, leader_epoch: int = 0) -> Meeting:
        return Meeting(self.key, leader_epoch, log_end, last_epoch)

    def pulling(
        self, *meetings: Meeting, dropped: tuple[bytes, ...] = (), wait_ms: int = 100, lane: int = 77
    ) -> Asked:
        pull = Pull(
            1, self.rig.controller.image.brokers[1].epoch, self.written, wait_ms, 1 << 20, dropped, meetings
        )
        return self.rig.send(0, PrivateApi.REPLICATE, 0, lane, body=encode_pull(pull))

    def take(self, asked: Asked) -> Answer:
        self.rig.until(lambda: asked.answer is not None)
        assert asked.answer is not None
        answer = decode_answer(asked.answer.body)
        self.written = answer.number
        return answer

    def pull(self, *meetings: Meeting, dropped: tuple[bytes, ...] = ()) -> Answer:
        return self.take(self.pulling(*meetings, dropped=dropped))

    def mark(self) -> int:
        return self.rig.replica(0).high_watermark


@pytest.fixture
def puppet(rig: ReplicaRig) -> Puppet:
    rig.must_put(b"a", b"b")
    return Puppet(rig)


def test_asking_on_says_that_the_last_answer_is_written(rig: ReplicaRig, puppet: Puppet) -> None:
    puppet.pull(puppet.meeting(2, 0))
    waiting = rig.sending(b"c", timeout_ms=60_000)
    answer = puppet.pull()
    assert [(key, len(batches) > 0) for key, batches in answer.runs] == [(puppet.key, True)]
    assert (puppet.mark(), waiting.answer) == (2, None)
    puppet.pulling()
    assert rig.answered(waiting).error_code == ErrorCode.NONE
    assert puppet.mark() == 3


def test_who_has_all_that_was_written_is_not_behind(rig: ReplicaRig) -> None:
    """A broker that has become leader may be writing still what its followers have."""
    rig.must_put(b"a")
    rig.until(rig.level)
    replication = rig.brokers[0].replication
    led = replication.leading(rig.replica(0))
    replication.written(led.partition)
    assert {follower.behind_since_ns for follower in led.followers.values()} == {None}


@pytest.mark.parametrize("how", ["dropped", "met anew"])
def test_what_a_follower_let_fall_is_not_taken_for_written(rig: ReplicaRig, puppet: Puppet, how: str) -> None:
    """It heard of another leader, or of another epoch, while the answer was on its way."""
    puppet.pull(puppet.meeting(2, 0))
    waiting = rig.sending(b"c", timeout_ms=60_000)
    assert puppet.pull().runs
    if how == "dropped":
        puppet.pull(dropped=(puppet.key,))
    else:
        puppet.pull(puppet.meeting(2, 0))
    assert (puppet.mark(), waiting.answer) == (2, None)


def test_a_follower_that_comes_again_and_again_and_takes_nothing_leaves_those_in_sync(
    rig: ReplicaRig, puppet: Puppet
) -> None:
    """As one whose disk is full."""
    waiting = rig.sending(b"c", timeout_ms=300_000)
    for _ in range(200):
        puppet.written = 0
        puppet.pull(puppet.meeting(2, 0))
        rig.host.advance(100)
        if 1 not in rig.sync():
            break
    assert rig.sync() == {0, 2}
    assert rig.answered(waiting).error_code == ErrorCode.NONE


def test_a_follower_in_another_epoch_is_told_so_and_given_nothing(rig: ReplicaRig, puppet: Puppet) -> None:
    rig.sending(b"c", timeout_ms=60_000)
    newer = puppet.pull(puppet.meeting(2, 0, leader_epoch=1))
    assert ([one.error for one in newer.outcomes], newer.runs) == ([ErrorCode.UNKNOWN_LEADER_EPOCH], [])
    older = puppet.pull(puppet.meeting(2, 0, leader_epoch=-1))
    assert ([one.error for one in older.outcomes], older.runs) == ([ErrorCode.FENCED_LEADER_EPOCH], [])


def test_a_follower_that_knows_more_is_told_where_to_cut(puppet: Puppet) -> None:
    (outcome,) = puppet.pull(puppet.meeting(5, 0)).outcomes
    assert (outcome.error, outcome.log_match.step, outcome.log_match.epoch, outcome.log_match.offset) == (
        0,
        Step.TRUNCATE,
        0,
        2,
    )


def test_a_follower_counts_on_a_stream_that_is_no_more(rig: ReplicaRig, puppet: Puppet) -> None:
    puppet.pull(puppet.meeting(2, 0))
    puppet.written = 7
    assert puppet.pull().error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    puppet.written = 0
    assert puppet.pull(puppet.meeting(2, 0)).error == ErrorCode.NONE


def test_a_nudge_has_the_pull_before_it_answered_at_once(rig: ReplicaRig, puppet: Puppet) -> None:
    puppet.pull(puppet.meeting(2, 0))
    puppet.pull()
    waiting = puppet.pulling(wait_ms=60_000)
    rig.host.advance(1_000)
    assert waiting.answer is None
    nudge = rig.send(0, PrivateApi.REPLICATE, 0, 77, body=encode_nudge(1))
    rig.until(lambda: nudge.answer is not None)
    assert isinstance(waiting.answer, Message)


def test_an_idle_stream_is_answered_only_when_the_wait_is_over(rig: ReplicaRig, puppet: Puppet) -> None:
    puppet.pull(puppet.meeting(2, 0))
    puppet.pull()
    waiting = puppet.pulling(wait_ms=5_000)
    rig.host.advance(4_990)
    assert waiting.answer is None
    rig.host.advance(20)
    assert waiting.answer is not None


def test_a_stranger_is_not_followed(rig: ReplicaRig, puppet: Puppet) -> None:
    pull = Pull(9, 1, 0, 100, 1 << 20, (), [puppet.meeting(0, -1)])
    asked = rig.send(0, PrivateApi.REPLICATE, 0, 78, body=encode_pull(pull))
    assert puppet.take(asked).error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
