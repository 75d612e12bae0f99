"""The columns and tables that a piece of Spark SQL names, found from its tokens.

This is not a parser. It returns no names from parts that it does not understand (nested queries,
lambdas, struct fields), because checks with false alarms are switched off.
"""

from __future__ import annotations

import re
from itertools import pairwise


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_WORDS = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|\d\w*(?:\.\d+)?"
    r"|[A-Za-z_]\w*(?:\s*\.\s*(?:[A-Za-z_]\w*|`[^`]*`|\*))*|->|=>|[^\s\w]"
)
_KEYWORDS = words(
    """
    all and any array as asc between both by case cast cross current_date current_time
    current_timestamp day days decimal delay desc distinct div else end escape exists extract false
    filter first following for from group having hour hours ilike in interval into is last leading
    like map microsecond microseconds millisecond milliseconds minute minutes month months not null
    nulls of on or order over preceding quarter range regexp rlike row rows second seconds select
    some struct then to trailing true unbounded union unknown using week weeks when where with
    within year years bigint binary boolean byte char double float int integer long numeric real
    short smallint string tinyint varchar void timestamp_ntz timestamp_ltz variant
    """
)
_OPAQUE = frozenset({"->", "=>", "select", "over", "struct"})
"""Names after these may be bound in the expression itself."""
_READS = re.compile(r"\b(?:from|join)\s+(stream\s*\(?\s*)?([A-Za-z_][\w.]*)", re.IGNORECASE)
_DEFINES = re.compile(
    r"\bcreate\s+(?:or\s+refresh\s+)?(streaming\s+table|materialized\s+view|temporary\s+view|flow)"
    r"\s+(?:if\s+not\s+exists\s+)?([A-Za-z_][\w.]*)"
    r"(?:\s+as\s+insert\s+into\s+(?:once\s+)?([A-Za-z_][\w.]*))?",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def column_names(expression: str) -> list[str]:
    """The columns that an expression refers to, without the name it gives its result. Empty where
    that cannot be told."""
    found: list[str] = [word for word in _WORDS.findall(expression) if word.strip()]
    if any(word.lower() in _OPAQUE for word in found):
        return []
    names = []
    for before, word, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        if word[0] == "`":
            name = word.strip("`")
        elif word[0].isalpha() or word[0] == "_":
            name = re.split(r"\s*\.\s*", word)[0]
        else:
            continue
        quoted = word[0] == "`"
        # What a quoted text follows is a kind of literal, such as DATE '2026-01-01'.
        if (
            after[:1] in ("(", "'")
            or before.lower() == "as"
            or (not quoted and name.lower() in _KEYWORDS)
            or word.endswith("*")
        ):
            continue
        names.append(name)
    # `value v` names its result without AS.
    return (
        names[:-1]
        if len(found) > 1 and names and names[-1] == found[-1] and _ends_operand(found[-2])
        else names
    )


def _ends_operand(word: str) -> bool:
    return (
        word == ")"
        or word[0] in "'\"`"
        or (word[0].isalnum() and word.lower() not in _KEYWORDS)
        or word.lower() in ("end", "null")
    )


def result_name(expression: str) -> str | None:
    """The name of the column that an expression of `selectExpr` gives; None if it cannot be told,
    or if it is a star."""
    found: list[str] = [word for word in _WORDS.findall(expression) if word.strip()]
    if not found or found[-1].endswith("*"):
        return None
    name = found[-1]
    if len(found) == 1:
        return re.split(r"\s*\.\s*", name)[-1].strip("`") if name[0].isalpha() or name[0] in "_`" else None
    if found[-2].lower() == "as" or (name[0].isalpha() and _ends_operand(found[-2])):
        return name.strip("`")
    return None


def reads_of(query: str) -> list[tuple[str, bool]]:
    """The tables that a SQL query reads, each with True if it is read as a stream."""
    text = _COMMENTS.sub(" ", query)
    own = set(re.findall(r"(?:\bwith|,)\s+([A-Za-z_]\w*)\s+as\s*\(", text, re.IGNORECASE))
    return [
        (name, bool(stream))
        for stream, name in _READS.findall(text)
        if name.lower() != "stream" and name not in own
    ]


def groups_without_watermark(query: str) -> bool:
    """True if a query groups rows and sets no watermark anywhere."""
    found = [word.lower() for word in _WORDS.findall(_COMMENTS.sub(" ", query))]
    return "watermark" not in found and any(pair == ("group", "by") for pair in pairwise(found))


def definitions_of(text: str) -> list[tuple[str, str, str | None, str, int]]:
    """Definitions in a file of SQL: (kind, name, target of a flow, its query, line)."""
    blank = _COMMENTS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    found, position = [], 0
    for statement in blank.split(";"):
        for match in _DEFINES.finditer(statement):
            line = text.count("\n", 0, position + match.start()) + 1
            found.append(
                (" ".join(match[1].lower().split()), match[2], match[3], statement[match.end() :], line)
            )
        position += len(statement) + 1
    return found


def declared_columns(schema: str) -> dict[str, str] | None:
    """Columns and types of a DDL text such as `a INT, b STRING`; None if it is more than that."""
    columns = {}
    for part in re.split(r",(?![^<(]*[>)])", schema):
        words = part.replace(":", " ").split(None, 2)
        if len(words) < 2:
            return None
        columns[words[0].strip("`")] = words[1].lower()
    return columns
