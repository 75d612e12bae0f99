"""Documents, put to use: the programs in them run, the tutorial's test suite passes, and the site
builds without a broken link."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER

ROOT = Path(__file__).parents[2]
PROGRAMS = {
    f"{name}-{number}": program
    for name in (
        "README.md",
        "docs/how-to/formats.md",
        "docs/how-to/observing.md",
        "docs/concepts/cluster.md",
        "docs/concepts/groups.md",
        "docs/concepts/partitioning.md",
        "docs/concepts/producing.md",
        "docs/how-to/security.md",
        "docs/how-to/testing.md",
        "docs/index.md",
        "docs/start/five-minutes.md",
        "docs/tutorials/group.md",
        "docs/tutorials/producer.md",
    )
    for number, program in enumerate(
        re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    )
    if "import " in program and "fairlead_kafka" in program
}
"""Those that import what they use, and that is ours; others are fragments."""
PRINTED = {
    name: re.findall(r"```python\n(.*?)```\n\nIt prints[^`]*?```text\n(.*?)```", page, re.DOTALL)
    for name in ("docs/start/five-minutes.md", "docs/tutorials/group.md", "docs/tutorials/producer.md")
    for page in [(ROOT / name).read_text(encoding="utf-8")]
}
"""{page: its programs that have what they print beneath them}."""


_BROKER = "localhost:9092"
_OPEN_TO_ALL = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


@contextmanager
def started(wanted: bool) -> Iterator[str]:
    """A cluster with an authorizer for a program that does not start one itself; its address."""
    if not wanted:
        yield _BROKER
        return
    with fairlead_kafka.Cluster(1, config=_OPEN_TO_ALL) as cluster:
        yield cluster.bootstrap_servers


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_in_the_documents_run(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    if "spark" in program:
        pytest.skip("run by tests/spark/test_readme.py, which has a Spark session")
    with started(_BROKER in program) as servers:
        command = [sys.executable, "-W", "error", "-c", program.replace(_BROKER, servers)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "a program in a document shows what it did"
    for shown, printed in PRINTED.get(name.rpartition("-")[0], ()):
        assert shown != program or ran.stdout == printed


def test_pages_for_newcomers_show_what_their_programs_print() -> None:
    assert all(PRINTED.values())


def test_the_site_builds_without_a_broken_link_or_anchor(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")  # no symbolic link: pages must be below the project
    (tmp_path / "src").symlink_to(ROOT / "src")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "build" / "site"
    assert "send_table" in (site / "reference" / "api" / "clients.html").read_text(encoding="utf-8")
    assert (site / "search.json").exists()


def test_the_test_suite_of_the_tutorial_passes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorials" / "test-suite.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "test_orders.py").write_text("\n\n".join(programs), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout
