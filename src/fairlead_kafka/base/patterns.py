r"""Regular expressions of clients (subscriptions of consumers, transactional ids to list), matched
in a time that is bounded by their length.

Kafka has RE2 for this, whose expressions cannot run for ever on any text. Python's `re` tries one
way after another, and a short expression of a member (`(a+)+b`) could block the coordinator for
hours. So this is an automaton of its own, after Thompson: all ways are followed at once, one
character at a time. Matching costs at most (states) x (characters), and states are bounded by
STATES_MAX; steps once taken are remembered, so that many names cost little more than their length.

The syntax is RE2's, as far as it has a meaning for the names of topics (letters, digits, `.`, `_`,
`-`): characters and escapes, `.`, classes with ranges, `\d \w \s` and their opposites, `[:alpha:]`
and its like in classes, groups `( )`, `(?: )`, `(?P<name> )`, `(?<name> )`, alternation, `* + ? {n}
{n,} {n,m}` and their lazy forms (which match the same names), `^ $ \A \z`, `\b \B`, the flags `(?i)
(?s) (?m) (?U)` for all that follows or for one group, and `\Q...\E`. Refused, with a message:
Unicode classes (`\p{Greek}`), which no topic's name could match; features that RE2 lacks
(references, looking ahead or behind, possessive repeats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

STATES_MAX = 2_000
"""States of one expression: `(a{100}){100}` would have twenty thousand. RE2 has a like bound on its
memory."""
REPEAT_MAX = 1_000
"""Most repetitions `{n,m}`; RE2's own bound."""
DEPTH_MAX = 50
"""Groups within groups; RE2 has 1000. More would be deeper than Python's stack likes."""
_SHOWN_MAX = 40
"""Characters of a wrong repetition that its error shows."""
_STEPS_KEPT = 4_096
"""Steps remembered of one expression, then forgotten."""
_KEPT = 256
"""Compiled expressions kept; groups ask for the same ones again and again."""

_Test = Callable[[str], bool]

_DIGITS = frozenset("0123456789")
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_WORD = _DIGITS | _LOWER | _UPPER | {"_"}
_SPACE = frozenset("\t\n\f\r ")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_NAMED = {
    "alnum": _DIGITS | _LOWER | _UPPER,
    "alpha": _LOWER | _UPPER,
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": _DIGITS,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": _LOWER,
    "print": frozenset(map(chr, range(32, 127))),
    "punct": _PUNCTUATION,
    "space": _SPACE | {"\v"},
    "upper": _UPPER,
    "word": _WORD,
    "xdigit": _DIGITS | frozenset("abcdefABCDEF"),
}
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PatternError(ValueError):
    """An expression that is not RE2's, or is not served; its text says what is wrong."""


@dataclass(slots=True)
class _State:
    """One state of the automaton: it takes a character that passes `test`, or goes on at once where
    `holds` (before and after a character) is true."""

    test: _Test | None = None
    holds: Callable[[str, str], bool] | None = None
    next: list[int] = field(default_factory=list)


class Pattern:
    """A compiled expression; `matches` is true for a name that the expression matches from end to
    end."""

    def __init__(self, states: list[_State], start: int, end: int) -> None:
        self._states = states
        self._start = start
        self._end = end
        self._looks_ahead = any(state.holds is not None for state in states)
        self._steps: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        """Whether the expression matches all of `name`."""
        current = self._closure({self._start}, "", name[:1])
        for position, character in enumerate(name):
            after = name[position + 1 : position + 2] if self._looks_ahead else ""
            key = current, character, after
            step = self._steps.get(key)
            if step is None:
                if len(self._steps) >= _STEPS_KEPT:
                    self._steps.clear()
                step = self._steps[key] = self._step(current, character, after)
            if not step:
                return False
            current = step
        return self._end in current

    def _step(self, current: frozenset[int], character: str, after: str) -> frozenset[int]:
        taken = {
            number
            for state in (self._states[number] for number in current)
            if state.test is not None and state.test(character)
            for number in state.next
        }
        return self._closure(taken, character, after)

    def _closure(self, numbers: set[int], before: str, after: str) -> frozenset[int]:
        found, waiting = set(numbers), list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            if state.test is not None or (state.holds is not None and not state.holds(before, after)):
                continue
            for number in state.next:
                if number not in found:
                    found.add(number)
                    waiting.append(number)
        return frozenset(found)


@lru_cache(maxsize=_KEPT)
def compile_pattern(text: str) -> Pattern:
    """Compile an expression of RE2's syntax. PatternError if it is invalid, or uses a feature that
    is not supported."""
    return _Parser(text).pattern()


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    dot_all: bool = False
    lines: bool = False


_Fragment = Callable[[], tuple[int, int]]
"""Builds new states of a part each time it is called; (first state, last state)."""


class _Parser:
    """Reads an expression and builds its states."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._states: list[_State] = []
        self._depth = 0
        self._flags = _Flags()

    def pattern(self) -> Pattern:
        """The compiled expression. PatternError if its syntax is invalid."""
        part = self._alternation()
        if self._position < len(self._text):
            raise PatternError("unexpected )")
        first, last = part()
        return Pattern(self._states, first, last)

    # --- States

    def _state(self, test: _Test | None = None, holds: Callable[[str, str], bool] | None = None) -> int:
        if len(self._states) >= STATES_MAX:
            raise PatternError("expression is too large")
        self._states.append(_State(test, holds))
        return len(self._states) - 1

    def _one(self, test: _Test | None = None, holds: Callable[[str, str], bool] | None = None) -> _Fragment:
        def build() -> tuple[int, int]:
            first, last = self._state(test, holds), self._state()
            self._states[first].next.append(last)
            return first, last

        return build

    def _sequence(self, parts: list[_Fragment]) -> _Fragment:
        def build() -> tuple[int, int]:
            first = last = self._state()
            for part in parts:
                start, end = part()
                self._states[last].next.append(start)
                last = end
            return first, last

        return build

    def _either(self, parts: list[_Fragment]) -> _Fragment:
        def build() -> tuple[int, int]:
            first, last = self._state(), self._state()
            for part in parts:
                start, end = part()
                self._states[first].next.append(start)
                self._states[end].next.append(last)
            return first, last

        return build

    def _repeat(self, part: _Fragment, low: int, high: int | None) -> _Fragment:
        def build() -> tuple[int, int]:
            first = last = self._state()
            end = self._state()
            for _ in range(low):
                start, stop = part()
                self._states[last].next.append(start)
                last = stop
            if high is None:
                start, stop = part()
                self._states[last].next += [start, end]
                self._states[stop].next += [start, end]
                return first, end
            for _ in range(high - low):
                start, stop = part()
                self._states[last].next += [start, end]
                last = stop
            self._states[last].next.append(end)
            return first, end

        return build

    # --- Reading

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._position)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._position += len(text)
            return True
        return False

    def _character(self, missing: str) -> str:
        if self._position >= len(self._text):
            raise PatternError(missing)
        self._position += 1
        return self._text[self._position - 1]

    def _alternation(self) -> _Fragment:
        parts = [self._concatenation()]
        while self._take("|"):
            parts.append(self._concatenation())
        return parts[0] if len(parts) == 1 else self._either(parts)

    def _concatenation(self) -> _Fragment:
        parts: list[_Fragment] = []
        while self._position < len(self._text) and not self._peek("|") and not self._peek(")"):
            if self._take("\\Q"):
                end = self._text.find("\\E", self._position)
                stop = len(self._text) if end < 0 else end
                parts += [self._literal(one) for one in self._text[self._position : stop]]
                self._position = stop if end < 0 else end + 2
                continue
            part = self._atom()
            parts.append(self._repeated(part))
        return self._sequence(parts)

    def _repeated(self, part: _Fragment) -> _Fragment:
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")  # lazy: the same names
        start = self._position
        if self._bounds() is not None:
            raise PatternError(
                f"invalid nested repetition operator: {self._text[start - 1 : self._position]}"
            )
        return self._repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        end = self._text.find("}", self._position)
        if not self._peek("{") or end < 0:
            return None
        low, comma, high = self._text[self._position + 1 : end].partition(",")
        if not _is_number(low) or not (not high or _is_number(high)):
            return None  # a brace like any other character
        least, most = _count(low), (_count(high) if high else None) if comma else _count(low)
        if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or most < least)):
            shown = self._text[self._position : end + 1]
            raise PatternError(f"invalid repeat count: {shown[:_SHOWN_MAX]}")
        self._position = end + 1
        return least, most

    def _atom(self) -> _Fragment:
        character = self._character("")
        if character == "(":
            return self._group()
        if character == "[":
            return self._one(self._class())
        if character == ".":
            any_at_all = self._flags.dot_all
            return self._one(lambda one: any_at_all or one != "\n")
        if character == "^":
            return self._anchor("\n" if self._flags.lines else "", begin=True)
        if character == "$":
            return self._anchor("\n" if self._flags.lines else "", begin=False)
        if character == "\\":
            return self._escape()
        if character in "*+?":
            raise PatternError(f"missing argument to repetition operator: {character}")
        return self._literal(character)

    def _anchor(self, line_end: str, begin: bool) -> _Fragment:
        return self._one(holds=lambda before, after: (before if begin else after) in ("", line_end))

    def _literal(self, character: str) -> _Fragment:
        wanted = frozenset({character.lower(), character.upper()} if self._flags.fold else {character})
        return self._one(lambda one: one in wanted)

    def _group(self) -> _Fragment:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise PatternError("expression nests too deeply")
        before = self._flags
        if self._take("?"):
            if self._take("P<") or (not self._peek("<=") and not self._peek("<!") and self._take("<")):
                self._name()
            elif not self._flag_group():
                self._depth -= 1
                return self._sequence([])  # flags for what follows
        part = self._alternation()
        if not self._take(")"):
            raise PatternError("missing closing )")
        self._flags = before
        self._depth -= 1
        return part

    def _name(self) -> None:
        end = self._text.find(">", self._position)
        name = self._text[self._position : max(end, self._position)]
        if end < 0 or not name or not set(name) <= _WORD:
            raise PatternError(f"invalid named capture: {self._text[self._position :]}")
        self._position = end + 1

    def _flag_group(self) -> bool:
        """Read flags up to `:` (true: a group follows) or `)` (false). PatternError for an unknown
        flag."""
        on = True
        start = self._position
        names = {"i": "fold", "s": "dot_all", "m": "lines"}
        while True:
            character = self._character("missing closing )")
            if character in ":)":
                return character == ":"
            if character == "-" and on:
                on = False
            elif character in names:
                flags = {name: getattr(self._flags, name) for name in names.values()}
                self._flags = _Flags(**(flags | {names[character]: on}))
            elif character != "U":
                raise PatternError(
                    f"invalid or unsupported Perl syntax: (?{self._text[start : self._position]}"
                )

    def _escape(self) -> _Fragment:
        character = self._character("trailing \\")
        if character in "Az":
            return self._anchor("", begin=character == "A")
        if character in "bB":
            at_edge = character == "b"
            return self._one(holds=lambda before, after: ((before in _WORD) != (after in _WORD)) is at_edge)
        kind = _CLASSES.get(character.lower())
        if kind is not None:
            return self._one(_in(kind, character.isupper()))
        return self._literal(self._escaped(character))

    def _escaped(self, character: str) -> str:
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "x":
            return self._hexadecimal()
        if character == "C" or character in "pP":
            raise PatternError(f"unsupported escape sequence: \\{character}")
        if character.isalnum() and character.isascii():
            raise PatternError(f"invalid escape sequence: \\{character}")
        return character

    def _hexadecimal(self) -> str:
        digits = self._text[self._position : self._position + 2]
        self._position += 2
        if digits.startswith("{"):
            end = self._text.find("}", self._position - 2)
            digits, self._position = self._text[self._position - 1 : end], end + 1
            if end < 0:
                raise PatternError("invalid escape sequence: \\x{")
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise PatternError(f"invalid escape sequence: \\x{digits}") from None

    def _class(self) -> _Test:
        opposite = self._take("^")
        tests: list[_Test] = []
        first = True
        while first or not self._take("]"):
            tests.append(self._member())
            first = False
        fold = self._flags.fold

        def test(one: str) -> bool:
            forms = {one, one.lower(), one.upper()} if fold else {one}
            return any(each(form) for each in tests for form in forms) is not opposite

        return test

    def _member(self) -> _Test:
        start = self._position
        if self._take("[:"):
            opposite = self._take("^")
            end = self._text.find(":]", self._position)
            kind = _NAMED.get(self._text[self._position : end]) if end >= 0 else None
            if kind is None:
                raise PatternError(f"invalid character class range: {self._text[start : end + 2]}")
            self._position = end + 2
            return _in(kind, opposite)
        low = self._bound()
        if not isinstance(low, str):
            return low
        if not self._peek("-") or self._text[self._position + 1 : self._position + 2] in ("]", ""):
            return lambda one: one == low
        self._position += 1
        high = self._bound()
        if not isinstance(high, str) or high < low:
            raise PatternError(f"invalid character class range: {self._text[start : self._position]}")
        return lambda one: low <= one <= high

    def _bound(self) -> str | _Test:
        character = self._character("missing closing ]")
        if character != "\\":
            return character
        character = self._character("missing closing ]")
        kind = _CLASSES.get(character.lower())
        return _in(kind, character.isupper()) if kind is not None else self._escaped(character)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _count(digits: str) -> int:
    """The number of repetitions in `digits`; REPEAT_MAX + 1 for any greater number. (Python refuses
    to read thousands of digits.)"""
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(REPEAT_MAX)) else REPEAT_MAX + 1


def _in(kind: frozenset[str], opposite: bool) -> _Test:
    return lambda one: (one in kind) is not opposite


def matching(text: str, names: Iterable[str]) -> frozenset[str]:
    """The names that the expression `text` matches; none if it is not an expression."""
    try:
        pattern = compile_pattern(text)
    except PatternError:
        return frozenset()
    return frozenset(name for name in names if pattern.matches(name))
