"""Apicurio Registry on this machine, from Maven Central: a Schema Registry that is not ours."""

from __future__ import annotations

import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlead_kafka.lab.apache_kafka import java
from fairlead_kafka.lab.maven import fetch_jars
from fairlead_kafka.testing.reserved_port import ReservedPort
from tests.support.waiting import PATIENCE_S

_VERSION = "2.6.13.Final"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{_VERSION}:tar.gz:all"


@contextmanager
def apicurio(folder: Path) -> Iterator[str]:
    """A registry with its storage in memory; the URL of its API that is Confluent's.

    Raises Unavailable where Java or Maven is missing.
    """
    command = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    (archive,) = fetch_jars("apicurio", [_ARTIFACT], without=["*:*"]).glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (runner,) = folder.glob("*-runner.jar")
    with ReservedPort() as port, (folder / "log.txt").open("wb") as log:
        listener = [f"-Dquarkus.http.port={port.number}", "-Dquarkus.http.host=127.0.0.1"]
        process = subprocess.Popen(
            [*command, *listener, "-jar", str(runner)],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port.number}/apis/ccompat/v7"
            _wait(url + "/subjects", process, folder / "log.txt")
            yield url
        finally:
            process.terminate()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"Apicurio did not start: {log.read_text()[-2000:]}") from error
        time.sleep(0.2)
