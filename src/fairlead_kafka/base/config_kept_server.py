"""Configs without an effect here: a broker's threads, sockets, metrics and plug-in classes; Kafka's
keys and defaults (release 4.3)."""

from __future__ import annotations

from fairlead_kafka.base.config import INT_MAX, LONG_MAX, ConfigType, at_least
from fairlead_kafka.base.config_kept import empty_only, kept, never, of_no_effect

_T = ConfigType

_THREADS = "a broker is one machine on one thread"
_SYSTEM = "the operating system's default is used"
_PURGATORY = "what waits for its answer is looked at when something happens that it waits for"
_METRICS = "a broker's figures are had from `Cluster`, not from reporters"
_PLUGIN = "plug-in classes are Java's"
_PLACE = "the cluster's launcher starts and stops brokers"
_RATE = "connections are limited by address: connection_creation_rate (AlterClientQuotas)"

SERVER_KEPT = (
    *of_no_effect(
        _THREADS,
        kept(
            "background.threads",
            _T.INT,
            10,
            "Threads for work in the background.",
            at_least(1),
            dynamic="cluster-wide",
        ),
        kept(
            "num.io.threads", _T.INT, 8, "Threads that handle requests.", at_least(1), dynamic="cluster-wide"
        ),
        kept(
            "num.network.threads",
            _T.INT,
            3,
            "Threads of a listener that read requests and write answers.",
            at_least(1),
            dynamic="cluster-wide",
        ),
        kept(
            "num.recovery.threads.per.data.dir",
            _T.INT,
            2,
            "Threads that read logs at the start and sync them at the end.",
            at_least(1),
            dynamic="cluster-wide",
        ),
        kept(
            "queued.max.requests",
            _T.INT,
            500,
            "Requests that may wait before network threads read no more; queued.max.request.bytes "
            "bounds them here.",
            at_least(1),
        ),
    ),
    *of_no_effect(
        _SYSTEM,
        kept(
            "socket.listen.backlog.size", _T.INT, 50, "Connections that may wait to be accepted.", at_least(1)
        ),
        kept(
            "socket.receive.buffer.bytes",
            _T.INT,
            102_400,
            "Receive buffer of a socket; -1: the system's default.",
        ),
        kept(
            "socket.send.buffer.bytes", _T.INT, 102_400, "Send buffer of a socket; -1: the system's default."
        ),
        kept(
            "replica.socket.receive.buffer.bytes", _T.INT, 65_536, "Receive buffer of a socket to a leader."
        ),
    ),
    *of_no_effect(
        _PURGATORY,
        kept(
            "delete.records.purgatory.purge.interval.requests",
            _T.INT,
            1,
            "DeleteRecords requests after which finished ones are cleared away.",
        ),
        kept(
            "fetch.purgatory.purge.interval.requests",
            _T.INT,
            1_000,
            "Fetch requests after which finished ones are cleared away.",
        ),
        kept(
            "producer.purgatory.purge.interval.requests",
            _T.INT,
            1_000,
            "Produce requests after which finished ones are cleared away.",
        ),
        kept(
            "share.fetch.purgatory.purge.interval.requests",
            _T.INT,
            1_000,
            "ShareFetch requests after which finished ones are cleared away.",
        ),
    ),
    *of_no_effect(
        _METRICS,
        kept(
            "kafka.metrics.polling.interval.secs",
            _T.INT,
            10,
            "How often Yammer's reporters are asked.",
            at_least(1),
        ),
        kept("kafka.metrics.reporters", _T.LIST, (), "Yammer's reporter classes."),
        kept(
            "metric.reporters",
            _T.LIST,
            ("org.apache.kafka.common.metrics.JmxReporter",),
            "Reporter classes of Kafka's metrics.",
            dynamic="cluster-wide",
        ),
        kept("metrics.num.samples", _T.INT, 2, "Samples that a rate is computed from.", at_least(1)),
        kept("metrics.recording.level", _T.STRING, "INFO", "How much is measured: INFO, DEBUG or TRACE."),
        kept("metrics.sample.window.ms", _T.LONG, 30_000, "How long a sample is.", at_least(1)),
    ),
    *of_no_effect(
        _PLUGIN,
        kept(
            "alter.config.policy.class.name",
            _T.CLASS,
            None,
            "A class that judges altered configs.",
            never(_PLUGIN),
        ),
        kept("client.quota.callback.class", _T.CLASS, None, "A class that computes quotas.", never(_PLUGIN)),
        kept(
            "config.providers",
            _T.LIST,
            (),
            "Names of classes that resolve variables in configs; `${env:NAME}` and `${file:PATH:KEY}` "
            "are always resolved here.",
            empty_only(_PLUGIN),
            dynamic="cluster-wide",
        ),
        kept(
            "create.topic.policy.class.name",
            _T.CLASS,
            None,
            "A class that judges new topics.",
            never(_PLUGIN),
        ),
    ),
    *of_no_effect(
        _PLACE,
        kept(
            "controlled.shutdown.enable",
            _T.BOOLEAN,
            True,
            "A broker that stops hands its partitions over first; here it always does.",
        ),
        kept("early.start.listeners", _T.LIST, None, "Listeners that open before the authorizer is ready."),
        kept(
            "initial.broker.registration.timeout.ms",
            _T.INT,
            60_000,
            "How long a broker may take to be admitted at its start.",
        ),
        kept(
            "log.dir.failure.timeout.ms",
            _T.LONG,
            30_000,
            "How long a broker whose disk failed may be unable to say so before it ends.",
            at_least(1),
        ),
        kept(
            "server.max.startup.time.ms",
            _T.LONG,
            LONG_MAX,
            "How long a start may take.",
            at_least(0),
            unlisted=True,
        ),
        kept(
            "request.timeout.ms", _T.INT, 30_000, "How long a broker waits for an answer of the controller."
        ),
        kept(
            "socket.connection.setup.timeout.max.ms",
            _T.LONG,
            30_000,
            "How long setting up a connection may take at most, once it was tried often.",
        ),
        kept(
            "socket.connection.setup.timeout.ms",
            _T.LONG,
            10_000,
            "How long setting up a connection may take at first.",
        ),
        kept(
            "unstable.api.versions.enable",
            _T.BOOLEAN,
            False,
            "Serve versions of APIs that are not released.",
            unlisted=True,
        ),
        kept(
            "unstable.feature.versions.enable",
            _T.BOOLEAN,
            False,
            "Allow levels of features that are not released.",
            unlisted=True,
        ),
    ),
    *of_no_effect(
        _RATE,
        kept(
            "max.connection.creation.rate",
            _T.INT,
            INT_MAX,
            "New connections a second that a broker admits.",
            at_least(0),
            dynamic="cluster-wide",
        ),
    ),
)
