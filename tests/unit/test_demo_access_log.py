"""The demo's lines: generated the same for a seed, read from files of every shape."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.demo import access_log
from fairlead_kafka.spark.pipelines import template

PROGRAM = Path(template.__file__).with_name("transformations") / "access_log.py.txt"
(LINE_PATTERN,) = re.findall(r"^LINE = r'(.*)'$", PROGRAM.read_text(encoding="utf-8"), re.MULTILINE)
"""As the demo's pipeline has it."""


def _rows(tables: object) -> list[tuple[bytes | None, bytes]]:
    table = pa.concat_tables(tables)
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_a_seed_gives_the_same_lines_and_another_seed_others() -> None:
    first, again, other = (_rows(access_log.generated(500, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len(first) == 500


def test_generated_lines_parse_but_for_the_few_that_are_broken_on_purpose() -> None:
    rows = _rows(access_log.generated(25_000))
    broken = [value for _, value in rows if not re.match(LINE_PATTERN.encode(), value)]
    assert 0 < len(broken) < 0.003 * len(rows)


def test_generated_keys_are_skewed() -> None:
    rows = _rows(access_log.generated(5_000))
    counts = sorted((sum(1 for key, _ in rows if key == one) for one in {key for key, _ in rows}), reverse=True)
    assert counts[0] > 20 * len(rows) / access_log.HOST_COUNT


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_lines_of_a_file_come_whole_whatever_the_blocks(block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_log, "READ_BLOCK_BYTES", block_bytes)
    path = tmp_path / "log"
    path.write_bytes(b"1.2.3.4 a\r\n\n\xff\xfe b\nlast without end")
    assert _rows(access_log.from_file(path)) == [
        (b"1.2.3.4", b"1.2.3.4 a"),
        (None, b""),
        (b"\xff\xfe", b"\xff\xfe b"),
        (b"last", b"last without end"),
    ]


def test_a_missing_or_empty_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        list(access_log.from_file(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match="the file is empty"):
        list(access_log.from_file(tmp_path / "empty"))
