"""Configs without an effect here: a broker's log on disk, replication, and the quorum of
controllers; Kafka's keys and defaults (release 4.3)."""

from __future__ import annotations

import sys

from fairlead_kafka.base.config import LONG_MAX, ConfigType, all_of, at_least
from fairlead_kafka.base.config_kept import empty_only, kept, of_no_effect

_T = ConfigType

_SHARED = "a broker keeps one log for all its partitions"
_CLOSED = (
    "a file is closed when it is full, or little of it is alive; retention and compaction do not wait for it"
)
_CHECKPOINT = "where a partition starts and how far it is replicated is kept with the checkpoints of the log"
_CLEANER = "compaction works in bounded steps on the broker's one thread"
_EXPIRED = "producers are forgotten as their partitions are looked at"
_PLAIN = "internal topics are written uncompressed"
_STREAM = "brokers follow each other on one stream of their own for each pair"
_THROTTLE = "replication is not throttled: all brokers are on one machine"
_ONE_DIR = "a broker has one log directory"
_QUORUM = "there is one controller, in the launcher's process, not a quorum"
_UNCLEAN = "unclean elections come as soon as nobody else is left, or their config is set"

LOG_KEPT = (
    *of_no_effect(
        _SHARED,
        kept(
            "log.index.interval.bytes",
            _T.INT,
            4_096,
            "Bytes of records between two entries of an index.",
            at_least(0),
            dynamic="cluster-wide",
        ),
        kept(
            "log.index.size.max.bytes",
            _T.INT,
            10_485_760,
            "Size of an index at most.",
            at_least(4),
            dynamic="cluster-wide",
        ),
        kept(
            "log.preallocate", _T.BOOLEAN, False, "Allocate a segment's file at once.", dynamic="cluster-wide"
        ),
        kept(
            "log.segment.delete.delay.ms",
            _T.LONG,
            60_000,
            "How long the file of a deleted segment stays.",
            at_least(0),
            dynamic="cluster-wide",
        ),
        kept(
            "log.initial.task.delay.ms",
            _T.LONG,
            30_000,
            "How long after the start a log is first looked after.",
            at_least(0),
            unlisted=True,
        ),
        kept(
            "offsets.load.buffer.size",
            _T.INT,
            5_242_880,
            "Bytes read at a time when offsets are loaded.",
            at_least(1),
        ),
        kept(
            "offsets.topic.segment.bytes",
            _T.INT,
            104_857_600,
            "Segment size of the topic that keeps committed offsets.",
            at_least(1),
        ),
        kept(
            "transaction.state.log.load.buffer.size",
            _T.INT,
            5_242_880,
            "Bytes read at a time when transactions are loaded.",
            at_least(1),
        ),
        kept(
            "transaction.state.log.segment.bytes",
            _T.INT,
            104_857_600,
            "Segment size of the topic that keeps transactions.",
            at_least(1),
        ),
    ),
    *of_no_effect(
        _CLOSED,
        kept(
            "log.roll.hours",
            _T.INT,
            168,
            "Hours after which a segment is closed, if log.roll.ms is null.",
            at_least(1),
        ),
        kept(
            "log.roll.jitter.hours",
            _T.INT,
            0,
            "Hours by which that is brought forward at most, by chance.",
            at_least(0),
        ),
        kept(
            "log.roll.jitter.ms",
            _T.LONG,
            None,
            "The same in milliseconds; null: log.roll.jitter.hours decides.",
            dynamic="cluster-wide",
        ),
        kept(
            "log.roll.ms",
            _T.LONG,
            None,
            "Milliseconds after which a segment is closed; null: log.roll.hours decides.",
            dynamic="cluster-wide",
        ),
    ),
    *of_no_effect(
        _CHECKPOINT,
        kept(
            "log.flush.start.offset.checkpoint.interval.ms",
            _T.INT,
            60_000,
            "How often starts of partitions are written down.",
            at_least(0),
        ),
        kept(
            "replica.high.watermark.checkpoint.interval.ms",
            _T.LONG,
            5_000,
            "How often high watermarks are written down.",
        ),
    ),
    *of_no_effect(
        _CLEANER,
        kept(
            "log.cleaner.io.buffer.load.factor",
            _T.DOUBLE,
            0.9,
            "How full the table of keys may be, as a share.",
            dynamic="cluster-wide",
        ),
        kept(
            "log.cleaner.io.buffer.size",
            _T.INT,
            524_288,
            "Bytes of the cleaners' buffers.",
            at_least(0),
            dynamic="cluster-wide",
        ),
        kept(
            "log.cleaner.io.max.bytes.per.second",
            _T.DOUBLE,
            sys.float_info.max,
            "Bytes that cleaners read and write in a second at most.",
            dynamic="cluster-wide",
        ),
        kept("log.cleaner.threads", _T.INT, 1, "Threads that compact.", at_least(0), dynamic="cluster-wide"),
    ),
    *of_no_effect(
        _EXPIRED,
        kept(
            "producer.id.expiration.check.interval.ms",
            _T.INT,
            600_000,
            "How often expired producers are looked for.",
            at_least(1),
            unlisted=True,
        ),
    ),
    *of_no_effect(
        _PLAIN,
        kept(
            "offsets.topic.compression.codec",
            _T.INT,
            0,
            "How the topic that keeps committed offsets is compressed; 0: not.",
        ),
    ),
    *of_no_effect(
        _STREAM,
        kept(
            "num.replica.fetchers",
            _T.INT,
            1,
            "Threads that fetch from one leader.",
            at_least(1),
            dynamic="cluster-wide",
        ),
        kept("replica.fetch.min.bytes", _T.INT, 1, "Least bytes of a leader's answer to a follower."),
        kept("replica.socket.timeout.ms", _T.INT, 30_000, "How long a follower waits for a leader's answer."),
        kept(
            "follower.fetch.last.tiered.offset.enable",
            _T.BOOLEAN,
            False,
            "An empty follower begins where tiered records end (KIP-1023).",
            dynamic="cluster-wide",
        ),
    ),
    *of_no_effect(
        _THROTTLE,
        kept(
            "leader.replication.throttled.rate",
            _T.LONG,
            LONG_MAX,
            "Bytes a second that a leader sends to throttled followers.",
            at_least(0),
            dynamic="cluster-wide",
            unlisted=True,
        ),
        kept(
            "follower.replication.throttled.rate",
            _T.LONG,
            LONG_MAX,
            "Bytes a second that a throttled follower takes.",
            at_least(0),
            dynamic="cluster-wide",
            unlisted=True,
        ),
        kept(
            "replication.quota.window.num",
            _T.INT,
            11,
            "Samples that the rate of replication is measured over.",
            at_least(1),
        ),
        kept("replication.quota.window.size.seconds", _T.INT, 1, "How long each of them is.", at_least(1)),
    ),
    *of_no_effect(
        _ONE_DIR,
        kept(
            "alter.log.dirs.replication.quota.window.num",
            _T.INT,
            11,
            "Samples that the rate of moves between log directories is measured over.",
            at_least(1),
        ),
        kept(
            "alter.log.dirs.replication.quota.window.size.seconds",
            _T.INT,
            1,
            "How long each of them is.",
            at_least(1),
        ),
        kept(
            "cordoned.log.dirs",
            _T.LIST,
            (),
            "Log directories that get no more replicas (KIP-1066).",
            empty_only(_ONE_DIR),
            dynamic="per-broker",
        ),
        kept(
            "num.replica.alter.log.dirs.threads",
            _T.INT,
            None,
            "Threads that move replicas between log directories.",
        ),
        kept(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            _T.LONG,
            LONG_MAX,
            "Bytes a second of such moves.",
            at_least(0),
            dynamic="cluster-wide",
            unlisted=True,
        ),
    ),
    *of_no_effect(
        _QUORUM,
        kept("controller.listener.names", _T.LIST, (), "Listeners of controllers."),
        kept(
            "controller.performance.always.log.threshold.ms",
            _T.LONG,
            2_000,
            "Events of the controller that take longer are logged.",
            at_least(0),
            unlisted=True,
        ),
        kept(
            "controller.performance.sample.period.ms",
            _T.LONG,
            60_000,
            "How often slow events of the controller are logged.",
            at_least(100),
            unlisted=True,
        ),
        kept(
            "controller.quorum.append.linger.ms",
            _T.INT,
            25,
            "How long a leading controller gathers writes.",
            at_least(0),
        ),
        kept(
            "controller.quorum.auto.join.enable",
            _T.BOOLEAN,
            False,
            "A controller joins the voters by itself (KIP-853).",
        ),
        kept("controller.quorum.bootstrap.servers", _T.LIST, (), "Where controllers are found at first."),
        kept(
            "controller.quorum.election.backoff.max.ms",
            _T.INT,
            1_000,
            "How long a controller waits at most after an election that failed.",
            at_least(0),
        ),
        kept(
            "controller.quorum.election.timeout.ms",
            _T.INT,
            1_000,
            "How long an election may take.",
            at_least(0),
        ),
        kept(
            "controller.quorum.fetch.max.bytes",
            _T.INT,
            1_048_576,
            "Bytes of one answer to a follower of the metadata log.",
            at_least(1),
        ),
        kept(
            "controller.quorum.fetch.snapshot.max.bytes",
            _T.INT,
            1_048_576,
            "Bytes of one part of a snapshot.",
            at_least(1),
        ),
        kept(
            "controller.quorum.fetch.timeout.ms",
            _T.INT,
            2_000,
            "How long a leading controller may be silent before another is elected.",
            at_least(0),
        ),
        kept(
            "controller.quorum.request.timeout.ms",
            _T.INT,
            2_000,
            "How long a controller waits for another's answer.",
            at_least(0),
        ),
        kept(
            "controller.quorum.retry.backoff.ms",
            _T.INT,
            20,
            "How long it waits before it asks again.",
            at_least(0),
        ),
        kept("controller.quorum.voters", _T.LIST, (), "The voters, ID@HOST:PORT each."),
        kept(
            "controller.socket.timeout.ms",
            _T.INT,
            30_000,
            "How long a broker waits for the controller's answer.",
        ),
        kept(
            "internal.metadata.delete.delay.millis",
            _T.LONG,
            60_000,
            "How long deleted files of the metadata log stay.",
            unlisted=True,
        ),
        kept(
            "internal.metadata.log.segment.bytes",
            _T.INT,
            None,
            "Segment size of the metadata log, for tests.",
            unlisted=True,
        ),
        kept(
            "internal.metadata.max.batch.size.in.bytes",
            _T.INT,
            8_388_608,
            "Largest batch of the metadata log.",
            unlisted=True,
        ),
        kept("metadata.log.dir", _T.STRING, None, "Folder of the metadata log."),
        kept(
            "metadata.log.max.record.bytes.between.snapshots",
            _T.LONG,
            20_971_520,
            "Bytes of metadata after which a snapshot is made.",
            at_least(1),
        ),
        kept(
            "metadata.log.max.snapshot.interval.ms",
            _T.LONG,
            3_600_000,
            "Time after which a snapshot is made.",
            at_least(0),
        ),
        kept(
            "metadata.log.segment.bytes",
            _T.INT,
            1_073_741_824,
            "Segment size of the metadata log.",
            at_least(8_388_608),
        ),
        kept("metadata.log.segment.ms", _T.LONG, 604_800_000, "Time after which such a segment is closed."),
        kept(
            "metadata.max.idle.interval.ms",
            _T.INT,
            500,
            "How often an idle controller writes a record that says nothing.",
            at_least(0),
        ),
        kept("metadata.max.retention.bytes", _T.LONG, 104_857_600, "Bytes of metadata that are kept."),
        kept("metadata.max.retention.ms", _T.LONG, 604_800_000, "How long metadata is kept."),
        kept(
            "process.roles",
            _T.LIST,
            ("broker", "controller"),
            "Whether this is a broker, a controller, or both.",
            all_of("broker", "controller"),
        ),
        kept(
            "sasl.mechanism.controller.protocol", _T.STRING, "GSSAPI", "How controllers log in at each other."
        ),
    ),
    *of_no_effect(
        _UNCLEAN,
        kept(
            "unclean.leader.election.interval.ms",
            _T.LONG,
            300_000,
            "How often partitions to elect uncleanly are looked for.",
            at_least(1),
            unlisted=True,
        ),
    ),
)
