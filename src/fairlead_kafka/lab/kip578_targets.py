"""Three brokers for KIP-578's experiments, Fairlead's or Apache Kafka's: they can be stopped,
started and killed, and their memory and files measured.

Fairlead's run in a process of their own (`kip578_brokers`), which reads commands line by line, so
that the measured memory is the brokers' alone.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Protocol

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.lab.kip578_brokers import BROKERS
from fairlead_kafka.lab.processes import descendants, rss_mb

HOSTINGS = ("thread", "processes")
"""Our brokers: all in one thread of one process, or each in a process of its own."""
HEAP = "1g"
"""Heap of each of Apache Kafka's brokers; KIP-578 had 2 GB, on machines of their own."""
FILES_OF_A_PARTITION = 1
"""Files that a broker of Apache Kafka keeps open for a replica: the log; its two indexes are memory
maps.
"""
MAPS_OF_A_PARTITION = 2
SPARE_FILES = 1_000
SPARE_MAPS = 4_000
"""Memory maps that a JVM needs beyond those of replicas."""


class KipTarget(Protocol):
    """A fresh cluster of three brokers over a folder of its own."""

    bootstrap_servers: str

    def stop(self) -> None:
        """Stop all brokers in good order."""

    def start(self) -> None:
        """Start all brokers again from what is on disk; returns when they take connections."""

    def kill(self, node_id: int) -> None:
        """Kill one broker by `kill -9`."""

    def revive(self, node_id: int) -> None:
        """Start a killed broker again; returns when it takes connections."""

    def rss_mb(self) -> int:
        """Resident memory of all brokers together, in 2**20 bytes."""

    def files(self) -> int:
        """Files in the brokers' folders."""


class Embedded:
    """Our own three brokers, in another process: a `KipTarget` and context manager."""

    def __init__(self, hosting: str) -> None:
        self._hosting = hosting
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-kip578-"))
        self._process: subprocess.Popen[str] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start all brokers again from what is on disk; returns when they take connections."""
        command = [
            sys.executable,
            "-u",
            "-m",
            "fairlead_kafka.lab.kip578_brokers",
            str(self._folder),
            self._hosting,
        ]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.bootstrap_servers = self._answer()

    def stop(self) -> None:
        """Stop all brokers in good order."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()  # the end of its orders is the end of its work
            process.wait()
            process.stdout.close()

    def kill(self, node_id: int) -> None:
        """Kill one broker by `kill -9`."""
        self._order("kill", node_id)

    def revive(self, node_id: int) -> None:
        """Start a killed broker again; returns when it takes connections."""
        self._order("start", node_id)

    def rss_mb(self) -> int:
        """Resident memory in 2**20 bytes, of the launcher too, which hosts the controller; see
        `KipTarget`.
        """
        assert self._process is not None
        return int(sum(map(rss_mb, descendants(self._process.pid))))

    def files(self) -> int:
        """Number of files in the brokers' folders."""
        return _files(self._folder)

    def _order(self, what: str, node_id: int) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, node_id]) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise FairleadError(
                f"the embedded cluster ended with code {self._process.wait()}; what it said is above"
            )
        answer: str = json.loads(line)
        return answer

    def close(self) -> None:
        """Stop the brokers, and remove all data."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Embedded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Apache:
    """Three JVMs with a broker of Apache Kafka in each, the last of them the controller too."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._kafka = kafka
        self.bootstrap_servers = kafka.bootstrap_servers
        self.kill = kafka.kill
        self.revive = kafka.start

    def stop(self) -> None:
        """Stop all brokers in good order."""
        self._kafka.stop_all()

    def start(self) -> None:
        """Start all brokers again from what is on disk; returns when they take connections."""
        self._kafka.start_all()

    def rss_mb(self) -> int:
        """Resident memory of all brokers together, in 2**20 bytes."""
        return int(sum(map(rss_mb, self._kafka.process_ids)))

    def files(self) -> int:
        """Number of files in the brokers' folders."""
        return sum(_files(folder) for folder in self._kafka.data_folders)


@contextmanager
def kip_target(name: str, hosting: str = HOSTINGS[0]) -> Iterator[KipTarget]:
    """A fresh cluster, "fairlead" or "apache-kafka", stopped and removed at the end. `hosting` is
    of ours.

    Raises `apache_kafka.Unavailable` if Apache Kafka cannot be had here.
    """
    if name == "fairlead":
        with Embedded(hosting) as embedded:
            yield embedded
        return
    with ApacheKafka(HEAP, BROKERS) as kafka:
        yield Apache(kafka)


def too_many_for_apache_kafka(replicas: int) -> str | None:
    """The reason why a broker of Apache Kafka cannot have `replicas` replicas on this machine;
    None: it can.
    """
    files, maps = replicas * FILES_OF_A_PARTITION + SPARE_FILES, replicas * MAPS_OF_A_PARTITION + SPARE_MAPS
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files_max != resource.RLIM_INFINITY and files > files_max:
        return (
            f"each broker of Apache Kafka would keep {replicas:,} logs open, and a process may have "
            f"{files_max:,} files here (ulimit -n)"
        )
    try:
        maps_max = int(Path("/proc/sys/vm/max_map_count").read_text())
    except OSError:
        return None
    if maps > maps_max:
        return (
            f"each broker of Apache Kafka would map {2 * replicas:,} indexes, and a process may have "
            f"{maps_max:,} maps here"
        )
    return None


def _files(folder: Path) -> int:
    return sum(len(names) for _, _, names in os.walk(folder))
