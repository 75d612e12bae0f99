"""Lines of standard input as records: keys, values, headers, null, in plain lines or in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import read_json
from fairlead_kafka.cli.record_offsets import time_ms
from fairlead_kafka.cli.record_values import Encode, Format, complaint, from_json
from fairlead_kafka.formats.context import MessageField, SerializationContext

Headers = tuple[tuple[str, bytes | None], ...]
_KEYS = ("key", "value", "headers", "partition", "timestamp")
_IGNORED = ("topic", "offset", "timestamp_type")
"""Keys that `fairlead consume --json` writes, and that do not matter to what is sent."""


class Outgoing(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


Read = Callable[[bytes, int], Outgoing]
"""A line, and its number, as a record."""


class Encoders(NamedTuple):
    """The functions that make keys and values from texts, and the names of their formats."""

    topic: str
    key: Encode
    key_format: Format
    value: Encode
    value_format: Format

    def made(self, text: bytes | None, field: MessageField, number: int) -> bytes | None:
        """The bytes of a key or value (`field`) in line `number`, made from its text; None for
        None. InvalidRecord if the text does not fit the format."""
        if text is None:
            return None
        encode = self.key if field is MessageField.KEY else self.value
        form = self.key_format if field is MessageField.KEY else self.value_format
        try:
            return encode(text, SerializationContext(self.topic, field))
        except Exception as error:
            shown = text[:60].decode(errors="replace")
            what = f"line {number} of standard input"
            raise complaint(what, error, f"the {field} {shown!r} is to be {form}") from error


def header_pairs(texts: list[str] | None) -> Headers:
    """Headers that `NAME=VALUE` and `NAME` (null) name. ConfigError for one without a name."""
    found: list[tuple[str, bytes | None]] = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name:
            raise ConfigError(f"--header {text!r}: write NAME=VALUE, or NAME for a header without a value")
        found.append((name, value.encode() if equals else None))
    return tuple(found)


def plain_lines(usual: Outgoing, separator: bytes | None, null: bytes | None, encoders: Encoders) -> Read:
    """A function that makes a record of a line: its value, with the key before the separator if
    there is one; the text `null` stands for null. Other fields are those of `usual`."""

    def read(line: bytes, number: int) -> Outgoing:
        key, value = usual.key, line
        if separator is not None:
            key, found, value = line.partition(separator)
            if not found:
                shown = line[:60].decode(errors="replace")
                raise ConfigError(
                    f"line {number} of standard input has no key separator {separator.decode()!r}: {shown!r}"
                )
        return usual._replace(
            key=encoders.made(None if key == null else key, MessageField.KEY, number),
            value=encoders.made(None if value == null else value, MessageField.VALUE, number),
        )

    return read


def json_lines(usual: Outgoing, encoders: Encoders) -> Read:
    """A function that makes a record of a line that is a JSON object, as `fairlead consume --json`
    writes it; fields that a line lacks are those of `usual`."""

    def read(line: bytes, number: int) -> Outgoing:
        what = f"line {number} of standard input"
        try:
            row = read_json(line)
        except ValueError as error:
            raise ConfigError(f"{what}: no JSON: {error}") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{what}: must be an object with {', '.join(_KEYS)}, got {type(row).__name__}")
        unknown = row.keys() - {*_KEYS, *_IGNORED}
        if unknown:
            raise ConfigError(f"{what}: {min(unknown)!r} is unknown; there are {', '.join(_KEYS)}")
        try:
            key = from_json(row["key"], encoders.key_format) if "key" in row else usual.key
            value = from_json(row.get("value"), encoders.value_format)
            headers = _headers(row.get("headers")) if "headers" in row else usual.headers
            partition = _integer(row, "partition", usual.partition)
            stamp = _timestamp(row, what, usual.timestamp_ms)
        except ValueError as error:
            raise ConfigError(f"{what}: {error}") from None
        return Outgoing(
            encoders.made(key, MessageField.KEY, number),
            encoders.made(value, MessageField.VALUE, number),
            headers,
            partition,
            stamp,
        )

    return read


def _headers(value: object) -> Headers:
    """Headers from JSON: an object, or pairs. ValueError for anything else."""
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list) or not all(
        isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], str) for one in pairs
    ):
        raise ValueError("headers must be an object, or pairs of a name and a value")
    return tuple((name, from_json(one, Format.BYTES)) for name, one in pairs)


def _integer(row: Mapping[str, object], key: str, usual: int | None) -> int | None:
    value = row.get(key, usual)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{key} must be a whole number, not {value!r}")
    return value


def _timestamp(row: Mapping[str, object], what: str, usual: int | None) -> int | None:
    value = row.get("timestamp")
    return (
        time_ms(value, f"{what}: timestamp") if isinstance(value, str) else _integer(row, "timestamp", usual)
    )
