"""Configs that older releases of Kafka had and Kafka 4 does not have, each with the reason that an
error gives. Configs of Kafka 4.3 without an effect here are in `config_kept`."""

from __future__ import annotations

_ZOOKEEPER = "there is no ZooKeeper"
_FORMAT = "record batch version 2 is the only format"

UNSUPPORTED = {
    "zookeeper.": _ZOOKEEPER,
    "quota.producer.default": "Kafka 4 removed it; set producer_byte_rate for the default client-id "
    "(AlterClientQuotas)",
    "quota.consumer.default": "Kafka 4 removed it; set consumer_byte_rate for the default client-id "
    "(AlterClientQuotas)",
    "leader.imbalance.per.broker.percentage": "every partition goes back to its preferred leader, at "
    "whatever share (as in KRaft)",
    "message.timestamp.difference.max.ms": "Kafka 4 removed it; use message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    "log.message.timestamp.difference.max.ms": "Kafka 4 removed it; use log.message.timestamp.before.max.ms "
    "and log.message.timestamp.after.max.ms",
    "message.format.version": _FORMAT,
    "log.message.format.version": _FORMAT,
    "inter.broker.protocol.version": "brokers and controller are of one release",
    "message.downconversion.enable": _FORMAT,
    "log.message.downconversion.enable": _FORMAT,
}
"""Key, or prefix if it ends in a dot → why it is refused."""
