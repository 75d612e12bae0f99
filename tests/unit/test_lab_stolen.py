"""What the host took away while something was measured."""

from __future__ import annotations

from pathlib import Path

from fairlead_kafka.lab.stolen import Stolen


def test_what_the_host_took_is_a_share_of_all_processor_time_since(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 0 0 0 50 10 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    stolen = Stolen(stat)
    stat.write_text("cpu  140 0 60 830 0 0 0 70 40 0\n")
    assert stolen.share() == 0.2


def test_nothing_spent_is_nothing_taken(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 0 0 0 50 10 0\n")
    assert Stolen(stat).share() == 0.0


def test_where_there_is_no_such_account_the_share_is_none(tmp_path: Path) -> None:
    assert Stolen(tmp_path / "none").share() is None
    stat = tmp_path / "stat"
    stat.write_text("cpu 1 2 3\n")
    assert Stolen(stat).share() is None
