"""Documents are true: tables come from the code, links lead somewhere, programs run."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

import fairlead_kafka
from fairlead_kafka import partitioning
from fairlead_kafka.base import limits
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.partitioning import POLICY_NAMES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "../src/fairlead_kafka/base/config_names.py",
        "dashboards/clients.json",
        "dashboards/cluster.json",
        "dashboards/spark.json",
        "reference/admin.md",
        "reference/api/clients.md",
        "reference/api/records.md",
        "reference/api/spark.md",
        "reference/api/testing.md",
        "reference/cli.md",
        "reference/configuration.md",
        "reference/errors.md",
        "reference/metrics.md",
        "reference/protocol.md",
        "reference/spark-options.md",
        "reference/spark-versions.md",
    ],
)
def test_tables_in_the_documents_are_those_of_the_code(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == _generator().DOCUMENTS[name](), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_bounds_in_the_documents_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "concepts" / "cluster.md").read_text(encoding="utf-8")
    stated = re.findall(r"\b([A-Z]+(?:_[A-Z]+)+) \(([\d,]+)(?: (MiB|KiB))?\)", text)
    units = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}
    assert len(stated) >= 9
    assert {name: int(number.replace(",", "")) * units[unit] for name, number, unit in stated} == {
        name: getattr(limits, name) for name, _number, _unit in stated
    }


def test_every_policy_is_in_the_table_of_policies_and_in_its_room_s_theory() -> None:
    rows = re.findall(
        r"^\| `([a-z_.]+)` \|",
        (ROOT / "docs" / "concepts" / "partitioning.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    told = re.findall(r"^- `([a-z_.]+)`", partitioning.__doc__ or "", re.MULTILINE)
    assert set(POLICY_NAMES) == set(rows) == set(told)


def test_every_room_has_a_line_on_the_map_of_the_house() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rooms = sorted(path.parent.name for path in (ROOT / "src" / "fairlead_kafka").glob("*/__init__.py"))
    assert [room for room in rooms if f"`{room}`" not in text] == []


PROGRAMS = {
    f"{name}-{number}": program
    for name in (
        "README.md",
        "docs/how-to/formats.md",
        "docs/how-to/observing.md",
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
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "a program in a document shows what it did"
