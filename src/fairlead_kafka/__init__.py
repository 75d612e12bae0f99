"""Fairlead: a Kafka client, a Spark source and an in-process Kafka cluster for Python, built on Arrow columns.

The public names are loaded when first used, so that `import fairlead_kafka` costs next to nothing in a Spark worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlead_kafka.base.errors import (
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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fairlead_kafka' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
