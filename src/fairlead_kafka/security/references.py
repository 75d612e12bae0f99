"""References in configs to secrets that are kept elsewhere (Kafka's KIP-297 and KIP-421).

`${env:NAME}` is an environment variable, `${file:PATH:KEY}` a key of a Java properties file,
`${file:PATH}` a whole file, and `${dir:PATH:NAME}` a file in a folder, as Kubernetes mounts
secrets. A reference ends at the first `}`, and there is no way to escape one. A text of any other
form, such as `${x}`, stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.units import MIB

FILE_MAX_BYTES = MIB
"""Largest file that is read for a reference. Secrets are small, the largest are bundles of
certificates (200 KiB); a larger file is a mistake, such as a device that never ends."""

_REFERENCE = re.compile(r"\$\{([^{}:$]*):([^}]*)\}")
_PATH_AND_NAME = re.compile(r"((?:[A-Za-z]:[\\/])?+[^:]*):(.*)", re.DOTALL)
"""A path ends at the first colon, but for that of a Windows drive."""
_LINE_END = re.compile(r"\r\n|\n|\r")
_SPACE = " \t\f"
_ESCAPE = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def references(text: str) -> bool:
    """Whether there is a reference in `text`."""
    return _REFERENCE.search(text) is not None


def resolve(text: str, what: str) -> str:
    """`text` with its references replaced by what they stand for. The replacements are not searched
    for references.

    ConfigError if a variable, a file or a key is not there, if a file cannot be read or is larger
    than FILE_MAX_BYTES, or if a provider is not known. `what` names the setting in these messages.
    """

    def value(found: re.Match[str]) -> str:
        provider = _PROVIDERS.get(found[1])
        if provider is None:
            known = "${env:NAME}, ${file:PATH:KEY}, ${file:PATH} and ${dir:PATH:NAME}"
            raise ConfigError(
                f"{what}: the reference at character {found.start() + 1} is of a provider that is not known; "
                f"known are {known}"
            )
        return provider(found[2], what)

    return _REFERENCE.sub(value, text)


def files_of(text: str) -> list[str]:
    """Paths of the files that the references in `text` are read from; those of the environment have
    none."""
    found = [(provider, argument) for provider, argument in _REFERENCE.findall(text) if provider != "env"]
    paths = []
    for provider, argument in found:
        parts = _PATH_AND_NAME.fullmatch(argument)
        if parts is None:
            paths.append(argument)
        else:
            paths.append(os.path.join(parts[1], parts[2]) if provider == "dir" else parts[1])
    return paths


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a Java properties file (java.util.Properties). Of a key that is given
    twice the last value counts.

    ValueError if a `\\u` is not followed by four hexadecimal digits.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        found[_unescaped(key)] = _unescaped(value)
    return found


def _from_environment(name: str, what: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(
            f"{what}: ${{env:{name}}}: there is no such environment variable; set it before the program "
            "starts"
        )
    return value


def _from_file(argument: str, what: str) -> str:
    reference = f"${{file:{argument}}}"
    parts = _PATH_AND_NAME.fullmatch(argument)
    if parts is None:
        return _without_last_newline(_text(Path(argument), reference, what))
    text = _text(Path(parts[1]), reference, what)
    try:
        properties = parse_properties(text)
    except ValueError:
        raise ConfigError(
            f"{what}: {reference}: the file has a \\u that is not followed by four hexadecimal digits; mend "
            "it"
        ) from None
    if parts[2] not in properties:
        raise ConfigError(f"{what}: {reference}: the file has no key {parts[2]!r}; add it: KEY=VALUE")
    return properties[parts[2]]


def _from_folder(argument: str, what: str) -> str:
    reference = f"${{dir:{argument}}}"
    parts = _PATH_AND_NAME.fullmatch(argument)
    if parts is None or parts[2] in ("", ".", "..") or re.search(r"[\\/]", parts[2]):
        raise ConfigError(
            f"{what}: {reference}: must name a folder and a file that is in it: ${{dir:PATH:NAME}}"
        )
    return _without_last_newline(_text(Path(parts[1], parts[2]), reference, what))


_PROVIDERS: dict[str, Callable[[str, str], str]] = {
    "env": _from_environment,
    "file": _from_file,
    "dir": _from_folder,
}


def _text(path: Path, reference: str, what: str) -> str:
    """The text of the file at `path`. ConfigError if it cannot be read, is too large, or is not
    UTF-8."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ConfigError(
            f"{what}: {reference}: the file cannot be read ({reason}); check its path and its permissions"
        ) from None
    if len(data) > FILE_MAX_BYTES:
        raise ConfigError(
            f"{what}: {reference}: the file is larger than {FILE_MAX_BYTES:,} bytes, so it is no secret; "
            "check its path"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{what}: {reference}: the file is not UTF-8 (at byte {error.start}); save it as UTF-8"
        ) from None


def _without_last_newline(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text.removesuffix("\n")


def _logical_lines(text: str) -> list[str]:
    """The logical lines of a properties file: joined with their continuations, without comments,
    blank lines and leading white space."""
    lines: list[str] = []
    begun = ""
    for line in _LINE_END.split(text):
        line = line.lstrip(_SPACE)
        if not begun and line[:1] in ("#", "!"):
            continue
        continues = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun += line[:-1] if continues else line
        if not continues:
            lines.append(begun)
            begun = ""
    return [line for line in [*lines, begun] if line]


def _split(line: str) -> tuple[str, str]:
    """Key and value of a logical line, still escaped. The key ends at the first `=`, `:` or white
    space that no backslash stands before."""
    end = 0
    while end < len(line) and line[end] not in f"=:{_SPACE}":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_SPACE)
    return line[:end], value[1:].lstrip(_SPACE) if value[:1] in ("=", ":") else value


def _unescaped(text: str) -> str:
    r"""`text` without its escapes. Two escapes `\uXXXX` that are the halves of one character become
    that character."""
    plain = _ESCAPE.sub(_escaped, text)
    return plain.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    letters = found[1]
    if letters[0] != "u":
        return _CONTROLS.get(letters, letters)
    if not re.fullmatch("[0-9A-Fa-f]{4}", letters[1:]):
        raise ValueError("not four hexadecimal digits")
    return chr(int(letters[1:], 16))
