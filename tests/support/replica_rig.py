"""Three brokers in virtual time with one replicated topic, and what a test wants to know of its
replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker import Broker
from fairlead_kafka.broker.controller import PartitionImage
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.records import scan
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.virtual_cluster import Asked, VirtualCluster

TOPIC = "events"
EVENTS = TopicPartition(TOPIC, 0)


class ReplicaRig(VirtualCluster):
    """`EVENTS` has a replica on each broker, broker 0 preferred."""

    def __init__(
        self, configs: dict[str, str] | None = None, brokers: int = 3, config: dict[str, Any] | None = None
    ) -> None:
        super().__init__(brokers, config)
        self._lanes = 0
        self.controller.create_topic(TOPIC, assignments={0: list(range(brokers))}, configs=configs or {})
        self.host.advance(10)

    @property
    def image(self) -> PartitionImage:
        found = self.controller.image.partition(*EVENTS)
        assert found is not None
        return found

    def sync(self) -> set[int]:
        """The replicas in sync."""
        return set(self.image.isr)

    def until(self, predicate: Callable[[], object], within_ms: float = 5_000) -> None:
        assert self.host.run_until(predicate, within_ms), (
            f"it did not come to be within {within_ms} ms: {self.image}"
        )

    # --- Producing

    def sending(
        self,
        *values: bytes,
        acks: int = -1,
        node_id: int | None = None,
        timeout_ms: int = 1_000,
        **options: Any,
    ) -> Asked:
        """A Produce request under way to the leader, or to another broker, on a connection of its
        own."""
        self._lanes += 1
        fields = produce_fields({tuple(EVENTS): batch(list(values), **options)}, acks) | {
            "timeout_ms": timeout_ms
        }
        return self.send(
            self.image.leader if node_id is None else node_id, ApiKey.PRODUCE, 9, self._lanes, **fields
        )

    def answered(self, asked: Asked) -> Message:
        """Its row."""
        self.until(lambda: asked.answer is not None or asked.lost)
        assert asked.answer is not None, "the connection was lost"
        row: Message = asked.answer.responses[0].partition_responses[0]
        return row

    def put(self, *values: bytes, **options: Any) -> int:
        """Produce one batch; the error code."""
        return int(self.answered(self.sending(*values, **options)).error_code)

    def must_put(self, *values: bytes, **options: Any) -> None:
        code = self.put(*values, **options)
        assert code == ErrorCode.NONE, code

    # --- Brokers

    def cut(self, *node_ids: int) -> None:
        """Nothing gets through between these brokers."""
        for one in node_ids:
            for other in node_ids:
                if one < other:
                    self.host.link(self.handles[one], self.handles[other]).cut()

    def heal(self, *node_ids: int) -> None:
        for one in node_ids:
            for other in node_ids:
                if one < other:
                    self.host.link(self.handles[one], self.handles[other]).heal()

    def heal_all(self) -> None:
        self.heal(*self.brokers)

    def replica(self, node_id: int) -> Partition:
        """A broker's own log of the partition."""
        return replica_of(self.brokers[node_id])

    def batches(self, node_id: int) -> list[tuple[int, int, int]]:
        """(base offset, leader epoch, CRC) of each batch in a broker's log, from its beginning."""
        log, found = self.replica(node_id), list[Any]()
        locations = log.select(0, log.log_end, 1 << 30, at_least_one=True)
        self.brokers[node_id].logs.read(locations, found.append)
        self.host.wake(self.handles[node_id])
        self.until(lambda: found)
        headers = [scan(bytes(data))[0] for data in found[0]]
        return [(header.base_offset, header.partition_leader_epoch, header.crc) for header in headers]

    def ends(self) -> dict[int, int]:
        """Where each running broker's log ends."""
        return {node_id: self.replica(node_id).log_end for node_id in sorted(self.brokers)}

    def check(self) -> None:
        """Everything that brokers keep twice is the same."""
        for broker in self.brokers.values():
            broker.logs.check()
            broker.replication.check()

    def level(self) -> bool:
        """All brokers run, are in sync, and have the same."""
        return self.sync() == set(self.brokers) and len(set(self.ends().values())) == 1


def replica_of(broker: Broker) -> Partition:
    topic = broker.controller.image.topics[TOPIC]
    return broker.logs.partition(topic.topic_id, EVENTS.partition)
