"""The demo on a small input: nothing lost, and the JSON that says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LINES = (
    b'10.0.0.1 - - [01/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 100 "-" "curl"\n' * 70
    + b'10.0.0.2 - - [01/Nov/2026:00:00:01 +0000] "GET \\"x\\" HTTP/1.1" 500 - "-" "curl"\n' * 30
    + b"broken line\n\n"
)


def _demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairlead.cli.main", "demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


def test_every_line_of_a_log_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LINES)
    ran = _demo("--input", str(tmp_path / "log"), "--json", str(tmp_path / "report.json"))
    assert ran.returncode == 0, ran.stderr
    assert "lost: 0" in ran.stdout
    assert "10.0.0.1" in ran.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert {key: report[key] for key in ("lines", "produced", "read", "quarantined", "hosts", "lost")} == {
        "lines": 102, "produced": 102, "read": 102, "quarantined": 2, "hosts": 2, "lost": 0,
    }  # fmt: skip
    assert set(report["partitions"]) == {"access", "access.unkeyed"}
    assert all(len(sizes) == 12 for sizes in report["partitions"].values())
    assert set(report["seconds"]) >= {"produce", "spark_job", "total"}


def test_a_missing_file_is_said_at_once() -> None:
    ran = _demo("--input", "no-such-file.log")
    assert ran.returncode == 1
    assert "INPUT=no-such-file.log: cannot be read" in ran.stderr
    assert "Traceback" not in ran.stderr
