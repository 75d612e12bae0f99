"""Fairlead: a Kafka client, a Spark source and an in-process Kafka cluster for Python, built on Arrow columns.

The public names are loaded when first used, so that `import fairlead_kafka` costs next to nothing in a Spark worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlead_kafka.base.errors import (
        AuthenticationFailed,
        BatchRefused,
        BrokerError,
        BufferExhausted,
        ConfigError,
        ConnectionFailed,
        DecodeError,
        FairleadError,
        InvalidRecord,
        ItemsFailed,
        LogTruncated,
        NoBrokerReached,
        OffsetOutOfRange,
        ProducerFenced,
        RecordTooLarge,
        TimedOut,
        TransactionFailed,
        UnsupportedVersion,
        UsageError,
    )
    from fairlead_kafka.base.ids import Node, TopicPartition
    from fairlead_kafka.client import (
        Admin,
        AsyncAdmin,
        AsyncConsumer,
        AsyncProducer,
        ConfigChange,
        ConfigResource,
        Consumer,
        ConsumerInterceptor,
        NewPartitions,
        NewTopic,
        PartitionMetadata,
        PreparedTransaction,
        Producer,
        ProducerInterceptor,
        ProducerRecord,
        RebalanceListener,
        Record,
        RecordMetadata,
    )
    from fairlead_kafka.client.prometheus import PrometheusCollector
    from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata
    from fairlead_kafka.testing import Cluster

_HOMES = {
    "fairlead_kafka.base.errors": (
        "AuthenticationFailed",
        "BatchRefused",
        "BrokerError",
        "BufferExhausted",
        "ConfigError",
        "ConnectionFailed",
        "DecodeError",
        "FairleadError",
        "InvalidRecord",
        "ItemsFailed",
        "LogTruncated",
        "NoBrokerReached",
        "OffsetOutOfRange",
        "ProducerFenced",
        "RecordTooLarge",
        "TimedOut",
        "TransactionFailed",
        "UnsupportedVersion",
        "UsageError",
    ),
    "fairlead_kafka.base.ids": ("Node", "TopicPartition"),
    "fairlead_kafka.client": (
        "Admin",
        "AsyncAdmin",
        "AsyncConsumer",
        "AsyncProducer",
        "ConfigChange",
        "ConfigResource",
        "Consumer",
        "ConsumerInterceptor",
        "NewPartitions",
        "NewTopic",
        "PartitionMetadata",
        "PreparedTransaction",
        "Producer",
        "ProducerInterceptor",
        "ProducerRecord",
        "RebalanceListener",
        "Record",
        "RecordMetadata",
    ),
    "fairlead_kafka.client.prometheus": ("PrometheusCollector",),
    "fairlead_kafka.core.group_offsets": ("GroupMetadata", "OffsetAndMetadata"),
    "fairlead_kafka.testing": ("Cluster",),
}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "AuthenticationFailed",
    "BatchRefused",
    "BrokerError",
    "BufferExhausted",
    "Cluster",
    "ConfigChange",
    "ConfigError",
    "ConfigResource",
    "ConnectionFailed",
    "Consumer",
    "ConsumerInterceptor",
    "DecodeError",
    "FairleadError",
    "GroupMetadata",
    "InvalidRecord",
    "ItemsFailed",
    "LogTruncated",
    "NoBrokerReached",
    "NewPartitions",
    "NewTopic",
    "Node",
    "OffsetAndMetadata",
    "OffsetOutOfRange",
    "PartitionMetadata",
    "PreparedTransaction",
    "Producer",
    "ProducerFenced",
    "ProducerInterceptor",
    "ProducerRecord",
    "PrometheusCollector",
    "RebalanceListener",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "TimedOut",
    "TopicPartition",
    "TransactionFailed",
    "UnsupportedVersion",
    "UsageError",
    "__version__",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
