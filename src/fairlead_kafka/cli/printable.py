"""Escapes of control characters before they are printed: names of topics, groups and clients come
from untrusted sources."""

from __future__ import annotations

import re

_COMMANDS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters, but for tabs and line ends."""
_ORDER = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that turn the direction of text, or end its line."""
_ALONE = "\ud800-\udfff"
"""Half characters, which no terminal's encoding has."""
_TEXT = re.compile(f"[{_COMMANDS}{_ORDER}{_ALONE}]")
_LINE = re.compile(f"[\t\n{_COMMANDS}{_ORDER}{_ALONE}]")


def printable(text: str) -> str:
    r"""`text` with characters that a terminal would act on written as `\x1b` and the like. Line
    ends are kept."""
    return _TEXT.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""`text` as `printable` gives it, with `\n` and `\t` for line ends and tabs, for names in
    tables."""
    return _LINE.sub(_escaped, text)


def printable_json(text: str) -> str:
    r"""JSON of the same value, with characters that a terminal would act on as `\u001b` and the
    like."""
    return _TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
