"""One Spark session that runs jobs as they come: `python spark_jobs.py JSON`, JSON being what
`start` takes.

Then a line of JSON for each job on standard input, `{"job": NAME, ...}` with the arguments of that
function of `Jobs`, and a line of JSON for each answer on standard output: `{"seconds": ...}`, or
`{"failed": why}`. Spark's own connector runs in an environment where Fairlead is not installed, so
this file imports only its session, and only if the system is Fairlead.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from pyspark.sql import DataFrame, SparkSession, functions

from fairlead_kafka.base.json_types import JsonObject

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FORMATS = {"fairlead": "fairlead", "spark-sql-kafka": "kafka"}
WRITE_TASKS = 8
STREAM_STOP_S = 30


def start(system: str, config: Mapping[str, str], worker_python: str | None = None) -> SparkSession:
    """Start a session of `local[2]` for a system; `worker_python`: the interpreter of its Python
    workers, if not this one.
    """
    os.environ["PYSPARK_PYTHON"] = worker_python or sys.executable
    config = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **config,
    }
    if system == "fairlead":
        session: SparkSession = import_module("fairlead_kafka.spark").spark_session("lab", "local[2]", config)
    else:
        builder = SparkSession.builder.appName("lab").master("local[2]")
        for key, value in config.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Jobs:
    """The jobs that this program does, each a method that returns its answer, without the seconds
    that it took."""

    def __init__(self, session: SparkSession, system: str) -> None:
        self._session = session
        self._format = FORMATS[system]
        self._stream: StreamingQuery | None = None

    def digest(self, bootstrap_servers: str, topic: str, options: Mapping[str, str]) -> JsonObject:
        """Count the rows of a read, and sum checksums of their values, which shows whether values
        differ."""
        sums = functions.count("value"), functions.sum(functions.crc32("value"))
        found = self._frame(bootstrap_servers, topic, options).agg(*sums).first()
        return {"rows": found[0], "checksum": found[1]} if found else {}

    def read(
        self, bootstrap_servers: str, topic: str, options: Mapping[str, str], columns: list[str]
    ) -> JsonObject:
        """Read `columns` of a topic (all, if none are named), and drop the rows."""
        frame = self._frame(bootstrap_servers, topic, options)
        (frame.select(*columns) if columns else frame).write.format("noop").mode("overwrite").save()
        return {}

    def write(
        self,
        bootstrap_servers: str,
        topic: str,
        options: Mapping[str, str],
        rows: int,
        values: str,
        numbered: bool = False,
    ) -> JsonObject:
        """Write `rows` rows made on the way, whose values are in turn the lines of the file
        `values`; `numbered`: each ends with its number.
        """
        with open(values, encoding="ascii") as file:
            text = file.read()
        # Folded into one array when the query is planned: a row costs a look into it.
        lines = functions.split(functions.lit(text), "\n")
        line = functions.element_at(lines, (functions.col("id") % (text.count("\n") + 1) + 1).cast("int"))
        value = functions.concat(line, functions.col("id").cast("string")) if numbered else line
        frame = self._session.range(0, rows, 1, WRITE_TASKS).select(value.cast("binary").alias("value"))
        self._save(frame, bootstrap_servers, topic, options)
        return {}

    def copy(
        self,
        bootstrap_servers: str,
        topic: str,
        options: Mapping[str, str],
        columns: list[str],
        sink: str,
        sink_options: Mapping[str, str],
    ) -> JsonObject:
        """Read from `topic` and write to the topic `sink`."""
        frame = self._frame(bootstrap_servers, topic, options).select(*columns)
        self._save(frame, bootstrap_servers, sink, sink_options)
        return {}

    def stream_begins(
        self, bootstrap_servers: str, topic: str, options: Mapping[str, str], sink: str, checkpoint: str
    ) -> JsonObject:
        """Start a stream from `topic` to `sink` whose micro-batches follow each other at once, each
        with all records that are there."""
        source = self._session.readStream.format(self._format).option(
            "kafka.bootstrap.servers", bootstrap_servers
        )
        frame = (
            source.option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .options(**options)
            .load()
            .select("value")
        )
        to = (
            frame.writeStream.format(self._format)
            .option("kafka.bootstrap.servers", bootstrap_servers)
            .option("topic", sink)
        )
        self._stream = to.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
        return {}

    def stream_ends(self) -> JsonObject:
        """Stop the stream.

        Returns how many batches there were; raises what the stream failed with.
        """
        stream, self._stream = self._stream, None
        assert stream is not None, "`stream_begins` came before"
        if not stream.isActive:
            stream.awaitTermination(STREAM_STOP_S)
        progress = stream.lastProgress
        stream.stop()
        return {"batches": 0 if progress is None else progress["batchId"] + 1}

    def _frame(self, bootstrap_servers: str, topic: str, options: Mapping[str, str]) -> DataFrame:
        reader = self._session.read.format(self._format).option("kafka.bootstrap.servers", bootstrap_servers)
        return reader.option("subscribe", topic).options(**options).load()

    def _save(self, frame: DataFrame, bootstrap_servers: str, topic: str, options: Mapping[str, str]) -> None:
        writer = (
            frame.write.format(self._format)
            .mode("append")
            .option("kafka.bootstrap.servers", bootstrap_servers)
        )
        writer.option("topic", topic).options(**options).save()


def serve(jobs: Jobs, asked: TextIO, answers: TextIO) -> None:
    """Do the jobs that are asked for in `asked`, one a line, and answer each, until there are no
    more."""
    for line in asked:
        arguments = json.loads(line)
        name = arguments.pop("job")
        begun = time.perf_counter()
        try:
            answer = getattr(jobs, name)(**arguments)
        except Exception as error:
            answer = {"failed": str(error).strip()[-2000:] or type(error).__name__}
        print(json.dumps({"seconds": time.perf_counter() - begun, **answer}), file=answers, flush=True)


def main() -> None:
    """Run the program that the module describes."""
    # What else prints to standard output shall not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = json.loads(sys.argv[1])
    session = start(**settings)
    print(json.dumps({"version": session.version}), file=answers, flush=True)
    serve(Jobs(session, settings["system"]), sys.stdin, answers)
    session.stop()


if __name__ == "__main__":
    main()
