"""The jobs of `lab spark` and `lab bounded`, on the session that all tests share: what they write
is there, whole, and is read."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead_kafka.lab import spark_bounded
from fairlead_kafka.lab.peers.spark_jobs import Jobs

ROWS = 3_000
VALUE_BYTES = 32


class SharedSession:
    """Asks the jobs as `SparkSystem` does, in this process; `loses` most rows of each copy."""

    def __init__(self, spark: Any, loses: bool = False) -> None:
        self._jobs = Jobs(spark, "fairlead")
        self._loses = loses

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        begun_s = time.perf_counter()
        if job == "copy" and self._loses:
            # A task's rows may be a batch, and go to one partition: the other may have none.
            arguments["options"] = {
                "endingOffsets": f'{{"{arguments["topic"]}": {{"0": 1, "1": 1}}}}',
                "failOnDataLoss": "false",
            }
        answer = getattr(self._jobs, job)(**arguments)
        return {"seconds": time.perf_counter() - begun_s, **answer}

    def kind_of(self, process_id: int) -> str | None:
        return None


def test_what_streams_through_little_memory_is_there_whole(spark: Any, servers: str) -> None:
    rows = spark_bounded.stream(lambda what: None, SharedSession(spark), servers, ROWS, VALUE_BYTES)  # type: ignore[arg-type]
    assert [row["job"] for row in rows] == ["write", "copy", "check", "check"]
    assert [(row.get("lost"), row.get("changed")) for row in rows[2:]] == [(0, False), (0, False)]
    assert {row["rows"] for row in rows} == {ROWS}


def test_a_copy_that_lacks_rows_is_noticed(spark: Any, servers: str) -> None:
    session: Any = SharedSession(spark, loses=True)
    rows = spark_bounded.stream(lambda what: None, session, servers, ROWS, VALUE_BYTES)
    assert rows[2]["lost"] == 0
    assert rows[3]["lost"] > 0
    assert rows[3]["changed"]


def test_a_read_of_named_columns_reads_no_more(spark: Any, servers: str, new_topic: Any) -> None:
    jobs, topic = Jobs(spark, "fairlead"), new_topic(partitions=1)
    frame = spark.range(5).selectExpr("cast(id AS string) AS value")
    frame.write.format("fairlead").mode("append").option("kafka.bootstrap.servers", servers).option(
        "topic", topic
    ).save()
    assert jobs.digest(servers, topic, {"columns": "value"})["rows"] == 5
    jobs.read(servers, topic, {"columns": "value"}, ["value"])
    with pytest.raises(Exception, match="offset"):
        jobs.read(servers, topic, {"columns": "value"}, ["offset"])
