"""Each room tells its theory of operation; nothing unfinished, and nothing of any one machine, is
in the tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent for path in (ROOT / "src" / "fairlead_kafka").glob("*/__init__.py"))
THEORY_LINES_MIN = 4
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|pytest\.mark\.xfail)\b")
MACHINE_PATHS = re.compile(r"/work/|/root/|/home/\w+/|C:\\\\Users")


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_each_room_opens_with_its_theory_of_operation(room: Path) -> None:
    docstring = re.match(r'"""(.*?)"""', (room / "__init__.py").read_text(), re.DOTALL)
    assert docstring, f"{room.name}/__init__.py has no docstring"
    assert len(docstring[1].strip().splitlines()) >= THEORY_LINES_MIN, f"{room.name}: say how the room works"


def test_nothing_is_left_unfinished_and_no_file_names_a_machine() -> None:
    found = []
    for path in _tracked():
        if path == Path(__file__) or path.suffix not in {".py", ".md", ".toml", ".yml", "", ".sh"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if MACHINE_PATHS.search(line) or (path.suffix == ".py" and UNFINISHED.search(line)):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_nobody_is_sent_to_a_stranger_s_package() -> None:
    """`fairlead` on PyPI is another project's; ours is `fairlead-kafka`, and its import
    `fairlead_kafka`."""
    strangers = re.compile(
        r"\bpip install [^`\n]*\bfairlead(?!-kafka)\b|\bfairlead\[|^\s*(import|from) fairlead\b(?!_)",
        re.MULTILINE,
    )
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _tracked()
        if path != Path(__file__) and path.suffix in {".py", ".md", ".toml", ".yml", ".txt", ""}
        for match in strangers.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_the_lock_file_names_no_registry() -> None:
    assert not re.search(r"https?://", (ROOT / "requirements.lock").read_text())


def test_what_runs_in_machines_and_hosts_logs_by_guarded_loggers() -> None:
    """A handler of the application's that raises must end no client and no broker."""
    source = ROOT / "src" / "fairlead_kafka"
    programs = {"cli", "lab", "simulation"}  # whose log is their own
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in source.rglob("*.py")
        if path.relative_to(source).parts[0] not in programs and path.name != "guarded_log.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"(?<!['\"`])logging\.getLogger\((?!'fairlead_kafka'\))", line)
    ]
    assert not found, "use base.guarded_log.GuardedLogger:\n" + "\n".join(found)
