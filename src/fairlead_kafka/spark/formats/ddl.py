"""Spark's types from text, without a JVM: the values of `valueSchema` for json, as DDL or as
Spark's own JSON of a schema.

PySpark has its DDL read by the JVM, which the process that plans a Python source does not have. The
grammar is that of Spark's `singleTableSchema` and `dataType` rules, as far as types go that a JSON
value can have.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fairlead_kafka.base.json_types import read_json

_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|('(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")|([<>(),:]))"
)
_PRIMITIVES: dict[str, Callable[[], DataType]] = {
    "boolean": BooleanType,
    "byte": ByteType,
    "tinyint": ByteType,
    "short": ShortType,
    "smallint": ShortType,
    "int": IntegerType,
    "integer": IntegerType,
    "long": LongType,
    "bigint": LongType,
    "float": FloatType,
    "real": FloatType,
    "double": DoubleType,
    "string": StringType,
    "binary": BinaryType,
    "date": DateType,
    "timestamp": TimestampType,
    "timestamp_ltz": TimestampType,
    "timestamp_ntz": TimestampNTZType,
}
_DECIMALS = ("decimal", "dec", "numeric")
_DECIMAL_PRECISION_MAX = 38
_NESTED = ("struct", "array", "map")
_END = ""


def parse_type(text: str) -> DataType:
    """The type that `text` says: `a INT, b STRING`, `STRUCT<…>`, `ARRAY<…>`, `MAP<…>`, or Spark's
    JSON of a struct.

    A list of fields is a struct. Raises ValueError that says what is wrong and where.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    return _Parser(text).whole()


def _from_json(text: str) -> StructType:
    try:
        parsed = read_json(text)
    except ValueError as error:
        raise ValueError(f"neither Spark DDL nor JSON ({error})") from None
    if not isinstance(parsed, dict) or parsed.get("type") != "struct":
        raise ValueError(
            'JSON of a schema is what df.schema.json() gives: {"type": "struct", "fields": [...]}'
        )
    try:
        return StructType.fromJson(parsed)
    except Exception as error:
        raise ValueError(f"not JSON of a Spark schema ({type(error).__name__}: {error})") from None


class _Parser:
    """Recursive descent over the tokens; every rule raises ValueError naming what it expected."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, int]] = []
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None:
                raise ValueError(
                    f"cannot be read from {text[position:].strip()[:20]!r} on; names other than words go in "
                    "`backquotes`"
                )
            token = found[0].lstrip()
            self._tokens.append((token, found.end() - len(token)))
            position = found.end()
        self._text = text
        self._next = 0

    def whole(self) -> DataType:
        """The type that the whole text says: a nested type, or the fields of a struct."""
        if self._peek().lower() in _NESTED and self._peek(1) == "<":
            kind = self._type()
        else:
            kind = self._fields(_END)
        if self._peek() != _END:
            raise self._expected("the end")
        return kind

    def _peek(self, ahead: int = 0) -> str:
        index = self._next + ahead
        return self._tokens[index][0] if index < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _expected(self, what: str) -> ValueError:
        token = self._peek()
        at = f"{token!r} (character {self._tokens[self._next][1] + 1})" if token else "the end"
        return ValueError(f"expected {what} at {at}")

    def _must(self, mark: str) -> None:
        if self._peek() != mark:
            raise self._expected(repr(mark))
        self._take()

    def _fields(self, close: str) -> StructType:
        fields: dict[str, StructField] = {}
        while True:
            field = self._field()
            if field.name in fields:
                raise ValueError(f"field {field.name} is there twice")
            fields[field.name] = field
            if self._peek() != ",":
                break
            self._take()
        if close:
            self._must(close)
        return StructType(list(fields.values()))

    def _field(self) -> StructField:
        token = self._peek()
        if not token or token[0] in "'\"<>(),:":
            raise self._expected("the name of a field")
        name = self._take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if self._peek() == ":":
            self._take()
        kind = self._type()
        required = self._peek().lower() == "not"
        if required:
            self._take()
            if self._take().lower() != "null":
                raise ValueError(f"field {name}: NOT must be NOT NULL")
        if self._peek().lower() == "comment":
            self._take()
            if self._take()[:1] not in ("'", '"'):
                raise ValueError(f"field {name}: COMMENT must be followed by text in quotes")
        return StructField(name, kind, not required)

    def _type(self) -> DataType:
        token = self._peek()
        word = token.lower()
        if word not in _PRIMITIVES and word not in _DECIMALS and word not in _NESTED:
            raise self._expected(
                f"a type ({', '.join([*_PRIMITIVES, 'decimal(p, s)', 'struct<>, array<>, map<>'])})"
            )
        self._take()
        if word in _PRIMITIVES:
            return _PRIMITIVES[word]()
        if word in _DECIMALS:
            return self._decimal()
        self._must("<")
        if word == "struct":
            return self._fields(">")
        first = self._type()
        if word == "array":
            self._must(">")
            return ArrayType(first)
        self._must(",")
        second = self._type()
        self._must(">")
        return MapType(first, second)

    def _decimal(self) -> DecimalType:
        if self._peek() != "(":
            return DecimalType(10, 0)
        self._take()
        numbers = [self._number()]
        if self._peek() == ",":
            self._take()
            numbers.append(self._number())
        self._must(")")
        precision, scale = numbers[0], numbers[1] if len(numbers) == 2 else 0
        if not 1 <= precision <= _DECIMAL_PRECISION_MAX or scale > precision:
            raise ValueError(
                f"decimal({precision}, {scale}): precision is 1 to {_DECIMAL_PRECISION_MAX}, scale at most "
                "the precision"
            )
        return DecimalType(precision, scale)

    def _number(self) -> int:
        if not self._peek().isdecimal():
            raise self._expected("a whole number")
        return int(self._take())
