"""The columns of the source and what the sink accepts, as Spark's Kafka connector has them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.formats import DEFAULT_LAYOUT, RESCUED_TYPE, Layout, WriteFormats
from fairlead_kafka.spark.formats.writing import unwritable

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

_SOURCE_FIELDS: Mapping[str, StructField] = {
    field.name: field
    for field in (
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", HEADERS_TYPE),
        StructField("rescued", RESCUED_TYPE),
    )
}
_NESTED = (StructType, ArrayType, MapType)
_SINK_TYPES: dict[str, tuple[DataType, ...]] = {
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (HEADERS_TYPE,),
}


def source_schema(layout: Layout = DEFAULT_LAYOUT) -> StructType:
    """Schema of a read: the columns of a resolved layout, key and value typed by their formats."""
    fields = {
        **_SOURCE_FIELDS,
        **{each.field: StructField(each.field, each.spark_type()) for each in (layout.key, layout.value)},
    }
    return StructType([fields[name] for name in layout.columns])


def check_read_schema(schema: StructType, layout: Layout) -> None:
    """Raise ConfigError if a job gave a schema of its own that is not the source's, or if a schema
    in a Schema Registry changed while the read was planned."""
    ours = source_schema(layout)
    if [(field.name, field.dataType) for field in schema] != [(field.name, field.dataType) for field in ours]:
        raise ConfigError(
            f"the fairlead source has a fixed schema, {ours.simpleString()}; leave .schema(...) out and "
            "select or cast afterwards, "
            f"or say what values are with valueFormat and valueSchema (given: {schema.simpleString()})"
        )


def check_write_schema(
    schema: StructType,
    topic: str | None,
    include_headers: bool | None = None,
    formats: WriteFormats | None = None,
) -> None:
    """Raise ConfigError that names every column that the sink cannot write, and what it needs."""
    wrong = []
    formatted = {} if formats is None else {one.field: one for one in (formats.key, formats.value)}
    for field in schema:
        one = formatted.get(field.name)
        if one is not None and one.kind != "raw":
            why = unwritable(one, field.dataType)
            if why is not None:
                wrong.append(f"column {field.name}: {why}")
            continue
        accepted = _SINK_TYPES.get(field.name)
        if accepted is None:
            wrong.append(
                f"column {field.name}: not one of {', '.join(_SINK_TYPES)}; drop it, or pack it into value "
                "(to_json(struct(...)))"
            )
        elif not any(_same_type(field.dataType, one) for one in accepted):
            types = " or ".join(one.simpleString() for one in accepted)
            fix = (
                f"; {field.name}Format=json makes it one"
                if isinstance(field.dataType, _NESTED) and field.name in ("key", "value")
                else ""
            )
            wrong.append(f"column {field.name}: must be {types}, not {field.dataType.simpleString()}{fix}")
    names = schema.fieldNames()
    if "value" not in names:
        wrong.append("column value: required (string or binary, or what valueFormat makes bytes of)")
    if topic is None and "topic" not in names:
        wrong.append("no topic: set the option topic, or add a column topic")
    if include_headers is not None and include_headers != ("headers" in names):
        wrong.append(
            f"includeHeaders={str(include_headers).lower()}: there is {'no' if include_headers else 'a'} "
            "column headers"
        )
    if wrong:
        raise ConfigError('write.format("fairlead"): ' + "; ".join(wrong))


def _same_type(given: DataType, wanted: DataType) -> bool:
    """True if the types are equal apart from what may be null."""
    return given.simpleString() == wanted.simpleString()


def conform(table: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    """The table's record batches in exactly `schema`, for Spark wants names, types, order and
    nullability to be equal."""
    columns = [table.column(field.name) for field in schema]
    # Arrow casts no null struct to one whose fields are required, even to its own type.
    fitting = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(fitting, schema=schema).to_batches()  # type: ignore[no-any-return]
