"""`lab rebalance`: its figures, from what members say that they read."""

from __future__ import annotations

import pytest

from fairlead_kafka.consumer.groups.heartbeats import SOON_ANSWERS, beat_delay_ms
from fairlead_kafka.lab import rebalance
from fairlead_kafka.lab.peers.group_member import report
from fairlead_kafka.lab.rebalance_figures import (
    CALM_MS,
    Reading,
    figures,
    is_calm,
    members_before,
    readers,
    twice,
)


def reading(member: int, read_ms: int, partition: int, first: int, last: int, wait_ms: int = 10) -> Reading:
    return Reading(member, read_ms, partition, first, last, read_ms - wait_ms)


def test_what_a_member_says_is_taken_apart_again(capsys: pytest.CaptureFixture[str]) -> None:
    report([(3, 10, 500), (4, 0, 501), (3, 11, 502)])
    first, second = [Reading.parse(7, line) for line in capsys.readouterr().out.splitlines()]
    assert (first.member, first.partition, first.first, first.last, first.written_ms) == (7, 3, 10, 11, 500)
    assert (second.partition, second.first, second.last) == (4, 0, 0)
    with pytest.raises(ValueError, match="not enough values"):
        Reading.parse(1, "1 2 3")


def test_an_event_is_told_by_who_reads_what_before_and_after_and_what_waited() -> None:
    before = [reading(1, 100, 0, 0, 4), reading(1, 100, 1, 0, 4), reading(2, 100, 2, 0, 4)]
    during = [
        reading(1, 1_300, 0, 5, 5, wait_ms=200),
        reading(2, 3_000, 1, 3, 6, wait_ms=2_500),  # taken over, and two of them were read before
        reading(2, 3_100, 2, 5, 6),
    ]
    assert figures([*during, *before], 1_000, 4_000) == {
        "again_s": 2.0,
        "twice": 2,
        "moved": 1,
        "kept": 2,
        "kept_wait_ms": 200,
        "readers": 2,
    }


def test_a_partition_that_went_and_came_back_was_not_kept() -> None:
    readings = [reading(1, 100, 0, 0, 0), reading(2, 1_100, 0, 1, 1, wait_ms=900), reading(1, 1_200, 0, 2, 2)]
    found = figures(readings, 1_000, 2_000)
    assert (found["moved"], found["kept"], found["kept_wait_ms"], found["again_s"]) == (0, 0, 0, 0.0)


def test_records_are_read_again_only_where_they_lie_below_what_was_read() -> None:
    readings = [reading(1, 100, 0, 0, 9), reading(2, 200, 0, 5, 14), reading(2, 300, 1, 0, 9)]
    assert twice(readings, 150, 400) == 5
    assert twice(readings, 250, 400) == 0
    assert readers(readings) == {0: 2, 1: 2}


def test_a_group_is_calm_once_each_partition_has_one_reader_and_nothing_is_late() -> None:
    def read(member: int, at_ms: int, partition: int, waited_ms: int = 0) -> Reading:
        return Reading(member, at_ms, partition, 0, 0, at_ms - waited_ms)

    calm = [read(1, 1_000, 0), read(2, 1_010, 1)]
    assert is_calm(calm, 1_500, 2, calm_ms=600)
    assert not is_calm(calm, 1_500, 3, calm_ms=600), "nobody reads the third"
    assert not is_calm(calm, 2_000, 2, calm_ms=600), "nothing was read for so long"
    assert not is_calm([*calm, read(1, 1_020, 1)], 1_500, 2, calm_ms=600), "one moved"
    assert not is_calm([*calm, read(2, 1_020, 1, waited_ms=1_001)], 1_500, 2, calm_ms=600), "one was late"


def test_each_event_finds_as_many_members_as_in_the_first_round() -> None:
    found = [members_before(event, 3) for event in ("join", "leave", "die", "roll")]
    assert found == [3, 4, 3, 3]


def test_a_group_is_calm_no_sooner_than_its_members_are_back_to_their_interval() -> None:
    asking_ms = sum(beat_delay_ms(5_000, unchanged) for unchanged in range(SOON_ANSWERS))
    assert asking_ms < CALM_MS


@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_in_virtual_time_only_the_share_of_the_member_that_comes_moves(protocol: str) -> None:
    rows = rebalance.run(
        lambda _text: None,
        targets=[],
        systems=[],
        protocols=[protocol],
        events=["join", "leave"],
        members=[3],
        partitions=12,
        clock="virtual",
        rounds=2,
    )
    assert [(row["round"], row["event"], row["moved"], row["kept"], row["twice"]) for row in rows] == [
        (1, "join", 3, 9, 0),
        (1, "leave", 3, 9, 0),
        (2, "join", 3, 9, 0),
        (2, "leave", 3, 9, 0),
    ]
    if protocol == "consumer":
        assert rows[0]["again_s"] == 0, "what others give up is taken over within half a second"
