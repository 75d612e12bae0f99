"""Sequence arithmetic at its edges."""

import pytest

from fairlead_kafka.producer.sequences import follows, last_sequence, lies_behind, sequence_after

MAX = 2**31 - 1


@pytest.mark.parametrize(
    ("base", "count", "last", "after"),
    [
        (0, 1, 0, 1),
        (10, 5, 14, 15),
        (MAX, 1, MAX, 0),
        (MAX, 2, 0, 1),
        (MAX - 1, 1, MAX - 1, MAX),
        (MAX - 9, 10, MAX, 0),
        (MAX - 4, 10, 4, 5),
    ],
)
def test_sequences_wrap_from_the_largest_int_to_zero(base: int, count: int, last: int, after: int) -> None:
    assert last_sequence(base, count) == last
    assert sequence_after(base, count) == after


def test_a_batch_follows_what_was_acknowledged_also_over_the_wrap() -> None:
    assert follows(-1, 0)
    assert not follows(-1, 1)
    assert follows(4, 5)
    assert not follows(4, 4)
    assert not follows(4, 6)
    assert follows(MAX, 0)


@pytest.mark.parametrize(
    ("base", "count", "sequence", "behind"),
    [
        (0, 3, 3, True),
        (0, 3, 2, False),
        (0, 3, 9, True),
        (5, 1, 5, False),
        (5, 1, 4, False),
        (2**31 - 2, 3, 1, True),
        (2**31 - 2, 3, 0, False),
    ],
)
def test_later_sequences_are_those_behind_all_records_of_a_batch(
    base: int, count: int, sequence: int, behind: bool
) -> None:
    assert lies_behind(base, count, sequence) is behind
