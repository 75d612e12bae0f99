"""Our consumer as a member of a KIP-848 group: heartbeats, fences, commits, errors."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConfigError, FairleadError, UnsupportedVersion
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.consumer.groups import EPOCH_TRANSITIONS, EpochSignal, EpochState
from fairlead_kafka.wire import ApiKey, Message
from tests.support.epoch_rig import HEARTBEAT, T0, T1, T2, Coordinated, whole
from tests.support.fake_coordinator import GROUP, INTERVAL_MS, SETTLED_MS


@pytest.fixture
def rig() -> Coordinated:
    return Coordinated()


def test_a_member_joins_says_what_it_owns_and_then_only_that_it_lives(rig: Coordinated) -> None:
    member = rig.member(client_rack="r", max_poll_interval_ms=9_000, group_remote_assignor="range")
    seen = rig.converge(member, t=[0, 2]) + rig.rest(member)
    assert sorted(seen) == [(number, offset) for number in (0, 2) for offset in range(10)]
    assert rig.heard.log == [("+", [T0, T2])]
    join, acknowledgement = rig.coordinator.beats()[:2]
    assert (join.member_epoch, join.topic_partitions, join.subscribed_topic_names) == (0, [], ["t"])
    assert (join.rebalance_timeout_ms, join.rack_id, join.server_assignor) == (9_000, "r", "range")
    assert join.subscribed_topic_regex is None
    assert acknowledgement.member_epoch == rig.coordinator.epoch
    assert len(acknowledgement.topic_partitions) == 1
    assert not whole(acknowledgement)
    rig.host.advance(SETTLED_MS)
    before = len(rig.coordinator.beats())
    rig.host.advance(INTERVAL_MS * 4)
    later = rig.coordinator.beats()[before:]
    assert len(later) == 4
    assert {(beat.topic_partitions, beat.subscribed_topic_names, beat.rack_id) for beat in later} == {
        (None, None, None)
    }
    assert {beat.member_id for beat in rig.coordinator.beats()} == {join.member_id}
    assert not join.member_id.startswith("-")
    assert member.group_metadata() == (GROUP, rig.coordinator.epoch, join.member_id, None)
    member.close()
    assert rig.coordinator.beats()[-1].member_epoch == -1
    assert rig.coordinator.committed == {T0: 10, T2: 10}


def test_an_empty_assignment_is_told_once_and_acknowledged(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.polled(member, lambda: rig.heard.log == [("+", [])])
        member.poll(0.1)
        assert [len(beat.topic_partitions or ()) for beat in rig.coordinator.beats()[:2]] == [0, 0]
        assert rig.converge(member, t=[1]) is not None
        assert rig.heard.log == [("+", []), ("+", [T1])]


def test_what_stays_is_read_on_and_what_goes_is_committed_first(rig: Coordinated) -> None:
    member = rig.member(auto_commit_interval_ms=3_600_000)
    rig.converge(member, t=[0, 1])
    rig.rest(member)
    member.pause([T1])
    epochs = []
    commit = rig.heard.on_revoked
    rig.heard.on_revoked = lambda partitions: (
        epochs.append(dict(rig.coordinator.committed)) or commit(partitions)
    )  # type: ignore[method-assign, func-returns-value, assignment]
    positions = rig.opener.machine.generations()
    rig.converge(member, t=[1])
    assert epochs == [{T0: 10, T1: 10}]
    assert rig.heard.log[1:] == [("-", [T0]), ("+", [])]
    assert rig.opener.machine.generations() == {T1: positions[T1]}  # no new position was looked for
    assert member.paused() == [T1]
    rig.converge(member, t=[1, 2])
    assert rig.heard.log[3:] == [("+", [T2])]
    assert len(rig.rest(member)) == 10
    member.close()


def test_a_poll_gives_records_of_what_stays_while_the_rest_moves(rig: Coordinated) -> None:
    """A change that the coordinator wants is not waited for: only the poll that makes it."""
    with rig.member(max_poll_records=1) as member:
        rig.converge(member, t=[0, 1])
        rig.coordinator.assign(t=[1])
        seen = rig.polled(member, lambda: member.assignment() == [T1])
        assert {partition for partition, _ in seen + rig.rest(member)[-9:]} >= {1}
        assert all(partition == 1 for partition, _ in rig.rest(member))


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_all_and_joins_again_as_a_newcomer(rig: Coordinated, code: int) -> None:
    member = rig.member()
    rig.converge(member, t=[0])
    rig.rest(member)
    rig.coordinator.committed.clear()
    rig.coordinator.fail(HEARTBEAT, code)
    seen = rig.polled(member, lambda: len(rig.heard.log) == 3) + rig.rest(member)
    assert rig.heard.log[1:] == [("lost", [T0]), ("+", [T0])]
    assert seen == [(0, offset) for offset in range(10)], "nothing was committed, so all of it comes again"
    joins = [beat for beat in rig.coordinator.beats() if beat.member_epoch == 0]
    assert [(whole(beat), beat.topic_partitions) for beat in joins] == [(True, [])] * 2
    member.close()


def test_a_fence_that_is_told_to_a_look_up_of_offsets_is_no_error_of_the_application(
    rig: Coordinated,
) -> None:
    with rig.member() as member:
        rig.coordinator.fail(ApiKey.OFFSET_FETCH, ErrorCode.UNKNOWN_MEMBER_ID)
        rig.coordinator.assign(t=[0])
        seen = rig.polled(member, lambda: len(rig.heard.log) == 3) + rig.rest(member)
        assert rig.heard.log == [("+", [T0]), ("lost", [T0]), ("+", [T0])]
        assert seen == [(0, offset) for offset in range(10)]


def test_a_commit_of_a_fenced_member_is_refused_and_makes_it_join_again(rig: Coordinated) -> None:
    with rig.member(enable_auto_commit=False) as member:
        rig.converge(member, t=[0])
        rig.coordinator.fail(ApiKey.OFFSET_COMMIT, ErrorCode.UNKNOWN_MEMBER_ID)
        with pytest.raises(BrokerError, match="gone on without this consumer"):
            member.commit({T0: 1})
        with pytest.raises(BrokerError, match="not in the group at present; poll"):
            member.commit({T0: 1})
        member_id, epoch = member.group_metadata().member_id, rig.coordinator.epoch
        assert member.group_metadata() == (GROUP, epoch, member_id, None), "as it was last, to be refused"
        rig.polled(member, lambda: len(rig.heard.log) == 3)
        assert rig.heard.signs() == "+1 lost1 +1"
        member.commit({T0: 1})


def test_a_commit_with_a_stale_epoch_is_made_with_the_next_one(rig: Coordinated) -> None:
    with rig.member(enable_auto_commit=False) as member:
        rig.converge(member, t=[0])
        rig.coordinator.fail(ApiKey.OFFSET_COMMIT, ErrorCode.STALE_MEMBER_EPOCH)
        rig.coordinator.fail(ApiKey.OFFSET_FETCH, ErrorCode.STALE_MEMBER_EPOCH)
        stale = rig.coordinator.epoch
        rig.coordinator.assign(t=[0])  # an epoch on, which the next heartbeat tells
        rig.coordinator.member = rig.coordinator.epoch + 1
        rig.coordinator.fail(HEARTBEAT)
        rig.coordinator.member = stale
        member.commit({T0: 7})
        assert rig.coordinator.committed == {T0: 7}
        assert member.committed([T0])[T0].offset == 7  # type: ignore[union-attr]
        asked = rig.cluster.asked(ApiKey.OFFSET_FETCH)[-1].message.groups[0]
        assert (asked.member_id, asked.member_epoch) == member.group_metadata()[2:0:-1]


def test_offsets_are_those_of_the_topic_that_was_assigned(rig: Coordinated) -> None:
    """KIP-848: OffsetCommit and OffsetFetch name topics by id."""
    with rig.member(enable_auto_commit=False) as member:
        rig.converge(member, t=[0])
        member.commit({T0: 7})
        assert member.committed([T0])[T0].offset == 7  # type: ignore[union-attr]
        commit, fetch = (rig.cluster.asked(key)[-1] for key in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH))
        assert (commit.version, fetch.version) == (10, 10)
        topic = rig.cluster.topics["t"]
        topic.topic_id = UUID(int=99)  # deleted, and made again
        with pytest.raises(BrokerError) as caught:
            member.commit({T0: 8})
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_ID
        assert rig.coordinator.committed == {T0: 7}
        assert member.committed([T0])[T0].offset == 7, "asked again with the newer id"  # type: ignore[union-attr]


def test_a_commit_in_the_name_of_a_membership_that_is_over_is_not_made(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.converge(member, t=[0])
        rig.rest(member)
        rig.coordinator.fail(ApiKey.OFFSET_COMMIT, *[ErrorCode.STALE_MEMBER_EPOCH] * 3)
        rig.coordinator.fail(HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH)
        rig.host.advance(INTERVAL_MS)
        with pytest.raises(BrokerError, match="not in the group at present"):
            member.commit({T0: 3})
        assert T0 not in rig.coordinator.committed


def test_a_static_member_keeps_its_place_when_it_closes(rig: Coordinated) -> None:
    member = rig.member(group_instance_id="one")
    rig.converge(member, t=[0])
    assert {beat.instance_id for beat in rig.coordinator.beats()} == {"one"}
    assert member.group_metadata().group_instance_id == "one"
    member.close()
    assert rig.coordinator.beats()[-1].member_epoch == -2


def test_a_member_that_is_not_polled_leaves_and_comes_back(rig: Coordinated) -> None:
    member = rig.member(max_poll_interval_ms=5_000)
    rig.converge(member, t=[0])
    rig.host.advance(5_000)
    assert rig.coordinator.beats()[-1].member_epoch == -1
    quiet = len(rig.coordinator.beats())
    rig.host.advance(60_000)
    assert len(rig.coordinator.beats()) == quiet
    assert rig.heard.signs() == "+1", "the application hears of it in its next poll"
    rig.polled(member, lambda: len(rig.heard.log) == 3)
    assert rig.heard.signs() == "+1 lost1 +1"
    assert rig.coordinator.beats()[quiet].member_epoch == 0
    member.close()


def test_a_member_that_joins_is_not_late_before_its_first_poll(
    rig: Coordinated, caplog: pytest.LogCaptureFixture
) -> None:
    rig.host.advance(3_600_000)  # a machine that is up for longer than max.poll.interval.ms
    with rig.member():
        rig.host.advance(SETTLED_MS)
        assert rig.coordinator.beats()[-1].member_epoch >= 0
    assert not [record for record in caplog.records if "poll_too_late" in record.getMessage()]


def test_a_coordinator_that_moved_is_told_all(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.converge(member, t=[0])
        rig.coordinator.node_id = 2
        before = len(rig.coordinator.beats())
        rig.host.advance(INTERVAL_MS * 2)
        refused, told = rig.coordinator.beats()[before : before + 2]
        assert not whole(refused)
        assert whole(told)
        assert told.member_epoch == rig.coordinator.epoch
        assert rig.coordinator.owned == [T0]
        member.poll(0.1)
        assert rig.heard.signs() == "+1"


def test_after_a_lost_answer_all_is_said_again(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.converge(member, t=[0])
        serve = rig.cluster.nodes[0].answers[HEARTBEAT]

        def cut(request: Any) -> Message:
            rig.cluster.nodes[0].serve(HEARTBEAT, serve)
            rig.cluster.nodes[0].hang_up()
            return serve(request)

        rig.cluster.nodes[0].serve(HEARTBEAT, cut)
        before = len(rig.coordinator.beats())
        rig.host.advance(INTERVAL_MS * 2)
        assert [whole(beat) for beat in rig.coordinator.beats()[before : before + 2]] == [False, True]
        member.poll(0.1)
        assert rig.heard.signs() == "+1"


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE]
)
def test_a_coordinator_that_is_not_ready_is_waited_for(rig: Coordinated, code: int) -> None:
    rig.coordinator.fail(HEARTBEAT, *[code] * 5)
    with rig.member() as member:
        rig.converge(member, t=[0])
        assert all(whole(beat) for beat in rig.coordinator.beats()[:6])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            ErrorCode.UNSUPPORTED_VERSION,
            "this cluster serves classic groups only; set group.protocol=classic",
        ),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "needs the right to Read on the group"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "group.consumer.max.size allows; says the broker"),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, "check group.remote.assignor"),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, "form of RE2; says the broker"),
        (ErrorCode.UNRELEASED_INSTANCE_ID, "another consumer is in the group with this group.instance.id"),
        (ErrorCode.FENCED_INSTANCE_ID, "has taken group.instance.id 'one'"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "not one of the protocol consumer"),
        (ErrorCode.INVALID_REQUEST, "says the broker"),
    ],
)
def test_what_a_member_cannot_mend_is_raised_by_every_poll(rig: Coordinated, code: int, said: str) -> None:
    rig.coordinator.fail(HEARTBEAT, code)
    rig.coordinator.assign(t=[0])
    member = rig.member(group_instance_id="one")
    for _ in range(2):
        with pytest.raises(FairleadError, match=re.escape(said)):
            rig.polled(member, lambda: False)
    assert len(rig.coordinator.beats()) == 1
    member.subscribe(["t"], rig.heard)
    rig.polled(member, lambda: member.assignment() == [T0])
    member.close()


def test_an_error_of_a_member_that_read_takes_its_partitions(rig: Coordinated) -> None:
    member = rig.member()
    rig.converge(member, t=[0])
    rig.coordinator.fail(HEARTBEAT, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    rig.host.advance(INTERVAL_MS)
    with pytest.raises(BrokerError):
        rig.polled(member, lambda: False)
    assert rig.heard.signs() == "+1 lost1"
    assert member.assignment() == []
    member.subscribe(["t"], rig.heard)
    rig.polled(member, lambda: rig.heard.signs() == "+1 lost1 +1")
    member.close()


def test_a_cluster_without_the_protocol_says_so(rig: Coordinated) -> None:
    del rig.cluster.versions[HEARTBEAT]
    with rig.member() as member, pytest.raises(UnsupportedVersion, match="serves classic groups only"):
        rig.polled(member, lambda: False)


def test_a_group_that_is_gone_is_joined_anew(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.converge(member, t=[0])
        rig.coordinator.fail(HEARTBEAT, ErrorCode.GROUP_ID_NOT_FOUND)
        rig.polled(member, lambda: rig.heard.signs() == "+1 lost1 +1")


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"group.protocol": "consumer", "session.timeout.ms": 1000}, "session.timeout.ms: cannot be set"),
        ({"group.protocol": "CONSUMER", "heartbeat.interval.ms": 10}, "consumer.heartbeat.interval.ms"),
        (
            {"group.protocol": "consumer", "partition.assignment.strategy": "range"},
            "cannot be set with group.protocol=consumer, where brokers assign: group.remote.assignor",
        ),
        ({"group.remote.assignor": "range"}, "with group.protocol=classic, where members share"),
        ({"group.protocol": "share"}, "must be one of classic, consumer"),
    ],
)
def test_settings_that_do_not_go_with_a_protocol_are_refused(configs: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **configs})


def test_the_table_has_kafkas_transitions() -> None:
    """As `MemberState` has them, less the states that are not needed here."""
    state = EpochState
    kafkas = {
        state.STABLE: {state.ACKNOWLEDGING},
        state.RECONCILING: {state.STABLE, state.JOINING, state.ACKNOWLEDGING, state.RECONCILING},
        state.JOINING: {state.FENCED, state.UNSUBSCRIBED, state.STALE},
    }
    for after, befores in kafkas.items():
        assert {before for (before, _), then in EPOCH_TRANSITIONS.items() if then is after} == befores
    leaves = {before for (before, signal), _ in EPOCH_TRANSITIONS.items() if signal is EpochSignal.LEAVE}
    assert leaves == set(EpochState)
