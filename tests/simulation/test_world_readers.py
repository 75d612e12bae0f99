"""World `readers` (compaction, transactions, deletion, damage, bad clients; readers of every kind):
fixed seeds. `fairlead simulate` looks for new ones."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.consumer import OffsetAndTimestamp
from fairlead_kafka.simulation.facts import Facts
from fairlead_kafka.simulation.keyed_sender import Wrote
from fairlead_kafka.simulation.reader import Look, Read
from fairlead_kafka.simulation.reading_checks import check_final_looks, check_look
from fairlead_kafka.simulation.remade_topic import Given, wrong_step
from fairlead_kafka.simulation.rot import Rotten
from fairlead_kafka.simulation.workload import RecordResult
from fairlead_kafka.simulation.world_readers import ReadersWorld, run_seed

SEEDS = 8
BLOCK = 4
PLACE = ("states", 0)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_readers_are_told_what_is_there(first: int) -> None:
    outcomes = [run_seed(seed) for seed in range(first, first + BLOCK)]
    assert not [str(outcome) for outcome in outcomes if outcome.violations]
    assert (
        sum(outcome.acknowledged for outcome in outcomes) > sum(outcome.records for outcome in outcomes) / 2
    )


@pytest.mark.parametrize(
    ("places", "whole_from", "wrong"),
    [
        ([(1, 0), (1, 1), (3, 0)], 0, None),
        ([(1, 0), (1, 2)], 0, (1, 2)),
        ([(1, 0), (2, 1)], 0, (2, 1)),
        ([(1, 0), (1, 0)], 0, (1, 0)),
        ([(2, 0), (1, 1)], 9, (1, 1)),
        ([(1, 4), (1, 2), (2, 0)], 2, None),
    ],
)
def test_each_life_of_a_topic_is_read_from_its_start_without_gaps(
    places: list[tuple[int, int]], whole_from: int, wrong: tuple[int, int] | None
) -> None:
    found = wrong_step([Given(life, offset, b"") for life, offset in places], whole_from)
    assert (None if found is None else (found[1].life, found[1].offset)) == wrong


class Writer:
    """Stands for a sender of three records of one key, all acknowledged: the last one counts, in a
    compacted topic."""

    def __init__(self) -> None:
        self.wrote = {serial: Wrote(b"k", b"%d" % serial, 100 + serial) for serial in range(3)}
        self.results = [RecordResult(0, True, PLACE[0], 1, 0, serial) for serial in range(3)]


def facts() -> Facts:
    return Facts([Writer()], {})  # type: ignore[list-item]


def look(*records: Read, end: int = 3, **what: object) -> Look:
    made = Look(PLACE, False, 5, end=end, start=0, records=list(records), position=end, stopped_ns=9)
    for name, value in what.items():
        setattr(made, name, value)
    return made


LAST = Read(2, b"k", b"2", 102)


def test_a_look_that_was_given_the_newest_of_each_key_is_sound() -> None:
    assert check_look(look(LAST), facts()) == []
    assert check_look(look(Read(1, b"k", b"1", 101), LAST), facts()) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (look(), "it was not given b'k': b'2'"),
        (look(Read(2, b"k", b"x", 102)), "it was given Read(offset=2, key=b'k', value=b'x'"),
        (look(LAST, Read(4, b"k", b"?", 1), end=5), "which nobody wrote"),
        (look(LAST, LAST), "it was given offset 2 after 2"),
        (look(end=2), "it was told that the log ends at 2"),
        (look(LAST, found={102: None}), "nothing is as late as 102"),
        (look(LAST, found={102: OffsetAndTimestamp(1, 101)}), "which is earlier"),
        (look(LAST, found={100: OffsetAndTimestamp(3, 200)}), "but before that there is"),
        (look(LAST, found={-3: None}), "it was told that None is the newest"),
        (look(LAST, found={100: OffsetAndTimestamp(2, 100)}), "where b'k': b'2' of 102 at 2"),
    ],
)
def test_what_cannot_be_is_said(wrong: Look, said: str) -> None:
    assert any(said in what for what in check_look(wrong, facts())), check_look(wrong, facts())


def test_in_the_end_answers_by_time_are_what_was_read() -> None:
    found = {0: OffsetAndTimestamp(2, 102), 103: None, -3: OffsetAndTimestamp(2, 102)}
    assert check_final_looks([look(LAST, found=found), look(LAST, found=found)], []) == []
    wrong = check_final_looks([look(LAST, found={0: None}), look(LAST)], [])
    assert "for time 0 it was told None, and read (2, 102)" in wrong[0]


def test_only_a_damaged_batch_may_stop_a_reader() -> None:
    rotten = [Rotten(0, *PLACE, 1, 1, Location(1, 0, 80))]
    corrupt = BrokerError(ErrorCode.CORRUPT_MESSAGE)
    stopped = look(position=1, error=corrupt, damage=True)
    assert check_final_looks([stopped, stopped], rotten) == []
    elsewhere = look(position=1, error=corrupt)
    assert len(check_final_looks([elsewhere, elsewhere], rotten)) == 2
    otherwise = look(position=1, error=BrokerError(ErrorCode.KAFKA_STORAGE_ERROR), damage=True)
    assert len(check_final_looks([otherwise, stopped], rotten)) == 1


@pytest.mark.parametrize("seed", [40, 103])
def test_a_reader_may_stand_before_a_damaged_batch_where_compaction_left_nothing(seed: int) -> None:
    outcome = run_seed(seed)
    assert not outcome.violations, str(outcome)


def test_damage_is_met_by_who_reads_from_the_broker_that_has_it() -> None:
    world = ReadersWorld(40)
    world.run()
    rot = world.ills.rot
    first, second = rot.in_place(PLACE)
    assert (first.node_id, second.node_id) == (0, 1), "this story has damage on both brokers"
    leader = world.cluster.controller.image.topics[PLACE[0]].partitions[0].leader
    own, strange = (first, second) if leader == first.node_id else (second, first)
    assert rot.met(PLACE, own.base_offset)
    assert rot.met(PLACE, own.base_offset - 1)
    assert not rot.met(PLACE, own.last_offset + 1)
    rot.found.remove(own)
    assert not rot.met(PLACE, strange.base_offset)
