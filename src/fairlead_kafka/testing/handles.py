"""Handles of a `Cluster`'s brokers: faults, start, stop and kill, wherever a broker runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.errors import ConfigError, ConnectionFailed, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.broker import Faults
from fairlead_kafka.broker.listeners import Listener
from fairlead_kafka.runtime import MemoryUse
from fairlead_kafka.runtime.resolver import ADDRESS_ERRORS
from fairlead_kafka.testing.reserved_port import ReservedPort

_logger = GuardedLogger("fairlead_kafka.testing")

TIMEOUT_S = 60.0
SLOWEST_MS = 86_400_000
"""The greatest delay of an answer, ms: one day."""
CONTROLLER = "controller"
"""Names the controller in `BrokerHandle.cut`."""


@dataclass(frozen=True, slots=True)
class Where:
    """A broker's settings that stay the same from start to start."""

    node_id: int
    folder: str
    host: str
    listeners: tuple[Listener, ...] = ()
    rack: str | None = None


class Begun(Protocol):
    """A start of a broker that is under way."""

    def result(self, timeout_s: float | None = None) -> Mapping[str, int]:
        """The ports by listener, once the broker serves, waited for `timeout_s` seconds at most.
        Raises TimedOut, or the error that the start failed with."""


class Runner(Protocol):
    """One broker, in this process or another, that can be started and stopped any number of times.

    All but `running` is called by one thread at a time.
    """

    @property
    def running(self) -> bool:
        """True between a start and the next stop, kill or crash."""

    def begin(self, ports: Mapping[str, int], faults: Faults) -> Begun:
        """Start the broker on `ports` (by listener), with these faults."""

    def set_faults(self, faults: Faults) -> None:
        """Have the broker apply these faults from now on."""

    def memory_use(self) -> MemoryUse | None:
        """Memory that the broker's own process has in use; None: it has no process of its own."""

    def stop(self) -> None:
        """Stop the broker in good order; everything is on disk."""

    def kill(self) -> None:
        """Kill the broker at once, as `kill -9` does."""

    def drop(self) -> None:
        """Release what is left of the broker after it ended."""


@checked("__init__")
class BrokerHandle:
    """One broker of a `Cluster`: its faults, and its starts and stops. It keeps its port from start
    to start (on Linux no other program is given it after `stop` and `kill`), and its faults until
    they are healed."""

    def __init__(
        self,
        where: Where,
        runner: Runner,
        ports: Mapping[str, int],
        others: Callable[[], Iterable[BrokerHandle]],
        check_open: Callable[[], None],
    ) -> None:
        self.node_id = where.node_id
        self.host = where.host
        self._listeners = where.listeners
        self.ports = dict(ports)
        """Port by listener name, the first listener first."""
        self._runner = runner
        self._others = others
        self._check_open = check_open
        self._faults = Faults()
        self._reserved: dict[str, ReservedPort] = {}
        """Its ports by listener, while it is down and the cluster is open."""
        self._ended = False
        """True once the cluster closes: no ports are kept any more."""
        self._changing = threading.Lock()

    @property
    def running(self) -> bool:
        """True between a start and the next stop or kill."""
        return self._runner.running

    @property
    def port(self) -> int:
        """The port of the first listener; 0 if none is known yet."""
        return next(iter(self.ports.values()), 0)

    @property
    def address(self) -> str:
        """`host:port`, as clients take it in `bootstrap.servers`."""
        return self.address_of(self._listeners[0].name)

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of the broker's listeners, the first one first."""
        return tuple(each.name for each in self._listeners)

    def address_of(self, listener: str) -> str:
        """`host:port` for clients of the listener `listener`.

        UsageError if there is no such listener.
        """
        found = next((each for each in self._listeners if each.name == listener.upper()), None)
        if found is None:
            raise UsageError(f"there is no listener {listener!r}; there is {', '.join(self.listeners)}")
        host, port = found.advertised_host, found.advertised_port or self.ports.get(found.name, found.port)
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def pid(self) -> int | None:
        """The id of the broker's own process; None if it does not run, or runs in this process."""
        pid: int | None = getattr(self._runner, "pid", None)
        return pid

    def memory_use(self) -> MemoryUse | None:
        """Memory that the broker's own process has in use now, as its allocators count it, after
        it gave back what is free; None if it does not run, or runs in this process."""
        with self._changing:
            try:
                return self._runner.memory_use() if self.running else None
            except ConnectionFailed:
                return None  # killed from outside, a moment ago

    # --- Faults

    def slow(self, produce_service_time_ms: float = 0, latency_ms: float = 0) -> None:
        """Make the broker slow until further notice; without arguments, or with zeros, it is fast
        again.

        `produce_service_time_ms`: the answer to each Produce request is held back for that time,
        and the connection meanwhile serves nothing else: one request after another, as in KIP-794's
        experiment. `latency_ms`: every answer arrives that much later, all concurrently. Raises
        ConfigError for a negative time, or more than a day. The faults survive a restart of the
        broker.
        """
        if not (0 <= produce_service_time_ms <= SLOWEST_MS and 0 <= latency_ms <= SLOWEST_MS):
            raise ConfigError(
                f"times must be 0 to {SLOWEST_MS} ms, got produce_service_time_ms={produce_service_time_ms}, "
                f"latency_ms={latency_ms}"
            )
        self._change(
            lambda faults: replace(
                faults, produce_service_time_ms=produce_service_time_ms, latency_ms=latency_ms
            )
        )

    def cut(self, from_: int | Literal["controller"] | None = None) -> None:
        """Cut the links between this broker and broker `from_`, in both directions, until `heal`;
        clients still reach both.

        None: between it and all other brokers. "controller": between it and the controller, which
        takes it for dead after `broker.session.timeout.ms`; only where brokers run in processes of
        their own (UsageError). More calls cut more.
        """
        if from_ == CONTROLLER:
            self._change(lambda faults: replace(faults, cut_from_controller=True))
            return
        others = [other for other in self._others() if other is not self and from_ in (None, other.node_id)]
        if not others and from_ is not None:
            raise UsageError(
                f"broker {self.node_id} cannot be cut off from {from_!r}: name the id of another broker, or "
                "'controller'"
            )
        self._change(
            lambda faults: replace(faults, cut_from=faults.cut_from | {other.node_id for other in others})
        )
        for other in others:
            other._change(lambda faults: replace(faults, cut_from=faults.cut_from | {self.node_id}))

    def fill_disk(self) -> None:
        """Let every write to the broker's disk fail as on a full one (ENOSPC), until `heal`."""
        self._change(lambda faults: replace(faults, disk_full=True))

    def heal(self) -> None:
        """Undo `slow`, `fill_disk` and `cut`, the latter at the other end too."""
        cut_from = self._faults.cut_from
        self._change(lambda _faults: Faults())
        for other in self._others():
            if other.node_id in cut_from:
                other._change(lambda faults: replace(faults, cut_from=faults.cut_from - {self.node_id}))

    def _change(self, change: Callable[[Faults], Faults]) -> None:
        with self._changing:
            faults = change(self._faults)
            if self.running:
                self._runner.set_faults(faults)
            self._faults = faults

    # --- Life

    def stop(self) -> None:
        """Stop in good order: leadership moves to other brokers, everything is written and synced.

        Does nothing if it does not run.
        """
        with self._changing:
            if self.running:
                self._runner.stop()
            self._runner.drop()
            self._reserve()

    def kill(self) -> None:
        """Stop as `kill -9` does: connections are reset, nothing is synced, memory is lost.

        Does nothing if it does not run.
        """
        with self._changing:
            if self.running:
                self._runner.kill()
            self._runner.drop()
            self._reserve()

    def start(self) -> None:
        """Start again on the same ports, from the data on disk. Does nothing if it runs."""
        self._check_open()
        with self._changing:
            if not self.running:
                self._runner.drop()
                self._finish_start(self._begin(self.ports))
                self._give_back()

    def _reserve(self) -> None:
        """Keep the ports for the next start."""
        if self._ended:
            return
        hosts = {listener.name: listener.host for listener in self._listeners}
        for name in self.ports.keys() - self._reserved.keys():
            with suppress(*ADDRESS_ERRORS):  # somebody else has it already: the start says so
                self._reserved[name] = ReservedPort(hosts[name], self.ports[name])

    def _give_back(self) -> None:
        for port in self._reserved.values():
            port.close()
        self._reserved.clear()

    def _begin(self, ports: Mapping[str, int]) -> Begun:
        return self._runner.begin(self.ports or ports, self._faults)

    def _finish_start(self, begun: Begun) -> None:
        try:
            self.ports = dict(begun.result(TIMEOUT_S))
        except ConnectionFailed:
            # A port that was only remembered may have gone to somebody else meanwhile.
            self._runner.drop()
            if self.ports:
                raise
            self.ports = dict(self._begin({}).result(TIMEOUT_S))
        except BaseException:
            self._runner.drop()
            raise

    def _end(self, abruptly: bool) -> None:
        """Stop or kill for good; an error is logged, not raised, so that the other brokers end
        too."""
        with self._changing:
            self._ended = True
            self._give_back()
        try:
            if abruptly:
                self.kill()
            else:
                self.stop()
        except Exception:
            _logger.exception("%r did not stop in good order", self)

    def __repr__(self) -> str:
        return f"<broker {self.node_id} at {self.address}{'' if self.running else ', stopped'}>"
