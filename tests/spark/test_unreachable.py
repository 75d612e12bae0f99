"""A server that cannot be reached fails a query soon, once, and says why within the first lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.spark_workers import until_workers_start

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.bootstrap.connection.timeout.ms": "700"}
WHY = (
    "NoBrokerReached: could not reach any of 127.0.0.1:1 (connection refused); check bootstrap.servers, "
    "and that a broker runs there"
)
SOON_S = 120.0
"""A worker's start on a loaded machine; three attempts of a minute were 180 s."""
STARTS_S = 120.0
"""A stream's, whose worker may have to be started again."""


def first_lines(error: BaseException) -> str:
    """What a user sees without scrolling."""
    return "\n".join(str(error).splitlines()[:8])


def test_a_read_fails_in_planning(spark: SparkSession) -> None:
    begun = time.monotonic()
    with pytest.raises(PySparkException) as failed:
        spark.read.format("fairlead").options(**SERVERS).option("subscribe", "t").load().count()
    assert time.monotonic() - begun < SOON_S
    assert WHY in first_lines(failed.value)
    assert str(failed.value).count(WHY) == 1
    assert "It was raised here:" in str(failed.value)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_write_fails_in_its_task(spark: SparkSession, guarantee: str) -> None:
    rows = spark.range(10).selectExpr("cast(id AS string) AS value")
    begun = time.monotonic()
    with pytest.raises(PySparkException) as failed:
        rows.write.format("fairlead").mode("append").options(
            **SERVERS, topic="t", deliveryGuarantee=guarantee
        ).save()
    assert time.monotonic() - begun < SOON_S
    assert WHY in first_lines(failed.value)


def test_a_stream_fails_at_its_start(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.format("fairlead").options(**SERVERS).option("subscribe", "t").load()
    begun = time.monotonic()
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(PySparkException) as failed:
        until_workers_start(lambda: writer.start().awaitTermination(STARTS_S))
    assert time.monotonic() - begun < STARTS_S
    assert WHY in str(failed.value)
