"""The table of client configs: Kafka's keys and Kafka's defaults (release 4.3) for producer,
consumer and admin."""

from __future__ import annotations

from fairlead_kafka.base.config import (
    INT_MAX,
    ConfigKey,
    ConfigTable,
    ConfigType,
    above,
    at_least,
    between,
    name_on_the_wire,
    name_or_none,
    not_empty,
    one_of,
)
from fairlead_kafka.base.config_group import GROUP_KEYS
from fairlead_kafka.base.config_ignored import IGNORED
from fairlead_kafka.base.config_security import SECURITY_KEYS
from fairlead_kafka.base.config_share import SHARE_CONSUMER, SHARE_KEYS

_T = ConfigType
_ALL = ("producer", "consumer", SHARE_CONSUMER, "admin")
_PRODUCER = ("producer",)
_CONSUMER = ("consumer",)
_READERS = ("consumer", SHARE_CONSUMER)

_KEYS = (
    ConfigKey(
        "bootstrap.servers",
        _T.LIST,
        None,
        "host:port pairs, separated by commas, of brokers to learn the cluster from.",
        _ALL,
        not_empty,
        required=True,
        aliases=("metadata.broker.list",),
    ),
    ConfigKey(
        "bootstrap.connection.timeout.ms",
        _T.INT,
        6_000,
        "How long a call without a time-out of its own waits for a first broker, before it fails with "
        "NoBrokerReached: an address that has "
        "never worked is wrong more often than its broker is late. (Kafka has no such config.)",
        _ALL,
        at_least(0),
    ),
    ConfigKey("client.id", _T.STRING, "", "A name that brokers put into their logs.", _ALL, name_or_none),
    ConfigKey(
        "request.timeout.ms",
        _T.INT,
        30_000,
        "How long to wait for the answer to one request.",
        _ALL,
        at_least(0),
        aliases=("socket.timeout.ms",),
    ),
    ConfigKey(
        "metadata.max.age.ms",
        _T.LONG,
        300_000,
        "How old metadata may be before it is asked for again without a reason.",
        _ALL,
        at_least(0),
        aliases=("topic.metadata.refresh.interval.ms",),
    ),
    ConfigKey(
        "metadata.recovery.strategy",
        _T.STRING,
        "rebootstrap",
        "rebootstrap: the bootstrap servers are asked again when no known broker can be reached (KIP-899). "
        "none: they are asked until brokers are known, and never again.",
        _ALL,
        one_of("rebootstrap", "none"),
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        _T.LONG,
        300_000,
        "How long metadata that is due may fail to come before all known brokers are forgotten and the "
        "bootstrap servers asked, with metadata.recovery.strategy=rebootstrap (KIP-1102).",
        _ALL,
        at_least(0),
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        _T.LONG,
        50,
        "First wait before connecting again to a broker that failed.",
        _ALL,
        at_least(0),
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        _T.LONG,
        1_000,
        "Longest wait before connecting again to a broker that failed; it doubles with each failure.",
        _ALL,
        at_least(0),
    ),
    ConfigKey(
        "retry.backoff.ms",
        _T.LONG,
        100,
        "First wait before a failed request is sent again.",
        _ALL,
        at_least(0),
    ),
    ConfigKey(
        "retry.backoff.max.ms",
        _T.LONG,
        1_000,
        "Longest wait before a failed request is sent again; it doubles with each failure.",
        _ALL,
        at_least(0),
    ),
    ConfigKey(
        "connections.max.idle.ms",
        _T.LONG,
        540_000,
        "Close a connection unused for this long; -1: never.",
        _ALL,
        at_least(-1),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        _T.LONG,
        10_000,
        "How long the first attempt to connect may take.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        _T.LONG,
        30_000,
        "How long an attempt to connect may take at most; it doubles with each one that took too long.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "default.api.timeout.ms",
        _T.INT,
        60_000,
        "How long a call without a time-out of its own may take, retries included.",
        ("consumer", SHARE_CONSUMER, "admin"),
        at_least(0),
    ),
    ConfigKey(
        "enable.metrics.push",
        _T.BOOLEAN,
        True,
        "Push metrics to the cluster where it has a subscription that asks for them (KIP-714).",
        _ALL,
    ),
    ConfigKey(
        "acks",
        _T.STRING,
        "all",
        "0: do not wait; 1: the leader has written; all (or -1): all replicas in sync have.",
        _PRODUCER,
        one_of("all", "-1", "0", "1"),
        aliases=("request.required.acks",),
    ),
    ConfigKey(
        "batch.size", _T.INT, 16_384, "Size in bytes that a batch is filled up to.", _PRODUCER, at_least(0)
    ),
    ConfigKey(
        "batch.max.size",
        _T.INT,
        1_048_576,
        "Full batches of one partition that wait leave as one of up to so many bytes, so that a backlog "
        "costs fewer batches and a slow "
        "broker takes more with each request (KIP-782's name), and many turns of a policy that come at once, "
        "as with a table, are taken "
        "together; no more than batch.size: each leaves by itself, as Kafka's do.",
        _PRODUCER,
        at_least(0),
    ),
    ConfigKey(
        "linger.ms",
        _T.LONG,
        5,
        "How long a batch that is not full waits for more records.",
        _PRODUCER,
        at_least(0),
        aliases=("queue.buffering.max.ms",),
    ),
    ConfigKey(
        "buffer.memory",
        _T.LONG,
        33_554_432,
        "Bytes of records that may wait or be under way.",
        _PRODUCER,
        at_least(1),
    ),
    ConfigKey(
        "max.block.ms",
        _T.LONG,
        60_000,
        "How long a send may wait for room in buffer.memory or for a topic's metadata.",
        _PRODUCER,
        at_least(0),
    ),
    ConfigKey(
        "max.request.size",
        _T.INT,
        1_048_576,
        "Largest record, and largest request of several batches.",
        _PRODUCER,
        at_least(0),
        aliases=("message.max.bytes",),
    ),
    ConfigKey(
        "compression.type",
        _T.STRING,
        "none",
        "Codec of batches.",
        _PRODUCER,
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
        aliases=("compression.codec",),
    ),
    ConfigKey(
        "compression.gzip.level",
        _T.INT,
        -1,
        "gzip's level, 1 to 9; -1: its default.",
        _PRODUCER,
        between(-1, 9),
    ),
    ConfigKey("compression.lz4.level", _T.INT, 9, "lz4's level, 1 to 17.", _PRODUCER, between(1, 17)),
    ConfigKey("compression.zstd.level", _T.INT, 3, "zstd's level.", _PRODUCER, between(-131_072, 22)),
    ConfigKey(
        "delivery.timeout.ms",
        _T.INT,
        120_000,
        "Every record is delivered or failed within this time; at least linger.ms + request.timeout.ms.",
        _PRODUCER,
        at_least(0),
        aliases=("message.timeout.ms",),
    ),
    ConfigKey(
        "enable.idempotence",
        _T.BOOLEAN,
        True,
        "Number batches so that a retry is never written twice.",
        _PRODUCER,
    ),
    ConfigKey(
        "transactional.id",
        _T.STRING,
        None,
        "The producer's name across restarts: makes its sends transactional, and fences older producers of "
        "that name; needs idempotence.",
        _PRODUCER,
        name_on_the_wire,
        nullable=True,
    ),
    ConfigKey(
        "transaction.timeout.ms",
        _T.INT,
        60_000,
        "The coordinator aborts a transaction that is open for longer; at most the broker's "
        "transaction.max.timeout.ms.",
        _PRODUCER,
        at_least(1),
    ),
    ConfigKey(
        "max.in.flight.requests.per.connection",
        _T.INT,
        5,
        "Requests under way to one broker; at most 5 with idempotence.",
        _PRODUCER,
        at_least(1),
        aliases=("max.in.flight",),
    ),
    ConfigKey(
        "max.in.flight.requests.adaptive.enable",
        _T.BOOLEAN,
        True,
        "Keep fewer requests under way to a broker that serves them one after another: between 1 and "
        "max.in.flight.requests.per.connection, by what its answers show.",
        _PRODUCER,
    ),
    ConfigKey(
        "retries",
        _T.INT,
        INT_MAX,
        "How often a batch is sent again, within delivery.timeout.ms.",
        _PRODUCER,
        between(0, INT_MAX),
        aliases=("message.send.max.retries",),
    ),
    ConfigKey(
        "partitioner.class",
        _T.ANY,
        None,
        "What places records without partition: null for the default (`late`, or `uniform` without "
        "partitioner.adaptive.partitioning.enable), "
        "a policy's name (docs/concepts/partitioning.md), consistent_random to place keys as librdkafka does "
        "by default, one of Kafka's class names, a callable or its dotted path.",
        _PRODUCER,
        nullable=True,
    ),
    ConfigKey(
        "partitioner.adaptive.partitioning.enable",
        _T.BOOLEAN,
        True,
        "With partitioner.class=null or consistent_random: go by how quickly brokers take batches; false: "
        "`uniform`.",
        _PRODUCER,
    ),
    ConfigKey(
        "partitioner.availability.timeout.ms",
        _T.LONG,
        0,
        "Pass over partitions whose broker took no batch for this long; 0: never. `late` waits this long for "
        "an answer before it "
        "goes on without a broker; there, 0 means a quarter of a second, or ten times what the quickest "
        "broker takes.",
        _PRODUCER,
        at_least(0),
    ),
    ConfigKey(
        "partitioner.ignore.keys", _T.BOOLEAN, False, "Place records as if they had no key.", _PRODUCER
    ),
    ConfigKey(
        "partitioner.max.skew.bytes",
        _T.LONG,
        -1,
        "Under `late`: how far a broker may be behind its even part before records are kept for it; -1: "
        "batch.size, or 1 % of its "
        "even part in ten seconds if that is more. A huge number: none are kept, and brokers take what they "
        "can.",
        _PRODUCER,
        at_least(-1),
    ),
    ConfigKey(
        "partitioner.skew.include.keyed",
        _T.BOOLEAN,
        False,
        "Under `late`: count keyed and explicitly placed records too, so that unkeyed ones fill the valleys "
        "that keys leave.",
        _PRODUCER,
    ),
    ConfigKey(
        "buffer.memory.per.broker.ratio",
        _T.DOUBLE,
        1.0,
        "Share of buffer.memory that records bound to one broker by key or partition may hold while other "
        "brokers have traffic; beyond "
        "it they fail at once with BufferExhausted. 1: no bound.",
        _PRODUCER,
        above(0.0, 1.0),
    ),
    ConfigKey(
        "metadata.max.idle.ms",
        _T.LONG,
        300_000,
        "Forget a topic not sent to for this long.",
        _PRODUCER,
        at_least(5_000),
    ),
    ConfigKey(
        "metrics.sample.window.ms",
        _T.LONG,
        30_000,
        "Span of time that rates, averages and maxima are taken over.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "metrics.num.samples",
        _T.INT,
        2,
        "How many of metrics.sample.window.ms they cover, the present one included.",
        _ALL,
        at_least(1),
    ),
    ConfigKey(
        "interceptor.classes",
        _T.ANY,
        None,
        "Interceptors, called in this order: instances, classes or their dotted paths, in a list or "
        "separated by commas.",
        ("producer", "consumer"),
        nullable=True,
    ),
    *(
        ConfigKey(
            f"{field}.{what}",
            _T.ANY,
            None,
            f"{verb} {field}s: a function of them and a SerializationContext, such as those of "
            f"fairlead_kafka.formats and confluent-kafka, or string, integer, long, double, json; "
            f"null: bytes.",
            (client,),
            nullable=True,
        )
        for what, client, verb in (
            ("serializer", "producer", "Writes"),
            ("deserializer", "consumer", "Reads"),
        )
        for field in ("key", "value")
    ),
    ConfigKey(
        "fetch.min.bytes", _T.INT, 1, "A broker answers once it has this many bytes.", _READERS, at_least(0)
    ),
    ConfigKey(
        "fetch.max.bytes",
        _T.INT,
        52_428_800,
        "Most bytes in one answer (a first batch may exceed it).",
        _READERS,
        at_least(0),
    ),
    ConfigKey(
        "fetch.max.wait.ms",
        _T.INT,
        500,
        "How long a broker waits for fetch.min.bytes.",
        _READERS,
        at_least(0),
        aliases=("fetch.wait.max.ms",),
    ),
    ConfigKey(
        "client.rack",
        _T.STRING,
        "",
        "Where this client stands; brokers with replica.selector.class send it to a replica there (KIP-392). "
        "Empty: nowhere.",
        _READERS,
    ),
    ConfigKey(
        "max.partition.fetch.bytes",
        _T.INT,
        1_048_576,
        "Most bytes per partition in one answer.",
        _CONSUMER,
        at_least(0),
        aliases=("fetch.message.max.bytes",),
    ),
    ConfigKey(
        "max.poll.records",
        _T.INT,
        500,
        "Most records that one poll gives; poll_table is not bound by it.",
        _READERS,
        at_least(1),
    ),
    ConfigKey(
        "auto.offset.reset",
        _T.STRING,
        "latest",
        "Where to start without a position, or when it is gone: earliest, latest, or none for an error.",
        _CONSUMER,
        one_of("earliest", "latest", "none"),
    ),
    ConfigKey(
        "isolation.level",
        _T.STRING,
        "read_uncommitted",
        "read_committed: records of transactions come once these are committed, and never if they were "
        "aborted.",
        _CONSUMER,
        one_of("read_uncommitted", "read_committed"),
    ),
    ConfigKey("check.crcs", _T.BOOLEAN, True, "Check every batch's CRC-32C.", _READERS),
    ConfigKey(
        "allow.auto.create.topics",
        _T.BOOLEAN,
        True,
        "Asking for a missing topic may create it, if the broker does.",
        _READERS,
    ),
)

_LIBRDKAFKA = (
    "it belongs to librdkafka's way of storing offsets; commit what was processed, or leave it to "
    "enable.auto.commit"
)
_JAVA_CLASS = (
    "plug-in classes are Java's; give a callable or its dotted path as sasl.oauthbearer.token.provider"
)

CLIENT_CONFIGS = ConfigTable(
    (*_KEYS, *GROUP_KEYS, *SHARE_KEYS, *SECURITY_KEYS),
    {
        "enable.auto.offset.store": _LIBRDKAFKA,
        "consumer.timeout.ms": "an iteration over a consumer does not end by itself; call "
        "poll(timeout_s=...) in a loop",
        "logger": "what happens is logged with logging.getLogger('fairlead_kafka')",
        "partitioner": "it is partitioner.class here: null places records with a key as librdkafka's "
        "murmur2_random and Java do, consistent_random as librdkafka does by default",
        "on_delivery": "give a callback with each record: send(..., on_delivery=...)",
        "error_cb": "errors are raised by the calls that meet them, and logged: "
        "logging.getLogger('fairlead_kafka')",
        "stats_cb": "statistics of librdkafka's shape are not made: call metrics() when you want them, or "
        "export them with fairlead_kafka.PrometheusCollector; docs/tutorials/moving.md says which metric has "
        "which number",
        "throttle_cb": "metrics() has what quotas cost: produce-throttle-time-avg, fetch-throttle-time-avg",
        "enable.partition.eof": "poll gives nothing at the end of a partition; compare position() with "
        "end_offsets()",
        "ssl.engine.": "TLS is Python's ssl; keys and certificates come from files or as text",
        "ssl.crl.location": "revocation lists are not read; have the authority issue certificates of a short "
        "life",
        "sasl.oauthbearer.jwt.": _JAVA_CLASS,
        "sasl.oauthbearer.assertion.": "tokens are asked for with id and secret; else there is "
        "sasl.oauthbearer.token.provider",
        "metrics.recording.level": "everything is recorded",
        "metric.reporters": "read `metrics()`, or export it with fairlead_kafka.PrometheusCollector",
    },
    IGNORED,
)
