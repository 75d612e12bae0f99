"""The data source that Spark finds: `format("fairlead")`.

Name: fairlead. Reads and writes: batch and streaming; writes append. Options:
`fairlead_kafka.spark.option_table.OPTIONS`.

Spark asks for a source and its schema in a process of their own, again for each look at a query,
and most of these processes do nothing else. So each reader and writer is loaded when it is asked
for: with clients and kernels, loading takes most of such a process's time.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.formats import read_layout
from fairlead_kafka.spark.option_table import VIEW_OPTIONS
from fairlead_kafka.spark.options import (
    ReadOptions,
    WriteOptions,
    parse_read_options,
    parse_write_options,
    view_of,
)
from fairlead_kafka.spark.planners import PLANS_WRITE, filters_pushed_down, runs
from fairlead_kafka.spark.schema import check_read_schema, check_write_schema, source_schema
from fairlead_kafka.spark.versions import Feature, has, refuse


@errors_first
class FairleadSource(DataSource):
    """Kafka topics as a DataFrame and back, with the options and columns of Spark's own Kafka
    connector."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`. Spark reserves `kafka` for its own connector."""
        return "fairlead"

    def schema(self) -> StructType:
        """The columns of a read, or of a view. ConfigError for invalid options."""
        view = view_of(self.options)
        if view in VIEW_OPTIONS:
            from fairlead_kafka.spark.views import VIEWS

            return VIEWS[view].schema
        return source_schema(read_layout(self.options).resolved())

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of a batch read. ConfigError for invalid options."""
        options = parse_read_options(self.options)
        if options.view in VIEW_OPTIONS:
            from fairlead_kafka.spark.views import view_reader

            return view_reader(options, schema)
        options = _checked(options, schema)
        if filters_pushed_down():
            from fairlead_kafka.spark.filtering_reader import FilteringReader

            return FilteringReader(options, schema)
        from fairlead_kafka.spark.reader import FairleadReader

        return FairleadReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a streaming query. ConfigError for invalid options."""
        options = _checked(parse_read_options(self.options, streaming=True), schema)
        if has(Feature.LIMITS):
            from fairlead_kafka.spark.stream_reader import FairleadStreamReader

            return FairleadStreamReader(options, schema)
        _refuse_limits(options)
        from fairlead_kafka.spark.unlimited_stream_reader import UnlimitedStreamReader

        return UnlimitedStreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of a batch write. ConfigError for invalid options or columns; also raises,
        before a task has written a row, any error by which an exactly-once write is impossible."""
        if overwrite:
            raise ConfigError('a Kafka topic cannot be overwritten; use .mode("append")')
        options = parse_write_options(self.options)
        check_write_schema(schema, options.topic, options.include_headers, options.formats)
        _plan(options)
        if options.exactly_once is not None:
            from fairlead_kafka.spark.exactly_once.writers import ExactlyOnceWriter

            return ExactlyOnceWriter(options, options.exactly_once)
        from fairlead_kafka.spark.writer import FairleadWriter

        return FairleadWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """The writer of a streaming query. Raises ConfigError; any error by which a commit is
        impossible is raised before the tasks of a micro-batch.

        `overwrite` is true with outputMode("complete"): every trigger appends the whole result
        again, as with Spark's own connector. outputMode("update") is refused by Spark itself, which
        lets no sink in Python have it.
        """
        options = parse_write_options(self.options, streaming=True)
        check_write_schema(schema, options.topic, options.include_headers, options.formats)
        if runs(
            PLANS_WRITE
        ):  # it is asked for again to commit and to abort: there, nothing may keep it from that
            _plan(options)
        if options.exactly_once is not None:
            from fairlead_kafka.spark.exactly_once.writers import ExactlyOnceStreamWriter

            return ExactlyOnceStreamWriter(options, options.exactly_once)
        from fairlead_kafka.spark.writer import FairleadStreamWriter

        return FairleadStreamWriter(options)


def _plan(options: WriteOptions) -> None:
    from fairlead_kafka.spark.write_planning import plan_write

    plan_write(options)


def _refuse_limits(options: ReadOptions) -> None:
    """Raise SparkUnsupported for limits of a micro-batch, on a Spark that does not support them."""
    given = {
        "maxOffsetsPerTrigger": options.max_offsets,
        "maxBytesPerTrigger": options.max_bytes,
        "minOffsetsPerTrigger": options.min_offsets,
    }
    names = [name for name, value in given.items() if value is not None]
    if names:
        refuse(", ".join(names), Feature.LIMITS)


def _checked(options: ReadOptions, schema: StructType) -> ReadOptions:
    """The options with a resolved layout, which gives `schema`. Raises ConfigError."""
    options = replace(options, layout=options.layout.resolved())
    check_read_schema(schema, options.layout)
    return options
