"""Configs of other clients that are accepted and ignored, so that programs can move unchanged."""

from __future__ import annotations

_SYSTEM = "the operating system's default is used"
_JVM = "it chooses parts of a JVM; Python's ssl and OpenSSL are used"
_KERBEROS = "the GSSAPI library renews what it was given; run kinit, or name a keytab by sasl.kerberos.keytab"
_LOG = "logs are Python's: logging.getLogger('fairlead_kafka')"
_STATISTICS = "metrics() gives them whenever it is asked, and PrometheusCollector exports them"
_VERSIONS = "every broker is asked for its versions"
_QUEUE = "buffer.memory bounds what waits, in bytes"
_FETCH = "fetch.max.bytes and max.partition.fetch.bytes bound what is read ahead"

IGNORED = {
    "client.dns.lookup": "every address of a name is tried in turn, as with use_all_dns_ips",
    "send.buffer.bytes": _SYSTEM,
    "receive.buffer.bytes": _SYSTEM,
    "socket.send.buffer.bytes": _SYSTEM,
    "socket.receive.buffer.bytes": _SYSTEM,
    "socket.keepalive.enable": "it is always on",
    "socket.nagle.disable": "it is always so",
    "broker.address.family": "every address of a name is tried in turn",
    "broker.address.ttl": "names are looked up for each connection",
    "auto.include.jmx.reporter": _STATISTICS,
    "statistics.interval.ms": _STATISTICS,
    "log_level": _LOG,
    "debug": _LOG,
    "log.queue": _LOG,
    "log.thread.name": _LOG,
    "log.connection.close": _LOG,
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "api.version.fallback.ms": _VERSIONS,
    "broker.version.fallback": _VERSIONS,
    "queue.buffering.max.messages": _QUEUE,
    "queue.buffering.max.kbytes": _QUEUE,
    "queue.buffering.backpressure.threshold": _QUEUE,
    "batch.num.messages": "batch.size bounds batches, in bytes",
    "delivery.report.only.error": "callbacks are called for each record",
    "queued.min.messages": _FETCH,
    "queued.max.messages.kbytes": _FETCH,
    "security.providers": _JVM,
    "ssl.provider": _JVM,
    "ssl.providers": _JVM,
    "ssl.keymanager.algorithm": _JVM,
    "ssl.trustmanager.algorithm": _JVM,
    "ssl.secure.random.implementation": _JVM,
    "sasl.login.class": _JVM,
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
}
"""Key → what is done instead. It is logged once for each key."""
