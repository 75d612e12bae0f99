"""Fairlead: a Kafka client, a Spark source and an in-process Kafka cluster for Python, built on Arrow columns.

The public names are loaded when first used, so that `import fairlead` costs next to nothing in a Spark worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlead.base.errors import (
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
    from fairlead.base.ids import Node, TopicPartition
    from fairlead.client import (
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
    from fairlead.client.prometheus import PrometheusCollector
    from fairlead.core.group_offsets import GroupMetadata, OffsetAndMetadata
    from fairlead.testing import Cluster

_HOMES = {
    "fairlead.base.errors": (
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
    "fairlead.base.ids": ("Node", "TopicPartition"),
    "fairlead.client": (
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
    "fairlead.client.prometheus": ("PrometheusCollector",),
    "fairlead.core.group_offsets": ("GroupMetadata", "OffsetAndMetadata"),
    "fairlead.testing": ("Cluster",),
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
        raise AttributeError(f"module 'fairlead' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
