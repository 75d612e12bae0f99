"""Records as they are printed: lines, JSON, or a format of kcat's."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.record_values import Decode, Shown, complaint, in_json
from fairlead_kafka.formats.context import MessageField, SerializationContext

if TYPE_CHECKING:
    from fairlead_kafka.client import Record, ShareRecord

    AnyRecord = Record | ShareRecord

_TOKEN = re.compile(r"%(.?)|\\x([0-9a-fA-F]{2})|\\(.?)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
_TIMESTAMP_TYPES = {0: "create", 1: "log_append"}


class Decoders(NamedTuple):
    """The functions that show keys and values, and the text for null."""

    key: Decode
    value: Decode
    null: bytes = b""

    def shown(self, record: AnyRecord, field: MessageField) -> Shown:
        """A record's key or value (`field`) as it is shown. InvalidRecord if it does not parse."""
        data: bytes | None = record.key if field is MessageField.KEY else record.value
        if data is None:
            return Shown(self.null, None)
        decode = self.key if field is MessageField.KEY else self.value
        try:
            return decode(data, SerializationContext(record.topic, field, record.headers))
        except Exception as error:
            what = f"{field} of {record.topic}-{record.partition} at offset {record.offset}"
            raise complaint(what, error, f"--{field}-format bytes or hex shows it as it is") from error


Print = Callable[["AnyRecord", Decoders], bytes]


def lines(separator: bytes | None) -> Print:
    """A function that prints a record as a line: its value, with the key and the separator before
    it if there is one."""

    def show(record: AnyRecord, decoders: Decoders) -> bytes:
        value = decoders.shown(record, MessageField.VALUE).plain + b"\n"
        return (
            value if separator is None else decoders.shown(record, MessageField.KEY).plain + separator + value
        )

    return show


def json_lines(record: AnyRecord, decoders: Decoders) -> bytes:
    """A record as a JSON object in a line; `fairlead produce --json` takes the same."""
    row = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestamp_type": _TIMESTAMP_TYPES.get(record.timestamp_type),
        "headers": [[name, in_json(value)] for name, value in record.headers],
        "key": decoders.shown(record, MessageField.KEY).value,
        "value": decoders.shown(record, MessageField.VALUE).value,
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: AnyRecord, decoders: Decoders) -> bytes:
    return b",".join(
        name.encode() + b"=" + (decoders.null or b"NULL" if value is None else value)
        for name, value in record.headers
    )


_PARTS: Mapping[str, Print] = {
    "s": lambda record, decoders: decoders.shown(record, MessageField.VALUE).plain,
    "S": lambda record, _: b"%d" % _size(record.value),
    "R": lambda record, _: struct.pack(">i", _size(record.value)),
    "k": lambda record, decoders: decoders.shown(record, MessageField.KEY).plain,
    "K": lambda record, _: b"%d" % _size(record.key),
    "T": lambda record, _: b"%d" % record.timestamp_ms,
    "h": _headers,
    "t": lambda record, _: record.topic.encode(),
    "p": lambda record, _: b"%d" % record.partition,
    "o": lambda record, _: b"%d" % record.offset,
    "%": lambda _record, _: b"%",
}
"""Tokens of kcat's formats."""


def formatted(text: str) -> Print:
    """A function that prints a record in a format of kcat's: %s value, %k key, %o offset and so on.
    ConfigError for a token that there is not."""
    parts: list[Print] = []
    position = 0

    def literal(data: bytes) -> Print:
        return lambda _record, _decoders: data

    for found in _TOKEN.finditer(text):
        if found.start() > position:
            parts.append(literal(text[position : found.start()].encode()))
        position = found.end()
        token, byte, escape = found.groups()
        if byte is not None:
            parts.append(literal(bytes.fromhex(byte)))
        elif token is not None and token in _PARTS:
            parts.append(_PARTS[token])
        elif token is None and escape in _ESCAPES:
            parts.append(literal(_ESCAPES[escape]))
        else:
            raise ConfigError(
                f"--format {text!r}: there is no {found.group()}; there are "
                f"{' '.join('%' + each for each in _PARTS)} and \\n \\r \\t \\\\ \\0 \\xHH"
            )
    parts.append(literal(text[position:].encode()))
    return lambda record, decoders: b"".join(part(record, decoders) for part in parts)
