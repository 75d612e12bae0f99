"""Avro schemas: parsed once, and mapped to Arrow's types. A schema that has no Arrow type is
refused when it is parsed."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Required, TypeAlias, TypedDict, cast

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException
from fastavro.types import NamedSchemas, Schema

from fairlead_kafka.base.json_types import Json
from fairlead_kafka.formats.registry import AVRO, StoredSchema

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
"""Logical types with an Arrow type of their own. Others are read as the type that they annotate, as
Spark's `from_avro` does: times of day are numbers, a uuid is text."""
_DECIMAL_PRECISION_MAX = 38
NESTED_MAX = 64
"""Bound on how deep records, arrays and maps are nested in a column: Arrow's IPC reads no deeper
ones."""
TYPES_MAX = 65_536
"""Bound on the types in a column, each counted as often as it is named: 30 small records may name a
billion."""
_JSON_DEPTH_MAX = 400
"""Bound on how deep brackets are nested in a schema's JSON, three a record: fastavro calls itself
for each."""


class Field(TypedDict):
    """A field of a record's definition."""

    name: str
    type: Avro


class Definition(TypedDict, total=False):
    """A type's definition, as Avro's specification has it."""

    type: Required[Avro]
    name: str
    logicalType: str
    fields: list[Field]
    items: Avro
    values: Avro
    precision: int
    scale: int


Avro: TypeAlias = "str | list[Avro] | Definition"
"""A schema: a name, a union, or a definition."""
Adapt = Callable[[object], object]
"""Function from a value that fastavro returns to one that Arrow takes."""


@dataclass(frozen=True)
class AvroSchema:
    """The text of a schema, and the texts of the schemas that it refers to, each after those that
    it refers to itself."""

    text: str
    references: tuple[str, ...] = ()

    def parsed(self) -> tuple[Schema, NamedSchemas]:
        """The schema as fastavro takes it, and all named types by name. ValueError says what is
        wrong."""
        named: NamedSchemas = {}
        for text in (*self.references, self.text):
            try:
                # fastavro replaces what it knows by name, and the last schema is the one that was
                # meant.
                schema = fastavro.parse_schema(_flat_enough(json.loads(text)), named_schemas=named)
            except json.JSONDecodeError as error:
                raise ValueError(f"not an Avro schema in JSON ({error})") from None
            except _TooDeep as error:
                raise ValueError(f"not an Avro schema ({error})") from None
            except (SchemaParseException, KeyError, TypeError, ValueError, RecursionError) as error:
                raise ValueError(f"not an Avro schema ({type(error).__name__}: {error})") from None
        return schema, named

    def arrow_type(self) -> pa.DataType:
        """Arrow's type for the schema. ValueError names the field that has no type in Arrow."""
        schema, named = self._typed()
        kind, nullable = _Reading(named).type_of(schema, "")
        del nullable  # a column may always be null
        return kind

    def adapter(self, own_writer: bool) -> Adapt | None:
        """A function that makes a value that Arrow takes of one that fastavro gives; None if they
        are the same.

        Without `own_writer` the value was written with another schema, and fastavro has converted
        it by that schema's logical types.
        """
        schema, named = self._typed()
        return _Reading(named).adapter(
            schema, _ALWAYS_ADAPTED if own_writer else {**_ALWAYS_ADAPTED, **_ADAPTED_OF_OTHER_WRITERS}
        )

    def _typed(self) -> tuple[Avro, dict[str, Definition]]:
        # fastavro's own types say no more than "a dict"; it has checked what the cast says.
        return cast("tuple[Avro, dict[str, Definition]]", self.parsed())


def stored_avro(stored: StoredSchema, what: str) -> AvroSchema:
    """The Avro schema that a Schema Registry has stored. UnknownSchema, which calls it `what`, if
    it is no Avro schema."""
    return AvroSchema(stored.of_kind(AVRO, what).text, tuple(text for _, text in stored.imports))


class _TooDeep(ValueError):
    pass


def _flat_enough(schema: Json) -> Schema:
    """The schema's JSON, as fastavro takes it. _TooDeep beyond `_JSON_DEPTH_MAX`."""
    level: list[Json] = [schema]
    for _ in range(_JSON_DEPTH_MAX + 1):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return cast("Schema", schema)
    raise _TooDeep(f"its JSON is nested deeper than {_JSON_DEPTH_MAX}")


def _within(schema: Json) -> Iterable[Json]:
    if isinstance(schema, dict):
        return schema.values()
    return schema if isinstance(schema, list) else ()


def _kind(definition: Definition) -> str:
    """The name of the type that a definition unwrapped by `_Reading._definition` has."""
    kind = definition["type"]
    assert isinstance(kind, str), "definitions within definitions were unwrapped"
    return kind


class _Reading:
    """A walk through a schema to find its Arrow type and adapter; it knows all named types."""

    def __init__(self, named: dict[str, Definition]) -> None:
        self._named = named
        self._open: list[str] = []
        """Names of the types that the walk is within; a type without a name is an empty text."""
        self._types = 0

    def type_of(self, schema: Avro, where: str) -> tuple[pa.DataType, bool]:
        """Arrow's type for `schema`, and whether null is allowed. ValueError, naming the field
        `where`, if there is none."""
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) != 1:
                raise ValueError(
                    f"{_named(where)}: a union of {', '.join(map(_name_of, schema))} has no type in columns, "
                    "only one of null and a type; "
                    "give a reader's schema in which the field is one type or left out"
                )
            return self.type_of(branches[0], where)[0], len(branches) < len(schema)
        definition = self._definition(schema)
        self._types += 1
        if self._types > TYPES_MAX:
            raise ValueError(
                f"{_named(where)}: more than {TYPES_MAX} types, each as often as it is named, are too many "
                "for a column; give a reader's schema with fewer"
            )
        name, kind = definition.get("name"), _kind(definition)
        if kind == "null":
            raise ValueError(f"{_named(where)}: is always null; give a reader's schema without it")
        if kind not in ("record", "array", "map"):
            return self._leaf(definition, where), False
        if name is not None and name in self._open:
            raise ValueError(
                f"{_named(where)}: {name} holds itself, which no type of a column can; give a "
                f"reader's schema "
                "without it"
            )
        if len(self._open) >= NESTED_MAX:
            raise ValueError(
                f"{_named(where)[:80]}…: records, arrays and maps are nested deeper than {NESTED_MAX}, which "
                "no column can be; give a reader's schema without it"
            )
        self._open.append(name or "")
        found = self._nested(definition, where)
        self._open.pop()
        return found, False

    def _nested(self, definition: Definition, where: str) -> pa.DataType:
        if definition["type"] == "array":
            kind, nullable = self.type_of(definition["items"], f"{where}[]")
            return pa.list_(pa.field("element", kind, nullable))
        if definition["type"] == "map":
            kind, nullable = self.type_of(definition["values"], f"{where}[]")
            return pa.map_(pa.string(), pa.field("value", kind, nullable))
        if not definition["fields"]:
            raise ValueError(
                f"{_named(where)}: a record without fields has no type in columns; give a reader's schema "
                "without it"
            )
        fields = [
            (field["name"], *self.type_of(field["type"], f"{where}.{field['name']}"))
            for field in definition["fields"]
        ]
        return pa.struct([pa.field(*field) for field in fields])

    def _leaf(self, definition: Definition, where: str) -> pa.DataType:
        kind, logical = _kind(definition), definition.get("logicalType")
        if kind in ("bytes", "fixed") and logical == "decimal":
            precision, scale = definition.get("precision", 0), definition.get("scale", 0)
            if not (
                isinstance(precision, int)
                and isinstance(scale, int)
                and 0 <= scale <= precision
                and precision >= 1
            ):
                raise ValueError(f"{_named(where)}: decimal({precision}, {scale}) is no decimal")
            if precision > _DECIMAL_PRECISION_MAX:
                raise ValueError(
                    f"{_named(where)}: decimal({precision}, {scale}) has more than the "
                    f"{_DECIMAL_PRECISION_MAX} digits; "
                    "give a reader's schema without the field, and read it from raw bytes"
                )
            return pa.decimal128(precision, scale)
        return _LOGICAL.get((kind, logical or ""), _PRIMITIVES[kind])

    def adapter(
        self, schema: Avro, leaves: Mapping[tuple[str, str], Callable[[Definition], Adapt]]
    ) -> Adapt | None:
        """The function that `AvroSchema.adapter` returns, for one type. The schema has passed
        `type_of`."""
        if isinstance(schema, list):
            inner = self.adapter(next(branch for branch in schema if branch != "null"), leaves)
            return None if inner is None else _nullable(inner)
        definition = self._definition(schema)
        kind = _kind(definition)
        if kind == "record":
            fields = [(field["name"], self.adapter(field["type"], leaves)) for field in definition["fields"]]
            adapted = [(name, adapt) for name, adapt in fields if adapt is not None]
            return _record(adapted) if adapted else None
        if kind == "array":
            items = self.adapter(definition["items"], leaves)
            return None if items is None else _array(items)
        if kind == "map":
            return _map(self.adapter(definition["values"], leaves))
        make = leaves.get((kind, definition.get("logicalType") or ""))
        return None if make is None else make(definition)

    def _definition(self, schema: Avro) -> Definition:
        """A type's definition: a name looked up, a primitive's word as the definition it stands
        for, `{"type": {…}}` unwrapped."""
        if isinstance(schema, str):
            return self._named.get(schema) or {"type": schema}
        assert not isinstance(schema, list), "a union is no definition"
        kind = schema["type"]
        if isinstance(kind, dict) or (isinstance(kind, str) and kind in self._named):
            return self._definition(kind)
        return schema


def _nullable(inner: Adapt) -> Adapt:
    return lambda value: None if value is None else inner(value)


def _record(fields: list[tuple[str, Adapt]]) -> Adapt:
    """A function that adapts a record's fields, by the functions in `fields`."""

    def adapt(value: object) -> object:
        assert isinstance(value, dict), "a record is a dictionary in fastavro"
        return {**value, **{name: of_field(value[name]) for name, of_field in fields}}

    return adapt


def _array(of_item: Adapt) -> Adapt:
    def adapt(value: object) -> object:
        assert isinstance(value, list), "an array is a list in fastavro"
        return [of_item(item) for item in value]

    return adapt


def _map(of_value: Adapt | None) -> Adapt:
    """A function that turns a map into a list of pairs, as Arrow takes maps; `of_value` adapts the
    values."""

    def adapt(value: object) -> object:
        assert isinstance(value, dict), "a map is a dictionary in fastavro"
        if of_value is None:
            return list(value.items())
        return [(name, of_value(item)) for name, item in value.items()]

    return adapt


def _of_day(units_per_second: int) -> Callable[[Definition], Adapt]:
    """A function that turns a time of day into the number of units since midnight."""

    def adapt(value: object) -> object:
        if not isinstance(value, datetime.time):
            return value
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return seconds * units_per_second + value.microsecond * units_per_second // 1_000_000

    return lambda definition: adapt


def _instant_ms(definition: Definition) -> Adapt:
    """A function that scales a number of milliseconds to Arrow's microseconds; the value was
    written without a logical type."""
    return lambda value: value * 1000 if isinstance(value, int) else value


def _decimal(definition: Definition) -> Adapt:
    scale = definition.get("scale", 0)

    def adapt(value: object) -> object:
        if not isinstance(value, bytes):
            return value
        digits = tuple(map(int, str(abs(unscaled := int.from_bytes(value, "big", signed=True)))))
        return decimal.Decimal((int(unscaled < 0), digits, -scale))

    return adapt


def _text(definition: Definition) -> Adapt:
    return str


_ALWAYS_ADAPTED: Mapping[tuple[str, str], Callable[[Definition], Adapt]] = {
    ("int", "time-millis"): _of_day(1_000),
    ("long", "time-micros"): _of_day(1_000_000),
    ("string", "uuid"): _text,
}
_ADAPTED_OF_OTHER_WRITERS: Mapping[tuple[str, str], Callable[[Definition], Adapt]] = {
    ("long", "timestamp-millis"): _instant_ms,
    ("long", "local-timestamp-millis"): _instant_ms,
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
    ("string", ""): _text,
}


def _name_of(schema: Avro) -> str:
    if isinstance(schema, list):
        return "a union"
    return schema if isinstance(schema, str) else str(schema.get("name") or schema["type"])


def _named(where: str) -> str:
    return f"field {where.lstrip('.')}" if where else "the schema"
