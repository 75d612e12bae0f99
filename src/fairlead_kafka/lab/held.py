"""Contents of a topic's partitions: records, batches and bytes, counted in the batches that a
broker returns.

So the figures are comparable for all clients, as they do not depend on a client's own metrics: a
partition's bytes are those of its batches on the wire and in the log, headers of 61 bytes included,
which is what KIP-794 sets out to spread evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from fairlead_kafka.base.ids import NO_LEADER, TopicPartition
from fairlead_kafka.client import Admin, Consumer

TIMEOUT_S = 30.0


@dataclass
class Held:
    """Contents of one partition, or a sum over several."""

    leader: int = NO_LEADER
    records: int = 0
    batches: int = 0
    size_bytes: int = 0


def held(bootstrap_servers: str, topic: str) -> list[Held]:
    """Contents of each partition, by number; zeros for a partition without a living leader.

    Raises what `Consumer.read_batches` raises.
    """
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        living = {node.node_id for node in admin.describe_cluster().nodes}
        found = [Held(partition.leader) for partition in admin.describe_topics([topic])[topic].partitions]
    readable = [TopicPartition(topic, number) for number, one in enumerate(found) if one.leader in living]
    with Consumer({"bootstrap.servers": bootstrap_servers}) as consumer:
        starts, ends = consumer.beginning_offsets(readable), consumer.end_offsets(readable)
        for partition in readable:
            total = found[partition.partition]
            for table in consumer.read_batches(partition, starts[partition], ends[partition], TIMEOUT_S):
                total.batches += table.num_rows
                total.records += pc.sum(table["records"]).as_py()
                total.size_bytes += pc.sum(table["size_bytes"]).as_py()
    return found


def by_broker(partitions: list[Held], brokers: int) -> list[Held]:
    """Sums of partitions for each leader, brokers 0 and on."""
    sums = [Held(node_id) for node_id in range(brokers)]
    for partition in partitions:
        if partition.leader != NO_LEADER:
            total = sums[partition.leader]
            total.records += partition.records
            total.batches += partition.batches
            total.size_bytes += partition.size_bytes
    return sums
