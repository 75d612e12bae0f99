"""Reads `sasl.jaas.config`: one log-in module with its options, as Kafka's `JaasConfig` reads it.

The text is `module flag option=value … ;`, as in
`org.apache.kafka.common.security.plain.PlainLoginModule required username="alice"
password="a\\"b;c" ;`. It is cut into words as java.io.StreamTokenizer does it:

- A word is letters, digits and `_ $ - .`; one that begins with a digit, `-` or `.` is a number,
  which is always refused.
- Single or double quotes hold any text of one line. A backslash takes the next character as it is,
  except that a b f n r t v are control characters, and up to three octal digits (377 at most) are
  the character of that number.
- `//` and `/* */` are comments, and so is the rest of the line after a single `/`. Other characters
  stand for themselves.

It is stricter than Java in one point: a quote that is not closed on its line is refused, where Java
accepts the line's end. No message shows a word of the text, because any word may be a piece of a
password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from fairlead_kafka.base.errors import ConfigError

CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
"""Words that may follow the module's name. They say how several modules go together, and mean
nothing for one."""

_SKIPPED = re.compile(r"(?:[\x00-\x20]|/\*.*?(?:\*/|\Z)|//[^\r\n]*|/[^*/][^\r\n]*|/\Z)*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$\u00a0-\U0010ffff][A-Za-z_$\u00a0-\U0010ffff0-9.\-]*")
_NUMBER = re.compile(r"-?[0-9.]+")
_QUOTED = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\r\n])*)\1""", re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROLS = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}
_QUOTES = ('"', "'")


@dataclass(frozen=True, repr=False)
class JaasEntry:
    """A log-in module, by the name of its class in Java, and its options. The options' values are
    secrets, and `repr` does not show them."""

    module: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, options: {', '.join(self.options) or 'none'})"


def parse_jaas(text: str, what: str = "sasl.jaas.config") -> JaasEntry:
    """The one log-in module that a JAAS text describes. Of an option that is given twice the last
    value counts, as in Java.

    ConfigError says what is expected in which column (and line, if there are several; both count
    from 1). `what` names the setting in these messages.
    """
    words = _Words(text, what)
    module = words.take_text("the class of a log-in module")
    flag = words.peek()
    if words.take_text(f"one of {', '.join(CONTROL_FLAGS)}").lower() not in CONTROL_FLAGS:
        words.expect(f"one of {', '.join(CONTROL_FLAGS)}", flag)
    options: dict[str, str] = {}
    while words.peek().kind != ";":
        name = words.take_text("the name of an option, or ';' at the end")
        words.take("=", "'=' after the name of an option")
        options[name] = words.take_text(
            "the value of an option, in quotes if it is more than letters and digits or begins with a digit"
        )
    words.take(";", "';'")
    words.take("", "nothing after ';', for there can be one log-in module only")
    return JaasEntry(module, options)


class _Token(NamedTuple):
    """A token of a JAAS config. `kind` is "text" for words and quoted texts, "number", the
    character itself for others, and empty at the end."""

    kind: str
    text: str
    at: int


class _Words:
    """The tokens of a JAAS text, taken one at a time."""

    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        self._at = 0
        self._next: _Token | None = None

    def peek(self) -> _Token:
        """The next token, without taking it."""
        if self._next is None:
            self._next = self._read()
        return self._next

    def take(self, kind: str, expected: str) -> _Token:
        """Take the next token, which is to be of `kind`. ConfigError, which says that `expected`
        belongs there, if it is of another kind."""
        token = self.peek()
        if token.kind != kind:
            self.expect(expected, token)
        self._next = None
        return token

    def take_text(self, expected: str) -> str:
        return self.take("text", expected).text

    def expect(self, expected: str, token: _Token) -> NoReturn:
        """Raise ConfigError, which says that `expected` belongs in the place of `token`."""
        place = "at its end" if token.kind == "" else f"at {self._place(token.at)}"
        raise ConfigError(
            f'{self._what}: {place}: expected {expected}; the form is: CLASS required NAME="VALUE" … ;'
        )

    def _read(self) -> _Token:
        skipped = _SKIPPED.match(self._text, self._at)
        at = skipped.end() if skipped else self._at
        if at == len(self._text):
            self._at = at
            return _Token("", "", at)
        if self._text[at] in _QUOTES:
            quoted = _QUOTED.match(self._text, at)
            if quoted is None:
                raise ConfigError(
                    f"{self._what}: at {self._place(at)}: a quote begins that is not closed on its line"
                )
            self._at = quoted.end()
            return _Token("text", _ESCAPE.sub(_escaped, quoted[2]), at)
        for kind, pattern in (("text", _WORD), ("number", _NUMBER)):
            found = pattern.match(self._text, at)
            if found:
                self._at = found.end()
                return _Token(kind, found[0], at)
        self._at = at + 1
        return _Token(self._text[at], "", at)

    def _place(self, at: int) -> str:
        before = self._text[:at]
        column = at - (before.rfind("\n") + 1) + 1
        return (
            f"line {before.count(chr(10)) + 1}, column {column}" if "\n" in self._text else f"column {column}"
        )


def _escaped(found: re.Match[str]) -> str:
    letters = found[1]
    return chr(int(letters, 8)) if letters[0] in "01234567" else _CONTROLS.get(letters, letters)
