"""The writers that write exactly once: Spark's classes around `task` and `driver`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from fairlead_kafka.base.errors import FairleadError, UsageError
from fairlead_kafka.spark.compatibility import StreamArrowWriter
from fairlead_kafka.spark.error_order import errors_first
from fairlead_kafka.spark.exactly_once.driver import LOGGER, Committer
from fairlead_kafka.spark.exactly_once.parts import Part, TaskPrepared, Writing, parts_of
from fairlead_kafka.spark.exactly_once.settings import Guarantee
from fairlead_kafka.spark.exactly_once.task import TaskStep, prepare
from fairlead_kafka.spark.options import WriteOptions
from fairlead_kafka.spark.writing import encoded_rows

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
"""Local properties that Spark's micro-batch engine gives to every task."""


class _Writer:
    """Base of both exactly-once writers. Spark pickles it to executors and to the processes that
    commit."""

    _comes_back = True
    """Whether a later attempt may ask again for what is written, so that the log must keep it."""

    def __init__(self, options: WriteOptions, guarantee: Guarantee) -> None:
        self._options = options
        self._guarantee = guarantee

    def _prepare(self, writing: Writing, batches: Iterator[pa.RecordBatch]) -> TaskPrepared:
        topic, rows = encoded_rows(self._options.formats, self._options.topic, batches)
        return prepare(self._options.client, self._guarantee, writing, topic, rows, self.task_reached)

    def committer(self, name: str) -> Committer:
        """The committer of batches of `name`; the lab replaces it, to kill it at each step."""
        return Committer(self._options.client, self._guarantee, name, remembers=self._comes_back)

    def task_reached(self, step: TaskStep) -> None:
        """Called at each step of a task; does nothing here. The lab overrides it to kill tasks."""

    def _abort(self, writing: Writing, parts: Sequence[Part], *, everything: bool = False) -> None:
        try:
            self.committer(writing.name).abort(parts, everything=everything)
        except FairleadError as error:
            # Why the batch failed is what has to be told; these transactions are aborted by the
            # next batch, or time out.
            LOGGER.warning("%s failed, and could not be aborted now: %s", writing, error)


@errors_first
class ExactlyOnceStreamWriter(_Writer, StreamArrowWriter):
    """Writes each micro-batch in transactions, one for each task, which the driver commits
    together."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskPrepared:
        """Write a task's rows; they are visible once the batch is committed."""
        return self._prepare(_micro_batch(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Commit the batch, or find that it was committed before, in an attempt that Spark did not
        note."""
        writing, parts = parts_of(messages)
        if writing is not None and not self.committer(writing.name).commit(batch_id, parts):
            LOGGER.info("%s had been committed before; what was written again is aborted", writing)

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Abort the transactions that tasks of a failed batch have prepared."""
        writing, parts = parts_of(messages)
        if writing is not None and parts:
            self._abort(writing, parts)


@errors_first
class ExactlyOnceWriter(_Writer, DataSourceArrowWriter):
    """Writes a DataFrame in transactions, one for each task, which the driver commits together."""

    def __init__(self, options: WriteOptions, guarantee: Guarantee) -> None:
        super().__init__(options, guarantee)
        name, version = guarantee.write_name, guarantee.version
        self._comes_back = name is not None
        self._writing = (
            Writing(uuid.uuid4().hex, 0) if name is None or version is None else Writing(name, version)
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskPrepared:
        """Write a task's rows; they are visible once all tasks have ended."""
        return self._prepare(self._writing, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the rows, or find that the application has written this version to the topic
        before."""
        _, parts = parts_of(messages)
        if not self.committer(self._writing.name).commit(self._writing.batch, parts, repeats_older=True):
            LOGGER.warning(
                "txnAppId %s has written txnVersion %s or a higher one before, to %s: nothing is written",
                self._guarantee.app_id,
                self._guarantee.version,
                self._guarantee.topic or "topics that rows name",
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Abort the transactions that tasks have prepared, and open ones of tasks that Spark has
        stopped: no later write would find them."""
        self._abort(self._writing, parts_of(messages)[1], everything=True)


def _micro_batch() -> Writing:
    context = TaskContext.get()
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    batch_id = context.getLocalProperty(_BATCH_ID) if context is not None else None
    if query_id is None or batch_id is None:
        raise UsageError(
            "exactly-once streaming writes need Spark's micro-batch engine, which names the query and the "
            "batch to every task"
        )
    return Writing(query_id, int(batch_id))
