"""Real brokers on a virtual host and disk: started, killed and started again over what their disk kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from fairlead.base.config_broker import BROKER_CONFIGS
from fairlead.base.errors import UsageError
from fairlead.broker import Broker, Controller, Faults, KillBroker, StartBroker
from fairlead.records import BatchHeader, end_marker, scan
from fairlead.runtime import Handle, VirtualHost
from fairlead.simulation.model_log import ModelLog, StoredBatch
from fairlead.simulation.workload import Completion

PORT = 9092
READ_MAX_BYTES = 1 << 22
START_MS = 10_000.0


class RealBroker:
    """One broker through all its lives."""

    def __init__(self, host: VirtualHost, controller: Controller, node_id: int, dice: Random) -> None:
        self.node_id = node_id
        self.folder = f"/broker-{node_id}"
        self.running = False
        self._host = host
        self._controller = controller
        self._dice = dice
        self._faults = Faults()
        self.machine: Broker
        self.handle: Handle
        self._make()

    @property
    def address(self) -> str:
        """host:port."""
        return f"broker-{self.node_id}:{PORT}"

    def start(self) -> None:
        """Live (again), over what the disk has. Nothing if it lives."""
        if self.running:
            return
        if self.handle.ended:
            self._make()
        self.running = True
        self._host.submit(self.handle, StartBroker(Completion(self._started)))

    def kill(self, *, power: bool = False) -> None:
        """As `kill -9`: what was handed to the disk is there. With `power`, all that was not synced is gone, but for a part of it."""
        if not self.running:
            return
        self.running = False
        handle = self.handle

        def dead(_value: Any, _error: Exception | None) -> None:
            self._host.remove(handle)
            if power:
                self._host.disk.cut_power(self.folder, lambda size_bytes: self._dice.randrange(size_bytes + 1))

        self._host.submit(handle, KillBroker(Completion(dead)))

    def slow(self, produce_service_time_ms: float = 0.0, latency_ms: float = 0.0) -> None:
        """As `testing.BrokerHandle.slow`."""
        self._faults = self.machine.faults = Faults(produce_service_time_ms, latency_ms)

    def _make(self) -> None:
        self.machine = Broker(self.node_id, self._controller, self.folder, self._dice, f"broker-{self.node_id}", PORT)
        self.machine.faults = self._faults
        handle = self.handle = self._host.add(self.machine)
        self.machine.wake = lambda: self._host.wake(handle)

    def _started(self, _: Any, error: Exception | None) -> None:
        if error is not None and self.running:
            raise UsageError(f"broker {self.node_id} did not start: {error!r}")


class RealCluster:
    """Brokers, their controller, and a reader of their logs."""

    def __init__(self, host: VirtualHost, brokers: int, config: Mapping[str, Any], new_dice: Callable[[], Random]) -> None:
        self._host = host
        self.controller = Controller(BROKER_CONFIGS.parse("broker", dict(config)), new_dice())
        self.brokers = [RealBroker(host, self.controller, node_id, new_dice()) for node_id in range(brokers)]

    @property
    def bootstrap_servers(self) -> str:
        """All brokers."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self) -> None:
        """Start all brokers, and wait for it."""
        for broker in self.brokers:
            broker.start()
        self._host.run_until(lambda: len(self.controller.image.alive()) == len(self.brokers), START_MS)

    def read(self, topics: Mapping[str, int]) -> ModelLog:
        """Everything in `topics` (name → partitions), as the brokers' logs have it."""
        log = ModelLog()
        for name, partitions in topics.items():
            leaders = [self.controller.image.topics[name].partitions[index].replicas[0] for index in range(partitions)]
            topic = log.create(name, leaders)
            for index, partition in enumerate(topic.partitions):
                partition.batches = self._read_partition(name, index, leaders[index])
                partition.end_offset = partition.batches[-1].end_offset if partition.batches else 0
        return log

    def _read_partition(self, topic: str, index: int, leader: int) -> list[StoredBatch]:
        broker, batches = self.brokers[leader].machine, list[StoredBatch]()
        answers: list[tuple[int, list[bytes], int]] = []
        offset = 0
        while True:
            answers.clear()
            broker.read_internal(
                topic,
                index,
                offset,
                lambda code, found, after: answers.append((code, [bytes(each) for each in found], after)),
                READ_MAX_BYTES,
            )
            broker.wake()
            self._host.run_until(lambda: answers, START_MS)
            code, found, offset = answers[0]
            if code:
                raise UsageError(f"{topic}-{index} cannot be read back from broker {leader}: error {code}")
            if not found:
                return batches
            data = b"".join(found)
            batches += [_stored(data, header) for header in scan(data)]


def _stored(data: bytes, header: BatchHeader) -> StoredBatch:
    own = data[header.position : header.stop]
    if not header.control:
        return StoredBatch(header.base_offset, header, own)
    marker = end_marker(data, header)
    return StoredBatch(header.base_offset, header, None, None if marker is None else marker.committed)
