"""`Cluster`: a Kafka cluster inside this process, for tests, laptops and CI."""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from fairlead.base.config import Settings
from fairlead.base.config_broker import BROKER_CONFIGS
from fairlead.base.errors import ConfigError, ConnectionFailed, FairleadError, UsageError
from fairlead.broker import Broker, Controller, Faults, KillBroker, SetFaults, StartBroker, StopBroker
from fairlead.runtime import Completion, Handle, SelectorHost, compile_kernels_in_background, system_dice
from fairlead.testing.folder import FolderLock, MetadataFile

_logger = logging.getLogger("fairlead.testing")

_TIMEOUT_S = 60.0
_PORTS_NAME = "cluster.json"


class Cluster:
    """A cluster of `brokers` brokers in one thread of this process; any Kafka client can use it at `bootstrap_servers`.

    `data_dir`: where the data is kept; None: in a temporary folder that is removed by `close`. A cluster opened again over the same
    folder has its topics, records, committed offsets and id, and its ports if they are free.
    `config`: broker configs by Kafka's names, the same for all brokers (`docs/configuration.md`).
    `port`: of the first broker, the next ones follow; 0: any free ports. `host`: the address to listen on.

    Raises ConfigError for what is wrong with the arguments, UsageError if another cluster uses `data_dir`, ConnectionFailed if a port is
    taken, FairleadError if the data on disk is damaged. All methods may be called from any thread.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | Path | None = None,
        config: Mapping[str, Any] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        settings = BROKER_CONFIGS.parse("broker", dict(config or {}))
        _check_arguments(brokers, port, host)
        self._temporary = data_dir is None
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-")) if data_dir is None else Path(data_dir).absolute()
        self._lock = FolderLock(self._folder)
        self._host: SelectorHost | None = None
        self._metadata: MetadataFile | None = None
        self._brokers: list[BrokerHandle] = []
        self._closed = False
        self._closing = threading.Lock()
        self._process = os.getpid()
        atexit.register(self.close)
        try:
            self._open(brokers, settings, port, host)
        except BaseException:
            self.close()
            raise

    def _open(self, brokers: int, settings: Settings, port: int, host: str) -> None:
        ports = _ports_of(self._folder, brokers)
        self._metadata = MetadataFile(self._folder / "metadata.log", durable=not self._temporary)
        self._controller = Controller(settings, system_dice(), self._metadata.append)
        self._metadata.replay(self._controller)
        self._host = SelectorHost("fairlead-cluster")
        self._brokers = [
            BrokerHandle(self._host, self._controller, node_id, str(self._folder / f"broker-{node_id}"), host, port and port + node_id)
            for node_id in range(brokers)
        ]
        self._host.start()
        begun = [broker._begin(ports[broker.node_id] if not port else 0) for broker in self._brokers]
        for broker, completion in zip(self._brokers, begun, strict=True):
            broker._finish_start(completion)
        if not self._temporary:
            text = json.dumps({"version": 1, "ports": [broker.port for broker in self._brokers]})
            (self._folder / _PORTS_NAME).write_text(text)
        compile_kernels_in_background()

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, running or not, separated by commas."""
        return ",".join(broker.address for broker in self._brokers)

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._controller.image.cluster_id

    @property
    def brokers(self) -> list[BrokerHandle]:
        """All brokers, by id."""
        return list(self._brokers)

    def broker(self, node_id: int) -> BrokerHandle:
        """The broker with this id, counted from 0."""
        if not 0 <= node_id < len(self._brokers):
            raise UsageError(f"there is no broker {node_id}; this cluster has 0 to {len(self._brokers) - 1}")
        return self._brokers[node_id]

    def close(self) -> None:
        """Stop all brokers; data in a temporary folder is removed, other data is synced to disk. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            atexit.unregister(self.close)
            if os.getpid() != self._process:
                return  # a forked child: the brokers and the folder are its parent's
            if self._host is not None:
                for broker in self._brokers:
                    broker._end(abruptly=self._temporary)
                self._host.close()
            if self._metadata is not None:
                self._metadata.close()
            self._lock.release()
            if self._temporary:
                shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster {'closed' if self._closed else self.bootstrap_servers}>"


class BrokerHandle:
    """One broker of a `Cluster`: its faults, and its life. It keeps its port from start to start."""

    def __init__(self, host: SelectorHost, controller: Controller, node_id: int, folder: str, address: str, port: int) -> None:
        self.node_id = node_id
        self.host = address
        self.port = port
        self._loop = host
        self._controller = controller
        self._folder = folder
        self._faults = Faults()
        self._handle: Handle | None = None
        self._changing = threading.Lock()

    @property
    def running(self) -> bool:
        """True between a start and the next stop or kill."""
        return self._handle is not None and not self._handle.ended

    @property
    def address(self) -> str:
        """`host:port`, as clients take it in `bootstrap.servers`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def slow(self, produce_service_time_ms: float = 0, latency_ms: float = 0) -> None:
        """Make the broker slow until further notice; without arguments, or with zeros, it is healed.

        `produce_service_time_ms`: the answer to each Produce request is held back so long, and the connection meanwhile serves nothing
        else: one request after another, as in KIP-794's experiment. `latency_ms`: every answer arrives so much later, all concurrently.
        Raises ConfigError for a negative time. The faults survive a restart of the broker.
        """
        if produce_service_time_ms < 0 or latency_ms < 0:
            raise ConfigError(f"times must be 0 or more, got produce_service_time_ms={produce_service_time_ms}, latency_ms={latency_ms}")
        with self._changing:
            self._faults = Faults(produce_service_time_ms, latency_ms)
            if self.running:
                self._submit(SetFaults(self._faults, Completion()))

    def stop(self) -> None:
        """Stop in good order: connections closed, everything written and synced. Nothing if it does not run."""
        with self._changing:
            if self.running:
                self._submit(StopBroker(Completion()))
            self._drop()

    def kill(self) -> None:
        """Stop as `kill -9` does: connections reset, nothing synced, all that was in memory gone. Nothing if it does not run."""
        with self._changing:
            if self.running:
                self._submit(KillBroker(Completion()))
            self._drop()

    def start(self) -> None:
        """Start again on the same port, from what is on disk. Nothing if it runs."""
        with self._changing:
            if not self.running:
                self._drop()
                self._finish_start(self._begin(self.port))

    def _begin(self, port: int) -> Completion:
        broker = Broker(self.node_id, self._controller, self._folder, system_dice(), self.host, self.port or port)
        broker.faults = self._faults
        handle = self._handle = self._loop.add(broker)
        broker.wake = lambda: self._loop.wake(handle)
        completion = Completion()
        self._loop.submit(handle, StartBroker(completion))
        return completion

    def _finish_start(self, completion: Completion) -> None:
        try:
            self.port = completion.result(_TIMEOUT_S)
        except ConnectionFailed:
            # A port that was only remembered may have gone to somebody else meanwhile.
            self._drop()
            if self.port:
                raise
            self.port = self._begin(0).result(_TIMEOUT_S)
        except BaseException:
            self._drop()
            raise

    def _submit(self, operation: StopBroker | KillBroker | SetFaults) -> None:
        assert self._handle is not None
        self._loop.submit(self._handle, operation)
        operation.completion.result(_TIMEOUT_S)

    def _drop(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._loop.remove(handle)

    def _end(self, abruptly: bool) -> None:
        """Stop or kill, and go on with the others whatever happens."""
        try:
            if abruptly:
                self.kill()
            else:
                self.stop()
        except FairleadError:
            _logger.exception("%r did not stop in good order", self)

    def __repr__(self) -> str:
        return f"<broker {self.node_id} at {self.address}{'' if self.running else ', stopped'}>"


def _check_arguments(brokers: int, port: int, host: str) -> None:
    if host in ("", "0.0.0.0", "::"):
        raise ConfigError(f"host: clients are told to connect to it, so it must be an address they can reach, got {host!r}")
    if isinstance(brokers, bool) or not isinstance(brokers, int) or not 1 <= brokers <= 1000:
        raise ConfigError(f"brokers: must be a number from 1 to 1000, got {brokers!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_536 - brokers:
        raise ConfigError(f"port: must be 0, or leave room for {brokers} brokers below 65536, got {port!r}")


def _ports_of(folder: Path, brokers: int) -> list[int]:
    """The ports the brokers had before; 0 where there is none. ConfigError if the data belongs to more brokers than are asked for."""
    path = folder / _PORTS_NAME
    if not path.exists():
        return [0] * brokers
    try:
        ports = [int(port) for port in json.loads(path.read_text())["ports"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: not a file of a cluster's ports ({error}); delete it to have new ports") from None
    if len(ports) > brokers:
        raise ConfigError(f"{folder} holds the data of {len(ports)} brokers; open it with brokers={len(ports)} or more, not {brokers}")
    return ports + [0] * (brokers - len(ports))
