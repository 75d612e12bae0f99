"""Every code block of the documents is run by a test, or says in a comment above it why not:
`<!-- not run: needs an account at a provider -->`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.end_to_end.test_documents import PROGRAMS

ROOT = Path(__file__).parents[2]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md")
    if path.parent.name not in ("decisions", "reference", "api")
]
"""All but records of decisions and the tables that come from the code."""
LANGUAGES = ("python", "sh", "bash", "console", "sql", "yaml")
RUN_ELSEWHERE = {
    ("docs/how-to/command-line.md", "sh"): "tests/end_to_end/test_cli_document.py",
    ("docs/tutorials/test-suite.md", "python"): "tests/end_to_end/test_documents.py",
    ("docs/tutorials/spark-pipeline.md", "python"): "tests/spark/test_readme.py",
}
"""(page, language): the test that runs all its blocks, beside those of `PROGRAMS`."""
_BLOCK = re.compile(
    r"(?:<!-- not run: ([^>\n]+) -->\n\n)?^```(\w+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("page", PAGES)
def test_a_code_block_is_run_or_says_why_not(page: str) -> None:
    run = {program for name, program in PROGRAMS.items() if name.rpartition("-")[0] == page}
    wrong = []
    for reason, language, code in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        if language in LANGUAGES:
            is_run = code in run or (page, language) in RUN_ELSEWHERE
            if is_run == bool(reason):
                wrong.append(f"{page}: {'is run, and says why not' if reason else 'not run'}: {code[:60]!r}")
    assert not wrong, "\n".join(wrong)


def test_tests_that_run_blocks_read_their_pages() -> None:
    for (page, _language), test in RUN_ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8")
