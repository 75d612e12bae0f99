"""The Dockerfile and the compose file, without Docker: their commands are run as they stand, with
folders and ports of the test's own."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.testing.reserved_port import ReservedPort
from tests.distribution.test_wheel import ROOT, WHOLE, Environment
from tests.support.waiting import PATIENCE_S, until

yaml = pytest.importorskip("yaml")

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def _stage(name: str) -> str:
    """The lines of one stage of the Dockerfile."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM|\Z)", text, re.DOTALL | re.MULTILINE)
    return str(found)


def _words(stage: str, instruction: str) -> list[str]:
    """An ENTRYPOINT or CMD in its JSON form."""
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", stage, re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


@contextmanager
def _running(command: list[str], port: int) -> Iterator[str]:
    """Run a cluster's command until a client can reach it at `port`; `bootstrap.servers`."""
    command = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            until(lambda: _listens(port) or process.poll() is not None)
            if process.poll() is not None:
                pytest.fail(f"{command} ended: {process.stdout.read() if process.stdout else ''}")
            yield f"127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _round_trip(servers: str) -> None:
    client = {"bootstrap.servers": servers}
    with fairlead_kafka.Producer(client) as producer:
        producer.send("events", b"value").result(PATIENCE_S)
    with fairlead_kafka.Consumer({**client, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([fairlead_kafka.TopicPartition("events", 0)])
        assert [record.value for record in consumer.poll(PATIENCE_S)] == [b"value"]


def test_the_image_serves_a_cluster(tmp_path: Path) -> None:
    stage = _stage("cluster")
    words = "\n".join([*_words(stage, "ENTRYPOINT"), *_words(stage, "CMD")]).replace("/data", str(tmp_path))
    with ReservedPort() as port:
        command = words.replace(":9092", f":{port.number}").split("\n")
        with _running(command, port.number) as servers:
            _round_trip(servers)


def test_the_composed_cluster_is_reached_from_this_machine(tmp_path: Path) -> None:
    service = COMPOSE["services"]["kafka"]
    assert service["ports"] == ["29092:29092"]
    words = [*_words(_stage(service["build"]["target"]), "ENTRYPOINT"), *service["command"]]
    text = "\n".join(words).replace("/data", str(tmp_path))
    with ReservedPort() as inside, ReservedPort() as outside:
        text = text.replace(":29092", f":{outside.number}").replace(":9092", f":{inside.number}")
        with _running(text.split("\n"), outside.number) as servers:
            _round_trip(servers)


def test_what_compose_names_is_in_the_dockerfile() -> None:
    for service in COMPOSE["services"].values():
        assert _words(_stage(service["build"]["target"]), "ENTRYPOINT")


@pytest.mark.skipif(not WHOLE, reason="it installs PySpark: `make test-distribution` does it")
@pytest.mark.parametrize("stage", ["cluster", "spark"])
def test_an_image_is_installed_by_its_steps(stage: str, tmp_path: Path) -> None:
    made = Environment(tmp_path)
    for line in re.findall(r"^RUN (.*)$", _stage(stage), re.MULTILINE):
        words = line.replace("/src", str(ROOT)).replace('"', "").split()
        assert words[0] == "pip"
        made.run("python", "-m", *words)
    assert "fairlead" in made.run("fairlead", "--help")
