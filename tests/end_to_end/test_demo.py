"""The demo on a small input: nothing lost, and the JSON that says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE_S

LINES = (
    b'10.0.0.1 - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 100 "-" "curl"\n' * 70
    + b'10.0.0.2 - - [01/Nov/2026:00:00:01 +0000] "GET \\"x\\" HTTP/1.1" 500 - "-" "curl"\n' * 30
    + b"broken line\n\n\xff\x00 not even text \xfe\n"
)


def _demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlead_kafka.cli.main", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)


def test_every_line_of_a_log_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LINES)
    ran = _demo("--input", str(tmp_path / "log"), "--json", str(tmp_path / "report.json"))
    assert ran.returncode == 0, ran.stderr
    assert "lost: 0" in ran.stdout
    assert "10.0.0.1" in ran.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert {key: report[key] for key in ("lines", "produced", "read", "quarantined", "hosts", "lost")} == {
        "lines": 103, "produced": 103, "read": 103, "quarantined": 3, "hosts": 2, "lost": 0,
    }  # fmt: skip
    assert set(report["partitions"]) == {"access", "access.unkeyed"}
    assert all(len(sizes) == 12 for sizes in report["partitions"].values())
    assert set(report["seconds"]) >= {"produce", "spark_job", "total"}
    assert "3 lines did not parse as access-log lines; they are in access.quarantine" in ran.stdout
    hop = next(line for line in ran.stdout.splitlines() if line.startswith("unparsable → access.quarantine"))
    assert hop.split()[-3:] == ["3", "3", "✓"]


def _running(group: int) -> list[str]:
    """The processes of a group that have not ended."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [args for pgid, state, *args in lines if int(pgid) == group and not state.startswith("Z")]  # type: ignore[misc]


_PATIENT = f"""
import sys
import fairlead_kafka.cli.spark_end as spark_end
from fairlead_kafka.cli.main import main
spark_end.PATIENCE_S = {PATIENCE_S}  # a JVM that is killed for its slowness leaves its folders
sys.exit(main())
"""


@pytest.mark.parametrize("moment", ["starting Spark …", "Spark: reading"])
def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path, moment: str) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "SPARK_LOCAL_DIRS": str(tmp_path)}
    command = [sys.executable, "-c", _PATIENT, "demo", "--rows", "5000"]
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        process_group=0,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(moment):
                break
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert _running(process.pid) == []
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("hsperfdata")] == []


def test_a_report_that_cannot_be_written_is_said_at_once() -> None:
    ran = _demo("--json", "no-such-folder/report.json")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("ConfigError: --json no-such-folder/report.json: cannot be written")


def test_an_empty_file_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    ran = _demo("--input", str(tmp_path / "log"))
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith(f"--input {tmp_path / 'log'}: the file is empty")


def test_a_missing_file_is_said_at_once() -> None:
    ran = _demo("--input", "no-such-file.log")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1].startswith("--input no-such-file.log: cannot be read")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read (Is a directory)"), (b"a\0b", "0 of 1 line parse as an access log")],
)
def test_every_input_of_no_use_is_a_wrong_command_line(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "log"
    path.mkdir() if content is None else path.write_bytes(content)
    ran = _demo("--input", str(path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.splitlines()[-1].startswith(f"--input {path}: {said}")


def test_help_names_the_fields_of_json_lines() -> None:
    shown = " ".join(_demo("--help").stdout.split())
    assert "host (remote_addr, remote_host," in shown
    assert "status (status, status_code," in shown
