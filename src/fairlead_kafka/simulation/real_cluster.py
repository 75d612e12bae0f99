"""Real brokers on a virtual host and disk: started, stopped, killed, cut from power or from each
other, and started again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from errno import ENOSPC
from random import Random

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConnectionFailed, UsageError
from fairlead_kafka.broker import Broker, Controller, Faults, KillBroker, StartBroker, StopBroker
from fairlead_kafka.broker.control import ControllerServer, OpenController, RemoteController
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.core.effects import Effect, FileEffect
from fairlead_kafka.core.events import Event
from fairlead_kafka.runtime import Handle, VirtualHost, VirtualLink
from fairlead_kafka.simulation.workload import Completion

PORT = 9092
START_MS = 10_000.0
CONTROLLER = "controller"
CONTROLLER_PORT = 9093
TOKEN = "of this world"
WRITTEN_BACK_SHARE = 0.7
"""Share of pages on disk, in the unsynced part that a power cut leaves, if it keeps no order."""
HERE = -1
"""Stands for the controller in place of a broker's id."""


class MetadataLog:
    """The controller's metadata log, in memory, on a disk that may be full."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.full = False

    def append(self, line: bytes) -> None:
        """Write the line of one decision; OSError if the disk is full."""
        self._room()
        self.data += line

    def replace(self, data: bytes) -> None:
        """Write a log in the place of this one; OSError if the disk is full."""
        self._room()
        self.data = bytearray(data)

    def _room(self) -> None:
        if self.full:
            raise OSError(ENOSPC, "No space left on device")


class SkewedBroker(Broker):
    """A broker whose time of day may be wrong."""

    skew_ms = 0

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Step the broker, whose time of day is ahead by `skew_ms`."""
        return super().step(now_ns, wall_ms + self.skew_ms)


class RealBroker:
    """One broker through all its starts."""

    def __init__(self, cluster: RealCluster, node_id: int, rng: Random) -> None:
        self.node_id = node_id
        self.folder = f"/broker-{node_id}"
        self.running = self.refused = False
        """`refused`: the controller could not note its last start, and it waits for the next."""
        self.skew_ms = 0
        """How far its time of day is ahead, ms."""
        self._cluster = cluster
        self._host = cluster.host
        self._rng = rng
        self._faults = Faults()
        self._ending = self._again = False
        """`_ending`: asked to end and not ended yet. `_again`: to be started again then."""
        self._effects_to_live = 0
        """File effects until the power goes; 0: it does not."""
        self._outlived = 0
        self.life = 0
        """Number of starts of the broker so far."""
        self.machine: SkewedBroker
        self.handle: Handle
        self._make()

    @property
    def address(self) -> str:
        """The broker's address, host:port."""
        return f"broker-{self.node_id}:{PORT}"

    def start(self) -> None:
        """Start the broker (again) from its disk, if need be once its end is complete. Does nothing
        if it runs."""
        if self.running:
            return
        if self._ending:
            self._again = True
            return
        if self.handle.ended:
            self._outlived = self.outlived
            self._make()
            self._cluster.connected(self)
        self.running, self.refused = True, False
        self._host.submit(self.handle, StartBroker(Completion(self._started)))

    def kill(self, *, power: bool = False, pages: bool = False) -> None:
        """End the broker as `kill -9` does: data written to the disk stays there. With `power`,
        unsynced data is lost, except for a random part of it; with `pages` too, that part lacks
        some pages before its end."""
        if self.running or self._ending:
            self._end(KillBroker, (lambda: self._lose_unsynced(pages)) if power else lambda: None)

    def stop(self) -> None:
        """Stop in good order: leadership moves to other brokers first."""
        if self.running:
            self._end(StopBroker, lambda: None)

    def _end(self, operation: type[KillBroker] | type[StopBroker], afterwards: Callable[[], None]) -> None:
        self.running, self._ending = False, True
        handle = self.handle

        def ended(_value: None, _error: Exception | None) -> None:
            if not handle.ended:
                self._host.remove(handle)
                afterwards()
                self._gone()

        self._host.submit(handle, operation(Completion(ended)))

    def _gone(self) -> None:
        self._ending = False
        if self._again:
            self._again = False
            self.start()

    def lose_power_after(self, effects: int) -> None:
        """Cut the power right after `effects` more file effects: between a write and its sync, or
        during a sync.
        """
        self._effects_to_live = effects

    def file_effect(self, effect: FileEffect) -> None:
        """Count one file effect. If the power goes now, the rest of the same step never happens."""
        if not self._effects_to_live:
            return
        self._effects_to_live -= 1
        if not self._effects_to_live and self._cluster.may_lose_power(self):
            self.running = False
            self._host.remove(self.handle)
            self.machine.crashed(ConnectionFailed("the power went"))
            self._lose_unsynced()
            self._gone()

    def slow(self, produce_service_time_ms: float = 0.0, latency_ms: float = 0.0) -> None:
        """Slow the broker down, as `testing.BrokerHandle.slow` does."""
        self._faults = self.machine.faults = Faults(produce_service_time_ms, latency_ms)

    def set_clock(self, skew_ms: int) -> None:
        """Set the broker's time of day `skew_ms` milliseconds ahead from now on."""
        self.skew_ms = self.machine.skew_ms = skew_ms

    def read_again(self) -> None:
        """Have the coordinators that are here read their logs again, as when their work raised."""
        machine = self.machine

        def restart() -> None:
            for shard in machine.coordinator.shards:
                machine.coordinator.shards.restart(shard)
            for transactions in machine.transactions.shards:
                machine.transactions.shards.restart(transactions)
            for states in machine.share_coordinator.shards:
                machine.share_coordinator.shards.restart(states)

        if self.running:
            machine.call_later(0, restart)
            machine.wake()

    def _lose_unsynced(self, pages: bool = False) -> None:
        self._effects_to_live = 0
        self._cluster.power_cuts += 1
        rng = self._rng
        self._host.disk.cut_power(
            self.folder,
            lambda size_bytes: rng.randrange(size_bytes + 1),
            lambda: not pages or rng.random() < WRITTEN_BACK_SHARE,
        )

    @property
    def outlived(self) -> int:
        """Number of exceptions that the broker survived and that no client can have caused."""
        return self._outlived + self.machine.errors

    def _make(self) -> None:
        self.life += 1
        self.machine = SkewedBroker(
            self.node_id,
            self._cluster.view_of(self.node_id),
            self.folder,
            self._rng,
            f"broker-{self.node_id}",
            PORT,
        )
        self.machine.faults, self.machine.skew_ms = self._faults, self.skew_ms
        handle = self.handle = self._host.add(self.machine)
        self.machine.wake = lambda: self._host.wake(handle)

    def _started(self, _: object, error: Exception | None) -> None:
        if error is None or not self.running:
            return
        if getattr(error, "code", None) != ErrorCode.KAFKA_STORAGE_ERROR:
            raise UsageError(f"broker {self.node_id} did not start: {error!r}")
        self.running, self.refused = False, True
        self._host.remove(self.handle)
        if not self._cluster.metadata.full:  # there has been room since
            self.start()


class Clockwork:
    """A machine that calls a controller's timers when they are due: the controller itself is no
    machine."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def receive(self, event: Event) -> None:
        """Never called: nothing is sent to this machine."""

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived and on what is due; returns the effects for the host.
        `now_ns` is monotonic, `wall_ms` milliseconds since 1970."""
        self._controller.tick(now_ns)
        return ()

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return self._controller.deadline_ns()


class RealCluster:
    """Brokers, their controller, and the network between them.

    `distant`: brokers reach the controller over the network, as in process mode, and follow a copy
    of its image; else they call it directly.
    """

    def __init__(
        self,
        host: VirtualHost,
        brokers: int,
        config: Mapping[str, object],
        new_rng: Callable[[], Random],
        distant: bool = False,
    ) -> None:
        self.host = host
        self.may_lose_power: Callable[[RealBroker], bool] = lambda broker: True
        """Called before a planned power cut; False prevents it."""
        self.power_cuts = 0
        self._cuts: dict[tuple[int, int], int | None] = {}
        """Pairs of brokers that are cut off from each other, the lower id first (the controller's
        is HERE) → the one that nothing reaches; None: neither.
        """
        self._cut_links: dict[tuple[int, int], list[VirtualLink]] = {}
        """The links of a pair of brokers that is cut, since it was cut, also of earlier starts of
        them."""
        self._settings = BROKER_CONFIGS.parse("broker", dict(config))
        self.metadata = MetadataLog()
        self.controller = Controller(self._settings, new_rng(), self.metadata.append, self.metadata.replace)
        self.server: Handle | None = self._serve() if distant else None
        """The controller as a machine, if it is distant."""
        if not distant:
            host.add(Clockwork(self.controller))
        self.brokers = [RealBroker(self, node_id, new_rng()) for node_id in range(brokers)]
        host.disk.watch = self._disk_effect

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(broker.address for broker in self.brokers)

    def view_of(self, node_id: int) -> ClusterView:
        """A broker's view of the cluster, for one run from start to end."""
        return (
            self.controller
            if self.server is None
            else RemoteController(self._settings, CONTROLLER, CONTROLLER_PORT, TOKEN)
        )

    def _serve(self) -> Handle:
        server = ControllerServer(self.controller, TOKEN, CONTROLLER, CONTROLLER_PORT)
        handle = self.host.add(server)
        server.wake = lambda: self.host.wake(handle)
        self.host.submit(handle, OpenController(Completion(lambda _value, _error: None)))
        return handle

    def start(self) -> None:
        """Start all brokers, and wait until the controller knows them."""
        for broker in self.brokers:
            broker.start()
        self.host.run_until(lambda: len(self.controller.image.alive()) == len(self.brokers), START_MS)

    def cut(self, one: int, other: int, toward: int | None = None) -> None:
        """Let nothing through between two brokers, or only nothing toward one of them, also after
        they start again.
        """
        pair = (min(one, other), max(one, other))
        self._cuts[pair] = toward
        self._apply(pair)

    def heal(self, one: int, other: int) -> None:
        """Let everything through between two brokers again."""
        pair = (min(one, other), max(one, other))
        self._cuts.pop(pair, None)
        # Those of former lives too: what waited there finds its connection closed.
        for link in [*self._cut_links.pop(pair, ()), self.link(*pair)]:
            link.heal()

    def make_room(self) -> None:
        """Let the metadata log be written again, and start the brokers that it kept from that."""
        self.metadata.full = False
        for broker in self.brokers:
            if broker.refused:
                broker.start()

    def forgotten(self) -> list[str]:
        """A line for each partition whose replicas, or replicas in sync, the metadata log has
        otherwise."""
        again = Controller(self._settings, Random(0))
        again.replay(bytes(self.metadata.data))
        written = {
            (topic.name, index): (one.replicas, one.isr) for topic, index, one in again.image.partitions()
        }
        return [
            f"{topic.name}-{index}: replicas and those in sync are {one.replicas, one.isr}, and were written "
            f"as {written.get((topic.name, index))}"
            for topic, index, one in self.controller.image.partitions()
            if written.get((topic.name, index)) != (one.replicas, one.isr)
        ]

    def outdated(self) -> list[str]:
        """A line for each broker that runs with other configs than the controller has for it."""
        return [
            f"broker {broker.node_id} runs with {key} = {value!r}, and it was set to {wanted[key]!r}"
            for broker in self.brokers
            for wanted in (self.controller.broker_settings(broker.node_id),)
            for key, value in broker.machine.settings.values_by_key.items()
            if wanted[key] != value
        ]

    def heal_all(self) -> None:
        """Heal all cuts."""
        for pair in list(self._cuts):
            self.heal(*pair)

    def connected(self, broker: RealBroker) -> None:
        """Apply the cuts of a broker to its new links, after it was started again."""
        for pair in self._cuts:
            if broker.node_id in pair:
                self._apply(pair)

    def _apply(self, pair: tuple[int, int]) -> None:
        link, toward = self.link(*pair), self._cuts[pair]
        link.heal()
        link.cut(None if toward is None else self._handle(toward))
        links = self._cut_links.setdefault(pair, [])
        if link not in links:
            links.append(link)

    def link(self, one: int, other: int) -> VirtualLink:
        """The network link between two brokers that run, or with HERE between a broker and the
        controller."""
        return self.host.link(self._handle(one), self._handle(other))

    def _handle(self, node_id: int) -> Handle:
        if node_id != HERE:
            return self.brokers[node_id].handle
        assert self.server is not None
        return self.server

    def _disk_effect(self, handle: Handle, effect: FileEffect) -> None:
        for broker in self.brokers:
            if broker.handle is handle:
                broker.file_effect(effect)
