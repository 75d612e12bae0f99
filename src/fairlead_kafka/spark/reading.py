"""The task of a batch read or a micro-batch: reads its ranges as Arrow record batches, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, FairleadError, OffsetOutOfRange
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.client import Consumer
from fairlead_kafka.spark.clients import task_consumer
from fairlead_kafka.spark.compatibility import arrow_schema
from fairlead_kafka.spark.dead_letters import dead_letters
from fairlead_kafka.spark.formats import decoder
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.schema import conform

LOGGER = GuardedLogger("fairlead_kafka.spark")


class DataLoss(FairleadError):
    """Records that a read asked for are no longer there; `failOnDataLoss=false` reads what is
    left."""


@dataclass
class TaskRanges(InputPartition):
    """One task's share, pickled to its executor: ranges that are read one after the other, those of
    one partition in order."""

    ranges: tuple[OffsetRange, ...]


def read_task(
    options: ReadOptions, schema: StructType, ranges: Sequence[OffsetRange]
) -> Iterator[pa.RecordBatch]:
    """The records of `ranges`, in that order, as Arrow record batches in exactly `schema`.

    A range ends where planning said, whatever is produced meanwhile. Raises DataLoss if records of
    a range are gone and `failOnDataLoss` is true, TimedOut if nothing came for
    `kafkaConsumer.pollTimeoutMs`, and what the client raises.
    """
    fitting = arrow_schema(schema)
    columns = options.layout.record_columns
    with task_consumer(options.client) as consumer, dead_letters(options) as letters:
        decode = decoder(options.layout, letters)
        for one in ranges:
            for table in surviving(consumer, options, one, partial(_records, consumer, options, columns)):
                yield from conform(decode(table), fitting)


def _records(
    consumer: Consumer, options: ReadOptions, columns: list[str], wanted: OffsetRange
) -> Iterator[pa.Table]:
    return consumer.read_range(
        wanted.partition, wanted.start, wanted.end, columns=columns, timeout_s=options.poll_timeout_ms / 1000
    )


def surviving(
    consumer: Consumer,
    options: ReadOptions,
    wanted: OffsetRange,
    read: Callable[[OffsetRange], Iterator[pa.Table]],
) -> Iterator[pa.Table]:
    """The tables that `read` gives of the range `wanted`. If its records are deleted meanwhile:
    DataLoss, or, with `failOnDataLoss=false`, the tables of what is left."""
    while True:
        try:
            yield from read(wanted)
            return
        except OffsetOutOfRange as error:
            earliest = consumer.beginning_offsets([wanted.partition])[wanted.partition]
            _lose(options, _loss(wanted, error, earliest), error)
            if not error.offset < earliest < wanted.end:
                return
            wanted = replace(wanted, start=earliest)
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            _lose(
                options,
                f"{wanted.partition} was deleted while its offsets {wanted.start} to {wanted.end - 1} were "
                "being read",
                error,
            )
            return


def _lose(options: ReadOptions, what: str, error: BrokerError) -> None:
    if options.fail_on_data_loss:
        raise DataLoss(f"{what}; set failOnDataLoss=false to read what is left") from error
    LOGGER.warning("%s", what)


def _loss(wanted: OffsetRange, error: OffsetOutOfRange, earliest: int) -> str:
    """Message on the offsets of the range that are gone: from the position of the read to the start
    of the log."""
    gone_end = min(wanted.end, earliest) if earliest > error.offset else wanted.end
    return (
        f"{wanted.partition}: offsets {error.offset} to {gone_end - 1} are gone; planned were {wanted.start} "
        f"to {wanted.end - 1}, and the "
        f"log now holds {earliest} to {error.log_end_offset - 1}"
    )
