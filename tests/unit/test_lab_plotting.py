"""Plots of experiments: a file of the format asked for, the same bytes for the same rows, and a
word where there is none."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
import typer

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab import app as application
from fairlead_kafka.cli.lab_options import chosen_all, plot_beside, run_experiment
from fairlead_kafka.cli.main import run as run_command
from fairlead_kafka.lab import experiment, plotting
from fairlead_kafka.lab.experiment import EXPERIMENTS, TRIALS, Experiment, Row
from fairlead_kafka.lab.plotting import Bars, Lines, Unplottable, bars, colours, figure, lines, short

PANELS = [
    Bars("bytes", ["late", "uniform"], {"broker 0": [1.0, 2.0], "broker 1": [3.0, None]}, "MB", log=True),
    Bars("rates", ["java", "fairlead.send"], {"": [1.0, 2_500.0]}, "records/s"),
    Lines(
        "latency",
        {"late": ([1, 10], [2.0, 3.0]), "uniform": ([1, 10], [4.0, None])},
        "partitions",
        "ms",
        log_x=True,
        log_y=True,
    ),
    Lines("latency", {"late": ([1, 10], [2.0, 3.0])}, "partitions", "ms"),
]


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_rows_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    figure(one, PANELS, title="all", columns=2)
    figure(two, PANELS, title="all", columns=2)
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes().startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")
    assert re.search(rb"\d{4}-\d{2}-\d{2}T", one.read_bytes()) is None, "no date"


def test_an_svg_says_in_text_what_it_shows(tmp_path: Path) -> None:
    bars(
        tmp_path / "bars.svg",
        "Bytes per broker",
        ["late", "uniform"],
        {"broker 0": [1, 2], "broker 1": [3, None]},
        "MB",
    )
    lines(tmp_path / "lines.svg", "Latency", {"late": ([1, 2], [3, 4])}, "partitions", "p99, ms")
    said = (tmp_path / "bars.svg").read_text()
    assert all(word in said for word in ("Bytes per broker", "late", "uniform", "broker 0", "broker 1", "MB"))
    said = (tmp_path / "lines.svg").read_text()
    assert all(word in said for word in ("Latency", "partitions", "p99, ms"))


def test_a_series_without_any_value_takes_no_place(tmp_path: Path) -> None:
    bars(
        tmp_path / "bars.svg",
        "Shares",
        ["late"],
        {"one broker slow": [0.9], "one broker dead": [None]},
        "share",
    )
    assert "dead" not in (tmp_path / "bars.svg").read_text()


def test_nothing_measured_gives_no_file(tmp_path: Path) -> None:
    with pytest.raises(Unplottable, match="nothing was measured"):
        bars(tmp_path / "none.svg", "none", ["late"], {"broker 0": [None]}, "MB")
    assert not (tmp_path / "none.svg").exists()


def test_other_formats_are_refused_with_those_we_write(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.svg or \.png"):
        bars(tmp_path / "bars.pdf", "x", ["late"], {"": [1]}, "MB")


def test_a_system_has_its_colour_whatever_stands_beside_it() -> None:
    together = dict(
        zip(names := ["fairlead.send", "fairlead.late", "java", "aiokafka"], colours(names), strict=True)
    )
    assert colours(["java"]) == [together["java"]]
    assert colours(["aiokafka", "java"]) == [together["aiokafka"], together["java"]]
    assert len(set(together.values())) == 4
    assert len(set(colours(["round_robin", "sticky", "uniform", "adaptive", "late"]))) == 5


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4.5678, "4.57"), (999, "999"), (45_600, "45.6 k"), (1_234_567, "1.23 M"), (2e9, "2 G")],
)
def test_figures_are_short(value: float, text: str) -> None:
    assert short(value) == text


class _Module:
    """An experiment of two rows, one of them skipped."""

    drawn: list[tuple[list[Row], Path]] = []

    def run(self, status: object, **parameters: object) -> list[Row]:
        return [{"system": "a", "p99_ms": 1.5}, {"system": "b", "skipped": "not installed"}]

    def plot(self, rows: list[Row], path: Path) -> None:
        self.drawn.append((rows, path))
        bars(path, "p99", [row["system"] for row in rows], {"": [row["p99_ms"] for row in rows]}, "ms")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> _Module:
    made = _Module()
    made.drawn = []
    monkeypatch.setattr(experiment, "import_module", lambda _: made)
    monkeypatch.setitem(EXPERIMENTS, "tiny", Experiment("tiny", "For this test.", "nowhere"))  # type: ignore[arg-type]
    return made


def test_the_plot_goes_beside_the_report_and_leaves_skipped_systems_out(
    module: _Module, tmp_path: Path
) -> None:
    run_experiment("tiny", str(tmp_path / "report.json"), None, profile="quick")
    assert json.loads((tmp_path / "report.json").read_text())["rows"][1] == {
        "system": "b",
        "skipped": "not installed",
    }
    assert (tmp_path / "report.svg").read_text().startswith("<?xml")
    assert module.drawn == [([{"system": "a", "p99_ms": 1.5}], tmp_path / "report.svg")]


def test_the_plot_goes_where_it_is_told_to(
    module: _Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_experiment("tiny", "-", str(tmp_path / "own.png"))
    assert json.loads(capsys.readouterr().out)["experiment"] == "tiny"
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")
    assert plot_beside(None) is None
    assert plot_beside("-") is None


def test_a_plot_over_the_report_is_refused_before_anything_runs(module: _Module, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--plot"):
        run_experiment("tiny", str(tmp_path / "report.svg"), None)
    assert not module.drawn


def test_without_matplotlib_the_rows_are_there_and_a_line_says_why_no_plot_is(
    module: _Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plotting, "find_spec", lambda _: None)
    run_experiment("tiny", str(tmp_path / "report.json"), None)
    assert (tmp_path / "report.json").exists()
    assert not (tmp_path / "report.svg").exists()
    assert (
        "no plot: matplotlib is not installed; pip install 'fairlead-kafka[lab]'" in capsys.readouterr().err
    )


def test_only_skipped_rows_or_an_experiment_without_a_plot_are_said(
    module: _Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unplottable, match="nothing was measured"):
        EXPERIMENTS["tiny"].plot([{"system": "b", "skipped": "why"}], tmp_path / "x.svg")
    monkeypatch.setattr(experiment, "import_module", lambda _: object())
    with pytest.raises(Unplottable, match="nothing was measured"):
        EXPERIMENTS["tiny"].plot([{"system": "a"}], tmp_path / "x.svg")


def test_lists_of_systems_are_checked_and_each_is_taken_once() -> None:
    assert chosen_all("--peers", None, ("raw", "java")) == ["raw", "java"]
    assert chosen_all("--peers", "java, raw,java", ("raw", "java")) == ["java", "raw"]
    with pytest.raises(ConfigError, match="--peers rust: must be one of raw, java"):
        chosen_all("--peers", "rust", ("raw", "java"))


def test_every_experiment_is_a_command_with_the_same_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["lab", "list"]) == 0
    listed = capsys.readouterr().out
    group = typer.main.get_command(application)
    assert isinstance(group, typer.core.TyperGroup)
    for name in EXPERIMENTS:
        assert name in listed
        options = {option for parameter in group.commands[name].params for option in parameter.opts}
        # A soak is as long as one says, of our own cluster.
        assert {"--minutes" if name == "soak" else "--profile", "--json", "--plot"} <= options, name
        assert name in ("formats", "kernels", "scenarios", "soak") or "--target" in options, name
    assert set(group.commands) == {*EXPERIMENTS, *TRIALS, "list"}


def test_every_experiment_can_be_drawn() -> None:
    assert all(callable(import_module(one.module).plot) for one in EXPERIMENTS.values())


def test_tables_of_one_report_are_printed_apart(
    module: _Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"table": "sizes", "size": 1},
        {"table": "limits", "limit": "too large"},
        {"table": "sizes", "size": 2},
    ]
    monkeypatch.setattr(module, "run", lambda status, **_: rows)
    run_experiment("tiny", None, None)
    heads = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("table")]
    assert heads == [["table", "size"], ["table", "limit"]]
