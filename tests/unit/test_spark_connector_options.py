"""Every option of Spark's Kafka connector is served, with its default, or refused with the reason.
None is passed over.

The list is that of Spark 4.3's integration guide and of the connector's `KafkaSourceProvider`,
written down here by hand: it is what the code is held to.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark import spark_session
from fairlead_kafka.spark.connector import REFUSED_SETTINGS, refused_settings
from fairlead_kafka.spark.option_table import OPTIONS, REFUSED, USES
from fairlead_kafka.spark.options import parse_read_options, parse_write_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
BOTH, BATCH, STREAM, WRITE = ("batch", "stream"), ("batch",), ("stream",), ("write",)
GUIDE = {
    "assign": (BOTH, ""),
    "subscribe": (BOTH, ""),
    "subscribePattern": (BOTH, ""),
    "startingTimestamp": (BOTH, ""),
    "startingOffsetsByTimestamp": (BOTH, ""),
    "startingOffsets": (BOTH, "earliest; streaming: latest"),
    "endingTimestamp": (BATCH, ""),
    "endingOffsetsByTimestamp": (BATCH, ""),
    "endingOffsets": (BATCH, "latest"),
    "failOnDataLoss": (BOTH, "true"),
    "kafkaConsumer.pollTimeoutMs": (BOTH, "120000"),
    "fetchOffset.numRetries": (BOTH, "3"),
    "fetchOffset.retryIntervalMs": (BOTH, "10"),
    "maxOffsetsPerTrigger": (STREAM, ""),
    "minOffsetsPerTrigger": (STREAM, ""),
    "maxTriggerDelay": (STREAM, "15m"),
    "minPartitions": (BOTH, ""),
    "maxRecordsPerPartition": (BOTH, ""),
    "groupIdPrefix": (BOTH, ""),
    "kafka.group.id": (BOTH, ""),
    "includeHeaders": ((*BOTH, *WRITE), "false; write: as it is"),
    "startingOffsetsByTimestampStrategy": (BOTH, "error"),
    "topic": (WRITE, ""),
}
"""Option: what it is for, and its default. (The connector's prefix for groups,
`spark-kafka-source`, serves names that nobody sees.)"""
FORBIDDEN = (
    *(
        "kafka.auto.offset.reset",
        "kafka.key.deserializer",
        "kafka.value.deserializer",
        "kafka.key.serializer",
        "kafka.value.serializer",
    ),
    *("kafka.enable.auto.commit", "kafka.interceptor.classes"),
)
SETTINGS = (
    *("spark.kafka.consumer.cache.capacity", "spark.kafka.consumer.cache.timeout"),
    *("spark.kafka.consumer.cache.evictorThreadRunInterval", "spark.kafka.consumer.cache.jmx.enable"),
    *(
        "spark.kafka.consumer.fetchedData.cache.timeout",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval",
    ),
    *("spark.kafka.producer.cache.timeout", "spark.kafka.producer.cache.evictorThreadRunInterval"),
    *(
        "spark.kafka.clusters.a.auth.bootstrap.servers",
        "spark.kafka.clusters.a.target.bootstrap.servers.regex",
    ),
    *("spark.kafka.clusters.a.security.protocol", "spark.kafka.clusters.a.sasl.kerberos.service.name"),
    *(f"spark.kafka.clusters.a.ssl.truststore.{what}" for what in ("type", "location", "password")),
    *(f"spark.kafka.clusters.a.ssl.keystore.{what}" for what in ("type", "location", "password")),
    *(
        "spark.kafka.clusters.a.ssl.key.password",
        "spark.kafka.clusters.a.sasl.token.mechanism",
        "spark.kafka.clusters.a.kafka.retries",
    ),
    *("spark.security.credentials.kafka.enabled", "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"),
)


def test_the_guides_options_are_all_there_for_what_the_guide_has_them() -> None:
    assert {
        option.name: (USES[option.used_by], option.default) for option in OPTIONS if not option.ours
    } == GUIDE


def test_what_the_guide_forbids_is_refused_with_a_reason() -> None:
    for name in FORBIDDEN:
        assert REFUSED[name]
        for parse in (parse_read_options, parse_write_options):
            with pytest.raises(ConfigError, match=rf"{name}: not supported \("):
                parse({**SERVERS, name.lower(): "x"})


def test_an_option_for_the_other_kind_of_query_is_refused() -> None:
    """The connector warns of some of these and goes on, and ignores others."""
    parsers: dict[str, Callable[[dict[str, str]], object]] = {
        "batch": parse_read_options,
        "stream": lambda options: parse_read_options(options, streaming=True),
        "write": parse_write_options,
    }
    for name, (uses, _) in GUIDE.items():
        for use in set(parsers) - set(uses):
            with pytest.raises(ConfigError, match=f"{name}: an option for .*, not for a"):
                parsers[use]({**SERVERS, name.lower(): "1"})


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_the_connector_are_refused_with_a_reason(name: str) -> None:
    (problem,) = refused_settings({name: "1", "spark.master": "local"})
    assert problem.startswith(f"{name}: ")


def test_a_session_with_settings_of_the_connector_is_not_made() -> None:
    assert all(reason for _, reason in REFUSED_SETTINGS.values())
    with pytest.raises(ConfigError, match="no pool to set"):
        spark_session(config={"spark.kafka.consumer.cache.capacity": "8"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger: 9 is more than maxOffsetsPerTrigger, 8",
        ),
        ({"maxTriggerDelay": "5m"}, "maxTriggerDelay: says how long to wait for minOffsetsPerTrigger"),
        (
            {"maxTriggerDelay": "5 fortnights", "minOffsetsPerTrigger": "1"},
            "maxTriggerDelay: must be a time such as",
        ),
        ({"maxBytesPerTrigger": "lots"}, "maxBytesPerTrigger: must be a size such as"),
        ({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: must be at least 1 byte"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger: must be a whole number, at least 1"),
        ({"balanceBy": "luck"}, "balanceBy: must be offsets or bytes"),
        ({"endingOffsets": "latest"}, "endingOffsets: an option for a batch read, not for a streaming read"),
        ({"commitOffsets": "true"}, "commitOffsets: to which group"),
    ],
)
def test_a_wrong_stream_says_what_is_wrong(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_read_options(
            {**SERVERS, "subscribe": "t", **{name.lower(): value for name, value in options.items()}},
            streaming=True,
        )
    assert said in str(raised.value)


def test_times_and_sizes_have_sparks_units() -> None:
    def parsed(**options: str) -> tuple[int | None, int]:
        found = parse_read_options(
            {**SERVERS, "subscribe": "t", "minoffsetspertrigger": "1", **options}, streaming=True
        )
        return found.max_bytes, found.max_delay_ms

    assert parsed() == (None, 900_000)
    assert parsed(maxbytespertrigger="64m", maxtriggerdelay="30s") == (64 << 20, 30_000)
    assert parsed(maxbytespertrigger="1000", maxtriggerdelay="250") == (1000, 250)
    assert parsed(maxbytespertrigger="1 GB", maxtriggerdelay="2h") == (1 << 30, 7_200_000)


@pytest.mark.parametrize("option", ["startingOffsets", "assign", "startingOffsetsByTimestamp"])
def test_json_that_is_nested_too_deep_is_said_with_its_option(option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option}: expected .*nested too deep"):
        parse_read_options({**SERVERS, "subscribe": "t", option: "[" * 5000}, "batch")
