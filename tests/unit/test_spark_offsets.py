"""Offsets in JSON and the cutting of ranges."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    parse_assignment,
    parse_offsets,
    parse_timestamps,
    split_ranges,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_words_and_json_parse() -> None:
    assert parse_offsets(" Earliest ") == EARLIEST
    assert parse_offsets("latest") == LATEST
    assert parse_offsets('{"t": {"0": 23, "1": -2}}') == {T0: 23, T1: -2}
    assert parse_timestamps('{"t": {"0": 1000}}') == {T0: 1000}
    assert parse_assignment('{"t": [1, 0, 1]}') == {"t": [0, 1]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "first",
        "[]",
        "{}",
        '{"t": 3}',
        '{"t": {"x": 3}}',
        '{"t": {"0": "3"}}',
        '{"t": {"0": true}}',
        '{"t": {"0": -3}}',
        '{"t"',
    ],
)
def test_what_is_not_offsets_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must|needed"):
        parse_offsets(text)


@pytest.mark.parametrize(
    "text", ["x", '{"t": 1}', '{"t": []}', '{"t": [-1]}', '{"t": ["0"]}', '{"t": [true]}']
)
def test_what_is_not_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|must"):
        parse_assignment(text)


def test_empty_ranges_make_no_task() -> None:
    assert split_ranges([OffsetRange(T0, 5, 5), OffsetRange(T1, 0, 3)], None, None) == [OffsetRange(T1, 0, 3)]


def test_ranges_are_cut_to_a_size() -> None:
    pieces = split_ranges([OffsetRange(T0, 10, 21)], None, 5)
    assert pieces == [OffsetRange(T0, 10, 13), OffsetRange(T0, 13, 17), OffsetRange(T0, 17, 21)]


def test_long_ranges_get_their_share_of_the_pieces() -> None:
    pieces = split_ranges([OffsetRange(T0, 0, 900), OffsetRange(T1, 0, 100)], 10, None)
    assert [sum(piece.partition == one for piece in pieces) for one in (T0, T1)] == [9, 1]


@pytest.mark.parametrize("wanted", [1, 2, 3, 7, 100, 5000])
def test_pieces_cover_each_range_once_and_in_order(wanted: int) -> None:
    ranges = [OffsetRange(T0, 3, 1000), OffsetRange(T1, 7, 8)]
    pieces = split_ranges(ranges, wanted, None)
    for one in ranges:
        own = [piece for piece in pieces if piece.partition == one.partition]
        assert own[0].start == one.start
        assert own[-1].end == one.end
        assert all(before.end == after.start for before, after in pairwise(own))
        assert all(piece.size > 0 for piece in own)
