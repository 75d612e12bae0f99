"""Records in flight of a share partition: the table of states, and a window driven by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.share_groups import Acquired, RecordEvent, RecordState, StateBatch, Wanted, Window
from fairlead_kafka.broker.share_groups.states import FINAL, TRANSITIONS
from fairlead_kafka.broker.share_groups.window import NO_DEADLINE_NS, Limits

LIMITS = Limits(deliveries=3, in_flight=100)
ACCEPT, RELEASE, REJECT, SKIP, RENEW = (
    RecordEvent.ACCEPT,
    RecordEvent.RELEASE,
    RecordEvent.REJECT,
    RecordEvent.SKIP,
    RecordEvent.RENEW,
)


def wanted(member: str = "a", most: int = 100, deadline_ns: int = 10, **more: int) -> Wanted:
    return Wanted(member, most, more.get("batch_size", 100), bool(more.get("strict", 0)), deadline_ns)


def acquire(
    window: Window, ends: Sequence[int], of: Wanted | None = None, limits: Limits = LIMITS
) -> list[Acquired]:
    """Acquire from batches of the log that end at `ends`, the first available offset being read."""
    sought = window.next_fetch_offset
    got = window.acquire(of or wanted(), sought, sought, ends, limits)
    window.check()
    return got


def say(
    window: Window, first: int, last: int, *events: RecordEvent, member: str = "a", written: bool = True
) -> list[StateBatch]:
    """Acknowledge, and have it written or not; the batches that were to be written."""
    change = window.acknowledge(member, [(first, last, events)], LIMITS, renewed_ns=99)
    window.check()
    window.complete(change, written)
    window.check()
    return change.batches


def states(window: Window) -> list[tuple[int, int, str, int]]:
    return [(run.first, run.last, run.now.state.name.lower(), run.now.deliveries) for run in window]


def test_nothing_leads_out_of_a_final_state() -> None:
    assert {state for state, _event in TRANSITIONS} == set(RecordState) - FINAL
    assert set(TRANSITIONS.values()) == set(RecordState)


def test_records_are_acquired_accepted_and_done_with() -> None:
    window = Window(5)
    assert acquire(window, [9]) == [Acquired(5, 9, 1)]
    assert say(window, 5, 9, ACCEPT) == [StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1)]
    assert (window.start, window.end, window.next_fetch_offset) == (10, 9, 10)


def test_the_start_waits_for_the_first_record_that_is_not_final() -> None:
    window = Window(0)
    acquire(window, [9])
    say(window, 3, 5, ACCEPT)
    assert window.start == 0
    assert window.complete_count() == 3
    say(window, 0, 2, REJECT)
    assert window.start == 6
    assert window.complete_count() == 0


def test_each_offset_may_have_a_type_of_its_own() -> None:
    window = Window(0)
    acquire(window, [5])
    assert say(window, 0, 5, ACCEPT, ACCEPT, RELEASE, REJECT, SKIP, RELEASE) == [
        StateBatch(0, 1, 2, 1),
        StateBatch(2, 2, 0, 1),
        StateBatch(3, 4, 4, 1),
        StateBatch(5, 5, 0, 1),
    ]
    assert acquire(window, [5]) == [Acquired(2, 2, 2), Acquired(5, 5, 2)]


def test_a_record_is_archived_after_as_many_deliveries_as_there_may_be() -> None:
    window = Window(0)
    for deliveries in (1, 2, 3):
        assert acquire(window, [0]) == [Acquired(0, 0, deliveries)]
        say(window, 0, 0, RELEASE)
    assert window.start == 1


def test_a_lock_that_is_over_gives_back_and_counts() -> None:
    window = Window(0)
    acquire(window, [4])
    assert window.next_deadline_ns == 10
    assert window.expire(9, LIMITS) == []
    assert window.expire(10, LIMITS) == [StateBatch(0, 4, RecordState.AVAILABLE, 1)]
    assert window.next_deadline_ns == NO_DEADLINE_NS
    with pytest.raises(BrokerError) as refused:
        say(window, 0, 4, ACCEPT)
    assert refused.value.code == ErrorCode.INVALID_RECORD_STATE
    assert acquire(window, [4], wanted("b")) == [Acquired(0, 4, 2)]


def test_a_lock_is_renewed() -> None:
    window = Window(0)
    acquire(window, [4])
    assert say(window, 0, 2, RENEW) == []
    assert window.expire(10, LIMITS) == [StateBatch(3, 4, RecordState.AVAILABLE, 1)]
    assert window.next_deadline_ns == 99


def test_what_is_not_written_is_taken_back() -> None:
    window = Window(0)
    acquire(window, [4])
    say(window, 0, 4, ACCEPT, written=False)
    assert states(window) == [(0, 4, "acquired", 1)]
    assert window.expire(10, LIMITS)


def test_nobody_touches_what_is_being_written() -> None:
    window = Window(0)
    acquire(window, [4])
    change = window.acknowledge("a", [(0, 4, [RELEASE])], LIMITS, 0)
    assert window.next_fetch_offset == 5
    assert window.expire(100, LIMITS) == []
    with pytest.raises(BrokerError):
        window.acknowledge("a", [(0, 4, [ACCEPT])], LIMITS, 0)
    window.complete(change, True)
    assert window.next_fetch_offset == 0


@pytest.mark.parametrize(
    ("first", "last", "member", "code"),
    [
        (0, 4, "b", ErrorCode.INVALID_RECORD_STATE),
        (0, 5, "a", ErrorCode.INVALID_REQUEST),
        (7, 9, "a", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_not_the_members_is_refused_whole(first: int, last: int, member: str, code: int) -> None:
    window = Window(0)
    acquire(window, [4])
    with pytest.raises(BrokerError) as refused:
        window.acknowledge(member, [(0, 0, [ACCEPT]), (max(first, 1), last, [ACCEPT])], LIMITS, 0)
    assert refused.value.code == code
    assert states(window) == [(0, 4, "acquired", 1)]


def test_what_is_before_the_start_is_passed_over() -> None:
    window = Window(0)
    acquire(window, [4])
    window.move_start(3)
    window.check()
    assert say(window, 0, 4, ACCEPT) == [StateBatch(3, 4, 2, 1)]
    assert say(window, 0, 4, ACCEPT) == []


def test_whole_batches_are_acquired_unless_the_limit_is_strict() -> None:
    ends = [9, 19, 29]
    assert acquire(Window(0), ends, wanted(most=12)) == [Acquired(0, 19, 1)]
    assert acquire(Window(0), ends, wanted(most=12, strict=1)) == [Acquired(0, 11, 1)]
    assert acquire(Window(0), ends, wanted(most=100, batch_size=10)) == [
        Acquired(0, 9, 1),
        Acquired(10, 19, 1),
        Acquired(20, 29, 1),
    ]


def test_released_records_come_again_by_batches_too() -> None:
    window = Window(0)
    acquire(window, [9, 19, 29])
    say(window, 0, 29, RELEASE)
    assert acquire(window, [9, 19, 29], wanted(most=5)) == [Acquired(0, 9, 2)]
    assert acquire(window, [19, 29], wanted(most=5, strict=1)) == [Acquired(10, 14, 2)]
    assert acquire(window, [19, 29], wanted(most=100)) == [Acquired(15, 29, 2)]


def test_no_more_is_in_flight_than_there_may_be() -> None:
    limits = Limits(3, 15)
    window = Window(0)
    assert acquire(window, [9, 99], wanted(strict=1), limits) == [Acquired(0, 14, 1)]
    assert not window.may_acquire(limits)
    say(window, 5, 5, RELEASE)
    assert window.may_acquire(limits)
    assert acquire(window, [9, 99], wanted(), limits) == [Acquired(5, 5, 2)]


def test_offsets_that_are_not_in_the_log_are_archived() -> None:
    window = Window(0)
    assert window.acquire(wanted(), 0, 7, [9], LIMITS) == [Acquired(7, 9, 1)]
    assert window.start == 7
    assert window.acquire(wanted(), 10, 15, [19], LIMITS) == [Acquired(15, 19, 1)]
    say(window, 7, 9, ACCEPT)
    assert window.start == 15
    say(window, 15, 19, RELEASE)
    assert window.acquire(wanted(), 15, 18, [19], LIMITS) == [Acquired(18, 19, 2)]
    window.check()
    assert window.start == 18


def test_a_member_that_leaves_gives_back_what_it_has() -> None:
    window = Window(0)
    acquire(window, [4])
    acquire(window, [9], wanted("b"))
    change = window.release("a", LIMITS)
    window.complete(change, True)
    assert states(window) == [(0, 4, "available", 1), (5, 9, "acquired", 1)]


def test_what_could_not_be_read_is_as_it_was_before_however_often() -> None:
    window = Window(0, [StateBatch(0, 4, RecordState.AVAILABLE, 2)])
    for _ in range(10):
        got = acquire(window, [4, 9])
        assert got == [Acquired(0, 4, 3), Acquired(5, 9, 1)]
        window.not_delivered("a", got)
        window.check()
        assert states(window) == [(0, 4, "available", 2)]
    assert (window.next_fetch_offset, window.next_deadline_ns) == (0, NO_DEADLINE_NS)


def test_what_could_not_be_read_has_its_place_before_what_could() -> None:
    window = Window(0)
    unread = acquire(window, [4])
    acquire(window, [9], wanted("b"))
    window.not_delivered("a", unread)
    window.check()
    assert states(window) == [(0, 4, "available", 0), (5, 9, "acquired", 1)]
    assert say(window, 5, 9, RELEASE, member="b") == [StateBatch(5, 9, RecordState.AVAILABLE, 1)]
    assert acquire(window, [4, 9]) == [Acquired(0, 4, 1), Acquired(5, 9, 2)]


def test_only_what_a_member_still_has_by_that_fetch_can_be_unread() -> None:
    window = Window(0)
    unread = acquire(window, [2, 5, 9])
    say(window, 0, 2, ACCEPT)
    change = window.acknowledge("a", [(3, 5, [RELEASE])], LIMITS, 0)
    window.expire(10, LIMITS)
    assert window.acquire(wanted(deadline_ns=20), 6, 6, [9], LIMITS) == [Acquired(6, 9, 2)]
    window.not_delivered("a", unread)
    window.complete(change, True)
    window.check()
    assert states(window) == [(3, 5, "available", 1), (6, 9, "acquired", 2)]


def test_aborted_records_are_archived() -> None:
    window = Window(0)
    acquire(window, [9])
    window.skip(0, 4)
    window.check()
    assert window.start == 5


def test_a_window_goes_on_from_what_was_written() -> None:
    window = Window(3, [StateBatch(0, 3, 2, 1), StateBatch(5, 6, 2, 1), StateBatch(9, 9, 0, 2)])
    window.check()
    assert states(window) == [
        (4, 4, "available", 0),
        (5, 6, "acknowledged", 1),
        (7, 8, "available", 0),
        (9, 9, "available", 2),
    ]
    assert acquire(window, [9]) == [Acquired(4, 4, 1), Acquired(7, 8, 1), Acquired(9, 9, 3)]


@pytest.mark.parametrize("batches", [((0, 3), (3, 5)), ((0, 5), (2, 4)), ((4, 5), (0, 3))])
def test_batches_that_overlap_or_are_out_of_order_are_refused_whole(
    batches: Sequence[tuple[int, int]],
) -> None:
    window = Window(0)
    acquire(window, [9])
    with pytest.raises(BrokerError) as refused:
        window.acknowledge("a", [(first, last, [ACCEPT]) for first, last in batches], LIMITS, 0)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    window.check()
    assert states(window) == [(0, 9, "acquired", 1)]


def test_what_compaction_removed_takes_no_room_behind_the_start() -> None:
    window = Window(0)
    assert window.acquire(wanted(), 0, 5000, [5009], LIMITS) == [Acquired(5000, 5009, 1)]
    window.check()
    assert window.start == 5000


def test_what_compaction_removed_takes_room_until_those_before_it_are_done() -> None:
    window = Window(0)
    acquire(window, [9])
    assert window.acquire(wanted(), 10, 5000, [5009], LIMITS) == []
    window.check()
    assert not window.may_acquire(LIMITS)
    say(window, 0, 9, ACCEPT)
    assert (window.start, window.next_fetch_offset) == (5000, 5000)
    assert acquire(window, [5009]) == [Acquired(5000, 5009, 1)]


def test_what_compaction_removed_may_have_been_all_that_the_start_waited_for() -> None:
    window = Window(0)
    acquire(window, [4, 9])
    say(window, 5, 9, ACCEPT)
    say(window, 0, 4, RELEASE)
    assert window.acquire(wanted(), 0, 5, [9, 14], LIMITS) == [Acquired(10, 14, 1)]
    window.check()
    assert window.start == 10
    assert window.acquire(wanted(), 15, 15, [19], LIMITS) == [Acquired(15, 19, 1)]
