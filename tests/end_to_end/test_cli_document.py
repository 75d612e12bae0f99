"""The commands of docs/how-to/command-line.md, in the order in which they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.command_line import Run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
FILES = {
    "lines.txt": b"k1:a\nk2:b\nk3:c\n",
    "tombstones.txt": b"k1:NULL\n",
    "records.jsonl": b'{"key": "k4", "value": "d", "headers": {"h": null}}\n',
    "values.jsonl": b'{"a": 1}\n',
}


def commands() -> list[str]:
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_every_command_of_the_document_does_its_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        Path(name).write_bytes(data)
    said = {}
    for command in commands():
        words = shlex.split(command, comments=True)
        given, taken = b"", None
        if "<" in words:
            given = Path(words[words.index("<") + 1]).read_bytes()
            words = words[: words.index("<")]
        if ">" in words:
            taken = Path(words[words.index(">") + 1])
            words = words[: words.index(">")]
        assert words[0] == "fairlead"
        ran = run(*words[1:], stdin=given)
        assert ran.code == 0, (command, ran.err)
        said[" ".join(words[1:])] = ran.out
        if taken is not None:
            taken.write_text(ran.out)
    assert len(said) > 30
    assert said["consume orders -o beginning -n 3 -f %t-%p@%o %T %k=%s [%h]\\n"].count("orders-") == 3
    assert "consume orders --group billing --from-beginning --until-end" in said
    values = said["consume orders --from-beginning --until-end"].splitlines()
    assert sorted(values) == ["", "a", "b", "c", "d", '{"a": 1}']
