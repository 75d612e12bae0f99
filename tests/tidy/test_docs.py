"""Documents are true: tables come from the code, links lead somewhere, programs run."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fairlead_kafka.base import limits

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md"), ROOT / "tests" / "README.md"])


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["configuration.md", "metrics.md", "protocol.md", "spark-options.md"])
def test_tables_in_the_documents_are_those_of_the_code(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == _generator().DOCUMENTS[name](), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_bounds_in_the_documents_are_those_of_the_code() -> None:
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    stated = re.findall(r"\b([A-Z]+(?:_[A-Z]+)+) \(([\d,]+)(?: (MiB|KiB))?\)", text)
    units = {"": 1, "KiB": 1024, "MiB": 1024 * 1024}
    assert len(stated) >= 9
    assert {name: int(number.replace(",", "")) * units[unit] for name, number, unit in stated} == {
        name: getattr(limits, name) for name, _number, _unit in stated
    }


def test_every_room_has_a_line_on_the_map_of_the_house() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    rooms = sorted(path.parent.name for path in (ROOT / "src" / "fairlead_kafka").glob("*/__init__.py"))
    assert [room for room in rooms if f"`{room}`" not in text] == []


PROGRAMS = {
    f"{name}-{number}": program
    for name in ("README.md", "docs/partitioning.md", "docs/producing.md", "docs/security.md")
    for number, program in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL))
    if "import " in program and "fairlead_kafka" in program
}
"""Those that import what they use, and that is ours; others are fragments."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_in_the_documents_run(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    if "spark" in program:
        pytest.skip("run by tests/spark/test_readme.py, which has a Spark session")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout, "a program in a document shows what it did"
