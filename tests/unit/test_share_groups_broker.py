"""Share groups of one broker, request by request: what goes wrong between requests, and who is to
hear of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.k78_share_fetch import REFUSED_WAIT_MAX_MS, UNKNOWN_PARTITIONS_MAX
from fairlead_kafka.broker.api.share_requests import NOT_HOSTED
from fairlead_kafka.broker.share_groups import (
    RecordState,
    ShareCoordinator,
    ShareKey,
    ShareState,
    StateBatch,
    StateUpdate,
)
from fairlead_kafka.broker.share_groups.persister import GIVE_UP_MS, RETRY_MS
from fairlead_kafka.broker.share_groups.sessions import SESSIONS_MAX
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.broker.share_groups.share_state import combined
from fairlead_kafka.broker.timers import Timer
from fairlead_kafka.wire import ApiKey, Message
from tests.support.share_group_rig import GROUP, ShareGroupRig, acquired

ACCEPT, RELEASE = 1, 2


@pytest.fixture
def rig() -> ShareGroupRig:
    made = ShareGroupRig()
    made.produce(10)
    return made


class Away:
    """A share coordinator that takes no writes while `away`; it is asked again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away = True
        self.taken: list[StateUpdate] = []
        write = ShareCoordinator.write

        def refuse(
            own: ShareCoordinator, key: ShareKey, epoch: int, update: StateUpdate, done: Callable[[int], None]
        ) -> None:
            if self.away:
                raise BrokerError(ErrorCode.NOT_COORDINATOR, "away for a moment")
            self.taken.append(update)
            write(own, key, epoch, update, done)

        monkeypatch.setattr(ShareCoordinator, "write", refuse)


# --- Writes that are late


def test_a_write_that_is_under_way_when_the_last_session_ends_is_settled_before_others_acquire(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = rig.driver.connect(), rig.driver.connect()
    assert rig.fetch(client, 0) == [(0, 9, 1)]
    coordinator = Away(monkeypatch)
    client.send(ApiKey.SHARE_ACKNOWLEDGE, 2, **rig.ack_fields(1, (0, 9, [RELEASE])))
    assert rig.fetch(other, -1, topics=[]) == []
    assert rig.fetch(other, 0, "z") == []
    coordinator.away = False
    rig.driver.advance(500)
    assert rig.fetch(other, 1, "z") == [(0, 9, 2)]
    assert rig.acknowledge(other, 2, (0, 9, [ACCEPT]), member="z") == ErrorCode.NONE
    assert [[batch.state for batch in update.batches] for update in coordinator.taken] == [
        [RecordState.AVAILABLE],
        [RecordState.ACKNOWLEDGED],
    ]
    assert rig.fetch(other, -1, "z", topics=[]) == []
    assert len(rig.partitions) == 0
    assert rig.fetch(other, 0, "w") == []


def test_a_share_partition_is_dropped_once_its_last_write_is_settled(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = rig.driver.connect()
    rig.fetch(client, 0)
    coordinator = Away(monkeypatch)
    client.send(ApiKey.SHARE_ACKNOWLEDGE, 2, **rig.ack_fields(1, (0, 9, [ACCEPT])))
    rig.drop(client)
    assert len(rig.partitions) == 1
    coordinator.away = False
    rig.driver.advance(500)
    assert len(rig.partitions) == 0
    assert rig.fetch(rig.driver.connect(), 0, "z") == []


def test_an_update_that_was_overtaken_moves_no_start_offset_back() -> None:
    state = ShareState(state_epoch=1, start_offset=10, complete_count=0)
    late = StateUpdate(0, 0, 0, 3, (StateBatch(0, 9, 0, 1), StateBatch(8, 11, 2, 1)))
    after = state.updated(late)
    assert (after.start_offset, after.complete_count) == (10, 0)
    assert after.batches == (StateBatch(10, 11, 2, 1),)
    assert state.updated(StateUpdate(0, 0, 12, 1)).start_offset == 12
    assert state.updated(StateUpdate(0, 0, -1, 1)).complete_count == 1


# --- Acknowledgements


@pytest.mark.parametrize("batches", [((0, 3), (3, 5)), ((0, 5), (2, 4)), ((4, 5), (0, 3))])
def test_batches_that_overlap_or_are_out_of_order_change_nothing(
    rig: ShareGroupRig, batches: Sequence[tuple[int, int]]
) -> None:
    client = rig.driver.connect()
    rig.fetch(client, 0)
    acks = [(first, last, [ACCEPT]) for first, last in batches]
    assert rig.acknowledge(client, 1, *acks) == ErrorCode.INVALID_REQUEST
    assert rig.acknowledge(client, 2, (0, 9, [RELEASE])) == ErrorCode.NONE
    assert rig.fetch(client, 3) == [(0, 9, 2)]


# --- Fetches whose session is over


@pytest.mark.parametrize("by_request", [False, True], ids=["connection ends", "request"])
def test_a_fetch_that_waits_acquires_nothing_for_a_session_that_ends(
    rig: ShareGroupRig, by_request: bool
) -> None:
    for _ in range(6):
        client = rig.driver.connect()
        rig.fetch(client, 0, "w", max_records=0)
        before = len(client.arrived)
        waiting = rig.fields(1, "w", min_bytes=1000, max_wait_ms=60_000)
        client.send(ApiKey.SHARE_FETCH, 2, **waiting)
        assert len(client.arrived) == before
        if by_request:
            assert rig.fetch(rig.driver.connect(), -1, "w", topics=[]) == []
            assert acquired(client.arrived[before]) == []
        else:
            rig.drop(client)
    assert rig.fetch(rig.driver.connect(), 0, "z") == [(0, 9, 1)]


def test_a_fetch_that_waits_acquires_nothing_for_a_session_that_is_replaced(rig: ShareGroupRig) -> None:
    client, other = rig.driver.connect(), rig.driver.connect()
    rig.fetch(client, 0, "w", max_records=0)
    before = len(client.arrived)
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(1, "w", min_bytes=1000, max_wait_ms=60_000))
    assert rig.fetch(other, 0, "w") == [(0, 9, 1)]
    assert acquired(client.arrived[before]) == []


def test_a_fetch_whose_connection_ends_while_the_state_is_read_acquires_nothing(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ShareCoordinator.read
    late: list[Callable[[], None]] = []

    def slow(own: ShareCoordinator, key: ShareKey, epoch: int, done: Stateful) -> None:
        read(own, key, epoch, lambda error, state: late.append(lambda: done(error, state)))

    monkeypatch.setattr(ShareCoordinator, "read", slow)
    client, other = rig.driver.connect(), rig.driver.connect()
    rig.fetch(other, 0, "other", topics=[])
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0))
    assert len(late) == 1
    rig.drop(client)
    late[0]()
    monkeypatch.undo()
    topics = [rig.topic()]
    assert rig.fetch(other, 1, "other", topics=topics) == [(0, 9, 1)]


def test_a_session_that_may_not_be_replaced_stays(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = rig.driver.connect(), rig.driver.connect()
    rig.fetch(client, 0)
    rig.fetch(other, 0, "other")
    limit_sessions(rig, monkeypatch)
    answer = rig.call(rig.admin, ApiKey.SHARE_FETCH, 2, **rig.fields(0))
    assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert len(rig.sessions) == 2
    rig.drop(client)
    rig.drop(other)
    assert (len(rig.sessions), len(rig.partitions)) == (0, 0)


class Limited:
    """The host of share sessions, of which there may be one."""

    def __init__(self, host: Any) -> None:
        self.settings = {SESSIONS_MAX: 1}
        self.share_partitions = host.share_partitions


def limit_sessions(rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the broker take no more share sessions than it has."""
    monkeypatch.setattr(rig.sessions, "_host", Limited(rig.sessions._host))


# --- States that records cannot have

BAD_STATES = [
    StateBatch(2, 4, 77, 1),
    StateBatch(0, 5, RecordState.ACQUIRED, 1),
    StateBatch(0, 2**63 - 1, RecordState.AVAILABLE, 1),
    StateBatch(-2, 4, RecordState.ARCHIVED, 1),
    StateBatch(5, 4, RecordState.ARCHIVED, 1),
    StateBatch(0, 4, RecordState.AVAILABLE, -1),
]


def write_state(rig: ShareGroupRig, batch: StateBatch, start_offset: int = 0) -> int:
    """The error of a WriteShareGroupState of one batch."""
    row = Message(
        first_offset=batch.first,
        last_offset=batch.last,
        delivery_state=batch.state,
        delivery_count=batch.deliveries,
    )
    partition = Message(
        partition=0,
        state_epoch=-1,
        leader_epoch=-1,
        start_offset=start_offset,
        delivery_complete_count=0,
        state_batches=[row],
    )
    topic = Message(topic_id=rig.topic_id, partitions=[partition])
    answer = rig.call(rig.admin, ApiKey.WRITE_SHARE_GROUP_STATE, 1, group_id=GROUP, topics=[topic])
    return int(answer.results[0].partitions[0].error_code)


@pytest.mark.parametrize("batch", BAD_STATES, ids=str)
def test_states_that_records_cannot_have_are_not_written(rig: ShareGroupRig, batch: StateBatch) -> None:
    assert write_state(rig, batch) == ErrorCode.INVALID_REQUEST
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]


def test_a_start_offset_that_is_none_is_not_written(rig: ShareGroupRig) -> None:
    assert write_state(rig, StateBatch(0, 1, 0, 1), -2) == ErrorCode.INVALID_REQUEST
    assert write_state(rig, StateBatch(0, 1, 0, 1), 2**63 - 1) == ErrorCode.INVALID_REQUEST


def test_deliveries_are_counted_as_far_as_the_protocol_can_say(rig: ShareGroupRig) -> None:
    assert write_state(rig, StateBatch(0, 9, RecordState.AVAILABLE, 2**15 - 1)) == ErrorCode.NONE
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 2**15 - 1)]


@pytest.mark.parametrize("batch", BAD_STATES, ids=str)
def test_a_bad_state_in_the_log_is_an_error_for_members_and_no_more(
    rig: ShareGroupRig, batch: StateBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ShareState(state_epoch=0, start_offset=0, batches=(batch,))
    monkeypatch.setattr(ShareCoordinator, "read", lambda _own, _key, _epoch, done: done(0, state))
    client = rig.driver.connect()
    answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(0))
    row = answer.responses[0].partitions[0]
    assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not client.closed
    monkeypatch.undo()
    assert rig.fetch(client, 1) == [(0, 9, 1)]


# --- What is kept, and for how long


def test_configs_are_kept_of_groups_that_have_share_partitions_here(rig: ShareGroupRig) -> None:
    client = rig.driver.connect()
    for number in range(5):
        group = {"group_id": f"ghost{number}"}
        rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(0, "x") | group)
        rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(-1, "x", topics=[]) | group)
    rig.call(client, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[Message(group_id=GROUP, topics=None)])
    assert rig.partitions._settings == {}
    rig.fetch(client, 0)
    assert set(rig.partitions._settings) == {GROUP}
    rig.fetch(client, -1, topics=[])
    assert rig.partitions._settings == {}


def test_a_refused_session_is_answered_late_but_not_for_ever(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.fetch(rig.driver.connect(), 0, "other")
    limit_sessions(rig, monkeypatch)
    client = rig.driver.connect()
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0, max_wait_ms=2**31 - 1))
    rig.driver.advance(REFUSED_WAIT_MAX_MS - 1)
    assert client.arrived == []
    rig.driver.advance(1)
    assert client.arrived[0].error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_a_refused_session_leaves_nothing_when_its_connection_ends(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.fetch(rig.driver.connect(), 0, "other")
    limit_sessions(rig, monkeypatch)
    waits: list[Timer] = []
    call_later = rig.driver.broker.call_later
    monkeypatch.setattr(
        rig.driver.broker, "call_later", lambda *given: waits.append(call_later(*given)) or waits[-1]
    )
    client = rig.driver.connect()
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0, max_wait_ms=30_000))
    assert [timer.pending for timer in waits] == [True]
    rig.drop(client)
    assert [timer.pending for timer in waits] == [False]


def test_a_session_has_few_partitions_that_the_broker_does_not_know(rig: ShareGroupRig) -> None:
    client = rig.driver.connect()
    rig.fetch(client, 0)

    def unknown(count: int) -> list[Message]:
        row = Message(partition_index=0, acknowledgement_batches=[])
        return [Message(topic_id=uuid4(), partitions=[row]) for _ in range(count)]

    fields = rig.fields(1, topics=unknown(UNKNOWN_PARTITIONS_MAX))
    answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **fields)
    assert len(answer.responses) == UNKNOWN_PARTITIONS_MAX
    fields = rig.fields(2, topics=unknown(1))
    assert rig.call(client, ApiKey.SHARE_FETCH, 2, **fields).error_code == ErrorCode.INVALID_REQUEST
    fields = rig.fields(0, topics=unknown(UNKNOWN_PARTITIONS_MAX + 1))
    assert rig.call(client, ApiKey.SHARE_FETCH, 2, **fields).error_code == ErrorCode.INVALID_REQUEST
    answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(3, topics=[rig.topic()]))
    assert len(answer.responses) == UNKNOWN_PARTITIONS_MAX


def test_an_acquire_mode_that_there_is_not_is_refused(rig: ShareGroupRig) -> None:
    client = rig.driver.connect()
    answer = rig.call(client, ApiKey.SHARE_FETCH, 2, **rig.fields(0, share_acquire_mode=2))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert len(rig.sessions) == 0
    assert rig.fetch(client, 0, share_acquire_mode=1) == [(0, 9, 1)]


def test_a_partition_that_is_named_twice_tells_its_first_error(rig: ShareGroupRig) -> None:
    client = rig.driver.connect()
    rig.fetch(client, 0)
    fields = rig.ack_fields(1)
    fields["topics"] = [rig.topic((77, 77, [ACCEPT])), rig.topic((4, 4, [ACCEPT]))]
    answer = rig.call(client, ApiKey.SHARE_ACKNOWLEDGE, 2, **fields)
    (row,) = answer.responses[0].partitions
    assert row.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("offset", [-(2**63), -5, -2, 2**63 - 1])
def test_a_group_is_not_set_to_an_offset_that_no_record_has(rig: ShareGroupRig, offset: int) -> None:
    rig.leave()
    assert rig.alter(offset) == ErrorCode.INVALID_REQUEST
    assert rig.describe() == (0, [(-1, -1)])
    assert rig.alter(4) == ErrorCode.NONE
    assert rig.describe() == (0, [(4, 6)])


def test_the_lag_of_a_start_far_below_0_is_what_the_answer_can_hold(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = ShareState(state_epoch=0, start_offset=-(2**63), complete_count=0)
    monkeypatch.setattr(ShareCoordinator, "summary", lambda _own, _key, done: done(0, state))
    assert rig.describe() == (0, [(-(2**63), 2**63 - 1)])


def test_offsets_of_topics_that_are_not_there_make_no_group(rig: ShareGroupRig) -> None:
    topic = Message(topic_name="nowhere", partitions=[Message(partition_index=0, start_offset=0)])
    answer = rig.call(rig.admin, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id="new", topics=[topic])
    (row,) = answer.responses[0].partitions
    assert (row.error_code, row.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=["new"]).results[0].error_code == (
        ErrorCode.GROUP_ID_NOT_FOUND
    )
    topic = Message(topic_name="t", partitions=[Message(partition_index=9, start_offset=0)])
    answer = rig.call(rig.admin, ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id="new", topics=[topic])
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = {"group_id": "new", "topics": [Message(topic_name="t")]}
    assert rig.call(rig.admin, ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, **asked).error_code == ErrorCode.NONE
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=["new"]).results[0].error_code == 0


def test_locks_that_were_over_are_written_with_the_next_change_if_their_write_failed(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = rig.driver.connect()
    assert rig.fetch(client, 0, max_records=5, share_acquire_mode=1) == [(0, 4, 1)]
    coordinator = Away(monkeypatch)
    rig.driver.advance(30_000 + GIVE_UP_MS + 2 * RETRY_MS)
    coordinator.away = False
    assert rig.fetch(client, 1, max_records=5, share_acquire_mode=1) == [(0, 4, 2)]
    assert coordinator.taken == []
    assert rig.acknowledge(client, 2, (2, 3, [ACCEPT])) == ErrorCode.NONE
    (update,) = coordinator.taken
    assert combined(update.batches, update.start_offset) == (
        StateBatch(0, 1, RecordState.AVAILABLE, 1),
        StateBatch(2, 3, RecordState.ACKNOWLEDGED, 2),
        StateBatch(4, 4, RecordState.AVAILABLE, 1),
    )


# --- The topic of states


def test_the_topic_of_states_is_not_compacted(rig: ShareGroupRig) -> None:
    """All changes since a snapshot have one key: compaction would keep the last of them alone."""
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]
    image = rig.driver.broker.controller.image.topics["__share_group_state"]
    assert image.configs["cleanup.policy"] == "delete"
    assert (image.configs["retention.ms"], image.configs["retention.bytes"]) == ("-1", "-1")
    assert image.configs["min.insync.replicas"] == "1"


def test_the_brokers_config_says_how_many_records_may_be_in_flight() -> None:
    rig = ShareGroupRig(**{"group.share.partition.max.record.locks": 100})
    for _ in range(12):
        rig.produce(10)
    client = rig.driver.connect()
    acquired = rig.fetch(client, 0)
    assert (acquired[0][0], acquired[-1][1]) == (0, 99)
    assert rig.fetch(client, 1) == []
    assert rig.acknowledge(client, 2, (0, 9, [ACCEPT])) == ErrorCode.NONE
    assert rig.fetch(client, 3) == [(100, 109, 1)]


def test_records_behind_a_gap_longer_than_may_be_in_flight_are_delivered(rig: ShareGroupRig) -> None:
    rig.produce(3000)
    rig.produce(10)
    partition = rig.driver.broker.log_of("t", 0)
    assert not isinstance(partition, int)
    rig.driver.broker.logs._segments.release(partition.remove(10, 3009))  # as compaction does
    client = rig.driver.connect()
    assert rig.fetch(client, 0) == [(0, 9, 1)]
    assert rig.fetch(client, 1) == []
    assert rig.acknowledge(client, 2, (0, 9, [ACCEPT])) == ErrorCode.NONE
    assert rig.fetch(client, 3) == [(3010, 3019, 1)]
