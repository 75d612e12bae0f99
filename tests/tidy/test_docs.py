"""Documents are true: tables come from the code, and links lead somewhere. Their programs are run
in `tests/end_to_end/test_documents.py`."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from fairlead_kafka import partitioning
from fairlead_kafka.base import limits
from fairlead_kafka.partitioning import POLICY_NAMES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"])


@cache
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


def test_links_between_pages_lead_somewhere() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not missing, "\n".join(missing)


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
