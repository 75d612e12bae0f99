"""Open-loop loads: what is due when, and what latencies come to."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.lab.pacing import Journal, Load, latency_figures
from fairlead_kafka.lab.peers.paced import Task


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.ns = 5 * NS_PER_S

    def __call__(self) -> int:
        return self.ns


def submitted_at(
    load: Load, clock: Clock, held_up_s: dict[int, float] | None = None
) -> list[tuple[int, float]]:
    """(record, s after the start) of everything handed over by a caller that sleeps as told, and is
    held up after some records."""
    started_ns, found = clock.ns, []
    for pause_s, numbers in load.steps(clock):
        clock.ns += round(pause_s * NS_PER_S)
        for number in numbers:
            found.append((number, (clock.ns - started_ns) / NS_PER_S))
            clock.ns += round((held_up_s or {}).get(number, 0.0) * NS_PER_S)
    return found


@pytest.mark.parametrize("rate", [1, 7, 999, 1000, 2048, 4096, 20_000, 1_000_000])
@pytest.mark.parametrize("period_ms", [1, 100])
def test_a_record_is_due_at_the_beginning_of_its_period_and_not_before(rate: int, period_ms: int) -> None:
    load = Load(100_000, rate, 512, period_ms=period_ms)
    for number in (0, 1, 2, 99, 2047, 99_999):
        due_ns = load.due_ns(number)
        assert due_ns % (period_ms * NS_PER_MS) == 0
        assert load.due(due_ns) > number
        assert due_ns == 0 or load.due(due_ns - 1) <= number


def test_a_load_keeps_its_rate_to_the_millisecond() -> None:
    found = submitted_at(Load(4_000, 2_048, 512, warmup_records=96), Clock())
    assert [number for number, _ in found] == list(range(4_096))
    assert max(abs(at_s - number / 2_048) for number, at_s in found) <= 0.001


def test_a_throttle_of_100_ms_hands_over_in_bursts() -> None:
    found = submitted_at(Load(1_000, 1_000, 512, period_ms=100), Clock())
    assert {round(at_s, 6) for _, at_s in found} == {round(burst / 10, 6) for burst in range(10)}
    assert [at_s for number, at_s in found if number == 99] == [0.0]


def test_a_caller_that_was_held_up_catches_up_at_once() -> None:
    found = submitted_at(Load(1_000, 1_000, 512), Clock(), held_up_s={100: 0.5})
    assert found[101][1] == pytest.approx(0.6, abs=0.002)
    assert found[600][1] == pytest.approx(0.6, abs=0.002)
    assert found[-1][1] == pytest.approx(0.999, abs=0.002)


def test_nothing_more_is_handed_over_after_the_limit() -> None:
    found = submitted_at(Load(1_000, 1_000, 512, limit_s=0.2), Clock(), held_up_s={50: 1.0})
    assert len(found) == 51


def test_percentiles_are_elements_by_kafkas_rule() -> None:
    figures = latency_figures(np.arange(1000, 0, -1, dtype=np.float64))
    assert figures == {
        "avg_ms": 500.5,
        "p50_ms": 501.0,
        "p95_ms": 951.0,
        "p99_ms": 991.0,
        "p999_ms": 1000.0,
        "max_ms": 1000.0,
    }
    assert latency_figures(np.array([7.0]))["p999_ms"] == 7.0
    assert latency_figures(np.empty(0)) == {}


def test_the_warm_up_counts_as_acknowledged_but_not_in_latencies_and_rates() -> None:
    clock = Clock()
    journal = Journal(Load(2, 1, 1 << 20, warmup_records=1), clock)
    for number, latency_ms in enumerate((900, 10, 30)):
        journal.sent(number)
        clock.ns += latency_ms * NS_PER_MS
        journal.acked(number)
    figures = journal.figures()
    assert (figures["avg_ms"], figures["max_ms"], figures["acked"], figures["failed"]) == (20.0, 30.0, 3, 0)
    assert (figures["records_per_s"], figures["mb_per_s"]) == (50.0, 50.0)


def test_failures_are_counted_and_the_first_is_told() -> None:
    journal = Journal(Load(3, 1, 512), Clock())
    for number, text in enumerate(("first", "second")):
        journal.sent(number)
        journal.failed(number, TimeoutError(text))
    assert journal.figures() == {
        "records_per_s": 0.0,
        "mb_per_s": 0.0,
        "acked": 0,
        "failed": 2,
        "error": "first",
    }


def test_what_is_open_in_the_end_counts_with_what_it_has_waited() -> None:
    clock = Clock()
    journal = Journal(Load(4, 1, 512), clock)
    for number in range(3):  # the fourth is never handed over
        journal.sent(number)
    clock.ns += 10 * NS_PER_MS
    journal.acked(0)
    journal.failed(1, TimeoutError())
    clock.ns += 500 * NS_PER_MS
    journal.end()
    figures = journal.figures()
    assert (figures["acked"], figures["failed"], figures["open"], figures["error"]) == (
        1,
        1,
        1,
        "TimeoutError",
    )
    assert (figures["avg_ms"], figures["max_ms"]) == (260.0, 510.0)


def test_a_task_survives_the_command_line() -> None:
    task = Task(
        "fairlead",
        "127.0.0.1:9092",
        "t",
        Load(10, 5, 512, flush=True),
        {"linger.ms": 0, "partitioner.max.skew.bytes": 2**63 - 1},
    )
    assert Task.from_json(task.to_json()) == task
