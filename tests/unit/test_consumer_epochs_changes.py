"""Our consumer as a member of a KIP-848 group: patterns, and assignments that change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from fairlead_kafka import SubscriptionPattern
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import UnsupportedVersion, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.wire import ApiKey, Message
from tests.support.epoch_rig import HEARTBEAT, T0, T1, T2, Coordinated
from tests.support.fake_coordinator import GROUP, INTERVAL_MS
from tests.support.group_clients import Heard


@pytest.fixture
def rig() -> Coordinated:
    return Coordinated()


def test_a_pattern_for_brokers_goes_to_them_and_back(rig: Coordinated) -> None:
    rig.cluster.topic("u", 1)
    with rig.member(SubscriptionPattern("t|u")) as member:
        rig.converge(member, t=[0], u=[0])
        assert member.subscription() == ["t", "u"]
        join = rig.coordinator.beats()[0]
        assert (join.subscribed_topic_names, join.subscribed_topic_regex) == ([], "t|u")
        before = len(rig.coordinator.beats())
        member.subscribe(["t"], rig.heard)
        member.poll(0.01)
        changed = rig.coordinator.beats()[before]
        assert (changed.subscribed_topic_names, changed.subscribed_topic_regex) == (["t"], "")
        assert changed.topic_partitions is None, "what is to change goes on until the coordinator says so"
        rig.converge(member, t=[0])
        before = len(rig.coordinator.beats())
        member.subscribe(SubscriptionPattern("u"), rig.heard)
        member.poll(0.01)
        changed = rig.coordinator.beats()[before]
        assert (changed.subscribed_topic_names, changed.subscribed_topic_regex) == ([], "u")


def test_brokers_too_old_for_patterns_and_groups_without_them_refuse(rig: Coordinated) -> None:
    rig.cluster.versions[HEARTBEAT] = (0, 0)
    with (
        rig.member(SubscriptionPattern("t")) as member,
        pytest.raises(UnsupportedVersion, match=r"Kafka 4\.0"),
    ):
        rig.polled(member, lambda: False)
    with rig.consumer(group_id=GROUP) as classic:
        with pytest.raises(UsageError, match=r"group\.protocol=consumer alone"):
            classic.subscribe(SubscriptionPattern("t"))
        assert classic.subscription() == []


def test_a_compiled_pattern_is_matched_here(rig: Coordinated) -> None:
    with rig.member(re.compile("t|v"), metadata_max_age_ms=5_000) as member:
        rig.converge(member, t=[0])
        join = rig.coordinator.beats()[0]
        assert (join.subscribed_topic_names, join.subscribed_topic_regex) == (["t"], None)
        rig.cluster.topic("v", 1)
        rig.polled(member, lambda: rig.coordinator.beats()[-1].subscribed_topic_names == ["t", "v"])
        assert member.subscription() == ["t", "v"]
        rig.converge(member, t=[0], v=[0])


def test_a_topic_that_metadata_do_not_have_yet_is_taken_over_later(rig: Coordinated) -> None:
    with rig.member(SubscriptionPattern(".*")) as member:
        rig.polled(member, lambda: rig.heard.signs() == "+0")
        topic = rig.cluster.topic("late", 1)
        del rig.cluster.topics["late"]
        names = dict(rig.cluster.topics)
        rig.coordinator.assign(t=[0])
        rig.coordinator.target["late"] = [0]
        rig.cluster.topics["late"] = topic
        answers = rig.cluster.nodes[0].answers[ApiKey.METADATA]
        for node in rig.cluster.nodes:
            node.serve(ApiKey.METADATA, lambda request: _metadata_of(rig, names, answers, request))
        rig.polled(member, lambda: member.assignment() == [T0])
        member.poll(0.2)
        assert rig.coordinator.owned == [T0]
        for node in rig.cluster.nodes:
            node.serve(ApiKey.METADATA, answers)
        rig.polled(member, lambda: len(rig.coordinator.owned or ()) == 2)
        assert rig.heard.log[1:] == [("+", [T0]), ("+", [TopicPartition("late", 0)])]


def _metadata_of(rig: Coordinated, names: dict[str, Any], answers: Any, request: Any) -> Message:
    whole, rig.cluster.topics = rig.cluster.topics, names
    try:
        answer: Message = answers(request)
        return answer
    finally:
        rig.cluster.topics = whole


def test_what_is_taken_back_before_the_application_polled_is_never_read(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.converge(member, t=[0])
        rig.rest(member)
        rig.coordinator.assign(t=[0, 1])
        rig.host.advance(INTERVAL_MS)
        rig.coordinator.assign(t=[0])
        before = len(rig.coordinator.beats())
        rig.host.advance(INTERVAL_MS * 2)
        beats = rig.coordinator.beats()[before:]
        assert rig.coordinator.owned == [T0]
        assert any(beat.topic_partitions is not None for beat in beats), "the coordinator waits to hear it"
        assert rig.rest(member) == []
        assert rig.heard.signs() == "+1"


def test_a_heartbeat_that_says_all_names_what_may_be_read_at_any_moment(rig: Coordinated) -> None:
    """What waits for the application is not called free by a repetition of all."""
    with rig.member() as member:
        rig.converge(member, t=[0])
        rig.coordinator.assign(t=[0, 1])
        rig.host.advance(INTERVAL_MS)
        rig.coordinator.fail(HEARTBEAT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rig.host.advance(INTERVAL_MS * 2)
        assert rig.coordinator.owned == [T0, T1]
        quiet = len(rig.coordinator.beats())
        rig.host.advance(INTERVAL_MS * 2)
        assert len(rig.coordinator.beats()) == quiet + 2
        rig.polled(member, lambda: sorted(member.assignment()) == [T0, T1])
        assert rig.heard.signs() == "+1 +1"


@pytest.mark.parametrize("known", [False, True])
def test_a_topic_made_anew_is_another(rig: Coordinated, known: bool) -> None:
    with rig.member(enable_auto_commit=False) as member:
        assert len(rig.converge(member, t=[0]) + rig.rest(member)) == 10
        rig.cluster.topic("t", 3)
        rig.cluster.write("t", 0, [b"new"])
        if known:
            member.subscribe(["t"], rig.heard)
            member.poll(0.1)
        rig.coordinator.assign(t=[0])
        signs = "+1 -1 +1" if known else "+1 -1 +0 +1"
        seen = rig.polled(member, lambda: rig.heard.signs() == signs) + rig.rest(member)
        assert seen[-1:] == [(0, 0)]


def test_a_seek_at_the_end_of_a_rebalance_holds(rig: Coordinated) -> None:
    member: Consumer

    class Seeking(Heard):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            super().on_assigned(partitions)
            for of in partitions:
                member.seek(of, 8)

    rig.heard = Seeking()
    member = rig.member()
    seen = rig.converge(member, t=[0]) + rig.rest(member)
    assert seen == [(0, 8), (0, 9)]
    rig.coordinator.assign(t=[0, 1])
    rig.host.advance(INTERVAL_MS)
    member.seek(T0, 9)  # while a change waits
    assert sorted(rig.rest(member)) == [(0, 9), (1, 8), (1, 9)]
    member.close()


def test_a_member_that_unsubscribes_leaves_at_once_and_may_come_back(rig: Coordinated) -> None:
    member = rig.member()
    rig.converge(member, t=[0])
    rig.coordinator.assign(t=[0, 1])
    rig.host.advance(INTERVAL_MS)  # in the middle of a change
    member.unsubscribe()
    assert rig.coordinator.beats()[-1].member_epoch == -1
    assert (rig.heard.signs(), member.assignment()) == ("+1 -1", [])
    quiet = len(rig.coordinator.beats())
    rig.host.advance(60_000)
    assert len(rig.coordinator.beats()) == quiet
    member.assign([T2])
    assert len(rig.rest(member)) == 10
    member.assign([])
    member.subscribe(["t"], rig.heard)
    rig.polled(member, lambda: sorted(member.assignment()) == [T0, T1])
    member.close()


def test_closing_takes_no_longer_than_it_may_when_the_coordinator_is_silent(rig: Coordinated) -> None:
    member = rig.member(enable_auto_commit=False)
    rig.converge(member, t=[0])
    for node in rig.cluster.nodes:
        node.step = lambda _now_ns, _wall_ms: ()  # type: ignore[method-assign]
    before_ns = rig.host.now_ns()
    member.close()
    assert rig.host.now_ns() - before_ns <= 11_000_000_000


def test_a_missing_topic_is_created_where_that_is_allowed(
    rig: Coordinated, caplog: pytest.LogCaptureFixture
) -> None:
    with rig.member(["missing"], allow_auto_create_topics=False) as member:
        rig.polled(member, lambda: rig.heard.signs() == "+0")
        assert "topic 'missing' does not exist" in caplog.text
        asked = [request.message for request in rig.cluster.asked(ApiKey.METADATA)]
        assert not any(message.allow_auto_topic_creation for message in asked if message.topics)
    with rig.member(["missing"], allow_auto_create_topics=True) as member:
        rig.polled(member, lambda: len(rig.heard.log) == 2)
        asked = [request.message for request in rig.cluster.asked(ApiKey.METADATA)]
        assert any(message.allow_auto_topic_creation for message in asked if message.topics)
