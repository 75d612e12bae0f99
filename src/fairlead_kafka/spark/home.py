"""A SPARK_HOME whose Python processes start quickly.

Spark puts `SPARK_HOME/python/lib/pyspark.zip` first on the path of every Python process that it
starts. A zip keeps no bytecode, so each of them compiles the same modules again: a second of CPU,
for each look at a query, each source of a stream and each worker. A pip installation has the same
modules beside the zip, compiled. So this SPARK_HOME has links to everything but the folder
`python`: the zip is not found, and the interpreter takes what is installed.
"""

from __future__ import annotations

import os
import zlib
from importlib.util import find_spec
from pathlib import Path

from fairlead_kafka.spark.java import shim_folders

_LEFT_OUT = frozenset({"python", "__pycache__"})
_NEEDED = ("bin", "jars")
"""Folders that a pip installation of PySpark has if it can serve as a SPARK_HOME."""


def ensure_spark_home(master: str | None) -> str | None:
    """Make sure that Spark's Python processes load compiled modules: sets `SPARK_HOME`, for a Spark
    on this machine, unless it is set.

    Returns the home that was set; None where Spark comes from elsewhere, or where its masters ship
    the zip (YARN, Kubernetes).
    """
    if "SPARK_HOME" in os.environ or not (master or "local").startswith("local"):
        return None
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    real = Path(spec.submodule_search_locations[0])
    if not all((real / name).is_dir() for name in _NEEDED):
        return None
    name = f"spark-{zlib.crc32(str(real).encode()):08x}"
    for folder in shim_folders():
        try:
            home = str(build_home(real, folder / name))
        except OSError:
            continue
        os.environ["SPARK_HOME"] = home
        return home
    return None


def build_home(real: Path, home: Path) -> Path:
    """Make the folder `home`, a SPARK_HOME with links to everything in `real` but Python's part and
    its modules; returns it."""
    home.mkdir(parents=True, exist_ok=True)
    for entry in real.iterdir():
        link = home / entry.name
        if (
            entry.is_dir()
            and entry.name not in _LEFT_OUT
            and not (entry / "__init__.py").exists()
            and not link.exists()
        ):
            try:
                link.symlink_to(entry)
            except FileExistsError:
                continue  # a process that started at the same time was quicker
    return home
