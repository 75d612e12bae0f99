"""Partitioning: which partition each record of a topic goes to, as pure functions of keys, bytes,
loads and rng.

A record's partition is the first of these that exists (`assign_partitions`, a whole column at a
time):

1. the partition its sender gave it;
2. what a custom partitioner answers, if one is configured and does not answer -1;
3. `murmur2(key) & 0x7fffffff % partition_count`, over all partitions, available or not, so that a
   key stays where it is while brokers come and go (`consistent_random`: librdkafka's CRC-32 in
   place of murmur2); with `partitioner.ignore.keys`, and for null keys, there is none;
4. what the unkeyed policy chooses.

Only the fourth has a state, and it is kept in a policy object, one per producer and topic
(`make_policy`). A policy owns no clock, no rng and no queue: sizes in bytes, the accumulator's view
of the partitions (`TopicLoad`) and rng are given to it. There are six:

- `round_robin`: a record to each available partition in turn;
- `sticky` (KIP-480): one partition until a new batch would be created, then another;
- `uniform.kafka` (KIP-794 as Kafka has it): one partition until `batch.size` bytes went there, then
  one drawn evenly;
- `uniform` (KIP-794 as it was meant): the same quanta, but the next one goes to the partition with
  the fewest bytes, which makes up for quanta that were too large, whichever broker is slow;
- `adaptive` (KIP-794, Kafka's default): as Kafka's uniform, but drawn by the queues, shortest
  first, passing over brokers that took nothing for `partitioner.availability.timeout.ms`
  (`TopicLoad.unready`: the producer keeps that);
- `late` (Fairlead's own, the default): no partition until a broker is ready to take a batch, then
  the one of its partitions which is furthest behind.

All but the last bind a record to its partition when it is submitted (`binds_at == "append"`).
`LatePolicy` binds at drain time and has another interface: it is asked for quotas, not for
placements.

Sticky, uniform and adaptive are decided by how batches fill, and that is decided by sizes alone. So
a policy need not be asked for each record: `place` takes the sizes of a whole column, forms their
prefix sum, and finds by binary search where the open batch ends, where the next one does, and where
a quantum does (`filling.Filling`). The answer is a list of runs, a few per batch, so that records
without keys are never touched one by one. Where records are keyed, `counting_sort` groups a column
by partition in two passes and keeps the order of arrival within each.

The simulation agrees with what the accumulator then does, to the byte, if both use the same sizes
and the same limit: `batch.size` less 61 bytes of header. A call with several quanta for every
partition can be answered with one run for each instead (`together`), if they would be sent in
larger batches anyway. Where Kafka's code differs from the KIPs' words, the KIPs' words are
followed, except by `uniform.kafka`; the policies' docstrings have the details.

murmur2 over a column, the partitions of keys and the counting sort are kernels
(`fairlead_kafka.base.kernel`), each with a reference implementation in NumPy.
"""

from fairlead_kafka.partitioning.assignment import assign_partitions, place_unkeyed
from fairlead_kafka.partitioning.byte_counter import ByteCounter
from fairlead_kafka.partitioning.custom import (
    CustomPartitioner,
    OpenBatches,
    is_per_record,
    new_batch_hook,
    per_record,
)
from fairlead_kafka.partitioning.grouping import counting_sort
from fairlead_kafka.partitioning.hashing import keyed_partition, keyed_partitions, murmur2, murmur2_column
from fairlead_kafka.partitioning.late import BrokerView, LatePolicy, Quota, kept_bytes, levelled
from fairlead_kafka.partitioning.load import Placement, Runs, TopicLoad, UnkeyedPolicy, expand
from fairlead_kafka.partitioning.naming import (
    CONSISTENT_RANDOM,
    POLICIES,
    POLICY_NAMES,
    Partitioner,
    deprecation,
    is_kafka_class,
    make_policy,
    resolve_partitioner,
)
from fairlead_kafka.partitioning.round_robin import RoundRobinPolicy
from fairlead_kafka.partitioning.sticky import StickyPolicy
from fairlead_kafka.partitioning.uniform import (
    AdaptivePolicy,
    KafkaUniformPolicy,
    QuantumLimits,
    UniformPolicy,
    cumulative_weights,
    quantum_is_used_up,
    quantum_limits,
)

__all__ = [
    "CONSISTENT_RANDOM",
    "POLICIES",
    "POLICY_NAMES",
    "ByteCounter",
    "AdaptivePolicy",
    "BrokerView",
    "CustomPartitioner",
    "KafkaUniformPolicy",
    "LatePolicy",
    "OpenBatches",
    "Partitioner",
    "Placement",
    "Quota",
    "RoundRobinPolicy",
    "Runs",
    "StickyPolicy",
    "TopicLoad",
    "QuantumLimits",
    "UniformPolicy",
    "UnkeyedPolicy",
    "assign_partitions",
    "counting_sort",
    "cumulative_weights",
    "deprecation",
    "expand",
    "is_kafka_class",
    "is_per_record",
    "keyed_partition",
    "kept_bytes",
    "keyed_partitions",
    "levelled",
    "make_policy",
    "murmur2",
    "murmur2_column",
    "new_batch_hook",
    "per_record",
    "place_unkeyed",
    "resolve_partitioner",
    "quantum_is_used_up",
    "quantum_limits",
]
