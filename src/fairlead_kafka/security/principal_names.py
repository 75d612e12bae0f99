"""The principal of a certificate: its subject as Java prints it (RFC 2253), mapped to a user's name
by `ssl.principal.mapping.rules` (KIP-371)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.security.jks import DerElement, der_elements, der_sequence
from fairlead_kafka.security.tokens import shown

RULES_KEY = "ssl.principal.mapping.rules"

_EXPLICIT_0 = 0xA0
_OBJECT_IDENTIFIER = 0x06
_STRING_TAGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""Types of ASN.1 that Java writes as text: UTF8, Printable, Teletex, IA5, General and BMP."""
_KEYWORDS = {
    bytes.fromhex("550403"): "CN",
    bytes.fromhex("550406"): "C",
    bytes.fromhex("550407"): "L",
    bytes.fromhex("550408"): "ST",
    bytes.fromhex("550409"): "STREET",
    bytes.fromhex("55040a"): "O",
    bytes.fromhex("55040b"): "OU",
    bytes.fromhex("0992268993f22c640119"): "DC",
    bytes.fromhex("0992268993f22c640101"): "UID",
}
"""The attributes that RFC 2253 (2.3) has names for, by object identifier. Others are written with
their numbers and their DER in hex."""
_ESCAPED = re.compile(r'[,=+<>#;"\\]')
_OUTER_SPACE = re.compile(r"\A[ \r]+|[ \r]+\Z")

# As Kafka's `SslPrincipalMapper` has them.
_RULE = r"(DEFAULT)|RULE:((\\.|[^\\/])*)/((\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSER = re.compile(_RULE)
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")
_BY_NAME = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")
_BY_NUMBER = re.compile(r"[0-9]+")
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


def subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER, as Java's `X500Principal.getName()`. ValueError if it is
    no certificate."""
    try:
        fields = der_elements(der_sequence(certificate)[0].content)
        subject = fields[5 if fields[0].tag == _EXPLICIT_0 else 4]  # the version, which version 1 leaves out
        sets = [der_elements(each.content) for each in der_sequence(subject.whole)]
        return ",".join("+".join(_attribute(each) for each in attributes) for attributes in reversed(sets))
    except (IndexError, ValueError) as error:
        raise ValueError(f"not a certificate that can be read: {error}") from None


def _attribute(element: DerElement) -> str:
    kind, value = der_sequence(element.whole)
    if kind.tag != _OBJECT_IDENTIFIER:
        raise ValueError("an attribute without a type")
    keyword = _KEYWORDS.get(kind.content)
    if keyword is None or value.tag not in _STRING_TAGS:
        return f"{keyword or _dotted(kind.content)}=#{value.whole.hex()}"
    text = value.content.decode("utf-8", "replace")  # Java reads all types of strings as UTF-8
    escaped = _ESCAPED.sub(r"\\\g<0>", text).replace("\0", "\\00")
    return (
        f"{keyword}={_OUTER_SPACE.sub(lambda found: ''.join(chr(92) + char for char in found[0]), escaped)}"
    )


def _dotted(identifier: bytes) -> str:
    """An object identifier in numbers (X.690, 8.19). ValueError if it is empty."""
    numbers, value = [], 0
    for octet in identifier:
        value = value << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise ValueError("an empty type")
    first = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (first, numbers[0] - 40 * first, *numbers[1:]))


class _Rule(NamedTuple):
    """One rule of `ssl.principal.mapping.rules`; `pattern` None: the rule DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: tuple[str | int, ...] = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        """The name that the rule makes of a subject; None if the rule does not fit."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        return _CASES[self.case](_replaced(self.pattern, self.replacement, name))


def _replaced(pattern: re.Pattern[str], replacement: tuple[str | int, ...], name: str) -> str:
    """`name` with every match of the pattern replaced, as Java's `String.replaceAll` does: Python's
    `re.sub` differs from that after an empty match."""
    pieces: list[str] = []
    copied = at = 0
    while at <= len(name) and (found := pattern.search(name, at)) is not None:
        pieces.append(name[copied : found.start()])
        pieces += [part if isinstance(part, str) else found[part] or "" for part in replacement]
        copied = found.end()
        at = copied + (found.start() == copied)
    return "".join([*pieces, name[copied:]])


class PrincipalNames:
    r"""The rules of one listener (`ssl.principal.mapping.rules`): the first that matches makes the
    user's name. Patterns are Java's, as far as Python reads them in the same way; those with \p are
    refused. ConfigError for a rule that is none."""

    def __init__(self, rules: str) -> None:
        self._rules = tuple(
            rule for found in _SPLITTER.finditer(rules.strip()) if (rule := _parsed(found[1])) is not None
        )

    def name(self, subject: str) -> str:
        """The user's name, made of a certificate's subject. AuthenticationFailed if no rule
        matches; Kafka closes the connection then, too."""
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise AuthenticationFailed(
            f"Failed to map name for '{shown(subject)}' based on SSL principal mapping rules."
        )


def _parsed(text: str) -> _Rule | None:
    """A rule; None for an empty one, which is left out. ConfigError for an invalid rule."""
    found = _PARSER.match(text)
    if found is None or found.end() != len(text):
        raise ConfigError(
            f"{RULES_KEY}: {shown(text)!r} is no rule; there are RULE:pattern/replacement/[LU] and DEFAULT, "
            "with commas between"
        )
    if found[1]:
        return _Rule(None)
    if found[2] is None:
        return None
    try:
        pattern = re.compile(_NAMED_GROUP.sub("(?P<", found[2]), re.ASCII)
        return _Rule(pattern, _replacement(found[4], pattern), found[6])
    except (re.error, ValueError, IndexError, OverflowError) as error:
        raise ConfigError(f"{RULES_KEY}: {shown(text)!r}: {error}") from None


def _replacement(text: str, pattern: re.Pattern[str]) -> tuple[str | int, ...]:
    """A replacement as texts and numbers of groups, as Java's `Matcher.appendReplacement` reads it.
    ValueError for a named group that the pattern lacks. The number of a group that the pattern
    lacks is taken for text if there are any groups, as Kafka has it."""
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            parts.append(text[at + 1 : at + 2])
            at += 2
        elif char != "$":
            parts.append(char)
            at += 1
        elif (named := _BY_NAME.match(text, at + 1)) is not None:
            parts.append(
                pattern.groupindex[named[1]] if named[1] in pattern.groupindex else _no_group(named[1])
            )
            at = named.end()
        elif (digits := _BY_NUMBER.match(text, at + 1)) is not None:
            length = next(
                (size for size in range(len(digits[0]), 0, -1) if int(digits[0][:size]) <= pattern.groups), 0
            )
            if length == 0 and pattern.groups == 0:
                _no_group(digits[0])
            parts.append(int(digits[0][:length]) if length else "$" + digits[0])
            at = digits.start() + length if length else digits.end()
        else:
            raise ValueError(
                "a $ in the replacement must be followed by a group's number, or stand behind a backslash"
            )
    return tuple(parts)


def _no_group(name: str) -> int:
    raise ValueError(f"the replacement has a group {name}, and the pattern has none such")
