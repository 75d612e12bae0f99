"""`fairlead lab kip480` and `kip794` as commands: what they refuse, and a row of each on sockets
and in virtual time."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import Run


def test_what_is_wrong_is_said_before_anything_starts(run_at: Run) -> None:
    for arguments, said in (
        (("kip794", "--clock", "sundial"), "--clock sundial: must be one of real, virtual, both"),
        (("kip794", "--fault", "serial,hail"), "--fault hail: must be one of none, serial, latency, dead"),
        (("kip794", "--policy", "latte"), "--policy latte: must be one of sticky, "),
        (("kip794", "--linger", "5ms"), "--linger 5ms: must be whole numbers from 0 on"),
        (("kip480", "--partitions", "0"), "--partitions 0: must be whole numbers from 1 on"),
        (("kip480", "--peers", "nobody"), "--peers nobody: must be one of fairlead, java, "),
        (("kip794", "--peers", "java", "--policy", "late"), "add it: --peers fairlead,java"),
        (("kip480", "--peers", "java", "--policy", "late"), "add it: --peers fairlead,java"),
        (("kip794", "-X", "batch.size"), "expected KEY=VALUE"),
        (
            ("kip794", "-X", "linger.ms=1"),
            "--property linger.ms: is set for each row; choose it with --linger",
        ),
    ):
        ran = run_at("lab", *arguments)
        assert (ran.code, ran.out) == (1, "")
        assert said in ran.err


def test_kip794_is_measured_by_both_clocks_with_configs_of_ones_own(run_at: Run, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    arguments = [
        "--target",
        "fairlead",
        "--peers",
        "fairlead",
        "--policy",
        "uniform",
        "--rate",
        "1000",
        "--records",
        "200",
        "--linger",
        "0",
    ]
    ran = run_at("lab", "kip794", *arguments, "--clock", "both", "-X", "batch.size=6000", "--json", str(file))
    assert ran.code == 0, ran.err
    real, virtual = json.loads(file.read_text())["rows"]
    assert [(row["clock"], row["target"]) for row in (real, virtual)] == [
        ("real", "fairlead"),
        ("virtual", None),
    ]
    for row in (real, virtual):
        assert (row["policy"], row["fault"], row["acked"], row["records"]) == (
            "uniform",
            "serial",
            3_200,
            3_200,
        ), row
        assert row["batch_size_avg_bytes"] <= 6_000
    assert virtual["real_p99_ms"] == real["p99_ms"]
    assert file.with_suffix(".svg").exists()


def test_kip480_in_virtual_time_is_the_same_on_every_run(run_at: Run) -> None:
    arguments = [
        "--clock",
        "virtual",
        "--partitions",
        "4",
        "--rate",
        "1000",
        "--records",
        "100",
        "--policy",
        "sticky",
        "--seed",
        "7",
    ]
    first, second = (run_at("lab", "kip480", *arguments, "--json", "-") for _ in range(2))
    assert first.code == 0, first.err
    rows = json.loads(first.out)["rows"]
    assert [(row["linger_ms"], row["flush"]) for row in rows] == [(0, False), (0, True), (1000, False)]
    assert json.loads(second.out)["rows"] == rows
