"""`ProduceCluster`: model brokers on a virtual host, their common log, and switches for faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.runtime import Handle, VirtualHost
from fairlead_kafka.simulation.model_apis import ModelApis
from fairlead_kafka.simulation.model_broker import FAULTS, SERIAL, ModelBroker
from fairlead_kafka.simulation.model_cluster import PORT, OnProduce, OnRequest
from fairlead_kafka.simulation.model_log import NOWHERE, ModelLog, ModelPartition
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.wire import ApiKey

NAME = "broker"
"""Name of every cluster, with which those of its brokers begin."""


class ProduceCluster:
    """`brokers` model brokers, numbered from 0, at `broker-0:9092` and so on.

    Every broker can lead every partition: the log is one (`log`). With `keeps_records` the records
    written can be read back from it; without, only headers are kept, so that long runs need no
    memory. `forgetful` brokers answer as those before Kafka 2.5. `rng` draws random times
    (`replicate_within`, `mark_within`).
    """

    def __init__(
        self,
        host: VirtualHost,
        brokers: int = 3,
        *,
        keeps_records: bool = False,
        forgetful: bool = False,
        max_message_bytes: int = 1_048_588,
        rng: Rng | None = None,
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"brokers: a cluster needs 1 or more, got {brokers}")
        self.host = host
        self.name = NAME
        self.log = ModelLog()
        self.apis = ModelApis(self)
        self.keeps_records = keeps_records
        self.forgetful = forgetful
        self.max_message_bytes = max_message_bytes
        self.first_epoch = 0
        """The epoch that new producer ids begin with."""
        self.metadata_lag_ns = 0
        """Ns after a leader change in which other brokers still name the previous leader."""
        self.on_produce: OnProduce | None = None
        self.on_request: OnRequest | None = None
        self.script = Script(host)
        """Events of the cluster itself: transaction timeouts, markers."""
        self._rng = rng
        self._replication_ns = 0
        self._markers_ms = 0.0
        self.machines = [ModelBroker(self, self.apis, node_id) for node_id in range(brokers)]
        self._handles = [BrokerHandle(self, machine, host.add(machine)) for machine in self.machines]

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all brokers, for `bootstrap.servers`."""
        return ",".join(f"{machine.name}:{PORT}" for machine in self.machines)

    @property
    def brokers(self) -> list[BrokerHandle]:
        """All brokers, by id."""
        return list(self._handles)

    def broker(self, node_id: int) -> BrokerHandle:
        """The broker with this id, counted from 0. UsageError if there is none."""
        if not 0 <= node_id < len(self._handles):
            raise UsageError(f"there is no broker {node_id}; this cluster has 0 to {len(self._handles) - 1}")
        return self._handles[node_id]

    def create_topic(self, name: str, partitions: int, leaders: Sequence[int] | None = None) -> None:
        """Create a topic; `leaders` has a node id for each partition, None assigns them in turn.

        UsageError if they do not fit or the name exists.
        """
        given = (
            [index % len(self.machines) for index in range(partitions)] if leaders is None else list(leaders)
        )
        if len(given) != partitions or name in self.log.topics:
            raise UsageError(
                f"topic {name!r}: needs a new name, and {partitions} leaders for its partitions, got "
                f"{len(given)}"
            )
        self.log.create(name, given)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions up to `partitions`, with leaders in turn."""
        own = self.log.topics[topic].partitions
        own += [ModelPartition(index % len(self.machines)) for index in range(len(own), partitions)]

    def bytes_by_partition(self, topic: str) -> list[int]:
        """Bytes written to each partition, batch headers included."""
        return [partition.size_bytes for partition in self.log.topics[topic].partitions]

    def move(self, topic: str, partition: int, node_id: int, *, truncate: bool = False) -> int:
        """Make another broker the leader, at once.

        Returns the number of records lost.

        `truncate`: the new leader had not replicated the records that were not acknowledged yet.
        """
        entry = self.log.topics[topic].partitions[partition]
        lost = entry.truncate() if truncate else 0
        entry.lead(node_id, self.host.now_ns())
        return lost

    def elect(self) -> None:
        """Give every partition whose leader is dead to the next living broker by number; to none if
        all are dead."""
        count = len(self.machines)
        for topic, index, partition in self.log.each():
            if partition.leader == NOWHERE or not self.machines[partition.leader].running:
                nearest = [(max(partition.leader, index) + step) % count for step in range(count)]
                leader = next((node_id for node_id in nearest if self.machines[node_id].running), NOWHERE)
                if leader != partition.leader:
                    self.move(topic, index, leader)

    def replicate_within(self, most_ms: float) -> None:
        """Make answers to acks=all wait for other brokers from now on, for a random time of up to
        `most_ms` milliseconds; 0: they do not wait.

        UsageError for a cluster without an rng.
        """
        if most_ms and self._rng is None:
            raise UsageError(
                "how long replication takes is left to chance: make the cluster with ProduceCluster(rng=...)"
            )
        self._replication_ns = ms_to_ns(most_ms)

    # For the brokers

    def replication_ns(self) -> int:
        """Time that the answer to one request waits for other brokers, ns."""
        if not self._replication_ns or self._rng is None:
            return 0
        return int(self._rng.random() * self._replication_ns)

    def mark_within(self, most_ms: float) -> None:
        """Have the markers of a transaction that ends written within `most_ms` milliseconds; 0: at
        once."""
        self._markers_ms = most_ms

    def markers_ms(self) -> float:
        """Time until the markers of one transaction are written, ms."""
        return self._markers_ms if self._rng is None else self._markers_ms * self._rng.random()

    def coordinator_error(self, node_id: int, api_key: ApiKey) -> int:
        """The error code that a script wants for this request, or 0."""
        return 0 if self.on_request is None else self.on_request(node_id, api_key)


class BrokerHandle:
    """One broker of a `ProduceCluster`, and the faults that can be set on it. Faults take effect
    when virtual time next goes on."""

    def __init__(self, cluster: ProduceCluster, machine: ModelBroker, handle: Handle) -> None:
        self.machine = machine
        self.handle = handle
        self._cluster = cluster

    @property
    def node_id(self) -> int:
        """The broker's id."""
        return self.machine.node_id

    @property
    def running(self) -> bool:
        """True unless the broker was killed."""
        return self.machine.running

    def takes(self, request_ms: float, batch_ms: float = 0.0) -> None:
        """Set the service time: `request_ms` for a Produce request and `batch_ms` for each batch in
        it; 0, as at first: none.

        A connection is served one request after another, as by Kafka.
        """
        self.machine.request_ns, self.machine.batch_ns = ms_to_ns(request_ms), ms_to_ns(batch_ms)

    def stalls(self, share: float, duration_ms: float, rng: Random) -> None:
        """Make this share of all Produce requests take `duration_ms` longer, drawn from `rng`;
        share 0: none.
        """
        self.machine.stall_share, self.machine.stall_ns, self.machine.stall_rng = (
            share,
            ms_to_ns(duration_ms),
            rng,
        )

    def slow(self, service_time_ms: float = 0.0, fault: str = SERIAL) -> None:
        """Make each Produce request take `service_time_ms` longer; 0 heals it.

        `fault` "serial": a connection is served one request after another, as with KIP-794's sleep
        in the broker; "latency": every answer comes that much later, all of them concurrently.
        ConfigError for another fault or a negative time.
        """
        if fault not in FAULTS or service_time_ms < 0:
            raise ConfigError(
                f"slow: the fault must be one of {', '.join(FAULTS)} and the time 0 or more, got {fault!r}, "
                f"{service_time_ms}"
            )
        self.machine.delay_ns, self.machine.fault = ms_to_ns(service_time_ms), fault

    def kill(self, *, elect: bool = True) -> None:
        """Kill the broker's process; connections close.

        `elect`: other brokers lead its partitions at once; otherwise nobody does until `elect()`.
        """
        self._submit(ModelBroker.kill)
        if elect:
            self._submit(lambda _: self._cluster.elect())

    def start(self) -> None:
        """Start the broker again.

        It takes part in later elections, and partitions without a leader get one at once.
        """
        self._submit(ModelBroker.start)
        self._submit(lambda _: self._cluster.elect())

    def freeze(self) -> None:
        """Freeze the broker, as SIGSTOP does: it serves nothing, and nothing closes."""
        self._submit(lambda machine: setattr(machine, "frozen", machine.running))

    def thaw(self) -> None:
        """Let a frozen broker go on, first with the requests that have come meanwhile."""
        self._submit(lambda machine: setattr(machine, "frozen", False))

    def _submit(self, operation: Callable[[ModelBroker], None]) -> None:
        self._cluster.host.submit(self.handle, operation)

    def __repr__(self) -> str:
        return f"<model broker {self.node_id}{'' if self.running else ', dead'}>"
