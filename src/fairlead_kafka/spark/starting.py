"""Errors for problems before Spark runs: packages that are missing, an invalid master, a JVM that
ends at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from fairlead_kafka.base.errors import ConfigError, FairleadError
from fairlead_kafka.spark.versions import ensure_served

SESSION_PACKAGES = ("pyspark",)
PIPELINE_PACKAGES = ("pyspark", "yaml", "grpc", "pandas")
"""Pipelines live in Spark Connect, which needs more than Spark."""
MASTERS = (
    "local, local[4], local[*], local[4,2], local-cluster[2,1,1024], spark://host:7077, yarn or "
    "k8s://https://host:443"
)
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(\s*,\s*\d+)?\])?"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^,\s/]+(:\d+)?(,[^,\s/]+(:\d+)?)*"
    r"|yarn"
    r"|k8s://\S+"
)


class SparkMissing(ConfigError):
    """Packages that Spark needs are not installed."""


class SparkNotStarted(FairleadError):
    """Spark's JVM ended before Python could talk to it."""


def ensure_installed(packages: tuple[str, ...] = SESSION_PACKAGES) -> None:
    """Raise SparkMissing, which says what to install, unless these packages are installed;
    SparkUnsupported for a Spark that is too old."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise SparkMissing(
            f"Spark is not installed here ({', '.join(missing)} cannot be imported): pip install "
            '"fairlead-kafka[spark]" brings it'
        )
    ensure_served()


def check_master(master: str | None) -> None:
    """Raise ConfigError if Spark has no such kind of master; None leaves the choice to Spark."""
    if master is None or _MASTER.fullmatch(master.strip()):
        return
    if master.startswith("sc://"):
        raise ConfigError(
            f"master: {master} is a server of Spark Connect, not a master; make the session with "
            f"SparkSession.builder.remote({master!r}), "
            "or run a pipeline there with --remote"
        )
    raise ConfigError(f"master: {master!r} is none that Spark knows; write {MASTERS}")


@contextmanager
def jvm_errors_shown() -> Iterator[None]:
    """Raise SparkNotStarted, which says where the reason is, for a JVM that ends at once within the
    block."""
    from pyspark.errors import PySparkRuntimeError

    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkNotStarted(
            "Spark's JVM ended before it could be talked to. Why is on the standard error of this process, "
            "above this message; in a "
            "notebook, in the terminal or the log of the server that started it. What stands there is mostly "
            "about Java, about memory, or "
            "about a setting of config, spark-defaults.conf or PYSPARK_SUBMIT_ARGS"
        ) from error
