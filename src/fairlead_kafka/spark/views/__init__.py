"""Views: a topic, the groups and the cluster as tables, read by `format("fairlead").option("view",
...)`.

- `batches` (`batches.BatchesReader`): a row per record batch, from the batch's header alone; no
  record is decoded. It is planned as a read of records is, so the options that choose topics,
  offsets and tasks mean the same, and tasks read side by side: a batch belongs to the range that
  its last offset lies in. This is the table that KIP-794 argues over.
- `offsets` (`group_offsets.OffsetsReader`): a row per group and partition, with the offset
  committed, the end of the log, and the lag.
- `topics` (`topics.TopicsReader`): a row per partition with leader, replicas, offsets, bytes on
  disk and the configs of its topic.

The rows of the last two are requested from the cluster by one task when the query runs. A view's
schema is fixed: `VIEWS` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.views.batches import BATCHES_SCHEMA, BatchesReader
from fairlead_kafka.spark.views.group_offsets import OFFSETS_SCHEMA, OffsetsReader
from fairlead_kafka.spark.views.topics import TOPICS_SCHEMA, TopicsReader


class View(NamedTuple):
    """A view: the schema of its rows, and the class that reads them."""

    schema: StructType
    reader: Callable[[ReadOptions], DataSourceReader]


VIEWS: Mapping[str, View] = {
    "batches": View(BATCHES_SCHEMA, BatchesReader),
    "offsets": View(OFFSETS_SCHEMA, OffsetsReader),
    "topics": View(TOPICS_SCHEMA, TopicsReader),
}


def view_reader(options: ReadOptions, schema: StructType) -> DataSourceReader:
    """The reader of `options.view`. ConfigError if a job gave a schema of its own that is not the
    view's."""
    view = VIEWS[options.view]
    if [(field.name, field.dataType) for field in schema] != [
        (field.name, field.dataType) for field in view.schema
    ]:
        raise ConfigError(
            f"the view {options.view} has a fixed schema, {view.schema.simpleString()}; leave .schema(...) "
            "out and select or cast "
            f"afterwards (given: {schema.simpleString()})"
        )
    return view.reader(options)


__all__ = ["VIEWS", "View", "view_reader"]
