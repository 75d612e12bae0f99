"""Has one process compile our modules and the test files before several need them at once, each of
which would compile the same.

`python -m tests.support.compiled tests` does so where much is not compiled yet, as in a fresh
clone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEW = 30
"""Test files that are not worth a process of their own: whoever needs them first compiles them."""


def not_compiled(folder: Path) -> list[Path]:
    """Test files below a folder that were written since pytest compiled them, or never compiled; it
    keeps them in files of its own, for it writes their assertions in another way."""
    suffix = f".{sys.implementation.cache_tag}-pytest-{pytest.__version__}.pyc"
    return [
        path
        for path in sorted(folder.rglob("test_*.py"))
        if not (found := path.parent / "__pycache__" / f"{path.stem}{suffix}").exists()
        or found.stat().st_mtime < path.stat().st_mtime
    ]


def main(folders: list[str]) -> None:
    """Compile test files in the folders and what they import, unless next to nothing is left to
    compile."""
    files = [str(path) for folder in folders for path in not_compiled(ROOT / folder)]
    if len(files) > FEW:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
        # What fails here fails again where the tests are run, and is told there.
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
