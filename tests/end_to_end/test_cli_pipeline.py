"""`fairlead pipeline init` and `check`, against a cluster; what `run` refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.spark import starting
from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run


def _replace(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")


def test_init_writes_a_project_whose_topics_are_there_and_check_finds_nothing(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    ran = run("pipeline", "init", str(tmp_path / "shop"))
    assert (ran.code, ran.err) == (0, "")
    assert "put 2,000 records of an access log into access" in ran.out
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        assert {"access", "access.quarantine", "access.by-host"} <= set(admin.list_topics())
    checked = run("pipeline", "check", str(tmp_path / "shop"), "--json", str(tmp_path / "report.json"))
    assert checked.code == 0, checked.out
    assert "no errors in 3 flows into 3 datasets and sinks" in checked.out
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["pipeline"], report["findings"]) == ("shop", [])


def test_a_mistake_is_told_by_file_and_line_and_keeps_a_run_from_starting(run: Run, tmp_path: Path) -> None:
    assert run("pipeline", "init", str(tmp_path / "shop")).code == 0
    program = tmp_path / "shop" / "transformations" / "access_log.py"
    _replace(program, '"subscribe", "access"', '"subscribe", "acess"')
    line = (
        program.read_text(encoding="utf-8")
        .splitlines()
        .index('    """The topic\'s records, with the fields of a line."""')
        + 2
    )
    ran = run("pipeline", "check", str(tmp_path / "shop"))
    assert ran.code == 1
    assert (
        f"transformations/access_log.py:{line}: error wrong-topic: there is no topic acess\n    did you mean "
        "access?" in ran.out
    )
    ran = run("pipeline", "run", str(tmp_path / "shop"))
    assert ran.code == 1
    assert "wrong-topic" in ran.err
    assert "Spark" not in ran.err


def test_without_a_cluster_init_says_what_to_do_and_check_says_where_the_address_is(
    run_at: Run, tmp_path: Path
) -> None:
    ran = run_at("pipeline", "init", str(tmp_path / "shop"))
    assert ran.code == 0
    assert "no cluster answers yet" in ran.out
    assert "fairlead topics create access --partitions 6 -b 127.0.0.1:1" in ran.out
    ran = run_at("pipeline", "check", str(tmp_path / "shop"))
    assert ran.code == 1
    assert (
        "spark-pipeline.yml:9: error unreachable-broker: no broker answers: 127.0.0.1:1: Connection refused"
        in ran.out
    )
    assert run_at("pipeline", "check", str(tmp_path / "shop"), "--no-cluster").code == 0


@pytest.mark.parametrize("typed", ["-b 127.0.0.1:2", "--conf spark.fairlead.bootstrap.servers=127.0.0.1:2"])
def test_an_address_that_was_typed_is_told_as_it_was(run_at: Run, tmp_path: Path, typed: str) -> None:
    run_at("pipeline", "init", str(tmp_path / "shop"))
    ran = run_at("pipeline", "check", str(tmp_path / "shop"), *typed.split())
    assert ran.code == 1
    assert f"{typed}: error unreachable-broker: no broker answers: 127.0.0.1:2: Connection refused" in ran.out
    assert "or give the address of yours here" in ran.out
    assert "spark-pipeline.yml" not in ran.out


@pytest.mark.parametrize("command", [("init", "shop"), ("check", "shop"), ("run", "shop"), ("watch", "shop")])
def test_without_spark_a_pipeline_says_what_to_install_and_does_nothing(
    run_at: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, str]
) -> None:
    monkeypatch.setattr(starting, "find_spec", lambda name: None)
    ran = run_at("pipeline", command[0], str(tmp_path / command[1]))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "Spark is not installed here (pyspark, yaml, grpc, pandas cannot be imported): pip install "
        '"fairlead-kafka[spark]" brings it'
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "nowhere"), "nowhere: there is no such file or folder"),
        (("run", "--full-refresh-all", "--refresh", "parsed"), "--full-refresh-all computes everything"),
        (("run", "-c", "spark.sql.x"), "expected KEY=VALUE"),
        (("init", "."), "is not an empty folder"),
    ],
)
def test_what_makes_no_sense_is_said(run_at: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = run_at("pipeline", *arguments)
    assert ran.code == 1
    assert said in ran.err


def test_a_check_loads_neither_spark_nor_arrow_nor_a_client(
    cluster: Cluster, run: Run, tmp_path: Path
) -> None:
    assert run("pipeline", "init", str(tmp_path / "shop")).code == 0
    program = (
        "import sys; from fairlead_kafka.cli.main import run; code = run(sys.argv[1:]);"
        "print(sorted({'pyspark', 'pyarrow', 'numpy', 'pandas', 'hypothesis', 'fairlead_kafka.client'} & "
        "set(sys.modules)), code)"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "pipeline",
        "check",
        str(tmp_path / "shop"),
        "-b",
        cluster.bootstrap_servers,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.splitlines()[-1] == "[] 0"


def test_init_refuses_a_name_that_is_not_utf_8(run: Run, tmp_path: Path) -> None:
    ran = run("pipeline", "init", f"{tmp_path}/sh\udcffop")
    assert ran.code == 1
    assert ran.err.startswith(f"ConfigError: NAME {tmp_path}/sh\\xffop: ")
    assert list(tmp_path.iterdir()) == []
