"""The kernel that reads JSON into columns (`src/native/json.c`), and its reference implementation.

**Operations**, of five numbers each: kind, slot, argument, skip, valid. The first is the struct
that a text is. STRUCT: its fields are the `skip` operations from `argument` on, one after another.
WHOLE: `argument` is the number of bits. Every field has a column of booleans, `valid`, that is True
where its value is there and not null. DAY is days since 1970, INSTANT and LOCAL microseconds; an
INSTANT may have a zone. Slots are those of `kernels`; TEXT takes two.

**Names** of fields stand one after another, `"name":` for each operation, and are compared byte by
byte.

**What is not taken**, and left to other code, which reads it or says why it does not fit: texts
that are no object; values of another type than their field's; numbers of more than 19 digits, or
whose exponent is beyond `EXPONENTS`; names with escapes, lone surrogates, a struct that is there
twice; what is passed over and is nested deeper than `PASSED_DEPTH_MAX`; and whatever is not JSON. A
row that is not taken has anything in its slots.
"""

from __future__ import annotations

import datetime
import json
import re
import struct
from functools import cache

import numpy as np

from fairlead_kafka.base.kernel import kernel
from fairlead_kafka.formats.kernels import OP_FIELDS, Bools, Bytes, Int64

STRUCT, TEXT, WHOLE, NUMBER, TRUTH, DAY, INSTANT, LOCAL = range(8)
EXPONENTS = range(-300, 289)
"""Exponents of ten with which up to 19 digits are a double that is neither subnormal nor
infinite."""
_ROUNDED_UP_FROM = -27
DIGITS_MAX = 19
PASSED_DEPTH_MAX = 64
PATIENCE = 64
"""Behind so many rows that are not taken, the rest is left if they are more than half of those
seen."""

_SPACE = re.compile(rb"[ \n\r\t]*")
_NAME = re.compile(rb'"[^"\\\x00-\x1f]*"')
_TEXT = re.compile(
    rb'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?!(?i:d[89a-f]))(?i:[0-9a-f]{4})'
    rb'|\\u(?i:d[89ab][0-9a-f]{2})\\u(?i:d[c-f][0-9a-f]{2}))*"'
)
_WHOLE = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?")
_WORD = re.compile(rb"true|false|null")
_DAY = re.compile(rb'"([0-9]{4}-[0-9]{2}-[0-9]{2})"')
_INSTANT = re.compile(
    rb'"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})'
    rb'(?:\.([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})?"'
)
_EPOCH = datetime.date(1970, 1, 1)


class _Left(Exception):
    """Raised for a text that the kernel leaves to others."""


@cache
def powers_of_five() -> Int64:
    """The 128 most significant bits of 5**q for each q of `EXPONENTS`, in two numbers.

    As in D. Lemire, "Number Parsing at a Gigabyte per Second" (2021): the bits below are cut off;
    of inverses that 64 bits of digits could hit exactly, they are rounded up.
    """
    table: list[int] = []
    for exponent in EXPONENTS:
        if exponent >= 0:
            power = 5**exponent
            bits = power << 128 >> power.bit_length()
        else:
            power = 5**-exponent
            bits = (1 << power.bit_length() + 127) // power + (exponent >= _ROUNDED_UP_FROM)
        table += (bits >> 64, bits % 2**64)
    return np.array(table, np.uint64).view(np.int64)


@kernel
def decode_json(
    source: Bytes, starts: Int64, ends: Int64, given: Bools, ops: Int64, names: Bytes, name_offsets: Int64,
    powers: Int64, order: Int64, places: Int64, slots: Int64, valid: Bools, faults: Bools, unescaped: Bytes,
) -> tuple[int, int]:  # fmt: skip
    """Read the texts `given` by the operations of a struct.

    `faults` are the rows that are not taken. Returns how many, and how many bytes of `unescaped`
    were filled: texts that have escapes are written there, and begin where their slot says behind
    the end of `source`. `order` is what was learned of the order of fields, an operation's
    successor and a struct's first field, and speeds up what it is right about. Assumes that slots,
    valid and `places` begin as zero, that `places` are a power of two and twice the operations at
    least, that `unescaped` is as large as all texts, and `powers_of_five()`.
    """
    reader = _Reader(source.tobytes(), ops, names, name_offsets)
    wrong = 0
    for seen, row in enumerate(np.flatnonzero(given).tolist()):
        tired = wrong > PATIENCE and wrong * 2 > seen
        try:
            if tired or not 0 <= starts[row] <= ends[row] <= len(source):
                raise _Left
            found = reader.row(int(starts[row]), int(ends[row]))
        except _Left:
            faults[row] = True
            wrong += 1
        else:
            for op, value in found.items():
                _, slot, _, _, noted = reader.ops[op]
                valid[noted * len(starts) + row] = value is not None
                for number, cell in enumerate(value or ()):
                    slots[(slot + number) * len(starts) + row] = cell
    unescaped[: len(reader.made)] = np.frombuffer(bytes(reader.made), np.uint8)
    return wrong, len(reader.made)


_Cells = tuple[int, ...] | None
"""Numbers for the slots of a value; None for null."""


class _Reader:
    """The texts of a source, one after another."""

    def __init__(self, data: bytes, ops: Int64, names: Bytes, name_offsets: Int64) -> None:
        self._data = data
        self.ops: list[list[int]] = ops.reshape(-1, OP_FIELDS).tolist()
        self._names = [
            names.tobytes()[start:end]
            for start, end in zip(name_offsets.tolist(), name_offsets.tolist()[1:], strict=False)
        ]
        self.made = bytearray()
        self._at = self._stop = 0
        self._found: dict[int, _Cells] = {}

    def row(self, start: int, stop: int) -> dict[int, _Cells]:
        """The values of a text by their operations. Raises _Left."""
        self._at, self._stop = start, stop
        self._found = {}
        self._take(_SPACE)
        self._byte(b"{")
        self._object(0)
        self._take(_SPACE)
        if self._at != self._stop:
            raise _Left
        return self._found

    def _take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        found = pattern.match(self._data, self._at, self._stop)
        if found is None:
            raise _Left
        self._at = found.end()
        return found

    def _is_at(self, byte: bytes) -> bool:
        return self._at < self._stop and self._data[self._at : self._at + 1] == byte

    def _byte(self, byte: bytes) -> None:
        if not self._is_at(byte):
            raise _Left
        self._at += 1

    def _another(self, last: bytes) -> bool:
        """Whether a comma follows, and not the last byte of what is open."""
        self._take(_SPACE)
        more = self._is_at(b",")
        self._byte(b"," if more else last)
        self._take(_SPACE)
        return more

    def _object(self, number: int) -> None:
        """Read the fields behind a `{`."""
        _, _, first, count, _ = self.ops[number]
        fields = {self._names[op]: op for op in range(first, first + count)}
        self._take(_SPACE)
        if self._is_at(b"}"):
            self._at += 1
            return
        while True:
            name = self._take(_NAME)[0]
            self._take(_SPACE)
            self._byte(b":")
            self._take(_SPACE)
            op = fields.get(name + b":")
            if op is None:
                self._pass(0)
            else:
                self._field(op)
            if not self._another(b"}"):
                return

    def _field(self, op: int) -> None:
        kind, _, argument, _, _ = self.ops[op]
        if kind == STRUCT and self._found.get(op) is not None:
            raise _Left
        if self._is_at(b"n"):
            self._word()
            self._found[op] = None
        elif kind == STRUCT:
            self._byte(b"{")
            self._found[op] = ()
            self._object(op)
        elif kind == TEXT:
            self._found[op] = self._text()
        elif kind == WHOLE:
            value = int(self._take(_WHOLE)[0][: DIGITS_MAX + 2])
            if not -(2 ** (argument - 1)) <= value < 2 ** (argument - 1):
                raise _Left
            self._found[op] = (value,)
        elif kind == NUMBER:
            self._found[op] = struct.unpack("<q", struct.pack("<d", self._number()))
        elif kind == TRUTH:
            self._found[op] = (self._word(),)
        else:
            self._found[op] = (self._day() if kind == DAY else self._instant(kind == INSTANT),)

    def _word(self) -> bool:
        word = self._take(_WORD)[0]
        return word == b"true"

    def _text(self) -> tuple[int, int]:
        start = self._at + 1
        written = self._take(_TEXT)[0]
        if b"\\" not in written:
            return start, len(written) - 2
        start, text = len(self._data) + len(self.made), json.loads(written.decode("utf-8", "surrogateescape"))
        data = text.encode("utf-8", "surrogateescape")
        self.made += data
        return start, len(data)

    def _number(self) -> float:
        whole, fraction, exponent = (found := self._take(_NUMBER)).groups(b"")
        ten = int(exponent or 0) - len(fraction)
        if len((whole + fraction).lstrip(b"0")) > DIGITS_MAX or ten not in EXPONENTS:
            raise _Left
        return float(found[0])

    def _day(self) -> int:
        return _day(self._take(_DAY)[1])

    def _instant(self, zoned: bool) -> int:
        day, time, fraction, zone = self._take(_INSTANT).groups()
        hours, minutes, seconds = map(int, time.split(b":"))
        if hours > 23 or minutes > 59 or seconds > 59 or (zone and not zoned):
            raise _Left
        seconds += ((_day(day) * 24 + hours) * 60 + minutes) * 60
        if zone and zone != b"Z":
            of_zone, minutes = int(zone[1:3]), int(zone[4:])
            if of_zone > 23 or minutes > 59:
                raise _Left
            seconds -= (of_zone * 60 + minutes) * (-60 if zone[:1] == b"-" else 60)
        return seconds * 1_000_000 + int((fraction or b"")[:6].ljust(6, b"0"))

    def _pass(self, depth: int) -> None:
        """Pass over a value that has no operation, but must be JSON."""
        for first, last in ((b"{", b"}"), (b"[", b"]")):
            if self._is_at(first):
                if depth == PASSED_DEPTH_MAX:
                    raise _Left
                self._at += 1
                self._take(_SPACE)
                more = not self._is_at(last)
                self._at += not more
                while more:
                    if first == b"{":
                        self._take(_TEXT)
                        self._take(_SPACE)
                        self._byte(b":")
                        self._take(_SPACE)
                    self._pass(depth + 1)
                    more = self._another(last)
                return
        if self._is_at(b'"'):
            self._take(_TEXT)
        elif self._at < self._stop and self._data[self._at] in b"tfn":
            self._word()
        else:
            self._number()


def _day(text: bytes) -> int:
    try:
        return (datetime.date.fromisoformat(text.decode()) - _EPOCH).days
    except ValueError:
        raise _Left from None
