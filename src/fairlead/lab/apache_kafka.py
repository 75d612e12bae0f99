"""Apache Kafka from Maven Central, for experiments and conformance tests: fetch the jars, start one broker, stop it.

Needs `mvn` and a Java 17 or newer. The jars come through Maven's own cache and are copied beside the interpreter.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from fairlead.base.errors import FairleadError

KAFKA_VERSION = "4.3.1"
START_TIMEOUT_S = 60.0
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
_ARTIFACTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)


class Unavailable(FairleadError):
    """Apache Kafka cannot be had here; the message says what is missing."""


def jars() -> Path:
    """The folder with Apache Kafka's jars, fetched if it is not there yet. Raises Unavailable."""
    java()
    folder = Path(sys.prefix) / "share" / "fairlead" / f"apache-kafka-{KAFKA_VERSION}"
    if (folder / "complete").exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Apache Kafka comes from Maven Central, and there is no mvn on the PATH")
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
        for group, artifact, version in (one.split(":") for one in _ARTIFACTS)
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>fairlead</groupId>'
        f"<artifactId>apache-kafka</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    ran = subprocess.run(
        [maven, "-B", "-q", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise Unavailable(f"Maven could not fetch Apache Kafka {KAFKA_VERSION}: {(ran.stdout + ran.stderr).strip()[-500:]}")
    (folder / "complete").touch()
    return folder


def java() -> str:
    """The Java to run Kafka with. Raises Unavailable."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not found or not os.path.exists(found):
        raise Unavailable("Apache Kafka needs Java 17 or newer, and there is no java on the PATH")
    return found


def java_command(main_class: str, *arguments: str, heap: str = "512m") -> list[str]:
    """The command line of one of Kafka's own tools."""
    return [java(), f"-Xmx{heap}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars()}/*", main_class, *arguments]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ApacheKafka:
    """One combined KRaft broker and controller on 127.0.0.1, data in a temporary folder; a context manager."""

    def __init__(self, heap: str = "1g", **properties: Any) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-apache-kafka-"))
        port, controller_port = _free_port(), _free_port()
        self.bootstrap_servers = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self._folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **{key.replace("_", "."): value for key, value in properties.items()},
        }
        config = self._folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._log = (self._folder / "server.log").open("wb")
        try:
            subprocess.run(
                java_command("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)),
                stdout=self._log, stderr=subprocess.STDOUT, check=True,
            )  # fmt: skip
            self._process = subprocess.Popen(
                java_command("kafka.Kafka", str(config), heap=heap), stdout=self._log, stderr=subprocess.STDOUT
            )
            self._wait_until_up(port)
        except BaseException:
            self.close()
            raise

    def _wait_until_up(self, port: int) -> None:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self._process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)
        said = (self._folder / "server.log").read_text(errors="replace").strip()[-500:]
        raise Unavailable(f"Apache Kafka did not start within {START_TIMEOUT_S:g} s: {said}")

    def close(self) -> None:
        """Stop it and remove its data. Safe to call twice."""
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.kill()
        if process is not None:
            process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> ApacheKafka:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
