"""One interface to parts of PySpark that differ between versions: Arrow types, and the writers that
take Arrow batches."""

from __future__ import annotations

from inspect import signature

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamArrowWriter
except ImportError:
    # Spark 4.0 does not have this class, and gives Arrow batches to every DataSourceArrowWriter, in
    # streams too (`pyspark/sql/worker/write_into_data_source.py`).
    class StreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef,misc]
        """A writer of a stream that takes Arrow batches."""


__all__ = ["StreamArrowWriter", "arrow_schema", "arrow_type", "spark_type"]
# Before 4.2 timestamps are in UTC without being told, and there is no such argument.
_TAKES_TIMEZONE = "timezone" in signature(to_arrow_type).parameters


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that Spark uses for a Spark schema, with timestamps in UTC."""
    return to_arrow_schema(schema, timezone="UTC") if _TAKES_TIMEZONE else to_arrow_schema(schema)


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type that Spark uses for a Spark type, with timestamps in UTC."""
    return to_arrow_type(kind, timezone="UTC") if _TAKES_TIMEZONE else to_arrow_type(kind)


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type for an Arrow type, nullable where the Arrow type is. In Spark 4.0 elements of
    lists and values of maps are always nullable. A timestamp without a time zone has none in Spark,
    either."""
    if pa.types.is_list(kind):
        return ArrayType(spark_type(kind.value_type), kind.value_field.nullable)
    if pa.types.is_map(kind):
        return MapType(spark_type(kind.key_type), spark_type(kind.item_type), kind.item_field.nullable)
    if pa.types.is_struct(kind):
        return StructType([StructField(each.name, spark_type(each.type), each.nullable) for each in kind])
    return from_arrow_type(kind, prefer_timestamp_ntz=True)
