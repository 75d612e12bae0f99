"""The window of requests in flight: how it closes for a broker that serves one at a time, and opens
on a long way."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

import pytest

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer.tuning import ALONE_WAIT, PROBE_ANSWERS
from fairlead_kafka.producer.window import Window

KIB_16 = 16_384


def answer(
    window: Window,
    latency_ms: float,
    depth: int,
    times: int = 1,
    *,
    size_bytes: int = KIB_16,
    pressed: bool = True,
) -> int:
    for _ in range(times):
        window.sent(depth)
        window.answered(ms_to_ns(latency_ms), depth, size_bytes, pressed=pressed)
    return window.limit


def closed_window() -> Window:
    """A window of 5 that found a broker which needs 20 ms for each request, one after another."""
    window = Window(5)
    answer(window, 20, 1)
    assert answer(window, 60, 3, 3) == 1
    return window


def test_it_begins_wide_open_but_beyond_two_only_for_full_batches() -> None:
    window = Window(5)
    assert (window.limit, window.partial_limit) == (5, 2)


@pytest.mark.parametrize(("latency_ms", "depth", "limit"), [(40, 2, 1), (60, 3, 1), (100, 5, 1)])
def test_latency_that_grows_with_depth_closes_it_to_one(latency_ms: float, depth: int, limit: int) -> None:
    window = Window(5)
    answer(window, 20, 1)
    assert answer(window, latency_ms, depth, 2) == 5
    assert answer(window, latency_ms, depth) == limit


def test_a_long_way_and_a_quick_broker_leave_it_open() -> None:
    window = Window(5)
    answer(window, 20, 1)
    assert answer(window, 21, 5, 50) == 5
    assert window.partial_limit == 4


def test_on_a_short_way_small_requests_go_one_at_a_time_and_full_ones_side_by_side() -> None:
    window = Window(5)
    answer(window, 1, 1)
    answer(window, 2, 5, 50)
    assert (window.partial_limit, window.limit) == (1, 5)


def test_a_broker_that_overlaps_some_gets_as_many_as_it_overlaps() -> None:
    """Twenty ms on the way and ten of work: three at once keep it busy, the fifth only waits."""
    window = Window(5)
    answer(window, 30, 1)
    assert answer(window, 50, 5, 3) in (3, 4)


def test_a_queue_of_few_milliseconds_is_not_worth_closing_for() -> None:
    """A quick broker must never idle while the producer makes its next request."""
    window = Window(5)
    answer(window, 0.4, 1)
    assert answer(window, 2.0, 5, 50) == 5
    assert answer(window, 9.0, 5, 3) >= 2


def test_large_requests_may_take_longer() -> None:
    window = Window(5)
    answer(window, 0.4, 1, size_bytes=500)
    assert answer(window, 20, 5, 50, size_bytes=1 << 20) == 5


def test_one_slow_answer_in_three_means_nothing() -> None:
    window = Window(5)
    answer(window, 1, 1)
    for _ in range(20):
        answer(window, 300, 5)
        assert answer(window, 2, 5, 2) == 5


def test_without_a_request_sent_alone_there_is_nothing_to_compare_with() -> None:
    assert answer(Window(5), 500, 5, 20) == 5


def test_what_a_cold_broker_took_for_the_first_request_does_not_stay_the_measure() -> None:
    """With two in flight all the time: 40 ms each, of a broker that needs 20 for one at a time, and
    needed 60 for its first."""
    window, answers = Window(5), 0
    answer(window, 60, 1)
    while window.limit > 1:
        answer(window, 40, 2)
        answers += 1
    answer(window, 20, 1)
    assert answer(window, 40, 2, 3) == 1
    assert answers == ALONE_WAIT


def test_it_tries_one_more_from_time_to_time_and_ever_more_seldom_while_that_is_in_vain() -> None:
    window = closed_window()
    waits = []
    for _ in range(4):
        waits.append(next(number for number in count(1) if answer(window, 20, 1) == 2))
        assert answer(window, 40, 2) == 1
    assert waits == [PROBE_ANSWERS, 2 * PROBE_ANSWERS, 4 * PROBE_ANSWERS, 8 * PROBE_ANSWERS]


def test_tries_go_out_one_at_a_time() -> None:
    """Each delays its records if it is in vain; and so does what is sent before its answer
    tells."""
    window = closed_window()
    answer(window, 20, 1, PROBE_ANSWERS)
    assert window.limit == 2
    window.sent(1)
    window.sent(2)
    assert window.limit == 1
    window.answered(ms_to_ns(20), 1, KIB_16, pressed=True)
    assert window.limit == 1
    window.answered(ms_to_ns(21), 2, KIB_16, pressed=True)
    assert window.limit == 2


def test_it_does_not_try_while_there_is_nothing_more_to_send() -> None:
    window = closed_window()
    assert answer(window, 20, 1, 1000, pressed=False) == 1


def test_a_try_that_succeeds_opens_it_by_doubling() -> None:
    window = closed_window()
    answer(window, 20, 1, PROBE_ANSWERS)
    assert answer(window, 21, 2, 2) == 2
    assert answer(window, 21, 2) == 4
    answer(window, 21, 4)
    assert answer(window, 21, 5, 3) == 5


def test_a_broker_that_got_much_quicker_is_tried_soon() -> None:
    window = closed_window()
    for _ in range(5):
        answer(window, 20, 1, 2000)
        answer(window, 40, 2)
    assert answer(window, 0.4, 1, PROBE_ANSWERS + 1) == 2


@pytest.mark.parametrize("way_ms", [12, 20, 60])
def test_a_way_that_got_longer_is_not_mistaken_for_a_queue_for_long(way_ms: float) -> None:
    """Even while there is more to send all the time, so that no request happens to be alone."""
    window = Window(5)
    answer(window, 0.4, 1)
    assert answer(window, way_ms, 5, 3) <= 2
    answers = 0
    while window.limit < 5:
        answer(window, way_ms, window.limit)
        answers += 1
    assert answers < 6 * PROBE_ANSWERS


def test_a_quick_broker_that_becomes_slow_to_answer_gets_as_many_as_before_soon() -> None:
    """With full batches waiting all the time, two of which go even to a broker that serves one at a
    time."""
    window, answers = Window(5), 0
    answer(window, 1, 1, 10)
    answer(window, 5, 5, 100, size_bytes=1 << 20)
    while window.limit == 5:
        answer(window, 500, 5, size_bytes=1 << 20)
    while window.limit < 5:
        answer(window, 500, window.full_limit, size_bytes=1 << 20)
        answers += 1
    assert answers < 12


def test_after_closing_to_one_a_request_goes_alone_and_then_a_second_full_one_may_join_it() -> None:
    window = Window(5)
    answer(window, 20, 1)
    answer(window, 60, 3, 3)
    assert (window.limit, window.full_limit) == (1, 1)
    answer(window, 20, 1)
    assert (window.limit, window.full_limit) == (1, 2)


def test_a_lost_connection_forgets_all_of_it() -> None:
    window = closed_window()
    window.reset()
    assert (window.limit, window.partial_limit) == (5, 2)
    assert answer(window, 500, 5, 20) == 5


def test_switched_off_it_is_fixed() -> None:
    window = Window(5, adaptive=False)
    answer(window, 1, 1)
    assert answer(window, 500, 5, 20) == 5
    assert window.partial_limit == 4
    assert answer(Window(1), 100, 1, 20) == 1


def throughput(window: Window, serve: Callable[[int, int], tuple[int, int]], requests: int = 3000) -> float:
    """Requests a second of a sender that always has more; `serve(now, free)` gives when a request
    sent now is answered, and free."""
    flight: list[tuple[int, int, int]] = []
    now = free = sent = done = 0
    while done < requests:
        while len(flight) < window.limit and sent < requests:
            answered, free = serve(now, free)
            sent += 1
            heapq.heappush(flight, (answered, now, len(flight) + 1))
            window.sent(len(flight))
        answered, sent_ns, depth = heapq.heappop(flight)
        now = answered
        done += 1
        window.answered(now - sent_ns, depth, KIB_16, pressed=True)
    return requests / (now / 1e9)


@pytest.mark.parametrize(
    ("way_ms", "work_ms"), [(0.2, 0.4), (0.0, 2.0), (2.0, 2.0), (20.0, 0.1), (40.0, 10.0), (0.1, 20.0)]
)
def test_throughput_is_what_five_in_flight_would_give(way_ms: float, work_ms: float) -> None:
    def serve(now: int, free: int) -> tuple[int, int]:
        done = max(now + ms_to_ns(way_ms) // 2, free) + ms_to_ns(work_ms)
        return done + ms_to_ns(way_ms) // 2, done

    assert throughput(Window(5), serve) > 0.97 * throughput(Window(5, adaptive=False), serve)
