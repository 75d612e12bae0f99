"""What an experiment produces to: a fresh Apache Kafka, or our own cluster in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.lab.apache_kafka import ApacheKafka, Unavailable
from fairlead_kafka.testing.certificates import Certificates

TARGETS = ("apache-kafka", "fairlead")
SECURITIES = ("plaintext", "ssl")


@dataclass(frozen=True)
class Place:
    """What clients need to reach a target. `trust`: a PEM file of the authority that issued its certificate; None: it speaks plaintext."""

    bootstrap_servers: str
    trust: str | None = None


@contextmanager
def secured_target(name: str, security: str) -> Iterator[tuple[str, Place]]:
    """A fresh target: its address in plaintext, and where clients are to be measured. Raises `apache_kafka.Unavailable`."""
    if security == "plaintext":
        with target(name) as bootstrap_servers:
            yield bootstrap_servers, Place(bootstrap_servers)
        return
    if name != "apache-kafka":
        raise Unavailable("the embedded cluster does not speak TLS yet")
    with TemporaryDirectory(prefix="fairlead-lab-") as folder:
        certificates = Certificates(Path(folder))
        properties: dict[str, Any] = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates.issue("localhost")}
        with ApacheKafka(listeners={"SECURED": "SSL"}, **properties) as kafka:
            yield kafka.bootstrap_servers, Place(kafka.servers("SECURED"), str(certificates.trust))


@contextmanager
def target(name: str, brokers: int = 1) -> Iterator[str]:
    """The `bootstrap.servers` of a fresh target, stopped and removed at the end.

    Raises `apache_kafka.Unavailable` if Apache Kafka cannot be had here.
    """
    if name == "apache-kafka":
        with ApacheKafka() as kafka:
            yield kafka.bootstrap_servers
        return
    command = [sys.executable, "-u", "-m", "fairlead_kafka.cli.main", "up", "--brokers", str(brokers), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        found = re.search(r"bootstrap\.servers=(\S+)", said)
        if not found:
            raise FairleadError(f"the embedded cluster did not start: {said}{process.stdout.read()}")
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()
