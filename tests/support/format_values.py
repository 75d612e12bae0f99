"""Random schemas with random values: how a value is written in JSON or handed to Avro, and what
must come of it."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any, NamedTuple

from hypothesis import strategies as st
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


class Kind(NamedTuple):
    """A type in Spark, and values of it: pairs of what is written and what must be read."""

    spark: DataType
    pairs: st.SearchStrategy[tuple[Any, Any]]
    avro: Any = None


def _same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return values.map(lambda value: (value, value))


def _integers(bits: int) -> st.SearchStrategy[tuple[Any, Any]]:
    return _same(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
doubles = st.floats(allow_nan=False, allow_infinity=False)
singles = st.floats(allow_nan=False, allow_infinity=False, width=32)
dates = st.dates()
instants = st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2999, 1, 1))
zones = st.integers(-14 * 60, 14 * 60).map(
    lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
)
decimals = st.integers(-(10**18) + 1, 10**18 - 1).map(lambda unscaled: Decimal(unscaled).scaleb(-4))


def _zoned(instant: datetime.datetime, zone: datetime.timezone | None, mark: str) -> tuple[Any, Any]:
    """With a zone, or without one, which is UTC."""
    stamped = instant.replace(tzinfo=zone or datetime.UTC)
    return instant.replace(tzinfo=zone).isoformat(mark), stamped.astimezone(datetime.UTC)


JSON_LEAVES = (
    Kind(BooleanType(), _same(st.booleans())),
    Kind(ByteType(), _integers(8)),
    Kind(ShortType(), _integers(16)),
    Kind(IntegerType(), _integers(32)),
    Kind(LongType(), _integers(64)),
    Kind(FloatType(), _same(singles)),
    Kind(DoubleType(), _same(doubles)),
    Kind(StringType(), _same(text)),
    Kind(BinaryType(), st.binary(max_size=9).map(lambda data: (base64.b64encode(data).decode(), data))),
    Kind(DateType(), dates.map(lambda date: (date.isoformat(), date))),
    Kind(TimestampType(), st.builds(_zoned, instants, st.none() | zones, st.sampled_from("T "))),
    Kind(TimestampNTZType(), instants.map(lambda instant: (instant.isoformat(), instant))),
    Kind(DecimalType(18, 4), decimals.map(lambda number: (str(number), number))),
)


def _millis(instant: datetime.datetime) -> datetime.datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


AVRO_LEAVES = (
    Kind(BooleanType(), _same(st.booleans()), "boolean"),
    Kind(IntegerType(), _integers(32), "int"),
    Kind(LongType(), _integers(64), "long"),
    Kind(FloatType(), _same(singles), "float"),
    Kind(DoubleType(), _same(doubles), "double"),
    Kind(StringType(), _same(text), "string"),
    Kind(BinaryType(), _same(st.binary(max_size=9)), "bytes"),
    Kind(
        StringType(),
        _same(st.uuids()).map(lambda pair: (pair[0], str(pair[1]))),
        {"type": "string", "logicalType": "uuid"},
    ),
    Kind(DateType(), _same(dates), {"type": "int", "logicalType": "date"}),
    Kind(
        TimestampType(),
        _same(instants.map(lambda instant: _millis(instant).replace(tzinfo=datetime.UTC))),
        {"type": "long", "logicalType": "timestamp-millis"},
    ),
    Kind(
        TimestampType(),
        _same(instants.map(lambda instant: instant.replace(tzinfo=datetime.UTC))),
        {"type": "long", "logicalType": "timestamp-micros"},
    ),
    Kind(TimestampNTZType(), _same(instants), {"type": "long", "logicalType": "local-timestamp-micros"}),
    Kind(
        DecimalType(18, 4),
        _same(decimals),
        {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4},
    ),
    Kind(
        IntegerType(),
        st.times().map(
            lambda time: (
                time,
                ((time.hour * 60 + time.minute) * 60 + time.second) * 1000 + time.microsecond // 1000,
            )
        ),
        {"type": "int", "logicalType": "time-millis"},
    ),
)


def _array(item: Kind) -> Kind:
    pairs = st.lists(st.just((None, None)) | item.pairs, max_size=3).map(_unzipped)
    return Kind(ArrayType(item.spark), pairs, {"type": "array", "items": ["null", item.avro]})


def _map(item: Kind) -> Kind:
    pairs = st.dictionaries(text, st.just((None, None)) | item.pairs, max_size=3)
    spark = MapType(StringType(), item.spark)
    split = pairs.map(
        lambda given: (
            {name: one[0] for name, one in given.items()},
            [(name, one[1]) for name, one in given.items()],
        )
    )
    return Kind(spark, split, {"type": "map", "values": ["null", item.avro]})


def _unzipped(pairs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    return [written for written, _ in pairs], [read for _, read in pairs]


def _struct(fields: list[tuple[Kind, bool]], record: str) -> Kind:
    """Fields f0, f1, …, each with whether null is allowed; in JSON a null may be left out."""
    names = [f"f{number}" for number in range(len(fields))]
    spark = StructType(
        [
            StructField(name, kind.spark, nullable)
            for name, (kind, nullable) in zip(names, fields, strict=True)
        ]
    )
    avro = [
        {"name": name, "type": ["null", kind.avro] if nullable else kind.avro}
        for name, (kind, nullable) in zip(names, fields, strict=True)
    ]
    pairs = st.tuples(
        *(st.just((None, None)) | kind.pairs if nullable else kind.pairs for kind, nullable in fields)
    ).map(
        lambda given: (
            {name: one[0] for name, one in zip(names, given, strict=True)},
            {name: one[1] for name, one in zip(names, given, strict=True)},
        )
    )
    return Kind(spark, pairs, {"type": "record", "name": record, "fields": avro})


def structs(leaves: tuple[Kind, ...], maps: bool = True) -> st.SearchStrategy[Kind]:
    """Kinds that are structs, up to a few levels deep."""

    def nested(inner: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
        struct = st.builds(
            _struct,
            st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3),
            st.uuids().map(lambda name: f"r{name.hex}"),
        )
        return st.one_of(inner.map(_array), *([inner.map(_map)] if maps else []), struct)

    kinds = st.recursive(st.sampled_from(leaves), nested, max_leaves=4)
    fields = st.lists(st.tuples(kinds, st.booleans()), min_size=1, max_size=4)
    return st.builds(_struct, fields, st.just("whole"))


written_json = st.sampled_from([None, 1]).flatmap(
    lambda indent: st.booleans().map(
        lambda ascii_only: lambda value: json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    )
)
"""Ways to write JSON: on one line or on several, escaped or not."""
