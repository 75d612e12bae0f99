"""Pipelines: projects of Spark Declarative Pipelines whose sources and sinks are topics, checked,
run and counted.

Theory of operation. A project is a folder with `spark-pipeline.yml` and files of definitions, as
Spark has it: `spark-pipelines run` runs it too. This package adds checks, counters and quarantine
(docs/how-to/pipelines.md).

**Checking** (`check`) starts no Spark. `project` reads the specification with its lines;
`source_code` finds the definitions in the syntax trees of the files (`constants` finds the values
of expressions, `sql_names` the names in SQL); `frames` goes through each function as Spark would
and follows columns and streams. `graph_rules` and `topic_rules` then look for mistakes; the latter
ask the cluster with one request (`cluster`). A finding has a file, a line, what is wrong and what
to do. If the text does not determine a value, nothing is reported: checks with false alarms are
ignored. Nothing here loads a client or pyspark, which would take a second.

**Running** (`running`) needs a Spark Connect server, since pipelines live in one. `session` starts
it inside the one JVM of this process, on a free port, or goes to one that is there. Definitions are
registered by Spark's own code; `registry` adds observations to each flow, and `counters` makes a
flow's counters of them, of the queries' progress and of the brokers' offsets.

**Running again** works since the catalog is kept beside the checkpoints (`catalog`).

`Expectations` is what pipelines import: rows that meet them go on, others go to quarantine, both
are counted. `template` holds the project that `fairlead pipeline init` writes, and that the demo
runs.
"""

from fairlead_kafka.spark.pipelines.expectations import Expectations

__all__ = ["Expectations"]
