"""Questions of a broker to share coordinators whose answers are late or lost: what is asked again
undoes nothing, and goes on no longer than somebody waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.share_groups import (
    Alteration,
    ShareCoordinator,
    ShareKey,
    StatePartitions,
    StatePartitionsKey,
    TopicState,
    decode_share_value,
    encode_share_value,
)
from fairlead_kafka.broker.share_groups.persister import GIVE_UP_MS, RETRY_MS
from fairlead_kafka.broker.share_groups.share_coordinator import Stateful
from fairlead_kafka.broker.share_groups.share_state import decode_deleted, encode_deletion
from fairlead_kafka.wire import ApiKey, Message, PrivateApi
from tests.support.share_group_rig import GROUP, ShareGroupRig

ACCEPT = 1


@pytest.fixture
def rig() -> ShareGroupRig:
    made = ShareGroupRig()
    made.produce(10)
    return made


def initialize_state(rig: ShareGroupRig, state_epoch: int, start_offset: int) -> int:
    """The error of an InitializeShareGroupState."""
    partition = Message(partition=0, state_epoch=state_epoch, start_offset=start_offset)
    topic = Message(topic_id=rig.topic_id, partitions=[partition])
    answer = rig.call(rig.admin, ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, group_id=GROUP, topics=[topic])
    return int(answer.results[0].partitions[0].error_code)


def state_epoch(rig: ShareGroupRig) -> int:
    """The state epoch of the group's share partition."""
    topic = Message(topic_id=rig.topic_id, partitions=[Message(partition=0, leader_epoch=-1)])
    api_key = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    answer = rig.call(rig.admin, api_key, 1, group_id=GROUP, topics=[topic])
    return int(answer.results[0].partitions[0].state_epoch)


def test_a_state_that_is_in_use_is_not_begun_again_by_a_question_that_is_late(rig: ShareGroupRig) -> None:
    """The group coordinator asks again if an answer was lost: what was accepted meanwhile stays."""
    client = rig.driver.connect()
    assert rig.fetch(client, 0) == [(0, 9, 1)]
    assert rig.acknowledge(client, 1, (0, 4, [ACCEPT])) == ErrorCode.NONE
    assert rig.fetch(client, -1, topics=[]) == []
    epoch = state_epoch(rig)
    assert initialize_state(rig, epoch, -1) == ErrorCode.NONE
    assert initialize_state(rig, epoch, 3) == ErrorCode.NONE
    assert initialize_state(rig, epoch - 1, -1) == ErrorCode.FENCED_STATE_EPOCH
    other = rig.driver.connect()
    assert rig.fetch(other, 0, "z") == [(5, 9, 2)]
    assert rig.fetch(other, -1, "z", topics=[]) == []
    assert initialize_state(rig, epoch + 1, 3) == ErrorCode.NONE  # of an admin, who has altered it since
    assert rig.fetch(rig.driver.connect(), 0, "z") == [(3, 9, 1)]


class Lost:
    """A method of a share coordinator that does what it is asked, once, and whose answers are lost
    while `lost`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.lost = True
        self.calls = 0
        method = getattr(ShareCoordinator, name)

        def lose(own: ShareCoordinator, *given: Any) -> None:
            self.calls += 1
            if not self.lost:
                method(own, *given)
                return
            if self.calls == 1:
                method(own, *given[:-1], lambda _error: None)
            raise BrokerError(ErrorCode.NOT_COORDINATOR, "away for a moment")

        monkeypatch.setattr(ShareCoordinator, name, lose)


class Uncommitted:
    """A log of groups that takes records and does not commit them yet."""

    def __init__(self, rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[Callable[[int], None]] = []
        log = rig.driver.broker.coordinator._log
        append = log._append_columns

        def hold(topic: str, number: int, columns: Any, done: Callable[[int, int], None], who: Any) -> None:
            def committed(_error: int, base: int) -> None:
                self.held.append(lambda error: done(error, base))

            append(topic, number, columns, committed, who)

        monkeypatch.setattr(log, "_append_columns", hold)

    def end(self, error: int) -> None:
        """Tell the first write how it ended."""
        self.held.pop(0)(error)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_states_are_begun_once_the_log_has_the_heartbeat_that_wants_them(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch, error: ErrorCode
) -> None:
    """A coordinator that is one no more would leave states that no group knows of."""
    begun: list[ShareKey] = []
    initialize = ShareCoordinator.initialize

    def note(own: ShareCoordinator, key: ShareKey, *given: Any) -> None:
        begun.append(key)
        initialize(own, key, *given)

    monkeypatch.setattr(ShareCoordinator, "initialize", note)
    log = Uncommitted(rig, monkeypatch)
    for member in ("one", "two"):
        fields = {"group_id": "new", "member_id": member, "member_epoch": 0, "rack_id": None}
        rig.driver.connect().send(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **fields, subscribed_topic_names=["t"])
    assert begun == []
    log.end(error)
    rig.driver.advance(2 * RETRY_MS)
    assert begun == ([] if error else [ShareKey("new", rig.topic_id, 0)])


def test_offsets_that_were_altered_are_not_altered_again_by_a_question_that_is_late(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What members have accepted while the answer was lost stays so."""
    rig.leave()
    coordinator = Lost(monkeypatch, "initialize")
    admin, client = rig.driver.connect(), rig.driver.connect()
    topic = Message(topic_name="t", partitions=[Message(partition_index=0, start_offset=2)])
    admin.send(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
    rig.driver.advance(2 * RETRY_MS)
    assert coordinator.calls > 1
    assert rig.fetch(client, 0) == [(2, 9, 1)]
    assert rig.acknowledge(client, 1, (2, 5, [ACCEPT])) == ErrorCode.NONE
    assert rig.fetch(client, -1, topics=[]) == []
    coordinator.lost = False
    rig.driver.advance(2 * RETRY_MS)
    assert admin.arrived[-1].responses[0].partitions[0].error_code == ErrorCode.NONE
    assert rig.fetch(rig.driver.connect(), 0, "z") == [(6, 9, 2)]


def test_an_alteration_that_a_lost_coordinator_had_begun_is_ended_by_the_next(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leave()
    initialize = Lost(monkeypatch, "initialize")
    initialize.calls = 1  # nothing of it is done
    admin, client = rig.driver.connect(), rig.driver.connect()
    topic = Message(topic_name="t", partitions=[Message(partition_index=0, start_offset=4)])
    admin.send(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
    shards = rig.driver.broker.coordinator.shards
    shards.restart(shards.of(GROUP))
    rig.driver.advance(5000)
    epoch, numbers = rig.beat(0, ["t"])
    assert numbers == []
    initialize.lost = False
    rig.driver.advance(GIVE_UP_MS)
    assert rig.beat(epoch)[1] == [0]
    assert rig.fetch(client, 0) == [(4, 9, 1)]
    assert rig.acknowledge(client, 1, (4, 5, [ACCEPT])) == ErrorCode.NONE
    rig.fetch(client, -1, topics=[])
    shards.restart(shards.of(GROUP))
    rig.driver.advance(5000)
    assert rig.fetch(rig.driver.connect(), 0) == [(6, 9, 2)]


def test_an_alteration_that_was_refused_is_not_asked_for_by_the_next_coordinator(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leave()
    initialize = Lost(monkeypatch, "initialize")
    initialize.calls = 1
    assert rig.alter(4) == ErrorCode.NOT_COORDINATOR
    initialize.lost = False
    shards = rig.driver.broker.coordinator.shards
    shards.restart(shards.of(GROUP))
    rig.driver.advance(5000)
    assert rig.describe() == (0, [(-1, -1)])


def test_a_coordinator_that_is_one_no_more_asks_for_no_deletion_again(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state that it would forget may be of a group that was made again since."""
    rig.leave()
    delete = Lost(monkeypatch, "delete")
    admin = rig.driver.connect()
    admin.send(ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP])
    shards = rig.driver.broker.coordinator.shards
    shards.restart(shards.of(GROUP))
    asked = delete.calls
    rig.driver.advance(RETRY_MS)
    assert admin.arrived[-1].results[0].error_code == ErrorCode.NOT_COORDINATOR
    rig.driver.advance(GIVE_UP_MS)
    assert delete.calls == asked
    assert rig.driver.broker.coordinator.share.states._open == {}
    delete.lost = False
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code == 0
    rig.join()
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]


def test_offsets_that_are_being_altered_are_in_the_record_of_the_group() -> None:
    key, topic = StatePartitionsKey(GROUP), UUID(int=5)
    begun = {topic: TopicState("t", frozenset({0, 1}))}
    value = StatePartitions(begun, begun, {}, {(topic, 0): Alteration(3, 7), (topic, 1): Alteration(4, -1)})
    assert decode_share_value(key, encode_share_value(value)) == value


def test_a_partition_is_not_assigned_while_its_offset_is_being_altered(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leave()
    coordinator = Lost(monkeypatch, "initialize")
    admin = rig.driver.connect()
    topic = Message(topic_name="t", partitions=[Message(partition_index=0, start_offset=2)])
    admin.send(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
    epoch, numbers = rig.beat(0, ["t"])
    assert numbers == []
    rig.driver.advance(5000)
    epoch, numbers = rig.beat(epoch)
    assert not numbers
    coordinator.lost = False
    rig.driver.advance(2 * RETRY_MS)
    assert admin.arrived[-1].responses[0].partitions[0].error_code == ErrorCode.NONE
    rig.driver.advance(5000)
    assert rig.beat(epoch)[1] == [0]
    assert rig.alter(4) == ErrorCode.NON_EMPTY_GROUP


def test_offsets_that_are_altered_twice_are_those_of_the_last_time(rig: ShareGroupRig) -> None:
    rig.leave()
    for offset in (4, 2, 7):
        before = state_epoch(rig)
        assert rig.alter(offset) == ErrorCode.NONE
        assert state_epoch(rig) > before
    assert rig.fetch(rig.driver.connect(), 0, "z") == [(7, 9, 1)]


def test_a_group_whose_deletion_failed_halfway_starts_over(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states are forgotten, and no answer says so: members that join must not be given
    partitions without a state."""
    rig.leave()
    coordinator = Lost(monkeypatch, "delete")
    error = rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code
    assert error == ErrorCode.NOT_COORDINATOR
    rig.join()
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]
    coordinator.lost = False
    rig.leave()
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code == 0
    assert rig.describe() == (0, [])


def test_the_deletion_of_a_group_that_failed_is_done_when_it_is_asked_for_again(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.leave()
    coordinator = Lost(monkeypatch, "delete")
    coordinator.calls = 1
    error = rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code
    assert error == ErrorCode.NOT_COORDINATOR
    coordinator.lost = False
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code == 0
    rig.join()
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]


# --- Questions that come late


def delete_state(rig: ShareGroupRig, epoch: int) -> int:
    """The error of a DeleteShareState, as a group coordinator on another broker asks for it."""
    body = [encode_deletion(ShareKey(GROUP, rig.topic_id, 0), epoch)]
    answer = rig.call(rig.admin, PrivateApi.DELETE_SHARE_STATE, 0, body=body)
    return decode_deleted(bytes(answer.body))


def delete_group(rig: ShareGroupRig) -> None:
    """Delete the group, which has no members any more."""
    assert rig.call(rig.admin, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP]).results[0].error_code == 0


def test_a_deletion_that_is_late_leaves_the_state_of_the_next_group_alone(rig: ShareGroupRig) -> None:
    rig.leave()
    epoch = state_epoch(rig) + 1  # the group's, when its member had left
    delete_group(rig)
    rig.join()
    client = rig.driver.connect()
    assert rig.fetch(client, 0) == [(0, 9, 1)]
    assert rig.acknowledge(client, 1, (0, 4, [ACCEPT])) == ErrorCode.NONE
    assert delete_state(rig, epoch) == ErrorCode.NONE
    assert rig.acknowledge(client, 2, (5, 9, [ACCEPT])) == ErrorCode.NONE
    assert delete_state(rig, state_epoch(rig)) == ErrorCode.NONE
    assert state_epoch(rig) == 0


@pytest.mark.parametrize("reads_again", [False, True])
def test_what_begins_a_state_late_is_overtaken_by_the_next_group(
    rig: ShareGroupRig, reads_again: bool
) -> None:
    """Its epochs are greater than all of the one before, on the next coordinator too."""
    rig.leave()
    for offset in (4, 5, 6):
        assert rig.alter(offset) == ErrorCode.NONE
    late = state_epoch(rig)
    delete_group(rig)
    assert initialize_state(rig, late, 6) == ErrorCode.NONE
    if reads_again:
        shards = rig.driver.broker.coordinator.shards
        shards.restart(shards.of(GROUP))
        rig.driver.advance(5000)
    rig.join()
    assert state_epoch(rig) > late
    assert initialize_state(rig, late, 6) == ErrorCode.FENCED_STATE_EPOCH
    assert rig.fetch(rig.driver.connect(), 0) == [(0, 9, 1)]


def test_an_answer_to_a_group_that_was_deleted_says_nothing_of_the_next(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partition would be taken for one that has a state."""
    rig.leave()
    initialize = Lost(monkeypatch, "initialize")
    initialize.calls = 1
    one, other = rig.driver.connect(), rig.driver.connect()
    topic = Message(topic_name="t", partitions=[Message(partition_index=0, start_offset=2)])
    one.send(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
    delete_group(rig)

    def refuse(*_given: object) -> None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "no")

    with monkeypatch.context() as refusing:
        refusing.setattr(ShareCoordinator, "initialize", refuse)
        other.send(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=GROUP, topics=[topic])
    initialize.lost = False
    rig.driver.advance(2 * RETRY_MS)
    codes = [client.arrived[0].responses[0].partitions[0].error_code for client in (one, other)]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert rig.describe() == (0, [])


def test_a_deletion_that_is_garbage_ends_its_connection(rig: ShareGroupRig) -> None:
    client = rig.driver.connect()
    client.send(PrivateApi.DELETE_SHARE_STATE, 0, body=[b"x"])
    assert client.closed


# --- Reads that take long


class Unread:
    """A share coordinator that cannot be read just now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        monkeypatch.setattr(ShareCoordinator, "read", self._refuse)

    def _refuse(self, _key: ShareKey, _epoch: int, _done: Stateful) -> None:
        self.reads += 1
        raise BrokerError(ErrorCode.NOT_COORDINATOR, "away for a moment")


def test_sessions_that_come_and_go_while_a_state_is_read_add_no_reads(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = Unread(monkeypatch)
    for _ in range(20):
        client = rig.driver.connect()
        client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0))
        rig.drop(client)
        (share,) = rig.partitions
        assert share._initialized == []
    assert coordinator.reads == 1
    rig.driver.advance(5 * RETRY_MS)
    assert coordinator.reads == 6
    monkeypatch.undo()
    client = rig.driver.connect()
    assert rig.fetch(client, 0) == [(0, 9, 1)]
    rig.drop(client)
    assert len(rig.partitions) == 0


def test_a_share_partition_without_sessions_goes_once_its_state_was_read(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    Unread(monkeypatch)
    client = rig.driver.connect()
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0))
    rig.drop(client)
    assert len(rig.partitions) == 1
    monkeypatch.undo()
    rig.driver.advance(2 * RETRY_MS)
    assert len(rig.partitions) == 0


def test_a_share_partition_that_is_fenced_is_read_no_more(
    rig: ShareGroupRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = Unread(monkeypatch)
    client = rig.driver.connect()
    client.send(ApiKey.SHARE_FETCH, 2, **rig.fields(0))
    rig.driver.advance(2 * RETRY_MS)
    (share,) = rig.partitions
    share.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    reads = coordinator.reads
    assert reads == 3
    rig.driver.advance(GIVE_UP_MS)
    assert coordinator.reads == reads
    row = client.arrived[0].responses[0].partitions[0]
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
