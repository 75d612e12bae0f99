"""`lab consume`: what a program of a reader's counts, and the arithmetic of its rows."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead_kafka.lab import consume
from fairlead_kafka.lab.consume import PLAIN, Cell
from fairlead_kafka.lab.peers.reading import AGAIN, END, GO_ON, PROGRAMS, Reading
from fairlead_kafka.lab.peers.sent_to_polled import PROGRAMS as LATENCY_PROGRAMS

JOB = {
    "bootstrap_servers": "x:1",
    "topic": "t",
    "partitions": 3,
    "records": 250_000,
    "group": False,
    "isolation": "read_committed",
    "secured": {},
}


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    monkeypatch.setattr(time, "process_time", lambda: made.now_s / 2)
    return made


def reading(**more: Any) -> Reading:
    return Reading({**JOB, "warm_after_s": 5.0, "warm_s": 2.0, "started_s": 99.0, **more})


def test_cold_is_all_records_once_and_warm_is_a_while_later(clock: Clock) -> None:
    made = reading()
    made.begin()
    said = []
    while not said or said[-1] != END:
        clock.now_s += 0.5
        said.append(made.took(50_000))
    assert said == [GO_ON, GO_ON, GO_ON, GO_ON, AGAIN] * 2 + [GO_ON] * 3 + [END]
    assert made.marks.pop("rss_mb") > 5
    assert made.marks == {
        "first_100000_s": 2.0,
        "cold_s": 3.5,
        "reading_s": 2.5,
        "cold_cpu_s": 1.25,
        "warm_records": 200_000,
        "warm_s": 2.0,
        "warm_cpu_s": 1.0,
    }


def test_a_reader_that_is_slower_than_the_warm_up_is_warm_once_it_has_read_all(clock: Clock) -> None:
    made = reading(records=100_000)
    made.begin()
    said = []
    while not said or said[-1] != END:
        clock.now_s += 4.0
        said.append(made.took(50_000))
    assert said == [GO_ON, AGAIN, END]
    assert (made.marks["cold_s"], made.marks["warm_records"], made.marks["warm_s"]) == (9.0, 50_000, 4.0)


def test_figures_are_per_second_and_per_million() -> None:
    marks = {
        "cold_s": 1.2,
        "reading_s": 0.5,
        "cold_cpu_s": 0.4,
        "warm_records": 4_000_000,
        "warm_s": 2.0,
        "warm_cpu_s": 1.0,
        "rss_mb": 80.4,
    }
    assert consume.figures(marks, Cell(record_size=512), 1_000_000) == {
        "cold_s": 1.2,
        "first_100000_s": None,
        "cold_records_per_s": 2_000_000,
        "cold_cpu_s_per_million": 0.4,
        "records_per_s": 2_000_000,
        "mb_per_s": 1024.0,
        "cpu_s_per_million": 0.25,
        "rss_mb": 80,
    }


@pytest.mark.parametrize(
    ("size", "count"), [(10, 3_000_000), (100, 3_000_000), (512, 550_000), (1024, 250_000), (100_000, 50_000)]
)
def test_larger_records_are_fewer(size: int, count: int) -> None:
    assert consume.records_of(Cell(record_size=size), 3_000_000) == count


def test_every_system_has_a_program_and_every_profile_begins_with_the_plain_cell() -> None:
    assert set(PROGRAMS) == set(consume.SYSTEMS) - {"java"}
    assert set(LATENCY_PROGRAMS) <= set(consume.SYSTEMS)
    assert all(profile.cells[0] == PLAIN for profile in consume.PROFILES.values())
