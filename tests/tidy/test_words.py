"""The house speaks the field's words: what we called things ourselves does not come back, and
docstrings say what a thing is."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
GLOSSARY = {
    r"hand(?:s|ed|ing)?[ -]?overs?": "submit, submission",
    r"anew": "again, from scratch",
    r"whoever": "the caller that, a user who",
    r"for want of": "because there is no",
    r"overdue": "expired, late",
    r"lagging": "slow",
    r"troubled": "blocked",
    r"twins?": "reference implementation, counterpart",
    r"dice": "rng",
    r"luck(?:y|ily)?": "chance, jitter",
    r"stragglers?": "late message",
    r"portions?": "quota",
}
"""Words that were ours alone, and what Kafka's documents and the field call it."""
ROOMS_WITH_THE_FIELDS_NAMES = (
    "admin",
    "base",
    "broker",
    "cli",
    "client",
    "consumer",
    "core",
    "formats",
    "lab",
    "partitioning",
    "producer",
    "records",
    "runtime",
    "security",
    "simulation",
    "spark",
    "testing",
    "wire",
)
"""Rooms whose own names were gone through; a room is added when it is done."""
NAMES = {
    r"settles?|(?:un)?settled": "complete, incomplete",
    r"hand_over|handed(?:_over)?": "submit, submission",
    r"twins?": "reference implementation, counterpart",
    r"dice": "rng",
    r"luck|lucky": "jitter",
    r"anew": "again",
    r"judges?|judged|verdicts?": "classify, check, compare; what comes of it",
    r"tells?|told": "report, reported, advertised, sent",
    r"turns?": "quantum, round, iteration",
    r"gather(?:s|ed|ing)?": "coalesce, collect, take",
    r"stretch(?:es)?": "row span",
    r"faces?": "client API",
    r"hungry": "waits for",
    r"lagging": "slow broker",
    r"troubled": "blocked",
    r"overdue": "expired",
    r"accounts?": "memory pool, byte counter",
}
"""Parts of names that were ours alone, and what they are now."""
NAMES_KEPT = {"spark/progress.py": {"tell"}, "formats/kernels.py": {"gather_pieces"}}
"""Names that users write, or that are the field's: vector machines gather and scatter."""
BEGINNINGS = re.compile(r"(What|Of|Where|The same)\b")
"""A docstring that begins so leans on what stands above it."""

EVENTS = re.compile(
    r"(An?|The|There|More|Some|Somebody|Nobody|Nothing|This|These|It|Its|Each|Every|No|One|For)\b"
)
"""A docstring of a function without a result that begins so tells an event, not what is done."""
ANY_MAX = 134
"""Lines of `src` with the word `Any`, at most: a tenth of those before messages had types."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


class Facts(NamedTuple):
    """A module, as far as it is looked at: its syntax tree is a hundred times as large, and would
    make each full garbage collection of later tests slow."""

    docstrings: list[tuple[int, str]]
    """Line and text of each, those of attributes included."""
    names: list[tuple[int, str]]
    """Line and text of each name that it makes: functions, classes, arguments, variables and
    attributes. Names that it only uses are their makers' affair."""
    functions: list[tuple[str, str, str]]
    """Name, result and docstring of each."""


@cache
def facts(path: Path) -> Facts:
    """What a module says of itself, in one walk."""
    found = Facts([], [], [])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, Function | ast.ClassDef):
            found.names.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            found.names.append((node.lineno, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.names.append((node.lineno, node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.names.append((node.lineno, node.attr))
        if isinstance(node, Function):
            result = "" if node.returns is None else ast.unparse(node.returns)
            found.functions.append((node.name, result, ast.get_docstring(node) or ""))
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if (
                isinstance(statement, ast.Expr)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                found.docstrings.append((statement.lineno, value.value))
    return found


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings and comments of a module, or of a page without its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(
            re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.DOTALL).splitlines(),
            start=1,
        )
        return
    yield from facts(path).docstrings
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_words_that_were_ours_alone_do_not_come_back() -> None:
    any_word = re.compile(rf"\b(?:{'|'.join(GLOSSARY)})\b", re.IGNORECASE)
    with_one = [path for path in (*SOURCES, *PAGES) if any_word.search(path.read_text(encoding="utf-8"))]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r}; write {instead}"
        for path in with_one
        for line, text in prose(path)
        for word, instead in GLOSSARY.items()
        for match in re.finditer(rf"(?<!`)\b{word}\b(?!`)", text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def snake_case(name: str) -> str:
    """The name with an underscore between its words, as `FetchSession` has two."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


@cache
def words_instead(name: str) -> list[str]:
    """What to write for each part of a name that was ours alone."""
    parts = snake_case(name)
    return [
        instead
        for word, instead in NAMES.items()
        if re.search(rf"(?:^|_)(?:{word})(?:_|$)", parts, re.IGNORECASE)
    ]


def test_names_are_the_fields_where_rooms_were_gone_through() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}; write {instead}"
        for room in ROOMS_WITH_THE_FIELDS_NAMES
        for path in sorted((ROOT / "src" / "fairlead_kafka" / room).rglob("*.py"))
        for line, name in [(1, path.stem), *facts(path).names]
        for instead in words_instead(name)
        if name not in NAMES_KEPT.get(f"{room}/{path.name}", ())
    ]
    assert not found, "\n".join(found)


def test_docstrings_say_what_a_thing_is() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: begin with what it is or does; it must stand alone"
        for path in SOURCES
        for line, text in facts(path).docstrings
        if BEGINNINGS.match(text.strip())
    ]
    assert not found, "\n".join(found)


def test_docstrings_of_functions_without_a_result_say_what_they_do() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}: begin with a verb, or with 'Called when'"
        for path in SOURCES
        for name, result, docstring in facts(path).functions
        if name != "__init__" and result == "None" and EVENTS.match(docstring)
    ]
    assert not found, "\n".join(found)


def test_docstrings_of_questions_say_when_the_answer_is_yes() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}: say 'True if', 'False if' or 'Whether'"
        for path in SOURCES
        for name, result, docstring in facts(path).functions
        if result == "bool"
        and docstring
        and not re.search(r"\b(true|false|whether|see)\b", docstring, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_any_is_rare() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"\bAny\b", line)
    ]
    assert len(lines) <= ANY_MAX, f"{len(lines)} lines say Any; give a type: " + " ".join(lines)
