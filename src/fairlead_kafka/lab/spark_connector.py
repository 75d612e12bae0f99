"""Spark's own Kafka connector, the peer of `format("fairlead")`: its jars, and a PySpark of the
version that they are made for.

The connector is no part of PySpark: it is fetched by Maven, and a connector of one Spark version
does not run in another. On Maven Central it is whole for 4.0.0, so it gets a PySpark 4.0.0 of its
own, in a virtual environment beside the interpreter.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fairlead_kafka.lab.apache_kafka import java
from fairlead_kafka.lab.maven import Unavailable, fetch_jars, share_folder

SPARK_VERSION = "4.0.0"
INSTALL_TIMEOUT_S = 900.0
_ARTIFACT = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"
_IN_SPARK_ALREADY = ("org.apache.hadoop:*", "org.scala-lang:*", "org.scala-lang.modules:*", "org.slf4j:*")


def connector_jars() -> list[Path]:
    """The jars for `spark.jars`, fetched if they are not there yet. Raises Unavailable."""
    java()
    return sorted(
        fetch_jars(f"spark-sql-kafka-{SPARK_VERSION}", [_ARTIFACT], _IN_SPARK_ALREADY).glob("*.jar")
    )


def connector_python() -> Path:
    """The interpreter that has the connector's PySpark, some 500 MB, installed if it is not there
    yet. Raises Unavailable."""
    folder = share_folder(f"pyspark-{SPARK_VERSION}")
    interpreter = folder / "bin" / "python"
    if (folder / "complete").exists():
        return interpreter
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [
            str(interpreter),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"pyspark=={SPARK_VERSION}",
        ],
    ):
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"PySpark {SPARK_VERSION} was not installed within {INSTALL_TIMEOUT_S:g} s"
            ) from None
        if ran.returncode != 0:
            raise Unavailable(
                f"PySpark {SPARK_VERSION} could not be installed: {(ran.stdout + ran.stderr).strip()[-500:]}"
            )
    (folder / "complete").touch()
    return interpreter
