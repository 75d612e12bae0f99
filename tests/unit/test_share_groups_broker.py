"""Share groups of one broker, request by request: what goes wrong between requests, and who is to
hear of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.share_groups import (
    RecordState,
    ShareCoordinator,
    ShareKey,
    ShareState,
    StateBatch,
    StateUpdate,
)
from fairlead_kafka.wire import ApiKey
from tests.support.share_group_rig import ShareGroupRig

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
