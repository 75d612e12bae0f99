"""What Spark prints of our errors: the sentence first, the frames behind it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import pytest

from fairlead_kafka.base.errors import FairleadError, TimedOut, UsageError
from fairlead_kafka.spark.error_order import errors_first


def fail_deep_below() -> None:
    raise TimedOut("nothing came")


@errors_first
class Reader:
    def partitions(self) -> None:
        fail_deep_below()

    def read(self, count: int) -> Iterator[int]:
        """Rows."""
        yield from range(count)
        fail_deep_below()

    def outer(self) -> None:
        self.partitions()

    def caused(self) -> None:
        try:
            fail_deep_below()
        except TimedOut as error:
            raise UsageError("read less") from error

    def defect(self) -> None:
        raise ZeroDivisionError

    def _own(self) -> None:
        fail_deep_below()


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def test_the_sentence_comes_first_and_the_frames_behind_it() -> None:
    with pytest.raises(TimedOut) as raised:
        Reader().partitions()
    before, _, behind = printed(raised.value).partition("TimedOut: nothing came")
    assert "fail_deep_below" not in before
    assert "It was raised here:" in behind
    assert "in fail_deep_below" in behind


def test_rows_come_until_then() -> None:
    rows: list[int] = []
    with pytest.raises(TimedOut) as raised:
        rows.extend(Reader().read(3))
    assert rows == [0, 1, 2]
    assert "It was raised here:" in printed(raised.value)
    assert Reader.read.__doc__ == "Rows."


def test_frames_are_told_once_however_often_it_passes() -> None:
    with pytest.raises(TimedOut) as raised:
        Reader().outer()
    assert printed(raised.value).count("It was raised here:") == 1


def test_a_cause_is_told_behind_the_sentence_too() -> None:
    with pytest.raises(UsageError) as raised:
        Reader().caused()
    before, _, behind = printed(raised.value).partition("UsageError: read less")
    assert "nothing came" not in before
    assert "direct cause" not in before
    assert "It came of fairlead_kafka.base.errors.TimedOut: nothing came" in behind
    assert "in caused" in behind


def test_what_is_no_error_of_ours_and_what_is_private_is_left_alone() -> None:
    with pytest.raises(ZeroDivisionError) as defect:
        Reader().defect()
    with pytest.raises(FairleadError) as own:
        Reader()._own()
    assert not getattr(defect.value, "__notes__", None)
    assert not getattr(own.value, "__notes__", None)
