"""Our share consumer: acknowledgements, sessions, locks, leaders, membership, closing."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import (
    BrokerError,
    ConfigError,
    DecodeError,
    TimedOut,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.client.share_consumer import ShareConsumer
from fairlead_kafka.consumer.share import SHARE_TRANSITIONS, AcknowledgeType, ShareSignal, ShareState
from fairlead_kafka.wire import ApiKey
from tests.support.fake_share_group import GROUP
from tests.support.share_rig import T0, T1, Sharing

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


@pytest.fixture
def rig() -> Sharing:
    return Sharing()


@pytest.fixture
def wide() -> Sharing:
    return Sharing(nodes=2, partitions=2)


def test_the_next_poll_accepts_what_the_last_one_gave(rig: Sharing) -> None:
    with rig.member() as member:
        records = rig.polled(member, 10)
        assert [record.offset for record in records] == list(range(10))
        assert records[3] == ("t", 0, 3, 1003, 0, None, b"3", (), 1)
        assert rig.group.state(T0) == "q" * 10
        assert member.poll(0.1) == []
        assert rig.group.state(T0) == "d" * 10
        assert len(rig.cluster.asked(ApiKey.SHARE_ACKNOWLEDGE)) == 0, "they go with the fetch"


def test_commit_accepts_and_tells_the_outcome(rig: Sharing) -> None:
    with rig.member() as member:
        assert member.commit() == {}
        rig.polled(member, 10)
        assert member.commit() == {T0: None}
        assert rig.group.state(T0) == "d" * 10
        assert member.commit() == {}
        metrics = member.metrics()["consumer-share-fetch-manager-metrics"]
        assert metrics["acknowledgements-send-total"] == 10
        assert metrics["acknowledgements-error-total"] == 0
        assert metrics["records-consumed-total"] == 10
        assert metrics["fetch-total"] > 0
        assert member.acquisition_lock_timeout_ms() == 30_000


def test_closing_releases_what_was_not_acknowledged(rig: Sharing) -> None:
    member = rig.member()
    rig.polled(member, 10)
    member.close()
    assert rig.group.state(T0) == "a" * 10
    assert rig.group.sessions == {}
    assert rig.group.members == {}
    last = rig.cluster.asked(ApiKey.SHARE_ACKNOWLEDGE)[-1].message
    assert last.share_session_epoch == -1
    with pytest.raises(UsageError, match="closed"):
        member.poll(0.1)
    member.close()
    with rig.member() as other:
        assert {record.delivery_count for record in rig.polled(other, 10)} == {2}


def test_each_record_is_acknowledged_by_its_type(rig: Sharing) -> None:
    with rig.member("explicit") as member:
        records = rig.polled(member, 10)
        for record in records:
            member.acknowledge(record, (ACCEPT, RELEASE, REJECT)[record.offset % 3])
        member.acknowledge(records[0], REJECT)  # another type, until it is sent
        again = member.poll(0.1)
        assert [(record.offset, record.delivery_count) for record in again] == [(1, 2), (4, 2), (7, 2)]
        assert rig.group.happened("reject") == [(0, 1), (2, 1), (5, 1), (8, 1)]
        with pytest.raises(UsageError, match="3 are not"):
            member.poll(0.1)
        with pytest.raises(UsageError, match="offset 0 of t-0 cannot be acknowledged"):
            member.acknowledge(records[0])
        member.acknowledge_offset("t", 0, 1, ACCEPT)
        assert member.commit() == {T0: None}
        with pytest.raises(UsageError, match="2 are not"):
            member.poll(0.1)
    assert rig.group.state(T0) == "ddddaddadd"


def test_implicit_mode_refuses_to_be_told(rig: Sharing) -> None:
    with rig.member() as member:
        record = rig.polled(member, 10)[0]
        with pytest.raises(UsageError, match=r"acknowledged implicitly.*share.acknowledgement.mode=explicit"):
            member.acknowledge(record)
        with pytest.raises(UsageError, match="acknowledged implicitly"):
            member.acknowledge_table(member.poll_table(0))


def test_a_table_is_acknowledged_by_a_column(rig: Sharing) -> None:
    import pyarrow as pa

    with rig.member("explicit") as member:
        table = member.poll_table(5)
        assert table.column_names[-1] == "delivery_count"
        assert table.column("offset").to_pylist() == list(range(10))
        assert table.column("delivery_count").to_pylist() == [1] * 10
        kinds = ["accept", "Release", "REJECT", None, "accept"] * 2
        member.acknowledge_table(table.append_column("acknowledge_type", pa.array(kinds)))
        with pytest.raises(UsageError, match="2 are not"):
            member.poll_table(0)
        rest = table.append_column("what", pa.array([2] * 10, pa.int8()))
        member.acknowledge_table(rest.filter(pa.array([kind is None for kind in kinds])), column="what")
        again = member.poll_table(1, columns=["offset", "delivery_count"])
        assert again.to_pydict() == {"offset": [1, 3, 6, 8], "delivery_count": [2] * 4}
    assert rig.group.happened("reject") == [(2, 1), (7, 1)]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["accept", "keep"], "acknowledge type 'keep' does not exist; there are accept, release, reject"),
        ([1, 9], "acknowledge type 9 does not exist; there are 1 .accept."),
        ([1.0, 2.0], "acknowledge types are of type double"),
    ],
)
def test_a_column_of_other_things_is_refused_whole(rig: Sharing, column: list[Any], said: str) -> None:
    import pyarrow as pa

    with rig.member("explicit") as member:
        table = member.poll_table(5).slice(0, 2)
        with pytest.raises(UsageError, match=said):
            member.acknowledge_table(table.append_column("acknowledge_type", pa.array(column)))
        with pytest.raises(UsageError, match="no column acknowledge_type"):
            member.acknowledge_table(table)
        with pytest.raises(UsageError, match="10 are not"):
            member.poll(0)


def test_records_of_a_renewed_lock_come_again_alone(rig: Sharing) -> None:
    with rig.member("explicit") as member:
        records = rig.polled(member, 10)
        for record in records:
            member.acknowledge(record, RENEW if record.offset in (2, 5) else ACCEPT)
        rig.cluster.write("t", 0, [b"new"])
        again = member.poll(1)
        assert [(record.offset, record.value, record.delivery_count) for record in again] == [
            (2, b"2", 1),
            (5, b"5", 1),
        ]
        for record in again:
            member.acknowledge(record)
        assert [record.offset for record in member.poll(1)] == [10]
        assert rig.group.happened("renew") == [(2, 1), (5, 1)]
        assert rig.group.happened("accept") == [(n, 1) for n in (0, 1, 3, 4, 6, 7, 8, 9, 2, 5)]


def test_old_brokers_renew_no_lock(rig: Sharing) -> None:
    rig.cluster.versions[ApiKey.SHARE_ACKNOWLEDGE] = rig.cluster.versions[ApiKey.SHARE_FETCH] = (1, 1)
    with rig.member("explicit") as member:
        for record in rig.polled(member, 10):
            member.acknowledge(record, RENEW)
        outcome = member.commit()
        assert isinstance(outcome[T0], UnsupportedVersion)
        assert member.poll(0.1) == []


def test_a_lock_that_ended_is_told_and_the_record_comes_again() -> None:
    rig = Sharing(lock_ms=1_000)
    heard: list[Any] = []
    with rig.member("explicit") as member:
        member.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
        records = rig.polled(member, 10)
        rig.host.advance(1_500)
        for record in records:
            member.acknowledge(record)
        outcome = member.commit()
        assert isinstance(outcome[T0], BrokerError)
        assert outcome[T0].code == ErrorCode.INVALID_RECORD_STATE
        ((offsets, error),) = heard
        assert offsets == {T0: list(range(10))}
        assert error is outcome[T0]
        assert {record.delivery_count for record in member.poll(1)} == {2}


def test_what_waited_until_its_lock_was_over_is_not_returned() -> None:
    rig = Sharing(nodes=2, partitions=2, lock_ms=1_000)
    with rig.member(max_poll_records=1) as member:
        rig.polled(member, 20)
        assert None in member.commit().values()
        before = member.metrics()["consumer-share-fetch-manager-metrics"]["records-acquired-total"]
        rig.cluster.write("t", 0, [b"a"])
        rig.cluster.write("t", 1, [b"b"])
        first = rig.polled(member, 1)
        rig.host.advance(1_500)  # the other broker's answer has come, and waits
        assert (
            member.metrics()["consumer-share-fetch-manager-metrics"]["records-acquired-total"] == before + 2
        )
        again = rig.polled(member, 2)
        assert {(record.partition, record.delivery_count) for record in again} == {(0, 2), (1, 2)}
        assert member.metrics()["consumer-share-fetch-manager-metrics"]["records-expired-total"] == 1
        assert [record.delivery_count for record in first] == [1]


def test_acknowledgements_of_a_session_that_is_over_fail_at_once(rig: Sharing) -> None:
    with rig.member("explicit") as member:
        for record in rig.polled(member, 10):
            member.acknowledge(record)
        rig.group.hang_up(1)
        rig.host.advance(10)
        outcome = member.commit()
        assert outcome[T0] is not None
        assert rig.group.happened("accept") == []
        assert {record.delivery_count for record in rig.polled(member, 10)} == {2}


@pytest.mark.parametrize("code", [ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH])
def test_a_session_that_the_broker_lost_begins_again(rig: Sharing, code: int) -> None:
    with rig.member() as member:
        rig.polled(member, 10)
        rig.cluster.errors[ApiKey.SHARE_FETCH, GROUP] += [code]
        rig.cluster.write("t", 0, [b"new"])
        assert [record.value for record in rig.polled(member, 1)] == [b"new"]
        epochs = [request.message.share_session_epoch for request in rig.cluster.asked(ApiKey.SHARE_FETCH)]
        assert 0 in epochs[1:]


def test_passing_errors_are_waited_out_and_others_raised_once(rig: Sharing) -> None:
    with rig.member() as member:
        rig.cluster.errors[ApiKey.SHARE_FETCH, GROUP] += [ErrorCode.SHARE_SESSION_LIMIT_REACHED] * 2
        rig.cluster.errors[ApiKey.SHARE_FETCH, T0] += [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        with pytest.raises(BrokerError, match="the right to Read on the topic"):
            rig.polled(member, 10)
        assert len(rig.polled(member, 10)) == 10


def test_acknowledgements_are_sent_again_while_the_error_passes(rig: Sharing) -> None:
    with rig.member() as member:
        rig.polled(member, 10)
        rig.cluster.errors["acks", T0] += [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3  # type: ignore[index]
        assert member.commit() == {T0: None}
        rig.cluster.write("t", 0, [b"new"])
        rig.polled(member, 1)
        rig.cluster.errors["acks", T0] += [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000  # type: ignore[index]
        assert isinstance(member.commit(1)[T0], TimedOut)


def test_leaders_move_and_what_the_old_one_gave_is_not_acknowledged(wide: Sharing) -> None:
    with wide.member("explicit") as member:
        records = wide.polled(member, 10)
        moved = records[0].partition
        wide.cluster.move("t", moved, 2 if wide.cluster.log("t", moved).leader == 1 else 1)
        for record in records:
            member.acknowledge(record)
        outcome = member.commit()
        partition = T0 if moved == 0 else T1
        assert isinstance(outcome[partition], BrokerError)
        assert outcome[partition].code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        seen, until_ns = [], wide.host.now_ns() + 60 * 10**9
        for _ in range(50):
            for record in member.poll(0.1):
                member.acknowledge(record)
                seen.append(record.partition)
            if wide.host.now_ns() > until_ns:
                break
            wide.host.advance(1_000)
        assert set(seen) == {0, 1}
        assert member.commit() in ({}, {T0: None}, {T1: None}, {T0: None, T1: None})


def test_record_limit_is_kept_and_asks_one_broker_at_a_time(wide: Sharing) -> None:
    with wide.member(share_acquire_mode="record_limit", max_poll_records=4) as member:
        sizes = []
        for _ in range(20):
            sizes.append(len(member.poll(1)))
            assert sum(state == "q" for state in wide.group.state(T0) + wide.group.state(T1)) <= 4
        assert (sum(sizes), max(sizes)) == (20, 4)
        modes = {request.message.share_acquire_mode for request in wide.cluster.asked(ApiKey.SHARE_FETCH)}
        assert modes == {1}


def test_a_damaged_batch_is_rejected_and_told_once(rig: Sharing) -> None:
    rig.cluster.write("t", 0, [b"bad"] * 3, corrupt=True)
    rig.cluster.write("t", 0, [b"good"])
    with rig.member() as member:
        assert [record.offset for record in rig.polled(member, 11)] == [*range(10), 13]
        with pytest.raises(DecodeError, match="t-0"):
            member.poll(0.1)
        assert member.poll(0.1) == []
    assert rig.group.happened("reject") == [(10, 1), (11, 1), (12, 1)]


def test_gaps_are_acknowledged_as_gaps(rig: Sharing) -> None:
    rig.cluster.write("t", 0, [b"x"], transaction_of=5)
    rig.cluster.end_transaction("t", 0, 5, commit=True)  # the marker is an offset without a record
    with rig.member() as member:
        assert [record.offset for record in rig.polled(member, 11)] == list(range(11))
        assert member.commit() == {T0: None}
    assert rig.group.happened("gap") == [(11, 1)]


def test_a_fenced_member_joins_again(rig: Sharing) -> None:
    with rig.member() as member:
        rig.polled(member, 10)
        rig.cluster.errors[ApiKey.SHARE_GROUP_HEARTBEAT, GROUP] += [ErrorCode.FENCED_MEMBER_EPOCH]
        rig.host.advance(1_000)
        rig.cluster.write("t", 0, [b"new"])
        assert [record.value for record in rig.polled(member, 1)] == [b"new"]
        beats = [request.message for request in rig.cluster.asked(ApiKey.SHARE_GROUP_HEARTBEAT)]
        assert [beat.member_epoch for beat in beats].count(0) == 2
        assert len({beat.member_id for beat in beats}) == 1
        assert beats[1].subscribed_topic_names is None


def test_who_does_not_poll_leaves_and_comes_back(rig: Sharing) -> None:
    with rig.member(max_poll_interval_ms=2_000) as member:
        rig.polled(member, 10)
        rig.host.advance(3_000)
        assert rig.group.members == {}
        rig.cluster.write("t", 0, [b"new"])
        assert [record.value for record in rig.polled(member, 1)] == [b"new"]


def test_a_member_joins_before_it_polls_however_late_it_is(rig: Sharing) -> None:
    rig.host.advance(1_000_000)
    with rig.member() as member:
        rig.host.advance(100)
        assert member.metrics()["consumer-share-coordinator-metrics"]["assigned-partitions"] == 1


def test_errors_of_the_group_are_raised_by_every_poll(rig: Sharing) -> None:
    rig.cluster.errors[ApiKey.SHARE_GROUP_HEARTBEAT, GROUP] += [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    with rig.member() as member:
        for _ in range(2):
            with pytest.raises(BrokerError, match="the right to Read on the group"):
                member.poll(1)
        member.subscribe(["t"])
        assert len(rig.polled(member, 10)) == 10


def test_a_cluster_without_share_groups_is_named(rig: Sharing) -> None:
    del rig.cluster.versions[ApiKey.SHARE_GROUP_HEARTBEAT]
    with rig.member() as member, pytest.raises(UnsupportedVersion, match="serves no share groups"):
        member.poll(1)


def test_subscriptions_change(rig: Sharing) -> None:
    rig.cluster.topic("u")
    rig.cluster.write("u", 0, [b"of u"])
    with rig.member() as member:
        rig.polled(member, 10)
        member.subscribe(["u"])
        assert member.subscription() == ["u"]
        assert [record.topic for record in rig.polled(member, 1)] == ["u"]
        rig.cluster.write("t", 0, [b"more"])
        assert member.poll(0.5) == []
        member.unsubscribe()
        assert (member.subscription(), rig.group.members) == ([], {})
        with pytest.raises(UsageError, match="call subscribe first"):
            member.poll(0.1)
        assert rig.group.state(T0) == "d" * 10 + "a"


def test_what_the_callback_raises_is_raised_and_nothing_is_lost(rig: Sharing) -> None:
    def fail(_offsets: Any, _error: Any) -> None:
        with pytest.raises(UsageError, match="another call"):
            member.poll(0)
        raise RuntimeError("mine")

    with rig.member(max_poll_records=1) as member:
        member.set_acknowledgement_commit_callback(fail)
        rig.polled(member, 10)
        rig.cluster.write("t", 0, [b"new"])
        with pytest.raises(RuntimeError, match="mine"):
            member.poll(1)
        member.set_acknowledgement_commit_callback(None)
        assert [record.value for record in rig.polled(member, 1)] == [b"new"]


def test_settings_that_a_share_consumer_does_not_take() -> None:
    with pytest.raises(ConfigError) as raised:
        ShareConsumer(
            {
                "bootstrap.servers": "a:1",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "x.y": 1,
            }
        )
    said = str(raised.value)
    assert "auto.offset.reset: cannot be set for a share consumer: it is the group's" in said
    assert "enable.auto.commit: cannot be set" in said
    assert "group.id: required, and not given" in said
    with pytest.raises(ConfigError, match=r"value.deserializer: cannot be set .* deserialize after polling"):
        ShareConsumer({"bootstrap.servers": "a:1", "group.id": "g", "value.deserializer": "json"})
    assert "x.y: unknown" in said
    with pytest.raises(ConfigError, match=r"share.acknowledgement.mode: must be one of implicit, explicit"):
        ShareConsumer({"bootstrap.servers": "a:1", "group.id": "g", "share.acknowledgement.mode": "auto"})


def test_every_state_of_a_member_is_left_by_a_failure_and_by_leaving() -> None:
    for state in ShareState:
        assert SHARE_TRANSITIONS[state, ShareSignal.FAIL] is ShareState.FATAL
        assert SHARE_TRANSITIONS[state, ShareSignal.LEAVE] is ShareState.UNSUBSCRIBED
