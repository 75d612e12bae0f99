"""Apache Kafka from Maven Central, for experiments and conformance tests: fetch the jars, start
brokers, kill them, stop them.

Needs a Java 17 or newer, and `mvn` for the jars (`maven`).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from fairlead_kafka.client import Admin
from fairlead_kafka.lab.maven import Unavailable as Unavailable
from fairlead_kafka.lab.maven import fetch_jars
from fairlead_kafka.testing.reserved_port import ReservedPort

KAFKA_VERSION = "4.3.1"
START_TIMEOUT_S = 240.0
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
_ARTIFACTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    "org.slf4j:slf4j-simple:1.7.36",
)
_BOOTSTRAP = "bootstrap.checkpoint"
"""The file of a formatted folder that has the users and the versions of features."""
_FORMATTED: dict[tuple[tuple[str, str], ...], bytes] = {}
"""Users of a cluster → that file, as Kafka's tool made it in this process."""


def jars() -> Path:
    """The folder with Apache Kafka's jars, fetched if it does not exist yet. Raises Unavailable if
    they cannot be fetched."""
    java()
    return fetch_jars(f"apache-kafka-{KAFKA_VERSION}", _ARTIFACTS)


def java() -> str:
    """The path of the Java to run Kafka with. Raises Unavailable if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not found or not os.path.exists(found):
        raise Unavailable("Apache Kafka needs Java 17 or newer, and there is no java on the PATH")
    return found


def java_command(main_class: str, *arguments: str, heap: str = "512m") -> list[str]:
    """The command line of one of Kafka's own tools."""
    return [
        java(),
        f"-Xmx{heap}",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        f"{jars()}/*",
        main_class,
        *arguments,
    ]


class ApacheKafka:
    """KRaft brokers 0 and on at 127.0.0.1, the last of them the controller too, data in a temporary
    folder; a context manager.

    `advertise(node_id, port)` gives the advertised port of a broker that listens on `port`: a
    proxy's, say. `listeners`: further listeners, name → security protocol; `servers(name)` gives
    their addresses. `users`: name → password, for SCRAM. `properties`: broker configs, by Kafka's
    names. Raises Unavailable.
    """

    def __init__(
        self,
        heap: str = "1g",
        brokers: int = 1,
        advertise: Callable[[int, int], int] | None = None,
        listeners: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-apache-kafka-"))
        self._heap = heap
        self._reserved: list[ReservedPort] = []
        self._ports = [self._reserve() for _ in range(brokers)]
        self._listeners = dict(listeners or {})
        self._users = dict(users or {})
        self._further_ports = [{name: self._reserve() for name in self._listeners} for _ in range(brokers)]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * brokers
        advertised = [
            port if advertise is None else advertise(node_id, port)
            for node_id, port in enumerate(self._ports)
        ]
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in advertised)
        try:
            self._configure(advertised, properties or {})
            for node_id in range(brokers):
                self._processes[node_id] = self._launch(node_id)
            for node_id in range(brokers):
                self._wait_until_up(node_id)
            if brokers > 1:
                self._wait_until_known(brokers)
        except BaseException:
            self.close()
            raise

    def _reserve(self) -> int:
        """A port that is ours until `close`."""
        self._reserved.append(ReservedPort())
        return self._reserved[-1].number

    def servers(self, listener: str) -> str:
        """`bootstrap.servers` of a further listener, with the host name localhost."""
        return ",".join(f"localhost:{ports[listener]}" for ports in self._further_ports)

    def kill(self, node_id: int) -> None:
        """`kill -9` a broker. Nothing if it does not run."""
        process, self._processes[node_id] = self._processes[node_id], None
        if process is not None:
            process.kill()
            process.wait()

    def start(self, node_id: int) -> None:
        """Start a killed broker again, from what is on disk. Nothing if it runs."""
        if self._processes[node_id] is None:
            self._processes[node_id] = self._launch(node_id)
            self._wait_until_up(node_id)

    def stop_all(self) -> None:
        """Stop all brokers in good order, the controller last."""
        for node_id, process in enumerate(self._processes):
            if process is not None:
                process.terminate()
                process.wait()
                self._processes[node_id] = None

    def start_all(self) -> None:
        """Start all brokers that do not run, at once; returns when all listen and the controller
        knows them."""
        stopped = [node_id for node_id, process in enumerate(self._processes) if process is None]
        for node_id in stopped:
            self._processes[node_id] = self._launch(node_id)
        for node_id in stopped:
            self._wait_until_up(node_id)
        self._wait_until_known(len(self._processes))

    @property
    def process_ids(self) -> list[int]:
        """Process ids of the brokers that run."""
        return [process.pid for process in self._processes if process is not None]

    @property
    def data_folders(self) -> list[Path]:
        """Folder of each broker's logs, by node id."""
        return [self._folder / f"data-{node_id}" for node_id in range(len(self._processes))]

    def _configure(self, advertised: list[int], properties: Mapping[str, object]) -> None:
        """Write each broker's configuration, and format its folder."""
        controller_id, controller_port = len(advertised) - 1, self._reserve()
        for node_id, port in enumerate(self._ports):
            leads = node_id == controller_id
            further = self._further_ports[node_id]
            own = [f"{name}://127.0.0.1:{further[name]}" for name in further]
            listed = [f"{name}://localhost:{further[name]}" for name in further]
            protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
            settings = {
                "process.roles": "broker,controller" if leads else "broker",
                "node.id": node_id,
                "controller.quorum.voters": f"{controller_id}@127.0.0.1:{controller_port}",
                "listeners": ",".join(
                    [
                        f"PLAINTEXT://127.0.0.1:{port}",
                        *([f"CONTROLLER://127.0.0.1:{controller_port}"] if leads else []),
                        *own,
                    ]
                ),
                "advertised.listeners": ",".join([f"PLAINTEXT://127.0.0.1:{advertised[node_id]}", *listed]),
                "listener.security.protocol.map": ",".join(
                    f"{name}:{protocol}" for name, protocol in protocols.items()
                ),
                "controller.listener.names": "CONTROLLER",
                "log.dirs": self._folder / f"data-{node_id}",
                "offsets.topic.replication.factor": 1,
                "transaction.state.log.replication.factor": 1,
                "share.coordinator.state.topic.replication.factor": 1,
                "share.coordinator.state.topic.min.isr": 1,
                "transaction.state.log.min.isr": 1,
                "group.initial.rebalance.delay.ms": 0,
                **properties,
            }
            self._config(node_id).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            self._format(node_id)

    def _format(self, node_id: int) -> None:
        """Format a broker's folder: by Kafka's tool, or with what the tool made for the same users
        before, which starts no Java."""
        users, folder = tuple(self._users.items()), self.data_folders[node_id]
        if users not in _FORMATTED:
            self._format_by_tool(node_id)
            _FORMATTED[users] = (folder / _BOOTSTRAP).read_bytes()
            return
        folder.mkdir()
        (folder / _BOOTSTRAP).write_bytes(_FORMATTED[users])
        directory_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        (folder / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={node_id}\ndirectory.id={directory_id}\n"
        )

    def _format_by_tool(self, node_id: int) -> None:
        users = [
            word
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for user, password in self._users.items()
            for word in ("--add-scram", f"{mechanism}=[name={user},password={password}]")
        ]
        command = java_command(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._config(node_id)), *users
        )
        with self._log(node_id).open("wb") as log:
            if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode != 0:
                raise Unavailable(f"Apache Kafka's folder could not be formatted: {self._said(node_id)}")

    def _launch(self, node_id: int) -> subprocess.Popen[bytes]:
        with self._log(node_id).open("ab") as log:
            command = java_command("kafka.Kafka", str(self._config(node_id)), heap=self._heap)
            return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def _wait_until_up(self, node_id: int) -> None:
        """Wait until every listener of the broker listens: they are opened one after another.
        Unavailable if that takes longer than START_TIMEOUT_S seconds."""
        deadline_s, process = time.monotonic() + START_TIMEOUT_S, self._processes[node_id]
        closed = [self._ports[node_id], *self._further_ports[node_id].values()]
        while time.monotonic() < deadline_s and process is not None and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", closed[-1])) == 0:
                    closed.pop()
                    if not closed:
                        return
                    continue
            time.sleep(0.05)
        raise Unavailable(f"Apache Kafka did not start within {START_TIMEOUT_S:g} s: {self._said(node_id)}")

    def _wait_until_known(self, brokers: int) -> None:
        """Wait until the controller knows `brokers` brokers: it admits a broker some time after it
        listens. Unavailable if that takes longer than START_TIMEOUT_S seconds."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        with Admin({"bootstrap.servers": self.bootstrap_servers}) as admin:
            while len(admin.describe_cluster().nodes) < brokers:
                if time.monotonic() > deadline_s:
                    raise Unavailable(
                        f"not all of {brokers} brokers of Apache Kafka joined within {START_TIMEOUT_S:g} s"
                    )
                time.sleep(0.1)

    def _config(self, node_id: int) -> Path:
        return self._folder / f"broker-{node_id}.properties"

    def _log(self, node_id: int) -> Path:
        return self._folder / f"broker-{node_id}.log"

    def _said(self, node_id: int) -> str:
        return self._log(node_id).read_text(errors="replace").strip()[-500:]

    def close(self) -> None:
        """Stop all brokers and remove their data. Safe to call twice."""
        for node_id in range(len(self._processes)):
            self.kill(node_id)
        for port in self._reserved:
            port.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> ApacheKafka:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
