"""Configs without an effect here: groups of the newer protocols and their coordinators; Kafka's
keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import INT_MAX, ConfigType, at_least
from fairlead_kafka.base.config_kept import false_only, kept, of_no_effect

_T = ConfigType

_COORDINATOR = "a coordinator is a part of its broker's one thread"
_STATE_TOPIC = "a broker has one log for all partitions, and coordinators write what is small as it is"
_PERSISTER = "state is with the share coordinator, and nowhere else"
_STREAMS = "streams groups (KIP-1071) are not part of this release; Kafka Streams uses classic groups"
_TRANSACTIONS = "partitions are added by their own requests alone (transaction.version below 2)"
_TWO_PHASE = "two-phase commit (KIP-939) is not part of this release"

GROUPS_KEPT = (
    *of_no_effect(
        _COORDINATOR,
        kept(
            "group.coordinator.append.linger.ms",
            _T.INT,
            -1,
            "How long a coordinator gathers writes; -1: as it finds best.",
            at_least(-1),
        ),
        kept(
            "group.coordinator.background.threads",
            _T.INT,
            2,
            "Threads of the coordinator for work in the background.",
            at_least(1),
        ),
        kept(
            "group.coordinator.cached.buffer.max.bytes",
            _T.INT,
            1_048_588,
            "Size of the buffer that the coordinator keeps for the next write.",
            at_least(524_288),
            dynamic="cluster-wide",
        ),
        kept("group.coordinator.threads", _T.INT, 4, "Threads of the coordinator.", at_least(1)),
    ),
    *of_no_effect(
        _COORDINATOR,
        kept(
            "share.coordinator.append.linger.ms",
            _T.INT,
            -1,
            "How long a share coordinator gathers writes; -1: as it finds best.",
            at_least(-1),
        ),
        kept(
            "share.coordinator.cached.buffer.max.bytes",
            _T.INT,
            1_048_588,
            "Size of the buffer that it keeps for the next write.",
            at_least(524_288),
            dynamic="cluster-wide",
        ),
        kept(
            "share.coordinator.load.buffer.size",
            _T.INT,
            5_242_880,
            "Bytes read at a time when its state is loaded.",
            at_least(1),
        ),
        kept("share.coordinator.threads", _T.INT, 1, "Threads of a share coordinator.", at_least(1)),
    ),
    *of_no_effect(
        _STATE_TOPIC,
        kept(
            "share.coordinator.state.topic.compression.codec",
            _T.INT,
            0,
            "How its topic is compressed; 0: not.",
        ),
        kept(
            "share.coordinator.state.topic.segment.bytes",
            _T.INT,
            104_857_600,
            "Segment size of its topic.",
            at_least(1),
        ),
    ),
    *of_no_effect(
        _PERSISTER,
        kept(
            "group.share.persister.class.name",
            _T.STRING,
            "org.apache.kafka.server.share.persister.DefaultStatePersister",
            "The class that keeps the state of share groups.",
            unlisted=True,
        ),
    ),
    *of_no_effect(
        _STREAMS,
        kept(
            "group.streams.assignment.interval.ms",
            _T.INT,
            1_000,
            "How long a streams group keeps an assignment at least.",
            at_least(0),
            dynamic="cluster-wide",
        ),
        kept(
            "group.streams.heartbeat.interval.ms",
            _T.INT,
            5_000,
            "How often members are told to send heartbeats.",
            at_least(1),
        ),
        kept(
            "group.streams.initial.rebalance.delay.ms",
            _T.INT,
            3_000,
            "How long a new group waits for more members.",
            at_least(0),
        ),
        kept(
            "group.streams.max.assignment.interval.ms",
            _T.INT,
            15_000,
            "Greatest streams.assignment.interval.ms of a group.",
            at_least(0),
        ),
        kept(
            "group.streams.max.heartbeat.interval.ms",
            _T.INT,
            15_000,
            "Greatest streams.heartbeat.interval.ms of a group.",
            at_least(1),
        ),
        kept(
            "group.streams.max.session.timeout.ms",
            _T.INT,
            60_000,
            "Greatest streams.session.timeout.ms of a group.",
            at_least(1),
        ),
        kept("group.streams.max.size", _T.INT, INT_MAX, "Most members of a streams group.", at_least(1)),
        kept(
            "group.streams.max.standby.replicas",
            _T.INT,
            2,
            "Greatest streams.num.standby.replicas of a group.",
            at_least(0),
        ),
        kept(
            "group.streams.min.assignment.interval.ms",
            _T.INT,
            0,
            "Least streams.assignment.interval.ms of a group.",
            at_least(0),
        ),
        kept(
            "group.streams.min.heartbeat.interval.ms",
            _T.INT,
            5_000,
            "Least streams.heartbeat.interval.ms of a group.",
            at_least(1),
        ),
        kept(
            "group.streams.min.session.timeout.ms",
            _T.INT,
            45_000,
            "Least streams.session.timeout.ms of a group.",
            at_least(1),
        ),
        kept("group.streams.num.standby.replicas", _T.INT, 0, "Standby tasks of each task.", at_least(0)),
        kept(
            "group.streams.session.timeout.ms",
            _T.INT,
            45_000,
            "How long a member may be silent before it is out.",
            at_least(1),
        ),
    ),
    *of_no_effect(
        _TRANSACTIONS,
        kept(
            "add.partitions.to.txn.retry.backoff.max.ms",
            _T.INT,
            100,
            "How long a broker waits at most before it asks a coordinator again.",
            at_least(0),
        ),
        kept(
            "add.partitions.to.txn.retry.backoff.ms",
            _T.INT,
            20,
            "How long a broker waits before it asks a coordinator again.",
            at_least(1),
        ),
    ),
    *of_no_effect(
        _TWO_PHASE,
        kept(
            "transaction.two.phase.commit.enable",
            _T.BOOLEAN,
            False,
            "Producers may keep a transaction open for as long as they like.",
            false_only(_TWO_PHASE),
        ),
    ),
)
