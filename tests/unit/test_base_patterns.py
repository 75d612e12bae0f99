"""Expressions of subscriptions: RE2's syntax, in bounded time."""

from __future__ import annotations

import re

import pytest

from fairlead_kafka.base.patterns import (
    DEPTH_MAX,
    PatternError,
    compile_pattern,
    matching,
)

NAMES = [
    "",
    "a",
    "ab",
    "b",
    "events",
    "events-1",
    "Events_2",
    "x.y",
    "aaaa",
    "__internal",
    "9",
    "a-b",
    "a\nb",
]
ALIKE = [
    "events.*",
    "events|x.y",
    r"x\.y",
    "a*",
    "a+b?",
    "(a|b)+",
    "(?:ab)?",
    "(?P<name>a)b",
    "[a-c]+",
    "[^a]*",
    "[]a]",
    "[a-]+b",
    r"\w+",
    r"\W|.*\d",
    "(?i)EVENTS.*",
    "(?i:E)vents",
    "a{4}",
    "a{2,}",
    "a{0,1}",
    "^a$",
    r"\Aab",
    "a.b",
    "(?s)a.b",
    r"events\b.*",
    r"\Bb|b",
    ".*?1",
    "a??b",
    "",
    "|a",
    "(a*)*",
    "(a|aa)+",
    r"[\d\w]+",
    r"\x61b",
]


@pytest.mark.parametrize("text", ALIKE)
def test_what_re_and_re2_have_in_common_matches_alike(text: str) -> None:
    expected = re.compile(text, re.ASCII)
    pattern = compile_pattern(text)
    assert [name for name in NAMES if pattern.matches(name)] == [
        name for name in NAMES if expected.fullmatch(name)
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (r"\Qx.y\E", {"x.y"}),
        ("[[:alpha:]]+", {"a", "ab", "b", "aaaa", "events"}),
        ("[[:^alpha:]]", {"9"}),
        (r"a\z", {"a"}),
        ("(?<name>a)b", {"ab"}),
        (r"\x{61}", {"a"}),
        ("(?m)a$\n^b", {"a\nb"}),
        ("(?-s)a.b", {"a-b"}),
        ("(?U)a+", {"a", "aaaa"}),
    ],
)
def test_what_only_re2_has(text: str, names: set[str]) -> None:
    assert matching(text, NAMES) == names


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(a", "missing closing )"),
        ("a)", "unexpected )"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator: *"),
        ("a**", "invalid nested repetition operator"),
        ("a{2000}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
        ("a{" + "9" * 5000 + "}", "invalid repeat count"),
        ("a{1," + "9" * 5000 + "}", "invalid repeat count"),
        ("\\", "trailing \\"),
        (r"\1", "invalid escape sequence: \\1"),
        (r"\pL", "unsupported escape sequence"),
        ("(?=a)", "invalid or unsupported Perl syntax: (?="),
        ("(?<!a)", "invalid or unsupported Perl syntax: (?<"),
        ("(?P<>a)", "invalid named capture"),
        ("[b-a]", "invalid character class range: b-a"),
        ("[[:no:]]", "invalid character class range: [:no:]"),
        ("(((a{100}){100}){100})", "too large"),
        ("(" * (DEPTH_MAX + 1) + ")" * (DEPTH_MAX + 1), "nests too deeply"),
        (r"\xzz", "invalid escape sequence"),
    ],
)
def test_what_is_no_expression_is_told_in_words(text: str, says: str) -> None:
    with pytest.raises(PatternError, match=re.escape(says)):
        compile_pattern(text)
    assert matching(text, NAMES) == frozenset()


def test_an_expression_that_re_would_never_end_with_takes_as_long_as_any_other() -> None:
    pattern = compile_pattern("(a+)+(a|aa)*(a*)*b")
    assert not pattern.matches("a" * 249)
    assert pattern.matches("a" * 248 + "b")
