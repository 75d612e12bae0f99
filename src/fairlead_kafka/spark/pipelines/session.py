"""A Spark Connect session for a pipeline: to a server that is there, or to one started inside this
process's JVM.

Pipelines are a part of Spark Connect. PySpark's own `remote("local")` starts a server on port 15002
whether it is free or not, and accepts any user of the machine; here the system chooses the port,
the server listens on the loopback alone, and has a token.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import ConnectionFailed
from fairlead_kafka.spark.home import ensure_spark_home
from fairlead_kafka.spark.java import ensure_java
from fairlead_kafka.spark.session import SESSION_DEFAULTS, fill_worker_variables
from fairlead_kafka.spark.starting import check_master, jvm_errors_shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as ClassicSession
    from pyspark.sql.connect.session import SparkSession

_SERVER = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "localhost",
    "spark.connect.grpc.binding.port": "0",
    # As PySpark sets them for a server of its own: what one session uploads, another does not see.
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
}
_TOKEN_VARIABLE, _CONNECT_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_CONNECT_MODE_ENABLED"


@contextmanager
def connect_session(
    name: str, master: str | None, remote: str | None, config: Mapping[str, str]
) -> Iterator[SparkSession]:
    """A Spark Connect session for a `with` block, closed at its end together with the server that
    was started for it.

    `remote` is the `sc://` address of a server; without it one is started with `master` (None:
    `local[*]`, or what spark-submit says). Raises ConfigError if Spark has no such master or no
    Java can be found, SparkNotStarted if its JVM ends at once, ConnectionFailed if the server does
    not answer.
    """
    before = {variable: os.environ.get(variable) for variable in (_TOKEN_VARIABLE, _CONNECT_VARIABLE)}
    classic: ClassicSession | None = None
    try:
        if remote is None:
            os.environ[_TOKEN_VARIABLE] = secrets.token_hex(16)
            classic, remote = _start_server(name, master, config)
            config = {}
        # Told apart by this variable alone: functions of pyspark.sql.functions give columns of the
        # one kind or the other.
        os.environ[_CONNECT_VARIABLE] = "1"
        session = _connect(remote, config)
        try:
            yield session
        finally:
            with suppress(Exception):  # the server may have gone first
                session.stop()
    finally:
        os.environ.pop(_CONNECT_VARIABLE, None)
        if classic is not None:
            with suppress(Exception):  # Ctrl-C reaches the JVM too
                classic.stop()
        os.environ.update({variable: value for variable, value in before.items() if value is not None})
        if before[_TOKEN_VARIABLE] is None:
            os.environ.pop(_TOKEN_VARIABLE, None)


def _start_server(name: str, master: str | None, config: Mapping[str, str]) -> tuple[ClassicSession, str]:
    check_master(master or config.get("spark.master"))
    ensure_java()
    ensure_spark_home(master)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    # Spark passes over a source that cannot be imported, and then says only that there is no format
    # "fairlead".
    import_module("fairlead_kafka.spark.source")
    conf = SparkConf().setAppName(name)
    if master is not None:
        conf = conf.setMaster(master)
    elif not conf.contains("spark.master"):
        conf = conf.setMaster("local[*]")
    conf = conf.setAll(list({**SESSION_DEFAULTS, **config, **_SERVER}.items()))
    with jvm_errors_shown():
        classic = SparkSession(SparkContext.getOrCreate(conf))
    fill_worker_variables(classic)
    service = getattr(classic._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return classic, f"sc://localhost:{service.__getattr__('MODULE$').localPort()}"


def _connect(remote: str, config: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.session import SparkSession

    builder = SparkSession.builder.remote(remote)
    try:
        session = builder.getOrCreate()
        for key, value in config.items():
            with suppress(PySparkException):  # what only a server's start can set, its owner has set
                session.conf.set(key, value)
    except PySparkException as error:
        raise ConnectionFailed(
            f"{remote}: no Spark Connect server answers ({str(error).splitlines()[0]})"
        ) from error
    return session
