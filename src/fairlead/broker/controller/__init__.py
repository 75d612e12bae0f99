"""The controller: what the cluster consists of, and the one place where that changes.

Theory of operation. The cluster's metadata (brokers, topics, partitions, leaders, configs, producer ids) is an image: plain data
that everyone may read. It is the fold of a metadata log. Every change is decided by a method of `Controller`, which checks it
against the image, writes one line of records to the log through the injected `append`, and only then applies the records by
`fold.apply`, the same function that replays the log when a cluster starts again: what was replayed cannot differ from what was
lived. Listeners (the brokers) hear of each change after the image has it.

    request ─▶ Controller.create_topic ─▶ check ─▶ records ─▶ append(line) ─▶ apply(image, record) ─▶ listeners
                                        BrokerError                └─ on start: decode_log ─▶ apply ─┘

A line is whole or not there (its CRC says), so a topic never exists by halves. A torn last line was never acknowledged and is
cut; damage before the end is refused. On start the log is replaced by a snapshot of the image: that is its compaction.

Leadership. A partition is led by the first of its replicas, in order of preference, that is in sync and alive. Whenever a leader
changes, stops or starts again, the leader epoch grows, so that clients and followers can tell one reign from the next. A broker
that was replayed is not alive until it starts.

There is one controller, not a quorum; in this release it is a passive object that the brokers of one thread call directly, and
partitions have one replica. `image` (the data and the changes), `fold` (records), `log` (bytes), `placement` (who gets a
partition), `names` (what a topic may be called), `configs` (where a value comes from and what may be set), `controller`.
"""

from fairlead.broker.controller.configs import (
    AlterOperation,
    ConfigAlteration,
    ConfigSource,
    ConfigSynonym,
    DescribedConfig,
    changeable_configs,
    replacing,
)
from fairlead.broker.controller.controller import PRODUCER_ID_BLOCK, Controller, NewTopic
from fairlead.broker.controller.image import (
    CLUSTER_WIDE,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerConfigsChanged,
    BrokerInfo,
    BrokersChanged,
    Change,
    ClusterImage,
    LeadersChanged,
    PartitionImage,
    PartitionsAdded,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead.broker.controller.placement import PARTITIONS_PER_TOPIC_MAX, Assignments, round_robin

__all__ = [
    "AlterOperation",
    "Assignments",
    "BrokerConfigsChanged",
    "BrokerInfo",
    "BrokersChanged",
    "CLUSTER_WIDE",
    "Change",
    "ClusterImage",
    "ConfigAlteration",
    "ConfigSource",
    "ConfigSynonym",
    "Controller",
    "DescribedConfig",
    "INTERNAL_TOPICS",
    "LeadersChanged",
    "NewTopic",
    "OFFSETS_TOPIC",
    "PARTITIONS_PER_TOPIC_MAX",
    "PRODUCER_ID_BLOCK",
    "PartitionImage",
    "PartitionsAdded",
    "TRANSACTIONS_TOPIC",
    "TopicConfigsChanged",
    "TopicCreated",
    "TopicDeleted",
    "TopicImage",
    "changeable_configs",
    "replacing",
    "round_robin",
]
