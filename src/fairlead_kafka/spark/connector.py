"""Spark's own settings for its Kafka connector, none of which has an effect on this source.

The connector's code in the JVM reads them, and it is not there. `spark_session` refuses them rather
than ignore them silently.
"""

from __future__ import annotations

from collections.abc import Mapping

_CONSUMERS = "a task opens a consumer of its own and closes it: there is no pool to set"
_FETCHED = "nothing that was fetched outlives its task: fetch.max.bytes bounds it"
_PRODUCERS = (
    "a task opens a producer of its own and closes it when all is acknowledged: there is no pool to set"
)
_TOKENS = (
    "there are no delegation tokens here: say who a job is with its options, kafka.security.protocol "
    "and kafka.sasl.*"
)

REFUSED_SETTINGS: Mapping[str, tuple[str, str]] = {
    "spark.kafka.consumer.cache.capacity": ("64", _CONSUMERS),
    "spark.kafka.consumer.cache.timeout": ("5m", _CONSUMERS),
    "spark.kafka.consumer.cache.evictorThreadRunInterval": ("1m", _CONSUMERS),
    "spark.kafka.consumer.cache.jmx.enable": ("false", _CONSUMERS),
    "spark.kafka.consumer.fetchedData.cache.timeout": ("5m", _FETCHED),
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": ("1m", _FETCHED),
    "spark.kafka.producer.cache.timeout": ("10m", _PRODUCERS),
    "spark.kafka.producer.cache.evictorThreadRunInterval": ("1m", _PRODUCERS),
    "spark.kafka.clusters.": ("", _TOKENS),
    "spark.security.credentials.kafka.enabled": ("true", _TOKENS),
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": (
        "false",
        "offsets are looked up by one way only, the newer one: without a group, and with a limit of time",
    ),
}
"""Setting, or the beginning of a family that ends with a dot: its default in the connector, and why
it is refused."""


def refused_settings(settings: Mapping[str, str]) -> list[str]:
    """Problems, as `name: reason`, of settings that are meant for Spark's own Kafka connector."""
    return [
        f"{name}: {reason}"
        for name in settings
        for refused, (_, reason) in REFUSED_SETTINGS.items()
        if name == refused or (refused.endswith(".") and name.startswith(refused))
    ]
