"""The data source that Spark finds: `format("fairlead")`.

Name: fairlead. Reads: batch. Writes: batch, append only. Options: `fairlead.spark.options.OPTIONS`.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from fairlead.base.errors import ConfigError
from fairlead.spark.options import include_headers, parse_read_options, parse_write_options
from fairlead.spark.reader import FairleadReader
from fairlead.spark.schema import check_read_schema, check_write_schema, source_schema
from fairlead.spark.writer import FairleadWriter


class FairleadSource(DataSource):
    """Kafka topics as a DataFrame and back, with the options and columns of Spark's own Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`. Spark reserves `kafka` for its own connector."""
        return "fairlead"

    def schema(self) -> StructType:
        """The fixed columns of a read."""
        return source_schema(include_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read. Raises ConfigError."""
        options = parse_read_options(self.options)
        check_read_schema(schema, options.include_headers)
        return FairleadReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write. Raises ConfigError."""
        if overwrite:
            raise ConfigError('a Kafka topic cannot be overwritten; use .mode("append")')
        options = parse_write_options(self.options)
        check_write_schema(schema, options.topic)
        return FairleadWriter(options)
