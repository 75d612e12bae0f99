"""Fairlead: a Kafka client, a Spark source and an in-process Kafka cluster for Python, built on Arrow columns.

The public names are loaded when first used, so that `import fairlead` costs next to nothing in a Spark worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fairlead.base.errors import (
        BrokerError,
        BufferExhausted,
        ConfigError,
        ConnectionFailed,
        DecodeError,
        FairleadError,
        InvalidRecord,
        ItemsFailed,
        OffsetOutOfRange,
        ProducerFenced,
        RecordTooLarge,
        TimedOut,
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
        NewPartitions,
        NewTopic,
        Producer,
        Record,
        RecordMetadata,
    )
    from fairlead.testing import Cluster

_HOMES = {
    "fairlead.base.errors": (
        "BrokerError",
        "BufferExhausted",
        "ConfigError",
        "ConnectionFailed",
        "DecodeError",
        "FairleadError",
        "InvalidRecord",
        "ItemsFailed",
        "OffsetOutOfRange",
        "ProducerFenced",
        "RecordTooLarge",
        "TimedOut",
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
        "NewPartitions",
        "NewTopic",
        "Producer",
        "Record",
        "RecordMetadata",
    ),
    "fairlead.testing": ("Cluster",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncProducer",
    "BrokerError",
    "BufferExhausted",
    "Cluster",
    "ConfigChange",
    "ConfigError",
    "ConfigResource",
    "ConnectionFailed",
    "Consumer",
    "DecodeError",
    "FairleadError",
    "InvalidRecord",
    "ItemsFailed",
    "NewPartitions",
    "NewTopic",
    "Node",
    "OffsetOutOfRange",
    "Producer",
    "ProducerFenced",
    "Record",
    "RecordMetadata",
    "RecordTooLarge",
    "TimedOut",
    "TopicPartition",
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
