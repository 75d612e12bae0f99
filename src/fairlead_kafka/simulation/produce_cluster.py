"""`ProduceCluster`: model brokers on a virtual host, their common log, and the switches for what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.runtime import Handle, VirtualHost
from fairlead_kafka.simulation.model_apis import PORT, ModelApis
from fairlead_kafka.simulation.model_broker import FAULTS, SERIAL, ModelBroker, Refusal
from fairlead_kafka.simulation.model_log import NOWHERE, ModelLog, ModelPartition
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey

OnProduce = Callable[[int, str, int, BatchHeader], Refusal | None]
"""(node id, topic, partition, header of the batch) → how to refuse it, or None to serve it."""
OnRequest = Callable[[int, ApiKey], int]
"""(node id, API) → the error code to answer with, or 0."""


class ProduceCluster:
    """`brokers` model brokers, numbered from 0, at `name-0:9092` and so on.

    Every broker can lead every partition: the log is one (`log`). With `keeps_records` what was written can be read back
    from it; without, only headers stay, and long runs cost no memory. `forgetful` brokers answer as those before Kafka 2.5. `rng` is for
    what is left to chance (`replication_ms`).
    """

    def __init__(
        self,
        host: VirtualHost,
        brokers: int = 3,
        *,
        name: str = "broker",
        keeps_records: bool = False,
        forgetful: bool = False,
        max_message_bytes: int = 1_048_588,
        rng: Rng | None = None,
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"brokers: a cluster needs 1 or more, got {brokers}")
        self.host = host
        self.name = name
        self.log = ModelLog()
        self.apis = ModelApis(self)
        self.keeps_records = keeps_records
        self.forgetful = forgetful
        self.max_message_bytes = max_message_bytes
        self.first_epoch = 0
        """The epoch that new producer ids begin with."""
        self.metadata_lag_ns = 0
        """How long brokers that are not concerned name the previous leader of a partition that moved."""
        self.on_produce: OnProduce | None = None
        self.on_request: OnRequest | None = None
        self.script = Script(host)
        """What the cluster itself does in time: transactions that time out, markers."""
        self._rng = rng
        self._replication_ns = 0
        self._markers_ms = 0.0
        self.machines = [ModelBroker(self, node_id) for node_id in range(brokers)]
        self._handles = [BrokerHandle(self, machine, host.add(machine)) for machine in self.machines]

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, for `bootstrap.servers`."""
        return ",".join(f"{machine.name}:{PORT}" for machine in self.machines)

    @property
    def brokers(self) -> list[BrokerHandle]:
        """All brokers, by id."""
        return list(self._handles)

    def broker(self, node_id: int) -> BrokerHandle:
        """The broker with this id, counted from 0."""
        if not 0 <= node_id < len(self._handles):
            raise UsageError(f"there is no broker {node_id}; this cluster has 0 to {len(self._handles) - 1}")
        return self._handles[node_id]

    def create_topic(self, name: str, partitions: int, leaders: Sequence[int] | None = None) -> None:
        """A topic; `leaders` has a node id for each partition, None deals them out in turn."""
        given = [index % len(self.machines) for index in range(partitions)] if leaders is None else list(leaders)
        if len(given) != partitions or name in self.log.topics:
            raise UsageError(f"topic {name!r}: needs a new name, and {partitions} leaders for its partitions, got {len(given)}")
        self.log.create(name, given)

    def grow(self, topic: str, partitions: int) -> None:
        """More partitions, led in turn."""
        own = self.log.topics[topic].partitions
        own += [ModelPartition(index % len(self.machines)) for index in range(len(own), partitions)]

    def bytes_by_partition(self, topic: str) -> list[int]:
        """Bytes written to each partition, headers of batches included."""
        return [partition.size_bytes for partition in self.log.topics[topic].partitions]

    def move(self, topic: str, partition: int, node_id: int, *, truncate: bool = False) -> int:
        """Another leader, at once. `truncate`: it had not replicated what nobody was told of yet; gives the records that this cost."""
        entry = self.log.topics[topic].partitions[partition]
        lost = entry.truncate() if truncate else 0
        entry.lead(node_id, self.host.now_ns())
        return lost

    def elect(self) -> None:
        """Give every partition whose leader is dead to a broker that lives, the next by number; none lives: to nobody."""
        count = len(self.machines)
        for topic, index, partition in self.log.each():
            if partition.leader == NOWHERE or not self.machines[partition.leader].running:
                nearest = [(max(partition.leader, index) + step) % count for step in range(count)]
                leader = next((node_id for node_id in nearest if self.machines[node_id].running), NOWHERE)
                if leader != partition.leader:
                    self.move(topic, index, leader)

    def replicate_within(self, most_ms: float) -> None:
        """From now on answers to acks=all wait for other brokers, up to `most_ms`; 0: they do not."""
        if most_ms and self._rng is None:
            raise UsageError("how long replication takes is left to chance: make the cluster with ProduceCluster(rng=...)")
        self._replication_ns = ms_to_ns(most_ms)

    # For the brokers

    def replication_ns(self) -> int:
        """How long the answer to one request waits for other brokers."""
        if not self._replication_ns or self._rng is None:
            return 0
        return int(self._rng.random() * self._replication_ns)

    def mark_within(self, most_ms: float) -> None:
        """From now on the markers of a transaction that ends are written within `most_ms`; 0: at once."""
        self._markers_ms = most_ms

    def markers_ms(self) -> float:
        """How long it takes until the markers of one transaction are written."""
        return self._markers_ms if self._rng is None else self._markers_ms * self._rng.random()

    def trouble(self, node_id: int, api_key: ApiKey) -> int:
        """The error code that a script wants, or 0."""
        return 0 if self.on_request is None else self.on_request(node_id, api_key)


class BrokerHandle:
    """One broker of a `ProduceCluster`, and what can be done to it. All of it happens when time next goes on."""

    def __init__(self, cluster: ProduceCluster, machine: ModelBroker, handle: Handle) -> None:
        self.machine = machine
        self.handle = handle
        self._cluster = cluster

    @property
    def node_id(self) -> int:
        """Its number."""
        return self.machine.node_id

    @property
    def running(self) -> bool:
        """True unless it was killed."""
        return self.machine.running

    def takes(self, request_ms: float, batch_ms: float = 0.0) -> None:
        """From now on it needs `request_ms` to serve a Produce request, and `batch_ms` for each batch in it; 0, as at first: no time.

        A connection is served one request after another, as by Kafka.
        """
        self.machine.request_ns, self.machine.batch_ns = ms_to_ns(request_ms), ms_to_ns(batch_ms)

    def stalls(self, share: float, duration_ms: float, rng: Random) -> None:
        """From now on this share of all Produce requests takes `duration_ms` more to serve, drawn from `rng`; share 0: none."""
        self.machine.stall_share, self.machine.stall_ns, self.machine.stall_rng = share, ms_to_ns(duration_ms), rng

    def slow(self, service_time_ms: float = 0.0, fault: str = SERIAL) -> None:
        """From now on each Produce request takes `service_time_ms` more; 0: it is healed.

        `fault` "serial": a connection is served one request after another, as with KIP-794's sleep in the broker; "latency": every answer
        comes so much later, all of them at once. ConfigError for another fault or a negative time.
        """
        if fault not in FAULTS or service_time_ms < 0:
            raise ConfigError(
                f"slow: the fault must be one of {', '.join(FAULTS)} and the time 0 or more, got {fault!r}, {service_time_ms}"
            )
        self.machine.delay_ns, self.machine.fault = ms_to_ns(service_time_ms), fault

    def kill(self, *, elect: bool = True) -> None:
        """Its process dies, connections close. `elect`: the others lead its partitions at once; otherwise nobody does until `elect()`."""
        self._submit(ModelBroker.kill)
        if elect:
            self._submit(lambda _: self._cluster.elect())

    def start(self) -> None:
        """It lives again, and takes part in what is elected from now on; partitions that nobody leads are given out at once."""
        self._submit(ModelBroker.start)
        self._submit(lambda _: self._cluster.elect())

    def freeze(self) -> None:
        """As by SIGSTOP: it serves nothing, and nothing closes."""
        self._submit(lambda machine: setattr(machine, "frozen", machine.running))

    def thaw(self) -> None:
        """Serve on, first what has come meanwhile."""
        self._submit(lambda machine: setattr(machine, "frozen", False))

    def _submit(self, operation: Callable[[ModelBroker], None]) -> None:
        self._cluster.host.submit(self.handle, operation)

    def __repr__(self) -> str:
        return f"<model broker {self.node_id}{'' if self.running else ', dead'}>"
