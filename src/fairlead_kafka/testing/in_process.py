"""The launcher's handles of brokers in processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from fairlead_kafka.base.errors import ConnectionFailed, FairleadError, TimedOut
from fairlead_kafka.base.json_types import (
    Json,
    JsonObject,
    integer_at,
    integers_at,
    number_or_none,
    object_at,
    text_at,
)
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.broker import Faults
from fairlead_kafka.broker.control import OpenController
from fairlead_kafka.runtime import Completion, Handle, MemoryUse, SelectorHost
from fairlead_kafka.testing.broker_process import ERRORS
from fairlead_kafka.testing.channel import Channel
from fairlead_kafka.testing.handles import TIMEOUT_S, Begun, Runner, Where

_ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Environment of the nursery.

The libraries of NumPy and Arrow start threads when they are loaded, and a process with threads
cannot be forked safely.
"""


class Nursery:
    """Starts broker processes; see `fairlead_kafka.testing.nursery`. May be called from any
    thread."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(
            [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fairlead_kafka.testing.nursery", str(theirs.fileno())],
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches the launcher alone
            )
        self._channel = Channel(ours)
        self._lock = threading.Lock()

    def start(self, config: Mapping[str, Json]) -> tuple[int, Channel]:
        """Start a broker's process, with this config; returns its process id and the channel to
        it."""
        ours, theirs = socket.socketpair()
        channel = Channel(ours)
        try:
            with theirs, self._lock:
                self._channel.send(config, theirs)
                answer = self._channel.receive(TIMEOUT_S)
            if "error" in answer:
                raise ConnectionFailed(f"a broker's process could not be started: {answer['error']}")
        except BaseException:
            channel.close()
            raise
        return integer_at(answer, "pid"), channel

    def close(self) -> None:
        """End the nursery, and every broker that still runs."""
        self._channel.close()
        try:
            self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Processes:
    """State that all broker processes of a cluster share: the nursery, and the address of the
    controller, served by `server` on `loop`.
    """

    def __init__(self, loop: SelectorHost, server: Handle, token: str, config: Mapping[str, Json]) -> None:
        self.nursery = Nursery()
        self.config = dict(config)
        self.token = token
        self._opening: Completion[int] = Completion()
        loop.submit(server, OpenController(self._opening))

    @property
    def port(self) -> int:
        """The port on which the controller listens."""
        return self._opening.result(TIMEOUT_S)


class BrokerInProcess(Runner):
    """A broker in a process of its own; each start is another process."""

    def __init__(self, processes: Processes, where: Where) -> None:
        self._processes = processes
        self._where = where
        self._pid: int | None = None
        self._channel: Channel | None = None

    @property
    def running(self) -> bool:
        """True as long as the process runs."""
        channel = self._channel
        return channel is not None and not channel.ended()

    @property
    def pid(self) -> int | None:
        """Process id of the broker; None if it does not run."""
        return self._pid if self.running else None

    def begin(self, ports: Mapping[str, int], faults: Faults) -> Begun:
        """Fork a process, and have the broker start on `ports`."""
        shared, where = self._processes, self._where
        config: JsonObject = {
            "node_id": where.node_id,
            "folder": where.folder,
            "host": where.host,
            "rack": where.rack,
            "ports": dict(ports),
            "config": shared.config,
            "controller_host": "127.0.0.1",
            "controller_port": shared.port,
            "token": shared.token,
            "faults": _crossing(faults),
        }
        self._pid, self._channel = shared.nursery.start(config)
        return _Starting(self)

    def set_faults(self, faults: Faults) -> None:
        """Send the faults to the broker."""
        self._ask({"faults": _crossing(faults)})

    def memory_use(self) -> MemoryUse:
        """Memory that the broker's process has in use now. ConnectionFailed if it is gone."""
        found = self._ask({"memory": True})
        heap_bytes = number_or_none(found, "heap_bytes")
        return MemoryUse(integer_at(found, "blocks"), None if heap_bytes is None else int(heap_bytes))

    def stop(self) -> None:
        """Stop the broker in good order; waits for the end of the process."""
        self._ask({"stop": True})
        self._await_end()

    def kill(self) -> None:
        """End the process by `kill -9`, and wait for its end."""
        self._signal(signal.SIGKILL)
        self._await_end()

    def drop(self) -> None:
        """End the process if it is still there (its start failed), and close its channel."""
        if self.running:
            self.kill()
        if self._channel is not None:
            self._channel.close()
        self._pid = self._channel = None

    def _ask(self, message: Mapping[str, Json]) -> JsonObject:
        assert self._channel is not None
        self._channel.send(message)
        return self.answer(TIMEOUT_S)

    def answer(self, timeout_s: float | None) -> JsonObject:
        """The broker's next answer; raises the error that it reports."""
        assert self._channel is not None
        answer = self._channel.receive(timeout_s)
        if "error" in answer:
            error = object_at(answer, "error")
            raise ERRORS[text_at(error, "kind")](text_at(error, "text"))
        return answer

    def _signal(self, number: int) -> None:
        assert self._pid is not None
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return

    def _await_end(self) -> None:
        """Wait until the process has ended and its ports are free. TimedOut if it does not end."""
        assert self._pid is not None
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                os.kill(self._pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.001)
        raise TimedOut(f"the process {self._pid} of broker {self._where.node_id} does not end")


class _Starting(Begun):
    def __init__(self, broker: BrokerInProcess) -> None:
        self._broker = broker

    def result(self, timeout_s: float | None = None) -> dict[str, int]:
        return integers_at(self._broker.answer(timeout_s), "ports")


def _crossing(faults: Faults) -> JsonObject:
    return {**asdict(faults), "cut_from": sorted(faults.cut_from)}


def check_config(config: Mapping[str, object]) -> JsonObject:
    """Broker configs as sent to another process.

    FairleadError for a value that is no text, number, boolean or list of these.
    """
    plain: JsonObject = {}
    for key, value in config.items():
        if isinstance(value, Secret):
            plain[key] = value.reveal()
        elif isinstance(value, (list, tuple)):
            plain[key] = list(value)
        elif isinstance(value, str | int | float | bool | None):
            plain[key] = value
        else:
            raise FairleadError(
                f"config {key}: {value!r} cannot be given to another process; give it as text"
            )
    return plain
