"""`lab rebalance` on a small group of ours on our cluster: its rows, and what it says of a member
that cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead_kafka.lab import rebalance


def test_a_small_group_goes_through_the_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Members learn of a rebalance by a heartbeat, which by default they send every three seconds.
    quick = {**rebalance.PROTOCOLS["cooperative"], "heartbeat.interval.ms": "200"}
    monkeypatch.setitem(rebalance.PROTOCOLS, "cooperative", quick)  # type: ignore[arg-type]
    monkeypatch.setattr(rebalance, "CALM_MS", 1_200)
    rows = rebalance.run(
        lambda _text: None,
        targets=["fairlead"],
        systems=["fairlead"],
        protocols=["cooperative"],
        events=["join", "leave", "roll"],
        members=[2],
        partitions=6,
    )
    assert [row["event"] for row in rows] == ["join", "leave", "roll"], rows
    assert rows[0]["kept"] == 4, "the two that were there keep two partitions each"
    pytest.importorskip("matplotlib")
    rebalance.plot(rows, tmp_path / "rebalance.svg")
    assert (tmp_path / "rebalance.svg").stat().st_size > 1_000


def test_a_member_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rebalance.PROTOCOLS, "range", {"partition.assignment.strategy": "fair"})  # type: ignore[arg-type]
    (row,) = rebalance.run(
        lambda _text: None,
        targets=["fairlead"],
        systems=["fairlead"],
        protocols=["range"],
        events=["join"],
        members=[2],
        partitions=4,
    )
    assert "fair is unknown" in str(row["skipped"])
