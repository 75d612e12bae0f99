"""Configs of a cluster's replication: leaders, sessions of brokers, numbers of replicas, and
KIP-578's limits."""

from __future__ import annotations

from fairlead_kafka.base.config import LONG_MAX, ConfigKey, ConfigType, at_least, one_of
from fairlead_kafka.base.units import MIB

_T = ConfigType
_BROKER = ("broker",)
_BOTH = ("broker", "topic")

REPLICATION_KEYS = (
    ConfigKey(
        "default.replication.factor",
        _T.INT,
        1,
        "Replicas of a topic that is created without a number.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "unclean.leader.election.enable",
        _T.BOOLEAN,
        False,
        "Where no replica in sync is alive another one may lead: the partition is there again, and what that "
        "one lacks is lost.",
        _BOTH,
        dynamic=True,
    ),
    ConfigKey(
        "replica.lag.time.max.ms",
        _T.LONG,
        30_000,
        "How long a replica may be behind its leader before it counts as out of sync.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "replica.selector.class",
        _T.STRING,
        None,
        "RackAwareReplicaSelector, by its full name: leaders send consumers to a replica in their rack "
        "(KIP-392); null: they do not.",
        _BROKER,
        one_of(
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "org.apache.kafka.common.replica.LeaderSelector",
        ),
        nullable=True,
    ),
    ConfigKey(
        "max.incremental.fetch.session.cache.slots",
        _T.INT,
        1_000,
        "Fetch sessions that a broker keeps (KIP-227); a consumer that gets none names all its partitions in "
        "every fetch.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.wait.max.ms",
        _T.INT,
        500,
        "How long a leader keeps a follower waiting that has everything.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "replica.fetch.backoff.ms",
        _T.INT,
        100,
        "How long a follower waits before it tries a leader again that it could not follow. Kafka waits "
        "1000; here brokers are near.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.max.bytes",
        _T.INT,
        MIB,
        "Most bytes of one partition in a leader's answer to a follower; a batch that is longer goes alone.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "replica.fetch.response.max.bytes",
        _T.INT,
        10 * MIB,
        "Most bytes of records in a leader's answer to a follower.",
        _BROKER,
        at_least(0),
    ),
    ConfigKey(
        "auto.leader.rebalance.enable",
        _T.BOOLEAN,
        True,
        "The controller gives partitions back to their preferred leaders from time to time.",
        _BROKER,
    ),
    ConfigKey(
        "leader.imbalance.check.interval.seconds",
        _T.LONG,
        300,
        "How often the controller looks for partitions that their preferred leader does not lead.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "broker.session.timeout.ms",
        _T.INT,
        9_000,
        "How long a broker in a process of its own may be silent before the controller takes it for gone.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "broker.heartbeat.interval.ms",
        _T.INT,
        2_000,
        "How often a broker in a process of its own tells the controller that it is there.",
        _BROKER,
        at_least(1),
    ),
    ConfigKey(
        "max.partitions",
        _T.LONG,
        LONG_MAX,
        "Most partition replicas that all brokers together may hold, internal topics not counted (KIP-578); "
        "growth beyond is refused.",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
    ConfigKey(
        "max.broker.partitions",
        _T.LONG,
        LONG_MAX,
        "Most partition replicas that one broker may hold, internal topics not counted (KIP-578); growth "
        "beyond is refused.",
        _BROKER,
        at_least(0),
        dynamic=True,
    ),
)
