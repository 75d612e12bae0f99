"""Configs of brokers and topics that Kafka has and the embedded cluster has not, each with the
reason that its user is told."""

from __future__ import annotations

_THROTTLE = "replication is not throttled: all brokers are on one machine"

_CLEANER = "compaction works in bounded steps on the broker's one thread"
_STREAM = "brokers follow each other on one stream of their own for each pair"
_PLACE = "the cluster's launcher decides it"
_TIERED = "there is no tiered storage"
_SHARED_LOG = "a broker keeps one log for all its partitions"
_QUORUM = "there is one controller, not a quorum"
_THREADS = "a broker is one machine on one thread"
_MIRROR_OF_JVM = "plug-in classes are Java's"

UNSUPPORTED = {
    "broker.id": _PLACE,
    "broker.rack": "brokers are told their racks one by one: Cluster(racks=...), or fairlead up --racks",
    "node.id": _PLACE,
    "log.dir": _PLACE,
    "log.dirs": _PLACE,
    "process.roles": _QUORUM,
    "controller.listener.names": _QUORUM,
    "controller.performance.": _QUORUM,
    "controller.quorum.": _QUORUM,
    "controller.socket.timeout.ms": _QUORUM,
    "metadata.log.": _QUORUM,
    "zookeeper.": "there is no ZooKeeper",
    "num.network.threads": _THREADS,
    "num.io.threads": _THREADS,
    "num.recovery.threads.per.data.dir": _THREADS,
    "background.threads": _THREADS,
    "queued.max.requests": _THREADS,
    "replica.fetch.min.bytes": _STREAM,
    "replica.socket.": _STREAM,
    "replica.high.watermark.checkpoint.interval.ms": "high watermarks are kept with the checkpoints of the "
    "log",
    "replica.alter.log.dirs.": "a broker has one log directory",
    "num.replica.fetchers": _STREAM,
    "leader.imbalance.per.broker.percentage": "every partition goes back to its preferred leader, at "
    "whatever share (as in KRaft)",
    "leader.replication.throttled.": _THROTTLE,
    "follower.replication.throttled.": _THROTTLE,
    "transaction.state.log.segment.bytes": _SHARED_LOG,
    "transaction.state.log.load.buffer.size": _SHARED_LOG,
    "transaction.two.phase.commit.enable": "two-phase commit (KIP-939) is not part of this release",
    "add.partitions.to.txn.": "partitions are added by their own requests alone (transaction.version below "
    "2)",
    "sasl.kerberos.": "clients cannot log in by Kerberos here",
    "sasl.login.": "brokers log in at each other by PLAIN, SCRAM or certificates",
    "sasl.server.callback.handler.class": _MIRROR_OF_JVM,
    "ssl.engine.factory.class": _MIRROR_OF_JVM,
    "principal.builder.class": _MIRROR_OF_JVM,
    "delegation.token.": "there are no delegation tokens",
    "quota.producer.default": "Kafka 4 removed it; set producer_byte_rate for the default client-id "
    "(AlterClientQuotas)",
    "quota.consumer.default": "Kafka 4 removed it; set consumer_byte_rate for the default client-id "
    "(AlterClientQuotas)",
    "replication.quota.": _THROTTLE,
    "alter.log.dirs.replication.quota.": "a broker has one log directory",
    "max.connection.creation.rate": "connections are limited by address: connection_creation_rate "
    "(AlterClientQuotas)",
    "client.quota.callback.class": _MIRROR_OF_JVM,
    "create.topic.policy.class.name": _MIRROR_OF_JVM,
    "alter.config.policy.class.name": _MIRROR_OF_JVM,
    "metric.reporters": _MIRROR_OF_JVM,
    "log.cleaner.threads": _CLEANER,
    "log.cleaner.io.": _CLEANER,
    "log.flush.start.offset.checkpoint.interval.ms": "where a partition's log starts is said in the log "
    "itself",
    "segment.ms": "a file is closed when it is full, or little of it is alive; retention does not wait for "
    "it",
    "segment.jitter.ms": "files are not closed by time",
    "log.roll.": "a file is closed when it is full, or little of it is alive; retention does not wait for it",
    "segment.index.bytes": _SHARED_LOG,
    "index.interval.bytes": _SHARED_LOG,
    "log.index.": _SHARED_LOG,
    "preallocate": _SHARED_LOG,
    "log.preallocate": _SHARED_LOG,
    "file.delete.delay.ms": _SHARED_LOG,
    "log.segment.delete.delay.ms": _SHARED_LOG,
    "message.timestamp.difference.max.ms": "Kafka 4 removed it; use message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    "message.format.version": "record batch version 2 is the only format",
    "log.message.format.version": "record batch version 2 is the only format",
    "message.downconversion.enable": "record batch version 2 is the only format",
    "remote.": _TIERED,
    "local.retention.": _TIERED,
    "group.consumer.": "the consumer rebalance protocol (KIP-848) is not part of this release; groups use "
    "the classic one",
    "group.coordinator.": "the consumer rebalance protocol (KIP-848) is not part of this release; groups use "
    "the classic one",
    "group.share.": "share groups are not part of this release",
    "offsets.topic.compression.codec": "committed offsets are stored uncompressed",
    "offsets.topic.segment.bytes": _SHARED_LOG,
    "offsets.load.buffer.size": _SHARED_LOG,
    "socket.send.buffer.bytes": "the operating system's default is used",
    "socket.receive.buffer.bytes": "the operating system's default is used",
}
"""Key, or prefix if it ends in a dot → why it is refused."""
