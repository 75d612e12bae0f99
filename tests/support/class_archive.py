"""Spark's classes as a Java loads them, in a file that later Javas map (class data sharing). It
halves what a session and its first query cost, 13 CPU seconds without, and a run of all tests has a
dozen; to write the file takes 45.

`python -m tests.support.class_archive` writes the file, beside the interpreter, where there is
none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fairlead_kafka.lab.maven import share_folder

_QUIETLY = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""A Java that cannot use an archive, for it has other classes or is another Java, does without and
says nothing."""
_PROGRAM = """
from fairlead_kafka.spark import spark_session

spark = spark_session("classes", "local[2]", {"spark.ui.enabled": "false"})
rows = spark.range(500).selectExpr("cast(id AS string) AS value", "id % 7 AS rest")
assert rows.groupBy("rest").count().count() == 7
spark.stop()
"""


def archive() -> Path | None:
    """The file for the machine's Java and this Spark; None where either is missing."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    if java is None:
        return None
    which = zlib.crc32(os.path.realpath(java).encode())
    return share_folder("classes") / f"spark-{spark}-{which:08x}.jsa"


def java_options() -> str:
    """Options for a Java of Spark's; none where there is no archive."""
    found = archive()
    return f"-XX:SharedArchiveFile={found} {_QUIETLY}" if found is not None and found.exists() else ""


def write() -> None:
    """Write the archive if it is not there. Tests do without where that fails."""
    path = archive()
    if path is None or path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    options = f"-XX:ArchiveClassesAtExit={part} {_QUIETLY}"
    quick = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, **quick, "SPARK_SUBMIT_OPTS": options},
        capture_output=True,
        text=True,
        check=False,
    )
    if part.exists() and ran.returncode == 0:
        part.replace(path)
    else:
        print(f"no archive of Spark's classes:\n{ran.stdout}{ran.stderr}", file=sys.stderr)


if __name__ == "__main__":
    write()
