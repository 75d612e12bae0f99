"""The versions of Spark that are served, and what the source and the sink can do on each.

The table in the documentation is made from the one here, and a test compares it with the installed
PySpark. Nothing here loads PySpark before it is asked which version that is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

from fairlead_kafka.base.errors import ConfigError

Version = tuple[int, int]
"""Major and minor version: (4, 1)."""


class Feature(Enum):
    """A feature that not every version of Spark has. The value is its name in the documents."""

    FILTERS = "filters on partition, topic, offset and timestamp choose what a batch reads"
    LIMITS = "maxOffsetsPerTrigger, maxBytesPerTrigger and minOffsetsPerTrigger"
    AVAILABLE_NOW = "Trigger.AvailableNow in several micro-batches, within the limits"
    PIPELINES = "fairlead pipeline (Spark Declarative Pipelines)"
    NAMED_SESSION = "Spark's own runner gives a pipeline's definitions the name spark"


@dataclass(frozen=True)
class Served:
    """A version of Spark that tests run with."""

    python: str
    """Versions of Python that both Spark and Fairlead run on."""
    lacks: frozenset[Feature] = frozenset()


SERVED: Mapping[Version, Served] = {
    (4, 0): Served("3.11 to 3.13", frozenset(Feature)),
    (4, 1): Served("3.11 to 3.14", frozenset({Feature.LIMITS, Feature.AVAILABLE_NOW, Feature.NAMED_SESSION})),
    (4, 2): Served("3.11 to 3.14"),
    (4, 3): Served("3.11 to 3.14"),
}
OLDEST = min(SERVED)

WITHOUT: Mapping[Feature, str] = {
    Feature.FILTERS: "Spark applies them to all rows: the result is the same",
    Feature.LIMITS: "refused: Spark tells a source in Python neither its trigger nor where a micro-batch "
    "begins, so a query with Trigger.AvailableNow or Trigger.Once would end after one limited micro-batch",
    Feature.AVAILABLE_NOW: "one micro-batch has all that is there",
    Feature.PIPELINES: "refused: this Spark has no Declarative Pipelines",
    Feature.NAMED_SESSION: "fairlead pipeline gives it on each version; for spark-pipelines of 4.1 write "
    "spark = SparkSession.active() into each file",
}
"""Behaviour by feature, on a version that lacks it."""

TOO_OLD = "Fairlead's source and sink are data sources in Python, which Spark has since version 4.0"
NO_REAL_TIME = (
    "Spark has no real-time mode for sources in Python: it reads without the end of a micro-batch, and only "
    "Spark's API for sources in Java or Scala can do that"
)


class SparkUnsupported(ConfigError):
    """This version of Spark cannot do what was asked for."""


def parse_version(text: str) -> Version:
    """The major and minor version in a text: (4, 1) of `4.1.4`. SparkUnsupported if it is no
    version."""
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise SparkUnsupported(f"PySpark says that its version is {text!r}, which is none")
    return int(found[1]), int(found[2])


def installed_version() -> Version:
    """The version of the PySpark that this process uses. PySpark is not imported for that, which
    would take a second."""
    spec = None if "pyspark" in sys.modules else find_spec("pyspark")
    for folder in (spec and spec.submodule_search_locations) or ():
        with suppress(OSError):
            found = re.search(r"""__version__.*["'](\d+\.[^"']+)""", Path(folder, "version.py").read_text())
            if found:
                return parse_version(found[1])
    from pyspark import __version__

    return parse_version(__version__)


def ensure_served(version: Version | None = None) -> None:
    """Raise SparkUnsupported for a version (None: the one that is installed) that has no sources in
    Python.

    A version newer than those in the table is taken for one that can do all that its last can.
    """
    found = version or installed_version()
    if found < OLDEST:
        raise SparkUnsupported(
            f"PySpark {found[0]}.{found[1]} is installed. {TOO_OLD}: pip install "
            '"fairlead-kafka[spark]" brings one that serves'
        )


def has(feature: Feature, version: Version | None = None) -> bool:
    """Whether a version of Spark (None: the one that is installed) has a feature."""
    found = version or installed_version()
    served = SERVED.get(found)
    return served is None or feature not in served.lacks


def since(feature: Feature) -> Version:
    """The oldest version that has a feature."""
    return min(version for version, served in SERVED.items() if feature not in served.lacks)


def refuse(what: str, feature: Feature) -> None:
    """Raise SparkUnsupported that names `what` was asked for, if the installed Spark lacks
    `feature`."""
    found = installed_version()
    if has(feature, found):
        return
    first = since(feature)
    raise SparkUnsupported(
        f"{what}: needs Spark {first[0]}.{first[1]}, and PySpark {found[0]}.{found[1]} is installed "
        f"({WITHOUT[feature].removeprefix('refused: ')})"
    )
