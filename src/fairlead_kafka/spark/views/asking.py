"""A reader whose rows come from one request to the cluster, sent by one task when the query
runs."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.client import Admin
from fairlead_kafka.spark.compatibility import arrow_schema
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.shipped import with_shipped_files


@errors_first
class AskingReader(DataSourceReader):
    """A reader whose rows one task asks the cluster for (`rows`). Raises what the admin client
    raises."""

    schema: ClassVar[StructType]

    def __init__(self, options: ReadOptions) -> None:
        CLIENT_CONFIGS.parse(
            "admin", options.client
        )  # what is wrong with kafka.* options is said before a task runs
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """A single input partition: one task asks for all rows."""
        return [InputPartition(self._options.view)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """All rows, as Arrow record batches."""
        with Admin(with_shipped_files(self._options.client)) as admin:
            table = pa.Table.from_pylist(list(self.rows(admin)), arrow_schema(self.schema))
        yield from table.to_batches()

    @abstractmethod
    def rows(self, admin: Admin) -> Iterator[Mapping[str, object]]:
        """The rows that the cluster answers, with the fields of `schema`."""

    def wants(self, topic: str) -> bool:
        """Whether the options choose this topic."""
        if self._options.topics is not None:
            return topic in self._options.topics
        return self._options.pattern is None or self._pattern().fullmatch(topic) is not None

    def _pattern(self) -> re.Pattern[str]:
        pattern = self._options.pattern or ""
        try:
            return re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"subscribePattern: {pattern!r} is not a regular expression ({error})"
            ) from None
