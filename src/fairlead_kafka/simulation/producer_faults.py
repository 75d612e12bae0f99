"""Faults around model brokers, injected on a `ProduceCluster`."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.runtime import Handle
from fairlead_kafka.simulation.fault_plan import FATAL, RETRIABLE, Fault
from fairlead_kafka.simulation.faults import End, Faults, Scene
from fairlead_kafka.simulation.model_cluster import Refusal
from fairlead_kafka.simulation.produce_cluster import ProduceCluster
from fairlead_kafka.wire import ApiKey

KINDS = (
    "cut", "cut", "markers", "reset", "reset", "weather", "weather", "slow", "freeze", "kill", "kill", "move",
    "move", "replication",
    "replication", "refusals", "refusals", "refusals", "troubles", "small batches", "metadata lag", "forget",
    "grow",
)  # fmt: skip
"""Kinds of faults around producers, the commonest ones twice."""
PARTITIONS_MAX = 8
_COORDINATOR_ERRORS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class ProducerFaults(Faults):
    """Injects the faults of world `producer`."""

    def __init__(self, scene: Scene, cluster: ProduceCluster) -> None:
        super().__init__(scene)
        self._cluster = cluster
        self._refused_share = 0.0
        self._refused_with: Sequence[tuple[int, bool]] = ()
        self._coordinator_error_share = 0.0
        self._max_message_bytes = cluster.max_message_bytes
        self._copies_linger = False
        """True if a copy of a batch may be under way after its producer was done with it."""
        cluster.on_produce = self._on_produce
        cluster.on_request = self._on_request

    def broker_handles(self) -> Sequence[Handle]:
        """Handles of the brokers, which are the same machines throughout."""
        return [broker.handle for broker in self._cluster.brokers]

    def heal(self) -> None:
        """End all faults."""
        super().heal()
        cluster = self._cluster
        for broker in cluster.brokers:
            broker.thaw()
            broker.start()
            broker.slow(0.0)
        cluster.replicate_within(0.0)
        cluster.mark_within(0.0)
        cluster.metadata_lag_ns = 0
        cluster.max_message_bytes = self._max_message_bytes
        self._refused_share = self._coordinator_error_share = 0.0

    def _begin(self, fault: Fault) -> None:
        self._copies_linger = self._copies_linger or fault.kind in ("cut", "weather", "slow", "freeze")
        super()._begin(fault)

    def _slow(self, fault: Fault) -> End:
        broker = self._cluster.broker(fault.what["broker"])
        broker.slow(fault.what["ms"], fault.what["fault"])
        return lambda: broker.slow(0.0)

    def _freeze(self, fault: Fault) -> End:
        broker = self._cluster.broker(fault.what["broker"])
        broker.freeze()
        return broker.thaw

    def _kill(self, fault: Fault) -> End:
        broker = self._cluster.broker(fault.what["broker"])
        broker.kill(elect=fault.what["elect"])
        return broker.start

    def _move(self, fault: Fault) -> None:
        to = fault.what["broker"]
        if self._cluster.broker(to).running:
            self._cluster.move(
                fault.what["topic"], fault.what["partition"], to, truncate=fault.what["truncate"]
            )

    def _replication(self, fault: Fault) -> End:
        self._cluster.replicate_within(fault.what["most_ms"])
        return lambda: self._cluster.replicate_within(0.0)

    def _markers(self, fault: Fault) -> End:
        self._cluster.mark_within(fault.what["most_ms"])
        return lambda: self._cluster.mark_within(0.0)

    def _refusals(self, fault: Fault) -> End:
        self._refused_share, self._refused_with = (
            fault.what["share"],
            FATAL if fault.what["fatal"] else RETRIABLE,
        )
        return lambda: setattr(self, "_refused_share", 0.0)

    def _troubles(self, fault: Fault) -> End:
        self._coordinator_error_share = fault.what["share"]
        return lambda: setattr(self, "_coordinator_error_share", 0.0)

    def _small_batches(self, fault: Fault) -> End:
        self._cluster.max_message_bytes = fault.what["bytes"]
        return lambda: setattr(self._cluster, "max_message_bytes", self._max_message_bytes)

    def _metadata_lag(self, fault: Fault) -> End:
        self._cluster.metadata_lag_ns = ms_to_ns(fault.what["ms"])
        return lambda: setattr(self._cluster, "metadata_lag_ns", 0)

    def _forget(self, fault: Fault) -> None:
        """Expire producer state, as `producer.id.expiration.ms` does.

        Done only while no batch is in flight: in a real cluster it takes a day without any.
        """
        if not self._copies_linger and not any(
            application.machine.records_open or application.inbox.items for application in self.applications
        ):
            for _, _, partition in self._cluster.log.each():
                partition.producers.clear()

    def _grow(self, fault: Fault) -> None:
        own = self._cluster.log.topics[fault.what["topic"]].partitions
        if len(own) < PARTITIONS_MAX:
            self._cluster.grow(fault.what["topic"], len(own) + 1)

    # Called by the brokers

    def _on_produce(self, node_id: int, topic: str, partition: int, header: BatchHeader) -> Refusal | None:
        if not self._refused_share or self._rng.random() >= self._refused_share:
            return None
        return Refusal(*self._rng.choice(list(self._refused_with)))

    def _on_request(self, node_id: int, api_key: ApiKey) -> int:
        if not self._coordinator_error_share or self._rng.random() >= self._coordinator_error_share:
            return 0
        codes: dict[int, tuple[int, ...]] = {
            ApiKey.METADATA: (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ApiKey.INIT_PRODUCER_ID: (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ),
        }
        return self._rng.choice(codes.get(api_key, _COORDINATOR_ERRORS))
