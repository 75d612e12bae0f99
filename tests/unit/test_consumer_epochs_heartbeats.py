"""When a member of a KIP-848 group sends its heartbeats: at once, soon, or after the interval."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.consumer.groups.heartbeats import SOON_ANSWERS, SOON_LEAST_MS, beat_delay_ms
from tests.support.epoch_rig import HEARTBEAT, T0, T1, Coordinated
from tests.support.fake_coordinator import INTERVAL_MS, SETTLED_MS

STEP_MS = beat_delay_ms(INTERVAL_MS, 0)


@pytest.fixture
def rig() -> Coordinated:
    return Coordinated()


@pytest.mark.parametrize(
    ("interval_ms", "unchanged", "delay_ms"),
    [
        (5_000, 0, 500),
        (5_000, SOON_ANSWERS - 1, 500),
        (5_000, SOON_ANSWERS, 5_000),
        (5_000, 1_000_000, 5_000),
        (15_000, 0, 1_500),
        (1_000, 0, SOON_LEAST_MS),
        (999, 0, SOON_LEAST_MS),
        (SOON_LEAST_MS, 0, SOON_LEAST_MS),
        (SOON_LEAST_MS - 1, 0, SOON_LEAST_MS - 1),
        (1, 0, 1),
        (0, 0, 0),
    ],
)
def test_a_member_asks_soon_behind_a_change_and_then_by_the_interval(
    interval_ms: int, unchanged: int, delay_ms: int
) -> None:
    assert beat_delay_ms(interval_ms, unchanged) == delay_ms


def test_the_time_for_which_a_member_asks_soon_is_longer_than_the_interval_of_the_others() -> None:
    """The first of the answers is that to the acknowledgement, which is sent at once."""
    for interval_ms in (1_000, 5_000, 15_000):
        asking_ms = sum(beat_delay_ms(interval_ms, unchanged) for unchanged in range(1, SOON_ANSWERS))
        assert interval_ms < asking_ms < 1.5 * interval_ms


def beats_of(rig: Coordinated, duration_ms: float) -> int:
    """How many heartbeats are sent in so many milliseconds."""
    before = len(rig.coordinator.beats())
    rig.host.advance(duration_ms)
    return len(rig.coordinator.beats()) - before


def settled(rig: Coordinated, **target: list[int]) -> Consumer:
    """A member that reads this, and asks by the interval again."""
    member = rig.member()
    rig.converge(member, **target)
    rig.host.advance(SETTLED_MS)
    assert beats_of(rig, INTERVAL_MS * 4) == 4
    return member


def test_a_member_that_joins_is_soon_given_what_others_give_up(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.polled(member, lambda: rig.heard.log == [("+", [])])
        member.poll(0.01)  # the acknowledgement is sent at once
        assert len(rig.coordinator.beats()) == 2
        assert beats_of(rig, STEP_MS * 3) == 3
        rig.coordinator.assign(t=[0])
        assert beats_of(rig, STEP_MS) == 1
        member.poll(0.01)
        assert member.assignment() == [T0]
        assert rig.coordinator.owned == [T0]


def test_what_nobody_changes_any_more_is_asked_for_by_the_interval(rig: Coordinated) -> None:
    with rig.member() as member:
        rig.polled(member, lambda: rig.heard.log == [("+", [])])
        member.poll(0.01)
        beats_of(rig, STEP_MS * (SOON_ANSWERS - 1))
        assert len(rig.coordinator.beats()) == 1 + SOON_ANSWERS
        assert beats_of(rig, INTERVAL_MS - STEP_MS) == 0
        assert beats_of(rig, INTERVAL_MS * 4) == 4


def test_another_assignment_has_a_member_ask_soon_again(rig: Coordinated) -> None:
    with settled(rig, t=[0]) as member:
        rig.coordinator.assign(t=[0, 1])
        rig.polled(member, lambda: rig.coordinator.owned == [T0, T1])
        assert beats_of(rig, STEP_MS * 3) == 3
        rig.host.advance(STEP_MS * SOON_ANSWERS)
        rig.coordinator.assign(t=[1])
        rig.polled(member, lambda: rig.coordinator.owned == [T1])
        assert beats_of(rig, STEP_MS * 3) == 3, "what it gave up, it may be given something else for"


def test_an_epoch_alone_and_an_assignment_that_is_told_again_are_no_change(rig: Coordinated) -> None:
    """A group of hundreds comes to a new epoch at each change of one member."""
    with settled(rig, t=[0]) as member:
        rig.coordinator.epoch += 1
        assert beats_of(rig, INTERVAL_MS * 4) == 4
        assert member.group_metadata().generation_id == rig.coordinator.epoch
        rig.coordinator.fail(HEARTBEAT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        rig.host.advance(INTERVAL_MS * 2)
        assert beats_of(rig, INTERVAL_MS * 4) == 4
        assert rig.coordinator.owned == [T0]


def test_a_member_that_was_fenced_asks_soon_when_it_has_joined_again(rig: Coordinated) -> None:
    with settled(rig, t=[0]) as member:
        rig.coordinator.fail(HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH)
        rig.polled(member, lambda: rig.heard.signs() == "+1 lost1 +1")
        member.poll(0.01)
        assert beats_of(rig, STEP_MS * 3) == 3
