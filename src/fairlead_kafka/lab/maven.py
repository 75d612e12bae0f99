"""Jars from Maven Central, for peers that run on Java: fetched once by `mvn` and kept beside the
interpreter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairlead_kafka.base.errors import FairleadError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Unavailable(FairleadError):
    """A peer cannot be used here; the message says what is missing."""


_TAGS = ("groupId", "artifactId", "version", "type", "classifier")


def share_folder(name: str) -> Path:
    """Folder for a peer's files, beside the interpreter, so that it is removed with the
    environment.
    """
    return Path(sys.prefix) / "share" / "fairlead" / name


def fetch_jars(name: str, artifacts: Sequence[str], without: Sequence[str] = ()) -> Path:
    """The folder with the jars of `artifacts` ("group:artifact:version", or with ":type:classifier"
    after it) and all their dependencies, fetched if it is not there yet.

    `without`: "group:artifact" of dependencies to leave out, `*` for any. Raises Unavailable.
    """
    folder = share_folder(name)
    if (folder / "complete").exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"{name} comes from Maven Central, and there is no mvn on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with _alone():
        if not (folder / "complete").exists():
            _fetch(maven, name, folder, artifacts, without)
    return folder


@contextmanager
def _alone() -> Iterator[None]:
    """Context manager: a lock across processes, for two Mavens that fetch the same jars spoil each
    other's files."""
    with share_folder("maven.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        yield


def _fetch(maven: str, name: str, folder: Path, artifacts: Sequence[str], without: Sequence[str]) -> None:
    (folder / "pom.xml").write_text(_project(name, artifacts, without))
    ran = subprocess.run(
        [
            maven,
            "-B",
            "-q",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={folder}",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise Unavailable(f"Maven could not fetch {name}: {(ran.stdout + ran.stderr).strip()[-500:]}")
    (folder / "complete").touch()


def _project(name: str, artifacts: Sequence[str], without: Sequence[str]) -> str:
    """A Maven project that only depends on `artifacts`."""
    excluded = "".join(f"<exclusion>{_coordinates(one)}</exclusion>" for one in without)
    dependencies = "".join(
        f"<dependency>{_coordinates(one)}<exclusions>{excluded}</exclusions></dependency>"
        for one in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>fairlead</groupId><artifactId>{name}</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _coordinates(artifact: str) -> str:
    return "".join(f"<{tag}>{text}</{tag}>" for tag, text in zip(_TAGS, artifact.split(":"), strict=False))
