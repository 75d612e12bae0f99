"""Public examples of other clients, moved to Fairlead: the lines that change, without the
originals.

A file of `tests/data/moves` names an original (repository, commit, path, SHA-256) and has the edits
that move it: line numbers of the original, and what stands there instead. So no original is kept
here, and the counts are exact. `python -m tests.support.moves record` writes such a file; `...
show` writes the moved program.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import os
import re
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "moves"
ORIGINALS = "FAIRLEAD_ORIGINALS"
"""Environment variable: a folder with clones named `owner+name/repo` or `owner+name`."""
DOWNLOAD_S = 10
GUIDE_BLOCK = re.compile(r"{% highlight python %}\n(.*?){% endhighlight %}", re.DOTALL)


@dataclass(frozen=True)
class Edit:
    """Lines `first` to `last` of the original (from 1; `last` is `first - 1` where lines are only
    added before `first`), and what stands there instead."""

    first: int
    last: int
    ours: tuple[str, ...]

    @property
    def removed(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Move:
    """One moved program. `lines`: of the original, blank lines and comments among them."""

    name: str
    client: str
    repository: str
    commit: str
    path: str
    sha256: str
    lines: int
    edits: tuple[Edit, ...]

    @property
    def kept(self) -> int:
        """Lines of the original that stay as they are."""
        return self.lines - sum(edit.removed for edit in self.edits)

    @property
    def written(self) -> int:
        """Lines that are ours."""
        return sum(len(edit.ours) for edit in self.edits)

    def apply(self, original: str) -> str:
        """The moved program."""
        theirs = original.splitlines()
        moved: list[str] = []
        at = 1
        for edit in self.edits:
            moved += [*theirs[at - 1 : edit.first - 1], *edit.ours]
            at = edit.last + 1
        return "\n".join([*moved, *theirs[at - 1 :]]) + "\n"


def moves() -> Iterator[Move]:
    """Every move, by name."""
    for path in sorted(FOLDER.glob("*.toml")):
        entry = tomllib.loads(path.read_text(encoding="utf-8"))
        edits = tuple(
            Edit(*each["lines"], tuple(each["ours"].splitlines())) for each in entry.pop("edit", ())
        )
        yield Move(path.stem, edits=edits, **entry)


def original(move: Move) -> str | None:
    """The original, from a clone or from GitHub; None where there is neither."""
    text = _cloned(move) or _downloaded(move)
    if text is None:
        return None
    if move.path.endswith(".md"):
        text = programs_of(text)
    assert hashlib.sha256(text.encode()).hexdigest() == move.sha256, f"{move.path} is another file"
    return text


def programs_of(guide: str) -> str:
    """The Python programs of Spark's guide, one after the other."""
    return "".join(GUIDE_BLOCK.findall(guide))


def _cloned(move: Move) -> str | None:
    folder = os.environ.get(ORIGINALS)
    if folder is None:
        return None
    clone = Path(folder) / move.repository.replace("/", "+")
    clone = clone / "repo" if (clone / "repo").exists() else clone
    command = ["git", "-C", str(clone), "show", f"{move.commit}:{move.path}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def _downloaded(move: Move) -> str | None:
    address = f"https://raw.githubusercontent.com/{move.repository}/{move.commit}/{move.path}"
    try:
        with urllib.request.urlopen(address, timeout=DOWNLOAD_S) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return None


def record(client: str, repository: str, commit: str, path: str, theirs: str, moved: str) -> str:
    """The file that has the edits from an original to the moved program."""
    before, after = theirs.splitlines(), moved.splitlines()
    entry = {"client": client, "repository": repository, "commit": commit, "path": path}
    entry["sha256"] = hashlib.sha256(theirs.encode()).hexdigest()
    lines = [f'{key} = "{value}"' for key, value in entry.items()] + [f"lines = {len(before)}"]
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for tag, low, high, ours_low, ours_high in steps:
        if tag != "equal":
            ours = "\n".join(after[ours_low:ours_high])
            lines += ["", "[[edit]]", f"lines = [{low + 1}, {high}]", f"ours = '''\n{ours}'''"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write the edits from an original to a moved program")
    for name in ("name", "client", "repository", "commit", "path", "theirs", "moved"):
        recording.add_argument(name)
    showing = commands.add_parser("show", help="write a moved program")
    showing.add_argument("name", choices=[move.name for move in moves()])
    given = parser.parse_args()
    if given.command == "show":
        (move,) = (one for one in moves() if one.name == given.name)
        text = original(move)
        print(move.apply(text) if text else f"the original is not at hand: set {ORIGINALS}\n", end="")
        return
    theirs, moved = (Path(each).read_text(encoding="utf-8") for each in (given.theirs, given.moved))
    text = record(given.client, given.repository, given.commit, given.path, theirs, moved)
    (FOLDER / f"{given.name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
