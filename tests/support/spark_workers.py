"""Streaming queries on a busy machine: Spark gives the Python process of a source ten seconds to
start, and no setting changes that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from unittest import mock

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

NO_WORKER = "Python worker failed to connect back"
ATTEMPTS = 5
Result = TypeVar("Result")


def until_workers_start(run: Callable[[], Result]) -> Result:
    """What `run` returns, which starts a query and waits for it. Where the process was late it runs
    again: nothing has happened yet."""
    for _ in range(ATTEMPTS):
        try:
            return run()
        except StreamingQueryException as error:
            if NO_WORKER not in str(error):
                raise
    raise AssertionError(f"{ATTEMPTS} times: {NO_WORKER}")


@contextmanager
def workers_start() -> Iterator[None]:
    """Programs that are run as they stand, with queries that end by themselves: `start` returns
    once the query has ended, and begins it again where the process was late."""
    start = DataStreamWriter.start

    def complete(writer: DataStreamWriter) -> StreamingQuery:
        query = start(writer)
        query.awaitTermination()
        return query

    with mock.patch.object(
        DataStreamWriter, "start", lambda writer: until_workers_start(lambda: complete(writer))
    ):
        yield
