"""What an experiment produces to: a fresh Apache Kafka, or our own cluster in a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.lab.apache_kafka import ApacheKafka

TARGETS = ("apache-kafka", "fairlead")


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
