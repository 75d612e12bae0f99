"""The columns of the source and what the sink accepts, as Spark's Kafka connector has them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fairlead.base.errors import ConfigError

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

_SOURCE_FIELDS = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_SINK_TYPES: dict[str, tuple[DataType, ...]] = {
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (HEADERS_TYPE,),
}


def source_schema(include_headers: bool) -> StructType:
    """What a read gives: key, value, topic, partition, offset, timestamp, timestampType and, if asked for, headers."""
    fields = list(_SOURCE_FIELDS)
    if include_headers:
        fields.append(StructField("headers", HEADERS_TYPE))
    return StructType(fields)


def arrow_columns(include_headers: bool) -> list[str]:
    """The columns to ask of `Consumer.read_range`, in the schema's order."""
    return source_schema(include_headers).fieldNames()


def check_read_schema(schema: StructType, include_headers: bool) -> None:
    """ConfigError if a job gave a schema of its own that is not the source's."""
    ours = source_schema(include_headers)
    if [(field.name, field.dataType) for field in schema] != [(field.name, field.dataType) for field in ours]:
        raise ConfigError(
            f"the fairlead source has a fixed schema, {ours.simpleString()}; leave .schema(...) out and select or cast afterwards "
            f"(given: {schema.simpleString()})"
        )


def check_write_schema(schema: StructType, topic: str | None) -> None:
    """ConfigError that names every column the sink cannot write, and what it needs."""
    wrong = []
    for field in schema:
        accepted = _SINK_TYPES.get(field.name)
        if accepted is None:
            wrong.append(f"column {field.name}: not one of {', '.join(_SINK_TYPES)}; drop it, or pack it into value (to_json(struct(...)))")
        elif not any(_same_type(field.dataType, one) for one in accepted):
            types = " or ".join(one.simpleString() for one in accepted)
            wrong.append(f"column {field.name}: must be {types}, not {field.dataType.simpleString()}")
    names = schema.fieldNames()
    if "value" not in names:
        wrong.append("column value: required (string or binary)")
    if topic is None and "topic" not in names:
        wrong.append("no topic: set the option topic, or add a column topic")
    if wrong:
        raise ConfigError('write.format("fairlead"): ' + "; ".join(wrong))


def _same_type(given: DataType, wanted: DataType) -> bool:
    """Equal apart from what may be null."""
    return given.simpleString() == wanted.simpleString()


def conform(table: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The table's record batches in exactly `schema`, which Spark compares to the letter (names, types, order, nullable)."""
    return table.select(schema.names).cast(schema).to_batches()  # type: ignore[no-any-return]
