"""Targets of experiments: a fresh Apache Kafka, or Fairlead's cluster in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.testing.certificates import Certificates

TARGETS = ("apache-kafka", "fairlead")
SECURITIES = ("plaintext", "ssl")


@dataclass(frozen=True)
class Place:
    """Address and trust of a target.

    `trust`: a PEM file of the authority that issued its certificate; None: it speaks plaintext.
    """

    bootstrap_servers: str
    trust: str | None = None


@contextmanager
def secured_target(name: str, security: str) -> Iterator[tuple[str, Place]]:
    """A fresh target: its address in plaintext, and the place for clients that are measured.

    Raises `apache_kafka.Unavailable`.
    """
    if security == "plaintext":
        with target(name) as bootstrap_servers:
            yield bootstrap_servers, Place(bootstrap_servers)
        return
    with TemporaryDirectory(prefix="fairlead-lab-") as folder:
        certificates = Certificates(Path(folder))
        properties: dict[str, object] = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.issue("localhost"),
        }
        trust = str(certificates.trust)
        if name == "apache-kafka":
            with ApacheKafka(listeners={"SECURED": "SSL"}, properties=properties) as kafka:
                yield kafka.bootstrap_servers, Place(kafka.servers("SECURED"), trust)
            return
        listeners = {
            "listeners": "OPEN://127.0.0.1:0,SECURED://localhost:0",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,SECURED:SSL",
        }
        with _embedded(1, listeners | properties) as (bootstrap_servers, secured):
            yield bootstrap_servers, Place(secured, trust)


@contextmanager
def target(name: str, brokers: int = 1, properties: Mapping[str, object] | None = None) -> Iterator[str]:
    """The `bootstrap.servers` of a fresh target, stopped and removed at the end; `properties`:
    configs of its brokers.

    Raises `apache_kafka.Unavailable` if Apache Kafka cannot be had here.
    """
    if name == "apache-kafka":
        with ApacheKafka("1g" if brokers == 1 else "512m", brokers, properties=properties) as kafka:
            yield kafka.bootstrap_servers
        return
    with _embedded(brokers, properties) as (bootstrap_servers,):
        yield bootstrap_servers


@contextmanager
def _embedded(brokers: int, config: Mapping[str, object] | None = None) -> Iterator[list[str]]:
    """Context manager: run our own cluster in a process of its own. Its value is the
    `bootstrap.servers` of each listener. FairleadError if it does not start."""
    configs = [part for key, value in (config or {}).items() for part in ("-X", f"{key}={value}")]
    command = [
        sys.executable,
        "-u",
        "-m",
        "fairlead_kafka.cli.main",
        "up",
        "--brokers",
        str(brokers),
        "--port",
        "0",
        *configs,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    found: list[str] = []
    try:
        said = ""
        while "data in" not in said:  # what comes after the listeners
            line = process.stdout.readline()
            if not line:
                raise FairleadError(f"the embedded cluster did not start: {said}")
            said += line
            found += re.findall(r"bootstrap\.servers=(\S+)", line)
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        process.stdout.close()
