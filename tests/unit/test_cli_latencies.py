"""Latencies, percentiles and throttling, as Kafka's ProducerPerformance has them."""

from __future__ import annotations

import re
import threading

import pytest

from fairlead_kafka.cli.latencies import SAMPLES_MAX, Latencies, pause_s, percentile
from tests.support.waiting import PATIENCE_S


class Clock:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_percentile_is_the_element_at_the_floor_without_interpolation() -> None:
    assert [percentile([1, 2, 3, 4], share) for share in (0.0, 0.25, 0.5, 0.74, 0.75, 0.999)] == [
        1,
        2,
        3,
        3,
        4,
        4,
    ]
    assert percentile(list(range(1000)), 0.999) == 999
    assert percentile([7], 0.5) == 7
    assert percentile([7], 1.0) == 7
    assert percentile([], 0.5) == 0


@pytest.mark.parametrize(
    ("sent", "elapsed_s", "records_per_s", "expected_s"),
    [
        (100, 0.0, 100.0, 1.0),  # a second ahead
        (100, 0.75, 100.0, 0.25),
        (100, 2.0, 100.0, 0.0),  # late
        (1, 0.0, 1000.0, 0.0),  # 1 ms ahead: saved up
        (2, 0.0, 1000.0, 0.002),
        (1_000_000, 0.0, -1, 0.0),  # no limit
        (1, 0.0, 0.5, 2.0),
    ],
)
def test_a_throttle_sleeps_off_what_came_too_early(
    sent: int, elapsed_s: float, records_per_s: float, expected_s: float
) -> None:
    assert pause_s(sent, elapsed_s, records_per_s) == pytest.approx(expected_s)


def test_the_summary_has_the_form_of_kafkas() -> None:
    clock = Clock()
    latencies = Latencies(4, clock=clock)
    latencies.begin()
    for latency_s in (0.0105, 0.0205, 0.0305, 0.0409):
        latencies.record(clock.now_s - latency_s, 1 << 20, None)
    clock.now_s += 2
    assert latencies.summary() == (
        "4 records sent, 2.000000 records/sec (2.00 MB/sec), 25.00 ms avg latency, 40.00 ms max latency, "
        "30 ms 50th, 40 ms 95th, 40 ms 99th, 40 ms 99.9th."
    )


def test_a_line_comes_with_the_first_report_after_an_interval() -> None:
    clock, said = Clock(), list[str]()
    latencies = Latencies(10, said.append, interval_s=5, clock=clock)
    latencies.begin()
    for _ in range(4):
        clock.now_s += 2
        latencies.record(clock.now_s - 0.5, 0, None)
    assert said == [
        "3 records sent, 0.5 records/sec (0.00 MB/sec), 500.0 ms avg latency, 500.0 ms max latency."
    ]


def test_steady_state_is_announced_once_and_named_in_the_summary() -> None:
    clock, said = Clock(), list[str]()
    warming, steady = (
        Latencies(10, said.append, clock=clock),
        Latencies(5, said.append, clock=clock, kind=" steady state"),
    )
    warming.be_quiet()
    for _ in range(2):
        clock.now_s += 6
        for one in (warming, steady):
            one.record(clock.now_s, 1, None)
    assert [line.split(",")[0] for line in said] == ["In steady state.", "1 records sent", "1 records sent"]
    assert steady.summary().startswith("2 steady state records sent, ")
    assert warming.summary().startswith("2 records sent, ")


def test_failures_are_counted_apart_and_the_first_is_kept() -> None:
    latencies = Latencies(3)
    first, second = ValueError("1"), ValueError("2")
    for error in (first, second):
        latencies.record(0.0, 10, error)
    assert (latencies.failed, latencies.first_error) == (2, first)
    assert latencies.summary().startswith("0 records sent, ")


def test_percentiles_come_from_a_sample_that_is_bounded() -> None:
    clock = Clock()
    latencies = Latencies(SAMPLES_MAX * 3, clock=clock)
    for latency_ms in (1, 500, 500, 2, 500, 500):  # every third is taken
        latencies.record(clock.now_s - latency_ms / 1000 - 1e-6, 0, None)
    clock.now_s += 1
    found = re.search(r"(\d+) ms 50th.* (\d+) ms 99.9th", latencies.summary())
    assert found is not None
    assert found.groups() == ("2", "2")
    assert "500.00 ms max" in latencies.summary()


def test_a_reader_that_left_is_noticed_and_told_no_more() -> None:
    clock = Clock()

    def closed_pipe(_: str) -> None:
        raise BrokenPipeError

    latencies = Latencies(2, closed_pipe, interval_s=1, clock=clock)
    for _ in range(2):
        clock.now_s += 2
        latencies.record(clock.now_s, 1, None)
    assert latencies.reader_left


def test_no_line_comes_once_it_is_quiet_though_one_is_just_being_said() -> None:
    clock, told = Clock(), []
    saying, go_on = threading.Event(), threading.Event()

    def say(line: str) -> None:
        saying.set()
        assert go_on.wait(PATIENCE_S)
        told.append(line)

    def be_quiet() -> None:
        latencies.be_quiet()
        told.append("quiet")

    latencies = Latencies(2, say, interval_s=1, clock=clock)
    clock.now_s += 2
    threads = [
        threading.Thread(target=latencies.record, args=(clock.now_s, 1, None)),
        threading.Thread(target=be_quiet),
    ]
    threads[0].start()
    assert saying.wait(PATIENCE_S)
    threads[1].start()
    threads[1].join(0.05)  # long enough for it to say "quiet" too early
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    clock.now_s += 2
    latencies.record(clock.now_s, 1, None)
    assert [line.split()[0] for line in told] == ["1", "quiet"]
